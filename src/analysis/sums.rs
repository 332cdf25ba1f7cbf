//! Sums: what an IADD3 without carries adds.

use crate::analysis::def_use::DefUse;
use crate::ori::{Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};
use smallvec::SmallVec;

/// Whether an IADD3 has neither carry-in nor carry-out.
pub fn is_plain_sum(function: &Function, inst: InstId) -> bool {
    let none = |role| function.arg(inst, role).is_null();
    function[inst].op == Op::IADD3
        && function[inst].mods.get(Mod::X) != value::x::X
        && [Role::Pu, Role::Pv, Role::Pp, Role::Pq].into_iter().all(none)
}

/// The registers that an IADD3 adds, with their signs, and the sum of all constants.
pub fn terms(function: &Function, def_use: &DefUse, inst: InstId) -> Option<(SmallVec<[Operand; 4]>, u32)> {
    let (mut terms, mut bias) = (SmallVec::new(), 0u32);
    for role in [Role::A, Role::B, Role::C] {
        let operand = function.arg(inst, role);
        let value = def_use.known(function, operand.plain());
        match value {
            Some(v) if operand.neg() => bias = bias.wrapping_sub(v),
            Some(v) => bias = bias.wrapping_add(v),
            None => terms.push(operand.as_reg().map(|_| operand)?),
        }
        let sign = if operand.neg() { operand.plain().negated() } else { operand.plain() };
        if operand != sign {
            return None;
        }
    }
    Some((terms, bias))
}
