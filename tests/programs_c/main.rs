//! C programs of csmith and random control flow, compiled by clang: the PTX text, our cubins and
//! those of ptxas compute what the CPU does.
//!
//! Each seed gives a program of each kind (`source.rs`), at one of clang's levels. On a target that
//! the seed chooses, the interpreter, our cubins at -O0 and -O3 and those of ptxas must give the
//! values that the same C program prints on this host. Ours must have no report, except of an
//! uninitialised value that ptxas's cubin has too; reports about ptxas's cubins are counted,
//! because the tables may require more than ptxas keeps. The test prints the number of correct runs
//! and of skipped ones, and the missing tools (`skipped`).
//!
//! `SASSAFRAS_C_PROGRAMS=N` tries N seeds at all five levels (by default a few at one level each)
//! from `SASSAFRAS_SEED`; `SASSAFRAS_KEEP=FOLDER` keeps the PTX of failures there,
//! `SASSAFRAS_KIND=flow,csmith` and `SASSAFRAS_SM=sm_90` narrow the run. For a long run use `cargo
//! test --release --test programs_c -- --nocapture`.

mod engines;
mod flow;
mod source;
mod tools;

use engines::Failure;
use sassafras::sim::report::Report;
use sassafras::tables::targets::TARGETS;
use source::{Kind, source};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tools::Tools;

const CLANG: [&str; 5] = ["0", "1", "2", "3", "s"];
const OURS: [u8; 2] = [0, 3];
/// Default number of seeds, and the first one.
const FEW: usize = 3;
const FIRST: u64 = 1000;

/// One program at one of clang's levels.
#[derive(Clone, Copy)]
struct Task {
    kind: Kind,
    seed: u64,
    levels: &'static [&'static str],
}

/// The results of all programs.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Tally {
    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn wanted(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |list| list.split(',').any(|item| item == name))
}

fn tasks() -> Vec<Task> {
    let count = number("SASSAFRAS_C_PROGRAMS");
    let first = number("SASSAFRAS_SEED").unwrap_or(FIRST);
    let seeds = first..first + count.unwrap_or(FEW as u64);
    let levels = |n: usize| if count.is_some() { &CLANG[..] } else { &CLANG[n % 5..n % 5 + 1] };
    let kinds = Kind::ALL.into_iter().enumerate().filter(|(_, kind)| wanted("SASSAFRAS_KIND", kind.name()));
    let kinds: Vec<(usize, Kind)> = kinds.collect();
    let of = |seed: u64| {
        kinds.iter().map(move |(n, kind)| Task { kind: *kind, seed, levels: levels(seed as usize + 2 * n) })
    };
    seeds.flat_map(of).collect()
}

struct Bench {
    tools: Tools,
    targets: Vec<&'static str>,
    keep: Option<PathBuf>,
    tally: Mutex<Tally>,
}

impl Bench {
    fn count(&self, what: impl Into<String>) {
        self.tally.lock().unwrap().count(what);
    }

    /// Runs a program at its levels.
    fn program(&self, task: Task) {
        let Some(source) = source(self.tools.csmith.as_deref(), task.kind, task.seed) else {
            return self.count("skipped: no source");
        };
        let folder = tempfile::tempdir().unwrap();
        let expected = match self.tools.native(task.kind, &source, folder.path()) {
            Ok(expected) => expected,
            Err(why) => return self.count(format!("skipped: here: {}", without_place(&why))),
        };
        for (n, level) in task.levels.iter().enumerate() {
            match self.tools.ptx(task.kind, &source, level, folder.path()) {
                Err(why) => self.count(format!("skipped: for a GPU: {}", without_place(&why))),
                Ok(ptx) => {
                    let target =
                        self.targets[(task.seed as usize * 7 + n * 5 + task.kind as usize) % self.targets.len()];
                    let name = format!("{}_{}_O{level}_{target}", task.kind.name(), task.seed);
                    let wrong = self.compare(task, &ptx, target, &expected, folder.path());
                    self.fail(&name, &ptx, wrong);
                }
            }
        }
    }

