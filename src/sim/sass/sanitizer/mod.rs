//! The sanitizer checks each instruction before and after it executes and judges programs and
//! schedules.
//!
//! * **Undefined values.** Each bit of registers, shared and local memory is defined or undefined;
//!   a warp starts with none defined. An undefined value may be copied, computed with, spilled and
//!   discarded, and taints what depends on it. It is a report (*uninitialised*) when it reaches an
//!   address, global memory, an atomic, a branch, a barrier, or the guard of an irreversible
//!   instruction. A defined value is never reported. Tracking is per bit: what an instruction
//!   masks, shifts or selects away does not count (`taint_probe` finds the dependences by trying),
//!   loads and stores carry the bits of each byte, and sign extension copies those of the sign bit.
//!   Not found: independence that only several instructions together establish (`a ^ ((a ^ b) & m)`
//!   in two of them), and a dependence that only an unlikely bit pattern shows. Arguments of the
//!   driver's functions are not checked, and global memory counts as defined.
//! * **Shared memory.** Two unordered accesses are a report (*race*), see `sim::race`. If both
//!   store the same value it is a note, which is printed and does not change the exit status.
//! * **Barriers.** A block barrier that only part of a warp reaches is a report (*divergent
//!   barrier*).
//! * **Clusters.** In a cluster of several blocks, races and undefined values in shared memory are
//!   not checked.
//! * **Registers.** A register beyond the declared count is a report when an instruction that names
//!   it executes.
//! * **Time** (optional). A result is visible only after its latency or after a wait for its
//!   scoreboard, see `hazard_timing`. Reading too early is a report (*hazard*) and returns bits
//!   that are neither the old nor the new value. The same holds for bytes of an asynchronous copy
//!   in flight (`async_copy`), and for stored data whose register was overwritten too early
//!   (`poison`).
//! * **Jitter** (a seed). The initial contents of registers and memory, the scheduling, and the
//!   last place of approximate functions vary with the seed. Without a seed every run is the same.
//!
//! A report does not end the run; a fault, an instruction that cannot execute, does. The sanitizer
//! changes no result of a program that gets no report.

pub mod accesses;
mod async_copy;
pub mod cycle_model;
mod footprint;
pub mod hazard_timing;
mod in_flight;
pub mod jitter;
mod matrices;
mod poison;
pub mod shadow;
mod taint_probe;
pub mod timing;

use super::super::fault::{Fault, Kind, Place};
use super::super::memory::load;
use super::super::ops::mbarrier::is_new_old;
use super::super::race::{Access, Clock, Races};
use super::super::report::{Report, Reports};
use super::block::{BARRIERS, Block};
use super::code::{AtomicOp, Code, Exec, Space};
use super::exec::{Machine, Step};
use super::setup::Setup;
use super::warp::lanes_of;
use crate::tables::latency::Latency;
use accesses::{File, Run, Slot, Touches};
use async_copy::Copies;
use cycle_model::{Cost, Course, Cycles, Spent};
use footprint::{Act, Reach};
use hazard_timing::{Hazard, Timeline};
use jitter::Jitter;
use poison::Stores;
use shadow::Shadow;
use std::rc::Rc;
use taint_probe::Cell;
use timing::Timing;

/// Registers with results of a driver function, from R4 on: a read of a texture has most.
const RESULTS: u8 = 5;

/// What is known of an instruction before the launch.
#[derive(Clone, Debug, Default)]
pub struct Note {
    /// The registers that it reads and writes.
    pub touches: Touches,
    /// A general register that it names beyond those that the kernel declares.
    pub beyond: Option<u8>,
    /// The highest register that it names.
    highest: Option<u8>,
    /// The disassembled text; empty without a trace.
    pub text: String,
    /// Its timing; `None` if time is not modelled.
    pub timing: Option<Timing>,
}

impl Note {
    /// Analyses an instruction of a kernel that declares `declared` registers.
    pub fn of(code: &Code, declared: usize) -> Note {
        let touches = Touches::of(code);
        let runs = touches.reads.iter().chain(&touches.writes).filter(|run| run.file == File::Reg);
        let beyond = runs.flat_map(|run| run.registers()).find(|r| *r >= declared);
        let runs = touches.reads.iter().chain(&touches.writes).filter(|run| run.file == File::Reg);
        let highest = runs.flat_map(|run| run.registers()).max().map(|r| r as u8);
        Note { beyond: beyond.map(|r| r as u8), highest, touches, ..Note::default() }
    }
}

