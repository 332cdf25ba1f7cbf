//! The quickest order of each block, by estimate, with as many registers as are given.
//!
//! Several orders of a block are tried: filled by latency up to the registers that live elsewhere
//! anyway, with comparisons as they come or only where predicates are free, and the order in which
//! the block came. In the blocks where most time goes one may take more: what leaves as many blocks
//! on an SM where it leaves a share of `worth` at most, and fewer where it leaves `fewer_blocks`.
//! Uniform registers stay where they were, or enough; a predicate that finds no place costs
//! [`MOVED`] cycles. Measured on an H200: selective_scan took 41 % less time with four registers
//! more, lion_i64 14 % less with 25 more.

use super::block_order::lowest;
use super::estimate::Estimate;
use super::pressure_scheduler::Scratch;
use super::ready::Prefer;
use super::region::{ANY, Aim, Asked, PREDICATES, UNIFORM};
use super::sweep::Peaks;
use crate::analysis::loops::Loops;
use crate::analysis::occupancy::Occupancy;
use crate::arrays::Each;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, Function, InstId};
use crate::tables::{Prop, Tunable};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// How many registers below what is given make a block look at pressure: each is tried, since
/// loads that wait for a register wait for each other.
const SLACKS: [i32; 3] = [8, 4, 1];
/// No other order is tried where a block takes at most this multiple of what it must.
const NEAR: (i64, i64) = (9, 8);
/// Cycles of a predicate that goes to a register and back.
const MOVED: i64 = 16;
/// What a loop multiplies the time of its blocks by, and the share of the longest time from which
/// on a block may take more registers.
const TURNS: i64 = 8;
const HOT: i64 = 4;
/// Loops around a block that count.
const DEEPEST: u32 = 6;
/// Registers that the allocator adds to what lives.
const ADDED: i32 = 4;

/// Which blocks are ordered, and what they may take.
pub struct Quickest<'a> {
    pub live: &'a Liveness,
    pub loops: &'a Loops,
    /// What blocks take as they are, and the orders that were changed before.
    pub known: &'a SecondaryMap<Block, Option<Peaks>>,
    pub came: &'a SecondaryMap<Block, Vec<InstId>>,
    /// General registers that may live everywhere.
    pub room: i32,
}

/// A block that waits longer than it must.
struct Slow {
    block: Block,
    estimate: Estimate,
    cycles: i64,
    /// Cycles in all turns of the loops around it.
    time: i64,
}

/// How many registers an order may take, and what it must save then.
struct Rooms {
    tight: i32,
    wide: i32,
    most: i32,
    occupancy: Option<Occupancy>,
    /// Most per cent of a block's time that more registers may leave, with as many blocks on an SM
    /// and with fewer.
    worth: i64,
    fewer: i64,
}

