//! Rematerialization before allocation: repeats cheap values before their readers where register
//! pressure is too high.
//!
//! Loads from constant banks, constants, reads of special registers that keep their values and
//! short chains of pure instructions over them are repeated, so that they live no longer than from
//! there to the reader. Their value depends on the text of the instructions alone, and a copy
//! dominates its readers. Where more live, so is what reads anchors: registers with one definition
//! that live at all readers. Every path from such a definition to a reader goes through the
//! instruction that is repeated, so the anchor still has the value that it read. Nothing moves
//! where the pressure is at most `repeated` (`repeated_in_loops` for copies inside loops,
//! [`ANCHORED`] and [`ANCHORED_DEEPER`] with anchors), nor below what values that cannot be
//! repeated need; copies inside loops with anchors are also made where at most [`FEWER`] registers
//! less let an SM hold more blocks. For large blocks an anchor may then live in place of what is
//! computed from it, one with several definitions too where none of them comes behind, and copies
//! read uniform registers.

mod bases;
mod candidates;
pub mod comparisons;
mod rewrite;
mod several;
mod sweep;
mod undefined;

use super::EXTRA_REGISTERS;
use super::ranges::{Gone, Ranges};
use crate::analysis::PassCx;
use crate::analysis::loops::Loops;
use crate::analysis::occupancy::{Occupancy, has_large_blocks};
use crate::arrays::Each;
use crate::ori::cfg::{Cfg, Dominators};
use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::tables::Tunable;
use crate::tables::passes::Analysis;
use crate::tables::registers::Callee;
use candidates::Candidates;
use cranelift_entity::SecondaryMap;
use sweep::{Limits, Sweep};

/// Registers below which nothing that reads registers which live anyway is worth an instruction,
/// outside loops and in them.
const ANCHORED: u32 = 48;
const ANCHORED_DEEPER: u32 = 160;
/// The same where calls destroy registers: fewer leave too few that they do not.
const CALLS: u32 = 24;
/// Most registers that are saved for the sake of more blocks on an SM.
const FEWER: u32 = 24;
/// Registers that are worth the same where they are too few for more blocks.
const LESS: u32 = 8;
/// Uniform registers with which some may live longer.
const UNIFORM: u32 = 32;
/// Registers below the limit of a function that stay free of this: those that the count adds, and
/// those between vectors.
const MARGIN: u32 = 4;

pub fn run(cx: &mut PassCx) {
    undefined::run(cx.function);
    cx.invalidate(&[Analysis::Cfg, Analysis::Dominators, Analysis::PostDominators, Analysis::Loops]);
    let (mut known, [kept, deeper]) = (Known::default(), kept(cx.function));
    if round(cx, Kind::default(), kept, &mut known) {
        round(cx, Kind { deeper: true, ..Kind::default() }, deeper, &mut known);
    }
    round(cx, Kind { anchored: true, ..Kind::default() }, ANCHORED, &mut known);
    round(cx, Kind { deeper: true, anchored: true, ..Kind::default() }, ANCHORED_DEEPER, &mut known);
    more_blocks(cx, known);
}

/// Repeats more of them in loops where an SM then holds more blocks.
fn more_blocks(cx: &mut PassCx, mut known: Known) {
    let Some(occupancy) = Occupancy::of(cx.function) else { return };
    let live = cx.liveness();
    let now = *known.most.get_or_insert_with(|| peak(cx.function, &live, File::R)) + EXTRA_REGISTERS;
    let blocks = occupancy.blocks(now as i32);
    let fewer = |registers: &u32| occupancy.blocks(*registers as i32) > blocks;
    let Some(step) = (now.saturating_sub(FEWER).max(kept(cx.function)[0])..now).rev().find(fewer) else { return };
    let wanted = step.saturating_sub(EXTRA_REGISTERS);
    round(cx, Kind { deeper: true, anchored: true, whole: true }, wanted, &mut known);
}

