//! Which bits of its sources each bit of a result depends on.

use crate::arrays::Each;
use crate::ori::{Function, InstId, Operand};
use crate::tables::{Mod, Op, Prop, Role, value};

/// Bytes that a byte permutation chooses from.
pub const CHOICE: u32 = 8;
const LOW_HALF: u32 = 0xffff;

/// The bits of an operand that some bits of the result depend on.
pub fn of(function: &Function, inst: InstId, role: Role, result: u32) -> u32 {
    let data = &function[inst];
    let operand = function.arg(inst, role);
    let whole = || if result == 0 { 0 } else { u32::MAX };
    // Modifiers work on whole words; of those of halves each half has its own.
    match data.op {
        op if op.has(Prop::HalfPair) => return halves(function, inst, role, result),
        _ if carries_up(function, inst) => return below(result),
        _ if operand != operand.plain() => return whole(),
        _ => {}
    }
    match data.op {
        op if op.has(Prop::Copies) && function.arg(inst, Role::Lanes).is_null() => result,
        Op::SEL if matches!(role, Role::A | Role::B) => result,
        Op::LOP3 => logic(function, inst, role, result).unwrap_or_else(whole),
        Op::PRMT if role != Role::B => permuted(function, inst, role, result).unwrap_or_else(whole),
        Op::SHF => shifted(function, inst, role, result).unwrap_or_else(whole),
        Op::SGXT if role == Role::A => {
            let width = function.word_value(function.arg(inst, Role::B)).filter(|width| (1..=31).contains(width));
            let Some(width) = width else { return whole() };
            let copied = result >> width != 0 && data.mods.get(Mod::Sign) != value::sign::U32;
            result & !(u32::MAX << width) | if copied { 1 << (width - 1) } else { 0 }
        }
        _ => whole(),
    }
}

/// Whether each bit of the result depends on all bits of all sources up to it: carries go up, those
/// of a negation too.
pub fn carries_up(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let carries = matches!(data.op, Op::IADD3 | Op::IMAD) && !data.op.has(Prop::HalfPair);
    carries && data.mods.get(Mod::X) != value::x::X
}

/// All bits up to the highest one that is set.
fn below(bits: u32) -> u32 {
    u32::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0)
}

fn logic(function: &Function, inst: InstId, role: Role, result: u32) -> Option<u32> {
    let table = lut(function, inst)?;
    let roles = [Role::A, Role::B, Role::C];
    let own = roles.iter().position(|r| *r == role)?;
    let values = roles.each(|role| function.word_value(function.arg(inst, role)));
    let mut matters = 0;
    for row in (0..8u32).filter(|row| row >> (2 - own) & 1 == 0) {
        if table >> row & 1 != table >> (row | 4 >> own) & 1 {
            let others = values.iter().enumerate().filter(|(at, _)| *at != own);
            matters |= others.fold(u32::MAX, |possible, (at, value)| match value {
                Some(value) if row >> (2 - at) & 1 == 1 => possible & value,
                Some(value) => possible & !value,
                None => possible,
            });
        }
    }
    Some(result & matters)
}

fn permuted(function: &Function, inst: InstId, role: Role, result: u32) -> Option<u32> {
    let mut read = 0;
    for (at, choice) in bytes(function, inst)?.into_iter().enumerate() {
        let byte = result >> (8 * at) & 0xff;
        let own = (choice % CHOICE < CHOICE / 2) == (role == Role::A);
        if own {
            let bits = if choice < CHOICE { byte } else { u32::from(byte != 0) << 7 };
            read |= bits << (8 * (choice % 4));
        }
    }
    Some(read)
}

/// Shifts of words by a constant.
fn shifted(function: &Function, inst: InstId, role: Role, result: u32) -> Option<u32> {
    let data = &function[inst];
    let count = function.word_value(function.arg(inst, Role::B)).filter(|count| *count < u32::BITS)?;
    let (left, high) = (data.mods.get(Mod::Dir) == value::dir::L, data.mods.get(Mod::Hi) != 0);
    match (left, high, data.mods.get(Mod::Itype), role) {
        (true, false, value::itype::U32, Role::A) => Some(result >> count),
        (false, true, value::itype::U32, Role::C) => Some(result << count),
        (false, true, value::itype::S32, Role::C) => {
            let sign = result.leading_zeros() < count;
            Some(result << count | u32::from(sign) << 31)
        }
        _ => None,
    }
}

/// Operations on two halves.
fn halves(function: &Function, inst: InstId, role: Role, result: u32) -> u32 {
    let mods = &function[inst].mods;
    let lanes = [result & LOW_HALF != 0, result & !LOW_HALF != 0];
    let of = |lane: bool, half: u32| if lane { half } else { 0 };
    let swizzles = [
        (Role::A, Mod::SwzA, value::swz_a::NONE, value::swz_a::H1_H1),
        (Role::B, Mod::SwzB, value::swz_b::NONE, value::swz_b::H1_H1),
        (Role::C, Mod::SwzC, value::swz_c::NONE, value::swz_c::H1_H1),
    ];
    let swizzle =
        swizzles.into_iter().find(|(of, ..)| *of == role).map(|(_, key, own, high)| (mods.get(key), own, high));
    let (low, high) = match swizzle {
        Some((chosen, own, _)) if chosen == own => (LOW_HALF, !LOW_HALF),
        Some((chosen, _, high)) if chosen == high => (!LOW_HALF, !LOW_HALF),
        _ => (u32::MAX, u32::MAX),
    };
    of(lanes[0], low) | of(lanes[1], high)
}

/// The truth table of a LOP3 without predicates whose inputs are taken as they are.
pub fn lut(function: &Function, inst: InstId) -> Option<u32> {
    let pp = function.arg(inst, Role::Pp);
    let plain = [Role::A, Role::B, Role::C].iter().all(|role| {
        let operand = function.arg(inst, *role);
        operand == operand.plain()
    });
    let table = function.imm_value(function.arg(inst, Role::Lut)).filter(|_| pp.is_null() || pp == Operand::never());
    table.filter(|_| plain).map(|table| table as u32)
}

/// What each byte of a PRMT is: a byte of `a` (0 to 3) or of `c` (4 to 7), and 8 more if it repeats
/// that byte's sign; the selector must be a constant.
pub fn bytes(function: &Function, inst: InstId) -> Option<[u32; 4]> {
    if function[inst].mods.get(Mod::Prmt) != value::prmt::NONE {
        return None;
    }
    let selector = function.word_value(function.arg(inst, Role::B))?;
    let plain = [Role::A, Role::C].iter().all(|role| {
        let operand = function.arg(inst, *role);
        operand == operand.plain()
    });
    plain.then(|| [0, 4, 8, 12].each(|shift| selector >> shift & 0xf))
}
