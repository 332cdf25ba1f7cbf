//! Accesses in flight at a point of the code: the dataflow state for control words.
//!
//! A fixed-latency entry completes by age, in cycles; a scoreboarded entry completes when one of
//! its scoreboards has been waited for. A join keeps the entries of both paths; of entries that
//! differ only in age, the youngest. Entries store their issue time, so advancing the clock ages
//! all of them. Entries too old to matter are ignored at once and removed now and then.

use crate::sched::effects::Reg;
use crate::tables::latency::LatencyClass;
use smallvec::SmallVec;

/// Age in cycles beyond which no fixed latency matters.
const OLD: i32 = 64;

/// Number of registers from which a state is worth trimming.
const LARGE: usize = 64;

/// A read or write in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether it is a write.
    pub write: bool,
    /// Latency class of the access.
    pub class: LatencyClass,
    /// Whether it is scoreboarded: complete when one of `boards` has been waited for. A
    /// fixed-latency entry has no scoreboards and completes by age.
    pub announced: bool,
    /// Mask of the scoreboards that signal completion.
    pub boards: u8,
    /// The in-order queue of reads it belongs to (`LatencyClass::read_order`); 0 for none.
    pub order: u8,
    /// Index of the instruction in the function.
    pub item: u32,
    /// Issue time on the clock of its state.
    issued: i32,
}

impl Entry {
    /// An entry that is issued now.
    pub fn new(write: bool, class: LatencyClass, announced: bool, boards: u8, item: u32) -> Entry {
        Entry { write, class, announced, boards, order: 0, item, issued: 0 }
    }

    /// The entry as a member of an in-order queue of reads.
    pub fn ordered(self, order: u8) -> Entry {
        Entry { order, ..self }
    }

    /// Entries that differ only in age are one. Scoreboarded reads without a scoreboard are kept
    /// apart, because each may need one.
    fn key(&self) -> (bool, LatencyClass, bool, u8, u32) {
        let own = self.announced && self.boards == 0;
        (self.write, self.class, self.announced, self.boards, if own { self.item } else { u32::MAX })
    }
}

/// The entries of one register.
#[derive(Clone, Debug)]
struct Pending {
    reg: Reg,
    entries: SmallVec<[Entry; 2]>,
}

/// All entries in flight, by register.
#[derive(Clone, Debug, Default)]
pub struct State {
    list: Vec<Pending>,
    clock: i32,
    /// Clock of the last removal of old entries.
    swept: i32,
}

impl State {
    fn place(&self, reg: Reg) -> Result<usize, usize> {
        self.list.binary_search_by_key(&reg, |p| p.reg)
    }

    fn matters(&self, entry: &Entry) -> bool {
        entry.announced || self.clock - entry.issued < OLD
    }

    /// Cycles since an entry was issued.
    pub fn age(&self, entry: &Entry) -> u16 {
        (self.clock - entry.issued) as u16
    }

    /// Entries of a register that still matter.
    pub fn on(&self, reg: Reg) -> impl Iterator<Item = &Entry> {
        let list: &[Entry] = self.place(reg).map_or(&[], |at| &self.list[at].entries);
        list.iter().filter(|e| self.matters(e))
    }

    /// All entries that still matter, with their registers.
    pub fn entries(&self) -> impl Iterator<Item = (Reg, &Entry)> {
        self.list.iter().flat_map(|p| p.entries.iter().map(|e| (p.reg, e))).filter(|(_, e)| self.matters(e))
    }

    /// Adds an entry that is issued now.
    pub fn add(&mut self, reg: Reg, entry: Entry) {
        self.put(reg, Entry { issued: self.clock, ..entry });
    }

    /// Adds an entry; returns whether the state changed.
    fn put(&mut self, reg: Reg, entry: Entry) -> bool {
        let at = self.place(reg).unwrap_or_else(|at| {
            self.list.insert(at, Pending { reg, entries: SmallVec::new() });
            at
        });
        let list = &mut self.list[at].entries;
        match list.iter_mut().find(|e| e.key() == entry.key()) {
            // The age of a scoreboarded entry does not matter.
            Some(old) if !entry.announced && entry.issued > old.issued => *old = entry,
            Some(_) => return false,
            None => list.push(entry),
        }
        true
    }

    /// A later read in the same queue subsumes earlier ones without a scoreboard.
    pub fn read_again(&mut self, reg: Reg, order: u8) {
        if let Ok(at) = self.place(reg) {
            let older = |e: &Entry| !e.write && e.announced && e.boards == 0 && e.order == order;
            self.list[at].entries.retain(|e| !older(e));
        }
    }

    /// Removes all entries of a register, which a write supersedes.
    pub fn replaced(&mut self, reg: Reg) {
        if let Ok(at) = self.place(reg) {
            self.list[at].entries.clear();
        }
    }

    fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        self.list.retain_mut(|p| {
            p.entries.retain(|e| keep(e));
            !p.entries.is_empty()
        });
    }

    /// Removes the entries that one of these scoreboards covers.
    pub fn waited(&mut self, mask: u8) {
        if mask != 0 {
            self.retain(|e| !e.announced || e.boards & mask == 0);
        }
    }

    /// Advances the clock; a stall of zero waits for every fixed latency.
    pub fn pass(&mut self, stall: u16) {
        self.clock += i32::from(stall);
        if stall == 0 {
            self.retain(|e| e.announced);
        } else if self.clock - self.swept >= OLD {
            let clock = self.clock;
            self.retain(|e| e.announced || clock - e.issued < OLD);
            self.swept = clock;
        }
    }

    /// Frees the memory of entries that no longer matter.
    pub fn trim(&mut self) {
        if self.list.len() < LARGE {
            return;
        }
        let clock = self.clock;
        self.retain(|e| e.announced || clock - e.issued < OLD);
        self.list.shrink_to_fit();
    }

    /// Joins another path's state into this one; returns whether this one changed.
    pub fn join(&mut self, other: &State) -> bool {
        let apart = self.clock - other.clock;
        let mut changed = false;
        for (reg, entry) in other.entries() {
            changed |= self.put(reg, Entry { issued: entry.issued + apart, ..*entry });
        }
        changed
    }
}
