//! What is not over at a point of the code: the state of the dataflow over control words.
//!
//! Entries of a fixed latency have an age in cycles, announced ones the scoreboards that tell their end. Where paths meet both
//! paths' entries are kept, of equal ones the youngest.

use super::effects::Reg;
use crate::tables::latency::LatencyClass;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Cycles after which no fixed latency matters.
const OLD: u16 = 64;

/// Something that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub write: bool,
    pub class: LatencyClass,
    /// Over when one of these has been waited for; a fixed latency has none and is over by age.
    pub announced: bool,
    pub boards: u8,
    pub age: u16,
    /// The instruction, by its place in the function.
    pub item: u32,
}

impl Entry {
    /// Entries that differ in their age alone are one; announced reads without a scoreboard are told apart, for each may need one.
    fn key(&self) -> (bool, LatencyClass, bool, u8, u32) {
        let own = self.announced && self.boards == 0;
        (self.write, self.class, self.announced, self.boards, if own { self.item } else { u32::MAX })
    }
}

/// All that is pending.
#[derive(Clone, Debug, Default)]
pub struct State(BTreeMap<Reg, SmallVec<[Entry; 2]>>);

impl State {
    pub fn on(&self, reg: Reg) -> &[Entry] {
        self.0.get(&reg).map_or(&[], |list| list.as_slice())
    }

    pub fn entries(&self) -> impl Iterator<Item = (Reg, &Entry)> {
        self.0.iter().flat_map(|(reg, list)| list.iter().map(|e| (*reg, e)))
    }

    /// Adds an entry; whether the state changed.
    pub fn add(&mut self, reg: Reg, entry: Entry) -> bool {
        let list = self.0.entry(reg).or_default();
        match list.iter_mut().find(|e| e.key() == entry.key()) {
            Some(old) if entry.age < old.age => *old = entry,
            Some(_) => return false,
            None => list.push(entry),
        }
        true
    }

    /// A later read of the same queue stands for earlier ones without a scoreboard: they happen in order.
    pub fn read_again(&mut self, reg: Reg, queue: u8) {
        if let Some(list) = self.0.get_mut(&reg) {
            let older = |e: &Entry| !e.write && e.announced && e.boards == 0 && e.class.info().queue == queue;
            list.retain(|e| !older(e));
        }
    }

    /// A write that replaces whatever came before.
    pub fn replaced(&mut self, reg: Reg) {
        self.0.remove(&reg);
    }

    fn retain(&mut self, mut keep: impl FnMut(&mut Entry) -> bool) {
        self.0.retain(|_, list| {
            list.retain(&mut keep);
            !list.is_empty()
        });
    }

    pub fn waited(&mut self, mask: u8) {
        if mask != 0 {
            self.retain(|e| !e.announced || e.boards & mask == 0);
        }
    }

    /// Cycles go by; a stall of zero waits for every fixed latency.
    pub fn pass(&mut self, stall: u16) {
        self.retain(|e| {
            if e.announced {
                return true;
            }
            e.age = e.age.saturating_add(stall);
            stall != 0 && e.age < OLD
        });
    }

    /// Takes in another path's state; whether that changed anything.
    pub fn join(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (reg, entry) in other.entries() {
            changed |= self.add(reg, *entry);
        }
        changed
    }
}
