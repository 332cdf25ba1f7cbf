//! Time within a warp: when results are there, and who looked too early.
//!
//! Input: the instructions of a warp in the order of execution. Output: hazards. What is guaranteed:
//!
//! * A result of fixed latency is there so many cycles after its instruction was issued as the tables say for its class and the operand that
//!   reads it. A result that a scoreboard announces is there when somebody has waited for that scoreboard since, and not before, however
//!   long it takes; results of a class that comes in order are there, too, when a later one of the class is.
//! * A register may be written again when the tables allow it: cycles after the first write or an early read, the scoreboard of the first
//!   write, either scoreboard of a late read. Which of two writes comes last is not known else, and a report where the register is read.
//!   Late reads of one order (`LatencyClass::read_order`) happen in the order of issue: what is known of one is known of those before it,
//!   and who writes in the same queue comes after them; behind a block barrier all of them are over.
//! * A predicate that an instruction with late sources gives is there, too, when those have been read.
//! * Scoreboards are counters: waiting for one waits for all that was counted on it, DEPBAR for all but the last few. One cannot be
//!   waited for in the cycle after the instruction that sets it.
//! * Cycles are counted as if every wait were over at once: the schedule is judged by stalls and scoreboards alone, never by luck. Stall 0 is
//!   a wait until all results of fixed latency are there.
//! * An operand marked for reuse keeps its value for whoever reads the same register in the same slot next (`sass::reuse`).
//! * Lanes that have parted have clocks of their own: what another group does meanwhile gives nobody time.

use super::flights::{BOARDS, FIRST_QUEUE, Flight, Flights, Known, Mark, Places, Setting, name};
use super::timing::{Timing, Use};
use crate::sass::reuse::Cache;
use crate::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use smallvec::SmallVec;

/// Cycles from the issue of an instruction until its scoreboard counts.
const COUNTED: u64 = 2;

/// Something that was done before its time.
#[derive(Clone, Debug)]
pub struct Hazard {
    pub what: String,
    /// The register that is read too early, and the lanes; `None` where nothing is read.
    pub read: Option<(RegFile, u8)>,
    pub lanes: u32,
    /// The instruction that still was to read what is overwritten, and its results that are under way.
    pub late: Option<u32>,
    pub results: Vec<(RegFile, u8)>,
}

impl Hazard {
    fn of(what: String, read: Option<(RegFile, u8)>, lanes: u32) -> Hazard {
        Hazard { what, read, lanes, late: None, results: Vec::new() }
    }
}

/// The time of one warp.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The clock of the running group, and what is known to be over.
    known: Known,
    clocks: [u64; 32],
    flights: Flights,
    set: [u64; BOARDS],
    /// Cycle, on the clock of the group that did it, at which each scoreboard was set last.
    set_at: [u64; BOARDS],
    set_by: [u32; BOARDS],
    /// Lanes of the setting: what other lanes of the warp do has a clock of its own.
    set_for: [u32; BOARDS],
    /// Of each order, of results of a class or of reads of a queue: how many were issued.
    issued: Places,
    /// What was issued of an order when a setting was made: (scoreboard, setting, order, place).
    covers: Vec<(u8, u64, u8, u64)>,
    cache: Cache,
}

