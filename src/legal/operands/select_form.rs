//! Selects which operands of an unencodable instruction go into registers, and in which order.
//!
//! Returns the moves to put before the instruction and changes its operands; if no choice is
//! encodable, nothing changes. No other choice of order and operands has fewer moves. All choices
//! are tried, the cheapest first: unencodable instructions are few and have few movable operands.

use super::Legalizer;
use super::commute::{Order, apply, orders};
use super::fold_imm_modifiers;
use super::fresh;
use super::moves;
use crate::ori::{Block, File, Function, InstId, Kind, Operand};
use crate::tables::Mods;
use crate::tables::operands::{Material, RecipeInfo};
use crate::tables::ori::{Class, RoleInfo, Width};
use smallvec::SmallVec;

/// The position of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Guard,
    Role(usize),
}

/// An operand that may go into a register.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    place: Place,
    file: File,
    words: usize,
    /// Whether the recipe prefers to keep it inline.
    last: bool,
}

/// One choice: its number of moves, and the tie breakers.
struct Choice {
    moves: usize,
    order: usize,
    /// Number of moved operands that the recipe prefers inline.
    reluctant: u32,
    chosen: u32,
}

/// Maximum number of operands considered; further ones stay as they are.
const MOST: usize = 8;

/// The state of an instruction that a trial changes.
struct Saved {
    guard: Operand,
    mods: Mods,
    args: SmallVec<[Operand; 12]>,
}

impl Saved {
    #[inline]
    fn of(function: &Function, inst: InstId) -> Saved {
        let data = &function[inst];
        Saved { guard: data.guard, mods: data.mods, args: SmallVec::from_slice(function.args(inst)) }
    }

    fn put_back(&self, function: &mut Function, inst: InstId) {
        function[inst].guard = self.guard;
        function[inst].mods = self.mods;
        function.args_mut(inst).copy_from_slice(&self.args);
    }
}

impl Legalizer<'_> {
    /// Legalizes one instruction by the cheapest encodable choice.
    pub(super) fn choose(
        &mut self,
        function: &mut Function,
        block: Block,
        inst: InstId,
        recipe: &RecipeInfo,
    ) -> Option<Vec<InstId>> {
        let saved = Saved::of(function, inst);
        let orders = orders(function, inst, recipe);
        let mut candidates: Vec<Vec<Candidate>> = Vec::with_capacity(orders.len());
        let mut choices = Vec::new();
        for (at, order) in orders.iter().enumerate() {
            self.arrange(function, inst, order);
            let found = self.candidates(function, block, inst, recipe);
            choices.extend((0..1u32 << found.len()).map(|chosen| rated(&found, at, chosen)));
            candidates.push(found);
            saved.put_back(function, inst);
        }
        crate::sorted::by_key(&mut choices, |c| (c.moves, c.order, c.reluctant, c.chosen));
        for choice in &choices {
            let of = &candidates[choice.order];
            self.arrange(function, inst, &orders[choice.order]);
            let arranged = Saved::of(function, inst);
            for candidate in chosen(of, choice.chosen) {
                let stand_in = self.stand_in(function, candidate.file, candidate.words);
                put(function, inst, candidate, stand_in);
            }
            if (self.encodes)(function, inst) {
                arranged.put_back(function, inst);
                return Some(self.make(function, inst, of, choice.chosen));
            }
            saved.put_back(function, inst);
        }
        None
    }

    /// Applies an operand order and folds the modifiers of immediates.
    fn arrange(&self, function: &mut Function, inst: InstId, order: &Order) {
        apply(function, inst, order);
        fold_imm_modifiers::fold(function, inst);
    }

    /// Emits the moves of a choice: that of the guard first, then the others in the order of the
    /// recipe.
    fn make(&mut self, function: &mut Function, inst: InstId, of: &[Candidate], mask: u32) -> Vec<InstId> {
        let mut before = Vec::new();
        for candidate in chosen(of, mask) {
            let from = operand_at(function, inst, candidate.place);
            if let Some(held) = self.held(candidate.file, candidate.words, from) {
                put(function, inst, candidate, held);
                continue;
            }
            let to = fresh(function, candidate.file, candidate.words);
            self.hold(candidate.file, candidate.words, from, to);
            for new in moves::all(function, self.encodes, to, from).unwrap_or_default() {
                function[new].line = function[inst].line;
                before.push(new);
            }
            put(function, inst, candidate, to);
        }
        before
    }

    /// The operands that may go into registers: the guard, then those in the steps of the recipe;
    /// absent operands are skipped.
    fn candidates(
        &mut self,
        function: &mut Function,
        block: Block,
        inst: InstId,
        recipe: &RecipeInfo,
    ) -> Vec<Candidate> {
        let mut found = Vec::new();
        if function[inst].guard.as_reg().is_some_and(|reg| function[reg].file == File::UP) {
            found.push(Candidate { place: Place::Guard, file: File::P, words: 1, last: false });
        }
        let info = function[inst].op.info();
        for step in recipe.steps {
            let Some(at) = function[inst].op.role_index(step.role) else { continue };
            let operand = function.args(inst)[at];
            let Some(file) = file_for(function, &info.roles[at], operand) else { continue };
            let words = words_of(function, inst, &info.roles[at], operand);
            found.push(Candidate { place: Place::Role(at), file, words, last: step.by == Material::Try });
        }
        found.truncate(MOST);
        found.retain(|candidate| self.can_move(function, block, inst, candidate));
        found
    }

    /// Whether moves into the required register file exist.
    fn can_move(&mut self, function: &mut Function, block: Block, inst: InstId, candidate: &Candidate) -> bool {
        let operand = operand_at(function, inst, candidate.place);
        let shared = candidate.file == File::UR;
        if shared && !(self.is_uniform(function, operand) && self.together(function, block)) {
            return false;
        }
        let to = self.stand_in(function, candidate.file, candidate.words);
        moves::all(function, self.encodes, to, operand).is_some()
    }
}

