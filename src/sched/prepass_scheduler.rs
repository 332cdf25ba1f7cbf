//! Pre-RA scheduling (phase AdvancedPhaseAllocReg): moves loads up within their blocks as far as
//! register pressure allows.
//!
//! Loads move together with the computation of their addresses, and constants move too, so several
//! loads are in flight at once and a result does not reuse a register that another load still waits
//! for. A moved instruction stays after the definitions of its operands, after accesses to its
//! results, and after memory accesses that may alias; it crosses no branch, call, barrier or other
//! operation with an effect. Register pressure grows nowhere above its maximum in the function, or
//! above [`FREE`]. Linear: an instruction passes a bounded number of others.

use super::list_scheduler::is_fixed;
use crate::analysis::PassCx;
use crate::analysis::def_use::sets_stack_pointer;
use crate::analysis::memory_dependence::Memory;
use crate::ori::hash::QuickMap;
use crate::ori::liveness::{Liveness, RegSet};
use crate::ori::{Block, File, Function, InstId, VReg};
use crate::tables::{Op, Prop};
use smallvec::SmallVec;

/// Maximum number of instructions that a load, and a constant, moves past.
const PAST: usize = 64;
const CONSTANT_PAST: usize = 8;
/// Registers that may live in any function. Measured on the launches of one target: 24 costs 3 %
/// more estimated cycles, and 40 gains nothing. It should follow the occupancy of each target.
const FREE: u32 = 32;
/// Registers below the function's limit that this pass leaves unused.
const MARGIN: u32 = 8;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let live = cx.liveness();
    let function = &mut *cx.function;
    let mut set = RegSet::new(function.regs.len());
    let mut most = FREE;
    let mut lines: Vec<Line> = Vec::new();
    for block in &function.layout {
        let line = Line::new(function, *block, &live, &mut set);
        most = most.max(line.pressure.iter().copied().max().unwrap_or(0));
        if line.touched.iter().any(|t| t.load) {
            lines.push(line);
        }
    }
    let cap = function.max_registers.map_or(u32::MAX, |n| n.saturating_sub(MARGIN));
    for mut line in lines {
        line.choose(function);
        line.hoist(most.min(cap));
        function.blocks[line.block] = line.insts;
    }
}

fn is_general(function: &Function, reg: VReg) -> bool {
    function.regs[reg].file == File::R
}

/// Registers and memory that an instruction accesses.
struct Touched {
    reads: SmallVec<[VReg; 6]>,
    writes: SmallVec<[VReg; 4]>,
    /// Number of general registers that it writes, and the registers whose last use it is.
    width: u32,
    last: SmallVec<[VReg; 4]>,
    memory: Option<Memory>,
    fixed: bool,
    load: bool,
    /// Maximum number of instructions it may move past.
    past: usize,
}

