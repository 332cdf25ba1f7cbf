//! The accesses in flight at a point of the code.
//!
//! A state maps registers to writes that may not be visible yet and reads that may not have
//! happened yet. A fixed-latency entry has its age in cycles; a scoreboarded one has the
//! scoreboards that signal its end. A join keeps the entries of both paths, the youngest of equal
//! ones. Entries older than every distance in the tables are dropped, which keeps states small.

use crate::sass::effects::Slot;
use crate::sorted::SortedMap;
use crate::tables::latency::{LatencyClass, RegFile};

/// Age in cycles after which no fixed latency matters, above the largest distance of the tables.
pub const OLD: u8 = 64;
/// Cap on the number of settings of a scoreboard; more are never in flight.
const MOST_BEHIND: u8 = 63;

/// A read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Read,
    Write,
}

/// An access in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pending {
    /// A read or a write.
    pub what: What,
    /// Latency class of the access.
    pub class: LatencyClass,
    /// Ends when one of these scoreboards is waited for, not after a number of cycles.
    pub announced: bool,
    pub boards: u8,
    /// The in-order queue of reads that it belongs to (`LatencyClass::read_order`); 0 for none.
    pub order: u8,
    /// Cycles since issue on the shortest path; fixed latency only.
    pub age: u8,
    /// How often its only scoreboard has been set since.
    pub behind: u8,
    /// Index of the instruction.
    pub inst: u32,
    pub slot: Slot,
    /// Its guard, as long as the predicate keeps its value.
    pub guard: Option<Guard>,
}

/// A guard: uniform file, number, complement.
pub type Guard = (bool, u8, bool);

impl Pending {
    /// Entries with equal keys are merged.
    fn key(&self) -> (What, LatencyClass, bool, [u8; 2], Slot, Option<Guard>) {
        (self.what, self.class, self.announced, [self.boards, self.order], self.slot, self.guard)
    }
}

/// A register: file and number.
pub type Register = (RegFile, u8);

/// All accesses in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Entries by register.
    pub pending: SortedMap<Register, Vec<Pending>>,
}

impl State {
    /// The accesses in flight on a register.
    pub fn on(&self, register: Register) -> &[Pending] {
        self.pending.get(&register).map_or(&[], Vec::as_slice)
    }

    /// Adds an entry; of two with equal keys the younger remains.
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

    /// Keeps the entries that satisfy a predicate.
    pub fn retain(&mut self, mut keep: impl FnMut(&Register, &mut Pending) -> bool) {
        self.pending.retain(|register, list| {
            list.retain_mut(|entry| keep(register, entry));
            !list.is_empty()
        });
    }

    /// Forgets guards by a predicate that has a new value.
    pub fn forget(&mut self, uniform: bool, number: u8) {
        for list in self.pending.values_mut() {
            let stale = |e: &&mut Pending| e.guard.is_some_and(|g| (g.0, g.1) == (uniform, number));
            list.iter_mut().filter(stale).for_each(|e| e.guard = None);
            list.sort_unstable();
            list.dedup_by_key(|e| e.key());
        }
    }

    /// Removes the entries that these scoreboards signal.
    pub fn waited(&mut self, mask: u8) {
        if mask != 0 {
            self.retain(|_, e| !e.announced || e.boards & mask == 0);
        }
    }

    /// Advances time by a stall; a stall of zero waits for every fixed latency.
    pub fn pass(&mut self, stall: u8) {
        self.retain(|_, e| {
            // A pipe that takes one instruction at a time is free after this many cycles, as ptxas
            // assumes.
            if e.announced && !e.class.info().alone {
                return true;
            }
            e.age = e.age.saturating_add(stall);
            (stall != 0 || e.announced) && e.age < OLD
        });
    }

    /// Counts another setting of a scoreboard.
    pub fn set_again(&mut self, board: u8) {
        for list in self.pending.values_mut() {
            let on_it = list.iter_mut().filter(|e| e.announced && e.boards == 1 << board);
            on_it.for_each(|e| e.behind = (e.behind + 1).min(MOST_BEHIND));
            list.sort_unstable();
        }
    }

    /// All but the last `left` settings of a scoreboard are complete. This is conclusive only for
    /// results that come in order.
    pub fn all_but(&mut self, board: u32, left: u64) {
        let one = 1u8.checked_shl(board).unwrap_or(0);
        self.retain(|_, e| !(e.announced && e.boards == one && e.class.info().in_order && u64::from(e.behind) >= left));
    }

    /// A later instruction also signals earlier ones: results of its own class if they come in
    /// order, and reads of its queue.
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

    /// Whether reads are in flight that end at a time which no scoreboard tells.
    pub fn unannounced(&self) -> bool {
        let late = |e: &Pending| e.what == What::Read && e.announced && e.boards == 0;
        self.pending.values().flatten().any(late)
    }

    /// Scoreboards of the entries in flight.
    pub fn boards(&self) -> u8 {
        self.pending.values().flatten().filter(|e| e.announced).fold(0, |mask, e| mask | e.boards)
    }

    /// Merges the state of another path; returns whether anything changed.
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
