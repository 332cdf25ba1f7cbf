//! Models time within a warp and detects hazards: results that are read, or registers that are
//! overwritten, too early.
//!
//! * A fixed-latency result is ready the number of cycles after issue that the tables give for its
//!   class and the reading operand. A scoreboarded result is ready only after a wait for its
//!   scoreboard, however long it takes; results of a class that completes in order are also ready
//!   when a later one of the class is.
//! * A register may be overwritten when the tables allow it: a number of cycles after the first
//!   write or an early read, after the scoreboard of the first write, or after either scoreboard of
//!   a late read. Otherwise the order of two writes is unknown, and reading the register is a
//!   report. Late reads of one queue (`LatencyClass::read_order`) happen in issue order: knowing
//!   that one is done means that those before it are done, and a write from the same queue comes
//!   after them. After a block barrier all late reads are done.
//! * A predicate result of an instruction with late sources is also ready when those sources have
//!   been read.
//! * Scoreboards are counters: a wait covers everything counted so far, DEPBAR all but the last
//!   few. A scoreboard cannot be waited for in the cycle after the instruction that sets it.
//! * Cycles are counted as if every wait ended immediately, so the schedule is judged by its stalls
//!   and scoreboards alone, never by luck. Stall 0 waits until all fixed-latency results are ready.
//! * An operand marked for reuse keeps its value for the next read of the same register in the same
//!   slot (`sass::reuse`).
//! * Diverged lanes have clocks of their own: what another group executes meanwhile does not count.

use super::in_flight::{BOARDS, FIRST_QUEUE, Flight, Flights, GROUPS, Known, Mark, Places, Setting, name};
use super::timing::{Timing, Use};
use crate::arrays::Each;
use crate::sass::reuse::Cache;
use crate::tables::latency::{Latency, LatencyClass, MOST_PAIRS, Needed, RegFile};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Cycles from issue until the instruction's scoreboard counts.
const COUNTED: u64 = 2;

/// A hazard at an instruction.
#[derive(Clone, Debug)]
pub struct Hazard {
    /// What happened, in words.
    pub what: String,
    /// The register that is read too early; `None` if nothing is read.
    pub read: Option<(RegFile, u8)>,
    /// The lanes concerned.
    pub lanes: u32,
    /// The pc of the instruction that has yet to read the overwritten register.
    pub late: Option<u32>,
    /// The in-flight results of that instruction.
    pub results: Vec<(RegFile, u8)>,
}

impl Hazard {
    fn of(what: String, read: Option<(RegFile, u8)>, lanes: u32) -> Hazard {
        Hazard { what, read, lanes, late: None, results: Vec::new() }
    }
}

/// The timing state of one warp.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The clock of the running group, and what is known to be complete.
    known: Known,
    flights: Flights,
    set: [u64; BOARDS],
    /// The cycle at which each scoreboard was last set, on the clock of the setting group.
    set_at: [u64; BOARDS],
    set_by: [u32; BOARDS],
    /// The lanes of that setting; other lanes of the warp have their own clocks.
    set_for: [u32; BOARDS],
    /// For each order (results of a class, or reads of a queue) the number issued so far.
    issued: Places,
    /// For each scoreboard the orders that its settings cover, in the order of the settings:
    /// (setting, order, place).
    covers: [VecDeque<(u64, u8, u64)>; BOARDS],
    cache: Cache,
    /// The cycle at which the first instruction of each pair was last issued, and its place.
    firsts: [Option<(u64, u32)>; MOST_PAIRS],
}

/// Most settings of a scoreboard that are remembered: more than it counts.
const MOST_COVERS: usize = 256;

impl Timeline {
    /// Switches from one group of the warp to another.
    pub fn switch(&mut self, from: u32, to: u32) {
        self.cache.clear();
        let mut latest = 0;
        for lane in 0..32 {
            if from >> lane & 1 != 0 {
                self.known.clocks[lane] = self.known.clock;
            }
            if to >> lane & 1 != 0 {
                latest = latest.max(self.known.clocks[lane]);
            }
        }
        self.known.clock = latest;
    }

