//! Scheduling before allocation (phase AdvancedPhaseAllocReg): orders the instructions of a block
//! by latency where registers are free, and so that fewer general registers live at once where
//! they are not.
//!
//! In a block where at most [`KEPT`] registers are needed, results are ready when their readers
//! issue, as far as [`FREE`] registers or as many as are needed elsewhere allow; the order is
//! taken if it is estimated to be faster. Of other blocks it lowers what they need, by the best of
//! several orders: the need that no block can go below is the limit for all of them, and an order
//! is taken only if it lowers the block's. What an order needs is what lives at once and what a
//! first fit loses between tuples (`first_fit`). Both leave the other files where they were, or
//! with enough. A block is filled from its end with instructions whose readers all stand: above
//! the limit the one that ends more ranges than it begins, below it the one that delays no reader.
//! Nothing crosses a branch, call, barrier or other operation with an effect, nor a memory access
//! that may alias; but where the need is lowered, what only writes registers may follow a barrier
//! that it stood before and, above [`RISES`], precede one that it stood behind. Asynchronous
//! products and what stands between them keep their places.

use super::dependences::Dependences;
use super::estimate::{Estimate, Times};
use super::first_fit::FirstFit;
use super::list_scheduler::{is_fence, is_fixed};
use super::sweep::{Live, Peaks, Sweep};
use crate::analysis::PassCx;
use crate::analysis::def_use::sets_stack_pointer;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::tables::{Op, Prop};
use cranelift_entity::SecondaryMap;

/// General registers up to which a block is ordered by latency; above, to lower its peak. 40 gives
/// 0.06 % fewer estimated cycles and 1 % more registers.
const KEPT: i32 = 30;
/// General registers that may live in any function, and how many fewer make a block look at
/// pressure. Measured on the launches of one target: 20 and 4 give 0.7 % more estimated cycles, 32
/// and 2 give 0.3 % more.
const FREE: i32 = 28;
const SLACK: i32 = 8;
/// General registers above which pure instructions may also precede a barrier that they stood
/// behind.
const RISES: i32 = 160;
/// Uniform registers and predicates that may live in a new order whatever lived in the old one.
const UNIFORM: i32 = 24;
const PREDICATES: i32 = 5;
/// Instructions that are looked at where each begins ranges, and the most of what waits for one.
const TREES: usize = 8;
const LARGEST_TREE: u32 = 64;
/// Instructions between two that are fixed; more are left in their order.
const LONGEST: usize = 20_000;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let live = cx.liveness();
    let function = &mut *cx.function;
    let mut scratch = Scratch::new(function);
    let (mut above, mut kept): (Vec<(Peaks, Block)>, Vec<Block>) = (Vec::new(), Vec::new());
    let (mut most, mut limit) = (FREE, KEPT);
    for block in &function.layout {
        let insts = &function.blocks[*block];
        let old = scratch.peaks(function, *block, &live, insts);
        most = most.max(old.needs);
        limit = limit.max(old.last);
        if old.needs > KEPT {
            above.push((old, *block));
        }
        if old.needs > KEPT || insts.iter().any(|inst| is_product(function, *inst)) {
            kept.push(*block);
        }
    }
    by_latency(function, &live, &mut scratch, &kept, most);
    // What needs most comes first: what is left there, others need not go below.
    above.sort_by_key(|(old, block)| (-old.needs, *block));
    let mut plans: Vec<Plan> = Vec::new();
    for (old, block) in above {
        if old.needs > limit {
            let plan = plan(function, block, &live, &mut scratch, old, limit);
            limit = limit.max(plan.best());
            plans.push(plan);
        }
    }
    for plan in plans.into_iter().filter(|plan| plan.old.needs > limit && plan.helps()) {
        let gentle = lowest(function, plan.block, &live, &mut scratch, Aim { from: limit, ..plan.aim });
        let peaks = scratch.peaks(function, plan.block, &live, &gentle);
        let keeps = peaks.needs <= limit && peaks.is_within(&plan.old);
        function.blocks[plan.block] = if keeps { gentle } else { plan.order };
    }
}