impl Touched {
    fn of(function: &Function, inst: InstId) -> Touched {
        let (mut reads, mut writes) = (SmallVec::new(), SmallVec::new());
        function.for_each_use(inst, |reg| reads.push(reg));
        function.for_each_def(inst, |reg| writes.push(reg));
        let general = |reg: &&VReg| is_general(function, **reg);
        let width = writes.iter().filter(general).count() as u32;
        let begins = matches!(function.insts[inst].op, Op::ENTRY | Op::PHI);
        let fixed = begins || is_fixed(function, inst) || sets_stack_pointer(function, inst);
        let load = !fixed && is_load(function, inst);
        let memory = Memory::of(function, inst, |_| usize::MAX);
        Touched { reads, writes, width, last: SmallVec::new(), memory, fixed, load, past: 0 }
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

fn is_load(function: &Function, inst: InstId) -> bool {
    let op = function.insts[inst].op;
    (op.has(Prop::ReadsMemory) || op == Op::LDC) && op.has(Prop::VariableLatency) && is_free(function, inst)
}

/// Whether the only effect of an instruction is to write registers that are not fixed.
fn is_free(function: &Function, inst: InstId) -> bool {
    let op = function.insts[inst].op;
    let bound = [Prop::WritesMemory, Prop::SideEffect, Prop::Convergent, Prop::Control].into_iter().any(|p| op.has(p));
    let mut kept = false;
    function.for_each_def(inst, |reg| kept |= function.regs[reg].fixed.is_some() || function.regs[reg].phys.is_some());
    let pseudo = matches!(op, Op::COPY | Op::UNDEF | Op::ENTRY | Op::PHI | Op::SYNCMASK | Op::NOP);
    !bound && !kept && !pseudo && !function.insts[inst].ordered
}

/// A block while it is being reordered.
struct Line {
    block: Block,
    insts: Vec<InstId>,
    touched: Vec<Touched>,
    /// General registers live before each instruction.
    pressure: Vec<u32>,
}

impl Line {
    fn new(function: &Function, block: Block, live: &Liveness, set: &mut RegSet) -> Line {
        let insts = function.blocks[block].clone();
        let mut touched: Vec<Touched> = insts.iter().map(|inst| Touched::of(function, *inst)).collect();
        let mut seen: Vec<VReg> = live.live[block].iter().copied().filter(|reg| is_general(function, *reg)).collect();
        seen.iter().for_each(|reg| {
            set.insert(*reg);
        });
        let mut count = seen.len() as u32;
        let mut pressure = vec![0; insts.len()];
        for (at, inst) in insts.iter().enumerate().rev() {
            let t = &mut touched[at];
            if function.insts[*inst].guard.is_null() {
                let gone = |reg: &&VReg| is_general(function, **reg) && set.remove(**reg);
                count -= t.writes.iter().filter(gone).count() as u32;
            }
            for reg in t.reads.iter().filter(|reg| is_general(function, **reg)) {
                if set.insert(*reg) {
                    seen.push(*reg);
                    t.last.push(*reg);
                    count += 1;
                }
            }
            pressure[at] = count;
        }
        seen.into_iter().for_each(|reg| {
            set.remove(reg);
        });
        Line { block, insts, touched, pressure }
    }

    /// Selects what moves: loads, the instructions their addresses depend on, constants. A result
    /// that a later copy moves to another register stays after the readers of that register,
    /// because only then can the copy be coalesced.
    fn choose(&mut self, function: &Function) {
        let mut wanted: QuickMap<VReg, ()> = QuickMap::default();
        let mut copied: QuickMap<VReg, VReg> = QuickMap::default();
        for at in (0..self.insts.len()).rev() {
            let inst = self.insts[at];
            let t = &mut self.touched[at];
            if function.insts[inst].op == Op::COPY {
                if let (Some(from), Some(to)) = (t.reads.first(), t.writes.first()) {
                    copied.insert(*from, *to);
                }
                continue;
            }
            let feeds = t.writes.iter().any(|reg| wanted.contains_key(reg));
            let free = !t.fixed && (t.load || is_free(function, inst));
            if free && (t.load || feeds) {
                t.past = PAST;
                wanted.extend(t.reads.iter().map(|reg| (*reg, ())));
            } else if free && t.reads.is_empty() {
                t.past = CONSTANT_PAST;
            }
            let partners: SmallVec<[VReg; 2]> = t.writes.iter().filter_map(|reg| copied.get(reg)).copied().collect();
            t.writes.extend(partners);
        }
    }

    fn hoist(&mut self, most: u32) {
        for at in 0..self.insts.len() {
            let limit = self.touched[at].past;
            let (mut to, mut next) = (at, at);
            while next > 0 && at - next < limit && self.lets_past(next - 1, at, most) {
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

    fn lets_past(&self, before: usize, at: usize, most: u32) -> bool {
        let (other, moved) = (&self.touched[before], &self.touched[at]);
        let room = self.pressure[before] + moved.width <= most.max(self.pressure[before] + moved.last.len() as u32);
        room && other.lets_past(moved)
    }

    /// Moves the instruction at `at` to index `to`.
    fn shift(&mut self, at: usize, to: usize) {
        let (crossed, rest) = self.touched.split_at_mut(at);
        let moved = &mut rest[0];
        // The reader that is now the last becomes the last use of the register.
        for other in crossed[to..].iter_mut().rev() {
            let stays: SmallVec<[VReg; 4]> = moved.last.iter().copied().filter(|r| other.reads.contains(r)).collect();
            moved.last.retain(|reg| !stays.contains(reg));
            other.last.extend(stays);
        }
        let (more, less) = (moved.width, moved.last.len() as u32);
        self.insts[to..=at].rotate_right(1);
        self.touched[to..=at].rotate_right(1);
        let before = self.pressure[to];
        self.pressure[to..=at].rotate_right(1);
        self.pressure[to] = before;
        self.pressure[to + 1..=at].iter_mut().for_each(|count| *count = (*count + more).saturating_sub(less));
    }
}
