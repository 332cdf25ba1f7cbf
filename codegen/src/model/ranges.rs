//! Parses the ranges of constant operands: the columns `with` and `is` of `ptx/ranges.ron`.
//!
//! The result is words and spans; a word that is neither is the error. No names are resolved here.

use crate::rows::ptx::RangeRow;

/// One word of the column `is`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// Multiples of `step` from `low` to `high`.
    Integers { low: i64, high: i64, step: i64 },
    /// From `low` to the constant operand `arg`.
    UpTo { low: i64, arg: u32 },
    /// Greater than `above` and at most `high`.
    Reals { above: f64, high: f64 },
}

impl Span {
    /// Parses `4`, `0..15`, `0..4294967295/32`, `0..$2` or `(0.0..1.0]`; `None` for anything else
    /// and for empty ranges.
    fn parse(word: &str) -> Option<Span> {
        if let Some(body) = word.strip_prefix('(') {
            let (above, high) = body.strip_suffix(']')?.split_once("..")?;
            let (above, high) = (above.parse().ok()?, high.parse().ok()?);
            return (above < high).then_some(Span::Reals { above, high });
        }
        let Some((low, rest)) = word.split_once("..") else {
            let value = word.parse().ok()?;
            return Some(Span::Integers { low: value, high: value, step: 1 });
        };
        let low = low.parse().ok()?;
        if let Some(arg) = rest.strip_prefix('$') {
            return Some(Span::UpTo { low, arg: arg.parse().ok()? });
        }
        let (high, step) = rest.split_once('/').unwrap_or((rest, "1"));
        let (high, step) = (high.parse().ok()?, step.parse().ok()?);
        (low <= high && step >= 1).then_some(Span::Integers { low, high, step })
    }
}

impl RangeRow {
    /// The spans of the operand. The error is the first word that is not a span.
    pub fn spans(&self) -> Result<Vec<Span>, &str> {
        self.is.split_whitespace().map(|word| Span::parse(word).ok_or(word)).collect()
    }

    /// The instruction must have one word of each list; `-WORD` is there where WORD is not.
    pub fn words(&self) -> Vec<Vec<&str>> {
        self.with.split_whitespace().map(|word| word.split('|').collect()).collect()
    }
}
