//! The operand legalizer: every operand of an instruction becomes one that the target's encoding takes.
//!
//! Input: a function whose operations the target has, and whether the target encodes an instruction as it stands. Output: the same values; an
//! instruction that was not encoded has its operands exchanged, or in registers that moves in front of it fill, or became another opcode.
//! Guarantees:
//! - an instruction that is encoded is not touched; an integer of two words does not count as encoded by a field of one, which the
//!   incumbent never writes;
//! - of all ways that the instruction's recipe (`tables/ori/recipes.ron`) allows, the one with the fewest moves is taken, and of these the
//!   one that exchanges least and leaves inline what the recipe tries to leave there;
//! - the guard is first, then the operands in the order of the recipe; moves stand in that order directly before the instruction, and before the
//!   branches that end its block; a constant that stands in a register since shortly before is read from there;
//! - an absent operand stays absent; moves are not guarded, write fresh registers, and have no effect but these;
//! - a uniform register is only written where all lanes of the warp are together, and from a general register only where that is the same in all
//!   of them; what cannot be done stays as it is, for SetAfterLegalization to refuse with the reason ([`reason`]).
//!
//! Which opcode moves what is `tables/ori/moves.ron`; nothing here asks for a target.

mod choose;
mod exchange;
mod moves;
mod number;
mod offset;

use super::backend::SmBackend;
use crate::ori::cfg::Cfg;
use crate::ori::hash::QuickMap;
use crate::ori::varying::{Varying, analyse};
use crate::ori::{Block, File, Function, InstId, Kind, Operand};
use crate::tables::Prop;
use crate::tables::ori::{Class, Width};

/// Whether the target encodes an instruction as it stands, whatever its registers become.
pub type Encodes<'a> = &'a dyn Fn(&Function, InstId) -> bool;

/// Legalizes the operands of every instruction.
pub fn run(function: &mut Function, backend: &dyn SmBackend, encodes: Encodes) {
    let encodes = &|function: &Function, inst: InstId| encodes(function, inst) && !is_ambiguous(function, inst);
    let mut legalizer =
        Legalizer { backend, encodes, lanes: None, stand_ins: Vec::new(), held: QuickMap::default(), at: 0 };
    for block in function.layout.clone() {
        let wanting = |inst: &InstId| legalizer.wants(function, *inst);
        if function.blocks[block].iter().any(wanting) {
            legalizer.block(function, block);
        }
    }
}

/// Why an operand of an instruction stays as no encoding takes it; `None` where there is no more to say.
pub fn reason(function: &Function, inst: InstId) -> Option<String> {
    let roles = function.insts[inst].op.info().roles.iter().zip(function.args(inst));
    let general = |operand: &Operand| {
        let mut general = false;
        function.for_each_reg(*operand, |reg| general |= function.regs[reg].file == File::R);
        general
    };
    let (role, _) = roles.clone().find(|(role, operand)| role.class == Class::Uniform && general(operand))?;
    Some(format!("its operand {} must be the same in all lanes, and is not known to be", role.role.name()))
}

/// Walk over a function.
struct Legalizer<'a> {
    backend: &'a dyn SmBackend,
    encodes: Encodes<'a>,
    /// Which values are the same in all lanes and where lanes are together, once somebody has asked.
    lanes: Option<Varying>,
    /// Registers that stand for fresh ones while ways are tried, by file and number of words; in no instruction afterwards.
    stand_ins: Vec<(File, usize, Operand)>,
    /// Constants that moves of this block brought into registers, by file, words and constant: the register, and where it was last asked for.
    held: QuickMap<(File, usize, Operand), (Operand, usize)>,
    /// Place in the block of the instruction being looked at.
    at: usize,
}

/// Instructions after which a constant that nobody asked for is moved again: its register has been free in between.
const HELD: usize = 24;

