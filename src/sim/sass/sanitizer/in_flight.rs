//! The register accesses of a warp that may be in flight, by register, and what is known to be
//! complete.
//!
//! An access stays in the list of its register as long as a later instruction could still come too
//! early for it. Completed accesses are dropped when the register is next accessed, so the lists
//! stay short however long the program runs.

use super::super::warp::{LANES, lanes_of};
use super::timing::Use;
use crate::tables::latency::{Needed, RegFile};

/// Scoreboards of a warp, and the counter of groups of products of a warp group.
pub const BOARDS: usize = 7;
/// That counter.
pub const GROUPS: u8 = 6;
/// No row of the tables requires a distance of so many cycles (`control::in_flight`).
const SETTLED: u64 = 40;

/// Orders are numbered: first the results of each class, from here on the reads of each queue.
pub const FIRST_QUEUE: usize = 64;
const ORDERS: usize = 128;

/// A place in each order.
#[derive(Clone, Debug)]
pub struct Places(pub [u64; ORDERS]);

impl Default for Places {
    fn default() -> Places {
        Places([0; ORDERS])
    }
}

/// A setting of a scoreboard: the scoreboard, and its number among all settings of it, from 1.
pub type Setting = Option<(u8, u64)>;

/// A scoreboard setting or a place in an order, in one word; 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(u64);

/// Bits of a mark that hold the number.
const NUMBER: u32 = 56;

impl Mark {
    /// Packs a setting or place; the numbers start at 1.
    pub fn of(counted: Option<(u8, u64)>) -> Mark {
        Mark(counted.map_or(0, |(of, number)| u64::from(of) << NUMBER | number))
    }

    /// The scoreboard or order, and the number.
    pub fn get(self) -> Option<(u8, u64)> {
        (self.0 != 0).then_some(((self.0 >> NUMBER) as u8, self.0 & u64::MAX >> (u64::BITS - NUMBER)))
    }
}

/// A register access that may be in flight.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// The register and its latency class.
    pub what: Use,
    /// The lanes of the access.
    pub lanes: u32,
    /// The cycle of issue.
    pub issue: u64,
    /// The instruction's index.
    pub pc: u32,
    /// Scoreboard settings, each of which completes the access.
    pub settings: [Mark; 2],
    /// The pc of an earlier write that may complete after this one; the register's value is then
    /// unknown until the next write.
    pub overtaken: Option<u32>,
    /// Its place in an order, if it belongs to one.
    pub order: Mark,
}

/// What is known to be complete, and the clock of the running group.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Cycle at which the running group may issue next.
    pub clock: u64,
    /// The clocks of the lanes that are not in the running group.
    pub clocks: [u64; LANES],
    /// The last setting of each scoreboard that was waited for.
    pub done: [u64; BOARDS],
    /// For each order how many accesses are known to be complete.
    pub over: Places,
}

impl Known {
    fn announced(&self, f: &Flight) -> bool {
        let waited = |(board, number): (u8, u64)| self.done[usize::from(board)] >= number;
        f.settings.iter().any(|mark| mark.get().is_some_and(waited))
    }

    fn is_done(&self, f: &Flight) -> bool {
        self.announced(f) || f.order.get().is_some_and(|(order, place)| self.over.0[usize::from(order)] >= place)
    }

    /// Whether the lanes of an access are all at a cycle that is so many behind it.
    #[inline]
    fn are_behind(&self, f: &Flight, cycles: u64, group: u32) -> bool {
        let cycle = f.issue + cycles;
        (f.lanes & group == 0 || self.clock >= cycle)
            && lanes_of(f.lanes & !group).all(|lane| self.clocks[lane] >= cycle)
    }

    /// Whether no instruction can come too early for a write any more.
    fn is_past_write(&self, f: &Flight, group: u32) -> bool {
        let settled = f.overtaken.is_none() && self.are_behind(f, SETTLED, group);
        let info = f.what.class.info();
        let never = f.settings == [Mark::default(); 2] && !info.announced && !info.late;
        settled && (never || self.announced(f))
    }

