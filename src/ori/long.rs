//! 64-bit numbers in two words: the carry between operations on them, and constants.

use super::{Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};

/// The carry that a sum or comparison of high words takes from that of the low words.
pub fn carry_in(function: &Function, inst: InstId) -> Option<Operand> {
    let data = &function[inst];
    let role = match data.op {
        Op::IADD3 if data.mods.get(Mod::X) == value::x::X => Role::Pp,
        Op::ISETP if data.mods.get(Mod::Ex) == value::ex::EX => Role::Pq,
        _ => return None,
    };
    Some(function.arg(inst, role)).filter(|operand| operand.as_reg().is_some() && *operand == operand.plain())
}

/// The constant that two words are, if its low word and that word's sign give it.
pub fn short_constant(function: &Function, low: Operand, high: Operand) -> Option<u64> {
    let (low, high) = (function.word_value(low)?, function.word_value(high)?);
    let value = i64::from(low as i32) as u64;
    ((value >> 32) as u32 == high).then_some(value)
}