impl Quickest<'_> {
    /// Orders these blocks.
    pub fn order(&mut self, function: &mut Function, blocks: &[Block], scratch: &mut Scratch) {
        let (slow, longest) = self.slow(function, blocks, scratch);
        for slow in slow {
            scratch.regions.clear();
            let known = self.known[slow.block];
            let old = known.unwrap_or_else(|| scratch.peaks(function, slow.block, self.live, &function[slow.block]));
            let rooms = Rooms::of(function, (self.room, scratch.all), slow.time >= longest / HOT);
            if let Some((order, needs)) = self.best(function, scratch, &slow, &old, &rooms) {
                function[slow.block] = order;
                self.room = self.room.max(needs);
            }
        }
    }

    /// The blocks that wait longer than they must, in the order of the layout, and the longest time
    /// of a block that waits.
    fn slow(&self, function: &Function, blocks: &[Block], scratch: &mut Scratch) -> (Vec<Slow>, i64) {
        let (mut slow, mut longest) = (Vec::new(), 0);
        for block in blocks {
            let insts = &function[*block];
            if !waits(function, insts) {
                continue;
            }
            let live = &self.live.live[*block];
            let tables = (&mut scratch.groups, &mut scratch.positions);
            let estimate = Estimate::new(function, insts, tables, |reg| live.binary_search(&reg).is_ok());
            let cycles = estimate.cycles(insts, &scratch.positions);
            let time = cycles.saturating_mul(TURNS.saturating_pow(self.loops.depth(*block).min(DEEPEST)));
            longest = longest.max(time);
            if cycles > estimate.bound() {
                slow.push(Slow { block: *block, estimate, cycles, time });
            }
        }
        (slow, longest)
    }

    /// The order of a block that takes the fewest cycles of those that are tried, and what it
    /// needs.
    fn best(
        &self,
        function: &Function,
        scratch: &mut Scratch,
        slow: &Slow,
        old: &Peaks,
        rooms: &Rooms,
    ) -> Option<(Vec<InstId>, i32)> {
        let (block, bound, mut best, mut found) = (slow.block, slow.estimate.bound(), slow.cycles, None);
        let mut judge = |scratch: &mut Scratch, order: Vec<InstId>, swept: Option<Peaks>| {
            let cycles = slow.estimate.cycles(&order, &scratch.positions);
            // What lives at once tells of most orders that they take too much.
            if cycles < best && swept.is_none_or(|swept| rooms.may_allow(swept.general, cycles, best)) {
                let new = scratch.peaks_of(function, block, self.live, &order, swept);
                let cycles = cycles + MOVED * i64::from((new.unplaced() - old.unplaced()).max(0));
                if cycles < best && new.uniform <= old.uniform.max(UNIFORM) && rooms.allow(new.needs, cycles, best) {
                    (best, found) = (cycles, Some((order, new.needs)));
                }
            }
            best * NEAR.1 <= bound * NEAR.0
        };
        let wide = Some((1, rooms.wide)).filter(|_| rooms.wide > rooms.tight);
        // Where more predicates live than there are, comparisons may also stand as they come.
        let any = Some(ANY).filter(|_| old.predicates >= PREDICATES);
        let mut made: SmallVec<[(Aim, Asked); 8]> = SmallVec::new();
        for (slack, within) in SLACKS.each(|slack| (slack, rooms.tight)).into_iter().chain(wide) {
            for predicates in [Some(old.predicates), any].into_iter().flatten() {
                let (from, prefer) = (within - slack, Prefer::Chains);
                let aim = Aim { from, fences: false, rises: false, trees: false, quads: false, predicates, prefer };
                if made.iter().any(|(old, asked)| asked.is_same(old, &aim)) {
                    continue;
                }
                let (order, swept) = lowest(function, block, self.live, scratch, aim);
                made.push((aim, scratch.work.asked));
                if judge(scratch, order, swept) {
                    return found;
                }
            }
        }
        if !self.came[block].is_empty() {
            judge(scratch, self.came[block].clone(), None);
        }
        found
    }
}

impl Rooms {
    /// Where this many live anyway of all that may, for a block that is hot or not.
    fn of(function: &Function, (tight, all): (i32, i32), hot: bool) -> Rooms {
        let occupancy = Occupancy::of(function).filter(|_| hot);
        let wide = occupancy.map_or(tight, |occupancy| occupancy.most(tight + ADDED) - ADDED);
        let wide = wide.min(all).max(tight);
        let most = if occupancy.is_some() { all.max(tight) } else { tight };
        let tuning = function.attributes().tuning;
        let [worth, fewer] = [Tunable::Worth, Tunable::FewerBlocks].each(|tunable| i64::from(tuning.get(tunable)));
        Rooms { tight, wide, most, occupancy, worth, fewer }
    }

    /// Whether an order that needs at least so many registers may be better than the best one so
    /// far: above `wide`, more registers never make it so.
    fn may_allow(&self, least: i32, cycles: i64, best: i64) -> bool {
        least <= self.wide || self.allow(least, cycles, best)
    }

    /// Whether an order that needs so many registers and takes so many cycles is better than the
    /// best one so far.
    fn allow(&self, needs: i32, cycles: i64, best: i64) -> bool {
        if needs <= self.tight {
            return true;
        }
        let blocks = |needs: i32| self.occupancy.map_or(1, |occupancy| i64::from(occupancy.blocks(needs + ADDED)));
        let enough = if needs <= self.wide {
            cycles * 100 <= best * self.worth
        } else {
            cycles * blocks(self.tight) * 100 <= best * blocks(needs) * self.fewer
        };
        needs <= self.most && enough
    }
}

/// Whether a block has a result of variable latency.
fn waits(function: &Function, insts: &[InstId]) -> bool {
    insts.iter().any(|inst| function[*inst].op.has(Prop::VariableLatency))
}