impl Timeline {
    /// Another group of the warp goes on.
    pub fn switch(&mut self, from: u32, to: u32) {
        self.cache.clear();
        let mut latest = 0;
        for lane in 0..32 {
            if from >> lane & 1 != 0 {
                self.clocks[lane] = self.known.clock;
            }
            if to >> lane & 1 != 0 {
                latest = latest.max(self.clocks[lane]);
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

    /// Whether a setting of a scoreboard is known to be over.
    pub fn is_over(&self, (board, number): (u8, u64)) -> bool {
        self.known.done[usize::from(board)] >= number
    }

    /// An instruction is issued on these lanes of a group; what it does too early.
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
        let mut overtaken = SmallVec::<[Option<u32>; 4]>::new();
        for write in &t.writes {
            overtaken.push(self.overtaken(latency, write, active));
            self.check_write(latency, write, active, found);
        }
        self.note(t, pc, (group, active), &overtaken);
        self.go_on(latency, t, group, found);
    }

    /// What is kept for reuse, and read though it is stale.
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

    /// Waits for the scoreboards of the mask, and of DEPBAR.
    fn wait(&mut self, t: &Timing, group: u32, found: &mut Vec<Hazard>) {
        for board in (0..BOARDS).filter(|board| t.ctrl.wait >> board & 1 != 0) {
            let (at, by) = (self.set_at[board], self.set_by[board]);
            let own = self.set_for[board] & group != 0;
            if own
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
        let over = &mut self.known.over;
        self.covers.retain(|(b, s, order, place)| {
            let met = usize::from(*b) == board && *s <= setting;
            if met {
                let known = &mut over.0[usize::from(*order)];
                *known = (*known).max(*place);
            }
            !met
        });
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

    /// The earlier write of a register that may come after a new one, by its place.
    fn overtaken(&self, latency: &Latency, write: &Use, lanes: u32) -> Option<u32> {
        let mut before = self.flights.writes(write).iter().filter(|f| f.lanes & lanes != 0);
        let open = |f: &&Flight| {
            let needed = latency.write_after_write(write.file, f.what.class, write.class);
            self.known.too_early(f, needed).is_some()
        };
        before.find(open).map(|f| f.pc)
    }

    fn check_write(&self, latency: &Latency, write: &Use, lanes: u32, found: &mut Vec<Hazard>) {
        let file = write.file;
        let queue = write.class.info().queue;
        let earlier = |f: &&Flight| queue != 0 && f.what.class.info().queue == queue;
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

    /// Counts on the scoreboards and remembers what is under way.
    fn note(&mut self, t: &Timing, pc: u32, (group, active): (u32, u32), overtaken: &[Option<u32>]) {
        let (written, read) = (self.count(t.ctrl.write_bar, pc, active), self.count(t.ctrl.read_bar, pc, active));
        let class = t.writes.first().map_or(t.class, |write| write.class);
        let in_order = class.info().in_order.then_some(class as usize);
        let result = in_order.map(|order| self.take_place(order, [written, None]));
        let order = t.reads.iter().map(|read| t.class.read_order(read.class)).find(|order| *order != 0);
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
            settings: settings.map(Mark::of),
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

    /// A setting of a scoreboard.
    fn count(&mut self, board: u8, pc: u32, active: u32) -> Setting {
        let slot = self.set.get_mut(usize::from(board))?;
        *slot += 1;
        let number = *slot;
        let place = usize::from(board);
        (self.set_at[place], self.set_by[place], self.set_for[place]) = (self.known.clock, pc, active);
        Some((board, number))
    }

    /// The next place in an order, covered by settings of scoreboards.
    fn take_place(&mut self, order: usize, settings: [Setting; 2]) -> (u8, u64) {
        self.issued.0[order] += 1;
        let place = self.issued.0[order];
        if settings == [None, None] {
            return (order as u8, place);
        }
        let covers = settings.iter().flatten().map(|(board, number)| (*board, *number, order as u8, place));
        // The last setting says it of all before it.
        self.covers.retain(|old| usize::from(old.2) != order || !settings.iter().flatten().any(|new| new.0 == old.0));
        self.covers.extend(covers);
        (order as u8, place)
    }

    /// The clock after the instruction.
    fn go_on(&mut self, latency: &Latency, t: &Timing, group: u32, found: &mut Vec<Hazard>) {
        if t.ctrl.stall == 0 {
            // Whoever reads or writes the register next.
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
        // Of memory and block barriers the least is what is wise: the incumbent goes below it in places.
        if t.ctrl.stall < t.least && t.class == LatencyClass::Branch {
            let what = format!("stalls for {} cycles, and {} are needed", t.ctrl.stall, t.least);
            found.push(Hazard::of(what, None, group));
        }
        self.known.clock += u64::from(t.ctrl.stall);
    }
}
