//! Fuses two operations into one instruction: three-input sums, three-input logic, multiply-add.
//!
//! An operation is fused only into its single use, so each step saves an instruction. The results
//! are the same bits.

use super::shift;
use crate::analysis::def_use::{DefUse, Fits, is_free, rewrite};
pub use crate::analysis::sums::{is_plain_sum, terms};
use crate::arrays::Each;
use crate::ori::operand::Kind;
use crate::ori::{Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};
use smallvec::SmallVec;

/// Fuses the definition of one source into the instruction; returns whether it did.
pub fn once(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    match function[inst].op {
        Op::IADD3 if is_plain_sum(function, inst) => {
            funnel(function, def_use, inst)
                || sum(function, def_use, inst, fits)
                || product(function, def_use, inst, fits)
                || shifted(function, def_use, inst, fits)
        }
        Op::LOP3 => funnel(function, def_use, inst) || logic(function, def_use, inst, fits),
        Op::F2I | Op::F2I_X => rounded(function, def_use, inst, fits),
        _ => false,
    }
}

/// A float that was rounded to an integral one and becomes an integer is rounded by the conversion.
fn rounded(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    let source = function.arg(inst, Role::A);
    let whole = source.as_reg().or_else(|| Some(*function.vector_regs(source.as_vector()?).first()?));
    let Some(maker) = whole.filter(|_| source == source.plain()).and_then(|reg| def_use.def_of(function, reg)) else {
        return false;
    };
    let (data, made) = (function[inst], function[maker]);
    let formats = [made.mods.get(Mod::Src), made.mods.get(Mod::Dst), data.mods.get(Mod::Src)];
    let same = match made.op {
        Op::FRND => formats == [0; 3],
        Op::FRND_X => formats == [0, value::dst::F64, value::src::F64],
        _ => false,
    };
    if !same || made.mods.get(Mod::Sat) != 0 {
        return false;
    }
    let from = function.arg(maker, Role::A);
    [Mod::Round, Mod::Ftz].into_iter().for_each(|kind| function[inst].mods.set(kind, made.mods.get(kind)));
    function.set_arg(inst, Role::A, from);
    let fitting = fits(function, inst);
    if !fitting {
        function.set_arg(inst, Role::A, source);
        function[inst].mods = data.mods;
    }
    fitting
}

/// Sets the operands of a sum: registers first and last, the constant in the middle, where
/// immediates can be encoded.
fn set_terms(function: &mut Function, inst: InstId, terms: &[Operand], bias: u32) -> bool {
    let known = if bias == 0 { None } else { Some(function.imm(bias.into())) };
    let (a, b, c) = match (terms, known) {
        ([a], Some(known)) => (*a, known, Operand::zero()),
        ([a, c], Some(known)) => (*a, known, *c),
        ([a], None) => (*a, Operand::zero(), Operand::zero()),
        ([a, b], None) => (*a, *b, Operand::zero()),
        ([a, b, c], None) => (*a, *b, *c),
        _ => return false,
    };
    // The first two operands may not both have a minus sign.
    let (a, c) = if a.neg() && b.neg() { (c, a) } else { (a, c) };
    for (role, operand) in [(Role::A, a), (Role::B, b), (Role::C, c)] {
        function.set_arg(inst, role, operand);
    }
    true
}

/// (a + b) + c
fn sum(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    let Some((outer, bias)) = terms(function, def_use, inst) else { return false };
    for (i, term) in outer.iter().enumerate() {
        let Some(reg) = term.as_reg() else { continue };
        let Some(inner) = def_use.single_use_def(function, reg).filter(|m| is_plain_sum(function, *m)) else {
            continue;
        };
        let Some((more, add)) = terms(function, def_use, inner).filter(|t| all_free(function, &t.0)) else { continue };
        let mut all: SmallVec<[Operand; 8]> =
            outer.iter().copied().enumerate().filter(|o| o.0 != i).map(|o| o.1).collect();
        all.extend(more.iter().map(|o| if term.neg() { o.negated() } else { *o }));
        let add = if term.neg() { bias.wrapping_sub(add) } else { bias.wrapping_add(add) };
        if all.len() + usize::from(add != 0) > 3 || all.is_empty() {
            continue;
        }
        let old = [Role::A, Role::B, Role::C].each(|role| (role, function.arg(inst, role)));
        if set_terms(function, inst, &all, add) && fits(function, inst) {
            return true;
        }
        old.into_iter().for_each(|(role, operand)| function.set_arg(inst, role, operand));
    }
    false
}