impl Legalizer<'_> {
    /// Whether an instruction is of the program and is not encoded as it stands.
    fn wants(&self, function: &Function, inst: InstId) -> bool {
        !function.insts[inst].op.has(Prop::Pseudo) && !(self.encodes)(function, inst)
    }

    /// Rewrites a block: instructions in order, each behind the moves that it needs.
    fn block(&mut self, function: &mut Function, block: Block) {
        let first_branch = function.first_terminator(block);
        // The block stays as it was until it is done: who asks which lanes agree has to see it.
        let insts = function.blocks[block].clone();
        let (mut body, mut branches) = (Vec::with_capacity(insts.len() + 4), Vec::new());
        self.held.clear();
        for (at, inst) in insts.into_iter().enumerate() {
            self.at = at;
            let (before, kept) = if self.wants(function, inst) {
                self.instruction(function, block, inst)
            } else {
                (Vec::new(), Some(inst))
            };
            body.extend(before);
            if function.insts[inst].op.has(Prop::Clobbers) {
                self.held.clear();
            }
            if at < first_branch { body.extend(kept) } else { branches.extend(kept) }
        }
        body.extend(branches);
        function.blocks[block] = body;
    }

    /// What stands before one instruction, and what becomes of it: nothing where its guard never holds.
    fn instruction(&mut self, function: &mut Function, block: Block, inst: InstId) -> (Vec<InstId>, Option<InstId>) {
        if constant_guard(function, inst) == Some(false) && !function.insts[inst].op.has(Prop::Convergent) {
            return (Vec::new(), None);
        }
        if constant_guard(function, inst) == Some(true) {
            function.insts[inst].guard = Operand::NULL;
            if !self.wants(function, inst) {
                return (Vec::new(), Some(inst));
            }
        }
        let recipe = function.insts[inst].op.recipe();
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

    /// Whether all lanes of a warp are together in a block.
    fn together(&mut self, function: &Function, block: Block) -> bool {
        !self.lanes(function).divergent.contains(block)
    }

    /// Whether every register of an operand is the same in all lanes.
    fn is_uniform(&mut self, function: &Function, operand: Operand) -> bool {
        let mut uniform = true;
        function.for_each_reg(operand, |reg| {
            uniform &= function.regs[reg].file == File::UR || !self.lanes(function).regs.contains(reg);
        });
        uniform
    }

    /// The cautious answer: lanes that part meet nowhere. Moves made since then are not in it, and nobody asks for them.
    fn lanes(&mut self, function: &Function) -> &Varying {
        self.lanes.get_or_insert_with(|| analyse(function, &Cfg::new(function), |_| None))
    }

    /// A register that holds a constant since an earlier instruction of the block, if that was not long ago.
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

    /// A register or a vector for a trial.
    fn stand_in(&mut self, function: &mut Function, file: File, words: usize) -> Operand {
        if let Some(found) = self.stand_ins.iter().find(|s| (s.0, s.1) == (file, words)) {
            return found.2;
        }
        let operand = fresh(function, file, words);
        self.stand_ins.push((file, words, operand));
        operand
    }
}

/// Whether an integer of two words stands in a field of one: nobody has seen what the field's upper word is.
fn is_ambiguous(function: &Function, inst: InstId) -> bool {
    let op = function.insts[inst].op;
    let wide = op.info().roles.iter().zip(function.args(inst)).filter(|(role, _)| role.width == Width::Words(2));
    !op.has(Prop::Fp64Pipe) && wide.map(|(_, operand)| operand.kind()).any(|kind| matches!(kind, Kind::Imm(_)))
}

/// A fresh register, or a vector of several.
fn fresh(function: &mut Function, file: File, words: usize) -> Operand {
    match words {
        1 => Operand::reg(function.new_reg(file)),
        _ => Operand::vector(function.new_vector(file, words)),
    }
}

/// What a guard without a register always is; `None` where there is no guard, or it is in a register.
fn constant_guard(function: &Function, inst: InstId) -> Option<bool> {
    let guard = function.insts[inst].guard;
    (guard.kind() == Kind::Zero).then(|| !guard.not())
}

/// Gives an instruction another one's place: guard, line and order among accesses stay.
fn replace(function: &mut Function, old: InstId, new: InstId) {
    let from = function.insts[old];
    let to = &mut function.insts[new];
    (to.guard, to.line, to.ordered) = (from.guard, from.line, from.ordered);
}

/// Whether an instruction has a destination and a source, and nothing else.
fn is_whole(function: &Function, inst: InstId) -> bool {
    function.args(inst).iter().filter(|operand| !operand.is_null()).count() == 2
}