    fn fail(&self, name: &str, ptx: &str, wrong: Vec<String>) {
        if let Some(folder) = self.keep.as_ref().filter(|_| !wrong.is_empty()) {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(format!("{name}.ptx")), ptx).unwrap();
        }
        let lines = wrong.into_iter().map(|text| format!("{name}: {text}"));
        self.tally.lock().unwrap().wrong.extend(lines);
    }

    /// The failures of one text on one target.
    fn compare(&self, task: Task, ptx: &str, target: &str, expected: &[u32], folder: &std::path::Path) -> Vec<String> {
        let (threads, mut wrong) = (task.kind.threads(), Vec::new());
        let mut judge = |engine: &str, ran: engines::Numbers| match ran {
            Ok(numbers) if numbers == expected => self.count(format!("{engine}: right")),
            Ok(numbers) => wrong.push(format!("{engine}: {}", difference(&numbers, expected))),
            Err(Failure::Long) => self.count(format!("{engine}: too long")),
            Err(Failure::Wrong(why)) => wrong.push(format!("{engine}: {why}")),
        };
        judge("interpreter", engines::interpreted(ptx, threads));
        for level in OURS {
            let theirs = self.tools.theirs(ptx, target, level, folder).transpose();
            let theirs = theirs.map(|cubin| cubin.map_err(Failure::Wrong).and_then(|c| engines::run(&c, threads)));
            let reported = matches!(&theirs, Some(Ok((_, reports))) if !reports.is_empty());
            // An uninitialised value that both cubins store comes from the program.
            let unwritten =
                theirs.as_ref().is_none_or(|ran| matches!(ran, Ok((_, all)) if all.iter().any(never_written)));
            let ours = engines::ours(ptx, target, level).and_then(|cubin| engines::run(&cubin, threads));
            let clean = |(numbers, reports): (Vec<u32>, Vec<Report>)| {
                if reports.iter().any(never_written) && unwritten {
                    self.count("ours: stores what was never written, as ptxas does where that is there");
                }
                match reports.iter().find(|report| !(never_written(report) && unwritten)) {
                    None => Ok(numbers),
                    Some(report) => Err(Failure::Wrong(report.to_string())),
                }
            };
            judge(&format!("ours -O{level}"), ours.and_then(clean));
            let Some(theirs) = theirs else { continue };
            if let Ok((_, reports)) = &theirs {
                self.count(if reported { "ptxas: with reports" } else { "ptxas: clean" });
                if let Some(report) = reports.first().filter(|_| std::env::var_os("SASSAFRAS_SHOW").is_some()) {
                    println!("{} {} {target} -O{level}: {report}", task.kind.name(), task.seed);
                }
            }
            judge(&format!("ptxas -O{level}"), theirs.map(|(numbers, _)| numbers));
        }
        wrong
    }
}

/// Whether a report is about an uninitialised value.
fn never_written(report: &Report) -> bool {
    report.fault.kind == sassafras::sim::fault::Kind::Uninitialised
}

/// The first value that differs.
fn difference(got: &[u32], expected: &[u32]) -> String {
    let all = got.iter().zip(expected).filter(|(a, b)| a != b).count();
    let at = got.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
    format!(
        "{all} of {} threads are wrong; thread {at} gives {:#x} instead of {:#x}",
        expected.len(),
        got[at],
        expected[at]
    )
}

/// A message without its leading file and line.
fn without_place(text: &str) -> String {
    let from = text.find("error").unwrap_or(0);
    text[from..].chars().take_while(|c| !matches!(c, '@' | '\'')).take(60).collect()
}

#[test]
fn programs_compute_what_the_cpu_does() {
    let Some(tools) = Tools::find() else { return };
    let targets = TARGETS.iter().filter(|t| t.generation.is_some()).map(|t| t.name);
    let targets: Vec<&str> = targets.filter(|name| wanted("SASSAFRAS_SM", name)).collect();
    let keep = std::env::var_os("SASSAFRAS_KEEP").map(PathBuf::from);
    let bench = Bench { tools, targets, keep, tally: Mutex::default() };
    let (tasks, next) = (tasks(), AtomicUsize::new(0));
    let work = || {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            bench.program(*task);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let mut tally = bench.tally.into_inner().unwrap();
    println!("{} programs", tasks.len());
    tally.counts.iter().for_each(|(what, count)| println!("{what}: {count}"));
    tally.wrong.sort();
    assert!(tally.wrong.is_empty(), "{} went wrong:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
}
