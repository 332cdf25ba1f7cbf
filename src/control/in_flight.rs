//! Accesses in flight at a point of the code: the dataflow state for control words.
//!
//! A fixed-latency entry completes by age, in cycles; a scoreboarded entry completes when one of
//! its scoreboards has been waited for. A join keeps the entries of both paths; of entries that
//! differ only in age, the youngest. Entries store their issue time, so advancing the clock ages
//! all of them. Entries too old to matter are ignored at once and removed now and then.

use crate::sched::effects::Reg;
use crate::tables::latency::LatencyClass;
use smallvec::SmallVec;
use std::ops::Range;

/// Age in cycles from which on no fixed latency of the tables matters: of a write, and of a read.
const OLD: i32 = 40;
const OLD_READ: i32 = 12;

/// Number of entries from which a state is worth trimming.
const LARGE: usize = 64;

/// A read or write in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    reg: Reg,
    /// Whether it is a write.
    pub write: bool,
    /// Latency class of the access.
    pub class: LatencyClass,
    /// Whether it is scoreboarded: complete when one of `boards` has been waited for. A
    /// fixed-latency entry has no scoreboards and completes by age.
    pub announced: bool,
    /// Mask of the scoreboards that signal completion.
    pub boards: u8,
    /// Of those, the one that signals first: for a read the scoreboard of reads, if there is one.
    pub first: u8,
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
        Entry { reg: Reg(0), write, class, announced, boards, first: boards, order: 0, item, issued: 0 }
    }

    /// The entry with the scoreboard that signals first; 0 if all of them signal alike.
    pub fn first(self, board: u8) -> Entry {
        Entry { first: if board == 0 { self.first } else { board }, ..self }
    }

    /// The entry as a member of an in-order queue of reads.
    pub fn ordered(self, order: u8) -> Entry {
        Entry { order, ..self }
    }

    /// Whether anything may still have to wait for it at this time.
    fn matters(&self, clock: i32) -> bool {
        self.announced || clock - self.issued < if self.write { OLD } else { OLD_READ }
    }

    /// Takes the age of an entry with the same key, if that is younger; returns whether it is. The
    /// age of a scoreboarded entry does not matter.
    fn grow_younger(&mut self, other: &Entry) -> bool {
        let younger = !other.announced && other.issued > self.issued;
        if younger {
            *self = *other;
        }
        younger
    }

    /// Entries that differ only in age are one. Scoreboarded reads without a scoreboard are kept
    /// apart, because each may need one.
    fn key(&self) -> (bool, LatencyClass, bool, u8, u8, u32) {
        let own = self.announced && self.boards == 0;
        (self.write, self.class, self.announced, self.boards, self.first, if own { self.item } else { u32::MAX })
    }
}

/// All entries in flight.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// By register; those of one register in the order in which they came.
    list: Vec<Entry>,
    clock: i32,
    /// Clock of the last removal of old entries.
    swept: i32,
}

impl State {
    /// Whether two states at starts of blocks, where the clock is 0, are one.
    pub fn is(&self, other: &State) -> bool {
        self.list == other.list
    }

    /// The places of a register's entries.
    fn places(&self, reg: Reg) -> Range<usize> {
        let first = self.list.partition_point(|e| e.reg < reg);
        first..first + self.list[first..].iter().take_while(|e| e.reg == reg).count()
    }

    fn matters(&self, entry: &Entry) -> bool {
        entry.matters(self.clock)
    }

    /// Cycles since an entry was issued.
    pub fn age(&self, entry: &Entry) -> u16 {
        (self.clock - entry.issued) as u16
    }

    /// Entries of a register that still matter.
    pub fn on(&self, reg: Reg) -> impl Iterator<Item = &Entry> {
        // Every instruction asks for the register behind all others, of which mostly nothing is
        // there.
        let none = self.list.last().is_none_or(|last| last.reg < reg);
        let first = if none { self.list.len() } else { self.list.partition_point(|e| e.reg < reg) };
        self.list[first..].iter().take_while(move |e| e.reg == reg).filter(|e| self.matters(e))
    }

    /// All entries that still matter, with their registers.
    pub fn entries(&self) -> impl Iterator<Item = (Reg, &Entry)> {
        self.list.iter().filter(|e| self.matters(e)).map(|e| (e.reg, e))
    }

    /// Adds an entry that is issued now.
    pub fn add(&mut self, reg: Reg, entry: Entry) {
        let (entry, places) = (Entry { reg, issued: self.clock, ..entry }, self.places(reg));
        match self.list[places.clone()].iter_mut().find(|e| e.key() == entry.key()) {
            Some(old) => {
                old.grow_younger(&entry);
            }
            None => self.list.insert(places.end, entry),
        }
    }

