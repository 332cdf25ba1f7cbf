//! The simulator executes ptxas's cubins of every kernel and gives the expected values.
//!
//! This anchors the simulator's semantics of instructions: the values come from the kernels'
//! mathematics, the code from another compiler, and the decoding once from nvdisasm and once from
//! our tables. By default a case takes one target of each group (`support/turns.rs`), at one of the
//! levels in turn, and the architecture that it is for alone; `SASSAFRAS_ORACLE=all` takes all.
//! `SASSAFRAS_CASE` and `SASSAFRAS_SM` narrow the run.

use crate::simulate_ptxas_support::{Decoder, Job, Tools, cases, check, compile, each, prepare};
use crate::turns;
use sassafras::sim::launch::LaunchFile;
use std::path::{Path, PathBuf};

fn wanted(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |list| list.split(',').any(|item| item == name))
}

/// Whether a case runs on a target at a level: all of them with `SASSAFRAS_ORACLE=all`, otherwise
/// each target at one of the levels, in rotation.
fn on_turn(turn: usize) -> bool {
    turn.is_multiple_of(2) || turns::all()
}

/// Whether ptxas is known to compile a case incorrectly at a level: a line `CASE LEVEL: why` of
/// `tests/oracle/ptxas_wrong.txt`.
fn known_wrong(name: &str, level: &str) -> bool {
    let list = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/ptxas_wrong.txt"));
    list.unwrap_or_default().lines().any(|line| line.starts_with(&format!("{name} {level}: ")))
}

/// Code of ptxas that the simulator does not support yet, or unexplained differences: lines `CASE:
/// part of the message // why` of `tests/oracle/machine_not_yet.txt`.
fn not_yet() -> Vec<(String, String)> {
    let list = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/machine_not_yet.txt"));
    let list = list.unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.split_once(" // ")?.0.split_once(": "));
    lines.map(|(case, part)| (format!("{case} "), part.to_string())).collect()
}

/// What one case asks of ptxas.
fn jobs(file: &LaunchFile, name: &str) -> Vec<Job> {
    // What remains of the turn when a target of each group is chosen.
    let (mut jobs, turn) = (Vec::new(), turns::turn(&file.module) / 6);
    let allowed = |sm: &str| {
        let target = format!("sm_{sm}");
        let launched = file.launches.iter().any(|launch| launch.wants(&target));
        !sm.is_empty() && wanted("SASSAFRAS_SM", sm) && file.allows(&target) && launched
    };
    let own = file.own_target().filter(|own| !own.ends_with(|c: char| c.is_ascii_digit()));
    let own = own.as_deref().map_or("", |own| own.trim_start_matches("sm_"));
    let taken = turns::of(&file.module, allowed).into_iter().chain([own].into_iter().filter(|own| allowed(own)));
    for (t, sm) in taken.enumerate() {
        let Some(tools) = Tools::of(sm, &file.module) else { continue };
        for (_, level) in [(0, "-O0"), (1, "-O3")].into_iter().filter(|(l, _)| on_turn(turn + t + l) || tools.newest) {
            // At -O0 the newest ptxas writes no control words at all.
            if tools.newest && level == "-O0" {
                continue;
            }
            if known_wrong(name, level) {
                println!("not compared: {name} sm_{sm} {level}, which ptxas compiles wrongly");
                continue;
            }
            jobs.push(Job { tools: tools.clone(), ptx: file.module.clone(), sm: sm.to_string(), level });
        }
    }
    jobs
}

/// Runs a case as one job asks.
fn one(name: &str, file: &LaunchFile, job: &Job) -> Vec<String> {
    let messages = match compile(&job.tools, &file.module, &job.sm, job.level) {
        Ok(made) => {
            let both = [Decoder::Nvdisasm, Decoder::Tables].map(|decoder| check(file, &job.sm, &made, decoder));
            both.concat()
        }
        Err(error) => vec![error],
    };
    messages.into_iter().map(|message| format!("{name} sm_{} {}: {message}", job.sm, job.level)).collect()
}

/// Least number of runs on a target.
const LEAST: usize = 25;

/// Runs every case. Returns the failures, or `None` without NVIDIA's tools.
fn all() -> Option<Vec<String>> {
    Tools::of("75", Path::new(""))?;
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let files: Vec<PathBuf> = cases().into_iter().filter(|path| wanted("SASSAFRAS_CASE", &name(path))).collect();
    assert!(!files.is_empty(), "no cases");
    let (mut wrong, mut loaded) = (Vec::new(), Vec::new());
    for path in &files {
        match LaunchFile::load(path) {
            Ok(file) => loaded.push((name(path), file)),
            Err(error) => wrong.push(format!("{}: {error}", name(path))),
        }
    }
    let (mut of, mut asked) = (Vec::new(), Vec::new());
    for (name, file) in &loaded {
        for job in jobs(file, name) {
            of.push((name, file));
            asked.push(job);
        }
    }
    turns::assert_covered(asked.iter().map(|job| job.sm.as_str()), LEAST);
    prepare(&asked);
    let runs: Vec<_> = of.into_iter().zip(&asked).collect();
    let run = |((name, file), job): &((&String, &LaunchFile), &Job)| {
        let run = || one(name, file, job);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        ended.unwrap_or_else(|_| vec![format!("{name} sm_{} {}: the simulator panicked", job.sm, job.level)])
    };
    wrong.extend(each(&runs, run).concat());
    Some(wrong)
}

/// With nvdisasm's decoding and with our own.
#[test]
fn ptxas_cubins_give_the_expected_numbers() {
    let Some(mut wrong) = all() else { return };
    let (listed, whole) =
        (not_yet(), std::env::var_os("SASSAFRAS_CASE").or(std::env::var_os("SASSAFRAS_SM")).is_none());
    let is = |message: &str, line: &(String, String)| message.starts_with(&line.0) && message.contains(&line.1);
    let stale: Vec<_> = listed.iter().filter(|line| whole && !wrong.iter().any(|message| is(message, line))).collect();
    let count = wrong.len();
    wrong.retain(|message| !listed.iter().any(|line| is(message, line)));
    println!("{} launches of ptxas's are not executed yet, as listed", count - wrong.len());
    assert!(wrong.is_empty(), "{} launches went wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(stale.is_empty(), "listed, and not found: {stale:?}");
}

/// What calls begins with code of its own for sm_87: it reads a uniform register that nothing has
/// written, and writes every convergence barrier through BMOV.32.
#[test]
fn what_ptxas_begins_calls_with_for_sm_87_is_executed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
    let mut wrong = Vec::new();
    for name in ["calls", "several_results", "stack_calls"] {
        let file = LaunchFile::load(&folder.join(format!("{name}.ron"))).expect("a case");
        let Some(tools) = Tools::of("87", &file.module) else { return };
        for level in ["-O0", "-O3"] {
            match compile(&tools, &file.module, "87", level) {
                Ok(made) if !made.listing.contains("BMOV.32 B0, 0xffffffff") => {
                    wrong.push(format!("{name} {level}: ptxas begins in another way"));
                }
                // From the words alone: the listing has no names for what such a BMOV reads.
                Ok(made) => wrong.extend(check(&file, "87", &made, Decoder::Tables)),
                Err(error) => wrong.push(error),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
