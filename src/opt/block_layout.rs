//! Block layout: jump threading, removal of unreachable blocks, branch inversion and NOP removal
//! (phases PlaceBlocksInSourceOrder and OriRemoveNopCode).
//!
//! Blocks keep their source order. Every block keeps its terminator; branches to the next block are
//! dropped only when instructions are encoded.

use crate::analysis::PassCx;
use crate::ori::{Block, Function, InstId, Kind, Operand};
use crate::tables::{Mods, Op, Prop, Role};
use cranelift_entity::SecondaryMap;

/// Jump threading: redirects branches to blocks that only branch, and removes unreachable blocks.
pub fn thread_jumps(cx: &mut PassCx) {
    thread(cx.function);
    cx.invalidate(&[]);
    let cfg = cx.cfg();
    cx.function.retain_blocks(|b| cfg.reachable(*b));
}

/// Inverts branches so that the fall-through replaces a branch.
pub fn turn_branches(cx: &mut PassCx) {
    let function = &mut *cx.function;
    for place in 0..function.layout().len().saturating_sub(1) {
        turn(function, function.layout()[place], function.layout()[place + 1]);
    }
}

/// Redirects branches to a block that only branches to that block's target.
fn thread(function: &mut Function) {
    let mut onward: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    for block in function.layout() {
        if let [only] = function[*block][..]
            && is_jump(function, only)
            && function[only].guard.is_null()
            && let Kind::Label(target) = function.arg(only, Role::Target).kind()
        {
            onward[*block] = Some(target);
        }
    }
    // Reconvergence points stay where BSSY says.
    for inst in function.layout().iter().flat_map(|b| &function[*b]) {
        if let Kind::Label(target) = function.arg(*inst, Role::Target).kind()
            && !function[*inst].op.has(Prop::Control)
        {
            onward[target] = None;
        }
    }
    // A cycle of such blocks has no end; any of its blocks will do.
    let end = |mut block: Block| {
        for _ in 0..MOST_STEPS {
            let Some(next) = onward[block] else { break };
            block = next;
        }
        block
    };
    for block in function.layout().to_vec() {
        for i in function.first_terminator(block)..function[block].len() {
            let inst = function[block][i];
            for operand in function.args_mut(inst) {
                if let Kind::Label(target) = operand.kind() {
                    *operand = Operand::label(end(target));
                }
            }
        }
    }
}

/// Maximum length of a chain of such blocks that is followed.
const MOST_STEPS: usize = 64;

/// Whether an instruction is a branch with no operands but a guard and a target.
pub fn is_jump(function: &Function, inst: InstId) -> bool {
    let bare = function.args(inst).iter().all(|o| matches!(o.kind(), Kind::Label(_) | Kind::Null));
    function[inst].op == Op::BRA && bare && function[inst].mods == Mods::default()
}

/// Rewrites `@p BRA next; BRA other` to `@!p BRA other; BRA next`.
fn turn(function: &mut Function, block: Block, next: Block) {
    let [.., conditional, last] = function[block][..] else { return };
    let guard = function[conditional].guard;
    let (to, other) = (function.arg(conditional, Role::Target), function.arg(last, Role::Target));
    let whole = is_jump(function, conditional)
        && is_jump(function, last)
        && guard.as_reg().is_some()
        && function[last].guard.is_null();
    if whole && to == Operand::label(next) && other != to {
        function[conditional].guard = guard.inverted();
        function.set_arg(conditional, Role::Target, other);
        function.set_arg(last, Role::Target, to);
    }
}

/// Removes NOPs that lowering left. Branches to the next block are dropped only during encoding, so
/// every block still ends with its terminator here.
pub fn remove_nops(cx: &mut PassCx) {
    let function = &mut *cx.function;
    if function.watched().is_some() {
        // With debug information they mark lines.
        return;
    }
    for block in function.layout().to_vec() {
        let insts = std::mem::take(&mut function[block]);
        function[block] = insts.into_iter().filter(|i| function[*i].op != Op::NOP).collect();
    }
}
