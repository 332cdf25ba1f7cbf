//! The list of distances: how close ptxas places two instructions, and what follows from it.
//!
//! The design requires the smallest observed distance of the triple and, for a triple never seen,
//! the largest such distance of its class. Taken to the letter, that is more than hardware or ptxas
//! require: the smallest distance of a few samples only says where those instructions happened to
//! be (57 cycles from one ALU operation to another), and the largest of a class is that of its
//! rarest triple. `the_ptxas_other_half` measures it by judging half of ptxas's files by the list
//! of the other half: to the letter, 12,329 of 231,988 dependences whose triple is in the list are
//! too close, and 22,121 of 47,295 of the others; by the rule here, 141 and 111 (for all files
//! 3,822 of 1,018,863 and 6,537 of 9,088 to the letter, 35 and 296 by the rule).
//!
//! The rule: a smallest distance is a **bound** if it is seen `ENOUGH` times, in `FILES` programs
//! and `SURROUNDINGS` surroundings, and if one in `BUNCH` samples has exactly it, as is the case
//! where it limits ptxas. Then
//!
//! * a triple with a bound must keep it, even if the class has smaller distances;
//! * another triple that was seen must keep the smallest distance of its class;
//! * a triple never seen must keep the bounds that its producer and its consumer have with all
//!   others in the class, or if one of the two was not seen there either, the largest such bound of
//!   those that were; without a bound, the smallest distance of the class;
//! * a class with fewer than `ENOUGH` samples must keep the smallest distance of its producer's
//!   class to any consumer; a producer's class with fewer samples judges nothing.

use std::collections::{BTreeMap, BTreeSet};

/// Distances above this number of cycles count as equal.
const FAR: usize = 64;
/// Number of samples from which on a class's smallest distance is meaningful.
const ENOUGH: u32 = 50;
/// Number of files that a triple's own smallest distance must be seen in.
const FILES: usize = 3;
/// Number of surroundings that it must be seen in: a sequence that ptxas emits for every division
/// has only one.
const SURROUNDINGS: usize = 5;
/// A smallest distance is a bound if one in this many samples has it.
const BUNCH: u32 = 8;

/// The two ends of a dependence: their opcodes and slots, and their classes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Between {
    pub triple: String,
    pub class: String,
    /// The class of the producer only.
    pub producer: String,
}

impl Between {
    /// The producer with its slot, and the consumer with its slot.
    fn ends(&self) -> [&str; 2] {
        [3, 5].map(|at| self.triple.split(' ').nth(at).expect("a triple of seven words"))
    }
}

/// The number of occurrences of each distance, its files, and the surroundings of the smallest.
#[derive(Clone)]
pub struct Seen {
    ages: [u32; FAR + 1],
    pub files: BTreeSet<String>,
    surroundings: BTreeSet<u64>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { ages: [0; FAR + 1], files: BTreeSet::new(), surroundings: BTreeSet::new() }
    }
}

impl Seen {
    pub fn add(&mut self, age: u8, surroundings: u64) {
        self.nearer(age.min(FAR as u8), &[surroundings]);
        self.ages[usize::from(age).min(FAR)] += 1;
    }

    /// Keeps only the surroundings of the smallest distance.
    fn nearer<'a>(&mut self, age: u8, surroundings: impl IntoIterator<Item = &'a u64>) {
        if age < self.least() {
            self.surroundings.clear();
        }
        if age <= self.least() {
            self.surroundings.extend(surroundings);
        }
    }

    fn join(&mut self, other: &Seen) {
        self.nearer(other.least(), &other.surroundings);
        self.ages.iter_mut().zip(other.ages).for_each(|(n, more)| *n += more);
        self.files.extend(other.files.iter().cloned());
    }

    pub fn samples(&self) -> u32 {
        self.ages.iter().sum()
    }

    pub fn least(&self) -> u8 {
        self.ages.iter().position(|n| *n > 0).unwrap_or(FAR) as u8
    }

    /// Whether enough samples have the smallest distance for it to be a limit.
    fn bunched(&self) -> bool {
        self.ages[usize::from(self.least())] * BUNCH >= self.samples()
    }

    /// The smallest distance, if it is a bound.
    fn bound(&self) -> Option<u8> {
        let enough = self.samples() >= ENOUGH && self.files.len() >= FILES && self.surroundings.len() >= SURROUNDINGS;
        (enough && self.bunched()).then(|| self.least())
    }

    pub fn below(&self, age: u8) -> u32 {
        self.ages[..usize::from(age).min(FAR)].iter().sum()
    }
}