pub fn all_free(function: &Function, operands: &[Operand]) -> bool {
    operands.iter().filter_map(|o| o.as_reg()).all(|r| is_free(function, r))
}

/// a * b + c, where the product may also be a left shift.
fn product(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    let (a, b, c) = (function.arg(inst, Role::A), function.arg(inst, Role::B), function.arg(inst, Role::C));
    if c != Operand::zero() || a != a.plain() || b != b.plain() {
        return false;
    }
    for (factor, other) in [(a, b), (b, a)] {
        let (Some(reg), Some(addend)) = (factor.as_reg(), other.as_reg()) else { continue };
        let Some(inner) = def_use.single_use_def(function, reg).filter(|_| addend != reg) else { continue };
        let Some((x, y)) = factors(function, def_use, inner) else { continue };
        if !all_free(function, &[x, y]) {
            continue;
        }
        let (d, old) = (function.arg(inst, Role::D), function[inst]);
        rewrite(function, inst, Op::IMAD, &[(Role::D, d), (Role::A, x), (Role::B, y), (Role::C, other)]);
        if fits(function, inst) {
            return true;
        }
        function[inst] = old;
    }
    false
}

/// (a >> n) + b, as the high word of a shifted to the left, plus b.
fn shifted(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    let (a, b, c) = (function.arg(inst, Role::A), function.arg(inst, Role::B), function.arg(inst, Role::C));
    if c != Operand::zero() || a != a.plain() || b != b.plain() {
        return false;
    }
    for (term, other) in [(a, b), (b, a)] {
        let Some(maker) = term.as_reg().and_then(|reg| def_use.single_use_def(function, reg)) else { continue };
        let Some((source, count)) = shift::right(function, def_use, maker) else { continue };
        let free = source.as_reg().is_some_and(|reg| source == source.plain() && is_free(function, reg));
        if !free || term == other || !(1..u32::BITS).contains(&count) {
            continue;
        }
        let (d, old) = (function.arg(inst, Role::D), function[inst]);
        let places = function.imm((u32::BITS - count).into());
        let args = [(Role::D, d), (Role::A, source), (Role::B, other), (Role::C, c), (Role::Sh, places)];
        rewrite(function, inst, Op::LEA, &args);
        function[inst].mods.set(Mod::Hi, value::hi::HI);
        if fits(function, inst) {
            return true;
        }
        function[inst] = old;
    }
    false
}

/// The factors of a plain 32-bit product.
fn factors(function: &mut Function, def_use: &DefUse, inst: InstId) -> Option<(Operand, Operand)> {
    let data = function[inst];
    let (a, b, c) = (function.arg(inst, Role::A), function.arg(inst, Role::B), function.arg(inst, Role::C));
    if c != Operand::zero() || a.as_reg().is_none() || a != a.plain() || b != b.plain() {
        return None;
    }
    match data.op {
        // The low word of a product does not depend on signedness.
        Op::IMAD if data.mods.get(Mod::X) != value::x::X && function.arg(inst, Role::Pu).is_null() => Some((a, b)),
        Op::SHF if data.mods.get(Mod::Dir) == value::dir::L && data.mods.get(Mod::Hi) == 0 => {
            let places = def_use.known(function, b).filter(|n| *n < 32 && data.mods.get(Mod::Wrap) == 0)?;
            Some((a, function.imm(1 << places)))
        }
        _ => None,
    }
}