/// The same once the blocks are ordered, where many live: what was near its readers may be far from
/// them now, and what was scarce may no longer be.
pub fn again(cx: &mut PassCx) {
    let mut known = Known::default();
    if round(cx, Kind::default(), ANCHORED, &mut known) {
        round(cx, Kind { deeper: true, ..Kind::default() }, ANCHORED, &mut known);
    }
    round(cx, Kind { anchored: true, ..Kind::default() }, ANCHORED, &mut known);
    round(cx, Kind { deeper: true, anchored: true, ..Kind::default() }, ANCHORED_DEEPER, &mut known);
    more_blocks(cx, known);
}

/// What a round repeats: also in loops that the first definition is not in; also what reads
/// registers that live anyway.
#[derive(Clone, Copy, Default)]
struct Kind {
    deeper: bool,
    anchored: bool,
    /// Only where no more live then than is wanted.
    whole: bool,
}

/// Registers below which nothing is worth an instruction, outside loops and in them.
fn kept(function: &Function) -> [u32; 2] {
    [Tunable::Repeated, Tunable::RepeatedInLoops].each(|tunable| function.attributes().tuning.get(tunable))
}

/// Registers that may live.
fn limit(function: &Function, wanted: u32) -> u32 {
    function.attributes().max_registers.map_or(wanted, |most| wanted.min(most.saturating_sub(EXTRA_REGISTERS + MARGIN)))
}

/// What one round leaves to the next while nothing changes.
#[derive(Default)]
struct Known {
    /// The peak of general registers.
    most: Option<u32>,
    ranges: Option<(Ranges, Sweep)>,
    /// What may be repeated, with the [`Places::what`] that it depends on.
    found: Option<([bool; 3], Candidates)>,
}

/// One round, if more live than is wanted; whether more live than may live in loops, and values
/// live through loops that could be computed in them.
fn round(cx: &mut PassCx, kind: Kind, wanted: u32, known: &mut Known) -> bool {
    let (live, limit) = (cx.liveness(), limit(cx.function, wanted));
    if *known.most.get_or_insert_with(|| peak(cx.function, &live, File::R)) <= limit {
        return false;
    }
    let Kind { deeper, anchored, whole } = kind;
    let exchanged = whole && has_large_blocks(cx.function);
    let [_, in_loops] = kept(cx.function);
    let (cfg, loops, dominators) = (cx.cfg(), cx.loops(), cx.dominators());
    let uniform = exchanged && peak(cx.function, &live, File::UR) <= UNIFORM;
    let places = Places { cfg: &cfg, loops: &loops, dominators: &dominators, deeper, anchored, exchanged, uniform };
    let found = known.found.take().filter(|(what, _)| *what == places.what());
    let mut candidates =
        found.map_or_else(|| Candidates::new(cx.function, &places), |(_, found)| found.again(cx.function));
    let most = known.most;
    let saves = |least: u32| exchanged && most.is_some_and(|most| least + LESS <= most);
    if whole {
        let least = candidates.peak_of_others(cx.function, &cfg, &live);
        if least > limit && !saves(least) {
            return false;
        }
    }
    let lanes = uniform.then(|| cx.divergence());
    let function = &mut *cx.function;
    let from = || Ranges::from(function, &cfg, &Gone::default(), &live);
    let (mut ranges, sweep) =
        known.ranges.take().map_or_else(|| (from(), None), |(ranges, sweep)| (ranges, Some(sweep)));
    candidates.read(function, &places, lanes.as_deref(), &mut ranges);
    if candidates.all.is_empty() {
        known.found = Some((places.what(), candidates));
        return false;
    }
    let sweep = sweep.filter(|_| !candidates.extended).unwrap_or_else(|| Sweep::new(function, &ranges));
    let least = sweep.run(&mut candidates, (&places, &ranges), Limits { live: limit, calls: limit.max(CALLS) });
    if least.live > limit || least.calls > limit.max(CALLS) {
        candidates.forget();
        if !whole || saves(least.live) {
            sweep.run(&mut candidates, (&places, &ranges), least);
        }
    }
    let changed = candidates.all.iter().any(|c| c.chosen);
    if changed {
        rewrite::run(function, &places, &candidates, &ranges);
        *known = Known::default();
        cx.invalidate(&[Analysis::Cfg, Analysis::Dominators, Analysis::PostDominators, Analysis::Loops]);
    } else if !candidates.extended {
        known.ranges = Some((ranges, sweep));
    }
    let through = candidates.all.iter().flat_map(|c| &c.groups).any(|g| g.serves);
    if !changed {
        known.found = Some((places.what(), candidates));
    }
    through && (least.live > in_loops.min(limit) || least.calls > CALLS)
}