    /// Whether no instruction can come too early for a read any more.
    fn is_past_read(&self, f: &Flight, group: u32) -> bool {
        !f.what.scoreboard && self.are_behind(f, f.what.longest.into(), group) || self.is_done(f)
    }

    /// Why an access is too early that needs the distance `needed` after `f`; `None` if it is not.
    pub fn too_early(&self, f: &Flight, needed: Needed) -> Option<String> {
        if self.is_done(f) {
            return None;
        }
        let pc = u64::from(f.pc) * 16;
        match needed {
            Needed::Cycles(n) => {
                let passed = self.clock.saturating_sub(f.issue);
                (passed < n.into())
                    .then(|| format!("{passed} cycles after the instruction at pc {pc:#x}, and {n} are needed"))
            }
            Needed::Scoreboard => Some(match f.settings[0].get().or(f.settings[1].get()) {
                Some((board, _)) => {
                    format!("while scoreboard {board} of the instruction at pc {pc:#x} was not waited for")
                }
                None => format!("and the instruction at pc {pc:#x} has no scoreboard to wait for"),
            }),
        }
    }
}

/// The in-flight accesses of one register.
#[derive(Clone, Debug, Default)]
struct Slot {
    writes: Vec<Flight>,
    reads: Vec<Flight>,
}

/// The in-flight accesses of all registers of a warp by file, allocated on demand.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    files: [Vec<Slot>; FILES],
}

/// Number of register files that have latencies.
const FILES: usize = RegFile::B as usize + 1;

impl Flights {
    fn slot(&mut self, what: &Use) -> &mut Slot {
        let (file, register) = (&mut self.files[what.file as usize], usize::from(what.register));
        if file.len() <= register {
            file.resize_with(register + 1, Slot::default);
        }
        &mut file[register]
    }

    fn known(&self, what: &Use) -> Option<&Slot> {
        self.files[what.file as usize].get(usize::from(what.register))
    }

    /// The in-flight writes of a register in issue order.
    pub fn writes(&self, what: &Use) -> &[Flight] {
        self.known(what).map_or(&[], |slot| &slot.writes)
    }

    /// The in-flight reads of a register in issue order.
    pub fn reads(&self, what: &Use) -> &[Flight] {
        self.known(what).map_or(&[], |slot| &slot.reads)
    }

    /// The in-flight writes of all registers.
    pub fn all_writes(&self) -> impl Iterator<Item = &Flight> {
        self.files.iter().flatten().flat_map(|slot| &slot.writes)
    }

    /// Removes the in-flight accesses of a register on lanes where it is written again.
    pub fn overwrite(&mut self, what: &Use, lanes: u32) {
        let slot = self.slot(what);
        for list in [&mut slot.writes, &mut slot.reads] {
            list.retain_mut(|f| {
                f.lanes &= !lanes;
                f.lanes != 0
            });
        }
    }

    /// Records a write of a group.
    pub fn write(&mut self, known: &Known, flight: Flight, group: u32) {
        let list = &mut self.slot(&flight.what).writes;
        list.retain(|f| !known.is_past_write(f, group));
        list.push(flight);
    }

    /// Removes the earlier reads of an instruction that is executed again, since it reads again.
    pub fn read_again(&mut self, known: &Known, what: &Use, pc: u32, (group, active): (u32, u32)) {
        let again = |f: &Flight| f.pc == pc && f.lanes & !active == 0;
        self.slot(what).reads.retain(|f| !(again(f) || known.is_past_read(f, group)));
    }

    /// Records a read.
    pub fn read(&mut self, flight: Flight) {
        self.slot(&flight.what).reads.push(flight);
    }
}

/// The register's name.
pub fn name(u: &Use) -> String {
    format!("{:?}{}", u.file, u.register)
}
