//! Compiles logic, shifts and byte permutation (PTX ISA 9.7.8 and 9.7.9).
//!
//! Shift amounts are clamped to the width unless `.wrap` is set.

use super::int::{one, two};
use super::program::Alu;
use super::values::{is_signed, mask, number};
use crate::ptx::ast::Instruction;
use crate::tables::ptx::{BoolOp, Modifiers, Op, PrmtMode, ScalarType, ShiftDirection, ShiftMode, TypeClass};

/// The function that a bit operation computes, or `None` for other instructions.
pub fn compile(i: &Instruction) -> Option<Alu> {
    let ty = *i.types.first()?;
    let (bits, m) = (ty.bits(), mask(ty.bits()));
    let predicate = ty.class() == TypeClass::Predicate;
    match i.op {
        Op::And => one(|s| s[0] & s[1]),
        Op::Or => one(|s| s[0] | s[1]),
        Op::Xor => one(|s| s[0] ^ s[1]),
        Op::Not if predicate => one(|s| s[0] ^ 1),
        Op::Not => one(move |s| !s[0] & m),
        Op::Cnot => one(|s| u64::from(s[0] == 0)),
        Op::Lop3 => lop3(&i.mods),
        Op::Shl => one(move |s| if s[1] >= u64::from(bits) { 0 } else { s[0] << s[1] & m }),
        Op::Shr => one(move |s| shift_right(ty, s[0], s[1])),
        Op::Shf => funnel(&i.mods),
        Op::Prmt => prmt(i.mods.prmt_mode),
        _ => None,
    }
}

fn shift_right(ty: ScalarType, value: u64, amount: u64) -> u64 {
    if is_signed(ty) {
        return (number(ty, value) >> amount.min(64)) as u64 & mask(ty.bits());
    }
    if amount >= ty.bits().into() { 0 } else { value >> amount }
}

/// Combines a comparison result with a predicate operand.
pub fn combine(op: Option<BoolOp>, a: bool, b: bool) -> bool {
    match op {
        None => a,
        Some(BoolOp::And) => a & b,
        Some(BoolOp::Or) => a | b,
        Some(BoolOp::Xor) => a ^ b,
    }
}

/// `lop3`: looks up each result bit at index a·4 + b·2 + c of the table. With a predicate result,
/// the predicate operand follows the table among the sources.
fn lop3(mods: &Modifiers) -> Option<Alu> {
    let op = mods.bool_op;
    two(move |s| {
        let bit = |i: u32| {
            let at = (s[0] >> i & 1) << 2 | (s[1] >> i & 1) << 1 | (s[2] >> i & 1);
            (s[3] >> at & 1) << i
        };
        let word = (0..32).fold(0, |word, i| word | bit(i));
        [word, combine(op, word != 0, s[4] != 0).into()]
    })
}

fn funnel(mods: &Modifiers) -> Option<Alu> {
    let left = mods.shift_direction == Some(ShiftDirection::L);
    let wrap = mods.shift_mode == Some(ShiftMode::Wrap);
    one(move |s| {
        let amount = if wrap { s[2] & 31 } else { s[2].min(32) };
        let pair = s[1] << 32 | s[0];
        if left { pair << amount >> 32 } else { pair >> amount & mask(32) }
    })
}

/// `prmt`: selects bytes of the pair b:a.
fn prmt(mode: Option<PrmtMode>) -> Option<Alu> {
    one(move |s| {
        let pair = s[1] << 32 | s[0];
        let c = s[2] & 3;
        (0..4u64).fold(0, |word, i| {
            let select = match mode {
                None => s[2] >> (4 * i) & 15,
                Some(PrmtMode::F4e) => c + i,
                Some(PrmtMode::B4e) => (c + 8 - i) & 7,
                Some(PrmtMode::Rc8) => c,
                Some(PrmtMode::Ecl) => c.max(i),
                Some(PrmtMode::Ecr) => c.min(i),
                Some(PrmtMode::Rc16) => (c & 1) * 2 + (i & 1),
            };
            let byte = pair >> (8 * (select & 7)) & 0xff;
            // The selector's high bit replicates the sign of the byte.
            let byte = if select & 8 != 0 { (byte >> 7) * 0xff } else { byte };
            word | byte << (8 * i)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_clamp() {
        assert_eq!(shift_right(ScalarType::S32, 0x8000_0000, 100), 0xffff_ffff);
        assert_eq!(shift_right(ScalarType::S16, 0x8000, 15), 0xffff);
        assert_eq!(shift_right(ScalarType::U64, u64::MAX, 64), 0);
        assert_eq!(shift_right(ScalarType::B32, 0x8000_0000, 31), 1);
    }

    #[test]
    fn bytes() {
        let run = |mode, a, b, c| prmt(mode).map(|f| f(&[a, b, c, 0, 0, 0])[0]);
        assert_eq!(run(None, 0x3322_1180, 0x7766_5544, 0x7418), Some(0x7744_11ff));
        assert_eq!(run(Some(PrmtMode::B4e), 0x3322_1100, 0x7766_5544, 1), Some(0x6677_0011));
        assert_eq!(run(Some(PrmtMode::Rc16), 0x3322_1100, 0, 1), Some(0x3322_3322));
    }
}
