//! Loop unrolling (phase OriLoopUnrolling): the bodies of several iterations stand one behind the
//! other, without the branches between them.
//!
//! The loads of all copies are in flight together, and what counts the iterations is paid once.
//! - Innermost loops with one latch and one exit, both ends of one branch that compares a counter
//!   with a bound: see [`counter`]. No convergent operation, no call, no `.pragma "nounroll"`.
//! - A known number of iterations: the whole loop if it is short enough, otherwise
//!   [`FACTOR`] bodies a turn and the iterations that are left over in front of it.
//! - Any other number: [`FACTOR`] bodies a turn while so many iterations are certain, then at most
//!   [`HALF`] of them once, then the loop as it was.
//! - Lanes may leave in different iterations; each executes the iterations that it did before.
//!
//! Before the first construction of SSA form, so a copy keeps the registers of its original. The
//! work is bounded by the copies made: at most six of a short body, or [`MOST_WHOLE`] instructions.

mod copies;
mod counter;

use crate::analysis::PassCx;
use crate::analysis::loops::{LoopId, Loops};
use crate::ori::cfg::{Cfg, named_blocks};
use crate::ori::{Block, Function, InstId, Kind};
use crate::tables::{Family, Op, Prop};
use cranelift_entity::SecondaryMap;

/// Bodies in a turn of an unrolled loop, as ptxas has them.
const FACTOR: u32 = 4;
/// Bodies in the block for what is left over.
const HALF: u32 = 2;
/// Most instructions of a loop that is unrolled: of one that reads memory, and of any other. A sum
/// of 64 bits counts two. Source: ptxas 13.0.88 unrolls such loops of up to 18 to 45 instructions
/// as they end up; in a shipped library it leaves some from 31 on, counted as here, and with more
/// the kernels grow but take no fewer estimated cycles.
const MOST_READING: usize = 30;
const MOST_PLAIN: usize = 24;
/// Most instructions of all copies of a loop that is gone afterwards.
const MOST_WHOLE: usize = 320;
/// Most instructions of all copies in a function: what has thousands of loops would grow without
/// end.
const MOST_COPIES: usize = 1 << 16;
/// Instructions that an operation counts for which legalization expands.
const EXPANDED: usize = 12;
/// Most blocks of a loop.
const MOST_BLOCKS: usize = 12;

/// A loop that can be unrolled.
struct Shape {
    /// Its blocks, the header first and the latch last.
    blocks: Vec<Block>,
    header: Block,
    latch: Block,
    exit: Block,
    /// Number of its instructions, expansions included.
    size: usize,
    /// The largest number of instructions with which it is unrolled.
    limit: usize,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    if cx.function.attributes().rolled.all {
        cx.unchanged = true;
        return;
    }
    let (cfg, loops) = (cx.cfg(), cx.loops());
    if loops.all.is_empty() {
        cx.unchanged = true;
        return;
    }
    let named = named_blocks(cx.function);
    let mut inner: SecondaryMap<LoopId, bool> = SecondaryMap::with_default(true);
    loops.all.values().filter_map(|of| of.parent).for_each(|parent| inner[parent] = false);
    let (mut placed, before) = (Vec::new(), cx.function.insts().len());
    for id in loops.all.keys().filter(|id| inner[*id]) {
        let Some(shape) = shape(cx.function, &cfg, &loops, id, &named) else { continue };
        let Some(counter) = counter::find(cx.function, &cfg, &shape) else { continue };
        if cx.function.insts().len() - before > MOST_COPIES {
            break;
        }
        copies::unroll(cx.function, &cfg, &shape, &counter, &mut placed);
    }
    if !placed.is_empty() {
        cx.function.place_before(&placed);
        cx.invalidate(&[]);
    }
}

/// The loop's shape, if it is one that can be unrolled and small enough to be worth it.
fn shape(
    function: &Function,
    cfg: &Cfg,
    loops: &Loops,
    id: LoopId,
    named: &SecondaryMap<Block, bool>,
) -> Option<Shape> {
    let of = &loops.all[id];
    let header = of.header;
    let [latch] = of.latches[..] else { return None };
    let [conditional, last] = function[latch][function.first_terminator(latch)..] else { return None };
    let (one, other) = (function.branch_target(conditional)?, function.branch_target(last)?);
    let exit = if one == header { other } else { one };
    if exit == header || ![one, other].contains(&header) || loops.contains(id, exit) || header == function.entry() {
        return None;
    }
    let blocks = members(cfg, header, latch)?;
    let leaves = |block: Block| block != latch && cfg.succs[block].iter().any(|to| !loops.contains(id, *to));
    let kept = |block: Block| named[block] || function.attributes().rolled.blocks.contains(&block);
    if blocks.iter().any(|block| leaves(*block) || kept(*block)) {
        return None;
    }
    let (mut size, mut limit) = (0, MOST_PLAIN);
    for inst in blocks.iter().flat_map(|block| &function[*block]) {
        size += cost(function, *inst)?;
        limit = limit.max(limit_with(function, *inst));
        if size > MOST_READING {
            return None;
        }
    }
    Some(Shape { blocks, header, latch, exit, size, limit })
}

/// The blocks of a loop in reverse post-order, if there are few.
fn members(cfg: &Cfg, header: Block, latch: Block) -> Option<Vec<Block>> {
    let mut blocks = vec![header];
    let mut work = vec![latch];
    while let Some(block) = work.pop() {
        if !blocks.contains(&block) {
            blocks.push(block);
            work.extend(cfg.preds[block].iter().copied());
        }
        if blocks.len() > MOST_BLOCKS {
            return None;
        }
    }
    crate::sorted::by_key(&mut blocks, |block| cfg.number[*block]);
    Some(blocks)
}

/// What an instruction counts, if it may be copied.
fn cost(function: &Function, inst: InstId) -> Option<usize> {
    let data = &function[inst];
    let op = data.op;
    let mut fixed = false;
    function.for_each_def(inst, |reg| fixed |= function[reg].fixed.is_some() || function[reg].phys.is_some());
    let labels = function.args(inst).iter().any(|operand| matches!(operand.kind(), Kind::Label(_)));
    let jumps = op == Op::BRA;
    if fixed || op.has(Prop::Convergent) || !jumps && (op.has(Prop::Control) || op.has(Prop::Terminator) || labels) {
        return None;
    }
    let expanded = op.has(Prop::Pseudo) && Family::of(op).is_some();
    let free = jumps || op == Op::COPY || op == Op::UNDEF;
    Some(if expanded { EXPANDED } else { usize::from(!free) })
}

/// The most instructions of a loop with this instruction.
fn limit_with(function: &Function, inst: InstId) -> usize {
    if function[inst].op.has(Prop::ReadsMemory) { MOST_READING } else { MOST_PLAIN }
}
