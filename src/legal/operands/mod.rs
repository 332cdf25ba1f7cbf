//! Operand legalization: rewrites every operand that the target cannot encode.
//!
//! An instruction without an encoding gets its operands commuted, or moved into registers, or
//! another opcode:
//! - An encodable instruction is not touched. A 64-bit integer immediate in a field of one word
//!   does not count as encodable, because ptxas never writes one.
//! - Among the ways that the instruction's recipe (`tables/ori/recipes.ron`) allows, it takes the
//!   one with the fewest moves, then the fewest exchanges, then the one that keeps inline what the
//!   recipe prefers inline.
//! - Moves come directly before the instruction (before all branches if it is one of the branches
//!   that end the block), first that of the guard, then the others in the order of the recipe. A
//!   constant that was recently moved to a register is read from there.
//! - An absent operand stays absent. Moves are unguarded, write fresh registers, and have no other
//!   effect.
//! - A uniform register is written only where all lanes of the warp are converged, and from a
//!   general register only if its value is uniform. An operand for which nothing works stays, and
//!   SetAfterLegalization refuses it with the reason ([`reason`]).
//!
//! `tables/ori/moves.ron` says which opcode moves what; no code here tests for a target.

mod commute;
mod fold_imm_modifiers;
mod moves;
mod select_form;
mod split_offset;
mod uniform;

pub use moves::all as moves_to;
pub use uniform::{Trial, has_uniform_form, moves_out, put_in_order, takes_pair, takes_uniform, uniform_form};

use super::backend::SmBackend;
use crate::analysis::divergence::{Varying, apart_behind};
use crate::analysis::reconvergence::plan;
use crate::ori::cfg::Cfg;
use crate::ori::hash::QuickMap;
use crate::ori::{Block, File, Function, InstId, Kind, Operand};
use crate::tables::Prop;
use crate::tables::ori::{Class, Width};
use std::rc::Rc;

/// Whether the target encodes an instruction as it is, whatever registers are assigned.
pub type Encodes<'a> = &'a dyn Fn(&Function, InstId) -> bool;

/// Legalizes the operands of every instruction.
pub fn run(function: &mut Function, backend: &dyn SmBackend, encodes: Encodes) {
    let encodes = &|function: &Function, inst: InstId| encodes(function, inst) && !is_ambiguous(function, inst);
    let mut legalizer =
        Legalizer { backend, encodes, lanes: None, stand_ins: Vec::new(), held: QuickMap::default(), at: 0 };
    for block in function.layout().to_vec() {
        let wanting = |inst: &InstId| legalizer.wants(function, *inst);
        if let Some(first) = function[block].iter().position(wanting) {
            legalizer.block(function, block, first);
        }
    }
}

/// Why the operands of an instruction could not be legalized; `None` if there is no more specific
/// reason.
pub fn reason(function: &Function, inst: InstId) -> Option<String> {
    let roles = function[inst].op.info().roles.iter().zip(function.args(inst));
    let general = |operand: &Operand| {
        let mut general = false;
        function.for_each_reg(*operand, |reg| general |= function[reg].file == File::R);
        general
    };
    let (role, _) = roles.clone().find(|(role, operand)| role.class == Class::Uniform && general(operand))?;
    Some(format!("its operand {} must be the same in all lanes, and is not known to be", role.role.name()))
}

/// State of the walk over a function.
struct Legalizer<'a> {
    backend: &'a dyn SmBackend,
    encodes: Encodes<'a>,
    /// Divergence analysis, computed on first use.
    lanes: Option<Rc<Varying>>,
    /// Placeholder registers for trials, by file and number of words; no instruction keeps them.
    stand_ins: Vec<(File, usize, Operand)>,
    /// Constants that moves of this block put into registers, by file, words and constant: the
    /// register, and the index of its last use.
    held: QuickMap<(File, usize, Operand), (Operand, usize)>,
    /// Index in the block of the current instruction.
    at: usize,
}

/// Reuse window, in instructions: a constant unused for longer is moved again, so that its register
/// is free in between.
const HELD: usize = 24;