/// Orders the blocks that are not `kept` by latency, where at most `room` registers live at once
/// and the estimate says that it takes fewer cycles.
fn by_latency(function: &mut Function, live: &Liveness, scratch: &mut Scratch, kept: &[Block], room: i32) {
    for block in function.layout.clone() {
        if kept.contains(&block) || !waits(function, block) {
            continue;
        }
        let insts = &function.blocks[block];
        let estimate = Estimate::new(function, insts, |reg| live.live[block].binary_search(&reg).is_ok());
        let before = estimate.cycles(insts);
        if before <= estimate.bound() {
            continue;
        }
        let order = lowest(
            function,
            block,
            live,
            scratch,
            Aim { from: room - SLACK, fences: false, rises: false, trees: false, quads: false, predicates: PREDICATES },
        );
        if estimate.cycles(&order) >= before {
            continue;
        }
        let old = scratch.peaks(function, block, live, insts);
        let new = scratch.peaks(function, block, live, &order);
        if new.needs <= room && new.is_within(&old) {
            function.blocks[block] = order;
        }
    }
}

/// Whether a block has a result of variable latency.
fn waits(function: &Function, block: Block) -> bool {
    function.blocks[block].iter().any(|inst| function.insts[*inst].op.has(Prop::VariableLatency))
}

impl Peaks {
    /// Whether the files other than the general one have what they had, or enough.
    fn is_within(&self, old: &Peaks) -> bool {
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
}

impl Plan {
    fn helps(&self) -> bool {
        self.new.needs < self.old.needs && self.new.is_within(&self.old)
    }

    fn best(&self) -> i32 {
        if self.helps() { self.new.needs } else { self.old.needs }
    }
}

/// Tables of the function that all blocks use in turn, so that a block costs its own length.
struct Scratch {
    live: Live,
    fit: FirstFit,
    began: Began,
}

impl Scratch {
    fn new(function: &Function) -> Scratch {
        let began = Began { at: table(function.regs.len()), clock: 0, start: 0 };
        Scratch { live: Live::new(function), fit: FirstFit::new(function), began }
    }

    /// What an order of a block takes.
    fn peaks(&mut self, function: &Function, block: Block, live: &Liveness, order: &[InstId]) -> Peaks {
        let mut peaks = Sweep::start(function, block, live, &mut self.live, false).order(order);
        peaks.needs = peaks.general.max(self.fit.registers(function, block, live, order)) + peaks.homeless();
        peaks
    }
}

/// When each register began to live, on a clock that goes on from one order to the next.
struct Began {
    at: SecondaryMap<VReg, u32>,
    clock: u32,
    /// The clock when the order at hand was begun.
    start: u32,
}

impl Began {
    /// Nothing has begun.
    fn forget(&mut self) {
        self.start = self.clock;
    }

    fn note(&mut self, reg: VReg) {
        if self.at[reg] <= self.start {
            self.at[reg] = self.clock;
        }
    }

