//! Removes masks and byte moves that change nothing that is read (in GeneralOptimize): LLVM's
//! demanded bits, on words.
//!
//! Two steps, each with facts of its own. The first knows which bits of a value are always clear or
//! set: what it removes was the identity or a constant, so every register keeps its value. The
//! second knows which bits of a value are read: what it removes leaves those as they were, and its
//! facts rest on constants alone, not on bits that a mask removed in the same step would clear.
//! Readers of what was removed read its source; DCE removes the rest.

pub mod demand;
mod known;

use super::copy_propagation::{free_pair, rename};
use crate::analysis::PassCx;
use crate::analysis::bit_flow::{CHOICE, bytes, lut};
use crate::analysis::def_use::{is_pure, rewrite};
use crate::arrays::Each;
use crate::ori::{File, Function, InstId, Operand, VReg, table};
use crate::tables::{Op, Role};
use cranelift_entity::SecondaryMap;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let function = &mut *cx.function;
    let insts: Vec<InstId> = cfg.rpo.iter().flat_map(|block| function[*block].iter().copied()).collect();
    if !insts.iter().any(|inst| is_candidate(function, *inst)) {
        return;
    }
    let known = known::Known::new(function, &insts);
    fold(function, &insts, &known);
    remove(function, &insts, |function, inst, operand| {
        let zeros = operand.as_reg().map_or(0, |reg| known.of(reg).zeros);
        let kept = passed(function, inst, operand);
        let clear = cleared(function, inst);
        // A bit stays as it is, or becomes clear where it is clear already.
        kept | zeros & clear == u32::MAX
    });
    let demand = demand::run(function, &insts);
    remove(function, &insts, |function, inst, operand| {
        let read = function.arg(inst, Role::D).as_reg().map_or(u32::MAX, |reg| demand[reg]);
        read & !passed(function, inst, operand) == 0
    });
}

/// Makes constants of candidates of which all bits are known.
fn fold(function: &mut Function, insts: &[InstId], known: &known::Known) {
    for inst in insts.iter().copied() {
        let d = function.arg(inst, Role::D);
        let value = d.as_reg().and_then(|reg| known.of(reg).value());
        if let Some(value) = value.filter(|_| is_candidate(function, inst)) {
            let source = if value == 0 { Operand::zero() } else { function.imm(value.into()) };
            rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, source)]);
        }
    }
}

/// Makes readers of what may go read the operand that it passes on.
fn remove(function: &mut Function, insts: &[InstId], may_go: impl Fn(&Function, InstId, Operand) -> bool) {
    let mut source: SecondaryMap<VReg, Option<VReg>> = table(function.regs().len());
    let mut any = false;
    for inst in insts.iter().filter(|inst| is_candidate(function, **inst)) {
        let Some(d) = function.arg(*inst, Role::D).as_reg() else { continue };
        let watched = function.watched().is_some_and(|watched| watched.parts[d].is_some());
        for role in [Role::A, Role::B, Role::C] {
            let operand = function.arg(*inst, role);
            let Some(reg) = operand.as_reg().filter(|_| operand == operand.plain()) else { continue };
            if !watched && free_pair(function, d, reg) && may_go(function, *inst, operand) {
                (source[d], any) = (Some(reg), true);
                break;
            }
        }
    }
    if any {
        insts.iter().for_each(|inst| rename(function, &source, *inst));
    }
}

/// Whether an instruction may pass one of its operands on.
fn is_candidate(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    match data.op {
        Op::LOP3 => is_pure(function, inst) && function.arg(inst, Role::Pu).is_null() && in_words(function, inst),
        Op::PRMT => is_pure(function, inst) && in_words(function, inst),
        _ => false,
    }
}

/// Whether the result is a word of a general register.
fn in_words(function: &Function, inst: InstId) -> bool {
    function.arg(inst, Role::D).as_reg().is_some_and(|reg| function[reg].file == File::R)
}

/// The bits of an operand that a candidate passes on in their place.
fn passed(function: &Function, inst: InstId, operand: Operand) -> u32 {
    match function[inst].op {
        Op::LOP3 => rows(function, inst, |row, result| {
            let at = [Role::A, Role::B, Role::C].into_iter().position(|role| function.arg(inst, role) == operand);
            at.is_none_or(|at| row >> (2 - at) & 1 == result)
        }),
        _ => bytes(function, inst).map_or(0, |choices| {
            let of = |at: u32| if function.arg(inst, Role::A) == operand { at } else { at + CHOICE / 2 };
            mask_of(|at| choices[at as usize] == of(at))
        }),
    }
}

/// The bits that a candidate clears.
fn cleared(function: &Function, inst: InstId) -> u32 {
    match function[inst].op {
        Op::LOP3 => rows(function, inst, |_, result| result == 0),
        _ => bytes(function, inst).map_or(0, |choices| {
            let zero = |role| function.word_value(function.arg(inst, role)) == Some(0);
            mask_of(|at| zero(if choices[at as usize] % CHOICE < CHOICE / 2 { Role::A } else { Role::C }))
        }),
    }
}

/// The bits at which all rows of the truth table that constants leave possible have a property.
fn rows(function: &Function, inst: InstId, holds: impl Fn(u32, u32) -> bool) -> u32 {
    let Some(lut) = lut(function, inst) else { return 0 };
    let inputs = [Role::A, Role::B, Role::C].each(|role| function.word_value(function.arg(inst, role)));
    let mut all = u32::MAX;
    for row in (0..8).filter(|row| !holds(*row, lut >> row & 1)) {
        let possible = inputs.iter().enumerate().fold(u32::MAX, |possible, (at, value)| match value {
            Some(value) if row >> (2 - at) & 1 == 1 => possible & value,
            Some(value) => possible & !value,
            None => possible,
        });
        all &= !possible;
    }
    all
}

/// A word with the bytes set for which something holds.
fn mask_of(holds: impl Fn(u32) -> bool) -> u32 {
    (0..4).filter(|at| holds(*at)).map(|at| 0xff << (8 * at)).sum()
}
