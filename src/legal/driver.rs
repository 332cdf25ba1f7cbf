//! The fixpoint loop of LateExpansionUnsupportedOps: expands what earlier phases left or
//! introduced.
//!
//! Visits the blocks in reverse postorder and, unless the knob forbids it, searches a block again
//! after each expansion. Unreachable blocks are removed at the end if anything changed.

use super::backend::is_of;
use super::expand;
use super::knobs::Knobs;
use crate::ori::Function;
use crate::ori::cfg::Cfg;
use crate::tables::{Family, Knob};

/// Expands all operations of these families; returns whether there were any.
pub fn converge(function: &mut Function, knobs: &Knobs, families: &[Family]) -> bool {
    let cfg = Cfg::new(function);
    let mut changed = false;
    for block in &cfg.rpo {
        let mut block = *block;
        loop {
            let next = function[block].iter().position(|i| is_of(function[*i].op, families));
            let Some(at) = next else { break };
            // If the expansion branches, the rest of the block is in a new block; continue there.
            block = expand::one(function, block, at);
            changed = true;
            if !knobs.is_on(Knob::MergeEquivalentConditionalFlowBudget) {
                break;
            }
        }
    }
    if changed {
        let cfg = Cfg::new(function);
        function.retain_blocks(|block| cfg.reachable(*block));
    }
    changed
}
