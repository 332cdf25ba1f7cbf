//! Decides which operands may be uniform registers, and finds the uniform-datapath form of an
//! operation.
//!
//! An operand may be one if the target encodes the instruction so without a move, possibly after
//! commuting operands as its recipe allows. The queries leave the function unchanged.

use super::commute::{apply, orders};
use super::{Encodes, fold_imm_modifiers, is_ambiguous, is_whole, moves};
use crate::ori::{File, Function, InstId, Kind, Operand, VReg};
use crate::tables::Op;
use crate::tables::ori::{Class, Direction};
use smallvec::SmallVec;

/// Registers that stand for others while something is tried; in no instruction afterwards.
pub struct Trial {
    word: VReg,
    predicate: VReg,
    pair: Operand,
    quad: Operand,
}

impl Trial {
    pub fn new(function: &mut Function) -> Trial {
        Trial {
            word: function.new_reg(File::UR),
            predicate: function.new_reg(File::UP),
            pair: Operand::vector(function.new_vector(File::UR, 2)),
            quad: Operand::vector(function.new_vector(File::UR, 4)),
        }
    }

    /// What stands for an operand in the uniform file.
    fn stand_in(&self, function: &Function, operand: Operand) -> Operand {
        match operand.kind() {
            Kind::Reg(reg) if matches!(function[reg].file, File::P | File::UP) => operand.with_reg(self.predicate),
            Kind::Reg(_) => operand.with_reg(self.word),
            Kind::Vector(vector) => {
                let pair = function.vector_regs(vector).len() == 2;
                let stand_in = if pair { self.pair } else { self.quad };
                stand_in.modified_like(operand)
            }
            _ => operand,
        }
    }
}

/// Whether an instruction is encoded with these registers in the uniform file, in some order of its
/// operands.
pub fn takes_uniform(function: &mut Function, inst: InstId, encodes: Encodes, trial: &Trial, regs: &[VReg]) -> bool {
    let args: SmallVec<[Operand; 12]> = SmallVec::from_slice(function.args(inst));
    for at in 0..args.len() {
        let mut within = false;
        function.for_each_reg(args[at], |reg| within |= regs.contains(&reg));
        if within && function.direction(inst, at) == Direction::Use {
            let stand_in = trial.stand_in(function, args[at]);
            function.args_mut(inst)[at] = stand_in;
        }
    }
    let found = is_encoded_somehow(function, inst, encodes);
    function.args_mut(inst).copy_from_slice(&args);
    found
}

/// Whether an instruction is encoded with a pair of uniform registers as one of its operands, in
/// some order of them.
pub fn takes_pair(function: &mut Function, inst: InstId, at: usize, encodes: Encodes, trial: &Trial) -> bool {
    let old = function.args(inst)[at];
    function.args_mut(inst)[at] = trial.pair.modified_like(old);
    let found = is_encoded_somehow(function, inst, encodes);
    function.args_mut(inst)[at] = old;
    found
}

/// Whether the target has a move from the uniform file to a register.
pub fn moves_out(function: &mut Function, to: VReg, encodes: Encodes, trial: &Trial) -> bool {
    let from = if function[to].file == File::P { trial.predicate } else { trial.word };
    moves::one(function, encodes, Operand::reg(to), Operand::reg(from)).is_some()
}

/// Whether an instruction is encoded in some order of its operands, which stay as they are.
fn is_encoded_somehow(function: &mut Function, inst: InstId, encodes: Encodes) -> bool {
    let (mods, given): (_, SmallVec<[Operand; 12]>) = (function[inst].mods, SmallVec::from_slice(function.args(inst)));
    let found = put_in_order(function, inst, encodes);
    function[inst].mods = mods;
    function.args_mut(inst).copy_from_slice(&given);
    found
}

/// Gives an instruction the first order of its operands in which it is encoded; whether there is
/// one.
pub fn put_in_order(function: &mut Function, inst: InstId, encodes: Encodes) -> bool {
    let (mods, given): (_, SmallVec<[Operand; 12]>) = (function[inst].mods, SmallVec::from_slice(function.args(inst)));
    orders(function, inst, function[inst].op.recipe()).iter().any(|order| {
        apply(function, inst, order);
        fold_imm_modifiers::fold(function, inst);
        let fits = encodes(function, inst) && !is_ambiguous(function, inst);
        if !fits {
            function[inst].mods = mods;
            function.args_mut(inst).copy_from_slice(&given);
        }
        fits
    })
}

