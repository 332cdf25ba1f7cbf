//! Limits the pressure on the uniform register file: drops values from the set where too many live;
//! and tells where general registers are too few.
//!
//! Nowhere are more values of the set live than the file has registers, minus a reserve for
//! legalization, nor across a call more than calls preserve. These values are therefore never
//! spilled; reloading one would write a uniform register where lanes may be diverged.

use super::candidates::Candidates;
use super::twins::Places;
use crate::analysis::loops::Loops;
use crate::ori::cfg::{BlockSet, Cfg};
use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, VReg};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::Op;
use crate::tables::registers::{Callee, kept_across_calls};

/// Registers that are not given out, or left to what the operand legalizer moves there, and to
/// pairs that do not fill every gap.
const RESERVE: usize = 16;

/// Rounds after which nothing moves at all.
const ROUNDS: usize = 32;

/// Shrinks the set until it fits; false where nothing is left of it. `ends` are the blocks behind
/// whose branch some lanes may call and change registers of the others.
pub fn relieve(
    function: &mut Function,
    (places, ends): (&Places, &SortedMap<Block, usize>),
    liveness: &Liveness,
    candidates: &mut Candidates,
) -> bool {
    let count = function.target().info().map_or(0, |g| g.ur_count as usize);
    let numbers = function.regs().values().filter(|data| data.file == File::UR).filter_map(|data| data.phys);
    let reserved = numbers.collect::<SortedSet<_>>().len();
    let kept = (0..count).filter(|n| kept_across_calls(File::UR.name(), *n as u16)).count();
    let limits = Limits {
        anywhere: count.saturating_sub(RESERVE + reserved),
        across_calls: kept.saturating_sub(RESERVE / 2),
        predicates: 5,
        calls_behind: false,
    };
    for _ in 0..ROUNDS {
        if candidates.is_empty() {
            return false;
        }
        let mut dropped = false;
        for block in &places.cfg.rpo {
            let limits = Limits { calls_behind: ends.contains_key(block), ..limits };
            dropped |= !fits(function, *block, liveness, candidates, &limits)
                && give_up(function, *block, liveness, candidates, &limits);
        }
        if !dropped {
            return true;
        }
        candidates.settle(function, places);
    }
    false
}

/// The blocks of loops through which more words live than the kernel has general registers.
pub fn crowded(function: &Function, cfg: &Cfg, loops: &Loops, liveness: &Liveness) -> BlockSet {
    let mut crowded = BlockSet::new(function.block_limit());
    let most = function
        .target()
        .info()
        .map_or(u32::MAX, |info| info.reg_limit)
        .min(function.attributes().max_registers.unwrap_or(u32::MAX));
    for id in loops.all.keys() {
        let words = |latch: &Block| liveness.live[*latch].iter().filter(|reg| function[**reg].file == File::R).count();
        let live = loops.all[id].latches.iter().map(words).max().unwrap_or(0);
        if live > (most as usize).saturating_sub(RESERVE) {
            cfg.rpo.iter().filter(|block| loops.contains(id, **block)).for_each(|block| {
                crowded.insert(*block);
            });
        }
    }
    crowded
}

struct Limits {
    anywhere: usize,
    across_calls: usize,
    predicates: usize,
    /// Whether behind the block's branch some lanes may call and change registers of the others.
    calls_behind: bool,
}

/// Whether so few values of the set live at the end of a block or are read in it that they fit
/// wherever they live.
fn fits(function: &Function, block: Block, liveness: &Liveness, candidates: &Candidates, limits: &Limits) -> bool {
    let (mut words, mut bits, mut calls) = (0, 0, limits.calls_behind);
    let mut note = |reg: VReg| {
        if candidates.contains(reg) {
            *(if function[reg].file == File::R { &mut words } else { &mut bits }) += 1;
        }
    };
    liveness.live[block].iter().for_each(|reg| note(*reg));
    for inst in &function[block] {
        function.for_each_use(*inst, &mut note);
        calls |= function.callee(*inst).is_some_and(Callee::is_function);
    }
    !calls && words <= limits.anywhere && bits <= limits.predicates
}

/// Gives up values of the set in a block, seen from its end to its start; whether there were some.
fn give_up(
    function: &Function,
    block: Block,
    liveness: &Liveness,
    candidates: &mut Candidates,
    limits: &Limits,
) -> bool {
    let (mut given_up, mut known) = (false, SortedMap::new());
    let at_end = liveness.live[block].iter().copied().filter(|reg| candidates.contains(*reg));
    let (mut words, mut bits): (SortedSet<VReg>, SortedSet<VReg>) =
        at_end.partition(|reg| function[*reg].file == File::R);
    let mut cut = |candidates: &mut Candidates, live: &mut SortedSet<VReg>, limit: usize| {
        while live.len() > limit {
            // What has left since with a value that was given up needs no register.
            live.retain(|reg| candidates.contains(*reg));
            // What no crowded loop has is given up first, then the one with the fewest readers.
            let mut serves = |reg: VReg| *known.entry(reg).or_insert_with(|| candidates.serves_a_loop(function, reg));
            let least = live.iter().copied().min_by_key(|reg| (serves(*reg), candidates.readers(*reg).len()));
            let Some(reg) = least.filter(|_| live.len() > limit) else { return };
            live.remove(&reg);
            candidates.give_up(function, reg);
            given_up = true;
        }
    };
    if limits.calls_behind {
        cut(candidates, &mut words, limits.across_calls);
        cut(candidates, &mut bits, 0);
    }
    for inst in function[block].iter().rev() {
        cut(candidates, &mut words, limits.anywhere);
        cut(candidates, &mut bits, limits.predicates);
        function.for_each_def(*inst, |reg| {
            words.remove(&reg);
            bits.remove(&reg);
        });
        if function.callee(*inst).is_some_and(Callee::is_function) {
            cut(candidates, &mut words, limits.across_calls);
            cut(candidates, &mut bits, 0);
        }
        if function[*inst].op == Op::PHI {
            continue;
        }
        function.for_each_use(*inst, |reg| {
            if candidates.contains(reg) {
                let live = if function[reg].file == File::R { &mut words } else { &mut bits };
                live.insert(reg);
            }
        });
    }
    cut(candidates, &mut words, limits.anywhere);
    cut(candidates, &mut bits, limits.predicates);
    given_up
}
