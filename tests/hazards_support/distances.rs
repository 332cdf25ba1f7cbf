//! Distances of fixed latency: ours beside those seen in the incumbent's cubins.
//!
//! Input: the cubins of both for the same files. A dependence (read after write, write after write, write after read) whose first instruction
//! ends after cycles has a **triple** (producer with its slot, consumer with its slot) and a **class** (the latency classes of both), each
//! within a latency model and a register file. Checked: no distance of ours is below what the list asks for, but for the lines of
//! tests/oracle/distances.txt; few of ours are judged by nothing.
//!
//! The design asks for the smallest distance seen of the triple and, for a triple never seen, for the largest of its class. To the letter that
//! is more than hardware or incumbent ask for: the smallest distance of a few samples says where those instructions happened to stand (57 cycles
//! from one ALU operation to another), and the largest of a class is that of its rarest triple. `the_incumbents_other_half` measures it, with
//! half of the incumbent's files judged by the list of the other half: by the letter 12,329 of 231,988 dependences whose triple the list has are
//! too close, and 22,121 of 47,295 of those whose triple it does not have; by the rule here 141 and 111 (of all files 3,822 of 1,018,863 and
//! 6,537 of 9,088 by the letter, 35 and 296 by the rule). The rule: a smallest distance is a **bound** where it is seen `ENOUGH` times, in
//! `FILES` programs and `SURROUNDINGS` surroundings, and one in `BUNCH` samples has exactly it, as is so where it holds the incumbent back. Then
//!
//! * a triple with a bound is held to it, even where the class has smaller ones;
//! * another one that was seen is held to the smallest of its class;
//! * one never seen is held to the bounds that its producer and its consumer have with all others in the class, and where one of the two was
//!   not seen there either, to the largest such bound of those that were; without a bound, to the smallest of the class;
//! * a class with fewer than `ENOUGH` samples is held to the smallest distance of its producer's class to anybody; a producer's class with fewer judges nothing.

use super::{Job, each, incumbent, jobs, named, ours, slot, vendor, verb};
use sassafras::cubin::Cubin;
use sassafras::sass::hazards::{Analysis, Dependence, target_of};
use sassafras::sass::{Effects, Inst, Slot};
use sassafras::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Cycles beyond which all distances count as one.
const FAR: usize = 64;
/// Samples of a class that say something of its smallest distance.
const ENOUGH: u32 = 50;
/// Files that a triple's own smallest distance must come from.
const FILES: usize = 3;
/// Surroundings that it must be seen in: a sequence that the incumbent writes wherever it divides has one.
const SURROUNDINGS: usize = 5;
/// Instructions on both sides that count as such.
const AROUND: usize = 2;
/// One in so many samples has the smallest distance where it is a bound.
const BUNCH: u32 = 8;

/// What lies between two instructions: their opcodes and slots, and their classes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Between {
    triple: String,
    class: String,
    /// The class of the producer alone.
    producer: String,
}

impl Between {
    /// The producer with its slot, and the consumer likewise.
    fn ends(&self) -> [&str; 2] {
        [3, 5].map(|at| self.triple.split(' ').nth(at).expect("a triple of seven words"))
    }
}

/// How often each distance was seen, in which files, and in which surroundings the smallest.
#[derive(Clone)]
struct Seen {
    ages: [u32; FAR + 1],
    files: BTreeSet<String>,
    surroundings: BTreeSet<u64>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { ages: [0; FAR + 1], files: BTreeSet::new(), surroundings: BTreeSet::new() }
    }
}

impl Seen {
    fn add(&mut self, age: u8, surroundings: u64) {
        self.nearer(age.min(FAR as u8), &[surroundings]);
        self.ages[usize::from(age).min(FAR)] += 1;
    }

    /// Keeps the surroundings of the smallest distance alone.
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

    fn samples(&self) -> u32 {
        self.ages.iter().sum()
    }

    fn least(&self) -> u8 {
        self.ages.iter().position(|n| *n > 0).unwrap_or(FAR) as u8
    }

    /// Whether so many of the samples have the smallest distance that something holds them there.
    fn bunched(&self) -> bool {
        self.ages[usize::from(self.least())] * BUNCH >= self.samples()
    }

    /// The smallest distance, where it is no chance.
    fn bound(&self) -> Option<u8> {
        let enough = self.samples() >= ENOUGH && self.files.len() >= FILES && self.surroundings.len() >= SURROUNDINGS;
        (enough && self.bunched()).then(|| self.least())
    }

    fn below(&self, age: u8) -> u32 {
        self.ages[..usize::from(age).min(FAR)].iter().sum()
    }
}

/// The distances of a cubin.
type Distances = BTreeMap<Between, Seen>;

