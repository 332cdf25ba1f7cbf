//! Launches kernels of the corpus: the PTX interpreter, our cubins and those of ptxas give the same
//! results.
//!
//! The input is tests/cases/corpus/NAME.ron and the modules they name; if a module outside the
//! repository is missing, the test prints `skipped`. For each launch the interpreter must compute
//! the described values. Our cubins must give the same on the simulator, on six targets, at -O0 to
//! -O3, at -O3 also with 24, 32 and 64 registers, without any report. Those of ptxas must give the
//! same at -O0 and -O3, with no report except the hazards that tests/oracle/ptxas_hazards.txt
//! explains (with a hazard, the values are those of a run without timing).
//!
//! By default each launch takes one of these combinations, different from its neighbours;
//! `SASSAFRAS_CORPUS=all` takes all, `SASSAFRAS_CORPUS=built` all on every target with an encoder
//! (only ours beyond the six). `SASSAFRAS_CASE` and `SASSAFRAS_SM` (lists, such as
//! `01_basic,07_crypto.keccak` and `sm_90`) narrow the run, `SASSAFRAS_ENGINE=ptxas` leaves ours
//! out. What is diagnosed as unsupported is listed in not_yet.txt.
//!
//! Both also run under jitter: every fourth launch with one seed, or with `SASSAFRAS_JITTER=10`
//! each with ten. No seed changes a delay: with or without jitter, a variable-latency result is
//! visible only after a wait for its scoreboard, and a fixed-latency one only after its cycles,
//! which is the worst case of all delays. A seed changes the contents of unwritten memory and
//! registers and the order of the warps, and the results must be the same bit for bit. One more run
//! of a kernel with approximate functions moves the last place of each of their results by one; its
//! floats may differ by `NEAR` units in the last place.

mod engines;
mod hazards;
mod not_yet;

use crate::slice;
use engines::{Failure, How, Ran, guarded};
use hazards::Explained;
use not_yet::{NotYet, Subject};
use sassafras::sim::launch::{Arg, ArgValue, Expected, Launch, LaunchFile, Tolerance};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const TARGETS: [&str; 6] = ["sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"];
/// Taken if `SASSAFRAS_SM` names it: some distances on it are not what the tables ask for.
const ASKED: &str = "sm_107";

/// Levels and limits on registers.
const VARIANTS: [(u8, Option<u32>); 7] =
    [(0, None), (3, None), (1, None), (2, None), (3, Some(24)), (3, Some(32)), (3, Some(64))];
/// Levels of ptxas.
const PTXAS: [u8; 2] = [0, 3];

/// Allowed difference of floats, in units in the last place, with jittered approximate functions.
const NEAR: u64 = 16;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A launch with the name of its case, its overall index and its module.
struct Task {
    number: usize,
    case: String,
    module: PathBuf,
    launch: Launch,
}

fn wanted(variable: &str, names: &[&str]) -> bool {
    std::env::var(variable).map_or(true, |list| list.split(',').any(|item| names.contains(&item)))
}

/// All launches in a fixed order, and the missing modules.
fn tasks() -> (Vec<Task>, Vec<String>) {
    let entries = std::fs::read_dir(root().join("tests/cases/corpus")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    let (mut tasks, mut missing) = (Vec::new(), Vec::new());
    let mut number = 0;
    for path in paths {
        let case = path.file_stem().unwrap().to_string_lossy().into_owned();
        let file = LaunchFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
        if !file.module.exists() {
            missing.push(format!("{case} ({} launches)", file.launches.len()));
            continue;
        }
        for launch in file.launches {
            number += 1;
            let kernel = format!("{case}.{}", launch.kernel);
            if wanted("SASSAFRAS_CASE", &[&case, &kernel]) {
                tasks.push(Task { number, case: case.clone(), module: file.module.clone(), launch });
            }
        }
    }
    (tasks, missing)
}

/// Whether the run includes this part of the combinations.
fn taken(share: &str) -> bool {
    std::env::var("SASSAFRAS_CORPUS").is_ok_and(|v| v == share)
}

/// Whether the newest ptxas alone knows a target.
fn newest(target: &str) -> bool {
    sassafras::tables::Target::by_name(target).is_some_and(|t| t.min_ptx > (9, 0))
}

/// The number of a target's name, and whether it is one of an architecture alone.
fn architecture(name: &str) -> (u32, bool) {
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(0), name.ends_with(|c: char| c.is_ascii_alphabetic()))
}

