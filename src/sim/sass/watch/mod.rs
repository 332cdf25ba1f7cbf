//! What looks on while the machine executes, and judges programs and schedules.
//!
//! Input: each instruction before and after it is executed. Output: reports. What it guarantees:
//!
//! * **Values.** Each bit of a register, of shared and of local memory has a value or not; a warp starts with none. What has no value may be
//!   copied, computed with, spilt and discarded, and taints what depends on it. It is a report (*uninitialised*) when it reaches an address,
//!   global memory, an atomic, the guard of what cannot be undone, a branch or a barrier. Nothing that has a value is ever reported.
//!   Judged is each bit: what an instruction masks, shifts or selects away does not count (`trial` finds by trying what a
//!   result depends on), loads and stores carry the bits of each byte, and signs those of the bit that they repeat. Not judged: what several
//!   instructions together make independent of it (`a ^ ((a ^ b) & m)` in two of them), a number that only an
//!   unlikely pattern of bits changes, arguments of the driver's own functions, and global memory, which counts as written.
//! * **Shared memory.** Two accesses that nothing puts in order are a report (*race*); see `race`. Where both store the same value it is
//!   a note, which is printed and changes no exit status.
//! * **Barriers.** A block barrier that a warp reaches in parts is a report (*divergent barrier*).
//! * **Registers.** One beyond the declared count is a report when an instruction that names it is executed.
//! * **Time** (where it is on): a result is visible only after its latency, or after its scoreboard was waited for; see `time`. What is read
//!   too early is a report (*hazard*), and bits that are neither the old nor the new value; so is what an asynchronous copy is still to
//!   bring (`copies`), and what is stored after its register was overwritten too early (`spoil`).
//! * **Jitter** (a seed): what lies in registers and memory before it is written, who runs for how long, and the last bit of
//!   approximate functions are as the seed has it; without one, everything is the same each time.
//!
//! A report does not end the run; what cannot be executed (a fault) does. The watch changes no result of a program that gets no report.

mod copies;
pub mod cost;
mod flights;
pub mod jitter;
mod matrices;
mod reach;
pub mod shadow;
mod spoil;
pub mod time;
pub mod timing;
pub mod touch;
mod trial;

use super::super::fault::{Fault, Kind, Place};
use super::super::race::{Access, Clock, Races};
use super::super::report::{Report, Reports};
use super::block::{BARRIERS, Block};
use super::code::{AtomicOp, Code, Exec, Space};
use super::exec::{Machine, Step};
use super::setup::Setup;
use super::warp::lanes_of;
use crate::tables::latency::Latency;
use copies::Copies;
use cost::{Cost, Course, Cycles};
use jitter::Jitter;
use reach::{Act, Reach};
use shadow::Shadow;
use spoil::Stores;
use std::rc::Rc;
use time::{Hazard, Timeline};
use timing::Timing;
use touch::{File, Run, Slot, Touches};
use trial::Cell;

/// What is known of one instruction before a launch.
#[derive(Clone, Debug, Default)]
pub struct Note {
    pub touches: Touches,
    /// A general register that it names and the kernel does not declare.
    pub beyond: Option<u8>,
    /// As the disassembler prints it; empty where nobody asks for a trace.
    pub text: String,
    /// What it asks of time; `None` where nothing is asked.
    pub timing: Option<Timing>,
}

impl Note {
    /// Of an instruction in a kernel that declares so many registers.
    pub fn of(code: &Code, declared: usize) -> Note {
        let touches = Touches::of(code);
        let runs = touches.reads.iter().chain(&touches.writes).filter(|run| run.file == File::Reg);
        let beyond = runs.flat_map(|run| run.registers()).find(|r| *r >= declared);
        Note { beyond: beyond.map(|r| r as u8), touches, ..Note::default() }
    }
}

/// What is known of a block.
#[derive(Clone, Debug)]
pub struct Seen {
    warps: Vec<Shadow>,
    shared: Vec<u8>,
    races: Races,
    time: Vec<Timeline>,
    copies: Copies,
    stores: Vec<Stores>,
    course: Course,
    /// The group that each warp executed last.
    groups: Vec<u32>,
    /// What those know that arrived at each barrier, and the warps that wait there.
    barriers: Vec<(Clock, u32)>,
}

impl Seen {
    /// Of a block about to start.
    pub fn new(setup: &Setup, warps: usize) -> Seen {
        Seen {
            warps: vec![Shadow::new(setup.registers, setup.zeroed); warps],
            shared: Vec::new(),
            races: Races::new(warps),
            time: vec![Timeline::default(); warps],
            copies: Copies::default(),
            stores: vec![Stores::default(); warps],
            course: Course::new(warps),
            groups: vec![0; warps],
            barriers: vec![(Clock::default(), 0); BARRIERS],
        }
    }
}

