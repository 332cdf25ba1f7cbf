//! Rewrites the chosen values to uniform registers.
//!
//! Each value gets a fresh uniform register (a uniform predicate for a predicate), its definition
//! becomes the uniform form, and the readers that can take it do. A definition without register
//! sources is kept as well if another reader needs a general register.

use super::candidates::Candidates;
use super::taken::handed;
use super::twins::Places;
use super::twins::Twin;
use crate::legal::operands;
use crate::ori::liveness::RegSet;
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg};
use crate::sorted::SortedSet;
use crate::tables::ori::Direction;
use crate::tables::{Op, Role};
use cranelift_entity::SecondaryMap;

/// The registers that stand for values of the set, once there are some.
type Names = SecondaryMap<VReg, Option<VReg>>;

/// False, and nothing changed but the set, where a value of it is read as the uniform file cannot.
pub fn run(function: &mut Function, places: &Places, candidates: &mut Candidates) -> bool {
    let cfg = places.cfg;
    let mut names = Names::new();
    // Readers choose while the function is as the set was made for.
    let mut choices: Vec<(InstId, Vec<VReg>)> = Vec::new();
    let mut general = RegSet::new(function.regs().len());
    for block in &cfg.rpo {
        for at in 0..function[*block].len() {
            let inst = function[*block][at];
            let mut reads = false;
            function.for_each_use(inst, |reg| reads |= candidates.contains(reg));
            if !reads || candidates.has(function, inst) {
                continue;
            }
            let taken = candidates.taken(function, inst);
            if let Some(reg) = taken.general.iter().copied().find(|reg| !candidates.is_in_both(function, *reg)) {
                candidates.drop_value(function, places, reg);
                return false;
            }
            taken.general.iter().for_each(|reg| {
                general.insert(*reg);
            });
            choices.push((inst, taken.uniform.to_vec()));
        }
    }
    for block in cfg.rpo.clone() {
        definitions(function, block, candidates, &general, &mut names);
    }
    let mut unread: SortedSet<InstId> = SortedSet::new();
    for (inst, regs) in choices {
        if let Some(source) = handed(function, inst).filter(|source| regs.contains(source)) {
            if copy(function, candidates, inst, source, &mut names) {
                unread.insert(inst);
            }
            continue;
        }
        for at in 0..function.args(inst).len() {
            let operand = function.args(inst)[at];
            let mut within = function.direction(inst, at) == Direction::Use;
            let mut any = false;
            function.for_each_reg(operand, |reg| {
                any = true;
                within &= regs.contains(&reg);
            });
            if within && any {
                let new = renamed(function, operand, &mut names);
                function.args_mut(inst)[at] = new;
            }
        }
        if candidates.condition(function, inst).is_some_and(|condition| regs.contains(&condition)) {
            function[inst].guard = renamed(function, function[inst].guard, &mut names);
        }
    }
    if !unread.is_empty() {
        for block in &cfg.rpo {
            function[*block].retain(|inst| !unread.contains(inst));
        }
    }
    true
}

/// What hands a value over that is in the uniform file becomes a copy. Whoever reads the result
/// alone reads the value itself; a word among others needs a register beside theirs. Whether nobody
/// reads the copy.
fn copy(function: &mut Function, candidates: &Candidates, inst: InstId, source: VReg, names: &mut Names) -> bool {
    let mut result = None;
    function.for_each_def(inst, |reg| result = Some(reg));
    let Some(result) = result else { return false };
    let mut read = false;
    let source = name(function, source, names);
    for reader in candidates.readers(result) {
        // One that is in the uniform file itself has become another instruction.
        read |= candidates.has(function, *reader);
        for at in 0..function.args(*reader).len() {
            let operand = function.args(*reader)[at];
            if operand.as_reg() == Some(result) && function.direction(*reader, at) == Direction::Use {
                function.args_mut(*reader)[at] = operand.with_reg(source);
            }
        }
        let guard = function[*reader].guard;
        if guard.as_reg() == Some(result) {
            function[*reader].guard = guard.with_reg(source);
        }
        function.for_each_use(*reader, |reg| read |= reg == result);
    }
    let new = function.make_with(Op::COPY, &[Operand::reg(result), Operand::reg(source)]);
    function[new].line = function[inst].line;
    function[inst] = function[new];
    !read
}

