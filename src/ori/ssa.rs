//! SSA construction and repair.
//!
//! Construction gives each register one definition, puts pruned PHIs at the start of blocks, and
//! ties the old value to each guarded definition. A register that is read before any definition
//! becomes an UNDEF in the entry block; the inputs of a PHI are registers of the same file.
//! Registers with a physical number, which are reserved in the whole function, are not renamed.
//! [`super::destruct`] is the way back.

use super::cfg::{Cfg, Dominators};
use super::function::{Block, Function, InstId, RegData, VReg};
use super::list_table::ListTable;
use super::liveness::{Lists, Liveness};
use super::operand::{Kind, Operand};
use super::table;
use crate::tables::ori::Direction;
use crate::tables::{Op, Role};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Converts a function to SSA form. Unreachable blocks are dropped from the layout.
pub fn construct(function: &mut Function) {
    rename(function, |_| true);
}

/// Restores SSA form for the registers for which `is_variable` is true; all others must have one
/// definition.
pub fn repair(function: &mut Function, is_variable: impl Fn(VReg) -> bool) {
    function.set_ssa(false);
    rename(function, is_variable);
}

fn rename(function: &mut Function, is_variable: impl Fn(VReg) -> bool) {
    let fixed = |(reg, data): (VReg, &RegData)| data.phys.is_some() || !is_variable(reg);
    let fixed: Vec<bool> = function.regs().iter().map(fixed).collect();
    let cfg = Cfg::new(function);
    function.retain_blocks(|b| cfg.reachable(*b));
    let dominators = cfg.dominators();
    let phis = place_phis(function, &cfg, &dominators, &fixed);
    let mut renamer = Renamer {
        current: ListTable::new(function.regs().len()),
        undefined: HashMap::new(),
        phis,
        children: children(&cfg, &dominators),
        fixed,
    };
    renamer.walk(function, &cfg);
    let undefined: Vec<InstId> = renamer.undefined.values().map(|(_, inst)| *inst).collect();
    let entry = function.entry();
    let mut undefined = undefined;
    crate::sorted::sort(&mut undefined);
    function[entry].splice(0..0, undefined);
    function.set_ssa(true);
}

fn children(cfg: &Cfg, dominators: &Dominators) -> SecondaryMap<Block, Vec<Block>> {
    let mut children: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in &cfg.rpo {
        if let Some(parent) = dominators.parent(*block) {
            children[parent].push(*block);
        }
    }
    children
}

/// Places the PHIs of each block, pruned by liveness: variable and instruction.
fn place_phis(
    function: &mut Function,
    cfg: &Cfg,
    dominators: &Dominators,
    fixed: &[bool],
) -> SecondaryMap<Block, Vec<(VReg, InstId)>> {
    let live = Liveness::at_start(function, cfg);
    let frontiers = frontiers(cfg, dominators);
    let mut last: SecondaryMap<VReg, Option<Block>> = table(function.regs().len());
    let mut defs: Vec<(VReg, Block)> = Vec::new();
    for block in &cfg.rpo {
        for inst in &function[*block] {
            function.for_each_def(*inst, |reg| {
                if last[reg].replace(*block) != Some(*block) {
                    defs.push((reg, *block));
                }
            });
        }
    }
    let defs = Lists::new(function.regs().len(), defs.iter().map(|(reg, block)| (reg.index(), *block)));
    let mut phis: SecondaryMap<Block, Vec<(VReg, InstId)>> = table(function.block_limit());
    let mut done: SecondaryMap<Block, Option<VReg>> = table(function.block_limit());
    let mut work: SmallVec<[Block; 4]> = SmallVec::new();
    let regs: Vec<VReg> = function.regs().keys().filter(|r| !fixed[r.index()]).collect();
    for reg in regs {
        work.extend_from_slice(defs.of(reg.index()));
        while let Some(block) = work.pop() {
            for at in &frontiers[block] {
                if done[*at] == Some(reg) || !live.contains(*at, reg) {
                    continue;
                }
                done[*at] = Some(reg);
                work.push(*at);
                let mut operands = vec![Operand::reg(reg)];
                for pred in &cfg.preds[*at] {
                    operands.extend([Operand::label(*pred), Operand::NULL]);
                }
                let phi = function.make_with(Op::PHI, &operands);
                phis[*at].push((reg, phi));
            }
        }
    }
    for block in &cfg.rpo {
        let new: Vec<InstId> = phis[*block].iter().map(|p| p.1).collect();
        function[*block].splice(0..0, new);
    }
    phis
}

fn frontiers(cfg: &Cfg, dominators: &Dominators) -> SecondaryMap<Block, Vec<Block>> {
    let mut out: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in &cfg.rpo {
        // A block with one predecessor joins nothing, unless it is the entry.
        let joins = cfg.preds[*block].len() > 1 || dominators.parent(*block).is_none();
        if !joins {
            continue;
        }
        for pred in &cfg.preds[*block] {
            let mut runner = Some(*pred);
            while let Some(at) = runner.filter(|r| Some(*r) != dominators.parent(*block)) {
                if out[at].last() != Some(block) {
                    out[at].push(*block);
                }
                runner = dominators.parent(at);
            }
        }
    }
    out
}

struct Renamer {
    /// For each variable, the stack of its current values.
    current: ListTable<VReg, SmallVec<[VReg; 4]>>,
    undefined: HashMap<VReg, (VReg, InstId)>,
    phis: SecondaryMap<Block, Vec<(VReg, InstId)>>,
    children: SecondaryMap<Block, Vec<Block>>,
    fixed: Vec<bool>,
}

enum Step {
    Enter(Block),
    Leave(Vec<VReg>),
}