/// The targets that a launch runs on.
fn targets(task: &Task, source: &str) -> Vec<&'static str> {
    let own = source.lines().find_map(|l| l.trim().strip_prefix(".target")).unwrap_or("");
    let own = own.split([',', ' ']).find(|w| !w.is_empty()).unwrap_or("").trim();
    let (lowest, special) = architecture(own);
    let named = |t: &str| task.launch.targets.is_empty() || task.launch.targets.iter().any(|name| name == t);
    let fits = |t: &&str| {
        let number = architecture(t).0;
        named(t) && if special { *t == own } else { number >= lowest }
    };
    let built =
        || sassafras::tables::targets::TARGETS.iter().filter(|t| t.generation.is_some()).map(|t| t.name).collect();
    let asked = std::env::var("SASSAFRAS_SM").is_ok_and(|list| list.split(',').any(|name| name == ASKED));
    let mut all: Vec<&str> = if taken("built") || special { built() } else { TARGETS.to_vec() };
    if asked && !special && !all.contains(&ASKED) {
        all.push(ASKED);
    }
    all.into_iter().filter(fits).filter(|t| wanted("SASSAFRAS_SM", &[t])).collect()
}

/// The combinations that a launch takes.
fn plan(task: &Task, source: &str) -> Vec<How> {
    let targets = targets(task, source);
    // The sum of a warp group, or a read of tensor memory, needs more registers than these limits
    // allow; ptxas rejects it too.
    let large = source.contains("wgmma.mma_async") || source.contains("tcgen05.");
    let how = |target: &str, (level, registers): (u8, Option<u32>)| {
        let registers = registers.filter(|_| !large);
        How { target: target.into(), level, registers }
    };
    if taken("all") || taken("built") {
        return targets.iter().flat_map(|t| VARIANTS.map(|v| how(t, v))).collect();
    }
    let n = task.number;
    targets.get(n % targets.len().max(1)).map(|t| how(t, VARIANTS[(n / 6 + n) % VARIANTS.len()])).into_iter().collect()
}

/// The results that all threads add to.
#[derive(Default)]
struct Report {
    wrong: Vec<String>,
    counts: BTreeMap<&'static str, [usize; 2]>,
    /// Kernels that ran without any reference for their results, by engine.
    uncompared: BTreeMap<&'static str, BTreeMap<String, usize>>,
    outdated: BTreeMap<usize, String>,
    /// Runs of ptxas's cubins without a report, and with hazards.
    theirs: [usize; 2],
}

struct Bench {
    ptxas: Option<PathBuf>,
    not_yet: NotYet,
    explained: Explained,
    report: Mutex<Report>,
}