/// The sanitizer's state for a block.
#[derive(Clone, Debug)]
pub struct Seen {
    warps: Vec<Shadow>,
    shared: Vec<u8>,
    races: Races,
    /// Where mbarriers are that atomics look after.
    mbarriers: Vec<u64>,
    time: Vec<Timeline>,
    copies: Copies,
    stores: Vec<Stores>,
    course: Course,
    /// The group that each warp executed last.
    groups: Vec<u32>,
    /// For each barrier the clock of the arrived warps, and the warps that wait there.
    barriers: Vec<(Clock, u32)>,
}

impl Seen {
    /// The state of a block that is about to start.
    pub fn new(setup: &Setup, warps: usize) -> Seen {
        Seen {
            warps: vec![Shadow::new(setup.registers, setup.zeroed); warps],
            // What other blocks of a cluster write has a value.
            shared: if setup.is_alone() { Vec::new() } else { vec![0; setup.shared_bytes] },
            races: Races::new(warps),
            mbarriers: Vec::new(),
            time: vec![Timeline::default(); warps],
            copies: Copies::default(),
            stores: vec![Stores::default(); warps],
            course: Course::new(warps),
            groups: vec![0; warps],
            barriers: vec![(Clock::default(), 0); BARRIERS],
        }
    }
}

/// The sanitizer of a launch.
#[derive(Debug, Default)]
pub struct Watch {
    notes: Vec<Rc<Note>>,
    reports: Reports,
    /// Findings that are not errors.
    remarks: Reports,
    /// How often each instruction was executed, once per group.
    pub counts: Vec<u64>,
    trace: Option<fn(&str)>,
    /// Latencies of the target, if time is modelled.
    latency: Option<&'static Latency>,
    /// The timing of each instruction for the cycle estimate, if time is modelled.
    pub costs: Vec<Option<Cost>>,
    /// The estimate for the slowest block.
    pub cycles: Cycles,
    /// Where its cycles went, by instruction, if that is wanted; or those of every block.
    pub profile: Option<Vec<Spent>>,
    pub every_block: bool,
    hazards: Vec<Hazard>,
    /// The source of variation, if there is a seed.
    pub jitter: Option<Jitter>,
    /// The accesses of the current instruction.
    reaches: Vec<Reach>,
    /// Its results that depend on undefined bits.
    tainted: Vec<(Cell, u32)>,
    /// The old contents of a copy's destination, if its bytes are to arrive later.
    held: Vec<[u8; 16]>,
    /// The code has barriers in shared memory that atomics look after.
    pub arrives_by_atomics: bool,
}

impl Watch {
    /// A sanitizer for a launch whose instructions have these notes; `trace` receives a line for
    /// each executed instruction.
    pub fn new(notes: Vec<Note>, trace: Option<fn(&str)>, latency: Option<&'static Latency>) -> Watch {
        Watch {
            counts: vec![0; notes.len()],
            notes: notes.into_iter().map(Rc::new).collect(),
            trace,
            latency,
            ..Watch::default()
        }
    }

    /// The errors, the notes, and how often each instruction was executed.
    pub fn into_reports(self) -> (Vec<Report>, Vec<Report>, Vec<u64>) {
        (self.reports.into_list(), self.remarks.into_list(), self.counts)
    }

    /// Adds the cycle estimate of a block that has ended.
    pub fn ended(&mut self, seen: &Seen) {
        if self.latency.is_some() {
            let profiled = self.profile.is_some();
            let mut block = vec![Spent::default(); if profiled { self.costs.len() } else { 0 }];
            let cost = match profiled {
                true => seen.course.profiled(&self.costs, &mut |pc, spent| block[pc as usize].add(&spent)),
                false => seen.course.cycles(&self.costs),
            };
            let slowest = cost.block > self.cycles.block;
            if slowest {
                self.cycles = cost;
            }
            match &mut self.profile {
                Some(all) if self.every_block => {
                    all.resize(block.len(), Spent::default());
                    all.iter_mut().zip(&block).for_each(|(sum, more)| sum.add(more));
                }
                Some(profile) if slowest => *profile = block,
                _ => {}
            }
        }
    }

