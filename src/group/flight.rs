//! Tracks wgmma products in flight: the registers of each group, and those written since the last
//! WARPGROUP.ARRIVE.
//!
//! A register that a product may still read or write belongs to its group until that group has been
//! waited for. States of paths that join are merged.

use crate::sorted::SortedSet;

/// Groups that are told apart; what is older counts as the oldest of them.
const GROUPS: usize = 9;

/// Registers, by number.
pub type Set = SortedSet<u32>;

/// One group of products.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Registers that products of it write, and those that they read.
    pub sums: Set,
    pub factors: Set,
    pub any: bool,
}

impl Group {
    fn join(&mut self, other: &Group) -> bool {
        let before = (self.sums.len(), self.factors.len(), self.any);
        self.sums.extend(&other.sums);
        self.factors.extend(&other.factors);
        self.any |= other.any;
        before != (self.sums.len(), self.factors.len(), self.any)
    }

    /// Whether an instruction is too early.
    fn meets(&self, reads: &Set, writes: &Set) -> bool {
        !self.sums.is_disjoint(reads) || !self.sums.is_disjoint(writes) || !self.factors.is_disjoint(writes)
    }
}

/// All that is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Flight {
    /// The newest first: that which is still open.
    pub groups: Vec<Group>,
    /// Registers that were written since registers were said to be ready; `None`: any.
    pub written: Option<Set>,
}

impl Flight {
    /// At the entry of a function.
    pub fn entry() -> Flight {
        Flight { groups: vec![Group::default()], written: None }
    }

    /// Where nothing comes from yet.
    pub fn nowhere() -> Flight {
        Flight { groups: vec![Group::default()], written: Some(Set::new()) }
    }

    /// Takes in another path's; whether that changed anything.
    pub fn join(&mut self, other: &Flight) -> bool {
        let mut changed = self.groups.len() < other.groups.len();
        self.groups.resize_with(self.groups.len().max(other.groups.len()), Group::default);
        for (group, other) in self.groups.iter_mut().zip(&other.groups) {
            changed |= group.join(other);
        }
        match (&mut self.written, &other.written) {
            (Some(written), Some(other)) => {
                let before = written.len();
                written.extend(other);
                changed | (written.len() != before)
            }
            (Some(_), None) => {
                self.written = None;
                true
            }
            (None, _) => changed,
        }
    }

    /// A product of the open group.
    pub fn product(&mut self, sums: &Set, factors: &Set) {
        let open = &mut self.groups[0];
        open.sums.extend(sums);
        open.factors.extend(factors);
        open.any = true;
    }

    /// The open group is closed.
    pub fn commit(&mut self) {
        self.groups.insert(0, Group::default());
        while self.groups.len() > GROUPS
            && let Some(last) = self.groups.pop()
            && let Some(oldest) = self.groups.last_mut()
        {
            oldest.join(&last);
        }
    }

    /// All closed groups but the newest `left` are over; those are returned.
    pub fn wait(&mut self, left: usize) -> Vec<Group> {
        let keep = (1 + left).min(self.groups.len());
        self.groups.split_off(keep)
    }

    /// The newest group that an instruction is too early for; 0 is the open one.
    pub fn too_early(&self, reads: &Set, writes: &Set) -> Option<usize> {
        self.groups.iter().position(|group| group.meets(reads, writes))
    }

    /// Whether some group has a sum that overlaps this one without being it.
    pub fn overlaps(&self, sum: &Set) -> bool {
        self.groups.iter().any(|g| !g.sums.is_disjoint(sum) && !sum.is_subset(&g.sums))
    }

    /// Whether registers must be said to be ready before a product touches them.
    pub fn is_unready(&self, registers: &Set) -> bool {
        self.written.as_ref().is_none_or(|written| !written.is_disjoint(registers))
    }
}
