//! Phase GeneralOptimize: what was computed already is not computed again.
//!
//! Input: a function in SSA form. Output: the same, in which no operand names the result of a pure instruction that repeats one that dominates
//! it; the repetitions are left for dead-code removal. Invariant: only operations of the property `pure`, unguarded, with operands
//! that mean the same everywhere. Constants are left to the operands that take them.

use super::copies::{free_pair, rename};
use super::values::{is_free, is_pure};
use crate::ori::cfg::Cfg;
use crate::ori::{Block, Function, InstId, Kind, Operand, VReg};
use crate::tables::ori::Direction;
use crate::tables::{Mods, Op};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::collections::HashMap;

/// What decides the results of a pure instruction.
type Key = (Op, Mods, SmallVec<[Operand; 8]>);

enum Step {
    Enter(Block),
    Leave(Vec<Key>),
}

pub fn run(function: &mut Function) {
    let cfg = Cfg::new(function);
    let dominators = cfg.dominators();
    let mut children: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in &cfg.rpo {
        if let Some(parent) = dominators.parent(*block) {
            children[parent].push(*block);
        }
    }
    let mut known: HashMap<Key, InstId> = HashMap::new();
    let mut source: SecondaryMap<VReg, Option<VReg>> = SecondaryMap::new();
    let mut work = vec![Step::Enter(function.entry())];
    while let Some(step) = work.pop() {
        match step {
            Step::Leave(keys) => keys.iter().for_each(|key| {
                known.remove(key);
            }),
            Step::Enter(block) => {
                let keys = enter(function, block, &mut known, &mut source);
                work.push(Step::Leave(keys));
                work.extend(children[block].iter().map(|c| Step::Enter(*c)));
            }
        }
    }
    // The inputs of PHIs come from blocks that were visited later.
    for block in &cfg.rpo {
        for i in 0..function.blocks[*block].len() {
            rename(function, &source, function.blocks[*block][i]);
        }
    }
}

/// Looks at one block; the result is what it added.
fn enter(
    function: &mut Function,
    block: Block,
    known: &mut HashMap<Key, InstId>,
    source: &mut SecondaryMap<VReg, Option<VReg>>,
) -> Vec<Key> {
    let mut added = Vec::new();
    for i in 0..function.blocks[block].len() {
        let inst = function.blocks[block][i];
        if function.insts[inst].op == Op::PHI {
            continue;
        }
        rename(function, source, inst);
        let Some(key) = key(function, inst) else { continue };
        match known.get(&key).copied() {
            Some(first) => repeat(function, first, inst, source),
            None => {
                known.insert(key.clone(), inst);
                added.push(key);
            }
        }
    }
    added
}

fn key(function: &Function, inst: InstId) -> Option<Key> {
    let data = &function.insts[inst];
    if !is_pure(function, inst) || data.op == Op::MOV {
        return None;
    }
    let mut steady = true;
    let mut operands = SmallVec::new();
    for (i, operand) in function.args(inst).iter().enumerate() {
        if function.direction(inst, i) == Direction::Def {
            function.for_each_reg(*operand, |reg| steady &= is_free(function, reg));
            // Where a result is asked for, the other instruction must give it.
            operands.push(if operand.is_null() { Operand::NULL } else { Operand::zero() });
            continue;
        }
        function.for_each_reg(*operand, |reg| steady &= is_free(function, reg));
        steady &= !matches!(operand.kind(), Kind::Label(_) | Kind::Symbol(_) | Kind::Special(_));
        operands.push(*operand);
    }
    steady.then_some((data.op, data.mods, operands))
}

/// Notes that the results of an instruction are those of an earlier one.
fn repeat(function: &Function, first: InstId, again: InstId, source: &mut SecondaryMap<VReg, Option<VReg>>) {
    let results = |inst| {
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        function.for_each_def(inst, |reg| regs.push(reg));
        regs
    };
    let pairs: SmallVec<[(VReg, VReg); 4]> = results(again).into_iter().zip(results(first)).collect();
    if pairs.iter().all(|(d, s)| free_pair(function, *d, *s)) {
        pairs.into_iter().for_each(|(d, s)| source[d] = Some(s));
    }
}
