//! Compiles comparisons and selections (PTX ISA 9.7.6 and 9.7.7).
//!
//! An ordered comparison with NaN is false, an unordered one is true.

use super::int::{one, two};
use super::logic::combine;
use super::program::Alu;
use super::values::{each, elements, format, is_integer, mask, number};
use crate::arrays::Each;
use crate::ptx::ast::Instruction;
use crate::sim::ops::format::{F32, Format};
use crate::sim::ops::real::{Relation, compare as relate};
use crate::tables::ptx::{Compare, Op, ScalarType};
use std::cmp::Ordering;

/// The function that a comparison or selection computes, or `None` for other instructions.
pub fn compile(i: &Instruction) -> Option<Alu> {
    let ty = *i.types.first()?;
    match i.op {
        Op::Setp => setp(i, ty),
        Op::Set => set(i, ty, *i.types.get(1)?),
        Op::Selp => one(|s| if s[2] != 0 { s[0] } else { s[1] }),
        Op::Slct => slct(i, *i.types.get(1)?),
        _ => None,
    }
}

/// The comparison of two elements of the type: takes their bits, returns the verdict.
fn test(i: &Instruction, ty: ScalarType) -> Option<impl Fn(u64, u64) -> bool + Copy + Send + Sync + 'static> {
    let compare = i.mods.compare?;
    let ftz = i.mods.ftz;
    let float = format(ty);
    if float.is_none() && !is_integer(ty) {
        return None;
    }
    Some(move |a: u64, b: u64| match float {
        Some(f) => floats(compare, relate(f, a, b, ftz)),
        None => integers(compare, number(ty, a).cmp(&number(ty, b))),
    })
}

/// Whether the ordering of two integers satisfies the comparison.
pub fn integers(compare: Compare, order: Ordering) -> bool {
    match compare {
        Compare::Eq => order.is_eq(),
        Compare::Ne => order.is_ne(),
        Compare::Lt | Compare::Lo => order.is_lt(),
        Compare::Le | Compare::Ls => order.is_le(),
        Compare::Gt | Compare::Hi => order.is_gt(),
        Compare::Ge | Compare::Hs => order.is_ge(),
        _ => false,
    }
}

fn floats(compare: Compare, relation: Relation) -> bool {
    let unordered = relation == Relation::Unordered;
    match compare {
        Compare::Eq => relation == Relation::Equal,
        Compare::Ne => !unordered && relation != Relation::Equal,
        Compare::Lt => relation == Relation::Less,
        Compare::Le => matches!(relation, Relation::Less | Relation::Equal),
        Compare::Gt => relation == Relation::Greater,
        Compare::Ge => matches!(relation, Relation::Greater | Relation::Equal),
        Compare::Equ => unordered || relation == Relation::Equal,
        Compare::Neu => relation != Relation::Equal,
        Compare::Ltu => unordered || relation == Relation::Less,
        Compare::Leu => relation != Relation::Greater,
        Compare::Gtu => unordered || relation == Relation::Greater,
        Compare::Geu => relation != Relation::Less,
        Compare::Num => !unordered,
        Compare::Nan => unordered,
        Compare::Lo | Compare::Ls | Compare::Hi | Compare::Hs => false,
    }
}

/// `setp`. The second predicate is the negated comparison; for packed operands it is the comparison
/// of the upper elements.
fn setp(i: &Instruction, ty: ScalarType) -> Option<Alu> {
    let test = test(i, ty)?;
    let op = i.mods.bool_op;
    if elements(ty) == 2 {
        let half = move |s: &[u64; 6], at: u32| test(s[0] >> at & 0xffff, s[1] >> at & 0xffff);
        return two(move |s| [0, 16].each(|at| combine(op, half(s, at), s[2] != 0).into()));
    }
    two(move |s| {
        let verdict = test(s[0], s[1]);
        [verdict, !verdict].each(|v| combine(op, v, s[2] != 0).into())
    })
}

/// `set`: true is 1.0 in a float type and all ones in an integer type.
fn set(i: &Instruction, to: ScalarType, ty: ScalarType) -> Option<Alu> {
    let test = test(i, ty)?;
    let op = i.mods.bool_op;
    // Each compared element gets its share of the result, even if the result is an integer.
    let (count, bits) = (elements(ty), ty.bits() / elements(ty));
    let truth = match format(to) {
        Some(f) => one_of(f),
        None => mask(to.bits() / count),
    };
    one(move |s| {
        each(to.bits() / count, count, |e| {
            let at = bits * e as u32;
            let verdict = test(s[0] >> at & mask(bits), s[1] >> at & mask(bits));
            if combine(op, verdict, s[2] != 0) { truth } else { 0 }
        })
    })
}

/// The bits of 1.0 in the format.
pub fn one_of(f: Format) -> u64 {
    ((1 << (f.exp - 1)) - 1) << f.mant
}

/// Selects the first value if the third is at least zero. -0 counts as zero, NaN does not.
fn slct(i: &Instruction, by: ScalarType) -> Option<Alu> {
    let ftz = i.mods.ftz;
    one(move |s| {
        let first = match format(by) {
            Some(_) => matches!(relate(F32, s[2], 0, ftz), Relation::Greater | Relation::Equal),
            None => number(by, s[2]) >= 0,
        };
        if first { s[0] } else { s[1] }
    })
}