impl Legalizer<'_> {
    /// Whether an instruction is no pseudo-operation and cannot be encoded as it is.
    fn wants(&self, function: &Function, inst: InstId) -> bool {
        !function[inst].op.has(Prop::Pseudo) && !(self.encodes)(function, inst)
    }

    /// Rewrites a block: each instruction after the moves that it needs. The first that is not
    /// encoded as it is stands at index `first`.
    fn block(&mut self, function: &mut Function, block: Block, first: usize) {
        let first_branch = function.first_terminator(block);
        // The block keeps its instructions until the end, because the divergence analysis reads
        // them.
        let insts = function[block].clone();
        let (mut body, mut branches) = (Vec::with_capacity(insts.len() + 4), Vec::new());
        self.held.clear();
        for (at, inst) in insts.into_iter().enumerate() {
            self.at = at;
            let (before, kept) = if at == first || at > first && self.wants(function, inst) {
                self.instruction(function, block, inst)
            } else {
                (Vec::new(), Some(inst))
            };
            body.extend(before);
            if function[inst].op.has(Prop::Clobbers) {
                self.held.clear();
            }
            if at < first_branch { body.extend(kept) } else { branches.extend(kept) }
        }
        body.extend(branches);
        function[block] = body;
    }

    /// The instructions to put before an instruction, and its replacement; `None` if its guard is
    /// constant false.
    fn instruction(&mut self, function: &mut Function, block: Block, inst: InstId) -> (Vec<InstId>, Option<InstId>) {
        if constant_guard(function, inst) == Some(false) && !function[inst].op.has(Prop::Convergent) {
            return (Vec::new(), None);
        }
        if constant_guard(function, inst) == Some(true) {
            function[inst].guard = Operand::NULL;
            if !self.wants(function, inst) {
                return (Vec::new(), Some(inst));
            }
        }
        let recipe = function[inst].op.recipe();
        if recipe.hook.is_some_and(|hook| !self.backend.takes_operands_of(hook)) {
            return (Vec::new(), Some(inst));
        }
        if let Some(mut moved) = self.become_move(function, inst, recipe) {
            let last = moved.pop();
            return (moved, last);
        }
        let mut before = self.split_offsets(function, inst, recipe);
        if self.wants(function, inst) {
            before.extend(self.choose(function, block, inst, recipe).unwrap_or_default());
        }
        (before, Some(inst))
    }

    /// Whether a uniform register may be written before the instruction at hand of a block: lanes
    /// that were apart at its start may have met there.
    fn together(&mut self, function: &Function, block: Block) -> bool {
        let (at, lanes) = (self.at, self.lanes(function));
        !lanes.interleaved.contains(block)
            || !apart_behind(function, &function[block][..at], lanes.entered.contains(block))
    }

    /// Whether every register of an operand is uniform.
    fn is_uniform(&mut self, function: &Function, operand: Operand) -> bool {
        let mut uniform = true;
        function.for_each_reg(operand, |reg| {
            uniform &= function[reg].file == File::UR || !self.lanes(function).regs.contains(reg);
        });
        uniform
    }

    /// Divergence analysis with the reconvergence points that `insert_reconvergence` will make. It
    /// does not know moves that were added later; nothing queries those.
    fn lanes(&mut self, function: &Function) -> &Varying {
        let lanes = |cfg: &Cfg| plan(function, cfg, &cfg.dominators()).varying;
        self.lanes.get_or_insert_with(|| lanes(&Cfg::new(function)))
    }

    /// A register that has held this constant since an earlier instruction of the block, within the
    /// reuse window.
    fn held(&mut self, file: File, words: usize, from: Operand) -> Option<Operand> {
        let at = self.at;
        let (register, asked) = self.held.get_mut(&(file, words, from.plain()))?;
        let recent = at - std::mem::replace(asked, at) <= HELD;
        recent.then_some(*register)
    }

    fn hold(&mut self, file: File, words: usize, from: Operand, to: Operand) {
        if matches!(from.kind(), Kind::Imm(_) | Kind::Zero | Kind::Const { .. }) {
            self.held.insert((file, words, from.plain()), (to, self.at));
        }
    }

    /// A placeholder register or tuple for a trial.
    fn stand_in(&mut self, function: &mut Function, file: File, words: usize) -> Operand {
        if let Some(found) = self.stand_ins.iter().find(|s| (s.0, s.1) == (file, words)) {
            return found.2;
        }
        let operand = fresh(function, file, words);
        self.stand_ins.push((file, words, operand));
        operand
    }
}

/// Whether a 64-bit integer operand is an immediate in a field of one word; how the hardware
/// extends it is unknown.
fn is_ambiguous(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    let wide = op.info().roles.iter().zip(function.args(inst)).filter(|(role, _)| role.width == Width::Words(2));
    !op.has(Prop::Fp64Pipe) && wide.map(|(_, operand)| operand.kind()).any(|kind| matches!(kind, Kind::Imm(_)))
}

/// A fresh register, or a tuple of several.
fn fresh(function: &mut Function, file: File, words: usize) -> Operand {
    match words {
        1 => Operand::reg(function.new_reg(file)),
        _ => Operand::vector(function.new_vector(file, words)),
    }
}

/// The value of a constant guard; `None` if there is no guard or it is in a register.
fn constant_guard(function: &Function, inst: InstId) -> Option<bool> {
    let guard = function[inst].guard;
    (guard.kind() == Kind::Zero).then(|| !guard.not())
}

/// Copies guard, line and memory ordering from an instruction to its replacement.
fn replace(function: &mut Function, old: InstId, new: InstId) {
    let from = function[old];
    let to = &mut function[new];
    (to.guard, to.line, to.ordered) = (from.guard, from.line, from.ordered);
}

/// Whether an instruction has exactly one destination and one source.
fn is_whole(function: &Function, inst: InstId) -> bool {
    function.args(inst).iter().filter(|operand| !operand.is_null()).count() == 2
}
