//! Checks that every instruction waits for what it reads and overwrites: in our cubins, in ptxas's,
//! and in mutants of ours.
//!
//! The input is `../shared/corpus` if present, else the small files of `tests/corpus`; ptxas's
//! cubins of the same files, compiled once and kept in the build folder. Every other file is
//! compiled for one of its targets in rotation; `SASSAFRAS_CORPUS=all` takes all,
//! `SASSAFRAS_CASE=TEXT` the files whose name contains it, `SASSAFRAS_SM=sm_107` those that this
//! target accepts. Our cubins must be clean at -O0 and -O3; reports about ptxas's must be explained
//! line by line in `tests/oracle/hazards.txt`; no distance of ours may be below those of ptxas
//! (`hazards/distances.rs`); mutants of our control words must be caught; operands must be
//! marked for reuse where ptxas marks them.

mod distances;
mod gather;
mod list;

use crate::{manifest, ptxas as cubins, vendor};
use sassafras::compile::{Options, compile};
use sassafras::cubin::{self, Cubin};
use sassafras::sass::hazards::{Analysis, Dependence, Kind, check_kept, target_of};
use sassafras::sass::{Inst, Slot, decode};
use sassafras::tables::latency::{Latency, Needed};
use sassafras::tables::{Feature, Mod, Op, Target, value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file and a target.
#[derive(Clone)]
struct Job {
    path: PathBuf,
    name: String,
    target: String,
}

fn jobs() -> Vec<Job> {
    jobs_of(2)
}

/// One in `share` of the files, and where that is not all for one of their targets each.
fn jobs_of(share: usize) -> Vec<Job> {
    let corpus = root().join("../shared/corpus");
    let Ok(manifest) = std::fs::read_to_string(corpus.join("manifest.json")) else {
        println!("no corpus beside the project: the small files alone");
        let small = root().join("tests/corpus");
        let mut names: Vec<PathBuf> = std::fs::read_dir(small).unwrap().map(|e| e.unwrap().path()).collect();
        names.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
        names.sort();
        let job = |path: PathBuf| Job { name: path.display().to_string(), path, target: "sm_90".into() };
        return names.into_iter().map(job).collect();
    };
    let all = std::env::var("SASSAFRAS_CORPUS").is_ok_and(|v| v == "all");
    let only = std::env::var("SASSAFRAS_CASE").unwrap_or_default();
    let manifest: BTreeMap<String, serde_json::Value> = serde_json::from_str(&manifest).expect("a manifest");
    let mut jobs = Vec::new();
    let turn = |i: usize| all || !only.is_empty() || i.is_multiple_of(share);
    let asked = asked();
    for (i, (name, about)) in manifest.into_iter().enumerate().filter(|(i, (name, _))| turn(*i) && name.contains(&only))
    {
        // A target that the manifest does not have takes every file that it accepts.
        jobs.extend(asked.iter().map(|target| Job {
            path: corpus.join(&name),
            name: name.clone(),
            target: target.clone(),
        }));
        if !asked.is_empty() {
            continue;
        }
        let targets: Vec<&String> = manifest::figures(&about).keys().collect();
        for (t, target) in targets.iter().enumerate() {
            if all || t == i % targets.len() {
                jobs.push(Job { path: corpus.join(&name), name: name.clone(), target: target.to_string() });
            }
        }
    }
    jobs
}

/// The targets that `SASSAFRAS_SM` names.
fn asked() -> Vec<String> {
    std::env::var("SASSAFRAS_SM").map_or(Vec::new(), |list| list.split(',').map(str::to_string).collect())
}

/// Whether all files run for all targets, so that an unused line of a list is stale.
fn whole() -> bool {
    let part = ["SASSAFRAS_CASE", "SASSAFRAS_SM"].into_iter().any(|name| std::env::var_os(name).is_some());
    std::env::var("SASSAFRAS_CORPUS").is_ok_and(|v| v == "all") && !part
}

/// For the targets that `SASSAFRAS_SM` names: the files at other levels, and the cases, each at
/// every level. One target alone has few samples of the rarer pairs.
fn more_evidence() -> Vec<(Job, u8)> {
    if asked().is_empty() {
        return Vec::new();
    }
    let mut cases: Vec<PathBuf> = ["tests/cases/exec", "tests/cases/distances"]
        .iter()
        .flat_map(|folder| ptx_files(&root().join(folder)))
        .collect();
    cases.sort();
    let jobs = cases.into_iter().flat_map(|path| {
        let name = path.strip_prefix(root().join("tests")).unwrap().display().to_string();
        asked().into_iter().map(move |target| Job { path: path.clone(), name: name.clone(), target })
    });
    let corpus = jobs_of(1).into_iter().flat_map(|job| [1, 2].map(|level| (job.clone(), level)));
    corpus.chain(jobs.flat_map(|job| [1, 2, 3].map(|level| (job.clone(), level)))).collect()
}

fn ptx_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "ptx")).collect()
}