/// The distances of a cubin.
pub type Distances = BTreeMap<Between, Seen>;

/// The requirements of a class.
pub struct Class {
    pub least: u8,
    /// The largest of the smallest distances of its triples.
    largest: u8,
    /// The bounds of its producers with all consumers, and of its consumers with all producers, if
    /// any.
    ends: [BTreeMap<String, Option<u8>>; 2],
    enough: bool,
}

/// The list of distances: the requirements of each triple and class.
pub struct List {
    /// Smallest distance, and whether it is a bound.
    pub triples: BTreeMap<String, (u8, bool)>,
    pub classes: BTreeMap<String, Class>,
    /// Smallest distance of a producer's class to any consumer.
    producers: BTreeMap<String, u8>,
}

/// The basis on which a dependence was judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum By {
    /// Its own bound.
    Triple,
    /// The smallest distance of its class.
    Class,
    /// The bounds of its producer and its consumer.
    Ends,
    /// The same, but the class lacks one of the two: the largest bound that exists.
    Strictest,
    /// The smallest distance of its producer's class.
    Producer,
    Nothing,
}

impl List {
    pub fn new<'a>(all: impl Iterator<Item = &'a Distances>) -> List {
        let mut classes: BTreeMap<&str, BTreeMap<&str, Seen>> = BTreeMap::new();
        let mut producers: BTreeMap<&str, Seen> = BTreeMap::new();
        let mut ends: BTreeMap<&str, [BTreeMap<&str, Seen>; 2]> = BTreeMap::new();
        for (between, seen) in all.flatten() {
            let own = ends.entry(&between.class).or_default();
            own.iter_mut().zip(between.ends()).for_each(|(ends, end)| ends.entry(end).or_default().join(seen));
            producers.entry(&between.producer).or_default().join(seen);
            classes.entry(&between.class).or_default().entry(&between.triple).or_default().join(seen);
        }
        let known = producers.into_iter().filter(|(_, seen)| seen.samples() >= ENOUGH);
        let producers = known.map(|(name, seen)| (name.to_string(), seen.least())).collect();
        let mut list = List { triples: BTreeMap::new(), classes: BTreeMap::new(), producers };
        for (name, triples) in classes {
            let mut whole = Seen::default();
            triples.values().for_each(|seen| whole.join(seen));
            let least = whole.least();
            let bounds =
                |ends: BTreeMap<&str, Seen>| ends.into_iter().map(|(end, seen)| (end.into(), seen.bound())).collect();
            let ends = ends.remove(name).unwrap_or_default().map(bounds);
            let mut class = Class { least, largest: 0, ends, enough: whole.samples() >= ENOUGH };
            for (triple, seen) in triples {
                let own = seen.least();
                let sure = seen.bound().is_some();
                class.largest = class.largest.max(own);
                list.triples.insert(triple.into(), (own, sure));
            }
            list.classes.insert(name.into(), class);
        }
        list
    }

    /// The requirement of the design, to the letter.
    pub fn letter(&self, between: &Between) -> u8 {
        let class = || self.classes.get(&between.class).map_or(0, |class| class.largest);
        self.triples.get(&between.triple).map_or_else(class, |(own, _)| *own)
    }

    /// The requirement by the rule.
    pub fn rule(&self, between: &Between) -> (u8, By) {
        let class = self.classes.get(&between.class).filter(|class| class.enough);
        match (self.triples.get(&between.triple), class) {
            (_, None) => {
                let least = self.producers.get(&between.producer);
                least.map_or((0, By::Nothing), |least| (*least, By::Producer))
            }
            (Some((own, true)), _) => (*own, By::Triple),
            (Some(_), Some(class)) => (class.least, By::Class),
            (None, Some(class)) => {
                let own = between.ends();
                let known = [0, 1].map(|at| class.ends[at].get(own[at]).copied());
                let strictest = |at: usize| class.ends[at].values().max().copied().flatten();
                let bounds = [0, 1].map(|at| known[at].unwrap_or_else(|| strictest(at)));
                let by = if known.iter().all(Option::is_some) { By::Ends } else { By::Strictest };
                (bounds.into_iter().flatten().max().unwrap_or(class.least), by)
            }
        }
    }
}