/// Rewrites the definitions of a block.
fn definitions(
    function: &mut Function,
    block: Block,
    candidates: &mut Candidates,
    general: &RegSet,
    names: &mut Names,
) {
    let insts = std::mem::take(&mut function[block]);
    let mut out = Vec::with_capacity(insts.len() + 4);
    // What follows the PHIs.
    let mut moves = handed_over_at_start(function, block, candidates, names);
    for inst in insts {
        if function[inst].op != Op::PHI {
            out.append(&mut moves);
        }
        if !candidates.has(function, inst) {
            out.push(inst);
            out.extend(hand_over(function, inst, candidates, names));
            continue;
        }
        let mut needed = false;
        function.for_each_def(inst, |reg| needed |= general.contains(reg));
        let new = match function[inst].op {
            op @ (Op::PHI | Op::UNDEF) => {
                let args: Vec<Operand> = function.args(inst).to_vec();
                let args: Vec<Operand> = args.into_iter().map(|operand| renamed(function, operand, names)).collect();
                Some(function.make_with(op, &args))
            }
            _ => candidates.uniform_form(function, inst, &mut |function, reg| name(function, reg, names)),
        };
        let Some(new) = new else {
            out.push(inst);
            continue;
        };
        function[new].line = function[inst].line;
        let twins = moved_out(function, inst, candidates, general, names);
        if needed && twins.is_empty() {
            out.push(inst);
        }
        out.push(new);
        moves.extend(twins);
    }
    out.append(&mut moves);
    function[block] = out;
}

/// What hands values over to the uniform file at the start of a block.
fn handed_over_at_start(
    function: &mut Function,
    block: Block,
    candidates: &Candidates,
    names: &mut Names,
) -> Vec<InstId> {
    let twins = candidates.twins();
    let regs = twins.at_start(block).into_iter().filter(|reg| candidates.contains(*reg));
    regs.filter_map(|reg| {
        let inst = candidates.definition(reg)?;
        let uniform = name(function, reg, names);
        Some(moved(function, inst, Op::R2UR, uniform, reg))
    })
    .collect()
}

/// What hands a value over to the uniform file behind its definition in the general one.
fn hand_over(function: &mut Function, inst: InstId, candidates: &Candidates, names: &mut Names) -> Option<InstId> {
    let (mut result, twins) = (None, candidates.twins());
    function.for_each_def(inst, |reg| result = Some(reg));
    let reg = result.filter(|reg| candidates.contains(*reg) && twins.of(*reg) == Twin::In)?;
    twins.is_at_definition(reg).then(|| {
        let uniform = name(function, reg, names);
        moved(function, inst, Op::R2UR, uniform, reg)
    })
}

/// Moves of the results of an instruction of the set that are needed in the general file too.
fn moved_out(
    function: &mut Function,
    inst: InstId,
    candidates: &Candidates,
    general: &RegSet,
    names: &mut Names,
) -> Vec<InstId> {
    let mut results = Vec::new();
    function.for_each_def(inst, |reg| results.push(reg));
    results.retain(|reg| general.contains(*reg) && candidates.twins().of(*reg) == Twin::Out);
    let mut moves = Vec::new();
    for reg in results {
        let uniform = name(function, reg, names);
        if function[reg].file == File::P {
            let (to, from) = (Operand::reg(reg), Operand::reg(uniform));
            let new = operands::moves_to(function, &candidates.encodes, to, from).unwrap_or_default();
            new.iter().for_each(|new| function[*new].line = function[inst].line);
            moves.extend(new);
        } else {
            moves.push(moved(function, inst, Op::MOV, reg, uniform));
        }
    }
    moves
}

/// A move from one file to the other, on the line of an instruction.
fn moved(function: &mut Function, inst: InstId, op: Op, to: VReg, from: VReg) -> InstId {
    let new = function.make(op);
    function.set_arg(new, Role::D, Operand::reg(to));
    function.set_arg(new, Role::A, Operand::reg(from));
    function[new].line = function[inst].line;
    new
}

/// The register of the uniform file for a value; one that is there already stands for itself.
fn name(function: &mut Function, reg: VReg, names: &mut Names) -> VReg {
    let file = match function[reg].file {
        File::R => File::UR,
        File::P => File::UP,
        _ => return reg,
    };
    *names[reg].get_or_insert_with(|| {
        let new = function.new_reg(file);
        function[new].varying = false;
        new
    })
}

/// An operand with the registers of the uniform file.
fn renamed(function: &mut Function, operand: Operand, names: &mut Names) -> Operand {
    match operand.kind() {
        Kind::Reg(reg) => operand.with_reg(name(function, reg, names)),
        Kind::Vector(vector) => {
            let regs = function.vector_regs(vector).to_vec();
            let regs: Vec<VReg> = regs.into_iter().map(|reg| name(function, reg, names)).collect();
            let vector = function.vector(&regs);
            operand.with_vector(vector)
        }
        _ => operand,
    }
}