/// Dependences whose first ends after cycles that nothing announces.
fn distances(job: &Job, cubin: &Cubin) -> Distances {
    let mut found = Distances::new();
    let Ok(target) = target_of(cubin) else { return found };
    let Some(latency) = Latency::demanded(target) else { return found };
    for function in &cubin.functions {
        let analysis = Analysis::new(target, function).unwrap();
        analysis.dependences(|d| {
            let (Some(first), Some(second)) = (analysis.inst(d.first), analysis.inst(d.second)) else { return };
            if !d.announced && d.needed != Needed::Scoreboard {
                found.entry(between(latency, first, second, &d)).or_default().add(d.age, surroundings(&analysis, &d));
            }
        });
    }
    // A file for another target is the same program.
    let file = job.name.split('.').next().unwrap_or(&job.name);
    found.values_mut().for_each(|seen| seen.files = BTreeSet::from([file.to_string()]));
    found
}

/// The opcodes beside both, and how many lie between them.
fn surroundings(analysis: &Analysis, d: &Dependence) -> u64 {
    let mut hasher = DefaultHasher::new();
    d.second.abs_diff(d.first).hash(&mut hasher);
    for at in [d.first, d.second] {
        (at.saturating_sub(AROUND)..=at + AROUND).for_each(|at| analysis.inst(at).map(named).hash(&mut hasher));
    }
    hasher.finish()
}

fn between(latency: &Latency, first: &Inst, second: &Inst, d: &Dependence) -> Between {
    let class = |inst: &Inst, at: Slot, file: RegFile| {
        let effects = Effects::of(inst);
        let found = effects.reads.iter().chain(&effects.writes).find(|a| {
            a.slot == at && a.file == file && (a.first..a.first.saturating_add(a.count)).contains(&d.register)
        });
        found.map_or(LatencyClass::Guard, |a| a.class(latency, inst, d.register - a.first)).name()
    };
    let (from, to) = (class(first, d.first_slot, d.file), class(second, d.second_slot, d.file));
    let head = format!("{} {} {:?}", latency.name, verb(d.kind), d.file);
    let (producer, consumer) = (slot(first, d.first_slot), slot(second, d.second_slot));
    let triple = format!("{head} {}.{producer} {from} {}.{consumer} {to}", named(first), named(second));
    let class = format!("{head} {from} {to}");
    Between { triple, class, producer: format!("{head} {from} *") }
}

/// What is asked of a class.
struct Class {
    least: u8,
    /// The largest smallest distance of its triples.
    largest: u8,
    /// The bounds of its producers with all its consumers, and of its consumers with all its producers, where they have one.
    ends: [BTreeMap<String, Option<u8>>; 2],
    enough: bool,
}

/// The list of distances: what each triple and each class asks for.
struct List {
    /// Smallest distance, and whether it is no chance.
    triples: BTreeMap<String, (u8, bool)>,
    classes: BTreeMap<String, Class>,
    /// Smallest distance of a producer's class to anybody.
    producers: BTreeMap<String, u8>,
}

/// What a dependence was judged by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum By {
    Triple,
    Class,
    Ends,
    Strictest,
    Producer,
    Nothing,
}

impl List {
    fn new<'a>(all: impl Iterator<Item = &'a Distances>) -> List {
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

    /// What the design asks for to the letter.
    fn letter(&self, between: &Between) -> u8 {
        let class = || self.classes.get(&between.class).map_or(0, |class| class.largest);
        self.triples.get(&between.triple).map_or_else(class, |(own, _)| *own)
    }

    /// What is asked for here.
    fn rule(&self, between: &Between) -> (u8, By) {
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

/// A line of tests/oracle/distances.txt: the words of a class, and the smallest distance that is excused.
struct Excuse {
    class: Vec<String>,
    least: u8,
    /// Only the usual files need it.
    usual: bool,
}

fn excuses() -> Vec<Excuse> {
    let path = super::root().join("tests/oracle/distances.txt");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let (key, why) = line.split_once(": ").unwrap_or_else(|| panic!("no why: {line}"));
        let (class, least) = key.rsplit_once(' ').unwrap_or_else(|| panic!("no distance: {line}"));
        assert!(!why.is_empty() && class.split(' ').count() == 5, "{line}");
        let class = class.split(' ').map(String::from).collect();
        Excuse { class, least: least.parse().expect("a distance"), usual: why.starts_with("usual files: ") }
    };
    text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).map(line).collect()
}

