//! Branch optimization (phase OriBranchOpt): joins a block to the one before it in the layout where
//! each is the only neighbour of the other.
//!
//! Debug labels and inlined calls split straight code into many blocks; passes that work on one
//! block see all of it afterwards. Unreachable blocks go too. Runs outside SSA form.

use crate::analysis::PassCx;
use crate::ori::cfg::named_blocks;
use crate::ori::{Block, Function};
use crate::tables::Op;
use cranelift_entity::SecondaryMap;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let function = &mut *cx.function;
    let mut joined: SecondaryMap<Block, bool> = SecondaryMap::new();
    let named = named_blocks(function);
    // The exit that the surviving lanes take is the last in the layout, so nothing changes places.
    let mut into = function.entry();
    for pair in function.layout().to_vec().windows(2) {
        let [before, next] = [pair[0], pair[1]];
        let alone = cfg.succs[before][..] == [next] && cfg.preds[next][..] == [before] && next != function.entry();
        if !joined[before] {
            into = before;
        }
        if alone && !named[next] && jumps(function, into) {
            function[into].pop();
            let rest = std::mem::take(&mut function[next]);
            function[into].extend(rest);
            joined[next] = true;
        }
    }
    function.retain_blocks(|block| cfg.reachable(*block) && !joined[*block]);
    cx.invalidate(&[]);
}

/// Whether a block ends with a plain branch.
fn jumps(function: &Function, block: Block) -> bool {
    function[block].last().is_some_and(|inst| {
        let data = &function[*inst];
        data.op == Op::BRA && data.guard.is_null() && function.first_terminator(block) + 1 == function[block].len()
    })
}
