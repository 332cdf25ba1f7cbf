//! Carries that are never set: the most that a word can be follows from the masks and shifts that
//! made it.

use crate::analysis::def_use::{DefUse, is_pure};
use crate::arrays::Each;
use crate::opt::combine;
use crate::ori::build::int::LUT_AND;
use crate::ori::mods::U32;
use crate::ori::operand::Kind;
use crate::ori::{Function, InstId, Operand, VReg};
use crate::tables::{Mod, Op, Role, value};

/// Definitions that are looked at, one behind the other.
const DEEPEST: u32 = 4;

/// The carry of a sum of words, if it is never set.
pub fn clear_carry(function: &Function, def_use: &DefUse, inst: InstId) -> Option<VReg> {
    let data = &function[inst];
    let carry = function.arg(inst, Role::Pu).as_reg()?;
    let low = data.op == Op::IADD3 && data.mods.get(Mod::X) != value::x::X && function.arg(inst, Role::Pv).is_null();
    let most = |role| most(function, def_use, function.arg(inst, role), DEEPEST);
    (low && is_pure(function, inst) && most(Role::A)? + most(Role::B)? + most(Role::C)? <= u64::from(u32::MAX))
        .then_some(carry)
}

/// Makes a sum that takes a carry that is never set one that takes none. An inverted term stays:
/// the sum that takes no carry has a negated one in its place.
pub fn drop_carry_in(function: &mut Function, inst: InstId) {
    let data = &function[inst];
    if data.op != Op::IADD3 || data.mods.get(Mod::X) != value::x::X {
        return;
    }
    let arg = |role| function.arg(inst, role);
    let never = arg(Role::Pp) == Operand::never() && (arg(Role::Pq).is_null() || arg(Role::Pq) == Operand::never());
    if never && [Role::A, Role::B, Role::C].each(arg).iter().all(|term| *term == term.plain()) {
        function[inst].mods.set(Mod::X, 0);
        function.set_arg(inst, Role::Pp, Operand::NULL);
        function.set_arg(inst, Role::Pq, Operand::NULL);
    }
}

/// The most that a word can be; `None` if an operand is not taken as it is.
fn most(function: &Function, def_use: &DefUse, operand: Operand, depth: u32) -> Option<u64> {
    const ALL: u64 = u32::MAX as u64;
    if operand != operand.plain() {
        return None;
    }
    if let Some(value) = def_use.known(function, operand) {
        return Some(value.into());
    }
    let Kind::Reg(reg) = operand.kind() else { return Some(ALL) };
    let Some(maker) = def_use.def_of(function, reg).filter(|_| depth > 0) else { return Some(ALL) };
    if !is_pure(function, maker) {
        return Some(ALL);
    }
    let arg = |role| function.arg(maker, role);
    let of = |operand| most(function, def_use, operand, depth - 1).unwrap_or(ALL);
    if let Some((high, count)) = combine::shift_right(function, def_use, maker) {
        return Some(of(high).checked_shr(count).unwrap_or(0));
    }
    Some(match function[maker].op {
        Op::LOP3 if is_and(function, def_use, maker) => of(arg(Role::A)).min(of(arg(Role::B))),
        Op::SGXT if function[maker].mods.get(U32.0) == U32.1 => {
            let width = def_use.known(function, arg(Role::B)).unwrap_or(u32::BITS);
            of(arg(Role::A)).min((1u64 << width.min(u32::BITS)) - 1)
        }
        Op::COPY => of(arg(Role::A)),
        _ => ALL,
    })
}

/// Whether an instruction is a logical and of two words.
fn is_and(function: &Function, def_use: &DefUse, inst: InstId) -> bool {
    let table = function.imm_value(function.arg(inst, Role::Lut));
    table == Some(LUT_AND.into()) && def_use.known(function, function.arg(inst, Role::C)) == Some(0)
}
