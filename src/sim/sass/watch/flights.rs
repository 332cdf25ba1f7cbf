//! Accesses of registers that may be under way, register by register, and what is known to be over.
//!
//! Input: reads and writes as they are issued, scoreboards that were waited for. Output: of a register, who may still read or write it.
//! Invariant: what somebody could still be too early for is in its list; a list drops, when its register is next accessed, what
//! nobody can be too early for any more, so that it stays short however long the program runs.

use super::timing::Use;
use crate::tables::latency::{Needed, RegFile};

/// Scoreboards of a warp.
pub const BOARDS: usize = 6;
/// Distance in cycles beyond which no row of the tables asks for more.
const SETTLED: u64 = 64;

/// Orders: of the results of each class, and behind them of the reads of each queue.
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

/// A setting of a scoreboard: its number among all of that scoreboard, from 1.
pub type Setting = Option<(u8, u64)>;

/// A number with what it counts, in one word: of a scoreboard, or of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(u64);

/// Bits of the number of a mark.
const NUMBER: u32 = 56;

impl Mark {
    /// Of what counts from 1; nothing where there is none.
    pub fn of(counted: Option<(u8, u64)>) -> Mark {
        Mark(counted.map_or(0, |(of, number)| u64::from(of) << NUMBER | number))
    }

    /// What it counts, and the number.
    fn get(self) -> Option<(u8, u64)> {
        (self.0 != 0).then_some(((self.0 >> NUMBER) as u8, self.0 & u64::MAX >> (u64::BITS - NUMBER)))
    }
}

/// A write that may be under way, or a read.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub what: Use,
    pub lanes: u32,
    pub issue: u64,
    pub pc: u32,
    /// Settings of scoreboards each of which says that it is over.
    pub settings: [Mark; 2],
    /// An earlier write that may come after it: the register's value is not known until it is written again.
    pub overtaken: Option<u32>,
    /// The order that it is part of, where it is, and its place there.
    pub order: Mark,
}

/// What is known to be over, and the clock of the running group.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Cycle at which the running group may issue next.
    pub clock: u64,
    /// The last setting of each scoreboard that was waited for.
    pub done: [u64; BOARDS],
    /// Of each order how many are known to be over.
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

    /// Whether nobody can be too early for a write; lanes of other groups have clocks of their own.
    fn is_past_write(&self, f: &Flight, group: u32) -> bool {
        let settled = self.clock >= f.issue + SETTLED && f.lanes & !group == 0 && f.overtaken.is_none();
        let info = f.what.class.info();
        let never = f.settings == [Mark::default(); 2] && !info.announced && !info.late;
        settled && (never || self.announced(f))
    }

    /// Whether nobody can be too early for a read.
    fn is_past_read(&self, f: &Flight, group: u32) -> bool {
        let passed = !f.what.scoreboard && self.clock >= f.issue + u64::from(f.what.longest);
        passed && f.lanes & !group == 0 || self.is_done(f)
    }

    /// What stands against doing something now that needs `needed` after a flight; `None` where nothing does.
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

/// Of one register.
#[derive(Clone, Debug, Default)]
struct Slot {
    writes: Vec<Flight>,
    reads: Vec<Flight>,
}

/// Of all registers of a warp, file by file; made as they are named.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    files: [Vec<Slot>; FILES],
}

/// Register files that have distances.
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

    /// The writes of a register, in the order of issue.
    pub fn writes(&self, what: &Use) -> &[Flight] {
        self.known(what).map_or(&[], |slot| &slot.writes)
    }

    /// The reads of a register, in the order of issue.
    pub fn reads(&self, what: &Use) -> &[Flight] {
        self.known(what).map_or(&[], |slot| &slot.reads)
    }

    /// The writes of all registers.
    pub fn all_writes(&self) -> impl Iterator<Item = &Flight> {
        self.files.iter().flatten().flat_map(|slot| &slot.writes)
    }

    /// A register is written on some lanes: what was under way to it there is no more.
    pub fn overwrite(&mut self, what: &Use, lanes: u32) {
        let slot = self.slot(what);
        for list in [&mut slot.writes, &mut slot.reads] {
            list.retain_mut(|f| {
                f.lanes &= !lanes;
                f.lanes != 0
            });
        }
    }

    /// Remembers a write of a group.
    pub fn write(&mut self, known: &Known, flight: Flight, group: u32) {
        let list = &mut self.slot(&flight.what).writes;
        list.retain(|f| !known.is_past_write(f, group));
        list.push(flight);
    }

    /// An instruction that is executed again reads again: its earlier reads of a register do not count any more.
    pub fn read_again(&mut self, known: &Known, what: &Use, pc: u32, (group, active): (u32, u32)) {
        let again = |f: &Flight| f.pc == pc && f.lanes & !active == 0;
        self.slot(what).reads.retain(|f| !(again(f) || known.is_past_read(f, group)));
    }

    /// Remembers a read.
    pub fn read(&mut self, flight: Flight) {
        self.slot(&flight.what).reads.push(flight);
    }
}

/// A register as it is printed.
pub fn name(u: &Use) -> String {
    format!("{:?}{}", u.file, u.register)
}