    /// Checks an instruction before it executes.
    ///
    /// # Errors
    ///
    /// A fault of a trial execution, see `taint_probe`.
    pub(super) fn before(&mut self, m: &mut Machine, block: &mut Block, s: &Step) -> Result<(), Fault> {
        let Some(mut seen) = block.seen.take() else { return Ok(()) };
        self.counts[s.pc as usize] += 1;
        if seen.groups[s.warp] != s.group {
            let step = block.warps[s.warp].instructions as u32;
            let before = std::mem::replace(&mut seen.groups[s.warp], s.group);
            seen.races.were_together(s.warp, before, step);
            seen.time[s.warp].switch(before, s.group);
        }
        if let Some(jitter) = &mut self.jitter {
            jitter.look(block, s.warp, s.code, s.active);
        }
        let done = self.look(m, block, &mut seen, s);
        block.seen = Some(seen);
        done
    }

    fn look(&mut self, m: &mut Machine, block: &mut Block, seen: &mut Seen, s: &Step) -> Result<(), Fault> {
        let note = Rc::clone(&self.notes[s.pc as usize]);
        if let Some(trace) = self.trace {
            let [x, y, z] = block.id;
            let (warp, pc, active, text) = (s.warp, u64::from(s.pc) * 16, s.active, &note.text);
            let cycle = seen.time[s.warp].cycle();
            trace(&format!("block ({x},{y},{z}) warp {warp} cycle {cycle} lanes {active:#010x} pc {pc:#06x} {text}"));
        }
        if let Some(register) = note.beyond {
            let text = format!("R{register} is beyond the registers that the kernel declares");
            self.report(block, s, Fault::of(Kind::Register, text));
        }
        let limit = block.warps[s.warp].limit;
        if let Some(register) = note.highest.filter(|r| m.setup.entry_registers.is_some() && u16::from(*r) >= limit) {
            let text = format!("R{register} is beyond the {limit} registers that the warp has");
            self.report(block, s, Fault::of(Kind::Register, text));
        }
        if let (Some(latency), Some(timing)) = (self.latency, &note.timing) {
            let lanes = (s.group, s.active);
            seen.course.issue(s.warp, s.pc);
            seen.time[s.warp].issue(latency, timing, s.pc, lanes, &mut self.hazards);
            for hazard in std::mem::take(&mut self.hazards) {
                self.report(block, s, Fault::of(Kind::Hazard, &hazard.what).among(hazard.lanes));
                poison::registers(&mut block.warps[s.warp], &hazard);
                if let Some(pc) = hazard.late {
                    seen.stores[s.warp].spoil(m, block, s.warp, pc, hazard.lanes);
                }
            }
            if !seen.copies.is_empty() {
                self.copies(block, seen, s.warp, timing);
            }
        }
        self.tainted.clear();
        self.reaches.clear();
        let done = self.values(m, block, seen, s, &note.touches);
        if footprint::is_access(s.code) && s.active != 0 {
            self.memory(m, block, seen, s, &note.touches);
        }
        if matches!(s.code.exec, Exec::BlockBarrier { .. }) && s.active != 0 {
            self.barrier(block, seen, s);
        }
        done
    }

    /// Updates asynchronous copies: commits a group, completes groups, delivers bytes.
    fn copies(&mut self, block: &mut Block, seen: &mut Seen, warp: usize, timing: &Timing) {
        let time = &seen.time[warp];
        if let Some(setting) = time.setting(timing.ctrl.write_bar).filter(|_| timing.commits) {
            seen.copies.commit(warp, setting);
        }
        if timing.ctrl.wait != 0 || timing.depends.is_some() {
            seen.copies.finish(&mut block.shared, warp, |setting| time.is_over(setting));
        }
        if let Some(jitter) = &mut self.jitter {
            seen.copies.arrive(&mut block.shared, warp, jitter);
        }
    }

    /// Checks the values that the instruction reads: a report, or taint of its results.
    fn values(
        &mut self,
        m: &mut Machine,
        block: &mut Block,
        seen: &Seen,
        s: &Step,
        touches: &Touches,
    ) -> Result<(), Fault> {
        let shadow = &seen.warps[s.warp];
        let mut dirty = 0;
        for run in &touches.reads {
            let among = if run.slot == Slot::Guard { s.group } else { s.active };
            let lanes = shadow.lanes_of(*run) & among;
            if lanes == 0 {
                continue;
            }
            if let Some(what) = decides(s.code, run.slot) {
                let name = format!("{}{}", run.file.prefix(), first_without(shadow, *run, lanes));
                let text = format!("{what} depends on {name}, which has no value");
                self.report(block, s, Fault::of(Kind::Uninitialised, text).on_lane(lanes.trailing_zeros() as usize));
            } else if run.slot == Slot::Guard {
                // Whether the instruction executes at all is unknown.
                let all = touches.writes.iter().flat_map(|run| taint_probe::cells(*run, lanes));
                self.tainted.extend(all.map(|cell| (cell, u32::MAX)));
            } else {
                dirty |= lanes;
            }
        }
        if dirty != 0 && !footprint::is_access(s.code) && !touches.writes.is_empty() {
            let found = taint_probe::depending(m, block, s, shadow, (&touches.reads, &touches.writes))?;
            self.tainted.extend(found);
        }
        Ok(())
    }