/// The watch over a launch.
#[derive(Debug, Default)]
pub struct Watch {
    notes: Vec<Rc<Note>>,
    reports: Reports,
    /// What is worth a note and no error.
    remarks: Reports,
    /// How often each instruction was executed, once per group.
    pub counts: Vec<u64>,
    trace: Option<fn(&str)>,
    /// Latencies of the target, where time is on.
    latency: Option<&'static Latency>,
    /// What each instruction costs, where time is on, and the cycles of the longest block.
    pub costs: Vec<Option<Cost>>,
    pub cycles: Cycles,
    hazards: Vec<Hazard>,
    /// Where the run varies.
    pub jitter: Option<Jitter>,
    /// Of the instruction in the act: its accesses, and results that depend on what has no value.
    reaches: Vec<Reach>,
    tainted: Vec<(Cell, u32)>,
    /// What the places of copies held, where their bytes are to come later.
    held: Vec<[u8; 16]>,
}

impl Watch {
    /// Over a launch whose instructions have these notes; `trace` gets a line for each that is executed.
    pub fn new(notes: Vec<Note>, trace: Option<fn(&str)>, latency: Option<&'static Latency>) -> Watch {
        Watch {
            counts: vec![0; notes.len()],
            notes: notes.into_iter().map(Rc::new).collect(),
            trace,
            latency,
            ..Watch::default()
        }
    }

    /// What it found: errors, notes; how often each instruction was executed.
    pub fn into_reports(self) -> (Vec<Report>, Vec<Report>, Vec<u64>) {
        (self.reports.into_list(), self.remarks.into_list(), self.counts)
    }

    /// A block has ended: what it cost.
    pub fn ended(&mut self, seen: &Seen) {
        if self.latency.is_some() {
            let cost = seen.course.cycles(&self.costs);
            self.cycles = if cost.block > self.cycles.block { cost } else { self.cycles };
        }
    }

