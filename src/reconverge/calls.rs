//! Calls of functions of the driver: the lanes that call one together wait for each other behind it
//! (BSSY and BSYNC), before the first instruction that wants them together or the end of the block.
//! Calls that nothing of the kind parts share one region.
//!
//! A function of the driver returns without holding what another lane of the warp waits for, so the
//! waiting cannot block. Where lanes are apart anyway, and before the end of a thread, nothing is
//! added.

use super::insert::{branch, region_inst, writes_uniform};
use crate::analysis::PassCx;
use crate::analysis::divergence::is_meeting;
use crate::ori::{Block, File, Function, InstId, Operand};
use crate::tables::registers::Callee;
use crate::tables::{Op, Prop, Role};

/// Adds the regions; whether there are any.
pub fn hold(cx: &mut PassCx) -> bool {
    let is_called = |inst: &InstId| is_call(cx.function, *inst);
    if !cx.function.layout().iter().flat_map(|block| &cx.function[*block]).any(is_called) {
        return false;
    }
    let (lanes, function) = (cx.divergence(), &mut *cx.function);
    let before = function.insts().len();
    for block in function.take_blocks(0) {
        function.place_blocks([block]);
        if function[block].iter().any(|inst| is_call(function, *inst)) {
            hold_in(function, block, !lanes.divergent.contains(block));
        }
    }
    function.insts().len() > before
}

fn is_call(function: &Function, inst: InstId) -> bool {
    matches!(function.callee(inst), Some(Callee::Driver))
}

/// Adds the regions of a block, whose lanes come `together`. What follows a region stands in a
/// block of its own.
fn hold_in(function: &mut Function, block: Block, mut together: bool) {
    let insts = std::mem::take(&mut function[block]);
    // Whether something other than the end of the thread follows that wants lanes together.
    let mut goes_on = vec![false; insts.len()];
    let mut next = false;
    for (place, inst) in insts.iter().enumerate().rev() {
        if wants_all(function, *inst) {
            next = function[*inst].op != Op::EXIT;
        }
        goes_on[place] = next;
    }
    let (mut at, mut open) = (block, None);
    for (place, inst) in insts.iter().enumerate() {
        if wants_all(function, *inst)
            && let Some(bssy) = open.take()
        {
            at = close(function, at, bssy);
        }
        together &= !function.callee(*inst).is_some_and(Callee::parts_lanes);
        together |= is_meeting(function, *inst);
        if together && goes_on[place] && open.is_none() && is_call(function, *inst) {
            let barrier = function.new_reg(File::B);
            let bssy = region_inst(function, Op::BSSY, barrier);
            function[bssy].line = function[*inst].line;
            function[at].push(bssy);
            open = Some(bssy);
        }
        function[at].push(*inst);
    }
}

/// Whether an instruction wants lanes together that came together.
fn wants_all(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    !is_call(function, inst) && (writes_uniform(function, inst) || op.has(Prop::Convergent) || op.has(Prop::Terminator))
}

/// Ends a region; returns the block behind it.
fn close(function: &mut Function, at: Block, bssy: InstId) -> Block {
    let barrier = function.arg(bssy, Role::B).as_reg().expect("a barrier");
    let tail = function.new_unplaced_block(Vec::new());
    function.set_arg(bssy, Role::Target, Operand::label(tail));
    let (bsync, on) = (region_inst(function, Op::BSYNC, barrier), branch(function, tail));
    let wait = function.new_unplaced_block(vec![bsync, on]);
    let on = branch(function, wait);
    function[at].push(on);
    function.place_blocks([wait, tail]);
    tail
}