    /// Checks the accesses of a memory instruction: undefined data and races.
    fn memory(&mut self, m: &mut Machine, block: &mut Block, seen: &mut Seen, s: &Step, touches: &Touches) {
        match s.code.exec {
            Exec::Tensor(tensor) => {
                self.reaches = footprint::tensor_reaches(m, &block.warps[s.warp], s.code, s.active, tensor);
            }
            _ => footprint::reaches(m.setup, block, s.warp, s.code, s.active, &mut self.reaches),
        }
        if !seen.copies.is_empty() {
            self.too_early_for_a_copy(block, seen, s);
        }
        self.held.clear();
        if self.jitter.is_some() && matches!(s.code.exec, Exec::CopyAsync { .. }) {
            self.held = Copies::held(&block.shared, &self.reaches);
        }
        match s.code.exec {
            Exec::LoadMatrix { .. } => {
                let found = matrices::load(&mut seen.shared, block, s, &touches.writes, &self.reaches);
                self.tainted.extend(found);
            }
            Exec::Group(group) => {
                let found = matrices::product(&mut seen.shared, &seen.warps[s.warp], block, s, &group);
                self.tainted.extend(found);
            }
            Exec::Bulk(_) | Exec::Tensor(_) => {
                if let Some(r) = footprint::bulk(&mut seen.shared, block, &self.reaches) {
                    let fault = Fault::of(Kind::Uninitialised, "what is stored to global memory has no value");
                    self.report(block, s, fault.about(r.at).on_lane(r.lane));
                }
            }
            Exec::StoreMatrix { .. } => matrices::store(&mut seen.shared, &seen.warps[s.warp], block, s, touches),
            _ => {}
        }
        let stores = self.reaches.first().is_some_and(|r| r.act == Act::Store);
        if stores {
            let shadow = &mut seen.warps[s.warp];
            let found = footprint::store(&mut seen.shared, shadow, block, s.warp, (s.code, touches), &self.reaches);
            if let Some(r) = found {
                let fault = Fault::of(Kind::Uninitialised, "what is stored to global memory has no value");
                self.report(block, s, fault.about(r.at).on_lane(r.lane));
            }
        }
        let step = block.warps[s.warp].instructions as u32;
        let strong = matches!(s.code.exec, Exec::Load { access, .. } | Exec::Store { access, .. } if access.strong);
        let loose = matches!(s.code.exec, Exec::Load { space: Space::Shared, .. });
        for i in 0..self.reaches.len() {
            let mut r = self.reaches[i];
            // Whoever looks at a word of an mbarrier asks for the end of a phase.
            let barrier = r.space == Space::Shared && seen.mbarriers.contains(&(r.at & !7));
            if barrier && r.act == Act::Load {
                r.act = Act::Atomic;
            }
            let lock = if barrier { r.at & !7 } else { r.at } | if r.space == Space::Shared { 1 << 63 } else { 0 };
            match r.act {
                Act::Atomic => seen.races.synchronise(s.warp, lock, step),
                Act::Load if strong || loose => seen.races.acquire(s.warp, lock),
                Act::Store if strong => seen.races.release(s.warp, lock),
                Act::Load | Act::Store => {}
            }
            if r.space != Space::Shared || !m.setup.is_alone() {
                continue;
            }
            let (store, atomic) = (r.act != Act::Load, strong || r.act == Act::Atomic);
            let (at, bytes, lane) = (r.at, r.bytes, r.lane);
            let same = if stores { footprint::unchanged(block, s.warp, s.code, &r) } else { 0 };
            let (warp, group, pc) = (s.warp, s.group, s.pc);
            let access = Access { at, bytes, store, atomic, loose, same, warp, lane, group, step, pc };
            let Some(race) = seen.races.access(access, block.shared.len()) else { continue };
            let before = race.other.lane;
            let text = match race.other.is_beside(&access) {
                true if footprint::same_data(block, s.warp, s.code, [lane, before.into()]) => continue,
                true => {
                    format!("lane {before} stores something else to shared address {:#x} at the same time", race.at)
                }
                false => race.text(&format!("pc {:#x}", u64::from(race.other.pc) * 16)),
            };
            let fault = Fault::of(Kind::Race, text).about(race.at).on_lane(lane);
            if race.benign { self.remark(block, s, fault) } else { self.report(block, s, fault) }
        }
    }

