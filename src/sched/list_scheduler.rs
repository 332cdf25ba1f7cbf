//! Post-RA list scheduling (phase PostSchedule): the order of instructions within a block.
//!
//! Schedules by critical path, with the distances of the latency tables, estimates for variable
//! latencies, and the occupancy of the pipes. An instruction stays after everything it depends on
//! through a register, or through memory that may alias. Nothing crosses a branch, a barrier, a
//! fence, a call, a clock read, or any other operation with an effect that is not a plain memory
//! access; nor do loads, or stores, of global memory off one base pass each other, which would cost
//! bandwidth. What was loaded before an instruction that stays is still in flight behind it.
//! Near-linear: each memory operation is compared with a bounded number of earlier ones.

use super::accesses::Accesses;
use super::effects::{Effects, FENCE, Reg, RegTable, arrivals, memory_access};
use crate::analysis::PassCx;
use crate::ori::register_changes::Change;
use crate::ori::{Function, InstId, Kind};
use crate::tables::encoding::special_counts;
use crate::tables::latency::{Latency, Needed};
use crate::tables::ori::Class;
use crate::tables::throughput::{Pipe, Throughput};
use crate::tables::{Prop, Role, Tunable};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of earlier memory operations of a kind that one is compared with.
const COMPARED: usize = 32;
/// Number of ready instructions to skip because their pipe is busy.
const PASSED: usize = 8;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let function = &mut *cx.function;
    let Some(latency) = Latency::of(function.target()) else { return };
    let Some(throughput) = Throughput::of(function.target()) else { return };
    let (mut uses, mut in_flight) = (RegTable::new(), RegTable::new());
    for block in function.layout().to_vec() {
        in_flight.clear();
        let insts = std::mem::take(&mut function[block]);
        let mut out = Vec::with_capacity(insts.len());
        let mut from = 0;
        for at in 0..=insts.len() {
            if at == insts.len() || is_fixed(function, insts[at]) {
                ordered(function, (latency, throughput), &insts[from..at], (&mut uses, &mut in_flight), &mut out);
                out.extend(insts.get(at));
                from = at + 1;
            }
        }
        function[block] = out;
    }
}

/// Whether no instruction may be reordered with this one.
pub fn is_fixed(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    let memory = op.has(Prop::ReadsMemory) || op.has(Prop::WritesMemory);
    op.has(Prop::Control)
        || op.has(Prop::Clobbers)
        || op.has(Prop::SideEffect) && !memory
        || op.has(Prop::CopyGroup)
        || reads_clock(function, inst)
}

/// Whether an instruction is fixed, but what only writes registers may follow it instead, if it
/// does not end a block: it calls nothing, reads no clock, and changes no number of registers.
pub fn is_fence(function: &Function, inst: InstId) -> bool {
    let binds = function[inst].op.has(Prop::Clobbers) || reads_clock(function, inst);
    is_fixed(function, inst) && !binds && Change::of(function, inst).is_none()
}

/// Whether an instruction reads a special register that counts.
fn reads_clock(function: &Function, inst: InstId) -> bool {
    match function.arg(inst, Role::S).kind() {
        Kind::Special(number) if function[inst].op.info().roles.iter().any(|r| r.class == Class::Special) => {
            special_counts(function.target(), number as u8)
        }
        _ => false,
    }
}

/// A node of the dependence graph: the number of unscheduled predecessors, and the successors.
#[derive(Default)]
struct Node {
    before: u32,
    after: SmallVec<[(u32, u32); 4]>,
    /// Critical path: cycles from its issue to the end of the region.
    height: u32,
    /// Earliest cycle of issue.
    earliest: u32,
    /// Its pipe, and for how many cycles it occupies the pipe.
    pipe: usize,
    keeps: u32,
}

type Tables<'a> = (&'a Latency, &'a Throughput);

/// Loads in flight: cycles until each register has its value.
type InFlight = RegTable<u32>;

