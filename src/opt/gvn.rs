//! Phase GeneralOptimize: what was computed already is not computed again.
//!
//! Input: a function in SSA form. Output: the same, in which no operand names the result of a pure instruction that repeats one that dominates
//! it; the repetitions are left for dead-code removal. Invariant: only operations of the property `pure`, unguarded, with operands
//! that mean the same everywhere. Constants are left to the operands that take them.

use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, is_pure};
use crate::opt::copy_propagation::{free_pair, rename};
use crate::ori::cfg::Dominators;
use crate::ori::hash::{Quick, QuickMap};
use crate::ori::{Block, Function, InstId, Kind, VReg};
use crate::tables::Op;
use crate::tables::ori::Direction;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

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
    let mut source: SecondaryMap<VReg, Option<VReg>> = SecondaryMap::new();
    // A block, then all that it dominates.
    let mut work = vec![function.entry()];
    while let Some(block) = work.pop() {
        enter(function, &dominators, block, &mut known, &mut source);
        work.extend(children[block].iter());
    }
    // The inputs of PHIs come from blocks that were visited later.
    for block in &cfg.rpo {
        for i in 0..function.blocks[*block].len() {
            rename(function, &source, function.blocks[*block][i]);
        }
    }
}

/// Looks at one block.
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

/// A number for what decides the results of a pure instruction with operands that mean the same everywhere.
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

/// Whether two pure instructions have the same results, and all that are asked of the second are results of the first.
fn alike(function: &Function, first: InstId, again: InstId) -> bool {
    let (one, two) = (&function.insts[first], &function.insts[again]);
    let (these, those) = (function.args(first), function.args(again));
    let same = |i: usize| match function.direction(again, i) {
        Direction::Def => these[i].is_null() == those[i].is_null(),
        _ => these[i] == those[i],
    };
    one.op == two.op && one.mods == two.mods && these.len() == those.len() && (0..those.len()).all(same)
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
