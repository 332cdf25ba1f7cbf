//! The IR verifier: what must hold between any two phases.
//!
//! Checks that operands fit their roles (presence, kind, file, width); that labels name blocks of
//! the layout; that each block ends with an unguarded terminator and has nothing but branches after
//! its first branch; in SSA form, that each register has one definition, which dominates its uses
//! (inputs of PHIs are not checked); and, by comparing the control conditions of convergent
//! operations before and after a phase, that convergence is preserved.

use super::cfg::{BlockSet, Cfg, Dominators};
use super::function::{Block, File, Function, InstId};
use super::operand::{Kind, Operand};
use crate::tables::ori::{Absent, Class, Direction, RoleInfo, Width};
use crate::tables::{Op, Prop};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, BTreeSet};

/// Returns every violation found.
pub fn verify(function: &Function) -> Vec<String> {
    let mut errors = Vec::new();
    let mut laid_out = BlockSet::new(function.block_limit());
    function.layout.iter().for_each(|block| {
        laid_out.insert(*block);
    });
    for block in &function.layout {
        for inst in &function.blocks[*block] {
            instruction(function, *inst, &mut errors);
        }
        block_shape(function, *block, &laid_out, &mut errors);
    }
    if function.ssa && errors.is_empty() {
        single_definitions(function, &mut errors);
    }
    errors
}

fn describe(function: &Function, inst: InstId) -> String {
    format!("{inst} {}", super::text::instruction(function, inst))
}

fn instruction(function: &Function, inst: InstId, errors: &mut Vec<String>) {
    let data = &function.insts[inst];
    if !data.op.info().built {
        errors.push(format!("{}: the opcode is planned", describe(function, inst)));
    }
    if !data.guard.is_null() {
        let file = data.guard.as_reg().map(|r| function.regs[r].file);
        if !matches!(file, Some(File::P | File::UP)) && data.guard.plain() != Operand::always() {
            errors.push(format!("{}: the guard is not a predicate", describe(function, inst)));
        }
    }
    if data.op == Op::PHI {
        return;
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
            let file = function.regs[reg].file;
            let fits = match role.class {
                Class::Reg => matches!(file, File::R | File::UR) || function.insts[inst].op.has(Prop::Pseudo),
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
    let insts = &function.blocks[block];
    let ends = insts.last().is_some_and(|i| {
        let data = &function.insts[*i];
        data.op.has(Prop::Terminator) && data.guard.is_null()
    });
    if !ends {
        errors.push(format!("{block}: does not end with an unguarded terminator"));
    }
    let mut seen_branch = false;
    for inst in insts {
        let op = function.insts[*inst].op;
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

fn single_definitions(function: &Function, errors: &mut Vec<String>) {
    let cfg = Cfg::new(function);
    let dominators = cfg.dominators();
    let mut place: BTreeMap<super::VReg, (Block, usize)> = BTreeMap::new();
    for block in &cfg.rpo {
        for (at, inst) in function.blocks[*block].iter().enumerate() {
            function.for_each_def(*inst, |reg| {
                if function.regs[reg].phys.is_none() && place.insert(reg, (*block, at)).is_some() {
                    errors.push(format!("{}: {reg} has a second definition", describe(function, *inst)));
                }
            });
        }
    }
    for block in &cfg.rpo {
        for (at, inst) in function.blocks[*block].iter().enumerate() {
            if function.insts[*inst].op == Op::PHI {
                continue;
            }
            let mut bad = Vec::new();
            function.for_each_use(*inst, |reg| {
                if function.regs[reg].phys.is_none() && !reaches(&dominators, place.get(&reg), (*block, at)) {
                    bad.push(reg);
                }
            });
            for reg in bad {
                errors.push(format!("{}: no definition of {reg} dominates it", describe(function, *inst)));
            }
        }
    }
}

fn reaches(dominators: &Dominators, def: Option<&(Block, usize)>, at: (Block, usize)) -> bool {
    def.is_some_and(|d| if d.0 == at.0 { d.1 < at.1 } else { dominators.dominates(d.0, at.0) })
}

/// For each convergent operation, the conditional branches it is control dependent on.
pub fn convergent_conditions(function: &Function) -> BTreeMap<InstId, BTreeSet<InstId>> {
    let cfg = Cfg::new(function);
    let post = cfg.post_dominators(function);
    let mut direct: SecondaryMap<Block, BTreeSet<Block>> = SecondaryMap::new();
    for block in cfg.rpo.iter().filter(|b| cfg.succs[**b].len() > 1) {
        for succ in &cfg.succs[*block] {
            let mut runner = Some(*succ);
            while let Some(at) = runner.filter(|r| Some(*r) != post.parent(*block)) {
                direct[at].insert(*block);
                runner = post.parent(at);
            }
        }
    }
    let branch = |block: Block| {
        let guarded = |i: &&InstId| function.insts[**i].op == Op::BRA && !function.insts[**i].guard.is_null();
        function.blocks[block].iter().find(guarded).copied()
    };
    let mut out = BTreeMap::new();
    for block in &cfg.rpo {
        let mut closure: BTreeSet<Block> = BTreeSet::new();
        let mut work = vec![*block];
        while let Some(at) = work.pop() {
            work.extend(direct[at].iter().filter(|b| closure.insert(**b)));
        }
        let conditions: BTreeSet<InstId> = closure.iter().filter_map(|b| branch(*b)).collect();
        for inst in function.blocks[*block].iter().filter(|i| is_program_convergent(function, **i)) {
            out.insert(*inst, conditions.clone());
        }
    }
    out
}

/// Convergent operations of the program, without those that only manage convergence.
fn is_program_convergent(function: &Function, inst: InstId) -> bool {
    let op = function.insts[inst].op;
    op.has(Prop::Convergent)
        && !op.has(Prop::Control)
        && !matches!(op, Op::BSSY | Op::BREAK | Op::SYNCMASK | Op::BMOV_R | Op::BMOV_B | Op::WARPGROUP)
        // A commit may become part of the product before it, or be added with a wait.
        && (op != Op::GMMA || function.arg(inst, crate::tables::Role::D).as_vector().is_some())
}

/// Convergent operations that were added or removed, or whose control conditions changed. Branches
/// that constants `decided` are conditions no longer, and what only they led to may be gone.
pub fn compare_conditions(
    before: &BTreeMap<InstId, BTreeSet<InstId>>,
    after: &BTreeMap<InstId, BTreeSet<InstId>>,
    decided: &[InstId],
) -> Vec<String> {
    let mut errors = Vec::new();
    for (inst, conditions) in before {
        let mut conditions = conditions.clone();
        conditions.retain(|branch| !decided.contains(branch));
        match after.get(inst) {
            None if decided.is_empty() => errors.push(format!("{inst}: a convergent operation is gone")),
            Some(now) if *now != conditions => errors
                .push(format!("{inst}: the conditions of a convergent operation changed: {conditions:?} to {now:?}")),
            _ => {}
        }
    }
    errors.extend(after.keys().filter(|i| !before.contains_key(i)).map(|i| format!("{i}: a new convergent operation")));
    errors
}

/// Whether control can leave the function. If it cannot, nothing post-dominates anything, and
/// control conditions say nothing.
pub fn ends(function: &Function) -> bool {
    let last = |block: &Block| function.blocks[*block].last().map(|inst| function.insts[*inst].op);
    Cfg::new(function).rpo.iter().any(|block| matches!(last(block), Some(Op::EXIT | Op::RET)))
}