    /// The cycle at which the running group issues next.
    pub fn cycle(&self) -> u64 {
        self.known.clock
    }

    /// The last setting of a scoreboard.
    pub fn setting(&self, board: u8) -> Option<(u8, u64)> {
        Some((board, *self.set.get(usize::from(board))?))
    }

    /// Whether a setting of a scoreboard is known to be complete.
    pub fn is_over(&self, (board, number): (u8, u64)) -> bool {
        self.known.done[usize::from(board)] >= number
    }

    /// Issues an instruction on the active lanes of a group and appends its hazards to `found`.
    pub fn issue(
        &mut self,
        latency: &Latency,
        t: &Timing,
        pc: u32,
        (group, active): (u32, u32),
        found: &mut Vec<Hazard>,
    ) {
        self.wait(t, group, found);
        for read in &t.reads {
            self.check_read(latency, read, if read.guard { group } else { active }, found);
        }
        self.reuse(t, pc, active, found);
        self.pairs(latency, t, (pc, group), found);
        let mut overtaken = SmallVec::<[Option<u32>; 4]>::new();
        for write in &t.writes {
            overtaken.push(self.overtaken(latency, write, active));
            self.check_write(latency, t, write, active, found);
        }
        self.note(t, pc, (group, active), &overtaken);
        self.go_on(latency, t, group, found);
    }

    /// Checks operands that the reuse cache serves with a stale value.
    fn reuse(&mut self, t: &Timing, pc: u32, active: u32, found: &mut Vec<Hazard>) {
        let written = t.writes.iter().filter(|write| write.file == RegFile::R).map(|write| write.register);
        self.cache.step(&t.reuse, written, (pc, active), |stale| {
            let (kept, by, register) = (u64::from(stale.kept) * 16, u64::from(stale.written) * 16, stale.register);
            let what = format!(
                "R{register} is read as it was kept for reuse at pc {kept:#x}, and was written at pc {by:#x} since"
            );
            found.push(Hazard::of(what, Some((RegFile::R, register)), stale.lanes));
        });
    }

    /// Checks the distance from instructions that name no register in common.
    fn pairs(&mut self, latency: &Latency, t: &Timing, (pc, group): (u32, u32), found: &mut Vec<Hazard>) {
        for (i, pair) in latency.each_pair(t.pairs[1]) {
            let Some((at, first)) = self.firsts[i] else { continue };
            let age = self.known.clock.saturating_sub(at);
            if age < u64::from(pair.cycles) {
                let (first, needed) = (u64::from(first) * 16, pair.cycles);
                let what = format!("is issued {age} cycles behind pc {first:#x}, and {needed} are needed");
                found.push(Hazard::of(what, None, group));
            }
        }
        latency.each_pair(t.pairs[0]).for_each(|(i, _)| self.firsts[i] = Some((self.known.clock, pc)));
    }

    /// Waits for the scoreboards of the wait mask and of DEPBAR.
    fn wait(&mut self, t: &Timing, group: u32, found: &mut Vec<Hazard>) {
        for board in (0..usize::from(GROUPS)).filter(|board| t.ctrl.wait >> board & 1 != 0) {
            let (at, by) = (self.set_at[board], self.set_by[board]);
            let own = self.set_for[board] & group != 0;
            if own
                && t.drains >> board & 1 == 0
                && self.set[board] > self.known.done[board]
                && self.known.clock < at + COUNTED
                && self.known.clock >= at
            {
                let what =
                    format!("scoreboard {board} is waited for before the instruction at pc {:#x} has set it", by * 16);
                found.push(Hazard::of(what, None, group));
            }
            self.finish(board, self.set[board]);
        }
        if let Some((board, under_way)) = t.depends
            && let Some(set) = self.set.get(usize::from(board))
        {
            self.finish(board.into(), set.saturating_sub(under_way));
        }
    }