impl Bench {
    /// Records how a run ended: compared with the expectation, excused, or wrong. Returns the
    /// values if they are right.
    fn note(&self, task: &Task, engine: &'static str, how: &str, expected: Option<&Launch>, ran: &Ran) -> bool {
        let subject = Subject { case: &task.case, kernel: &task.launch.kernel, engine, how };
        let name = format!("{}.{} [{}] {engine} {how}", task.case, task.launch.kernel, task.number);
        let mut report = self.report.lock().unwrap();
        let outcome = match (ran, expected) {
            (Err(Failure::Refused(message)), _) if self.not_yet.excuses(subject, message) => {
                report.counts.entry(engine).or_default()[1] += 1;
                return false;
            }
            (Err(Failure::Refused(message) | Failure::Wrong(message)), _) => Err(message.clone()),
            (Ok(values), Some(expected)) => expected
                .check(values)
                .map_err(|all| all.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ")),
            (Ok(_), None) if engine == "interpreter" => Ok(()),
            (Ok(_), None) => {
                let kernel = format!("{}.{}", task.case, task.launch.kernel);
                *report.uncompared.entry(engine).or_default().entry(kernel).or_default() += 1;
                return true;
            }
        };
        match outcome {
            Ok(()) => {
                report.counts.entry(engine).or_default()[0] += 1;
                if let Some(line) = self.not_yet.outdated(subject) {
                    report.outdated.insert(line, name);
                }
            }
            Err(message) => report.wrong.push(format!("{name}: {message}")),
        }
        ran.is_ok()
    }

    fn launch(&self, task: &Task) {
        let module = std::fs::read_to_string(&task.module).unwrap();
        let source = match task.launch.source(&slice::slice(&module, &task.launch.kernel)) {
            Ok(source) => source,
            Err(message) => return self.report.lock().unwrap().wrong.push(format!("{}: {message}", task.case)),
        };
        let mut expected = None;
        let ran = guarded(|| engines::interpreted(&source, &task.launch));
        if let Ok(values) = &ran {
            let launch = task.launch.expecting(values);
            if launch.check(&launch.arg_values()).is_ok() {
                let message = format!("{}.{}: passes without running", task.case, task.launch.kernel);
                self.report.lock().unwrap().wrong.push(message);
            }
            expected = Some(launch);
        } else if !asks_the_interpreter(&task.launch) {
            expected = Some(task.launch.clone());
        }
        self.note(task, "interpreter", "", expected.as_ref(), &ran);
        for how in plan(task, &source) {
            // At -O0 the newest ptxas writes no control words at all.
            let silent = how.level == 0 && newest(&how.target);
            let compared = how.registers.is_none() && PTXAS.contains(&how.level) && !silent;
            let known = TARGETS.contains(&how.target.as_str()) || newest(&how.target) || architecture(&how.target).1;
            if let Some(ptxas) = self.ptxas.as_ref().filter(|_| compared && known) {
                let ran = self.ptxas(ptxas, task, &source, &how, expected.as_ref());
                // If the interpreter does not support the kernel yet, ours is compared with ptxas's
                // values.
                if let (Some(values), None) = (&ran, &expected) {
                    expected = Some(task.launch.expecting(values));
                }
            }
            if wanted("SASSAFRAS_ENGINE", &["ours"]) {
                self.ours(task, &source, &how, expected.as_ref());
            }
        }
    }
}

impl Bench {
    /// The cubin of ptxas: the plain run, and the jittered runs of this launch. Returns the values
    /// of the plain run if they are right.
    fn ptxas(
        &self,
        ptxas: &Path,
        task: &Task,
        source: &str,
        how: &How,
        expected: Option<&Launch>,
    ) -> Option<Vec<ArgValue>> {
        // The newest target is known to the newest ptxas alone.
        let other = newest(&how.target).then(|| ptxas.with_file_name("13.5/ptxas"));
        let cubin = match guarded(|| engines::ptxas(other.as_deref().unwrap_or(ptxas), source, how)) {
            Ok(cubin) => cubin,
            Err(why) => {
                self.note(task, "ptxas", &how.to_string(), expected, &Err(why));
                return None;
            }
        };
        let run = |engine, seed: Option<u64>, noise| {
            let ran = guarded(|| engines::theirs(&cubin, &task.launch, seed, noise));
            let how = seed.map_or(how.to_string(), |seed| format!("{how} seed {seed}"));
            let approximate = ran.as_ref().is_ok_and(|ran| ran.approximate);
            let ran = ran.map(|ran| {
                self.explain(task, &how, &ran.hazards);
                ran.values
            });
            let near = expected.filter(|_| noise).map(approximately);
            let right = self.note(task, engine, &how, near.as_ref().or(expected), &ran);
            ran.ok().filter(|_| right).map(|values| (values, approximate))
        };
        let (values, approximate) = run("ptxas", None, true)?;
        for seed in seeds(task.number) {
            run("ptxas, jittered", Some(seed), false);
            if approximate {
                run("ptxas, jittered, with noise in approximate functions", Some(seed), true);
            }
        }
        Some(values)
    }

    /// Counts a run of ptxas's cubin; an unexplained hazard is an error.
    fn explain(&self, task: &Task, how: &str, hazards: &[(String, String)]) {
        let kernel = &task.launch.kernel;
        let when: Vec<&str> = how.split(' ').take(2).collect();
        let mut report = self.report.lock().unwrap();
        report.theirs[usize::from(!hazards.is_empty())] += 1;
        for (key, text) in hazards {
            let key = format!("{} {kernel} {} {key}", task.case, when.join(" "));
            if !self.explained.explains(&key) {
                report.wrong.push(format!("ptxas_hazards.txt lacks {key}: {text}"));
            }
        }
    }

