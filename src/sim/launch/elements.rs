//! Parses lists of numbers in a launch description to the elements' bits.
//!
//! A list is `[1, 2.5, 0x7f]`, a generator `iota(n, start, step)`, `fill(n, value)`, `lcg(n, seed,
//! mask)`, `random(n, seed, low, high)` or `edges(n, seed)`, or a concatenation, `concat([fill(3,
//! 0), [1, 2]])`. An expectation may also be `interpreter(n)`, n numbers that the PTX interpreter
//! computes, or `interpreter` if the data says how many. An error points to the number or generator
//! that is wrong.

use super::load::{LoadError, Source, trimmed};
use super::{ElementType, Expected};
use ron::value::RawValue;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename = "Generator", rename_all = "lowercase")]
enum RawGenerator<'a> {
    Iota(usize, #[serde(borrow)] &'a RawValue, #[serde(borrow)] &'a RawValue),
    Fill(usize, #[serde(borrow)] &'a RawValue),
    Lcg(usize, u64, u64),
    Random(usize, u64, #[serde(borrow)] &'a RawValue, #[serde(borrow)] &'a RawValue),
    Edges(usize, u64),
    Concat(#[serde(borrow)] Vec<&'a RawValue>),
}

impl RawGenerator<'_> {
    fn count(&self) -> usize {
        match self {
            RawGenerator::Iota(n, ..)
            | RawGenerator::Fill(n, _)
            | RawGenerator::Lcg(n, ..)
            | RawGenerator::Random(n, ..)
            | RawGenerator::Edges(n, _) => *n,
            RawGenerator::Concat(_) => 0,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename = "Expectation", rename_all = "lowercase")]
enum RawInterpreter {
    Interpreter(usize),
}

/// Most elements of one list, so that a mistyped size gives a message instead of exhausting memory.
const MOST_ELEMENTS: usize = 1 << 28;

impl<'a> Source<'a> {
    /// Parses an expectation; `count` is the number of elements of the buffer's data.
    pub(super) fn expected(
        &self,
        ty: ElementType,
        raw: &'a RawValue,
        count: Option<usize>,
    ) -> Result<Vec<Expected>, LoadError> {
        let text = trimmed(raw);
        if text == "interpreter" {
            let count = count.ok_or_else(|| self.error(text, "how many numbers? expected interpreter(COUNT)"))?;
            return Ok(vec![Expected::Interpreter; count]);
        }
        if text.starts_with("interpreter") {
            let RawInterpreter::Interpreter(count) = self.ron(text)?;
            self.limited(text, count)?;
            return Ok(vec![Expected::Interpreter; count]);
        }
        if !text.starts_with('[') {
            return Ok(self.elements(ty, raw)?.into_iter().map(Expected::Bits).collect());
        }
        let one = |number: &&'a RawValue| match trimmed(number) {
            "nan" if ty.is_float() => Ok(Expected::Nan),
            text => self.number(ty, text).map(Expected::Bits),
        };
        self.ron::<Vec<&RawValue>>(text)?.iter().map(one).collect()
    }

    /// Parses a list of numbers or a generator to the elements' bits.
    pub(super) fn elements(&self, ty: ElementType, raw: &'a RawValue) -> Result<Vec<u64>, LoadError> {
        let text = trimmed(raw);
        if text.starts_with('[') {
            return self.ron::<Vec<&RawValue>>(text)?.iter().map(|n| self.number(ty, trimmed(n))).collect();
        }
        let generator: RawGenerator = self.ron(text)?;
        self.limited(text, generator.count())?;
        let placed = |made: Result<Vec<u64>, String>| made.map_err(|message| self.error(text, message));
        match generator {
            RawGenerator::Iota(n, start, step) => placed(ty.iota(n, trimmed(start), trimmed(step))),
            RawGenerator::Random(n, seed, low, high) => placed(ty.random(n, seed, trimmed(low), trimmed(high))),
            RawGenerator::Fill(n, value) => Ok(vec![self.number(ty, trimmed(value))?; n]),
            RawGenerator::Lcg(n, seed, mask) => Ok(ty.lcg(n, seed, mask)),
            RawGenerator::Edges(n, seed) => Ok(ty.edges(n, seed)),
            RawGenerator::Concat(parts) => {
                let parts = parts.iter().map(|part| self.elements(ty, part)).collect::<Result<Vec<_>, _>>()?;
                Ok(parts.concat())
            }
        }
    }

    fn limited(&self, text: &'a str, count: usize) -> Result<(), LoadError> {
        if count > MOST_ELEMENTS {
            return Err(self.error(text, format!("{count} elements are more than {MOST_ELEMENTS}")));
        }
        Ok(())
    }

    /// Parses a number of the type.
    pub(super) fn number(&self, ty: ElementType, text: &'a str) -> Result<u64, LoadError> {
        ty.parse(text).map_err(|message| self.error(text, message))
    }
}
