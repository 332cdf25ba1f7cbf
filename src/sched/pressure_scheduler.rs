//! Scheduling before allocation (phase AdvancedPhaseAllocReg): orders the instructions of a block
//! by latency where registers are free, and so that fewer general registers live at once where
//! they are not.
//!
//! First it lowers what blocks above `lowered` registers need, by the best of several orders: the
//! need that no block can go below is the limit for all of them, and an order is taken only if it
//! lowers the block's. What an order needs is what lives at once and what a first fit loses
//! between tuples (`first_fit`). Then, in every block, results are ready when their readers issue
//! (`quickest`), as far as `order` registers or as many as are needed elsewhere allow. A block is
//! filled from its end with instructions whose readers all stand: above the limit the one that ends
//! more ranges than it begins, below it the one that delays no reader.
//! Nothing crosses a branch, call, barrier or other operation with an effect, nor a memory access
//! that may alias; but where the need is lowered, what only writes registers may follow a barrier
//! that it stood before and, above [`RISES`], precede one that it stood behind. Asynchronous
//! products and what stands between them keep their places.

use super::block_order::{lowest, lowest_below};
use super::estimate::Positions;
use super::first_fit::FirstFit;
use super::list_scheduler::is_fence;
use super::quickest::Quickest;
use super::ready::Prefer;
use super::region::{Aim, PREDICATES, Region, UNIFORM, Work};
use super::sweep::{Cost, Limit, Live, Peaks, Sweep};
use super::touches::Groups;
use crate::analysis::PassCx;
use crate::analysis::loops::Loops;
use crate::arrays::Each;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, Function, InstId, register_changes, table};
use crate::tables::Tunable;
use cranelift_entity::SecondaryMap;

/// Registers that no order by latency takes: where few are left, it costs spills.
const SPARE: i32 = 24;
/// General registers above which pure instructions may also precede a barrier that they stood
/// behind.
const RISES: i32 = 160;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let (live, loops) = (cx.liveness(), cx.loops());
    let function = &mut *cx.function;
    let groups = register_changes::groups(function);
    let mut scratch = Scratch::new(function);
    for (registers, blocks) in groups {
        scratch.all = registers.cast_signed() - SPARE;
        scratch.live.room = scratch.all;
        order(function, &blocks, (&live, &loops), &mut scratch);
    }
}

/// Orders blocks in which a warp has equally many registers.
fn order(function: &mut Function, blocks: &[Block], (live, loops): (&Liveness, &Loops), scratch: &mut Scratch) {
    let mut above: Vec<(Peaks, Block)> = Vec::new();
    let tuning = function.attributes().tuning;
    let [free, kept] = [Tunable::Order, Tunable::Lowered].each(|tunable| tuning.get(tunable).cast_signed());
    let (mut most, mut limit) = (free, kept);
    // What the blocks take in the order that they have, and the order in which they came where
    // that is another one.
    let mut known: SecondaryMap<Block, Option<Peaks>> = table(function.block_limit());
    let mut came: SecondaryMap<Block, Vec<InstId>> = table(function.block_limit());
    for block in blocks {
        let insts = &function[*block];
        let old = scratch.peaks(function, *block, live, insts);
        known[*block] = Some(old);
        most = most.max(old.needs);
        limit = limit.max(old.last);
        if old.needs > kept {
            above.push((old, *block));
        }
    }
    // What needs most comes first: what is left there, others need not go below.
    crate::sorted::by_key(&mut above, |(old, block)| (-old.needs, *block));
    let mut plans: Vec<Plan> = Vec::new();
    let all = scratch.all;
    for (old, block) in above {
        if old.needs > limit {
            let plan = plan(function, block, live, scratch, old, limit);
            limit = limit.max(plan.best().min(all));
            plans.push(plan);
        }
    }
    for plan in plans.into_iter().filter(|plan| plan.old.needs > limit && plan.helps()) {
        let (gentle, swept) = lowest(function, plan.block, live, scratch, Aim { from: limit, ..plan.aim });
        let peaks = scratch.peaks_of(function, plan.block, live, &gentle, swept);
        let keeps = peaks.needs <= limit && peaks.is_within(&plan.old);
        let new = if keeps { gentle } else { plan.order };
        came[plan.block] = std::mem::replace(&mut function[plan.block], new);
        known[plan.block] = None;
    }
    place_predicates(function, blocks, live, scratch, (&mut known, limit));
    let room = if most > kept { limit.min(all) } else { most };
    scratch.regions.clear();
    let mut quickest = Quickest { live, loops, known: &known, came: &came, room };
    quickest.order(function, blocks, scratch);
}

/// Orders blocks in which predicates find no place so that more of them do, where that needs no
/// more registers than other blocks: each of the others costs a move there and one back.
fn place_predicates(
    function: &mut Function,
    blocks: &[Block],
    live: &Liveness,
    scratch: &mut Scratch,
    (known, limit): (&mut SecondaryMap<Block, Option<Peaks>>, i32),
) {
    for block in blocks.iter().copied() {
        let old = known[block].unwrap_or_else(|| scratch.peaks(function, block, live, &function[block]));
        known[block] = Some(old);
        if old.unplaced() == 0 {
            continue;
        }
        let prefer = Prefer::Chains;
        let aim =
            Aim { from: limit, fences: true, rises: false, trees: false, quads: false, predicates: PREDICATES, prefer };
        let (order, swept) = lowest(function, block, live, scratch, aim);
        let new = scratch.peaks_of(function, block, live, &order, swept);
        if new.unplaced() < old.unplaced() && new.needs <= limit.max(old.needs) && new.is_within(&old) {
            function[block] = order;
            known[block] = Some(new);
        }
    }
}

