//! What is pending at a point of the code.
//!
//! A state maps registers to writes whose values may not be there yet and reads that may not have happened yet. An entry of a
//! fixed latency has its age in cycles; an announced one the scoreboards that tell its end. Where paths meet, entries of both
//! are kept; of equal ones the youngest. Invariant: an entry older than any distance in the tables is dropped, so that states are small.

use crate::sass::effects::Slot;
use crate::tables::latency::{LatencyClass, RegFile};
use std::collections::BTreeMap;

/// Cycles after which no fixed latency matters; above the greatest distance of the tables.
pub const OLD: u8 = 64;
/// More settings of a scoreboard than anything leaves under way.
const MOST_BEHIND: u8 = 63;

/// A read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Read,
    Write,
}

/// Something that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pending {
    pub what: What,
    pub class: LatencyClass,
    /// Ends when one of these scoreboards is waited for, not after a number of cycles.
    pub announced: bool,
    pub boards: u8,
    /// What order of reads it is part of (`LatencyClass::read_order`); 0 for none.
    pub order: u8,
    /// Cycles since issue on the shortest path; only of a fixed latency.
    pub age: u8,
    /// How often its only scoreboard was set since.
    pub behind: u8,
    /// The instruction, by its place.
    pub inst: u32,
    pub slot: Slot,
    /// Its guard, while the predicate has the same value.
    pub guard: Option<Guard>,
}

/// A guard: uniform file, number, complement.
pub type Guard = (bool, u8, bool);

impl Pending {
    /// Equal keys are joined into one entry.
    fn key(&self) -> (What, LatencyClass, bool, [u8; 2], Slot, Option<Guard>) {
        (self.what, self.class, self.announced, [self.boards, self.order], self.slot, self.guard)
    }
}

/// A register: file and number.
pub type Register = (RegFile, u8);

/// All that is pending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub pending: BTreeMap<Register, Vec<Pending>>,
}

impl State {
    /// What is pending on a register.
    pub fn on(&self, register: Register) -> &[Pending] {
        self.pending.get(&register).map_or(&[], Vec::as_slice)
    }

    /// One more entry; of two equal ones the younger stays.
    pub fn add(&mut self, register: Register, entry: Pending) {
        let list = self.pending.entry(register).or_default();
        match list.iter_mut().find(|e| e.key() == entry.key()) {
            Some(old) => {
                if (entry.age, entry.behind, entry.inst) < (old.age, old.behind, old.inst) {
                    *old = entry;
                }
            }
            None => {
                list.push(entry);
                list.sort_unstable();
            }
        }
    }

    /// Keeps the entries that a test wants.
    pub fn retain(&mut self, mut keep: impl FnMut(&Register, &mut Pending) -> bool) {
        self.pending.retain(|register, list| {
            list.retain_mut(|entry| keep(register, entry));
            !list.is_empty()
        });
    }

    /// A predicate has a new value: guards by it say nothing any more.
    pub fn forget(&mut self, uniform: bool, number: u8) {
        for list in self.pending.values_mut() {
            let stale = |e: &&mut Pending| e.guard.is_some_and(|g| (g.0, g.1) == (uniform, number));
            list.iter_mut().filter(stale).for_each(|e| e.guard = None);
            list.sort_unstable();
            list.dedup_by_key(|e| e.key());
        }
    }

    /// These scoreboards have been waited for.
    pub fn waited(&mut self, mask: u8) {
        if mask != 0 {
            self.retain(|_, e| !e.announced || e.boards & mask == 0);
        }
    }

    /// Cycles go by; none where a stall of zero waits for every fixed latency.
    pub fn pass(&mut self, stall: u8) {
        self.retain(|_, e| {
            // A pipe that takes one instruction at a time is done with it by then, as the incumbent has it.
            if e.announced && !e.class.info().alone {
                return true;
            }
            e.age = e.age.saturating_add(stall);
            (stall != 0 || e.announced) && e.age < OLD
        });
    }

    /// A scoreboard is set once more.
    pub fn set_again(&mut self, board: u8) {
        for list in self.pending.values_mut() {
            let on_it = list.iter_mut().filter(|e| e.announced && e.boards == 1 << board);
            on_it.for_each(|e| e.behind = (e.behind + 1).min(MOST_BEHIND));
            list.sort_unstable();
        }
    }

    /// All settings of a scoreboard but the last few are over; results that come in order are what that says something of.
    pub fn all_but(&mut self, board: u32, left: u64) {
        let one = 1u8.checked_shl(board).unwrap_or(0);
        self.retain(|_, e| !(e.announced && e.boards == one && e.class.info().in_order && u64::from(e.behind) >= left));
    }

    /// A later instruction tells the end of earlier ones: of results of the class of its own where they come in order, of reads in its order.
    pub fn announce(&mut self, result: Option<LatencyClass>, order: u8, board: u8) {
        self.retain(|_, e| {
            let same = e.what == What::Write && Some(e.class) == result;
            let read = e.what == What::Read && order != 0 && e.order == order;
            if e.announced && (same || read) && e.boards >> board & 1 == 0 {
                (e.boards, e.behind) = (e.boards | 1 << board, 0);
            }
            true
        });
        // Entries may have become equal.
        for list in self.pending.values_mut() {
            list.sort_unstable();
            list.dedup_by_key(|e| e.key());
        }
    }

    /// Scoreboards that something waits for.
    pub fn boards(&self) -> u8 {
        self.pending.values().flatten().filter(|e| e.announced).fold(0, |mask, e| mask | e.boards)
    }

    /// Takes in what another path brings; whether that changed anything.
    pub fn join(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (register, entry) in other.pending.iter().flat_map(|(r, list)| list.iter().map(move |e| (*r, e))) {
            let known = self.on(register).iter().find(|e| e.key() == entry.key());
            if known.is_none_or(|old| (entry.age, entry.behind, entry.inst) < (old.age, old.behind, old.inst)) {
                self.add(register, *entry);
                changed = true;
            }
        }
        changed
    }
}
