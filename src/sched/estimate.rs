//! Estimated times of a region that is filled from its end: when the readers of a result need it,
//! and how long the chain before an instruction is.
//!
//! Latencies and pipes are those of the tables; a result of variable latency counts as usual. They
//! decide the order only, never a wait.

use super::dependences::{Before, Dependences};
use super::touches::Groups;
use crate::ori::{Function, InstId, VReg};
use crate::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use crate::tables::throughput::{Pipe, Throughput};
use cranelift_entity::SecondaryMap;

/// Times in cycles, counted from the end of the region.
pub struct Times {
    /// The least distance from the end at which each instruction delays no reader.
    due: Vec<i64>,
    /// The same where nothing has been placed.
    first: Vec<i64>,
    /// Cycles of the longest chain that ends with each instruction's result.
    depth: Vec<i64>,
    /// Cycles from issue to result.
    latency: Vec<i64>,
    /// Pipe of each instruction and the cycles that it occupies it.
    pace: Vec<(usize, i64)>,
    free: [i64; Pipe::ALL.len()],
    now: i64,
}

impl Times {
    /// The times of a region of which nothing has been placed; `live` says which registers live at
    /// its end, where something is taken to read them.
    pub fn new(function: &Function, insts: &[InstId], graph: &Dependences, live: impl Fn(VReg) -> bool) -> Times {
        let (tables, throughput) = (Latency::of(function.target()), Throughput::of(function.target()));
        let latency: Vec<i64> = insts.iter().map(|inst| tables.map_or(1, |t| usual(function, t, *inst))).collect();
        let pace = |inst: &InstId| {
            let data = &function[*inst];
            let pace = throughput.map(|t| t.pace(data.op, &data.mods));
            pace.map_or((0, 1), |pace| (pace.pipe as usize, i64::from(pace.cycles)))
        };
        let mut depth = vec![0; insts.len()];
        for at in 0..insts.len() {
            let chains = graph.before[at].iter().map(|b| depth[b.at as usize]);
            depth[at] = latency[at] + chains.max().unwrap_or(0);
        }
        let pace = insts.iter().map(pace).collect();
        let late = |inst: &InstId, cycles: i64| {
            let mut due = 0;
            function.for_each_def(*inst, |reg| due = if live(reg) { cycles } else { due });
            due
        };
        let first: Vec<i64> = insts.iter().zip(&latency).map(|(inst, cycles)| late(inst, *cycles)).collect();
        Times { due: first.clone(), first, depth, latency, pace, free: [0; Pipe::ALL.len()], now: 0 }
    }

    /// Nothing is placed any more.
    pub fn begin(&mut self) {
        self.due.copy_from_slice(&self.first);
        (self.free, self.now) = ([0; Pipe::ALL.len()], 0);
    }

    /// When an instruction delays no reader, its pipe, and its depth.
    pub fn of(&self, at: u32) -> (i64, usize, i64) {
        let at = at as usize;
        (self.due[at], self.pace[at].0, self.depth[at])
    }

    /// The distance from the end, and from when on each pipe is free.
    pub fn now(&self) -> (i64, &[i64]) {
        (self.now, &self.free)
    }

    /// Places an instruction before all those that have been placed.
    pub fn place(&mut self, at: u32, graph: &Dependences) {
        let (pipe, cycles) = self.pace[at as usize];
        self.now = self.now.max(self.due[at as usize]).max(self.free[pipe]);
        self.free[pipe] = self.now + cycles;
        for before in &graph.before[at as usize] {
            let cycles = if before.read { self.latency[before.at as usize] } else { 1 };
            let due = &mut self.due[before.at as usize];
            *due = (*due).max(self.now + cycles);
        }
        self.now += 1;
    }
}

/// What a block costs in one order or another.
pub struct Estimate {
    graph: Dependences,
    times: Times,
}

/// The position of each instruction among those of its estimate.
pub type Positions = SecondaryMap<InstId, u32>;

impl Estimate {
    /// For instructions in an order that is right, with what lives at their end.
    pub fn new(
        function: &Function,
        insts: &[InstId],
        (groups, positions): (&mut Groups, &mut Positions),
        live: impl Fn(VReg) -> bool,
    ) -> Estimate {
        let graph = Dependences::new(function, insts, groups);
        let times = Times::new(function, insts, &graph, live);
        insts.iter().zip(0..).for_each(|(inst, at)| positions[*inst] = at);
        Estimate { graph, times }
    }

    /// Cycles that no order is below: those of the longest chain, and one for each instruction.
    pub fn bound(&self) -> i64 {
        let Estimate { graph, times } = self;
        let mut start = vec![0i64; graph.before.len()];
        let mut most = start.len() as i64;
        for at in 0..start.len() {
            let after = |b: &Before| start[b.at as usize] + if b.read { times.latency[b.at as usize] } else { 1 };
            start[at] = graph.before[at].iter().map(after).max().unwrap_or(0);
            most = most.max(start[at] + times.due[at].max(1));
        }
        most
    }

    /// Cycles that the instructions take in an order.
    pub fn cycles(&self, order: &[InstId], positions: &Positions) -> i64 {
        let Estimate { graph, times } = self;
        let mut issued = vec![0i64; order.len()];
        let (mut now, mut end) = (0, 0);
        let mut free = [0i64; Pipe::ALL.len()];
        for at in order.iter().map(|inst| positions[*inst] as usize) {
            let (pipe, cycles) = times.pace[at];
            let after = |b: &Before| issued[b.at as usize] + if b.read { times.latency[b.at as usize] } else { 1 };
            let ready = graph.before[at].iter().map(after).max().unwrap_or(0);
            issued[at] = now.max(ready).max(free[pipe]);
            free[pipe] = issued[at] + cycles;
            now = issued[at] + 1;
            end = end.max(now).max(issued[at] + times.due[at]);
        }
        end
    }
}

/// Cycles from the issue of an instruction to its result for most readers.
pub fn usual(function: &Function, tables: &Latency, inst: InstId) -> i64 {
    let data = &function[inst];
    let class = tables.class_of(data.op, &data.mods);
    match tables.read_after_write(RegFile::R, class, LatencyClass::Alu) {
        Needed::Cycles(cycles) => cycles.into(),
        Needed::Scoreboard => class.info().expected.into(),
    }
}
