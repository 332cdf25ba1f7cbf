//! Executes the barriers of a block: sync, arrive and reductions (PTX ISA 9.7.13.1).
//!
//! A warp arrives once all of its live threads wait at the barrier, and it counts as a whole warp.
//! A barrier without a thread count is complete when every warp with live threads has arrived.

use super::memory::put;
use super::program::{Sink, Src};
use super::state::{Block, LANES, Thread, Wait};
use crate::sim::fault::Fault;
use crate::tables::ptx::BarrierOp;

/// Number of barriers in a block.
pub const BARRIERS: usize = 16;

/// What an instruction does at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `bar.sync`: arrive and wait.
    Sync,
    /// `bar.arrive`: arrive without waiting.
    Arrive,
    /// `bar.red`: arrive, wait, and reduce a predicate over the threads.
    Reduce(BarrierOp),
}

/// The operands of a barrier instruction.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// What the instruction does.
    pub kind: Kind,
    /// The barrier's number.
    pub number: Src,
    /// Number of participating threads, a multiple of the warp size.
    pub count: Option<Src>,
    /// The predicate of a reduction.
    pub predicate: Option<Src>,
    /// The destination of a reduction's result.
    pub dst: Sink,
}

/// The state of one barrier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named {
    arrivals: u32,
    /// Warps that have arrived, one bit each.
    warps: u32,
    /// Number of participating threads, if an operand gives it.
    count: Option<u32>,
    /// How many predicates the threads contributed, and how many of them were true.
    given: u32,
    ones: u32,
}

/// The operands of a barrier instruction as one thread evaluated them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// What the instruction does.
    pub kind: Kind,
    /// The barrier's number, below [`BARRIERS`].
    pub number: u8,
    /// Number of participating threads; `None` means the whole block.
    pub count: Option<u32>,
    /// The contribution to a reduction.
    pub predicate: bool,
    /// The destination of a reduction's result.
    pub dst: Sink,
}

/// Registers the arrival of each warp whose live threads all wait at one barrier, and completes
/// barriers. Returns whether any thread made progress.
///
/// # Errors
///
/// A fault, with the warp and lane that raised it.
pub fn advance(block: &mut Block) -> Result<bool, Box<(usize, usize, Fault)>> {
    let mut moved = false;
    for warp in 0..block.warps.len() {
        moved |= arrive(block, warp).map_err(|fault| {
            let waits = |thread: &Thread| matches!(thread.wait, Wait::Barrier(_));
            Box::new((warp, block.warps[warp].threads.iter().position(waits).unwrap_or(0), fault))
        })?;
    }
    for number in 0..BARRIERS {
        moved |= complete(block, number);
    }
    Ok(moved)
}

fn arrive(block: &mut Block, warp: usize) -> Result<bool, Fault> {
    let mut live = block.warps[warp].threads.iter().filter(|t| t.wait != Wait::Ended);
    let Some(Wait::Barrier(first)) = live.next().map(|t| t.wait) else { return Ok(false) };
    if !live.all(|t| matches!(t.wait, Wait::Barrier(other) if other.number == first.number)) {
        return Ok(false);
    }
    let named = &mut block.barriers[usize::from(first.number)];
    if named.arrivals != 0 && named.count != first.count {
        return Err(Fault::new(format!("barrier {} is used with two counts", first.number)));
    }
    named.count = first.count;
    named.arrivals += 1;
    named.warps |= 1 << warp;
    block.seen.arrive(warp, first.number, first.kind != Kind::Arrive);
    for thread in &mut block.warps[warp].threads {
        let Wait::Barrier(arrival) = thread.wait else { continue };
        if matches!(arrival.kind, Kind::Reduce(_)) {
            named.given += 1;
            named.ones += u32::from(arrival.predicate);
        }
        thread.wait = Wait::Block(arrival);
        if arrival.kind == Kind::Arrive {
            thread.wait = Wait::Nothing;
            thread.pc += 1;
        }
    }
    Ok(true)
}

fn complete(block: &mut Block, number: usize) -> bool {
    let named = block.barriers[number];
    let ended = |warp: &super::state::Warp| warp.threads.iter().all(|t| t.wait == Wait::Ended);
    let full = match named.count {
        Some(count) => named.arrivals * LANES as u32 >= count,
        None => block.warps.iter().enumerate().all(|(i, warp)| named.warps >> i & 1 != 0 || ended(warp)),
    };
    if named.arrivals == 0 || !full {
        return false;
    }
    for thread in block.warps.iter_mut().flat_map(|warp| &mut warp.threads) {
        let Wait::Block(arrival) = thread.wait else { continue };
        if usize::from(arrival.number) != number {
            continue;
        }
        let answer = match arrival.kind {
            Kind::Reduce(BarrierOp::Popc) => named.ones,
            Kind::Reduce(BarrierOp::And) => u32::from(named.ones == named.given),
            _ => u32::from(named.ones != 0),
        };
        put(thread, arrival.dst, answer.into());
        thread.wait = Wait::Nothing;
        thread.pc += 1;
    }
    block.barriers[number] = Named::default();
    block.seen.open(number);
    true
}