    fn finish(&mut self, board: usize, setting: u64) {
        if self.known.done[board] >= setting {
            return;
        }
        self.known.done[board] = setting;
        let covers = &mut self.covers[board];
        while covers.front().is_some_and(|cover| cover.0 <= setting)
            && let Some((_, order, place)) = covers.pop_front()
        {
            let known = &mut self.known.over.0[usize::from(order)];
            *known = (*known).max(place);
        }
    }

    fn check_read(&self, latency: &Latency, read: &Use, lanes: u32, found: &mut Vec<Hazard>) {
        for f in self.flights.writes(read).iter().filter(|f| f.lanes & lanes != 0) {
            if let Some(earlier) = f.overtaken {
                let (first, second) = (u64::from(earlier) * 16, u64::from(f.pc) * 16);
                let what = format!(
                    "{} is read, and its write at pc {second:#x} did not wait for that at pc {first:#x}",
                    name(read)
                );
                found.push(Hazard::of(what, Some((read.file, read.register)), f.lanes & lanes));
                continue;
            }
            let needed = latency.read_after_write(read.file, f.what.class, read.class);
            if let Some(why) = self.known.too_early(f, needed) {
                let what = format!("{} is read {why}", name(read));
                found.push(Hazard::of(what, Some((read.file, read.register)), f.lanes & lanes));
            }
        }
    }

    /// The pc of an earlier write of the register that may complete after the new one.
    fn overtaken(&self, latency: &Latency, write: &Use, lanes: u32) -> Option<u32> {
        let mut before = self.flights.writes(write).iter().filter(|f| f.lanes & lanes != 0);
        let open = |f: &&Flight| {
            let (first, second) = (f.what.class, write.class);
            let needed = latency.write_after_write(write.file, first, second);
            // Announced results of one class that come in order do so at any distance.
            let ordered = first == second && first.info().in_order && needed != Needed::Scoreboard;
            !ordered && self.known.too_early(f, needed).is_some()
        };
        before.find(open).map(|f| f.pc)
    }

    fn check_write(&self, latency: &Latency, t: &Timing, write: &Use, lanes: u32, found: &mut Vec<Hazard>) {
        let file = write.file;
        let queue = write.class.info().queue;
        // A result comes after what its own instruction reads, which comes after earlier reads of
        // the same order.
        let own = || t.read_order().map(|order| FIRST_QUEUE + usize::from(order));
        let behind = |f: &Flight| f.order.get().is_some_and(|(order, _)| Some(usize::from(order)) == own());
        let earlier = |f: &&Flight| queue != 0 && (f.what.class.info().queue == queue || behind(f));
        for f in self.flights.reads(write).iter().filter(|f| f.lanes & lanes != 0 && !earlier(f)) {
            let needed = latency.write_after_read(file, f.what.class, write.class);
            if let Some(why) = self.known.too_early(f, needed) {
                let what = format!("{}, still to be read, is written {why}", name(write));
                let same = |result: &&Flight| result.pc == f.pc && result.lanes & f.lanes & lanes != 0;
                let results = self.flights.all_writes().filter(same).map(|r| (r.what.file, r.what.register)).collect();
                let lanes = f.lanes & lanes;
                found.push(Hazard { late: Some(f.pc), results, ..Hazard::of(what, None, lanes) });
            }
        }
    }

