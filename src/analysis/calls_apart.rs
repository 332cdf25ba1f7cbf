//! Where lanes part, and some may call a function while the others wait or go on elsewhere.
//!
//! The lanes of a warp share its uniform registers. What lives in one behind such a branch must not
//! be in one that the callee may change, even if no path leads from the call to where it is read.
//! ptxas 13.0.88 keeps such values where calls leave them, or in general registers. What a block
//! makes and reads itself, without a call between, is safe as long as a warp changes from one
//! group of lanes to another only at branches, meetings and calls; ptxas's code counts on that too.

use super::divergence::{Varying, branch_varies};
use crate::ori::cfg::{BlockSet, Cfg};
use crate::ori::{Block, Function};
use crate::sorted::SortedMap;
use crate::tables::registers::Callee;

/// Whether a function calls another one, or the driver.
pub fn calls_functions(function: &Function) -> bool {
    let mut insts = function.layout().iter().flat_map(|block| &function[*block]);
    insts.any(|inst| function.callee(*inst).is_some_and(Callee::is_function))
}

/// The blocks whose branch lanes may take differently and from which some, but not all of those
/// that live, may come to a call, each with what is called there.
pub fn branches_before_calls(function: &Function, cfg: &Cfg, varying: &Varying) -> Vec<(Block, Callee)> {
    let mut calls: SortedMap<Callee, Vec<Block>> = SortedMap::new();
    for block in cfg.rpo.iter().filter(|block| varying.divergent.contains(**block)) {
        for callee in function[*block].iter().filter_map(|inst| function.callee(*inst)) {
            if callee.is_function() {
                calls.entry(callee).or_default().push(*block);
            }
        }
    }
    let mut branches = Vec::new();
    for (callee, blocks) in calls {
        let before = before(function, cfg, blocks);
        let parts = |block: &&Block| before.contains(**block) && branch_varies(function, cfg, **block, &varying.regs);
        branches.extend(cfg.rpo.iter().filter(parts).map(|block| (*block, callee)));
    }
    branches
}

/// The blocks at whose end some of these are yet to come.
fn before(function: &Function, cfg: &Cfg, mut work: Vec<Block>) -> BlockSet {
    let mut before = BlockSet::new(function.block_limit());
    while let Some(block) = work.pop() {
        work.extend(cfg.preds[block].iter().copied().filter(|pred| before.insert(*pred)));
    }
    before
}
