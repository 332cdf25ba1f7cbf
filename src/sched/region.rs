//! A region of a block between instructions that stay where they are: its dependences, and an order
//! of it that is filled from its end.

use super::dependences::Dependences;
use super::estimate::Times;
use super::list_scheduler::is_fence;
use super::ready::{Candidate, Now, Prefer, Ready, scarce_of};
use super::sweep::{Limit, Sweep};
use super::touches::{Began, Groups, Touches};
use super::trees::Trees;
use crate::ori::{Block, Function, InstId};
use crate::tables::Prop;
use std::ops::Range;

/// Uniform registers and predicates that may live in a new order whatever lived in the old one.
pub const UNIFORM: i32 = 24;
pub const PREDICATES: i32 = 5;
/// As many predicates as come.
pub const ANY: i32 = i32::MAX;
/// Instructions that are looked at where each begins ranges.
const TREES: usize = 8;

/// What an order is made for.
#[derive(Clone, Copy)]
pub struct Aim {
    /// More general registers than these make it look at pressure.
    pub from: i32,
    /// Whether pure instructions may follow fences.
    pub fences: bool,
    /// Whether they may precede them too.
    pub rises: bool,
    /// Whether whole trees are compared where each instruction begins ranges.
    pub trees: bool,
    /// Whether quads count as a whole.
    pub quads: bool,
    /// Predicates that live at once in the old order, or [`ANY`].
    pub predicates: i32,
    /// What comes first where pressure counts.
    pub prefer: Prefer,
}

impl Aim {
    /// Whether pure instructions may follow this one.
    pub fn passes(&self, function: &Function, inst: InstId) -> bool {
        // What sank into a stage of asynchronous products would have to wait for its end.
        let stage = function[inst].op.has(Prop::GroupStage);
        self.fences && !stage && is_fence(function, inst)
    }

    /// The predicates that may live at once in a region at whose end the sweep stands.
    fn predicates(&self, sweep: &Sweep) -> i32 {
        // Where many live through the region, one more lets each comparison stand before its
        // reader.
        let most = if self.predicates == ANY { ANY } else { (sweep.now.predicates + 1).min(self.predicates) };
        PREDICATES.max(most)
    }

    /// What keys depend on where the sweep stands now.
    fn now<'t>(&self, sweep: &Sweep, predicates: i32, times: &'t Times) -> Now<'t> {
        let (now, free) = times.now();
        let left = |most: i32, now: i32| (most - now).max(0);
        Now {
            predicates: left(predicates, sweep.now.predicates),
            uniform: left(UNIFORM, sweep.now.uniform),
            pressed: sweep.now.general > self.from,
            prefer: self.prefer,
            now,
            free,
        }
    }
}

/// Tables of the function that all regions use in turn.
pub struct Work {
    /// When a register began to live, so that a chain once begun is finished.
    pub began: Began,
    trees: Trees,
    pub asked: Asked,
}

/// What decided an order: another aim makes the same order where it differs in nothing of this.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Most general registers that lived where a next instruction was chosen.
    pub general: i32,
    /// Whether all candidates began ranges while pressure counted.
    pub trees: bool,
    /// Whether a candidate began more predicates than might begin.
    pub predicates: bool,
}

impl Asked {
    /// Whether an aim that gives no less than the old one makes the same order.
    pub fn is_same(&self, old: &Aim, new: &Aim) -> bool {
        let predicates = new.predicates == old.predicates || new.predicates == ANY && !self.predicates;
        self.general <= old.from && new.from >= old.from && predicates
    }
}

impl Work {
    /// For the regions of a function.
    pub fn new(function: &Function) -> Work {
        Work { began: Began::new(function), trees: Trees::new(function), asked: Asked::default() }
    }

    /// Nothing has begun.
    pub fn begin(&mut self) {
        self.began.forget();
        self.asked = Asked::default();
    }
}

/// The instructions of a region, by position, with what all orders of it need.
pub struct Region {
    pub block: Block,
    range: Range<usize>,
    /// What its dependences are made for.
    fences: bool,
    rises: bool,
    insts: Vec<InstId>,
    graph: Dependences,
    times: Times,
    touches: Touches,
}