fn ordered(
    function: &Function,
    (latency, throughput): Tables,
    insts: &[InstId],
    (uses, in_flight): (&mut RegTable<Uses>, &mut InFlight),
    out: &mut Vec<InstId>,
) {
    if insts.is_empty() {
        return;
    }
    let (mut nodes, effects) = graph(function, latency, insts, uses, in_flight);
    let mut results: SmallVec<[(Reg, u32); 16]> = SmallVec::new();
    for at in (0..nodes.len()).rev() {
        let data = &function[insts[at]];
        let pace = throughput.pace(data.op, &data.mods);
        (nodes[at].pipe, nodes[at].keeps) = (pace.pipe as usize, pace.cycles.into());
        let most = nodes[at].after.iter().map(|(to, cycles)| cycles + nodes[*to as usize].height).max();
        nodes[at].height = most.unwrap_or(0);
    }
    // Ready: longest critical path first, then original order. Waiting: by cycle.
    let mut ready: BinaryHeap<(u32, Reverse<u32>)> = BinaryHeap::new();
    let mut waiting: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    for (at, node) in nodes.iter().enumerate().filter(|(_, n)| n.before == 0) {
        match node.earliest {
            0 => ready.push((node.height, Reverse(at as u32))),
            when => waiting.push(Reverse((when, at as u32))),
        }
    }
    let mut cycle = 0;
    let mut free = [0; Pipe::ALL.len()];
    loop {
        while let Some(Reverse((when, at))) = waiting.peek().copied().filter(|w| w.0.0 <= cycle || ready.is_empty()) {
            waiting.pop();
            cycle = cycle.max(when);
            ready.push((nodes[at as usize].height, Reverse(at)));
        }
        let Some(at) = next(&mut ready, &nodes, cycle, &free) else { break };
        let (pipe, keeps) = (nodes[at as usize].pipe, nodes[at as usize].keeps);
        cycle = cycle.max(free[pipe]);
        free[pipe] = cycle + keeps;
        out.push(insts[at as usize]);
        for write in effects[at as usize].writes.iter().filter(|write| write.reg < FENCE) {
            let info = write.class.info();
            results.push((write.reg, if info.announced { cycle + u32::from(info.expected) } else { 0 }));
        }
        for (to, cycles) in std::mem::take(&mut nodes[at as usize].after) {
            let node = &mut nodes[to as usize];
            node.earliest = node.earliest.max(cycle + cycles);
            node.before -= 1;
            if node.before == 0 {
                waiting.push(Reverse((node.earliest, to)));
            }
        }
        cycle += 1;
    }
    pass(in_flight, cycle, &results);
}

/// What is in flight these cycles later, with what was written meanwhile.
fn pass(in_flight: &mut InFlight, cycles: u32, results: &[(Reg, u32)]) {
    in_flight.each(|left| *left = left.saturating_sub(cycles));
    for (reg, when) in results {
        *in_flight.entry(*reg) = when.saturating_sub(cycles);
    }
}

/// The ready instruction with the longest critical path whose pipe is free, or else the one whose
/// pipe is free first.
fn next(
    ready: &mut BinaryHeap<(u32, Reverse<u32>)>,
    nodes: &[Node],
    cycle: u32,
    free: &[u32; Pipe::ALL.len()],
) -> Option<u32> {
    let when = |at: u32| free[nodes[at as usize].pipe];
    let mut passed: SmallVec<[(u32, Reverse<u32>); PASSED]> = SmallVec::new();
    let mut found = None;
    while passed.len() < PASSED
        && let Some(top) = ready.pop()
    {
        if when(top.1.0) <= cycle {
            found = Some(top.1.0);
            break;
        }
        passed.push(top);
    }
    let found = found.or_else(|| passed.iter().map(|top| top.1.0).min_by_key(|at| when(*at)));
    ready.extend(passed.into_iter().filter(|top| Some(top.1.0) != found));
    found
}