/// The register file for an operand of a role; `None` if the operand cannot or need not move.
#[inline]
fn file_for(function: &Function, role: &RoleInfo, operand: Operand) -> Option<File> {
    let file = match operand.kind() {
        Kind::Null | Kind::Label(_) | Kind::Symbol(_) => return None,
        Kind::Reg(reg) => Some(function[reg].file),
        Kind::Vector(vector) => function.vector_regs(vector).first().map(|reg| function[*reg].file),
        _ => None,
    };
    let to = match role.class {
        Class::Reg => File::R,
        Class::Uniform => File::UR,
        Class::Pred => File::P,
        _ => return None,
    };
    let known = file.is_some() || role.width != Width::Fragment;
    (known && file != Some(to)).then_some(to)
}

#[inline]
fn words_of(function: &Function, inst: InstId, role: &RoleInfo, operand: Operand) -> usize {
    match operand.kind() {
        Kind::Vector(vector) => function.vector_regs(vector).len(),
        _ => usize::from(function.width(inst, role)),
    }
}

fn operand_at(function: &Function, inst: InstId, place: Place) -> Operand {
    match place {
        Place::Guard => function[inst].guard.plain(),
        Place::Role(at) => function.args(inst)[at],
    }
}

/// Replaces an operand by a register; sign modifiers stay on the use.
fn put(function: &mut Function, inst: InstId, candidate: &Candidate, register: Operand) {
    match candidate.place {
        Place::Guard => {
            let guard = function[inst].guard;
            function[inst].guard = register.modified_like(guard);
        }
        Place::Role(at) => {
            let old = function.args(inst)[at];
            function.args_mut(inst)[at] = register.modified_like(old);
        }
    }
}

fn chosen(of: &[Candidate], mask: u32) -> impl Iterator<Item = &Candidate> {
    of.iter().enumerate().filter(move |(at, _)| mask >> at & 1 != 0).map(|(_, candidate)| candidate)
}

fn rated(of: &[Candidate], order: usize, mask: u32) -> Choice {
    let moves = chosen(of, mask).map(|c| c.words).sum();
    let reluctant = chosen(of, mask).filter(|c| c.last).count() as u32;
    Choice { moves, order, reluctant, chosen: mask }
}