impl Region {
    /// A region at whose end the sweep stands.
    pub fn new(sweep: &Sweep, block: Block, range: Range<usize>, aim: Aim, groups: &mut Groups) -> Region {
        let function = sweep.function;
        let insts = function[block][range.clone()].to_vec();
        let graph = Dependences::across(function, &insts, groups, |inst| aim.passes(function, inst), aim.rises);
        let times = Times::new(function, &insts, &graph, |reg| sweep.contains(reg));
        let touches = Touches::new(function, &insts, sweep.live, groups);
        Region { block, range, fences: aim.fences, rises: aim.rises, insts, graph, times, touches }
    }

    /// Whether it is this part of its block, with dependences that serve the aim.
    pub fn is(&self, range: Range<usize>, aim: Aim) -> bool {
        self.range == range && self.fences == aim.fences && self.rises == aim.rises
    }

    /// Orders the instructions; `out` gets them from the last to the first. Whether the order is
    /// below the limit: where it is not, the rest is left out.
    pub fn fill(
        &mut self,
        sweep: &mut Sweep,
        aim: Aim,
        work: &mut Work,
        out: &mut Vec<InstId>,
        limit: Option<Limit>,
    ) -> bool {
        let Region { insts, graph, times, touches, .. } = self;
        let Work { began, trees, asked } = work;
        times.begin();
        let mut after = graph.after.clone();
        let mut ready = Ready::new(after.len());
        let candidate = |sweep: &Sweep, began: &Began, times: &Times, at: u32| {
            let (due, pipe, depth) = times.of(at);
            let mut candidate = Candidate { at, due, pipe, depth, ..Candidate::default() };
            candidate.set_change(touches.change(sweep, began, at));
            candidate
        };
        for at in (0..after.len() as u32).filter(|at| after[*at as usize] == 0) {
            ready.push(candidate(sweep, began, times, at));
        }
        let predicates = aim.predicates(sweep);
        let (mut stale, mut step): (Vec<u32>, u32) = (Vec::new(), 0);
        loop {
            step += 1;
            asked.general = asked.general.max(sweep.now.general);
            let now = aim.now(sweep, predicates, times);
            let Some(mut place) = ready.least(&now) else { break };
            if now.pressed && ready.list[place].change.general > 0 && ready.list.len() > 1 {
                asked.trees = true;
                if aim.trees {
                    place = smallest(&ready, &now, |at| trees.change(sweep, touches, graph, &after, at));
                }
            }
            let at = ready.remove(place).at;
            touches.pass(sweep, began, at, |user| {
                if let Some(user) = ready.of(user).filter(|user| user.noted != step) {
                    user.noted = step;
                    stale.push(user.at);
                }
            });
            for at in stale.drain(..) {
                if let Some(known) = ready.of(at) {
                    known.set_change(touches.change(sweep, began, at));
                }
            }
            if limit.is_some_and(|limit| !sweep.is_below(&limit)) {
                return false;
            }
            out.push(insts[at as usize]);
            times.place(at, graph);
            for before in graph.before[at as usize].iter() {
                after[before.at as usize] -= 1;
                if after[before.at as usize] == 0 {
                    ready.push(candidate(sweep, began, times, before.at));
                }
            }
        }
        asked.predicates |= ready.scarce;
        true
    }
}

/// Where all candidates begin ranges: the place of the one whose whole tree begins fewest.
fn smallest(ready: &Ready, now: &Now, mut tree: impl FnMut(u32) -> i32) -> usize {
    let mut least = [Default::default(); TREES];
    let count = ready.least_ones(now, &mut least);
    // What needs more that is scarce is later whatever its tree is.
    let scarce = scarce_of(least[0].0);
    let least = least[..count].iter().filter(|(key, _)| scarce_of(*key) == scarce);
    least.map(|(key, place)| (tree(ready.list[*place].at), *key, *place)).min().map_or(0, |found| found.2)
}