    /// Reports accesses to bytes that a copy in flight will write, and overwrites them with bits
    /// that are neither the old nor the new ones.
    fn too_early_for_a_copy(&mut self, block: &mut Block, seen: &Seen, s: &Step) {
        for i in 0..self.reaches.len() {
            let r = self.reaches[i];
            let Some(pc) = seen.copies.under_way(&r).filter(|_| r.space == Space::Shared) else { continue };
            let (at, pc) = (r.at, u64::from(pc) * 16);
            let verb = if r.act == Act::Load { "read" } else { "written" };
            let text = format!("shared address {at:#x} is {verb} while the copy at pc {pc:#x} to it is under way");
            self.report(block, s, Fault::of(Kind::Hazard, text).about(at).on_lane(r.lane));
            if let Some(bytes) = block.shared.get_mut(at as usize..at as usize + usize::from(r.bytes)) {
                bytes.fill(0xa5);
            }
        }
    }

    /// Checks the arrival at a block barrier.
    fn barrier(&mut self, block: &Block, seen: &mut Seen, s: &Step) {
        let w = &block.warps[s.warp];
        let missing = w.alive & !s.active;
        if missing != 0 {
            let text = format!("lanes {missing:#010x} of the warp do not reach the barrier together with the others");
            self.report(block, s, Fault::of(Kind::DivergentBarrier, text));
        }
        let Exec::BlockBarrier { arrive_only, .. } = s.code.exec else { return };
        let number = w.get(&s.code.a, s.active.trailing_zeros() as usize % 32) as usize % BARRIERS;
        let (known, waiting) = &mut seen.barriers[number];
        seen.races.arrive(s.warp, known);
        if !arrive_only {
            *waiting |= 1 << s.warp;
        }
    }

    /// After an instruction: marks its results as defined, except the bits found tainted before.
    pub(super) fn after(&mut self, block: &mut Block, s: &Step) {
        let Some(mut seen) = block.seen.take() else { return };
        if let Some(jitter) = &mut self.jitter {
            jitter.approximate(block, s.warp, s.code, s.active);
        }
        let touches = &self.notes[s.pc as usize].touches;
        let shadow = &mut seen.warps[s.warp];
        touches.writes.iter().for_each(|run| shadow.clear(*run, s.active));
        for (cell, bits) in &self.tainted {
            shadow.set(cell.file, cell.register, cell.lane, *bits);
        }
        if let (Some(trace), Some((cell, bits))) = (self.trace, self.tainted.first()) {
            let name = format!("{}{}", cell.file.prefix(), cell.register);
            trace(&format!(
                "    {} results without a value, first {name} of lane {}, bits {bits:#x}",
                self.tainted.len(),
                cell.lane
            ));
        }
        if self.reaches.first().is_some_and(|r| r.act != Act::Store) {
            footprint::load(&mut seen.shared, shadow, block, s.warp, (s.code, touches), &self.reaches);
            if matches!(s.code.exec, Exec::Atomic { op: AtomicOp::Exch, .. }) {
                footprint::written(&mut seen.shared, shadow, block, s.warp, &self.reaches);
            }
        }
        self.made_mbarriers(block, &mut seen, s);
        if self.latency.is_some() && self.reaches.first().is_some_and(|r| r.act == Act::Store) {
            if matches!(s.code.exec, Exec::CopyAsync { .. }) {
                seen.copies.start(&mut block.shared, s.warp, s.pc, &self.reaches, &self.held);
            } else {
                seen.stores[s.warp].remember(s.pc, &mut self.reaches);
            }
        }
        match s.code.exec {
            Exec::Mbarrier(act) if act.ends_copies() => seen.copies.hand_over(&mut block.shared, s.warp),
            Exec::BlockBarrier { .. } | Exec::Exit | Exec::Kill => open_barriers(block, &mut seen),
            // A driver function returns its results in the registers of the calling convention.
            Exec::BranchIndirect { absolute: true, .. } => {
                let shadow = &mut seen.warps[s.warp];
                shadow.clear(Run { file: File::Reg, first: 4, count: RESULTS, slot: Slot::Result }, s.active);
            }
            _ => {}
        }
        block.seen = Some(seen);
    }

