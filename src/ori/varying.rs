//! Which registers may differ between the lanes of a warp, and which blocks all living lanes of a warp run together.
//!
//! Input: a function, SSA or not, its graph, and for each conditional branch the block where its paths are made to meet
//! again, if they are. Output: the varying registers and the divergent blocks. Invariant: conservative. A register is
//! uniform only if each of its definitions has uniform sources, gives the same to all lanes, and stands in a block that all
//! living lanes run together; a block is convergent only if no path leads to it from a divergent branch without passing
//! the place where that branch's lanes meet, nor from a call or from the entry of a device function.

use super::cfg::{BlockSet, Cfg, reach};
use super::function::{Block, Convention, Function, InstId};
use super::liveness::RegSet;
use super::operand::Kind;
use crate::tables::encoding::special_is_uniform;
use crate::tables::{Op, Prop, Role};

/// Result of the analysis.
pub struct Varying {
    pub regs: RegSet,
    pub divergent: BlockSet,
}

/// Computes both; `meet` gives the block where the lanes of a block's branch meet again, or `None` where nothing makes
/// them meet.
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
                // Where lanes are apart before the branch, they are so up to a place behind the one where its own lanes meet.
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

/// Everything behind a block is divergent. `beyond` holds the blocks of which that is known, so that each is looked at once.
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

/// Whether the lanes of a warp may be apart in a block whatever they did before: a device function may be called by some of
/// them only, and the lanes of a call need not come back together.
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

/// Whether a block ends in a branch that lanes may take differently.
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
