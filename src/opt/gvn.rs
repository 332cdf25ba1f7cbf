//! Global value numbering: replaces uses of a pure instruction by the results of an equal one that
//! dominates it.
//!
//! Walks the dominator tree with a hash table (dominator-scoped CSE). Only unguarded operations
//! with the property `pure` whose operands mean the same everywhere take part; constants are left
//! to the operands that encode them. The repetitions are left for dead-code elimination.

use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, is_pure};
use crate::opt::copy_propagation::{free_pair, rename};
use crate::ori::cfg::Dominators;
use crate::ori::hash::{Quick, QuickMap};
use crate::ori::{Block, Function, InstId, Kind, VReg, table};
use crate::tables::Op;
use crate::tables::ori::Direction;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let (cfg, dominators) = (cx.cfg(), cx.dominators());
    let function = &mut *cx.function;
    let mut children: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in &cfg.rpo {
        if let Some(parent) = dominators.parent(*block) {
            children[parent].push(*block);
        }
    }
    let mut known: QuickMap<u64, (InstId, Block)> = QuickMap::default();
    let mut source: SecondaryMap<VReg, Option<VReg>> = table(function.regs.len());
    // Each block, then all that it dominates.
    let mut work = vec![function.entry()];
    while let Some(block) = work.pop() {
        enter(function, &dominators, block, &mut known, &mut source);
        work.extend(children[block].iter());
    }
    // Inputs of PHIs may come from blocks that were visited later.
    for block in &cfg.rpo {
        for i in 0..function.blocks[*block].len() {
            rename(function, &source, function.blocks[*block][i]);
        }
    }
}

/// Numbers the instructions of one block.
fn enter(
    function: &mut Function,
    dominators: &Dominators,
    block: Block,
    known: &mut QuickMap<u64, (InstId, Block)>,
    source: &mut SecondaryMap<VReg, Option<VReg>>,
) {
    for i in 0..function.blocks[block].len() {
        let inst = function.blocks[block][i];
        if function.insts[inst].op == Op::PHI {
            continue;
        }
        rename(function, source, inst);
        let Some(key) = key(function, inst) else { continue };
        match known.get(&key).copied() {
            Some((first, from)) if dominators.dominates(from, block) && alike(function, first, inst) => {
                repeat(function, first, inst, source);
            }
            _ => {
                known.insert(key, (inst, block));
            }
        }
    }
}

/// A hash of what determines the results of a pure instruction; `None` if an operand depends on the
/// position.
fn key(function: &Function, inst: InstId) -> Option<u64> {
    let data = &function.insts[inst];
    if !is_pure(function, inst) || data.op == Op::MOV {
        return None;
    }
    let mut steady = true;
    let mut hash = Quick::default();
    hash.write_u64(data.op as u64);
    data.mods.iter().for_each(|(kind, value)| hash.write_u64(kind as u64 | u64::from(value) << 32));
    for (i, operand) in function.args(inst).iter().enumerate() {
        function.for_each_reg(*operand, |reg| steady &= is_free(function, reg));
        steady &= !matches!(operand.kind(), Kind::Label(_) | Kind::Symbol(_) | Kind::Special(_));
        if function.direction(inst, i) != Direction::Def {
            operand.hash(&mut hash);
        }
    }
    steady.then(|| hash.finish())
}

/// Whether two pure instructions compute the same results, and the first has every result that the
/// second has.
fn alike(function: &Function, first: InstId, again: InstId) -> bool {
    let (one, two) = (&function.insts[first], &function.insts[again]);
    let (these, those) = (function.args(first), function.args(again));
    let same = |i: usize| match function.direction(again, i) {
        Direction::Def => these[i].is_null() == those[i].is_null(),
        _ => these[i] == those[i],
    };
    one.op == two.op && one.mods == two.mods && these.len() == those.len() && (0..those.len()).all(same)
}

/// Records that the results of an instruction equal those of an earlier one.
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
