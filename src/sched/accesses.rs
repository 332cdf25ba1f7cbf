//! The memory accesses that stand before one, and those of them that it must stay behind.
//!
//! Plain reads are kept apart from the others, since no read must follow another: a block may have
//! any number of them between two writes. Otherwise an access is compared with a bounded number of
//! earlier ones; the next one stays behind them all, and all that come later stay behind that one.

use crate::analysis::memory_dependence::Memory;

/// The accesses so far, by position.
pub struct Accesses {
    /// How many of each kind one is compared with.
    compared: usize,
    reads: Vec<(u32, Memory)>,
    others: Vec<(u32, Memory)>,
}

impl Accesses {
    /// None so far.
    pub fn new(compared: usize) -> Accesses {
        Accesses { compared, reads: Vec::new(), others: Vec::new() }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.others.clear();
    }

    /// The last one beside an access, of those of its kind that it is compared with.
    pub fn beside(&self, access: &Memory) -> Option<u32> {
        let kind = if access.only_reads() { &self.reads } else { &self.others };
        kind.iter().rev().take(self.compared).find(|(_, other)| access.is_beside(other)).map(|(at, _)| *at)
    }

    /// Adds the next one. `follows` gets the positions of those that it must stay behind.
    pub fn add(&mut self, now: u32, access: Memory, follows: impl FnMut(u32)) {
        let reads = access.only_reads();
        let full = self.others.len() >= self.compared || !reads && self.reads.len() >= self.compared;
        let met = self.reads.iter().filter(|_| full || !reads).chain(&self.others);
        met.filter(|(_, other)| full || access.follows(other)).map(|(at, _)| *at).for_each(follows);
        if full {
            self.clear();
            self.others.push((now, access.anywhere()));
        } else {
            if reads { &mut self.reads } else { &mut self.others }.push((now, access));
        }
    }
}
