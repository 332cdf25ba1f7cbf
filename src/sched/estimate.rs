//! Estimated times of a region that is filled from its end: when the readers of a result need it,
//! and how long the chain before an instruction is.
//!
//! Latencies and pipes are those of the tables; a result of variable latency counts as usual. They
//! decide the order only, never a wait.

use super::dependences::Dependences;
use crate::ori::{Function, InstId};
use crate::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use crate::tables::throughput::{Pipe, Throughput};

/// Times in cycles, counted from the end of the region.
pub struct Times {
    /// The least distance from the end at which each instruction delays no reader.
    due: Vec<i64>,
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
    /// The times of a region of which nothing has been placed.
    pub fn new(function: &Function, insts: &[InstId], graph: &Dependences) -> Times {
        let (tables, throughput) = (Latency::of(function.target), Throughput::of(function.target));
        let latency: Vec<i64> = insts.iter().map(|inst| tables.map_or(1, |t| usual(function, t, *inst))).collect();
        let pace = |inst: &InstId| {
            let data = &function.insts[*inst];
            let pace = throughput.map(|t| t.pace(data.op, &data.mods));
            pace.map_or((0, 1), |pace| (pace.pipe as usize, i64::from(pace.cycles)))
        };
        let mut depth = vec![0; insts.len()];
        for at in 0..insts.len() {
            let chains = graph.before[at].iter().map(|b| depth[b.at as usize]);
            depth[at] = latency[at] + chains.max().unwrap_or(0);
        }
        let pace = insts.iter().map(pace).collect();
        Times { due: vec![0; insts.len()], depth, latency, pace, free: [0; Pipe::ALL.len()], now: 0 }
    }

    /// How long the readers of an instruction would wait if it came next, and its depth.
    pub fn of(&self, at: u32) -> (i64, i64) {
        let at = at as usize;
        let due = self.due[at].max(self.free[self.pace[at].0]);
        ((due - self.now).max(0), self.depth[at])
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

/// Cycles from the issue of an instruction to its result for most readers.
fn usual(function: &Function, tables: &Latency, inst: InstId) -> i64 {
    let data = &function.insts[inst];
    let class = tables.class_of(data.op, &data.mods);
    match tables.read_after_write(RegFile::R, class, LatencyClass::Alu) {
        Needed::Cycles(cycles) => cycles.into(),
        Needed::Scoreboard => class.info().expected.into(),
    }
}
