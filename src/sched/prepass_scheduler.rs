//! Pre-RA scheduling (phase AdvancedPhaseAllocReg): moves loads up within their blocks as far as
//! register pressure allows.
//!
//! Loads move together with the computation of their addresses, and constants move too, so several
//! loads are in flight at once and a result does not reuse a register that another load still waits
//! for. A moved instruction stays after the definitions of its operands, after accesses to its
//! results, and after memory accesses that may alias; it crosses no branch, call, barrier or other
//! operation with an effect. Register pressure grows nowhere above the tunable `loads`, or
//! `loads_step` above its maximum in the function, up to the next step in which registers come to a
//! launch: a load that waits for the register of another one waits for memory. A large block, of a
//! kernel that says how large its blocks are, is not given up for that. Of predicates nowhere more
//! than [`PREDICATES`] live. A load whose result takes the same time whenever it comes moves no
//! further up than that time, and `loads_margin` cycles, before its first reader: further up it
//! gains nothing and keeps a register, which a block full of loads from shared memory has for
//! others. Linear: an instruction passes a bounded number of others.

use super::estimate::usual;
use super::list_scheduler::is_fixed;
use crate::analysis::PassCx;
use crate::analysis::def_use::sets_stack_pointer;
use crate::analysis::memory_dependence::Memory;
use crate::analysis::occupancy::{Occupancy, has_large_blocks};
use crate::arrays::Each;
use crate::ori::hash::QuickMap;
use crate::ori::liveness::{Liveness, RegSet};
use crate::ori::{Block, File, Function, InstId, VReg, register_changes};
use crate::tables::latency::Latency;
use crate::tables::{Op, Prop, Role, Tunable};
use smallvec::SmallVec;

/// Maximum number of instructions that a constant moves past; `loads_past` is that of a load.
const CONSTANT_PAST: usize = 8;
/// Predicates that may live anywhere; one without a register is moved to a general one and back.
const PREDICATES: u32 = 7;
/// Registers that a kernel states beyond those that live: the stack pointer, two that the count
/// adds, and one that alignment costs. Multiprocessors give registers in steps of what is stated.
const STATED: u32 = 4;
/// Cycles from which on a result may take many times as long.
const SURE: u32 = 100;
/// Registers below the function's limit that this pass leaves unused.
const MARGIN: u32 = 8;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let live = cx.liveness();
    let function = &mut *cx.function;
    let mut set = RegSet::new(function.regs().len());
    for (registers, blocks) in register_changes::groups(function) {
        hoist(function, &blocks, (&live, registers.saturating_sub(MARGIN)), &mut set);
    }
}

/// Moves loads up in blocks in which a warp has equally many registers.
fn hoist(function: &mut Function, blocks: &[Block], (live, cap): (&Liveness, u32), set: &mut RegSet) {
    let Some(latency) = Latency::of(function.target()) else { return };
    let tuning = function.attributes().tuning;
    let [free, step, past] = [Tunable::Loads, Tunable::LoadsStep, Tunable::LoadsPast].each(|t| tuning.get(t));
    let margin = tuning.get(Tunable::LoadsMargin);
    let mut most = 0;
    let mut lines: Vec<Line> = Vec::new();
    for block in blocks {
        let line = Line::new(function, *block, live, set);
        most = most.max(line.pressure.iter().map(|live| live[0]).max().unwrap_or(0));
        if line.touched.iter().any(|t| t.load) {
            lines.push(line);
        }
    }
    if step > 0 {
        let stated = most + STATED;
        let blocks = Occupancy::of(function).filter(|_| has_large_blocks(function));
        let as_many = blocks.map_or(u32::MAX, |occupancy| occupancy.most(stated as i32).cast_unsigned());
        most = (stated + step).next_multiple_of(step).min(as_many) - STATED;
    }
    most = most.max(free);
    for mut line in lines {
        line.estimate(function, (latency, margin));
        line.choose(function, (latency, past as usize));
        line.hoist([most.min(cap), PREDICATES]);
        function[line.block] = line.insts;
    }
}

/// What is counted: general registers, predicates.
type Counts = [u32; 2];

/// The place of a register in what is counted.
fn counted(function: &Function, reg: VReg) -> Option<usize> {
    match function[reg].file {
        File::R => Some(0),
        File::P => Some(1),
        _ => None,
    }
}

/// Registers and memory that an instruction accesses.
struct Touched {
    reads: SmallVec<[VReg; 8]>,
    writes: SmallVec<[VReg; 4]>,
    /// How many registers it writes, and the registers whose last use it is.
    width: Counts,
    last: [SmallVec<[VReg; 4]>; 2],
    memory: Option<Memory>,
    fixed: bool,
    load: bool,
    /// Maximum number of instructions it may move past.
    past: usize,
    /// The cycle of the block in which it issues where no load is waited for.
    issues: u32,
    /// The cycle before which its result is not needed: it moves no further up.
    early: u32,
}