/// Last writers of a register, and its readers since.
#[derive(Default)]
struct Uses {
    writers: SmallVec<[(u32, usize); 4]>,
    readers: SmallVec<[(u32, usize); 4]>,
}

fn graph(
    function: &Function,
    latency: &Latency,
    insts: &[InstId],
    uses: &mut RegTable<Uses>,
    in_flight: &InFlight,
) -> (Vec<Node>, Vec<Effects>) {
    let mut nodes: Vec<Node> = insts.iter().map(|_| Node::default()).collect();
    let mut effects: Vec<Effects> = insts.iter().map(|i| Effects::of(function, latency, *i)).collect();
    arrivals(function, insts, &mut effects.iter_mut().collect::<Vec<_>>());
    uses.clear();
    let mut memory = Accesses::new(COMPARED);
    let late_read = function.attributes().tuning.get(Tunable::LateRead);
    let cycles = |needed: Needed, first: usize, else_: u32| match needed {
        Needed::Cycles(n) => u32::from(n),
        Needed::Scoreboard => {
            let data = &function[insts[first]];
            else_.max(if else_ == 0 { latency.class_of(data.op, &data.mods).info().expected.into() } else { 0 })
        }
    };
    for at in 0..insts.len() {
        let now = at as u32;
        let written = |reg: Reg| uses.get(reg).and_then(|u| u.writers.last()).map_or(usize::MAX, |w| w.0 as usize);
        let access = memory_access(function, insts[at], written);
        for (i, access) in effects[at].reads.iter().enumerate().filter(|(_, a)| a.reg != FENCE) {
            let uses = uses.entry(access.reg);
            if uses.writers.is_empty() {
                let left = in_flight.get(access.reg).copied().unwrap_or_default();
                nodes[at].earliest = nodes[at].earliest.max(left);
            }
            for (writer, w) in &uses.writers {
                let class = effects[*writer as usize].writes[*w].class;
                let needed = latency.read_after_write(access.reg.file(), class, access.class);
                edge(&mut nodes, *writer, now, cycles(needed, *writer as usize, 0));
            }
            uses.readers.push((now, i));
        }
        for (i, access) in effects[at].writes.iter().enumerate() {
            let uses = uses.entry(access.reg);
            for (writer, w) in &uses.writers {
                let class = effects[*writer as usize].writes[*w].class;
                let needed = latency.write_after_write(access.reg.file(), class, access.class);
                edge(&mut nodes, *writer, now, cycles(needed, *writer as usize, 0));
            }
            for (reader, r) in uses.readers.iter().filter(|r| r.0 != now) {
                let class = effects[*reader as usize].reads[*r].class;
                let needed = latency.write_after_read(access.reg.file(), class, access.class);
                edge(&mut nodes, *reader, now, cycles(needed, *reader as usize, late_read));
            }
            if !effects[at].guarded {
                uses.writers.clear();
                uses.readers.clear();
            }
            uses.writers.push((now, i));
        }
        if let Some(access) = access {
            // What is off one base stays in order: its lines are fetched and written together.
            if let Some(earlier) = memory.beside(&access) {
                edge(&mut nodes, earlier, now, 1);
            }
            memory.add(now, access, |earlier| edge(&mut nodes, earlier, now, 1));
        }
    }
    (nodes, effects)
}

/// Adds a dependence: `to` issues at least `cycles` after `from`.
fn edge(nodes: &mut [Node], from: u32, to: u32, cycles: u32) {
    if from == to {
        return;
    }
    // Edges are added in the order of their ends, so an edge to the same end is the last.
    match nodes[from as usize].after.last_mut() {
        Some(old) if old.0 == to => old.1 = old.1.max(cycles),
        _ => {
            nodes[from as usize].after.push((to, cycles));
            nodes[to as usize].before += 1;
        }
    }
}