/// Logic of logic as one LOP3.
fn logic(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    let Some((inputs, lut)) = inputs(function, inst) else { return false };
    for (i, input) in inputs.iter().enumerate() {
        let Some(reg) = input.as_reg() else { continue };
        let Some(inner) = def_use.single_use_def(function, reg).filter(|m| function[*m].op == Op::LOP3) else {
            continue;
        };
        if !function.arg(inner, Role::Pu).is_null() {
            continue;
        }
        let Some((more, table)) = self::inputs(function, inner).filter(|m| all_free(function, &m.0)) else { continue };
        let mut leaves: SmallVec<[Operand; 8]> = SmallVec::new();
        let others = inputs.iter().enumerate().filter(|o| o.0 != i).map(|o| o.1);
        for leaf in others.chain(&more).filter(|o| **o != Operand::zero()) {
            if !leaves.contains(leaf) {
                leaves.push(*leaf);
            }
        }
        // An immediate must be in the middle.
        crate::sorted::by_key(&mut leaves, |o| o.as_reg().is_none());
        let immediates = leaves.iter().filter(|o| o.as_reg().is_none()).count();
        if leaves.len() > 3 || immediates > 1 || leaves.is_empty() {
            continue;
        }
        leaves.resize(3, Operand::zero());
        if immediates == 1 {
            let at = leaves.iter().position(|o| function.imm_value(*o).is_some()).unwrap_or(1);
            leaves.swap(at, 1);
        }
        let combined = truth(&leaves, &inputs, lut, Some((i, &more, table)));
        let old = [Role::A, Role::B, Role::C, Role::Lut].each(|role| (role, function.arg(inst, role)));
        let combined = function.imm(combined);
        let new = [(Role::A, leaves[0]), (Role::B, leaves[1]), (Role::C, leaves[2]), (Role::Lut, combined)];
        new.into_iter().for_each(|(role, operand)| function.set_arg(inst, role, operand));
        if fits(function, inst) {
            return true;
        }
        old.into_iter().for_each(|(role, operand)| function.set_arg(inst, role, operand));
    }
    false
}

/// Two shifts whose results share no bits, added or combined by a logical operation.
fn funnel(function: &mut Function, def_use: &DefUse, inst: InstId) -> bool {
    let parts = [Role::A, Role::B, Role::C].each(|role| function.arg(inst, role));
    let given: SmallVec<[Operand; 4]> = parts.into_iter().filter(|o| *o != Operand::zero()).collect();
    let [x, y] = given[..] else { return false };
    let joins = match (function[inst].op, inputs(function, inst)) {
        (Op::LOP3, Some((inputs, lut))) if function.arg(inst, Role::Pu).is_null() => {
            let table = truth(&[x, y, Operand::zero()], &inputs, lut, None);
            // Rows 0, 2, 4, 6 of the table: neither, y, x, both.
            table & 0b01_0101 == 0b01_0100
        }
        (op, _) => op == Op::IADD3,
    };
    joins && x != y && shift::funnel(function, def_use, inst, [x, y])
}

/// The source that a LOP3 returns unchanged, or zero.
pub fn one_input(function: &Function, inst: InstId) -> Option<Operand> {
    let (inputs, lut) = inputs(function, inst)?;
    let mut given = inputs.into_iter().filter(|o| *o != Operand::zero());
    let leaf = given.next().unwrap_or(Operand::zero());
    if given.any(|other| other != leaf) || !function.arg(inst, Role::Pu).is_null() {
        return None;
    }
    let table = truth(&[leaf, Operand::zero(), Operand::zero()], &inputs, lut, None);
    match (table & 1, table >> 4 & 1) {
        (0, 0) => Some(Operand::zero()),
        (0, 1) => Some(leaf),
        _ => None,
    }
}

/// Inputs and truth table of a LOP3 without a predicate input.
fn inputs(function: &Function, inst: InstId) -> Option<([Operand; 3], u64)> {
    let inputs = [Role::A, Role::B, Role::C].each(|role| function.arg(inst, role));
    let plain = |o: &Operand| *o == o.plain() && matches!(o.kind(), Kind::Reg(_) | Kind::Imm(_) | Kind::Zero);
    let pp = function.arg(inst, Role::Pp);
    let alone = pp.is_null() || pp == Operand::never();
    let lut = function.imm_value(function.arg(inst, Role::Lut))?;
    (alone && inputs.iter().all(plain)).then_some((inputs, lut))
}

/// The truth table over three leaves of a table over inputs, one of which may itself be a table.
fn truth(leaves: &[Operand], inputs: &[Operand; 3], lut: u64, inner: Option<(usize, &[Operand; 3], u64)>) -> u64 {
    let bit = |row: u64, operand: Operand| {
        let at = leaves.iter().position(|l| *l == operand && operand != Operand::zero());
        at.map_or(0, |at| row >> (2 - at) & 1)
    };
    let look = |row: u64, inputs: &[Operand; 3], lut: u64, known: Option<(usize, u64)>| {
        let index = inputs.iter().enumerate().fold(0, |index, (i, operand)| {
            let value = known.filter(|k| k.0 == i).map_or_else(|| bit(row, *operand), |k| k.1);
            index << 1 | value
        });
        lut >> index & 1
    };
    (0..8).fold(0, |table, row| {
        let known = inner.map(|(i, more, table)| (i, look(row, more, table, None)));
        table | look(row, inputs, lut, known) << row
    })
}