    /// A later read in the same queue subsumes earlier ones without a scoreboard, and those with
    /// one if it has its `own` scoreboard of reads and no guard, if whoever waits for one of their
    /// classes waits for the later read too, as `subsumed` tells.
    pub fn read_again(&mut self, reg: Reg, order: u8, own: bool, subsumed: impl Fn(LatencyClass) -> bool) {
        let older =
            |e: &Entry| !e.write && e.announced && (e.boards == 0 || own) && e.order == order && subsumed(e.class);
        for at in self.places(reg).rev() {
            if older(&self.list[at]) {
                self.list.remove(at);
            }
        }
    }

    /// Adds an entry of a write that is issued now and supersedes all entries of its register.
    pub fn replace(&mut self, reg: Reg, entry: Entry) {
        let (entry, places) = (Entry { reg, issued: self.clock, ..entry }, self.places(reg));
        if places.is_empty() {
            return self.list.insert(places.start, entry);
        }
        self.list[places.start] = entry;
        if places.len() > 1 {
            self.list.drain(places.start + 1..places.end);
        }
    }

    /// Removes the entries that one of these scoreboards covers.
    pub fn waited(&mut self, mask: u8) {
        if mask != 0 {
            self.list.retain(|e| !e.announced || e.boards & mask == 0);
        }
    }

    /// Advances the clock; a stall of zero waits for every fixed latency.
    pub fn pass(&mut self, stall: u16) {
        self.clock += i32::from(stall);
        if stall == 0 {
            self.list.retain(|e| e.announced);
        } else if self.clock - self.swept >= OLD {
            let clock = self.clock;
            self.list.retain(|e| e.matters(clock));
            self.swept = clock;
        }
    }

    /// Frees the memory of entries that no longer matter; where `fixed`, keeps those alone that
    /// complete by age.
    pub fn trim(&mut self, fixed: bool) {
        if self.list.len() < LARGE && !fixed {
            return;
        }
        let clock = self.clock;
        self.list.retain(|e| e.matters(clock) && !(fixed && e.announced));
        self.list.shrink_to_fit();
    }

    /// Joins another path's state into this one; returns whether this one changed.
    pub fn join(&mut self, other: &State) -> bool {
        let apart = self.clock - other.clock;
        if self.list.is_empty() {
            self.list.reserve_exact(other.list.len());
            self.list.extend(other.entries().map(|(_, e)| Entry { issued: e.issued + apart, ..*e }));
            return !self.list.is_empty();
        }
        let (mut changed, mut at) = (false, 0);
        let mut new: SmallVec<[Entry; 16]> = SmallVec::new();
        for entry in &other.list {
            if !other.matters(entry) {
                continue;
            }
            let reg = entry.reg;
            while self.list.get(at).is_some_and(|e| e.reg < reg) {
                at += 1;
            }
            let entry = Entry { issued: entry.issued + apart, ..*entry };
            let mut own = at;
            while self.list.get(own).is_some_and(|e| e.reg == reg && e.key() != entry.key()) {
                own += 1;
            }
            match self.list.get_mut(own).filter(|e| e.reg == reg) {
                Some(old) => changed |= old.grow_younger(&entry),
                None => new.push(entry),
            }
        }
        self.insert(&new);
        changed || !new.is_empty()
    }

    /// Inserts entries, which are in order, each after the known ones of its register.
    fn insert(&mut self, new: &[Entry]) {
        let Some(last) = new.last() else { return };
        let mut known = self.list.len();
        // A state is kept for each block, and rarely grows again.
        self.list.reserve_exact(new.len());
        self.list.resize(known + new.len(), *last);
        let mut to = self.list.len();
        for entry in new.iter().rev() {
            while known > 0 && self.list[known - 1].reg > entry.reg {
                (known, to) = (known - 1, to - 1);
                self.list[to] = self.list[known];
            }
            to -= 1;
            self.list[to] = *entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::latency::{Latency, Needed, RegFile};
    use crate::tables::targets::TARGETS;

    #[test]
    fn nothing_waits_longer_than_entries_are_kept() {
        let files = [RegFile::R, RegFile::UR, RegFile::P, RegFile::UP, RegFile::B];
        let cycles = |needed| if let Needed::Cycles(n) = needed { i32::from(n) } else { 0 };
        let (mut write, mut read) = (0, 0);
        for latency in TARGETS.iter().filter_map(Latency::of) {
            for (file, first) in files.into_iter().flat_map(|file| LatencyClass::ALL.map(|class| (file, class))) {
                for second in LatencyClass::ALL {
                    write = write.max(cycles(latency.read_after_write(file, first, second)));
                    write = write.max(cycles(latency.write_after_write(file, first, second)));
                    read = read.max(cycles(latency.write_after_read(file, first, second)));
                }
            }
        }
        assert!((20..OLD).contains(&write) && (4..OLD_READ).contains(&read), "{write} {read}");
    }
}
