//! Mutation testing of the simulator and the static checker: slightly wrong cubins must be
//! detected.
//!
//! The input is the kernels under tests/cases/exec, compiled by us and, if it is installed, by
//! ptxas, at -O0 and -O3, with six kinds of changes to an instruction that the launch executes. A
//! mutant
//! **can matter** if one of two criteria says so, neither of which uses reports:
//!
//! * in one of twenty jittered runs the values differ from the expected ones, or the launch does
//!   not end. Timing is on: a result is visible only when the tables guarantee it, however long
//!   that takes, and an earlier read gets neither the old nor the new value;
//! * the list of distances (`mutation/distances.rs`) contains a pair of instructions, both
//!   certainly executed, that violates a row. It walks over the words, without paths, values or
//!   runs.
//!
//! A mutant **is reported** if a user would be told of it: the static checker reports more about it
//! than about the program, or the plain run, or one of ten jittered runs with seeds other than the
//! twenty, has a report. It **shows** if one of these runs gives a wrong value. Both are counted
//! separately. A wrong value is also how "can matter" is decided, so it proves nothing if the
//! change concerns the schedule: for a removed wait, stall or barrier only the report counts
//! (`BY_REPORT`). A changed register or immediate makes another program, perhaps one with nothing
//! to report; there a wrong value counts as well. The same holds if lanes no longer reconverge: 14
//! of 100 such mutants are reported, because the simulator executes a shuffle or a vote with the
//! active lanes and does not check that all lanes of the mask have arrived.
//!
//! Both criteria share the rows of tables/latency, which tests/sass/hazards.rs compares with
//! ptxas's code; a row that requires too little is invisible to both.
//!
//! Mutants are made until a hundred of a kind can matter, or no more are found
//! (`SASSAFRAS_MUTANTS=20` stops at twenty). Of each kind a hundred that can matter must be judged
//! (half as many if ptxas is not installed); at least 99 of 100 must be flagged, and each that is
//! not is printed. For the unchanged programs, the list must contain no violation and no run may be
//! flagged; ours must all compile and run without a report.

mod distances;
mod programs;