    /// Stores of what looks like a new mbarrier, in code that arrives at such without a unit.
    fn made_mbarriers(&mut self, block: &Block, seen: &mut Seen, s: &Step) {
        if !matches!(s.code.exec, Exec::Store { .. }) || !self.arrives_by_atomics {
            return;
        }
        for r in self.reaches.iter().filter(|r| r.space == Space::Shared && r.bytes == 8) {
            let word = block.shared.get(r.at as usize..r.at as usize + 8).map_or(0, load);
            if is_new_old(word) && !seen.mbarriers.contains(&r.at) {
                seen.mbarriers.push(r.at);
            }
        }
    }

    fn report(&mut self, block: &Block, s: &Step, fault: Fault) {
        self.reports.add(placed(block, s, fault));
    }

    /// Records a finding that is not an error.
    fn remark(&mut self, block: &Block, s: &Step, fault: Fault) {
        self.remarks.add(placed(block, s, fault));
    }
}

fn placed(block: &Block, s: &Step, fault: Fault) -> Fault {
    let place = Place { block: block.id, warp: s.warp as u32, pc: Some(u64::from(s.pc) * 16) };
    fault.among(s.active).among(s.group).at(place)
}

/// Orders the warps that waited at a completed barrier after all that arrived.
fn open_barriers(block: &Block, seen: &mut Seen) {
    for number in 0..BARRIERS {
        let (known, waiting) = seen.barriers[number];
        if waiting != 0 && block.is_fresh(number) {
            lanes_of(waiting).for_each(|warp| seen.races.pass(warp, &known));
            seen.course.meet(lanes_of(waiting));
            seen.barriers[number] = (Clock::default(), 0);
        }
    }
}

/// The first register of a range with an undefined bit on one of the lanes.
fn first_without(shadow: &Shadow, run: Run, lanes: u32) -> usize {
    let lacks = |r: &usize| lanes_of(lanes).any(|lane| shadow.get(run.file, *r, lane) != 0);
    run.registers().find(lacks).unwrap_or(run.first.into())
}

/// The irreversible effect that depends on an operand, in words; `None` if the operand only affects
/// results.
fn decides(code: &Code, slot: Slot) -> Option<&'static str> {
    let guard = slot == Slot::Guard;
    Some(match code.exec {
        Exec::Load { .. } | Exec::LoadWide { .. } | Exec::LoadConst { .. } | Exec::LoadMatrix { .. } if !guard => {
            "the address of a load"
        }
        Exec::Store { .. } | Exec::StoreWide | Exec::StoreMatrix { .. } if guard => "whether something is stored",
        Exec::Store { .. } | Exec::StoreWide | Exec::StoreMatrix { .. } if matches!(slot, Slot::A | Slot::Extra) => {
            "the address of a store"
        }
        Exec::Group(_) if slot == Slot::Extra => "a descriptor",
        Exec::Group(_) if slot == Slot::Pred => "whether something is added to",
        Exec::CopyAsync { .. } => "a copy",
        Exec::TensorMemory(super::tensor_memory::Act::Store { .. }) if slot == Slot::B => return None,
        Exec::TensorMemory(_) => "what is done in tensor memory",
        Exec::Bulk(_) => "a copy in bulk",
        Exec::Tensor(_) => "a copy of a tensor",
        Exec::Cancel { .. } => "a request for a block",
        Exec::Surface(_) => "an access to a surface",
        Exec::Sample(_) | Exec::Query(_) if !guard => "a read of a texture",
        Exec::Clear => "the address of a store",
        Exec::Atomic { .. } => "an atomic",
        Exec::Mbarrier(_) => "an operation on an mbarrier",
        Exec::Branch { .. }
        | Exec::BranchAll { .. }
        | Exec::BranchAny { .. }
        | Exec::BranchMask { .. }
        | Exec::BranchIndirect { .. } => "a branch",
        Exec::Exit | Exec::Kill | Exec::Trap => "the end of a thread",
        Exec::Bssy { .. } | Exec::Bsync { .. } | Exec::Break { .. } | Exec::WarpSync { .. } | Exec::Yield => {
            "convergence"
        }
        Exec::BlockBarrier { .. } => "a barrier",
        _ => return None,
    })
}