impl Peaks {
    /// Whether the files other than the general one have what they had, or enough.
    pub fn is_within(&self, old: &Peaks) -> bool {
        self.uniform <= old.uniform.max(UNIFORM) && self.predicates <= old.predicates.max(PREDICATES)
    }
}

/// A block above the limit, with the order of least pressure.
struct Plan {
    block: Block,
    old: Peaks,
    new: Peaks,
    aim: Aim,
    order: Vec<InstId>,
    /// General registers that there are.
    all: i32,
}

impl Plan {
    fn helps(&self) -> bool {
        self.new.cost(self.all) < self.old.cost(self.all) && self.new.is_within(&self.old)
    }

    /// Takes another order that costs less.
    fn replace(&mut self, other: Plan) {
        if other.least() < self.least() {
            *self = other;
        }
    }

    /// What an order costs less than, to be better.
    fn limit(&self) -> Limit {
        Limit { cost: self.least(), all: self.all }
    }

    fn least(&self) -> Cost {
        if self.helps() { self.new.cost(self.all) } else { self.old.cost(self.all) }
    }

    fn best(&self) -> i32 {
        if self.helps() { self.new.needs } else { self.old.needs }
    }
}

/// Tables of the function that all blocks use in turn, so that a block costs its own length.
pub struct Scratch {
    pub live: Live,
    /// General registers that may live in the blocks at hand.
    pub all: i32,
    fit: FirstFit,
    pub groups: Groups,
    pub positions: Positions,
    /// What decided the last order is in it.
    pub work: Work,
    /// The regions of the block at hand, whose order does not change meanwhile.
    pub regions: Vec<Region>,
}

impl Scratch {
    fn new(function: &Function) -> Scratch {
        let live = Live::new(function, i32::MAX);
        let groups = Groups::new(&live);
        Scratch {
            live,
            all: i32::MAX,
            fit: FirstFit::new(function),
            groups,
            positions: table(function.insts().len()),
            work: Work::new(function),
            regions: Vec::new(),
        }
    }

    /// What an order of a block takes.
    pub fn peaks(&mut self, function: &Function, block: Block, live: &Liveness, order: &[InstId]) -> Peaks {
        let swept = self.sweep(function, block, live, order);
        self.peaks_of(function, block, live, order, Some(swept))
    }

    /// The same where what lives at once may be known.
    pub fn peaks_of(
        &mut self,
        function: &Function,
        block: Block,
        live: &Liveness,
        order: &[InstId],
        swept: Option<Peaks>,
    ) -> Peaks {
        let mut peaks = swept.unwrap_or_else(|| self.sweep(function, block, live, order));
        peaks.needs = peaks.general.max(self.fit.registers(function, block, live, order)) + peaks.unplaced();
        peaks
    }

    fn sweep(&mut self, function: &Function, block: Block, live: &Liveness, order: &[InstId]) -> Peaks {
        Sweep::start(function, block, live, &mut self.live, false).order(order)
    }
}

/// The best one of the orders that let pure instructions follow fences, or do not, follow the order
/// that the block has, or do not, compare whole trees, or do not, and count quads as a whole, or do
/// not; the first one that needs no more than `enough`. An order is given up as soon as it costs as
/// much as the best one. Of these ways those are left out together that did not help: trees behind
/// fences helped no block of 300 in 1,850 kernels, and trees of quads two.
fn plan(function: &Function, block: Block, live: &Liveness, scratch: &mut Scratch, old: Peaks, enough: i32) -> Plan {
    let all = scratch.all;
    // No order needs less than what lives at its beginning.
    let enough = enough.max(old.first);
    let (predicates, prefer) = (old.predicates, Prefer::Chains);
    let plain = Aim { from: i32::MIN, fences: false, rises: false, trees: false, quads: false, predicates, prefer };
    let (order, swept) = lowest(function, block, live, scratch, plain);
    // Whether trees can make another order than the last one without them.
    let mut asks = scratch.work.asked.trees;
    let new = scratch.peaks_of(function, block, live, &order, swept);
    let mut best = Plan { block, old, new, aim: plain, order, all };
    let mut consider = |best: &mut Plan, aim: Aim| {
        if aim.trees && !asks {
            return;
        }
        // Quads that count as a whole are more than what lives.
        let limit = Some(best.limit()).filter(|_| !aim.quads);
        let order = lowest_below(function, block, live, scratch, aim, limit);
        if !aim.trees && aim.prefer == Prefer::Chains {
            asks = scratch.work.asked.trees;
        }
        if let Some((order, swept)) = order {
            let new = scratch.peaks_of(function, block, live, &order, swept);
            best.replace(Plan { block, old, new, aim, order, all });
        }
    };
    let insts = &function[block][..function.first_terminator(block)];
    let fences = insts.iter().any(|inst| is_fence(function, *inst));
    for prefer in [Prefer::Place, Prefer::Fewest] {
        for fences in [false, true].into_iter().filter(|of| fences || !of) {
            if best.best() > enough {
                consider(&mut best, Aim { fences, prefer, ..plain });
            }
        }
    }
    for (fences, trees) in [(false, true), (true, false)].into_iter().filter(|of| fences || !of.0) {
        if best.best() <= enough {
            return best;
        }
        consider(&mut best, Aim { fences, trees, ..plain });
    }
    if fences && best.best() > RISES.max(enough) {
        consider(&mut best, Aim { fences, rises: true, ..plain });
    }
    // Where more are needed than live at once, what lives stands scattered in quads.
    if best.best() > enough && best.new.needs > best.new.general {
        let Aim { fences, rises, .. } = best.aim;
        consider(&mut best, Aim { fences, rises, quads: true, ..plain });
    }
    best
}