/// Calls `f` on every job, on two threads. Returns the results in the order of the jobs.
fn each<J: Sync, T: Send>(jobs: &[J], f: impl Fn(&J) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((i, job)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, jobs.get(i)?)))
                {
                    let result = f(job);
                    done.lock().unwrap().push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

/// Our cubin; `None` if the compiler rejects the file. Several tests ask for that of the usual
/// level, which the first one compiles.
fn ours(job: &Job, level: u8) -> Option<Arc<Cubin>> {
    type All = Mutex<HashMap<(PathBuf, String), Arc<OnceLock<Option<Arc<Cubin>>>>>>;
    static ALL: OnceLock<All> = OnceLock::new();
    if level != 3 {
        return compiled(job, level).map(Arc::new);
    }
    let key = (job.path.clone(), job.target.clone());
    let cell = ALL.get_or_init(Mutex::default).lock().unwrap().entry(key).or_default().clone();
    cell.get_or_init(|| compiled(job, level).map(Arc::new)).clone()
}

fn compiled(job: &Job, level: u8) -> Option<Cubin> {
    let source = std::fs::read_to_string(&job.path).ok()?;
    let options = Options { opt_level: level, ..Options::new(&job.target) };
    let output = compile(&source, &options).ok()?;
    Some(cubin::read(&output.cubin).expect("our cubin is read"))
}

/// The cubin of ptxas, from the build folder if it was compiled before: of 13.0.88, or of 13.5.37
/// for a target that only that one has.
fn ptxas(job: &Job) -> Option<Cubin> {
    ptxas_at(job, 3)
}

/// The same at a level of optimisation.
fn ptxas_at(job: &Job, level: u8) -> Option<Cubin> {
    let sm = job.target.trim_start_matches("sm_");
    let text = std::fs::read(&job.path).expect("a PTX file");
    let cubin = cubins::cubin(&vendor::tool_of("ptxas", sm)?, &text, sm, &format!("-O{level}"));
    cubin::read(&cubin.ok()?).ok()
}

/// Number of instructions, and the sum of their stalls up to the final self-branch.
fn cost(target: &Target, cubin: &Cubin) -> (u64, u64) {
    let mut sum = (0, 0);
    for function in &cubin.functions {
        let words: Vec<u128> =
            function.code.chunks_exact(16).map(|w| u128::from_le_bytes(w.try_into().unwrap())).collect();
        let nop = |w: &u128| w & 0xfff == 0x918 && w >> 105 & 15 == 0;
        let end = words.len() - words.iter().rev().take_while(|w| nop(w)).count();
        let list: Vec<Inst> = words[..end].iter().filter_map(|w| decode(target, *w).ok()).collect();
        sum.0 += list.len() as u64;
        sum.1 += list.iter().map(|i| u64::from(i.ctrl.stall)).sum::<u64>();
    }
    sum
}

#[test]
fn our_cubins_are_clean() {
    let jobs = jobs();
    let results = each(&jobs, |job| {
        let mut out = (Vec::new(), [(0, 0); 3]);
        for (i, level) in [0, 3].into_iter().enumerate() {
            let Some(cubin) = ours(job, level) else { continue };
            let reports = check_kept(&cubin).expect("a target with a decoder");
            out.0.extend(reports.iter().take(3).map(|r| format!("{} {} -O{level}: {r}", job.name, job.target)));
            let target = target_of(&cubin).unwrap();
            out.1[i] = cost(target, &cubin);
            if level == 3
                && let Some(theirs) = ptxas(job)
            {
                out.1[2] = cost(target, &theirs);
            }
        }
        out
    });
    let wrong: Vec<&String> = results.iter().flat_map(|r| &r.0).collect();
    let both: Vec<_> = results.iter().filter(|r| r.1[1].0 > 0 && r.1[2].0 > 0).collect();
    let sum = |i: usize| both.iter().fold((0, 0), |s, r| (s.0 + r.1[i].0, s.1 + r.1[i].1));
    println!(
        "{} files; instructions and cycles of stalls: -O0 {:?}, -O3 {:?}, ptxas {:?}",
        both.len(),
        sum(0),
        sum(1),
        sum(2)
    );
    assert!(
        wrong.is_empty(),
        "{} reports:\n{}",
        wrong.len(),
        wrong.iter().take(60).map(|w| format!("{w}\n")).collect::<String>()
    );
}

/// An opcode with the matrix shape that its latency depends on.
fn named(inst: &Inst) -> String {
    let shape = Mod::Mshape.text(inst.modifier(Mod::Mshape));
    if inst.op.name().contains("MMA") { format!("{}.{shape}", inst.op.name()) } else { inst.op.name().to_string() }
}

fn slot(inst: &Inst, slot: Slot) -> String {
    match slot {
        Slot::Guard => "guard".into(),
        Slot::Implied => "implied".into(),
        Slot::Role(i) => inst.op.info().roles[usize::from(i)].role.name().to_string(),
    }
}

fn verb(kind: Kind) -> &'static str {
    match kind {
        Kind::ReadAfterWrite => "raw",
        Kind::WriteAfterWrite => "waw",
        Kind::WriteAfterRead => "war",
    }
}