use crate::random::Random;
use crate::simulate_ptxas_support;
use distances::List;
use programs::{Program, Programs};
use sassafras::cubin::Cubin;
use sassafras::sass::{self, ArgKind, Inst};
use sassafras::tables::Op;
use sassafras::tables::latency::Latency;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Required number of mutants that can matter, of each kind.
fn each() -> usize {
    std::env::var("SASSAFRAS_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}
/// Number of mutants of a kind after which generation stops.
const MOST: usize = 1500;
/// Attempts to make another mutant.
const TRIES: usize = 400_000;
/// Mutants that are made before the threads judge them.
const BATCH: usize = 24;
/// Seeds of the runs that decide whether a mutant can matter, and of those that flag it.
const MATTER: std::ops::Range<u64> = 0..20;
const FLAG: std::ops::Range<u64> = 1000..1010;
/// One in this many mutants that can matter may be missed.
const ONE_IN: usize = 100;

/// Kinds for which only a report counts.
const BY_REPORT: [usize; 3] = [0, 1, 2];

const KINDS: [&str; 6] = [
    "clear a wait bit",
    "shorten a stall below the least of a pair",
    "swap two barriers",
    "change a register by one",
    "flip a bit of an immediate",
    "drop a WARPSYNC or BSYNC",
];

fn list(p: &Program, words: &[(usize, u128)]) -> List {
    let latency = Latency::demanded(p.target).expect("a target with rows");
    List::new(latency, p.insts(words).into_iter())
}

fn set_bits(word: u128, low: u32, width: u32, value: u128) -> u128 {
    let mask = ((1 << width) - 1) << low;
    word & !mask | value << low & mask
}

/// A stall so short that a pair of instructions violates the list, if there is one.
fn shorter(p: &Program, index: usize, stall: u8, random: &mut Random) -> Option<u128> {
    let word = p.word(index);
    let before = list(p, &[]).around(index);
    let with = |stall: u8| set_bits(word, 105, 4, stall.into());
    let broken = |stall: &u8| !list(p, &[(index, with(*stall))]).around(index).is_subset(&before);
    let least = (1..stall).rev().find(broken)?;
    Some(with(1 + random.below(least.into()) as u8))
}

/// Bit positions of the write barrier and the read barrier.
const BARRIERS: [u32; 2] = [110, 113];

/// Swaps a barrier of one instruction with a different one of another instruction, both write
/// barriers or both read barriers.
fn swapped(p: &Program, index: usize, random: &mut Random) -> Option<Vec<(usize, u128)>> {
    let board = |at: usize, low: u32| p.word(at) >> low & 7;
    let own: Vec<u32> = BARRIERS.into_iter().filter(|low| board(index, *low) != 7).collect();
    let low = *own.get(random.below(own.len()))?;
    let bar = board(index, low);
    let places = p.executed.iter().filter(|at| **at != index).flat_map(|at| BARRIERS.map(|low| (*at, low)));
    let others: Vec<(usize, u32)> = places.filter(|(at, low)| ![7, bar].contains(&board(*at, *low))).collect();
    let (second, other) = *others.get(random.below(others.len()))?;
    let first = (index, set_bits(p.word(index), low, 3, board(second, other)));
    Some(vec![first, (second, set_bits(p.word(second), other, 3, bar))])
}

/// The bits of an immediate in a word: those that change when all bits of its value do.
fn immediate(p: &Program, inst: &Inst, place: usize) -> Option<u128> {
    let with = |flipped: u64| {
        let mut changed = *inst;
        changed.args[place].val ^= flipped;
        sass::encode(p.target, &changed).ok()
    };
    let word = with(0)?;
    // In a signed field all bits above the value change, too; in an unsigned one only its own may.
    let widths = (1..=64).rev().map(|width| u64::MAX >> (64 - width));
    widths.filter_map(with).map(|changed| changed ^ word).find(|field| *field != 0)
}

/// The words of a mutant of a kind, made at or near one instruction; `None` if there is nothing to
/// change.
fn mutate(p: &Program, kind: usize, index: usize, random: &mut Random) -> Option<Vec<(usize, u128)>> {
    let word = p.word(index);
    let inst = p.inst(index)?;
    let encoded = |inst: &Inst| Some(vec![(index, sass::encode(p.target, inst).ok()?)]);
    match kind {
        0 => {
            let set: Vec<u32> = (116..122).filter(|bit| word >> bit & 1 != 0).collect();
            let bit = *set.get(random.below(set.len()))?;
            Some(vec![(index, word & !(1 << bit))])
        }
        1 if inst.ctrl.stall > 1 => Some(vec![(index, shorter(p, index, inst.ctrl.stall, random)?)]),
        2 => swapped(p, index, random),
        3 => {
            let fits = |i: &usize| inst.args[*i].kind == ArgKind::Reg && inst.args[*i].val < 250;
            let places: Vec<usize> = (0..inst.args.len()).filter(fits).collect();
            let place = *places.get(random.below(places.len()))?;
            let mut changed = inst;
            changed.args[place].val ^= 1;
            let words = encoded(&changed)?;
            (words[0].1 != word).then_some(words)
        }
        4 => {
            let places: Vec<usize> = (0..inst.args.len()).filter(|i| inst.args[*i].kind == ArgKind::Imm).collect();
            let place = *places.get(random.below(places.len()))?;
            let field = immediate(p, &inst, place)?;
            let bits: Vec<u32> = (0..128).filter(|bit| field >> bit & 1 != 0).collect();
            let changed = word ^ 1 << bits[random.below(bits.len())];
            sass::decode(p.target, changed).ok()?;
            Some(vec![(index, changed)])
        }
        5 if matches!(inst.op, Op::WARPSYNC | Op::BSYNC) => {
            let mut nop = Inst::new(Op::NOP);
            nop.ctrl = inst.ctrl;
            encoded(&nop)
        }
        _ => None,
    }
}

/// Whether a mutant can matter: by the list, by values, or not at all.
fn matters(p: &Program, words: &[(usize, u128)], cubin: &Cubin) -> Option<String> {
    let (before, after) = (list(p, &[]), list(p, words));
    for (at, _) in words {
        let (old, new) = (before.around(*at), after.around(*at));
        if let Some((what, file, register, first, second)) = new.difference(&old).next() {
            let (first, second) = (16 * first, 16 * second);
            return Some(format!("{what} of {file:?}{register} from {first:#x} to {second:#x}"));
        }
    }
    MATTER.into_iter().find_map(|seed| Some(format!("seed {seed}: {}", p.judge(cubin, Some(seed)).differs?)))
}

/// The findings about a mutant.
struct Found {
    /// Which of them reports it first: the plain run, the checker, a jittered run.
    reported: Option<usize>,
    /// Whether a run gives a wrong value.
    shows: bool,
}

fn found(p: &Program, cubin: &Cubin) -> Found {
    let plain = p.judge(cubin, None);
    let mut found = Found { reported: plain.report.map(|_| 0), shows: plain.differs.is_some() };
    if found.reported.is_none() && p.statically(cubin) {
        found.reported = Some(1);
    }
    for seed in FLAG {
        if found.reported.is_some() && found.shows {
            break;
        }
        let run = p.judge(cubin, Some(seed));
        found.reported = found.reported.or(run.report.map(|_| 2));
        found.shows |= run.differs.is_some();
    }
    found
}

/// The programs, prepared once.
fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(Programs::of_cases)
}

/// The outcome of the mutants of a kind.
#[derive(Default)]
struct Count {
    made: usize,
    can_matter: usize,
    by_list: usize,
    /// Of those that can matter: reported by the plain run, only by the checker, only by a jittered
    /// run.
    reported: [usize; 3],
    /// Of those that can matter: with a wrong value, and of these without a report.
    shows: usize,
    only_shows: usize,
    missed: Vec<String>,
    /// Of those that cannot matter: how many the checker reports; it also covers paths that the
    /// launch does not take.
    careful: usize,
}

/// The words of a mutant, and the number of its program.
type Mutant = (usize, Vec<(usize, u128)>);

/// What is judged of a mutant: why it can matter and what is found, or whether the checker reports
/// one that cannot.
fn judged(programs: &[Program], (number, words): &Mutant) -> Result<(String, Found), bool> {
    let p = &programs[*number];
    let cubin = p.with(words);
    match matters(p, words, &cubin) {
        Some(why) => Ok((why, found(p, &cubin))),
        None => Err(p.statically(&cubin)),
    }
}

/// The mutants of a kind, in the order in which the seed makes them, with what is judged of each.
fn all_judged(programs: &[Program], kind: usize) -> impl Iterator<Item = (Mutant, Result<(String, Found), bool>)> {
    let (mut random, mut seen, mut tries) = (Random::new(kind as u64 + 1), BTreeSet::new(), 0);
    let mut mutants = std::iter::from_fn(move || {
        while tries < TRIES {
            tries += 1;
            let number = random.below(programs.len());
            let p = &programs[number];
            let index = p.executed[random.below(p.executed.len())];
            let Some(words) = mutate(p, kind, index, &mut random) else { continue };
            if seen.insert((number, words.clone())) {
                return Some((number, words));
            }
        }
        None
    });
    let batches = std::iter::from_fn(move || {
        let batch: Vec<Mutant> = mutants.by_ref().take(BATCH).collect();
        let verdicts = simulate_ptxas_support::each(&batch, |mutant| judged(programs, mutant));
        (!batch.is_empty()).then(|| batch.into_iter().zip(verdicts))
    });
    batches.flatten()
}

fn count(programs: &[Program], kind: usize) -> Count {
    let mut count = Count::default();
    for ((number, words), verdict) in all_judged(programs, kind).take(MOST) {
        let (p, index) = (&programs[number], words[0].0);
        count.made += 1;
        let (why, found) = match verdict {
            Ok(found) => found,
            Err(reported) => {
                count.careful += usize::from(reported);
                continue;
            }
        };
        count.can_matter += 1;
        count.by_list += usize::from(!why.starts_with("seed"));
        found.reported.into_iter().for_each(|by| count.reported[by] += 1);
        count.shows += usize::from(found.shows);
        count.only_shows += usize::from(found.shows && found.reported.is_none());
        let counts = found.reported.is_some() || found.shows && !BY_REPORT.contains(&kind);
        if !counts {
            let shows = if found.shows { "wrong numbers alone" } else { "nothing" };
            count.missed.push(format!("{} pc {:#x}: {why}: {shows}", p.name, 16 * index));
        }
        if count.can_matter == each() {
            break;
        }
    }
    count
}

#[test]
fn mutants_are_found_out() {
    let Programs { all: programs, left_out, wrong } = programs();
    println!("{} programs", programs.len());
    for (why, names) in left_out {
        println!("left out, {why}: {}", names.len());
        names.iter().for_each(|name| println!("    {name}"));
    }
    assert!(wrong.is_empty(), "{} do not compile or run clean:\n{}", wrong.len(), wrong.join("\n"));
    // Kinds beside each other: a mutant that never ends holds up its batch.
    let kinds: Vec<usize> = (0..KINDS.len()).collect();
    let counts = simulate_ptxas_support::each(&kinds, |kind| (*kind, count(programs, *kind)));
    let mut few = Vec::new();
    let least = if programs.iter().any(|p| p.name.ends_with("ptxas")) { each() } else { each() / 2 };
    for (kind, count) in counts {
        let (name, flagged) = (KINDS[kind], count.can_matter - count.missed.len());
        let [plain, checker, jitter] = count.reported;
        println!(
            "{name}: {} made; {} can matter ({} by the list of distances); {} of them reported: {plain} by the plain run, \
             {checker} more by the checker, {jitter} more by jittered runs; {} with wrong numbers, {} with those alone; \
             {} cannot matter (the checker reports {} of those); {flagged} count as flagged",
            count.made,
            count.can_matter,
            count.by_list,
            count.reported.iter().sum::<usize>(),
            count.shows,
            count.only_shows,
            count.made - count.can_matter,
            count.careful,
        );
        count.missed.iter().for_each(|name| println!("    not flagged: {name}"));
        if count.can_matter < least || count.missed.len() * ONE_IN > count.can_matter {
            few.push(format!("{name}: {flagged} of {}", count.can_matter));
        }
    }
    assert!(few.is_empty(), "too few are flagged: {}", few.join(", "));
}

/// No seed makes a correct program look wrong, and the list of distances contains no violation.
#[test]
fn unchanged_programs_are_flagged_by_nobody() {
    let mut wrong = Vec::new();
    let programs = &programs().all;
    for (number, p) in programs.iter().enumerate() {
        for seed in [number as u64, 1000 + number as u64] {
            let run = p.judge(&p.cubin, Some(seed));
            wrong.extend(run.report.or(run.differs).map(|why| format!("{} seed {seed}: {why}", p.name)));
        }
        let broken = list(p, &[]).all();
        wrong.extend(broken.iter().take(3).map(|broken| format!("{}: {broken:?}", p.name)));
    }
    println!("{} programs, two seeds each", programs.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
