//! Checks constant operands against the rows of `ranges.ron`.
//!
//! An instruction whose form is known gets an error at each constant outside its row's range.

use super::ast::{Constant, Operand, OperandKind};
use super::instruction::Written;
use super::parser::Parser;
use crate::tables::ptx::{ArgRange, Span};

impl<'a> Parser<'a> {
    /// Reports constant operands that are out of range.
    pub fn check_ranges(&mut self, w: &Written<'a>) {
        for range in w.op.ranges() {
            let Some(Operand { pos, kind: OperandKind::Constant(constant) }) = w.operands.get(range.arg as usize)
            else {
                continue;
            };
            let written = |word: &str| w.suffixes.iter().any(|suffix| suffix.0 == word);
            let has = |word: &&str| word.strip_prefix('-').map_or_else(|| written(word), |word| !written(word));
            let holds = range.with.iter().all(|words| words.iter().any(has));
            if holds && !range.is.iter().any(|span| allows(span, *constant, &w.operands)) {
                let text = message(w, range, *constant);
                self.error(*pos, text);
            }
        }
    }
}

/// Whether a span allows a constant. A constant of the other kind (integer or real) passes here,
/// since the operand's type is checked elsewhere.
fn allows(span: &Span, constant: Constant, operands: &[Operand]) -> bool {
    let real = match constant {
        Constant::Int { .. } => None,
        Constant::F32(bits) => Some(f64::from(f32::from_bits(bits))),
        Constant::F64(bits) => Some(f64::from_bits(bits)),
    };
    match (*span, integer(constant), real) {
        (Span::Integers { low, high, step }, Some(value), _) => (low..=high).contains(&value) && value % step == 0,
        (Span::UpTo { low, arg }, Some(value), _) => {
            value >= low && operand(operands, arg).is_none_or(|high| value <= high)
        }
        (Span::Reals { above, high }, _, Some(value)) => above < value && value <= high,
        _ => true,
    }
}

fn integer(constant: Constant) -> Option<i64> {
    match constant {
        Constant::Int { bits, .. } => Some(bits as i64),
        Constant::F32(_) | Constant::F64(_) => None,
    }
}

/// The value of an operand that is an integer constant.
fn operand(operands: &[Operand], arg: u32) -> Option<i64> {
    match operands.get(arg as usize)?.kind {
        OperandKind::Constant(constant) => integer(constant),
        _ => None,
    }
}

fn message(w: &Written, range: &ArgRange, constant: Constant) -> String {
    let value = match constant {
        Constant::Int { bits, .. } => (bits as i64).to_string(),
        Constant::F32(bits) => format!("{:.6}", f32::from_bits(bits)),
        Constant::F64(bits) => format!("{:.6}", f64::from_bits(bits)),
    };
    let (low, high) = match range.is {
        [Span::Integers { low, high, .. }, ..] => (*low, Some(*high)),
        [Span::UpTo { low, arg }, ..] => (*low, operand(&w.operands, *arg)),
        _ => (0, None),
    };
    let high = high.map_or_else(|| "?".to_string(), |high| high.to_string());
    if range.says.is_empty() {
        let (arg, name) = (range.arg, w.op.name());
        let expected = format!("expected to be in range [{low}..{high}]");
        return format!("Argument {arg} of instruction '{name}': value '{value}' out of range, {expected}");
    }
    let says = range.says.replace("{op}", w.op.name()).replace("{value}", &value);
    says.replace("{low}", &low.to_string()).replace("{high}", &high)
}
