//! Loops that may wait for another lane.
//!
//! Input: a function and its graph. Output: the blocks of each cycle one of whose branches depends on what a strong or
//! atomic read inside the cycle returned. Invariant: conservative; the dependence is followed through registers, in any
//! order of the cycle's instructions. A lane that leaves such a cycle must not be made to wait for those that are still in it: it may
//! hold what they wait for.

use crate::ori::cfg::{BlockSet, Cfg};
use crate::ori::liveness::RegSet;
use crate::ori::{Block, Function, InstId};
use crate::tables::Prop;

/// The blocks of all such cycles.
pub fn waiting_blocks(function: &Function, cfg: &Cfg) -> BlockSet {
    let mut set = BlockSet::new(function.block_limit());
    for members in &cfg.cycles().members {
        if waits(function, cfg, members) {
            members.iter().for_each(|b| {
                set.insert(*b);
            });
        }
    }
    set
}

fn waits(function: &Function, cfg: &Cfg, members: &[Block]) -> bool {
    let mut tainted = RegSet::new(function.regs.len());
    loop {
        let mut changed = false;
        for inst in members.iter().flat_map(|b| &function.blocks[*b]) {
            let mut hit = reads_what_others_write(function, *inst);
            function.for_each_use(*inst, |reg| hit |= tainted.contains(reg));
            if hit {
                function.for_each_def(*inst, |reg| changed |= tainted.insert(reg));
            }
        }
        if !changed {
            break;
        }
    }
    members.iter().any(|b| crate::ori::varying::branch_varies(function, cfg, *b, &tainted))
}

/// Whether an instruction reads memory in a way that sees what another thread writes meanwhile.
fn reads_what_others_write(function: &Function, inst: InstId) -> bool {
    let data = &function.insts[inst];
    let strong = || data.mods.iter().any(|(kind, v)| kind.text(v).starts_with("STRONG") || kind.text(v) == "MMIO");
    data.op.has(Prop::ReadsMemory) && (data.op.has(Prop::WritesMemory) || strong())
}
