//! Barriers of a block (PTX ISA 9.7.13.1): sync, arrive, reductions.
//!
//! Input: threads that stand at a barrier. Output: threads that go on. Invariant: a warp arrives when all its threads that
//! have not ended stand at the barrier, and counts as a whole warp; without a count all warps that have not ended take part.

use super::memory::put;
use super::program::{Sink, Src};
use super::state::{Block, LANES, Thread, Wait};
use crate::sim::fault::Fault;
use crate::tables::ptx::BarrierOp;

/// Barriers that a block has.
pub const BARRIERS: usize = 16;

/// What an instruction does at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sync,
    Arrive,
    Reduce(BarrierOp),
}

/// A barrier instruction.
#[derive(Clone, Debug)]
pub struct Barrier {
    pub kind: Kind,
    pub number: Src,
    pub count: Option<Src>,
    pub predicate: Option<Src>,
    pub dst: Sink,
}

/// The state of one barrier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named {
    arrivals: u32,
    /// Warps that have arrived, one bit each.
    warps: u32,
    /// Threads that take part, where it is said.
    count: Option<u32>,
    /// How many predicates were given, and how many were true.
    given: u32,
    ones: u32,
}

/// What a thread brings to a barrier: the instruction's operands, evaluated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    pub kind: Kind,
    pub number: u8,
    pub count: Option<u32>,
    pub predicate: bool,
    pub dst: Sink,
}

/// Lets warps arrive whose threads are all there, and completes barriers. Whether anything happened; a fault with its warp and lane.
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