impl Touched {
    fn of(function: &Function, inst: InstId) -> Touched {
        let (mut reads, mut writes) = (SmallVec::new(), SmallVec::new());
        function.for_each_use(inst, |reg| reads.push(reg));
        function.for_each_def(inst, |reg| writes.push(reg));
        let mut width = Counts::default();
        writes.iter().filter_map(|reg| counted(function, *reg)).for_each(|file| width[file] += 1);
        let begins = function[inst].op.has(Prop::BeginsBlock);
        let fixed = begins || is_fixed(function, inst) || sets_stack_pointer(function, inst);
        let load = !fixed && is_load(function, inst);
        let memory = Memory::of(function, inst, |_| usize::MAX);
        Touched { reads, writes, width, last: Default::default(), memory, fixed, load, past: 0, issues: 0, early: 0 }
    }

    /// Whether another instruction may move before this one.
    fn lets_past(&self, other: &Touched) -> bool {
        let apart = |a: &[VReg], b: &[VReg]| a.iter().all(|reg| !b.contains(reg));
        let memory = match (&self.memory, &other.memory) {
            (Some(a), Some(b)) => a.apart(b),
            _ => true,
        };
        !self.fixed
            && memory
            && apart(&self.writes, &other.reads)
            && apart(&self.writes, &other.writes)
            && apart(&self.reads, &other.writes)
    }
}

/// Cycles from the issue of an instruction to its result, which may be of another class than the
/// instruction: that of a texture comes late.
fn takes(function: &Function, latency: &Latency, inst: InstId) -> u32 {
    let data = &function[inst];
    let result = data.op.info().roles.iter().position(|role| role.role == Role::D);
    let class = result.map(|role| latency.class(data.op, &data.mods, role, 0).info()).filter(|info| info.announced);
    class.map_or_else(|| usual(function, latency, inst).unsigned_abs() as u32, |info| info.expected.into())
}

fn is_load(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    (op.has(Prop::ReadsMemory) || op == Op::LDC) && op.has(Prop::VariableLatency) && is_free(function, inst)
}

/// Whether the only effect of an instruction is to write registers that are not fixed.
fn is_free(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    let bound = [Prop::WritesMemory, Prop::SideEffect, Prop::Convergent, Prop::Control].into_iter().any(|p| op.has(p));
    let mut kept = false;
    function.for_each_def(inst, |reg| kept |= function[reg].fixed.is_some() || function[reg].phys.is_some());
    let pseudo = op.has(Prop::Bookkeeping) || op == Op::NOP;
    !bound && !kept && !pseudo && !function[inst].ordered
}

/// A block while it is being reordered.
struct Line {
    block: Block,
    insts: Vec<InstId>,
    touched: Vec<Touched>,
    /// Registers live before each instruction.
    pressure: Vec<Counts>,
}

impl Line {
    fn new(function: &Function, block: Block, live: &Liveness, set: &mut RegSet) -> Line {
        let insts = function[block].clone();
        let mut touched: Vec<Touched> = insts.iter().map(|inst| Touched::of(function, *inst)).collect();
        let mut seen: Vec<VReg> = live.live[block].to_vec();
        seen.retain(|reg| counted(function, *reg).is_some());
        let mut count = Counts::default();
        for reg in &seen {
            set.insert(*reg);
            counted(function, *reg).into_iter().for_each(|file| count[file] += 1);
        }
        let mut pressure = vec![count; insts.len()];
        for (at, inst) in insts.iter().enumerate().rev() {
            let t = &mut touched[at];
            if function[*inst].guard.is_null() {
                let gone = t.writes.iter().filter_map(|reg| Some((counted(function, *reg)?, reg)));
                gone.for_each(|(file, reg)| count[file] -= u32::from(set.remove(*reg)));
            }
            for (file, reg) in t.reads.iter().filter_map(|reg| Some((counted(function, *reg)?, reg))) {
                if set.insert(*reg) {
                    seen.push(*reg);
                    t.last[file].push(*reg);
                    count[file] += 1;
                }
            }
            pressure[at] = count;
        }
        seen.into_iter().for_each(|reg| {
            set.remove(reg);
        });
        Line { block, insts, touched, pressure }
    }

