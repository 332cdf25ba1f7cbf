//! Emits moves: the instructions that bring a value into a register of a given file, by the rows of
//! `tables/ori/moves.ron`.
//!
//! A move is one instruction per word, not yet in a block; there is none if no row fits or the
//! target encodes none of the rows. Moves ignore sign modifiers of the operand, which stay on the
//! use of the register.

use super::{Encodes, Legalizer, is_whole, replace};
use crate::ori::{File, Function, InstId, Kind, Operand};
use crate::tables::Prop;
use crate::tables::operands::{MOVES, MoveInfo, Origin, Part, RecipeInfo};

/// The words of an operand in order, each as a one-word operand.
pub(super) fn words(function: &mut Function, operand: Operand, count: usize) -> Vec<Operand> {
    let plain = operand.plain();
    match plain.kind() {
        Kind::Vector(vector) => function.vector_regs(vector).iter().map(|reg| Operand::reg(*reg)).collect(),
        Kind::Imm(_) if count > 1 => {
            let bits = function.imm_value(plain).unwrap_or(0);
            let word = |at: usize| if at < 2 { bits >> (32 * at) & 0xffff_ffff } else { 0 };
            (0..count).map(|at| if word(at) == 0 { Operand::zero() } else { function.imm(word(at)) }).collect()
        }
        Kind::Const { bank, offset } => {
            (0..count).map(|at| Operand::constant(bank, offset.wrapping_add(4 * at as u16))).collect()
        }
        Kind::Zero => vec![Operand::zero(); count],
        _ => vec![plain],
    }
}

/// The kind of a one-word operand, as the rows name it.
pub(super) fn origin(function: &Function, operand: Operand) -> Option<Origin> {
    Some(match operand.kind() {
        Kind::Imm(_) => Origin::Imm,
        Kind::Zero => Origin::Zero,
        Kind::Const { .. } => Origin::Const,
        Kind::Special(_) => Origin::Special,
        Kind::Reg(reg) => match function[reg].file {
            File::R => Origin::R,
            File::UR => Origin::UR,
            File::P => Origin::P,
            File::UP => Origin::UP,
            File::B | File::UB => return None,
        },
        _ => return None,
    })
}

/// The instruction of one row.
fn written(function: &mut Function, row: &MoveInfo, to: Operand, from: Operand) -> InstId {
    let inst = function.make(row.op);
    row.mods.iter().for_each(|(kind, value)| function[inst].mods.set(*kind, *value));
    for (role, part) in row.args {
        let operand = match part {
            Part::To => to,
            Part::From => from,
            Part::NotFrom => from.inverted(),
            Part::True | Part::Zero => Operand::zero(),
            Part::False => Operand::never(),
            Part::Number(number) => function.imm(u64::from(*number)),
        };
        function.set_arg(inst, *role, operand);
    }
    inst
}

/// A move of one word by the first row that the target encodes.
pub(super) fn one(function: &mut Function, encodes: Encodes, to: Operand, from: Operand) -> Option<InstId> {
    let file = to.as_reg().map(|reg| function[reg].file)?;
    let kind = origin(function, from)?;
    for row in MOVES.iter().filter(|row| row.to == file.name() && row.from == kind) {
        let inst = written(function, row, to, from);
        if encodes(function, inst) {
            return Some(inst);
        }
    }
    None
}

/// Moves of a whole operand into a register or a tuple of as many words.
pub fn all(function: &mut Function, encodes: Encodes, to: Operand, from: Operand) -> Option<Vec<InstId>> {
    let count = match to.kind() {
        Kind::Vector(vector) => function.vector_regs(vector).len(),
        _ => 1,
    };
    let (to, from) = (words(function, to, count), words(function, from, count));
    if to.len() != from.len() {
        return None;
    }
    to.into_iter().zip(from).map(|(to, from)| one(function, encodes, to, from)).collect()
}

impl Legalizer<'_> {
    /// Replaces a move that the target cannot encode by one that it has for these files; the last
    /// instruction takes its place.
    pub(super) fn become_move(
        &mut self,
        function: &mut Function,
        inst: InstId,
        recipe: &RecipeInfo,
    ) -> Option<Vec<InstId>> {
        let (to, from) = recipe.moves?;
        let (to, from): (Operand, Operand) = (function.arg(inst, to), function.arg(inst, from));
        if from != from.plain() || !is_whole(function, inst) || function.olds(inst).len() > 1 {
            return None;
        }
        let moves = all(function, self.encodes, to, from)?;
        if moves.iter().any(|new| function[*new].op.has(Prop::UniformBridge)) && !self.is_uniform(function, from) {
            return None;
        }
        let olds = function.olds(inst).to_vec();
        for new in &moves {
            replace(function, inst, *new);
            if !olds.is_empty() {
                function.set_olds(*new, &olds);
            }
        }
        // The new opcode may not take the guard of the old one.
        moves.iter().all(|new| (self.encodes)(function, *new)).then_some(moves)
    }
}
