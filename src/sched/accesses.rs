//! The memory accesses that stand before one, and those of them that it must stay behind.
//!
//! Plain reads are kept apart from the others, since no read must follow another: a block may have
//! any number of them between two writes. Otherwise an access is compared with a bounded number of
//! earlier ones; the next one stays behind them all, and all that come later stay behind that one.
//! Likewise an access that stays behind one which stays behind all before it needs no edges to
//! these: the graph has no transitive edges of this kind.

use crate::analysis::memory_dependence::Memory;
use crate::arrays::Each;

/// The accesses so far, by position.
pub struct Accesses {
    /// How many of each kind one is compared with.
    compared: usize,
    reads: Vec<Access>,
    others: Vec<Access>,
}

/// One access.
struct Access {
    at: u32,
    memory: Memory,
    /// Whether it stays behind all before it.
    behind_all: bool,
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
        kind.iter().rev().take(self.compared).find(|other| access.is_beside(&other.memory)).map(|other| other.at)
    }

    /// Adds the next one. `follows` gets the positions of those that it must stay behind, but not
    /// of those that one of these is known to stay behind.
    pub fn add(&mut self, now: u32, access: Memory, mut follows: impl FnMut(u32)) {
        let reads = access.only_reads();
        let full = self.others.len() >= self.compared || !reads && self.reads.len() >= self.compared;
        let behind = |other: &Access| full || access.follows(&other.memory);
        let lasts =
            [&self.reads, &self.others].each(|kind| kind.iter().rev().find(|other| other.behind_all && behind(other)));
        let since = lasts.into_iter().flatten().map(|other| other.at).max().unwrap_or(0);
        let mut behind_all = true;
        for other in self.reads.iter().chain(&self.others).filter(|other| other.at >= since) {
            if behind(other) {
                follows(other.at);
            } else {
                behind_all = false;
            }
        }
        if full {
            self.clear();
            self.others.push(Access { at: now, memory: access.anywhere(), behind_all });
        } else {
            let kind = if reads { &mut self.reads } else { &mut self.others };
            kind.push(Access { at: now, memory: access, behind_all });
        }
    }
}