    /// Our cubin: the plain run, and the jittered runs of this launch.
    fn ours(&self, task: &Task, source: &str, how: &How, expected: Option<&Launch>) {
        let cubin = match guarded(|| engines::ours(source, how)) {
            Ok(cubin) => cubin,
            Err(why) => {
                self.note(task, "ours", &how.to_string(), expected, &Err(why));
                return;
            }
        };
        let ran = guarded(|| engines::on_the_machine(&cubin, &task.launch));
        if !self.note(task, "ours", &how.to_string(), expected, &ran) {
            return;
        }
        for seed in seeds(task.number) {
            let how = format!("{how} seed {seed}");
            let mut approximate = false;
            let ran = guarded(|| engines::jittered(&cubin, &task.launch, seed, false));
            let ran = ran.map(|(values, with)| {
                approximate = with;
                values
            });
            let right = self.note(task, "ours, jittered", &how, expected, &ran);
            if right && approximate {
                let ran = guarded(|| engines::jittered(&cubin, &task.launch, seed, true));
                let (near, ran) = (expected.map(approximately), ran.map(|(values, _)| values));
                self.note(task, "ours, jittered, with noise in approximate functions", &how, near.as_ref(), &ran);
            }
        }
    }
}

/// The same with a tolerance for floats: jitter changes the last place of every approximate
/// function.
fn approximately(launch: &Launch) -> Launch {
    let near = |tolerance: Tolerance| if tolerance == Tolerance::Exact { Tolerance::Ulps(NEAR) } else { tolerance };
    let mut launch = launch.clone();
    launch.tolerance = near(launch.tolerance);
    for arg in &mut launch.args {
        if let Arg::Buffer { tolerance: Some(tolerance), .. } = arg {
            *tolerance = near(*tolerance);
        }
    }
    launch
}

/// Seeds of the jittered runs of a launch: `SASSAFRAS_JITTER` of them, or by default one for every
/// fourth launch.
fn seeds(number: usize) -> std::ops::Range<u64> {
    let told = std::env::var("SASSAFRAS_JITTER").ok().and_then(|n| n.parse().ok());
    let first = 100 * number as u64;
    first..first + told.unwrap_or(u64::from(number.is_multiple_of(4)))
}

fn asks_the_interpreter(launch: &Launch) -> bool {
    let asks = |arg: &Arg| matches!(arg, Arg::Buffer { expect: Some(e), .. } if e.contains(&Expected::Interpreter));
    launch.args.iter().any(asks)
}

#[test]
fn launches_agree() {
    let ptxas = Some(root().join("target/vendor/ptxas")).filter(|path| path.exists());
    if ptxas.is_none() {
        println!("skipped: ptxas's cubins: target/vendor/ptxas is missing");
    }
    let (tasks, missing) = tasks();
    missing.iter().for_each(|name| println!("skipped: {name}: the module is not there"));
    let list = std::fs::read_to_string(root().join("tests/cases/corpus/not_yet.txt")).unwrap_or_default();
    let hazards = std::fs::read_to_string(root().join("tests/oracle/ptxas_hazards.txt")).unwrap_or_default();
    let explained = Explained::parse(&hazards);
    let bench = Bench { ptxas, not_yet: NotYet::parse(&list), explained, report: Mutex::default() };
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            bench.launch(task);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let report = bench.report.into_inner().unwrap();
    println!("{} launches", tasks.len());
    for (engine, [right, excused]) in &report.counts {
        println!("{engine}: {right} runs right, {excused} refused as listed");
    }
    for (engine, kernels) in &report.uncompared {
        let runs: usize = kernels.values().sum();
        println!("{engine}: {runs} runs compared with nothing, of {} kernels:", kernels.len());
        kernels.iter().for_each(|(kernel, runs)| println!("    {kernel} ({runs})"));
    }
    let [clean, hazards] = report.theirs;
    let share = 100.0 * clean as f64 / (clean + hazards).max(1) as f64;
    println!("ptxas: {clean} of {} runs clean, {share:.2} %; {hazards} with hazards by our tables", clean + hazards);
    let narrowed = ["SASSAFRAS_CASE", "SASSAFRAS_SM"].iter().any(|v| std::env::var_os(v).is_some());
    let whole = bench.ptxas.is_some() && !narrowed && missing.is_empty() && (taken("all") || taken("built"));
    let stale = if whole { bench.explained.stale() } else { Vec::new() };
    let outdated = report.outdated.iter().map(|(line, name)| format!("not_yet.txt:{line}: {name} runs now"));
    let mut wrong: Vec<String> = report.wrong.into_iter().chain(outdated).chain(stale).collect();
    wrong.sort();
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The promised number of kernels have descriptions.
#[test]
fn descriptions_cover_the_corpus() {
    let (tasks, missing) = tasks();
    let kernels: std::collections::BTreeSet<_> = tasks.iter().map(|t| (&t.case, &t.launch.kernel)).collect();
    println!("{} kernels, {} launches", kernels.len(), tasks.len());
    let least = if missing.is_empty() { 170 } else { 140 };
    assert!(std::env::var("SASSAFRAS_CASE").is_ok() || kernels.len() >= least, "{} kernels", kernels.len());
}