/// The keys of the explanations of ptxas's reports.
fn key(latency: &Latency, analysis: &Analysis, d: &Dependence) -> Option<String> {
    let (first, second) = (analysis.inst(d.first)?, analysis.inst(d.second)?);
    let class = |inst: &Inst| latency.class_of(inst.op, &inst.mods).name();
    let how = if d.announced { if d.boards == 0 { "none" } else { "other" } } else { "cycles" };
    Some(format!("{} {} {:?} {} {} {how}", latency.name, verb(d.kind), d.file, class(first), class(second)))
}

/// Lines `KEY: why` of the explained reports; `*` in a key matches any word.
fn explained() -> Vec<(Vec<String>, String)> {
    let text = std::fs::read_to_string(root().join("tests/oracle/hazards.txt")).unwrap_or_default();
    let lines = text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(": "));
    lines.map(|(key, why)| (key.split(' ').map(str::to_string).collect(), why.to_string())).collect()
}

fn fits(pattern: &[String], key: &str) -> bool {
    let words: Vec<&str> = key.split(' ').collect();
    words.len() == pattern.len() && pattern.iter().zip(words).all(|(p, w)| p.split('|').any(|p| p == "*" || p == w))
}

/// Opcodes with their own row in the table of latency classes. The others have the conservative
/// class, which says nothing about them.
fn classified() -> BTreeSet<String> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tables/latency/members.ron");
    let text = std::fs::read_to_string(table).unwrap();
    let lists = text.lines().filter_map(|line| line.split_once("ops: \"")?.1.split_once('"').map(|(ops, _)| ops));
    lists.flat_map(str::split_whitespace).map(String::from).collect()
}

