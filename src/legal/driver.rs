//! The convergence loop of LateExpansionUnsupportedOps.
//!
//! Input: a function in which earlier phases may have left or made operations to expand. Output: the same without them. Blocks are walked in reverse
//! post-order; each is looked at again after a rewrite, as far as the knob lets it. Invariant: the graph is built anew only where a block changed.

use super::backend::is_of;
use super::expand;
use super::knobs::Knobs;
use crate::ori::Function;
use crate::ori::cfg::Cfg;
use crate::tables::{Family, Knob};

/// Expands operations of these families; says whether there were any.
pub fn converge(function: &mut Function, knobs: &Knobs, families: &[Family]) -> bool {
    let cfg = Cfg::new(function);
    let mut changed = false;
    for block in &cfg.rpo {
        let mut block = *block;
        loop {
            let next = function.blocks[block].iter().position(|i| is_of(function.insts[*i].op, families));
            let Some(at) = next else { break };
            // What stood behind the operation stands in another block now, if the expansion branches.
            block = expand::one(function, block, at);
            changed = true;
            if !knobs.is_on(Knob::MergeEquivalentConditionalFlowBudget) {
                break;
            }
        }
    }
    if changed {
        let cfg = Cfg::new(function);
        function.layout.retain(|block| cfg.reachable(*block));
    }
    changed
}
