//! Divergence analysis: which registers may differ between the lanes of a warp, and which blocks
//! may execute with only some of its living lanes.
//!
//! Works in or out of SSA form. The caller supplies the reconvergence point of each conditional
//! branch, if there is one. The result is conservative. A register is uniform only if each of its
//! definitions has uniform sources, gives all lanes the same result, and is in a convergent block.
//! A block is convergent only if every path to it from a divergent branch passes the reconvergence
//! point of that branch, and no path leads to it from a call or from the entry of a device
//! function.

use crate::ori::cfg::{BlockSet, Cfg, reach};
use crate::ori::liveness::RegSet;
use crate::ori::{Block, Convention, Function, InstId, Kind};
use crate::tables::encoding::special_is_uniform;
use crate::tables::{Op, Prop, Role};

/// The varying registers and the divergent blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varying {
    /// Registers that may differ between lanes.
    pub regs: RegSet,
    /// Blocks that may execute with only some of the living lanes.
    pub divergent: BlockSet,
}

/// Computes both; `meet` returns the reconvergence point of a block's branch, or `None` if there is
/// none.
pub fn analyse(function: &Function, cfg: &Cfg, meet: impl Fn(Block) -> Option<Block>) -> Varying {
    let limit = function.block_limit();
    let mut regs = RegSet::new(function.regs.len());
    let mut divergent = BlockSet::new(limit);
    let mut seen_branches = BlockSet::new(limit);
    let mut beyond = BlockSet::new(limit);
    for block in cfg.rpo.iter().filter(|b| comes_apart(function, **b)) {
        divergent.insert(*block);
        part_behind(cfg, *block, &mut beyond, &mut divergent);
    }
    loop {
        let mut changed = false;
        for block in &cfg.rpo {
            for inst in &function.blocks[*block] {
                if result_varies(function, cfg, *block, *inst, &regs, &divergent) {
                    function.for_each_def(*inst, |reg| changed |= regs.insert(reg));
                }
            }
            if !seen_branches.contains(*block) && branch_varies(function, cfg, *block, &regs) {
                seen_branches.insert(*block);
                let meet = meet(*block);
                // If lanes are diverged before the branch, they stay so beyond its reconvergence
                // point, so its region adds nothing.
                if meet.is_some() && divergent.contains(*block) {
                    continue;
                }
                match meet {
                    None => part_behind(cfg, *block, &mut beyond, &mut divergent),
                    Some(_) => reach(cfg, &cfg.succs[*block], meet, limit).iter().for_each(|b| {
                        divergent.insert(*b);
                    }),
                }
                changed = true;
            }
        }
        if !changed {
            return Varying { regs, divergent };
        }
    }
}

/// Marks everything reachable from a block as divergent. `beyond` has the blocks already visited.
fn part_behind(cfg: &Cfg, block: Block, beyond: &mut BlockSet, divergent: &mut BlockSet) {
    let mut work = vec![block];
    while let Some(block) = work.pop() {
        for succ in &cfg.succs[block] {
            if beyond.insert(*succ) {
                divergent.insert(*succ);
                work.push(*succ);
            }
        }
    }
}

/// Whether lanes may be diverged in a block regardless of its predecessors: only some lanes may
/// call a device function, and the lanes of a call need not reconverge.
fn comes_apart(function: &Function, block: Block) -> bool {
    let entered = function.convention == Convention::Device && block == function.entry();
    entered || function.blocks[block].iter().any(|i| function.insts[*i].op == Op::CALL)
}

fn result_varies(
    function: &Function,
    cfg: &Cfg,
    block: Block,
    inst: InstId,
    regs: &RegSet,
    divergent: &BlockSet,
) -> bool {
    let data = &function.insts[inst];
    if divergent.contains(block) || data.op.has(Prop::VaryingResult) || data.op.has(Prop::ReadsMemory) {
        return true;
    }
    if data.op == Op::PHI && cfg.preds[block].iter().any(|p| divergent.contains(*p)) {
        return true;
    }
    if let Kind::Special(number) = function.arg(inst, Role::S).kind() {
        return !special_is_uniform(number);
    }
    if data.op.has(Prop::WarpUniformResult) {
        return false;
    }
    let mut varies = false;
    function.for_each_use(inst, |reg| varies |= regs.contains(reg));
    varies
}

/// Whether a block ends with a branch that lanes may take differently.
pub fn branch_varies(function: &Function, cfg: &Cfg, block: Block, regs: &RegSet) -> bool {
    if cfg.succs[block].len() < 2 {
        return false;
    }
    let mut varies = false;
    for inst in function.blocks[block].iter().rev().take_while(|i| function.insts[**i].op.has(Prop::Control)) {
        function.for_each_use(*inst, |reg| varies |= regs.contains(reg));
    }
    varies
}