/// Most registers of a file that live at once, or general ones across a slow path with those that
/// it takes.
pub(super) fn peak(function: &Function, live: &Liveness, file: File) -> u32 {
    let taken = |inst: InstId| match function.callee(inst).filter(|_| file == File::R) {
        Some(Callee::SlowPath(taken)) => u32::from(taken),
        Some(Callee::Private(changes)) => u32::from(changes.end()),
        _ => 0,
    };
    peak_of(function, function.layout(), live, |reg| function[reg].file == file, taken)
}

/// Most of the registers that count which live at once, behind some instructions with what these
/// take.
fn peak_of(
    function: &Function,
    blocks: &[Block],
    live: &Liveness,
    counts: impl Fn(VReg) -> bool,
    taken: impl Fn(InstId) -> u32,
) -> u32 {
    // The number of the block in which a register that counts lives at the point at hand.
    let mut lives: SecondaryMap<VReg, u32> = table(function.regs().len());
    let mut most = 0;
    for (block, now) in blocks.iter().zip(1..) {
        let mut count = 0;
        for reg in live.live[*block].iter().copied().filter(|reg| counts(*reg)) {
            lives[reg] = now;
            count += 1;
        }
        most = most.max(count);
        for inst in function[*block].iter().rev() {
            if function[*inst].guard.is_null() {
                function.for_each_def(*inst, |reg| {
                    if std::mem::take(&mut lives[reg]) == now {
                        count -= 1;
                    }
                });
            }
            most = most.max(count + taken(*inst));
            function.for_each_use(*inst, |reg| {
                if lives[reg] != now && counts(reg) {
                    lives[reg] = now;
                    count += 1;
                }
            });
            most = most.max(count);
        }
    }
    most
}

/// Where values are computed again.
pub struct Places<'a> {
    pub cfg: &'a Cfg,
    pub loops: &'a Loops,
    dominators: &'a Dominators,
    /// Also in loops that the first definition is not in.
    deeper: bool,
    /// Also what reads registers that live there anyway.
    anchored: bool,
    /// Also what reads a register that lives in its place then.
    exchanged: bool,
    /// Also what reads uniform registers, where no lanes are apart: elsewhere others may be in code
    /// in which they do not live.
    uniform: bool,
}

impl Places<'_> {
    /// What it depends on whether an instruction may be repeated.
    fn what(&self) -> [bool; 3] {
        [self.anchored, self.exchanged, self.uniform]
    }

    /// The block that computes what a block reads and another one defines: the block itself, or one
    /// before the loops around it that the other one is not in.
    pub fn place(&self, block: Block, home: Block) -> Option<Block> {
        if self.deeper {
            return Some(block);
        }
        let mut at = block;
        loop {
            let outermost = self.loops.around(at).take_while(|id| !self.loops.contains(*id, home)).last();
            let Some(id) = outermost else { return Some(at) };
            at = self.dominators.parent(self.loops.all[id].header)?;
        }
    }

    /// How often a block is executed.
    pub fn frequency(&self, block: Block) -> f64 {
        10f64.powi(self.loops.depth(block).min(8) as i32)
    }
}

/// The block and the first point of each, by layout.
pub fn first_points(function: &Function) -> (Vec<(u32, Block)>, SecondaryMap<Block, u32>) {
    let (mut list, mut of, mut at) = (Vec::new(), SecondaryMap::new(), 0);
    for block in function.layout() {
        list.push((at, *block));
        of[*block] = at;
        at += 2 * function[*block].len() as u32;
    }
    (list, of)
}