    /// Sets the scoreboards and records the in-flight accesses.
    fn note(&mut self, t: &Timing, pc: u32, (group, active): (u32, u32), overtaken: &[Option<u32>]) {
        let (mut written, read) = (self.count(t.ctrl.write_bar, pc, active), self.count(t.ctrl.read_bar, pc, active));
        if t.class == LatencyClass::Group {
            // Over with the group that is open: when the next commit is.
            written = Some((GROUPS, self.set[usize::from(GROUPS)] + 1));
            if t.closes {
                self.count(GROUPS, pc, active);
            }
        }
        let class = t.writes.first().map_or(t.class, |write| write.class);
        let in_order = class.info().in_order.then_some(class as usize);
        let result = in_order.map(|order| self.take_place(order, [written, None]));
        // What reads no register, as a load from a fixed address, stands in the queue too.
        let order = t.read_order().or(in_order.map(|_| class.read_order(class)).filter(|order| *order != 0));
        let read_place = order.map(|order| self.take_place(FIRST_QUEUE + usize::from(order), [read, written]));
        if t.meets {
            self.known.over.0[FIRST_QUEUE..].copy_from_slice(&self.issued.0[FIRST_QUEUE..]);
        }
        if active == 0 {
            return;
        }
        let Timeline { known, flights, .. } = self;
        t.writes.iter().for_each(|write| flights.overwrite(write, active));
        let flight = |what: &Use, settings: [Setting; 2], overtaken, order| Flight {
            what: *what,
            lanes: active,
            issue: known.clock,
            pc,
            settings: settings.each(Mark::of),
            overtaken,
            order: Mark::of(order),
        };
        for (write, overtaken) in t.writes.iter().zip(overtaken) {
            let predicate = matches!(write.file, RegFile::P | RegFile::UP);
            let settings = [written, read.filter(|_| predicate)];
            flights.write(known, flight(write, settings, *overtaken, result), group);
        }
        let kept = || t.reads.iter().filter(|read| !read.guard && read.is_awaited());
        kept().for_each(|read| flights.read_again(known, read, pc, (group, active)));
        kept().for_each(|r| flights.read(flight(r, [read, written], None, read_place)));
    }

    /// Records a setting of a scoreboard.
    fn count(&mut self, board: u8, pc: u32, active: u32) -> Setting {
        let slot = self.set.get_mut(usize::from(board))?;
        *slot += 1;
        let number = *slot;
        let place = usize::from(board);
        (self.set_at[place], self.set_by[place], self.set_for[place]) = (self.known.clock, pc, active);
        Some((board, number))
    }

    /// Takes the next place in an order; `settings` are the scoreboards that cover it.
    fn take_place(&mut self, order: usize, settings: [Setting; 2]) -> (u8, u64) {
        self.issued.0[order] += 1;
        let place = self.issued.0[order];
        for (board, number) in settings.into_iter().flatten() {
            let covers = &mut self.covers[usize::from(board)];
            // A setting covers everything before it; an older one still tells when a wait lets the
            // last ones go on.
            if covers.len() >= MOST_COVERS {
                covers.pop_front();
            }
            covers.push_back((number, order as u8, place));
        }
        (order as u8, place)
    }

    /// Advances the clock past the instruction.
    fn go_on(&mut self, latency: &Latency, t: &Timing, group: u32, found: &mut Vec<Hazard>) {
        if t.ctrl.stall == 0 {
            // The longest distance that any next access of the register may need.
            let longest = |f: &Flight| {
                let cycles = |needed: Needed| match needed {
                    Needed::Cycles(n) => n.into(),
                    Needed::Scoreboard => 0,
                };
                let (file, first) = (f.what.file, f.what.class);
                let of = |next: &LatencyClass| {
                    let read = latency.read_after_write(file, first, *next);
                    cycles(read).max(cycles(latency.write_after_write(file, first, *next)))
                };
                f.issue + LatencyClass::ALL.iter().map(of).max().unwrap_or(0)
            };
            let last = self.flights.all_writes().map(longest).max().unwrap_or(0);
            self.known.clock = last.max(self.known.clock + COUNTED);
            return;
        }
        // For memory and block barriers the table's least stall is only advisable; ptxas goes below
        // it in places.
        if t.ctrl.stall < t.least && t.class == LatencyClass::Branch {
            let what = format!("stalls for {} cycles, and {} are needed", t.ctrl.stall, t.least);
            found.push(Hazard::of(what, None, group));
        }
        self.known.clock += u64::from(t.ctrl.stall);
    }
}
