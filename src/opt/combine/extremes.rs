//! The least or greatest of three: a minimum or maximum of another, or of a sum, is one operation
//! where the target has it, as ptxas 13.0.88 has it.
//!
//! Only what is made in the same block and read nowhere else is taken in. The result is the same
//! bits: of numbers the order does not matter, NaN is left out or kept by all alike, and sums wrap.

use super::fuse::{all_free, is_plain_sum};
use crate::analysis::def_use::{DefUse, Fits, is_pure, rewrite};
use crate::arrays::Each;
use crate::ori::{Block, Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};

/// A minimum or maximum, what it takes in, and what becomes of both.
const FUSED: [(Op, Op, Op); 3] =
    [(Op::FMNMX, Op::FMNMX, Op::FMNMX3), (Op::VIMNMX, Op::VIMNMX, Op::VIMNMX3), (Op::VIMNMX, Op::IADD3, Op::VIADDMNMX)];

/// Takes one operation into the minimum or maximum that reads it; whether it did.
pub fn fuse(function: &mut Function, def_use: &mut DefUse, (block, at): (Block, usize), fits: Fits) -> bool {
    let inst = function[block][at];
    if !FUSED.iter().any(|(outer, ..)| *outer == function[inst].op) || !is_bare(function, inst) {
        return false;
    }
    let [a, b] = [Role::A, Role::B].each(|role| function.arg(inst, role));
    for (taken, other) in [(b, a), (a, b)] {
        let Some(reg) = taken.as_reg().filter(|_| taken == taken.plain()) else { continue };
        let maker = def_use.single_use_def(function, reg);
        let Some(maker) = maker.filter(|maker| function[block][..at].contains(maker)) else { continue };
        let (op, of) = (function[inst].op, function[maker].op);
        let found = FUSED.iter().find(|(outer, inner, _)| *outer == op && *inner == of);
        let Some((.., fused)) = found.filter(|_| agree(function, inst, maker)) else { continue };
        let [x, y] = [Role::A, Role::B].each(|role| function.arg(maker, role));
        let sum = of == Op::IADD3;
        // Only the second term of a sum may have a minus sign.
        let (x, y) = if sum && x.neg() { (y, x) } else { (x, y) };
        if !all_free(function, &[x, y, other]) || sum && x.neg() {
            continue;
        }
        // An immediate stands in the middle, or at the end of a sum.
        let [p, q, r] = if !sum && function.word_value(other).is_some() { [x, other, y] } else { [x, y, other] };
        let (before, old) = (DefUse::reads(function, inst), function[inst]);
        let [d, which] = [Role::D, Role::Pp].each(|role| function.arg(inst, role));
        let args = [(Role::D, d), (Role::A, p), (Role::B, q), (Role::C, r), (Role::Pp, which)];
        rewrite(function, inst, *fused, &args);
        function[inst].mods = old.mods;
        if fits(function, inst) {
            def_use.update(function, inst, &before);
            return true;
        }
        function[inst] = old;
    }
    false
}

/// Whether an operation gives nothing but the least or greatest of its operands.
fn is_bare(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let none = |role| data.op.role_index(role).is_none() || function.arg(inst, role).is_null();
    let constant = |which: Operand| which == Operand::always() || which == Operand::never();
    is_pure(function, inst)
        && none(Role::Pu)
        && none(Role::Pv)
        && constant(function.arg(inst, Role::Pp))
        && data.mods.get(Mod::Xorsign) == value::xorsign::NONE
}

/// Whether an operation may be taken into a minimum or maximum.
fn agree(function: &Function, inst: InstId, maker: InstId) -> bool {
    let (outer, inner) = (&function[inst], &function[maker]);
    if inner.op == Op::IADD3 {
        let kind = outer.mods.get(Mod::Vtype);
        let words = kind == value::vtype::NONE || kind == value::vtype::U32;
        return words && is_plain_sum(function, maker) && function.arg(maker, Role::C) == Operand::zero();
    }
    let which = |inst| function.arg(inst, Role::Pp);
    let whole = is_bare(function, maker) && inner.mods.get(Mod::Relu) == value::relu::NONE;
    whole && outer.mods == inner.mods && which(inst) == which(maker)
}
