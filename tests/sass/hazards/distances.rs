//! Distances of fixed latency: ours compared with those observed in ptxas's cubins.
//!
//! The input is the cubins of both for the same files. A dependence (read after write, write after
//! write, write after read) whose first instruction has a fixed latency has a **triple** (producer
//! with its slot, consumer with its slot) and a **class** (the latency classes of both), each
//! within a latency model and a register file. No distance of ours may be below what the list
//! (`list.rs`) requires, except for the lines of tests/oracle/distances.txt; few of ours may lack a
//! judgement.

use super::list::{Between, By, Distances, List};
use super::{Job, each, jobs, jobs_of, named, ours, ptxas, slot, vendor, verb};
use sassafras::cubin::Cubin;
use sassafras::sass::hazards::{Analysis, Dependence, target_of};
use sassafras::sass::{Effects, Inst, Slot};
use sassafras::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of neighbouring instructions that count as the surroundings of a dependence.
const AROUND: usize = 2;

/// Collects the dependences of fixed latency.
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

/// The neighbouring opcodes of both, and the number of instructions between.
fn surroundings(analysis: &Analysis, d: &Dependence) -> u64 {
    let mut hasher = DefaultHasher::new();
    d.second.abs_diff(d.first).hash(&mut hasher);
    for at in [d.first, d.second] {
        (at.saturating_sub(AROUND)..=at + AROUND).for_each(|at| analysis.inst(at).map(named).hash(&mut hasher));
    }
    hasher.finish()
}

pub fn between(latency: &Latency, first: &Inst, second: &Inst, d: &Dependence) -> Between {
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

/// A line of tests/oracle/distances.txt: the words of a class, and the smallest distance that is
/// excused.
struct Excuse {
    class: Vec<String>,
    least: u8,
    /// Needed only for the usual files.
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
fn no_distance_of_ours_is_below_ptxas() {
    if vendor::tool("ptxas").is_none() {
        return println!("skipped: no NVIDIA tools");
    }
    // The least distance in a few small files says nothing about what ptxas keeps to.
    if !super::root().join("../shared/corpus/manifest.json").exists() {
        return println!("skipped: no corpus beside the project");
    }
    let jobs = jobs();
    // Evidence is taken from every file, ours is judged on half of them.
    let theirs = each(&jobs_of(1), |job| ptxas(job).map_or_else(Distances::new, |cubin| distances(job, &cubin)));
    the_ptxas_other_half(&theirs);
    let more = each(&super::more_evidence(), |(job, level)| {
        super::ptxas_at(job, *level).map_or_else(Distances::new, |cubin| distances(job, &cubin))
    });
    let list = List::new(theirs.iter().chain(&more));
    drop((theirs, more));
    let found = each(&jobs, |job: &Job| compared(job, &list));
    let mut judged: BTreeMap<Judged, u32> = BTreeMap::new();
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
    judged.iter().filter(|(key, _)| key.0 == By::Nothing).for_each(|((_, _, class), n)| println!("    {class}: {n}"));
    let lines = excuses();
    let fits = |line: &Excuse, between: &Between| super::fits(&line.class, &between.class);
    let excused = |between: &Between, age: u8| lines.iter().any(|line| age >= line.least && fits(line, between));
    let open: Vec<String> = wrong
        .iter()
        .filter(|(between, (age, _))| !excused(between, *age))
        .map(|(between, (age, text))| format!("{}: {age} {text}", between.triple))
        .collect();
    println!("{} triples of ours below the list, {} of them not excused", wrong.len(), open.len());
    assert!(open.is_empty(), "{} below ptxas's:\n{}", open.len(), open.join("\n"));
    let used = |line: &Excuse| wrong.keys().any(|between| fits(line, between));
    let usual =
        ["SASSAFRAS_CORPUS", "SASSAFRAS_CASE", "SASSAFRAS_SM"].iter().all(|name| std::env::var_os(name).is_none());
    let stale: Vec<String> = lines
        .iter()
        .filter(|l| if l.usual { usual } else { super::whole() } && !used(l))
        .map(|l| format!("{} {}", l.class.join(" "), l.least))
        .collect();
    assert!(stale.is_empty(), "excused, and not found: {stale:?}");
    for (in_turn, limit) in [(false, NOTHING), (true, NOTHING_IN_TURN)] {
        let of = |which: &dyn Fn(By) -> bool| {
            judged.iter().filter(|(key, _)| key.1 == in_turn && which(key.0)).map(|(_, n)| u64::from(*n)).sum::<u64>()
        };
        let (all, nothing) = (of(&|_| true), of(&|by| by == By::Nothing));
        println!("products in tensor memory: {in_turn}; {nothing} of {all} dependences are judged by nothing");
        assert!(nothing * limit <= all, "{nothing} of {all} dependences are judged by nothing");
    }
}

/// A judgement, whether of a program with products in tensor memory, and the class if none.
type Judged = (By, bool, String);

/// Our distances below the list, with the smallest distance and an example, and the number of
/// dependences by kind of judgement; those without a judgement by class.
type Compared = (BTreeMap<Between, (u8, String)>, BTreeMap<Judged, u32>);

fn compared(job: &Job, list: &List) -> Compared {
    let (mut wrong, mut judged) = Compared::default();
    let in_turn = std::fs::read_to_string(&job.path).is_ok_and(|text| text.contains("tcgen05.mma"));
    for level in [1, 3] {
        let Some(cubin) = ours(job, level) else { continue };
        for (between, seen) in distances(job, &cubin) {
            let (least, by) = list.rule(&between);
            let name = if by == By::Nothing { between.class.clone() } else { String::new() };
            *judged.entry((by, in_turn, name)).or_default() += seen.samples();
            let below = seen.below(least);
            if below > 0 {
                let class = list.classes.get(&between.class).map_or(0, |class| class.least);
                let text =
                    format!("of {least}, {by:?}, class {class}, {below} times, {} {} -O{level}", job.name, job.target);
                wrong.entry(between).or_insert((seen.least(), text));
            }
        }
    }
    (wrong, judged)
}

/// One in this many of our dependences may lack a judgement: mostly those of R2UR for copies in
/// bulk, of which ptxas computes the operands in uniform registers.
const NOTHING: u64 = 260;

/// The same in programs with products in tensor memory, which have many such operands in a row, and
/// where our lanes take turns unless the program says that `elect.sync` chose one of them.
const NOTHING_IN_TURN: u64 = 30;

/// Splits ptxas's files in two halves: one half is judged by the list of the other, by the letter
/// and by the rule.
fn the_ptxas_other_half(theirs: &[Distances]) {
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
        println!("ptxas's other half, {name}: of {all} dependences {letter} below the letter, {rule} below the rule");
    }
    let [_, letter, rule] = counts.iter().fold([0; 3], |s, c| [s[0] + c[0], s[1] + c[1], s[2] + c[2]]);
    assert!(10 * rule < letter, "ptxas breaks the rule {rule} times, the letter {letter} times");
}