    /// How late a register began to live; 0 if it has not.
    fn age(&self, reg: VReg) -> u32 {
        self.at[reg].saturating_sub(self.start)
    }
}

/// What an order is made for.
#[derive(Clone, Copy)]
struct Aim {
    /// More general registers than these make it look at pressure.
    from: i32,
    /// Whether pure instructions may follow fences.
    fences: bool,
    /// Whether they may precede them too.
    rises: bool,
    /// Whether whole trees are compared where each instruction begins ranges.
    trees: bool,
    /// Whether quads count as a whole.
    quads: bool,
    /// Predicates that live at once in the old order.
    predicates: i32,
}

impl Aim {
    fn passes(&self, function: &Function, inst: InstId) -> bool {
        // What sank into a stage of asynchronous products would have to wait for its end.
        let stage = matches!(function.insts[inst].op, Op::GMMA | Op::WARPGROUP);
        self.fences && !stage && is_fence(function, inst)
    }
}

/// The best one of the orders that let pure instructions follow fences, or do not, compare whole
/// trees, or do not, and count quads as a whole, or do not; the first one that needs no more than
/// `enough`.
fn plan(function: &Function, block: Block, live: &Liveness, scratch: &mut Scratch, old: Peaks, enough: i32) -> Plan {
    let mut with = |fences: bool, rises: bool, trees: bool, quads: bool| {
        let aim = Aim { from: i32::MIN, fences, rises, trees, quads, predicates: old.predicates };
        let order = lowest(function, block, live, scratch, aim);
        let new = scratch.peaks(function, block, live, &order);
        Plan { block, old, new, aim, order }
    };
    let insts = &function.blocks[block][..function.first_terminator(block)];
    let fences = insts.iter().any(|inst| is_fence(function, *inst));
    let mut best = with(false, false, false, false);
    for (fences, trees) in [(false, true), (true, false), (true, true)].into_iter().filter(|of| fences || !of.0) {
        if best.best() <= enough {
            return best;
        }
        let other = with(fences, false, trees, false);
        if other.best() < best.best() {
            best = other;
        }
    }
    for trees in [false, true].into_iter().filter(|_| fences) {
        if best.best() > RISES.max(enough) {
            let other = with(true, true, trees, false);
            if other.best() < best.best() {
                best = other;
            }
        }
    }
    // Where more are needed than live at once, what lives stands scattered in quads.
    for trees in [false, true] {
        if best.best() > enough && best.new.needs > best.new.general {
            let other = with(best.aim.fences, best.aim.rises, trees, true);
            if other.best() < best.best() {
                best = other;
            }
        }
    }
    best
}

/// The order of a block with this aim.
fn lowest(function: &Function, block: Block, live: &Liveness, scratch: &mut Scratch, aim: Aim) -> Vec<InstId> {
    let insts = &function.blocks[block];
    let mut out = Vec::with_capacity(insts.len());
    let Scratch { live: registers, began, .. } = scratch;
    began.forget();
    let mut sweep = Sweep::start(function, block, live, registers, aim.quads);
    let (mut end, last) = (insts.len(), function.first_terminator(block));
    while end > 0 {
        let fixed = |at: &usize| stays(function, insts[*at]) && (*at >= last || !aim.passes(function, insts[*at]));
        let start = (0..end).rev().find(fixed).map_or(0, |at| at + 1);
        let product = |at: usize| insts.get(at).is_some_and(|inst| is_product(function, *inst));
        // Accumulators of asynchronous products stay where they are from one product to the next.
        if end - start > LONGEST || product(end) || start > 0 && product(start - 1) {
            insts[start..end].iter().rev().for_each(|inst| sweep.pass(*inst));
            out.extend(insts[start..end].iter().rev());
        } else {
            fill(&mut sweep, &insts[start..end], aim, began, &mut out);
        }
        if start > 0 {
            sweep.pass(insts[start - 1]);
            out.push(insts[start - 1]);
        }
        end = start.saturating_sub(1);
    }
    drop(sweep);
    out.reverse();
    out
}

fn is_product(function: &Function, inst: InstId) -> bool {
    function.insts[inst].op == Op::GMMA
}

fn stays(function: &Function, inst: InstId) -> bool {
    let begins = matches!(function.insts[inst].op, Op::ENTRY | Op::PHI);
    begins || is_product(function, inst) || is_fixed(function, inst) || sets_stack_pointer(function, inst)
}

/// What tells which instruction comes next; the least does.
type Key = (i32, i64, i64, i64);

/// By how many registers the pressure would change if an instruction came next and behind it all
/// that only it waits for.
fn tree(sweep: &Sweep, insts: &[InstId], graph: &Dependences, at: u32) -> i32 {
    let function = sweep.function;
    let (mut next, mut waiting): (Vec<u32>, Vec<(u32, u32)>) = (vec![at], Vec::new());
    let (mut begun, mut ended): (Vec<VReg>, Vec<VReg>) = (Vec::new(), Vec::new());
    let mut visits = 0;
    while let Some(at) = next.pop() {
        visits += 1;
        if visits > LARGEST_TREE {
            break;
        }
        let inst = insts[at as usize];
        let general = |reg: VReg| function.regs[reg].file == File::R;
        if function.insts[inst].guard.is_null() {
            function.for_each_def(inst, |reg| {
                if let Some(place) = begun.iter().position(|other| *other == reg) {
                    begun.swap_remove(place);
                } else if general(reg) && sweep.contains(reg) && !ended.contains(&reg) {
                    ended.push(reg);
                }
            });
        }
        function.for_each_use(inst, |reg| {
            if general(reg) && !sweep.contains(reg) && !begun.contains(&reg) {
                begun.push(reg);
            }
        });
        for before in &graph.before[at as usize] {
            let place = waiting.iter().position(|(other, _)| *other == before.at).unwrap_or_else(|| {
                waiting.push((before.at, graph.after[before.at as usize]));
                waiting.len() - 1
            });
            waiting[place].1 -= 1;
            if waiting[place].1 == 0 {
                next.push(before.at);
            }
        }
    }
    sweep.general(&begun, &ended)
}

/// Orders instructions that nothing fixed stands between, except what pure ones may follow; `out`
/// gets them from the last to the first. `began` holds when a register began to live, so that a
/// chain once begun is finished.
fn fill(sweep: &mut Sweep, insts: &[InstId], aim: Aim, began: &mut Began, out: &mut Vec<InstId>) {
    let function = sweep.function;
    let mut graph = Dependences::across(function, insts, |inst| aim.passes(function, inst), aim.rises);
    let mut times = Times::new(function, insts, &graph, |reg| sweep.contains(reg));
    let mut ready: Vec<u32> = (0..insts.len() as u32).rev().filter(|at| graph.after[*at as usize] == 0).collect();
    // Where many live through the region, one more lets each comparison stand before its reader.
    let predicates = PREDICATES.max((sweep.now.predicates + 1).min(aim.predicates));
    while !ready.is_empty() {
        let pressed = sweep.now.general > aim.from;
        let key = |sweep: &mut Sweep, at: u32| -> Key {
            let change = sweep.change(insts[at as usize]);
            let scarce = i32::from(change.predicates > 0 && sweep.now.predicates + change.predicates > predicates)
                + i32::from(change.uniform > 0 && sweep.now.uniform + change.uniform > UNIFORM);
            if !pressed {
                let (wait, depth) = times.of(at);
                return (scarce, wait, -depth, -i64::from(at));
            }
            let mut age = 0;
            function.for_each_def(insts[at as usize], |reg| age = age.max(began.age(reg)));
            (scarce, i64::from(change.general), -i64::from(age), -i64::from(at))
        };
        let keys = ready.iter().enumerate().map(|(i, at)| (key(sweep, *at), i));
        let (best, mut i) = keys.min().unwrap_or(((0, 0, 0, 0), 0));
        if aim.trees && pressed && best.1 > 0 && ready.len() > 1 {
            // All begin ranges: the one whose whole tree begins fewest.
            let mut trees: Vec<_> = ready.iter().enumerate().map(|(i, at)| (key(sweep, *at), i)).collect();
            trees.sort_unstable();
            trees.truncate(TREES);
            let of = |(key, i): &(Key, usize)| (key.0, tree(sweep, insts, &graph, ready[*i]), *key, *i);
            i = trees.iter().map(of).min().map_or(i, |found| found.3);
        }
        let at = ready.swap_remove(i);
        let inst = insts[at as usize];
        sweep.pass(inst);
        out.push(inst);
        times.place(at, &graph);
        began.clock += 1;
        function.for_each_use(inst, |reg| began.note(reg));
        for before in std::mem::take(&mut graph.before[at as usize]) {
            graph.after[before.at as usize] -= 1;
            if graph.after[before.at as usize] == 0 {
                ready.push(before.at);
            }
        }
    }
}
