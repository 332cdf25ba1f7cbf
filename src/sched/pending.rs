//! What is not over at a point of the code: the state of the dataflow over control words.
//!
//! Entries of a fixed latency have an age in cycles, announced ones the scoreboards that tell their end. Where paths meet both
//! paths' entries are kept, of equal ones the youngest. Entries know when they were issued, so that time passes for all of them at
//! once; what is too old to matter is overlooked at once and taken out now and then.

use super::effects::Reg;
use crate::tables::latency::LatencyClass;
use smallvec::SmallVec;

/// Cycles after which no fixed latency matters.
const OLD: i32 = 64;

/// Registers of a state that is worth trimming.
const LARGE: usize = 64;

/// Something that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub write: bool,
    pub class: LatencyClass,
    /// Over when one of these has been waited for; a fixed latency has none and is over by age.
    pub announced: bool,
    pub boards: u8,
    /// What order of reads it is part of (`LatencyClass::read_order`); 0 for none.
    pub order: u8,
    /// The instruction, by its place in the function.
    pub item: u32,
    /// On the clock of its state.
    issued: i32,
}

impl Entry {
    /// Of an instruction that is being issued.
    pub fn new(write: bool, class: LatencyClass, announced: bool, boards: u8, item: u32) -> Entry {
        Entry { write, class, announced, boards, order: 0, item, issued: 0 }
    }

    /// The same, as part of an order of reads.
    pub fn ordered(self, order: u8) -> Entry {
        Entry { order, ..self }
    }

    /// Entries that differ in their age alone are one; announced reads without a scoreboard are told apart, for each may need one.
    fn key(&self) -> (bool, LatencyClass, bool, u8, u32) {
        let own = self.announced && self.boards == 0;
        (self.write, self.class, self.announced, self.boards, if own { self.item } else { u32::MAX })
    }
}

/// All that is pending on one register.
#[derive(Clone, Debug)]
struct Pending {
    reg: Reg,
    entries: SmallVec<[Entry; 2]>,
}

/// All that is pending, by register.
#[derive(Clone, Debug, Default)]
pub struct State {
    list: Vec<Pending>,
    clock: i32,
    /// When old entries were taken out last.
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

    pub fn on(&self, reg: Reg) -> impl Iterator<Item = &Entry> {
        let list: &[Entry] = self.place(reg).map_or(&[], |at| &self.list[at].entries);
        list.iter().filter(|e| self.matters(e))
    }

    pub fn entries(&self) -> impl Iterator<Item = (Reg, &Entry)> {
        self.list.iter().flat_map(|p| p.entries.iter().map(|e| (p.reg, e))).filter(|(_, e)| self.matters(e))
    }

    /// Adds an entry that is issued now.
    pub fn add(&mut self, reg: Reg, entry: Entry) {
        self.put(reg, Entry { issued: self.clock, ..entry });
    }

    /// Adds an entry; whether the state changed.
    fn put(&mut self, reg: Reg, entry: Entry) -> bool {
        let at = self.place(reg).unwrap_or_else(|at| {
            self.list.insert(at, Pending { reg, entries: SmallVec::new() });
            at
        });
        let list = &mut self.list[at].entries;
        match list.iter_mut().find(|e| e.key() == entry.key()) {
            // Of one that is announced the age says nothing.
            Some(old) if !entry.announced && entry.issued > old.issued => *old = entry,
            Some(_) => return false,
            None => list.push(entry),
        }
        true
    }

    /// A later read of the same order stands for earlier ones without a scoreboard.
    pub fn read_again(&mut self, reg: Reg, order: u8) {
        if let Ok(at) = self.place(reg) {
            let older = |e: &Entry| !e.write && e.announced && e.boards == 0 && e.order == order;
            self.list[at].entries.retain(|e| !older(e));
        }
    }

    /// A write that replaces whatever came before.
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

    pub fn waited(&mut self, mask: u8) {
        if mask != 0 {
            self.retain(|e| !e.announced || e.boards & mask == 0);
        }
    }

    /// Cycles go by; a stall of zero waits for every fixed latency.
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

    /// Gives back the memory of what does not matter any more.
    pub fn trim(&mut self) {
        if self.list.len() < LARGE {
            return;
        }
        let clock = self.clock;
        self.retain(|e| e.announced || clock - e.issued < OLD);
        self.list.shrink_to_fit();
    }

    /// Takes in another path's state; whether that changed anything.
    pub fn join(&mut self, other: &State) -> bool {
        let apart = self.clock - other.clock;
        let mut changed = false;
        for (reg, entry) in other.entries() {
            changed |= self.put(reg, Entry { issued: entry.issued + apart, ..*entry });
        }
        changed
    }
}