    /// Estimates when instructions issue at the earliest, where no load is waited for: behind what
    /// they depend on and one in a cycle. From then on a load need not stand earlier for its first
    /// reader than its result takes, and a margin.
    fn estimate(&mut self, function: &Function, (latency, margin): (&Latency, u32)) {
        // When each result is there, and the load that it is of while nothing has read it.
        let mut results: QuickMap<VReg, (u32, Option<usize>)> = QuickMap::default();
        // Nothing crosses what is fixed.
        let mut fixed = 0;
        for at in 0..self.insts.len() {
            let (mut ready, mut loads) = (fixed, SmallVec::<[usize; 4]>::new());
            for reg in &self.touched[at].reads {
                if let Some((there, load)) = results.get_mut(reg) {
                    ready = ready.max(*there);
                    loads.extend(load.take());
                }
            }
            let cycles = takes(function, latency, self.insts[at]);
            let t = &mut self.touched[at];
            t.issues = ready.max(at as u32);
            fixed = if t.fixed { t.issues } else { fixed };
            t.early = if t.load { u32::MAX } else { 0 };
            let result = if t.load { (ready, Some(at)) } else { (ready + cycles, None) };
            for reg in &t.writes {
                results.insert(*reg, result);
            }
            for load in loads {
                let takes = Some(takes(function, latency, self.insts[load])).filter(|takes| *takes < SURE);
                let early = takes.map_or(0, |takes| self.touched[at].issues.saturating_sub(takes + margin));
                self.touched[load].early = self.touched[load].early.min(early);
            }
        }
        // What nothing in the block reads is read behind it.
        let end = self.insts.len() as u32;
        for (t, inst) in self.touched.iter_mut().zip(&self.insts).filter(|(t, _)| t.early == u32::MAX) {
            let takes = Some(takes(function, latency, *inst)).filter(|takes| *takes < SURE);
            t.early = takes.map_or(0, |takes| end.saturating_sub(takes + margin));
        }
    }

    /// Selects what moves: loads, the instructions their addresses depend on, constants. A result
    /// that a later copy moves to another register stays after the readers of that register,
    /// because only then can the copy be coalesced.
    fn choose(&mut self, function: &Function, (latency, past): (&Latency, usize)) {
        let mut wanted: QuickMap<VReg, u32> = QuickMap::default();
        let mut copied: QuickMap<VReg, VReg> = QuickMap::default();
        for at in (0..self.insts.len()).rev() {
            let inst = self.insts[at];
            let t = &mut self.touched[at];
            if function[inst].op == Op::COPY {
                if let (Some(from), Some(to)) = (t.reads.first(), t.writes.first()) {
                    copied.insert(*from, *to);
                }
                continue;
            }
            let wants = t.writes.iter().filter_map(|reg| wanted.get(reg)).min().copied();
            let feeds = wants.is_some();
            if !t.load
                && let Some(wants) = wants
            {
                t.early = wants.saturating_sub(takes(function, latency, inst));
            }
            let free = !t.fixed && (t.load || is_free(function, inst));
            if free && (t.load || feeds) {
                t.past = past;
                for reg in &t.reads {
                    let wants = wanted.entry(*reg).or_insert(t.early);
                    *wants = t.early.min(*wants);
                }
            } else if free && t.reads.is_empty() {
                t.past = CONSTANT_PAST;
            }
            if !copied.is_empty() {
                let partners: SmallVec<[VReg; 4]> =
                    t.writes.iter().filter_map(|reg| copied.get(reg)).copied().collect();
                t.writes.extend(partners);
            }
        }
    }

    fn hoist(&mut self, most: Counts) {
        for at in 0..self.insts.len() {
            let Touched { past: limit, early, .. } = self.touched[at];
            let (mut to, mut next) = (at, at);
            let useful = |line: &Line, next: usize| line.touched[next].issues >= early;
            while next > 0 && at - next < limit && useful(self, next - 1) && self.lets_past(next - 1, at, most) {
                next -= 1;
                // It may pass instructions that move only for the sake of earlier ones; it stops at
                // the first position before an instruction that does not move as far.
                if self.touched[next].past < limit {
                    to = next;
                }
            }
            if to < at {
                self.shift(at, to);
            }
        }
    }

    fn lets_past(&self, before: usize, at: usize, most: Counts) -> bool {
        let (other, moved) = (&self.touched[before], &self.touched[at]);
        let room = |file: usize| {
            let live = self.pressure[before][file];
            live + moved.width[file] <= most[file].max(live + moved.last[file].len() as u32)
        };
        room(0) && room(1) && other.lets_past(moved)
    }

    /// Moves the instruction at `at` to index `to`.
    fn shift(&mut self, at: usize, to: usize) {
        let (crossed, rest) = self.touched.split_at_mut(at);
        let moved = &mut rest[0];
        // The reader that is now the last becomes the last use of the register.
        for (file, last) in moved.last.iter_mut().enumerate() {
            for other in crossed[to..].iter_mut().rev() {
                if last.is_empty() {
                    break;
                }
                let stays: SmallVec<[VReg; 4]> = last.iter().copied().filter(|r| other.reads.contains(r)).collect();
                last.retain(|reg| !stays.contains(reg));
                other.last[file].extend(stays);
            }
        }
        let change = [0, 1].each(|file| (moved.width[file], moved.last[file].len() as u32));
        self.insts[to..=at].rotate_right(1);
        self.touched[to..=at].rotate_right(1);
        let before = self.pressure[to];
        self.pressure[to..=at].rotate_right(1);
        self.pressure[to] = before;
        for (file, (more, less)) in change.into_iter().enumerate() {
            let counts = self.pressure[to + 1..=at].iter_mut().map(|count| &mut count[file]);
            counts.for_each(|count| *count = (*count + more).saturating_sub(less));
        }
    }
}