/// Whether an operation has a form in the uniform datapath that the target encodes, given its
/// sources there.
pub fn has_uniform_form(function: &mut Function, inst: InstId, encodes: Encodes, trial: &Trial) -> bool {
    uniform_form(function, inst, encodes, trial, &mut |function, reg| match function[reg].file {
        File::P | File::UP => trial.predicate,
        _ => trial.word,
    })
    .is_some()
}

/// That form, with other registers, in no block.
pub fn uniform_form(
    function: &mut Function,
    inst: InstId,
    encodes: Encodes,
    trial: &Trial,
    renamed: &mut dyn FnMut(&mut Function, VReg) -> VReg,
) -> Option<InstId> {
    let op = function[inst].op;
    if op == Op::MOV {
        let (to, from) = (function.args(inst)[0], function.args(inst)[1]);
        let constant = matches!(from.kind(), Kind::Imm(_) | Kind::Zero | Kind::Const { .. } | Kind::Reg(_));
        if !is_whole(function, inst) || from != from.plain() || !constant {
            return None;
        }
        let (to, from) = (rename(function, to, renamed), rename(function, from, renamed));
        return moves::one(function, encodes, to, from);
    }
    for form in op.info().uniform {
        let Some(new) = same_in(function, inst, *form) else { continue };
        // What the target encodes does not depend on names.
        let args: SmallVec<[Operand; 12]> = SmallVec::from_slice(function.args(new));
        for (at, operand) in args.iter().enumerate() {
            let stand_in = trial.stand_in(function, *operand);
            function.args_mut(new)[at] = stand_in;
        }
        if !legal_with_moves(function, new, encodes) {
            continue;
        }
        for (at, operand) in args.iter().enumerate() {
            let operand = rename(function, *operand, renamed);
            function.args_mut(new)[at] = operand;
        }
        return Some(new);
    }
    None
}

/// The same operation by another opcode, its operands in the same roles; `None` where one has no
/// role there.
fn same_in(function: &mut Function, inst: InstId, op: Op) -> Option<InstId> {
    let given: SmallVec<[_; 12]> =
        function[inst].op.info().roles.iter().map(|r| r.role).zip(function.args(inst).iter().copied()).collect();
    if function.args(inst).len() != given.len()
        || given.iter().any(|(role, operand)| !operand.is_null() && op.role_index(*role).is_none())
    {
        return None;
    }
    let new = function.make(op);
    function[new].mods = function[inst].mods;
    for (role, operand) in given.into_iter().filter(|(_, operand)| !operand.is_null()) {
        function.set_arg(new, role, operand);
    }
    Some(new)
}

/// Whether an instruction of the uniform datapath is encoded in some order of its operands, or with
/// one of its constants in a register.
fn legal_with_moves(function: &mut Function, inst: InstId, encodes: Encodes) -> bool {
    let args: SmallVec<[Operand; 12]> = SmallVec::from_slice(function.args(inst));
    if args.iter().any(|operand| matches!(operand.kind(), Kind::Symbol(_))) {
        return false;
    }
    is_encoded_somehow(function, inst, encodes) || {
        let word = trial_word(function, &args);
        word.is_some_and(|word| {
            let roles = function[inst].op.info().roles;
            for (at, role) in roles.iter().enumerate() {
                let constant = matches!(args[at].kind(), Kind::Imm(_) | Kind::Const { .. });
                let one = function.width(inst, role) == 1;
                if constant && one && role.class == Class::Uniform {
                    function.args_mut(inst)[at] = word.modified_like(args[at]);
                }
            }
            let fits = encodes(function, inst);
            function.args_mut(inst).copy_from_slice(&args);
            fits
        })
    }
}

/// A register of the uniform file that an instruction names.
fn trial_word(function: &Function, args: &[Operand]) -> Option<Operand> {
    let word = |operand: &&Operand| operand.as_reg().is_some_and(|reg| function[reg].file == File::UR);
    args.iter().find(word).map(|operand| operand.plain())
}

fn rename(function: &mut Function, operand: Operand, renamed: &mut dyn FnMut(&mut Function, VReg) -> VReg) -> Operand {
    match operand.kind() {
        Kind::Reg(reg) => {
            let reg = renamed(function, reg);
            operand.with_reg(reg)
        }
        Kind::Vector(vector) => {
            let regs = function.vector_regs(vector).to_vec();
            let regs: Vec<VReg> = regs.into_iter().map(|reg| renamed(function, reg)).collect();
            let vector = function.vector(&regs);
            operand.with_vector(vector)
        }
        _ => operand,
    }
}
