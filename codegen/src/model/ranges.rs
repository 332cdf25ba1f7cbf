//! What a constant operand may be: the columns `with` and `is` of `ptx/ranges.ron`, taken apart.
//!
//! Input: a column's text. Output: words and spans, or the word that is neither. Nothing is resolved here.

use crate::rows::ptx::RangeRow;

/// One word of the column `is`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// Multiples of `step` from `low` to `high`.
    Integers { low: i64, high: i64, step: i64 },
    /// From `low` to the constant that is operand `arg`.
    UpTo { low: i64, arg: u32 },
    /// Real numbers above the one and up to the other.
    Reals { above: f64, high: f64 },
}

impl Span {
    /// `4`, `0..15`, `0..4294967295/32`, `0..$2` or `(0.0..1.0]`; `None` where it is none of these or holds no number.
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
    /// What the operand may be, or the first word that says nothing.
    pub fn spans(&self) -> Result<Vec<Span>, &str> {
        self.is.split_whitespace().map(|word| Span::parse(word).ok_or(word)).collect()
    }

    /// Of each list, the instruction has one word.
    pub fn words(&self) -> Vec<Vec<&str>> {
        self.with.split_whitespace().map(|word| word.split('|').collect()).collect()
    }
}
