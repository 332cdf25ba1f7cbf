//! C programs of csmith and random control flow, compiled by clang: the PTX text, our cubins and
//! those of ptxas compute what the CPU does.
//!
//! Each seed gives a program of each kind (`source.rs`), at one of clang's levels. On a target that
//! the seed chooses, the interpreter, our cubins at -O0 and -O3 and those of ptxas must give the
//! values that the same C program prints on this host. Ours must have no report of a kind that the
//! interpreter does not have; such reports about ptxas's cubins are counted, because the tables may
//! require more than ptxas keeps. The test prints the number of correct runs and of skipped ones,
//! and the missing tools (`skipped`); with `SASSAFRAS_SHOW=1` each report and failure at once.
//!
//! `SASSAFRAS_C_PROGRAMS=N` tries N seeds at all five levels (by default a few at one level each)
//! from `SASSAFRAS_SEED`; `SASSAFRAS_KEEP=FOLDER` keeps the PTX of failures and reports there,
//! `SASSAFRAS_KIND=flow,csmith` and `SASSAFRAS_SM=sm_90` narrow the run, `SASSAFRAS_THREADS=1` runs
//! on one core; `SASSAFRAS_LAUNCHES=FOLDER` writes the programs there as launches for tests/gpu and
//! runs nothing. For a long run use `cargo test --release --test fuzz programs_c -- --nocapture`.

mod engines;
mod flow;
mod source;
mod tools;

use engines::Failure;
use sassafras::sim::fault::Kind as Fault;
use sassafras::sim::report::Report;
use sassafras::tables::targets::TARGETS;
use source::{Kind, source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tools::Tools;

const CLANG: [&str; 5] = ["0", "1", "2", "3", "s"];
const OURS: [u8; 2] = [0, 3];
/// Default number of seeds, and the first one.
const FEW: usize = 3;
const FIRST: u64 = 1000;
/// Reports of a run that are shown.
const MOST_SHOWN: usize = 4;

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
                    if let Some(folder) = std::env::var_os("SASSAFRAS_LAUNCHES") {
                        launch(Path::new(&folder), &name, &ptx, task.kind.threads(), &expected);
                        self.count("written");
                        continue;
                    }
                    let wrong = self.compare(task, &name, &ptx, target, &expected, folder.path());
                    self.fail(&name, &ptx, wrong);
                }
            }
        }
    }

    fn keep(&self, name: &str, ptx: &str) {
        if let Some(folder) = &self.keep {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(format!("{name}.ptx")), ptx).unwrap();
        }
    }

    fn fail(&self, name: &str, ptx: &str, wrong: Vec<String>) {
        if !wrong.is_empty() {
            self.keep(name, ptx);
        }
        let lines: Vec<String> = wrong.into_iter().map(|text| format!("{name}: {text}")).collect();
        if std::env::var_os("SASSAFRAS_SHOW").is_some() {
            lines.iter().for_each(|line| println!("wrong: {line}"));
        }
        self.tally.lock().unwrap().wrong.extend(lines);
    }

    /// The failures of one text on one target.
    fn compare(&self, task: Task, name: &str, ptx: &str, target: &str, expected: &[u32], folder: &Path) -> Vec<String> {
        let (threads, mut wrong) = (task.kind.threads(), Vec::new());
        let mut judge = |engine: &str, ran: engines::Numbers| match ran {
            Ok(numbers) if numbers == expected => self.count(format!("{engine}: right")),
            Ok(numbers) => wrong.push(format!("{engine}: {}", difference(&numbers, expected))),
            Err(Failure::Long) => self.count(format!("{engine}: too long")),
            Err(Failure::Wrong(why)) => wrong.push(format!("{engine}: {why}")),
        };
        let interpreted = engines::interpreted(ptx, threads);
        // Kinds of reports that come from the text itself.
        let own: BTreeSet<Fault> = match &interpreted {
            Ok((_, reports)) => reports.iter().map(|report| report.fault.kind).collect(),
            Err(_) => BTreeSet::new(),
        };
        own.iter().for_each(|kind| self.count(format!("interpreter: {}", kind.name())));
        judge("interpreter", interpreted.map(|(numbers, _)| numbers));
        for level in OURS {
            let ours = engines::ours(ptx, target, level).and_then(|cubin| engines::run(&cubin, threads));
            let clean = |(numbers, reports): (Vec<u32>, Vec<Report>)| {
                let foreign = reports.iter().find(|report| !own.contains(&report.fault.kind));
                foreign.map_or(Ok(numbers), |report| Err(Failure::Wrong(report.to_string())))
            };
            judge(&format!("ours -O{level}"), ours.and_then(clean));
            let Some(theirs) = self.tools.theirs(ptx, target, level, folder).transpose() else { continue };
            let slow = |why: String| if why.ends_with(tools::LONG) { Failure::Long } else { Failure::Wrong(why) };
            let theirs = theirs.map_err(slow).and_then(|cubin| engines::run(&cubin, threads));
            if let Ok((_, reports)) = &theirs {
                let foreign: Vec<_> = reports.iter().filter(|report| !own.contains(&report.fault.kind)).collect();
                self.count(if foreign.is_empty() { "ptxas: clean" } else { "ptxas: with reports" });
                if !foreign.is_empty() {
                    self.keep(name, ptx);
                }
                if std::env::var_os("SASSAFRAS_SHOW").is_some() {
                    foreign.iter().take(MOST_SHOWN).for_each(|report| println!("{name}: ptxas -O{level}: {report}"));
                }
            }
            judge(&format!("ptxas -O{level}"), theirs.map(|(numbers, _)| numbers));
        }
        wrong
    }
}

/// Writes a program as a launch that expects these values.
fn launch(folder: &Path, name: &str, ptx: &str, threads: u32, expected: &[u32]) {
    let text = format!(
        "(module: \"{name}.ptx\", launches: [(kernel: \"kern\", grid: (1, 1, 1), block: ({threads}, 1, 1), \
         args: [inout(type: u32, data: fill({threads}, 0xa5a5a5a5), expect: {expected:?})])])\n"
    );
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(format!("{name}.ptx")), ptx).unwrap();
    std::fs::write(folder.join(format!("{name}.ron")), text).unwrap();
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
    let workers = number("SASSAFRAS_THREADS").unwrap_or(2);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let mut tally = bench.tally.into_inner().unwrap();
    println!("{} programs", tasks.len());
    tally.counts.iter().for_each(|(what, count)| println!("{what}: {count}"));
    tally.wrong.sort();
    assert!(tally.wrong.is_empty(), "{} went wrong:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
}