impl Renamer {
    /// Walks the dominator tree depth first.
    fn walk(&mut self, function: &mut Function, cfg: &Cfg) {
        let mut work = vec![Step::Enter(function.entry())];
        while let Some(step) = work.pop() {
            match step {
                Step::Leave(defined) => {
                    for variable in defined {
                        self.current[variable].pop();
                    }
                }
                Step::Enter(block) => {
                    let defined = self.block(function, cfg, block);
                    work.push(Step::Leave(defined));
                    work.extend(self.children[block].iter().rev().map(|c| Step::Enter(*c)));
                }
            }
        }
    }

    fn block(&mut self, function: &mut Function, cfg: &Cfg, block: Block) -> Vec<VReg> {
        let mut defined = Vec::new();
        for inst in function[block].clone() {
            if function[inst].op == Op::PHI {
                self.define(function, inst, 0, &mut defined);
            } else {
                self.instruction(function, inst, &mut defined);
            }
        }
        for succ in &cfg.succs[block] {
            // After its result, a PHI has a label and a value per predecessor, in the order of the
            // predecessors.
            let Some(at) = cfg.preds[*succ].iter().position(|p| *p == block) else { continue };
            for i in 0..self.phis[*succ].len() {
                let (variable, phi) = self.phis[*succ][i];
                let value = self.value(function, variable);
                function.args_mut(phi)[2 * at + 2] = Operand::reg(value);
            }
            self.older_phis(function, block, *succ);
        }
        defined
    }

    /// Renames the inputs that PHIs from before the repair have for this edge.
    fn older_phis(&mut self, function: &mut Function, from: Block, to: Block) {
        for i in self.phis[to].len()..function[to].len() {
            let inst = function[to][i];
            if function[inst].op != Op::PHI {
                break;
            }
            for at in (1..function.args(inst).len()).step_by(2) {
                if function.args(inst)[at].kind() == Kind::Label(from) {
                    let value = function.args(inst)[at + 1];
                    function.args_mut(inst)[at + 1] = self.renamed(function, value);
                }
            }
        }
    }

    fn instruction(&mut self, function: &mut Function, inst: InstId, defined: &mut Vec<VReg>) {
        let count = function.args(inst).len();
        for i in 0..count {
            if function.direction(inst, i) == Direction::Use {
                let operand = function.args(inst)[i];
                let renamed = self.renamed(function, operand);
                if renamed != operand {
                    function.args_mut(inst)[i] = renamed;
                }
            }
        }
        let guard = function[inst].guard;
        let renamed = self.renamed(function, guard);
        if renamed != guard {
            function[inst].guard = renamed;
        }
        for i in 0..function.olds(inst).len() {
            let operand = function.olds(inst)[i];
            let renamed = self.renamed(function, operand);
            if renamed != operand {
                function.olds_mut(inst)[i] = renamed;
            }
        }
        let guarded = !guard.is_null() && function.olds(inst).is_empty();
        let mut olds = Vec::new();
        for i in 0..count {
            if function.direction(inst, i) == Direction::Def {
                if guarded {
                    let operand = function.args(inst)[i];
                    olds.push(self.renamed(function, operand));
                }
                self.define(function, inst, i, defined);
            }
        }
        if guarded && !olds.is_empty() {
            function.set_olds(inst, &olds);
        }
    }

    fn is_fixed(&self, reg: VReg) -> bool {
        self.fixed.get(reg.index()).copied().unwrap_or(false)
    }

    /// The operand with each variable replaced by its current value.
    fn renamed(&mut self, function: &mut Function, operand: Operand) -> Operand {
        match operand.kind() {
            Kind::Reg(reg) => operand.with_reg(self.value(function, reg)),
            Kind::Vector(vector) => {
                let mut regs: SmallVec<[VReg; 8]> = function.vector_regs(vector).into();
                if regs.iter().all(|reg| self.is_fixed(*reg)) {
                    return operand;
                }
                regs.iter_mut().for_each(|reg| *reg = self.value(function, *reg));
                let vector = function.vector(&regs);
                operand.with_vector(vector)
            }
            _ => operand,
        }
    }

    fn value(&mut self, function: &mut Function, variable: VReg) -> VReg {
        if self.is_fixed(variable) {
            return variable;
        }
        if let Some(value) = self.current[variable].last() {
            return *value;
        }
        if let Some((value, _)) = self.undefined.get(&variable) {
            return *value;
        }
        let value = function.new_like(variable);
        let inst = function.make(Op::UNDEF);
        function.set_arg(inst, Role::D, Operand::reg(value));
        self.undefined.insert(variable, (value, inst));
        value
    }

    fn define(&mut self, function: &mut Function, inst: InstId, at: usize, defined: &mut Vec<VReg>) {
        let operand = function.args(inst)[at];
        let mut fixed = true;
        function.for_each_reg(operand, |reg| fixed &= self.is_fixed(reg));
        if fixed {
            return;
        }
        let fresh = |renamer: &mut Renamer, function: &mut Function, variable: VReg, defined: &mut Vec<VReg>| {
            if renamer.is_fixed(variable) {
                return variable;
            }
            let value = function.new_like(variable);
            renamer.current[variable].push(value);
            defined.push(variable);
            value
        };
        let renamed = match operand.kind() {
            Kind::Reg(reg) => operand.with_reg(fresh(self, function, reg, defined)),
            Kind::Vector(vector) => {
                let mut regs: SmallVec<[VReg; 8]> = function.vector_regs(vector).into();
                regs.iter_mut().for_each(|reg| *reg = fresh(self, function, *reg, defined));
                let vector = function.vector(&regs);
                operand.with_vector(vector)
            }
            _ => operand,
        };
        function.args_mut(inst)[at] = renamed;
    }
}