#[test]
fn no_distance_of_ours_is_below_the_incumbents() {
    if vendor::tool("ptxas").is_none() {
        return println!("skipped: no vendor tools");
    }
    let jobs = jobs();
    let theirs = each(&jobs, |job| incumbent(job).map_or_else(Distances::new, |cubin| distances(job, &cubin)));
    the_incumbents_other_half(&theirs);
    let list = List::new(theirs.iter());
    drop(theirs);
    let found = each(&jobs, |job: &Job| compared(job, &list));
    let mut judged: BTreeMap<(By, String), u32> = BTreeMap::new();
    let mut wrong: BTreeMap<Between, (u8, String)> = BTreeMap::new();
    for (own, counts) in found {
        counts.into_iter().for_each(|(key, n)| *judged.entry(key).or_default() += n);
        for (between, (age, text)) in own {
            let known = wrong.entry(between).or_insert_with(|| (age, text.clone()));
            if age < known.0 {
                *known = (age, text);
            }
        }
    }
    let by = |by: By| judged.iter().filter(|(key, _)| key.0 == by).map(|(_, n)| *n).sum::<u32>();
    let counts = [By::Triple, By::Class, By::Ends, By::Strictest, By::Producer, By::Nothing].map(by);
    println!(
        "{} triples, {} classes seen; of our dependences {counts:?} are judged by a bound of their triple, the smallest of their class, \
         bounds of producer and consumer, the same where the class has one of them nowhere, the producer's class, nothing:",
        list.triples.len(),
        list.classes.len()
    );
    judged.iter().filter(|(key, _)| key.0 == By::Nothing).for_each(|((_, class), n)| println!("    {class}: {n}"));
    let lines = excuses();
    let fits = |line: &Excuse, between: &Between| super::fits(&line.class, &between.class);
    let excused = |between: &Between, age: u8| lines.iter().any(|line| age >= line.least && fits(line, between));
    let open: Vec<String> = wrong
        .iter()
        .filter(|(between, (age, _))| !excused(between, *age))
        .map(|(between, (age, text))| format!("{}: {age} {text}", between.triple))
        .collect();
    println!("{} triples of ours below the list, {} of them not excused", wrong.len(), open.len());
    assert!(open.is_empty(), "{} below the incumbent's:\n{}", open.len(), open.join("\n"));
    let used = |line: &Excuse| wrong.keys().any(|between| fits(line, between));
    let usual =
        ["SASSAFRAS_CORPUS", "SASSAFRAS_CASE", "SASSAFRAS_SM"].iter().all(|name| std::env::var_os(name).is_none());
    let stale: Vec<String> = lines
        .iter()
        .filter(|l| if l.usual { usual } else { super::whole() } && !used(l))
        .map(|l| format!("{} {}", l.class.join(" "), l.least))
        .collect();
    assert!(stale.is_empty(), "excused, and not found: {stale:?}");
    let (all, nothing) = (counts.iter().map(|n| u64::from(*n)).sum::<u64>(), u64::from(counts[5]));
    assert!(nothing * NOTHING <= all, "{nothing} of {all} dependences are judged by nothing");
}

/// What of ours is below the list, with the smallest distance and an example, and how many dependences were judged by what: those judged by
/// nothing by class.
type Compared = (BTreeMap<Between, (u8, String)>, BTreeMap<(By, String), u32>);

fn compared(job: &Job, list: &List) -> Compared {
    let (mut wrong, mut judged) = Compared::default();
    for level in [1, 3] {
        let Some(cubin) = ours(job, level) else { continue };
        for (between, seen) in distances(job, &cubin) {
            let (least, by) = list.rule(&between);
            let name = if by == By::Nothing { between.class.clone() } else { String::new() };
            *judged.entry((by, name)).or_default() += seen.samples();
            let below = seen.below(least);
            if below > 0 {
                let text = format!("of {least}, {by:?}, {below} times, {} {} -O{level}", job.name, job.target);
                wrong.entry(between).or_insert((seen.least(), text));
            }
        }
    }
    (wrong, judged)
}

/// Of so many dependences of ours one may be judged by nothing.
const NOTHING: u64 = 300;

/// The incumbent's files by turns: those of one half judged by the list of the other, by the letter and by the rule.
fn the_incumbents_other_half(theirs: &[Distances]) {
    let half = |odd: usize| theirs.iter().enumerate().filter(move |(i, _)| i % 2 == odd).map(|(_, d)| d);
    let list = List::new(half(0));
    let mut counts = [[0u64; 3]; 4];
    for (between, seen) in half(1).flatten() {
        let raw = between.class.contains(" raw ");
        let count = &mut counts[2 * usize::from(!raw) + usize::from(!list.triples.contains_key(&between.triple))];
        let below = [seen.samples(), seen.below(list.letter(between)), seen.below(list.rule(between).0)];
        count.iter_mut().zip(below).for_each(|(n, more)| *n += u64::from(more));
    }
    let names =
        ["reads after writes", "the same, of a triple never seen", "others", "the same, of a triple never seen"];
    for (name, [all, letter, rule]) in names.iter().zip(counts) {
        println!(
            "the incumbent's other half, {name}: of {all} dependences {letter} below the letter, {rule} below the rule"
        );
    }
    let [_, letter, rule] = counts.iter().fold([0; 3], |s, c| [s[0] + c[0], s[1] + c[1], s[2] + c[2]]);
    assert!(10 * rule < letter, "the incumbent breaks the rule {rule} times, the letter {letter} times");
}