#[test]
fn what_is_reported_of_ptxas_is_explained() {
    if vendor::tool("ptxas").is_none() {
        return println!("skipped: no NVIDIA tools");
    }
    let jobs = jobs();
    let classified = classified();
    let (judged, left) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = each(&jobs, |job| {
        let mut keys: BTreeMap<String, (usize, String)> = BTreeMap::new();
        let Some(cubin) = ptxas(job) else { return keys };
        let target = target_of(&cubin).unwrap();
        let latency = Latency::demanded(target).unwrap();
        for function in &cubin.functions {
            let analysis = Analysis::new(target, function).unwrap();
            let known = |inst: &Inst| classified.contains(inst.op.name());
            if !(0..analysis.len()).all(|at| analysis.inst(at).is_some_and(known)) {
                left.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            judged.fetch_add(1, Ordering::Relaxed);
            analysis.dependences(|d| {
                if d.is_hazard()
                    && let Some(key) = key(latency, &analysis, &d)
                {
                    let (first, second) = (analysis.inst(d.first).unwrap(), analysis.inst(d.second).unwrap());
                    let needed = match d.needed {
                        Needed::Cycles(n) => format!("{} of {n}", d.age),
                        Needed::Scoreboard => "scoreboard".into(),
                    };
                    let example = format!(
                        "{} {} {}+{:#x} {} .. +{:#x} {}.{} {:?}{} {needed}",
                        job.name,
                        job.target,
                        function.name,
                        d.first * 16,
                        named(first),
                        d.second * 16,
                        named(second),
                        slot(second, d.second_slot),
                        d.file,
                        d.register
                    );
                    keys.entry(key).or_insert((0, example)).0 += 1;
                }
            });
            for report in analysis.reports().into_iter().filter(|r| r.register.is_none()) {
                let words: Vec<&str> = report.instruction.split([' ', '.']).filter(|w| !w.starts_with('@')).collect();
                let flight = report.message.contains("in flight");
                let what = if flight { "in_flight".into() } else { report.message.replace(' ', "_") };
                let key = format!("{} field {} {what}", latency.name, words[0]);
                keys.entry(key).or_insert((0, report.to_string())).0 += 1;
            }
        }
        keys
    });
    let clean = found.iter().filter(|k| k.is_empty()).count();
    let mut all: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (key, (n, example)) in found.into_iter().flatten() {
        all.entry(key).or_insert((0, example)).0 += n;
    }
    let lines = explained();
    println!("{clean} of {} cubins of ptxas without a report; {} kinds of reports", jobs.len(), all.len());
    let (judged, left) = (judged.into_inner(), left.into_inner());
    println!("{judged} functions judged; {left} left out, which have opcodes without a latency class");
    assert!(judged > left, "{judged} functions judged, {left} left out");
    let open: Vec<String> = all
        .iter()
        .filter(|(key, _)| !lines.iter().any(|l| fits(&l.0, key)))
        .map(|(key, (n, example))| format!("{key}: {n} times, {example}"))
        .collect();
    assert!(open.is_empty(), "{} kinds without an explanation:\n{}", open.len(), open.join("\n"));
    let stale: Vec<_> = lines.iter().filter(|l| whole() && !all.keys().any(|key| fits(&l.0, key))).collect();
    assert!(stale.is_empty(), "explained, and not found: {stale:?}");
}

/// Reuse marks of ptxas's cubins, compared with those that we would set under the same control
/// fields. Where ptxas marks more, the reader is beyond our search window; where we would mark
/// more, ptxas has reasons of its own.
/// Texts of which ptxas's code keeps a distance that a row of the tables once called too short.
const SHORT: [(&str, &str); 4] = [
    ("exec/flags_of_loops", "sm_75"),
    ("exec/flags_of_loops", "sm_80"),
    ("exec/flags_of_loops", "sm_87"),
    ("distances/carry_of_addresses", "sm_75"),
];

#[test]
fn short_distances_of_ptxas_are_enough() {
    for (name, target) in SHORT {
        let path = root().join("tests/cases").join(format!("{name}.ptx"));
        let job = Job { path, name: format!("cases/{name}"), target: target.into() };
        let Some(cubin) = ptxas(&job) else { return println!("skipped: no NVIDIA tools") };
        let reports = sassafras::sass::hazards::check(&cubin).unwrap();
        let short: Vec<_> = reports.iter().filter(|report| report.message.contains("needed")).collect();
        assert!(short.is_empty(), "{name} {target}: {short:?}");
    }
}

#[test]
fn reuse_is_marked_where_ptxas_marks_it() {
    if vendor::tool("ptxas").is_none() {
        return println!("skipped: no NVIDIA tools");
    }
    let found = each(&jobs(), |job| {
        let mut counts: BTreeMap<&'static str, [u64; 3]> = BTreeMap::new();
        let Some(cubin) = ptxas(job) else { return counts };
        let target = target_of(&cubin).unwrap();
        let count = counts.entry(Latency::of(target).unwrap().name).or_default();
        for function in &cubin.functions {
            for (_, theirs, wanted) in Analysis::new(target, function).unwrap().reuse() {
                let bits = [theirs & wanted, theirs & !wanted, wanted & !theirs];
                count.iter_mut().zip(bits).for_each(|(n, bits)| *n += u64::from(bits.count_ones()));
            }
        }
        counts
    });
    let mut counts: BTreeMap<&'static str, [u64; 3]> = BTreeMap::new();
    for (model, [both, theirs, wanted]) in found.into_iter().flatten() {
        let count = counts.entry(model).or_default();
        *count = [count[0] + both, count[1] + theirs, count[2] + wanted];
    }
    for (model, [both, theirs, wanted]) in &counts {
        println!("{model}: {both} operands marked by both, {theirs} by ptxas alone, {wanted} by ours alone");
    }
    let [both, theirs, wanted] = counts.values().fold([0; 3], |s, c| [s[0] + c[0], s[1] + c[1], s[2] + c[2]]);
    assert!(both > 4 * theirs && both > 10 * wanted, "both {both}, ptxas alone {theirs}, ours alone {wanted}");
}

/// A mutant of a control word: the field and its change.
fn mutants(word: u128) -> Vec<(&'static str, u128)> {
    let field = |at: u32, len: u32| word >> at & ((1 << len) - 1);
    let with = |at: u32, len: u32, value: u128| word & !(((1 << len) - 1) << at) | value << at;
    let mut out = Vec::new();
    for board in (0..6).filter(|b| field(116, 6) >> b & 1 != 0) {
        out.push(("a wait bit cleared", word & !(1 << (116 + board))));
    }
    if field(110, 3) != 7 {
        out.push(("no write barrier", with(110, 3, 7)));
        out.push(("another write barrier", with(110, 3, (field(110, 3) + 1) % 6)));
    }
    if field(113, 3) != 7 {
        out.push(("no read barrier", with(113, 3, 7)));
    }
    if field(105, 4) > 1 {
        out.push(("a stall one shorter", with(105, 4, field(105, 4) - 1)));
    }
    out
}

/// Least number of 100 mutants of a kind that are caught, as measured on the usual files, on all
/// files, and on the usual files of sm_107 or of sm_100 alone. Those that [`waits_anyway`] knows to
/// be correct programs do not count; the comments say why the others are.
const CAUGHT: [(&str, [u32; 3]); 5] = [
    // A wait for a scoreboard that an earlier instruction on all paths has waited for, for a result
    // that is not read afterwards, or for a texture before another one that has been waited for.
    ("a wait bit cleared", [96, 95, 94]),
    // A stall that no dependence asks for: that of an instruction whose pipe is busy, of the last
    // one before a wait, of a pair that the schedule keeps further apart than is demanded, of what
    // gives a callee its values, which reads them after the stall of the call. Of 933 of the usual
    // files 41 are not caught: 7 of them read a predicate that is written again two cycles later.
    // 227 of 5,377 of sm_107: MOV, BAR and WARPSYNC most often.
    ("a stall one shorter", [95, 96, 95]),
    // A scoreboard of an in-order class (S2R, LDC, LDS) before a later result of another opcode of
    // the class that is waited for: 686 of the usual files, of which 2 are not caught; 2,146 and
    // 2,245 of a target alone.
    ("no write barrier", [98, 97, 97]),
    // The same (mostly DFMA, whose results come in order where they are scoreboarded), and waits
    // behind a branch: 525 of the usual files, of which 19 are not caught.
    ("another write barrier", [95, 95, 95]),
    // What is read late is not written again behind it. Those whose queue is known to be past them
    // do not count. 1,045 of 1,087 of sm_107 are caught.
    ("no read barrier", [94, 91, 95]),
];

#[test]
fn mutants_of_control_words_are_caught() {
    // Of a target alone, all files: one in eight has too few mutants.
    let share = if asked().is_empty() { 8 } else { 1 };
    let jobs: Vec<Job> = jobs().into_iter().enumerate().filter(|(i, _)| i % share == 0).map(|(_, job)| job).collect();
    let found = each(&jobs, |job| {
        let (mut counts, mut missed): (BTreeMap<&'static str, (u32, u32)>, Vec<String>) = Default::default();
        let Some(cubin) = ours(job, 3) else { return (counts, missed) };
        let target = target_of(&cubin).unwrap();
        for function in cubin.functions.iter().filter(|f| f.code.len() < 16 * 400) {
            let words: Vec<u128> =
                function.code.chunks_exact(16).map(|w| u128::from_le_bytes(w.try_into().unwrap())).collect();
            for (at, word) in words.iter().enumerate() {
                // Scoreboards of late reads are few: all of them.
                let taken = |mutant: &(&str, u128)| at % 5 == 0 || (word ^ mutant.1) >> 113 & 7 != 0;
                for (what, mutant) in mutants(*word)
                    .into_iter()
                    .filter(|mutant| taken(mutant) && !waits_anyway(target, &words, at, mutant.1))
                {
                    let mut changed = function.clone();
                    changed.code[at * 16..at * 16 + 16].copy_from_slice(&mutant.to_le_bytes());
                    let caught = !Analysis::new(target, &changed).unwrap().reports().is_empty();
                    if !caught && is_before_a_call(target, &words, at, mutant) {
                        continue;
                    }
                    let count = counts.entry(what).or_default();
                    *count = (count.0 + u32::from(caught), count.1 + 1);
                    if !caught {
                        missed.push(format!("{what}: {} {}", job.name, survivor(target, function, &words, at, mutant)));
                    }
                }
            }
        }
        (counts, missed)
    });
    if std::env::var_os("SASSAFRAS_SHOW").is_some() {
        found.iter().flat_map(|(_, missed)| missed).for_each(|line| println!("{line}"));
    }
    let mut counts: BTreeMap<&'static str, (u32, u32)> = BTreeMap::new();
    for (what, (caught, all)) in found.into_iter().flat_map(|(counts, _)| counts) {
        let count = counts.entry(what).or_default();
        *count = (count.0 + caught, count.1 + all);
    }
    for (what, (caught, all)) in &counts {
        println!("{what}: {caught} of {all} mutants caught");
    }
    let narrowed = std::env::var_os("SASSAFRAS_CASE").is_some() || jobs.len() < 10;
    for (what, least) in CAUGHT.iter().filter(|_| !narrowed) {
        let (caught, all) = counts.get(what).copied().unwrap_or_default();
        assert!(all >= 100, "{what}: {all} mutants");
        let least = least[if asked().is_empty() { usize::from(whole()) } else { 2 }];
        assert!(100 * caught >= least * all, "{what}: {caught} of {all} caught, at least {least} % are: {counts:?}");
    }
    assert_eq!(counts.len(), CAUGHT.len(), "a bound for each kind of mutant: {counts:?}");
}

/// Whether a mutant with another scoreboard, or none, is a correct program: what waits for the old
/// one has by then waited for the new one, for the instruction's result, for a later one of the
/// same opcode, of a class whose results come in the order of issue, or for a later one of the same
/// queue, whose reads happen in that order.
fn waits_anyway(target: &Target, words: &[u128], at: usize, mutant: u128) -> bool {
    let Some(field) = [110, 113].into_iter().find(|at_bit| (words[at] ^ mutant) >> at_bit & 7 != 0) else {
        return is_implied(target, words, at, mutant);
    };
    let board = |word: u128| word >> field & 7;
    let waits = |word: u128, board: u128| board < 6 && word >> 116 >> board & 1 != 0;
    let old = board(words[at]);
    let Some(reader) = (at + 1..words.len()).find(|i| waits(words[*i], old)) else { return false };
    let waited = |from: usize, board: u128| words[from + 1..=reader].iter().any(|word| waits(*word, board));
    let class = |word: u128| {
        let (latency, inst) = Latency::demanded(target).zip(decode(target, word).ok())?;
        Some(latency.class_of(inst.op, &inst.mods).info())
    };
    if [board(mutant), mutant >> 110 & 7].iter().any(|board| waited(at, *board)) {
        return true;
    }
    let Some(own) = class(words[at]) else { return false };
    let mut later = at + 1..reader;
    if field == 110 {
        return own.in_order && later.any(|i| words[i] & 0xfff == words[at] & 0xfff && waited(i, board(words[i])));
    }
    // Behind its result, or behind its own late reads, a later one of the queue has read, too.
    let over = |i: usize| [110, 113].iter().any(|field| waited(i, words[i] >> field & 7));
    own.queue != 0 && later.any(|i| over(i) && class(words[i]).is_some_and(|class| class.queue == own.queue))
}

/// Whether a mutant has another stall before a call of a function whose code is elsewhere. One that
/// is not reported is a correct program: the checker asks that any reader may read every result
/// after the stall of such a call.
fn is_before_a_call(target: &Target, words: &[u128], at: usize, mutant: u128) -> bool {
    let next = words.get(at + 1).and_then(|word| decode(target, *word).ok());
    let calls = |inst: &Inst| inst.op == Op::CALL && inst.modifier(Mod::Mode) == value::mode::ABS;
    (words[at] ^ mutant) >> 105 & 15 != 0 && next.as_ref().is_some_and(calls)
}

/// Whether a mutant that lacks one wait is a correct program: a later instruction of the opcode
/// that set the scoreboard is waited for, there or before, and its class is as above.
fn is_implied(target: &Target, words: &[u128], at: usize, mutant: u128) -> bool {
    let lost = (words[at] & !mutant) >> 116 & 0x3f;
    if lost.count_ones() != 1 {
        return false;
    }
    let word = |i: usize| if i == at { mutant } else { words[i] };
    let waits = |i: usize, board: u128| board < 6 && word(i) >> 116 >> board & 1 != 0;
    let board = u128::from(lost.trailing_zeros());
    let from = (0..at).rev().find(|i| waits(*i, board)).unwrap_or(0);
    let setters = (from..at).flat_map(|i| [(i, 110), (i, 113)]).filter(|(i, field)| words[*i] >> field & 7 == board);
    let setters: Vec<(usize, u32)> = setters.collect();
    let latency = Latency::demanded(target);
    !setters.is_empty()
        && setters.into_iter().all(|(i, field)| {
            let in_order = latency.zip(decode(target, words[i]).ok()).is_some_and(|(latency, inst)| {
                let class = latency.class_of(inst.op, &inst.mods).info();
                if field == 110 { class.in_order } else { class.queue != 0 }
            });
            let later = (i + 1..at).filter(|j| words[*j] & 0xfff == words[i] & 0xfff);
            in_order && later.into_iter().any(|j| (j + 1..=at).any(|k| waits(k, words[j] >> field & 7)))
        })
}

/// Where a mutant is that nothing reports, and what set the scoreboards whose waits it lacks.
fn survivor(target: &Target, function: &cubin::Function, words: &[u128], at: usize, mutant: u128) -> String {
    let name = |at: usize| decode(target, words[at]).map_or(String::new(), |inst| named(&inst));
    let lost = (words[at] & !mutant) >> 116 & 0x3f;
    let sets = |at: &usize| [110, 113].iter().any(|field| lost >> (words[*at] >> field & 7) & 1 != 0);
    let setter = (0..at).rev().find(sets).map_or("nothing above".into(), |at| format!("+{:#x} {}", at * 16, name(at)));
    format!("{}+{:#x} {} of {setter}", function.name, at * 16, name(at))
}

/// Reads after an acquire, in every scope, space and form: PTX of one pattern.
const ACQUIRES: [(&str, &str); 7] = [
    ("ld.acquire.cta.global.u32 %r1, [%rd1];", ""),
    ("ld.acquire.gpu.global.u32 %r1, [%rd1];", ""),
    ("atom.acquire.cta.global.add.u32 %r1, [%rd1], 3;", ""),
    ("ld.acquire.cta.shared.u32 %r1, [s];", ""),
    ("atom.acq_rel.gpu.shared.exch.b32 %r1, [s], 3;", ""),
    ("ld.relaxed.cta.global.u32 %r1, [%rd1];", "fence.acq_rel.cta;"),
    ("ld.relaxed.gpu.global.u32 %r1, [%rd1];", "fence.acq_rel.gpu;"),
];

/// What is read after an acquire must not be older than the acquired value: between the two reads
/// an instruction waits for the first, or a fence does it by itself.
#[test]
fn acquired_values_have_arrived_before_the_next_read() {
    for ((first, fence), target) in ACQUIRES.iter().flat_map(|a| ["sm_75", "sm_80", "sm_90", "sm_120"].map(|t| (*a, t)))
    {
        let text = format!(
            ".version 8.7\n.target {target}\n.address_size 64\n.shared .u32 s;\n\
             .visible .entry k(.param .u64 p, .param .u64 q) {{\n.reg .b64 %rd<3>; .reg .b32 %r<4>;\n\
             ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n{first}\n{fence}\nld.global.u32 %r2, [%rd2+64];\n\
             add.u32 %r3, %r1, %r2;\nst.global.u32 [%rd2], %r3;\nret;\n}}\n"
        );
        for level in [0, 3] {
            let options = Options { opt_level: level, ..Options::new(target) };
            let compiled = compile(&text, &options).unwrap_or_else(|e| panic!("{first} {target}: {e:?}"));
            assert!(waits(&compiled.cubin), "{first} {fence} {target} -O{level}: nothing waits before the second read");
        }
    }
}

/// Whether, after the first strong or shared access, an instruction before the next read waits for
/// its scoreboard, or a MEMBAR stands between them.
fn waits(bytes: &[u8]) -> bool {
    let cubin = cubin::read(bytes).expect("our cubin");
    let target = target_of(&cubin).expect("a target");
    let insts: Vec<Inst> = cubin.functions[0]
        .code
        .chunks_exact(16)
        .map(|w| decode(target, u128::from_le_bytes(w.try_into().unwrap())).unwrap())
        .collect();
    let first =
        insts.iter().position(|i| matches!(i.op, Op::LDG | Op::LDS | Op::ATOMG | Op::ATOMS)).expect("an acquire");
    let second = insts.iter().rposition(|i| i.op == Op::LDG).expect("the second read");
    let board = 1 << insts[first].ctrl.write_bar;
    let fence = |i: &Inst| i.op == Op::MEMBAR && !target.has(Feature::CgaErrorBarrier);
    insts[first + 1..=second].iter().any(|i| i.ctrl.wait & board != 0 || fence(i))
}
