//! The IR verifier: what must hold between any two phases.
//!
//! Checks that each block is in the layout once and each instruction in one place; that operands
//! fit their roles (presence, kind, file, width), and implicit ones are registers; that labels name
//! blocks of the layout; that each block ends with an unguarded terminator and has nothing but
//! branches after its first branch. `ssa` checks SSA form, `convergence` what a pass did to
//! convergent operations.

mod convergence;
mod ssa;

pub use convergence::{Changes, Conditions, compare_conditions, convergent_conditions, ends};

use super::cfg::BlockSet;
use super::function::{Block, File, Function, InstId};
use super::operand::{Kind, Operand};
use crate::tables::ori::{Absent, Class, Direction, RoleInfo, Width};
use crate::tables::{Op, Prop};
use cranelift_entity::EntitySet;

/// Returns every violation found.
pub fn verify(function: &Function) -> Vec<String> {
    let mut errors = Vec::new();
    let laid_out = placement(function, &mut errors);
    for block in function.layout() {
        for inst in &function[*block] {
            instruction(function, *inst, &mut errors);
        }
        block_shape(function, *block, &laid_out, &mut errors);
    }
    if errors.is_empty() {
        ssa::check(function, &mut errors);
    }
    errors
}

/// Checks that each block and each instruction has one place; returns the blocks of the layout.
fn placement(function: &Function, errors: &mut Vec<String>) -> BlockSet {
    let mut laid_out = BlockSet::new(function.block_limit());
    let mut placed: EntitySet<InstId> = EntitySet::with_capacity(function.insts().len());
    for block in function.layout() {
        if !laid_out.insert(*block) {
            errors.push(format!("{block}: is in the layout twice"));
            continue;
        }
        for inst in function[*block].iter().filter(|inst| !placed.insert(**inst)) {
            errors.push(format!("{}: is in a second place, in {block}", describe(function, *inst)));
        }
    }
    laid_out
}

fn describe(function: &Function, inst: InstId) -> String {
    format!("{inst} {}", super::text::instruction(function, inst))
}

fn instruction(function: &Function, inst: InstId, errors: &mut Vec<String>) {
    let data = &function[inst];
    if !data.op.info().built {
        errors.push(format!("{}: the opcode is planned", describe(function, inst)));
    }
    if !data.guard.is_null() {
        let file = data.guard.as_reg().map(|r| function[r].file);
        if !matches!(file, Some(File::P | File::UP)) && data.guard.plain() != Operand::always() {
            errors.push(format!("{}: the guard is not a predicate", describe(function, inst)));
        }
    }
    if data.op == Op::PHI {
        return;
    }
    let (uses, defs) = function.extras(inst);
    // What a branch through a table reads includes the table: numbers and labels.
    let is_register = |operand: &Operand| matches!(operand.kind(), Kind::Reg(_) | Kind::Vector(_));
    if uses.iter().any(|operand| operand.is_null()) || !defs.iter().all(is_register) {
        errors.push(format!("{}: an implicit operand is missing, or no register", describe(function, inst)));
    }
    for (role, operand) in data.op.info().roles.iter().zip(function.args(inst)) {
        if let Some(wrong) = role_error(function, inst, role, *operand) {
            errors.push(format!("{}: {} {wrong}", describe(function, inst), role.role.name()));
        }
    }
}

fn role_error(function: &Function, inst: InstId, role: &RoleInfo, operand: Operand) -> Option<String> {
    let width = usize::from(function.width(inst, role));
    match operand.kind() {
        Kind::Null if role.absent == Absent::Required && role.direction != Direction::None => Some("is missing".into()),
        Kind::Reg(reg) => {
            let file = function[reg].file;
            let fits = match role.class {
                Class::Reg => matches!(file, File::R | File::UR) || function[inst].op.has(Prop::Pseudo),
                Class::Uniform => file == File::UR,
                Class::Pred => matches!(file, File::P | File::UP),
                Class::Barrier => file == File::B,
                _ => false,
            };
            if !fits {
                return Some(format!("cannot be a register of file {file:?}"));
            }
            (width > 1).then(|| format!("is one register, not {width}"))
        }
        Kind::Vector(vector) => {
            let len = function.vector_regs(vector).len();
            (len != width && role.width != Width::Fragment).then(|| format!("is {len} registers, not {width}"))
        }
        Kind::Label(_) if role.class != Class::Label => Some("cannot be a label".into()),
        Kind::Imm(_) if matches!(role.class, Class::Pred | Class::Barrier) => Some("cannot be an immediate".into()),
        _ => None,
    }
}

fn block_shape(function: &Function, block: Block, laid_out: &BlockSet, errors: &mut Vec<String>) {
    let insts = &function[block];
    let ends = insts.last().is_some_and(|i| {
        let data = &function[*i];
        data.op.has(Prop::Terminator) && data.guard.is_null()
    });
    if !ends {
        errors.push(format!("{block}: does not end with an unguarded terminator"));
    }
    let mut seen_branch = false;
    for inst in insts {
        let op = function[*inst].op;
        if op == Op::BRA {
            seen_branch = true;
        } else if seen_branch {
            errors.push(format!("{}: stands behind a branch of its block", describe(function, *inst)));
        }
        for operand in function.args(*inst) {
            if let Kind::Label(target) = operand.kind()
                && !laid_out.contains(target)
            {
                errors.push(format!("{}: {target} is not in the layout", describe(function, *inst)));
            }
        }
    }
}
