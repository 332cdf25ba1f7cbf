//! A region of a block between instructions that stay where they are: its dependences, and an order
//! of it that is filled from its end.

use super::dependences::Dependences;
use super::estimate::Times;
use super::list_scheduler::is_fence;
use super::sweep::Sweep;
use super::touches::{Began, Groups, Touches};
use crate::ori::{Block, File, Function, InstId, VReg};
use crate::tables::Prop;
use std::ops::Range;

/// Uniform registers and predicates that may live in a new order whatever lived in the old one.
pub const UNIFORM: i32 = 24;
pub const PREDICATES: i32 = 5;
/// As many predicates as come.
pub const ANY: i32 = i32::MAX;
/// Instructions that are looked at where each begins ranges, and the most of what waits for one.
const TREES: usize = 8;
const LARGEST_TREE: u32 = 64;

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
}

impl Aim {
    /// Whether pure instructions may follow this one.
    pub fn passes(&self, function: &Function, inst: InstId) -> bool {
        // What sank into a stage of asynchronous products would have to wait for its end.
        let stage = function.insts[inst].op.has(Prop::GroupStage);
        self.fences && !stage && is_fence(function, inst)
    }
}

/// What tells which instruction comes next; the least does.
type Key = (i32, i64, i64, i64);

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
        let insts = function.blocks[block][range.clone()].to_vec();
        let graph = Dependences::across(function, &insts, |inst| aim.passes(function, inst), aim.rises);
        let times = Times::new(function, &insts, &graph, |reg| sweep.contains(reg));
        let touches = Touches::new(function, &insts, sweep.live, groups);
        Region { block, range, fences: aim.fences, rises: aim.rises, insts, graph, times, touches }
    }

    /// Whether it is this part of its block, with dependences that serve the aim.
    pub fn is(&self, range: Range<usize>, aim: Aim) -> bool {
        self.range == range && self.fences == aim.fences && self.rises == aim.rises
    }

    /// Orders the instructions; `out` gets them from the last to the first. `began` holds when a
    /// register began to live, so that a chain once begun is finished.
    pub fn fill(&mut self, sweep: &mut Sweep, aim: Aim, began: &mut Began, out: &mut Vec<InstId>) {
        self.times.begin();
        self.touches.forget();
        let mut after = self.graph.after.clone();
        let mut ready: Vec<u32> = (0..after.len() as u32).rev().filter(|at| after[*at as usize] == 0).collect();
        // Where many live through the region, one more lets each comparison stand before its
        // reader.
        let most = if aim.predicates == ANY { ANY } else { (sweep.now.predicates + 1).min(aim.predicates) };
        let predicates = PREDICATES.max(most);
        while !ready.is_empty() {
            let pressed = sweep.now.general > aim.from;
            let mut key = |at: u32| self.key(sweep, began, predicates, pressed, at);
            let keys = ready.iter().enumerate().map(|(i, at)| (key(*at), i));
            let (best, mut i) = keys.min().unwrap_or(((0, 0, 0, 0), 0));
            if aim.trees && pressed && best.1 > 0 && ready.len() > 1 {
                // All begin ranges: the one whose whole tree begins fewest.
                let mut trees: Vec<_> = ready.iter().enumerate().map(|(i, at)| (key(*at), i)).collect();
                trees.sort_unstable();
                trees.truncate(TREES);
                let of = |(key, i): &(Key, usize)| (key.0, self.tree(sweep, &after, ready[*i]), *key, *i);
                i = trees.iter().map(of).min().map_or(i, |found| found.3);
            }
            let at = ready.swap_remove(i);
            self.touches.pass(sweep, began, at);
            out.push(self.insts[at as usize]);
            self.times.place(at, &self.graph);
            for before in &self.graph.before[at as usize] {
                after[before.at as usize] -= 1;
                if after[before.at as usize] == 0 {
                    ready.push(before.at);
                }
            }
        }
    }

    fn key(&mut self, sweep: &Sweep, began: &Began, predicates: i32, pressed: bool, at: u32) -> Key {
        let (change, age) = self.touches.change(sweep, began, at);
        let scarce = i32::from(change.predicates > 0 && sweep.now.predicates + change.predicates > predicates)
            + i32::from(change.uniform > 0 && sweep.now.uniform + change.uniform > UNIFORM);
        if pressed {
            return (scarce, i64::from(change.general), -i64::from(age), -i64::from(at));
        }
        let (wait, depth) = self.times.of(at);
        (scarce, wait, -depth, -i64::from(at))
    }

    /// By how many registers the pressure would change if an instruction came next and behind it
    /// all that only it waits for. `after` counts what must still stand behind each.
    fn tree(&self, sweep: &Sweep, after: &[u32], at: u32) -> i32 {
        let function = sweep.function;
        let (mut next, mut waiting): (Vec<u32>, Vec<(u32, u32)>) = (vec![at], Vec::new());
        let (mut begun, mut ended): (Vec<VReg>, Vec<VReg>) = (Vec::new(), Vec::new());
        let mut visits = 0;
        while let Some(at) = next.pop() {
            visits += 1;
            if visits > LARGEST_TREE {
                break;
            }
            let inst = self.insts[at as usize];
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
            for before in &self.graph.before[at as usize] {
                let place = waiting.iter().position(|(other, _)| *other == before.at).unwrap_or_else(|| {
                    waiting.push((before.at, after[before.at as usize]));
                    waiting.len() - 1
                });
                waiting[place].1 -= 1;
                if waiting[place].1 == 0 {
                    next.push(before.at);
                }
            }
        }
        sweep.sum(begun.iter().map(|reg| (*reg, 1)).chain(ended.iter().map(|reg| (*reg, -1)))).general
    }
}