    /// Before an instruction is executed: findings about what it reads; a fault only where the trial of its results ends in one.
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
        if let (Some(latency), Some(timing)) = (self.latency, &note.timing) {
            let lanes = (s.group, s.active);
            seen.course.issue(s.warp, s.pc);
            seen.time[s.warp].issue(latency, timing, s.pc, lanes, &mut self.hazards);
            for hazard in std::mem::take(&mut self.hazards) {
                self.report(block, s, Fault::of(Kind::Hazard, &hazard.what).among(hazard.lanes));
                spoil::registers(&mut block.warps[s.warp], &hazard);
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
        if reach::is_access(s.code) && s.active != 0 {
            self.memory(m.setup, block, seen, s, &note.touches);
        }
        if matches!(s.code.exec, Exec::BlockBarrier { .. }) && s.active != 0 {
            self.barrier(block, seen, s);
        }
        done
    }

    /// Asynchronous copies: a group is committed, is over, or some bytes come.
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

    /// What the instruction reads without a value: a report, or taint of its results.
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
                // Whether it is executed at all is not known.
                let all = touches.writes.iter().flat_map(|run| trial::cells(*run, lanes));
                self.tainted.extend(all.map(|cell| (cell, u32::MAX)));
            } else {
                dirty |= lanes;
            }
        }
        if dirty != 0 && !reach::is_access(s.code) && !touches.writes.is_empty() {
            let found = trial::depending(m, block, s, shadow, (&touches.reads, &touches.writes))?;
            self.tainted.extend(found);
        }
        Ok(())
    }

    /// The accesses of a memory instruction: data without a value, races.
    fn memory(&mut self, setup: &Setup, block: &mut Block, seen: &mut Seen, s: &Step, touches: &Touches) {
        reach::reaches(setup, block, s.warp, s.code, s.active, &mut self.reaches);
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
            Exec::StoreMatrix { .. } => matrices::store(&mut seen.shared, &seen.warps[s.warp], block, s, touches),
            _ => {}
        }
        let stores = self.reaches.first().is_some_and(|r| r.act == Act::Store);
        if stores {
            let shadow = &mut seen.warps[s.warp];
            let found = reach::store(&mut seen.shared, shadow, block, s.warp, (s.code, touches), &self.reaches);
            if let Some(r) = found {
                let fault = Fault::of(Kind::Uninitialised, "what is stored to global memory has no value");
                self.report(block, s, fault.about(r.at).on_lane(r.lane));
            }
        }
        let step = block.warps[s.warp].instructions as u32;
        for i in 0..self.reaches.len() {
            let r = self.reaches[i];
            if r.act == Act::Atomic {
                let space = if r.space == Space::Shared { 1 << 63 } else { 0 };
                seen.races.synchronise(s.warp, r.at | space, step);
            }
            if r.space != Space::Shared {
                continue;
            }
            let (store, atomic) = (r.act != Act::Load, r.act == Act::Atomic);
            let (at, bytes, lane) = (r.at, r.bytes, r.lane);
            let same = if stores { reach::unchanged(block, s.warp, s.code, &r) } else { 0 };
            let access = Access { at, bytes, store, atomic, same, warp: s.warp, lane, group: s.group, step, pc: s.pc };
            let Some(race) = seen.races.access(access, block.shared.len()) else { continue };
            let before = race.other.lane;
            let text = match race.other.is_beside(&access) {
                true if reach::same_data(block, s.warp, s.code, [lane, before.into()]) => continue,
                true => {
                    format!("lane {before} stores something else to shared address {:#x} at the same time", race.at)
                }
                false => race.text(&format!("pc {:#x}", u64::from(race.other.pc) * 16)),
            };
            let fault = Fault::of(Kind::Race, text).about(race.at).on_lane(lane);
            if race.benign { self.remark(block, s, fault) } else { self.report(block, s, fault) }
        }
    }

    /// Accesses of bytes to which a copy is under way: a report, and bits that are neither the old nor the new ones.
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

    /// A block barrier is reached.
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

    /// After an instruction was executed: what it wrote has values, but for what was found before.
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
            reach::load(&mut seen.shared, shadow, block, s.warp, (s.code, touches), &self.reaches);
            if matches!(s.code.exec, Exec::Atomic { op: AtomicOp::Exch, .. }) {
                reach::written(&mut seen.shared, shadow, block, s.warp, &self.reaches);
            }
        }
        if self.latency.is_some() && self.reaches.first().is_some_and(|r| r.act == Act::Store) {
            if matches!(s.code.exec, Exec::CopyAsync { .. }) {
                seen.copies.start(&mut block.shared, s.warp, s.pc, &self.reaches, &self.held);
            } else {
                seen.stores[s.warp].remember(s.pc, &mut self.reaches);
            }
        }
        match s.code.exec {
            Exec::BlockBarrier { .. } | Exec::Exit | Exec::Kill => open_barriers(block, &mut seen),
            // A function of the driver gives its result in the registers of the calling convention.
            Exec::BranchIndirect { absolute: true, .. } => {
                shadow.clear(Run { file: File::Reg, first: 4, count: 2, slot: Slot::Result }, s.active);
            }
            _ => {}
        }
        block.seen = Some(seen);
    }

    fn report(&mut self, block: &Block, s: &Step, fault: Fault) {
        self.reports.add(placed(block, s, fault));
    }

    /// What is worth a note and no error.
    fn remark(&mut self, block: &Block, s: &Step, fault: Fault) {
        self.remarks.add(placed(block, s, fault));
    }
}

fn placed(block: &Block, s: &Step, fault: Fault) -> Fault {
    let place = Place { block: block.id, warp: s.warp as u32, pc: Some(u64::from(s.pc) * 16) };
    fault.among(s.active).among(s.group).at(place)
}

/// Whoever waited at a barrier that has become complete knows what all knew that arrived.
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

/// The first register of a run that lacks a bit on one of these lanes.
fn first_without(shadow: &Shadow, run: Run, lanes: u32) -> usize {
    let lacks = |r: &usize| lanes_of(lanes).any(|lane| shadow.get(run.file, *r, lane) != 0);
    run.registers().find(lacks).unwrap_or(run.first.into())
}

/// What cannot be undone and depends on an operand, in words; `None` where the operand only goes into a result.
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
        Exec::CopyAsync { .. } => "a copy",
        Exec::Atomic { .. } => "an atomic",
        Exec::Branch { .. } | Exec::BranchMask { .. } | Exec::BranchIndirect { .. } => "a branch",
        Exec::Exit | Exec::Kill | Exec::Trap => "the end of a thread",
        Exec::Bssy { .. } | Exec::Bsync { .. } | Exec::Break { .. } | Exec::WarpSync { .. } | Exec::Yield => {
            "convergence"
        }
        Exec::BlockBarrier { .. } => "a barrier",
        _ => return None,
    })
}
