//! The instructions of a region that may come next, each with what its key is made of, so that the
//! least key is found in a few operations for each.

use super::sweep::Peaks;

/// No place in the list.
const NOWHERE: u32 = u32::MAX;

/// An instruction that may come next.
#[derive(Clone, Copy, Default)]
pub struct Candidate {
    /// Its position in the region.
    pub at: u32,
    /// What it would change, and how late the first of its results began to live.
    pub change: Peaks,
    pub age: u32,
    /// Whether it begins predicates or uniform registers, which may be scarce.
    pub begins: bool,
    /// The least distance from the end at which it delays no reader, its pipe, and its depth.
    pub due: i64,
    pub pipe: usize,
    pub depth: i64,
    /// The last step in which what it would change was found to be another.
    pub noted: u32,
}

/// What comes first, seen from the end, where pressure counts.
#[derive(Clone, Copy, PartialEq)]
pub enum Prefer {
    /// What begins the fewest ranges, then what ends the range that began last: chains are
    /// finished.
    Chains,
    /// The last one in the order that the block has, of those that begin no more ranges than they
    /// end, or else of all: a block that came in a good order keeps it where nothing is gained.
    Place,
    /// What begins the fewest ranges, then the last one in the order that the block has.
    Fewest,
}

/// A key: what it needs that is scarce; then where pressure counts by how many registers it
/// changes and how late it began, else how long its readers wait and how deep it is; then its
/// place. The least comes next.
pub type Key = u128;

/// How much that is scarce a key needs.
pub fn scarce_of(key: Key) -> u32 {
    (key >> 96) as u32
}

/// What the keys of all candidates depend on.
pub struct Now<'a> {
    /// Predicates and uniform registers that may begin.
    pub predicates: i32,
    pub uniform: i32,
    /// Whether pressure counts.
    pub pressed: bool,
    /// What comes first if it does.
    pub prefer: Prefer,
    /// The time, and from when on each pipe is free.
    pub now: i64,
    pub free: &'a [i64],
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl Candidate {
    /// Its key.
    pub fn key(&self, now: &Now) -> Key {
        let (first, second) = if now.pressed {
            (self.pressure(now), self.behind_pressure(now))
        } else {
            (self.wait(now), self.behind_wait(now))
        };
        u128::from(pair(self.scarce(now), first)) << 64 | u128::from(second)
    }

    /// What it would change is another now.
    pub fn set_change(&mut self, (change, age): (Peaks, u32)) {
        (self.change, self.age) = (change, age);
        self.begins = change.predicates > 0 || change.uniform > 0;
    }

    /// How much it needs that is scarce.
    fn scarce(&self, now: &Now) -> u32 {
        self.waits(now) + self.lacks_predicates(now) as u32 + u32::from(self.change.uniform > now.uniform)
    }

    /// Whether it waits for what makes a predicate free, where none is left.
    fn waits(&self, now: &Now) -> u32 {
        let wanted = now.prefer != Prefer::Chains && now.predicates == 0;
        u32::from(wanted && self.change.predicates >= 0)
    }

    /// What the key has behind that where pressure counts.
    fn pressure(&self, now: &Now) -> u32 {
        match now.prefer {
            Prefer::Chains | Prefer::Fewest => (self.change.general as u32) ^ 1 << 31,
            Prefer::Place => u32::from(self.change.general > 0),
        }
    }

    /// What it has behind this: what began later comes earlier, where chains are preferred.
    fn behind_pressure(&self, now: &Now) -> u64 {
        let age = if now.prefer == Prefer::Chains { self.age } else { 0 };
        pair(!age, !self.at)
    }

    /// The same where pressure does not count.
    fn wait(&self, now: &Now) -> u32 {
        (self.due.max(now.free[self.pipe]) - now.now).max(0) as u32
    }

    fn behind_wait(&self, _now: &Now) -> u64 {
        pair(!(self.depth as u32), !self.at)
    }

    /// Whether it begins more predicates than may begin.
    fn lacks_predicates(&self, now: &Now) -> bool {
        self.change.predicates > now.predicates
    }
}

/// The candidates, in no order.
pub struct Ready {
    pub list: Vec<Candidate>,
    /// The place of each instruction in the list.
    place: Vec<u32>,
    /// Whether a candidate began more predicates than might begin.
    pub scarce: bool,
}

impl Ready {
    /// No candidate of a region of so many instructions.
    pub fn new(count: usize) -> Ready {
        Ready { list: Vec::new(), place: vec![NOWHERE; count], scarce: false }
    }

    /// Adds a candidate.
    pub fn push(&mut self, candidate: Candidate) {
        self.place[candidate.at as usize] = self.list.len() as u32;
        self.list.push(candidate);
    }

    /// Removes the candidate at a place.
    pub fn remove(&mut self, place: usize) -> Candidate {
        let candidate = self.list.swap_remove(place);
        self.place[candidate.at as usize] = NOWHERE;
        if let Some(moved) = self.list.get(place) {
            self.place[moved.at as usize] = place as u32;
        }
        candidate
    }

    /// The candidate of an instruction.
    pub fn of(&mut self, at: u32) -> Option<&mut Candidate> {
        self.list.get_mut(self.place[at as usize] as usize)
    }

    /// The place of the least key.
    pub fn least(&mut self, now: &Now) -> Option<usize> {
        // The high half alone mostly tells that a key is not the least, and what it is made of is
        // one of two: each has a loop of its own.
        if now.pressed {
            self.least_by(now, Candidate::pressure, Candidate::behind_pressure)
        } else {
            self.least_by(now, Candidate::wait, Candidate::behind_wait)
        }
    }

    fn least_by(
        &mut self,
        now: &Now,
        first: impl Fn(&Candidate, &Now) -> u32,
        behind: impl Fn(&Candidate, &Now) -> u64,
    ) -> Option<usize> {
        let (mut scarce, mut least) = (false, None);
        let (mut high, mut low) = (u64::MAX, u64::MAX);
        let waits = now.prefer != Prefer::Chains && now.predicates == 0;
        for (place, candidate) in self.list.iter().enumerate() {
            let mut lacks = 0;
            if candidate.begins {
                scarce |= candidate.lacks_predicates(now);
                lacks = candidate.scarce(now);
            } else if waits {
                lacks = candidate.waits(now);
            }
            let new = pair(lacks, first(candidate, now));
            if new > high {
                continue;
            }
            let second = behind(candidate, now);
            if new < high || second < low {
                (high, low, least) = (new, second, Some(place));
            }
        }
        self.scarce |= scarce;
        least
    }

    /// The places of the least keys, up to `out.len()` of them in order; how many there are.
    pub fn least_ones(&self, now: &Now, out: &mut [(Key, usize)]) -> usize {
        let mut count = 0;
        for (place, candidate) in self.list.iter().enumerate() {
            let new = (candidate.key(now), place);
            if count == out.len() && new > out[count - 1] {
                continue;
            }
            let at = out[..count].partition_point(|old| *old < new);
            count = (count + 1).min(out.len());
            out[at..count].rotate_right(1);
            out[at] = new;
        }
        count
    }
}
