//! `--search-steps`, `--search` and `--tune` on the command line, and that what they choose is
//! right and no worse by estimate.

use sassafras::compile::{Options, compile};
use sassafras::sim::launch::{ArgValue, LaunchFile};
use sassafras::sim::run::{How, Shape, run_as};
use sassafras::tables::{Tunable, Tuning};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn cases(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder)
}

/// Compiles a case of `exec` for sm_90 in a folder.
fn call(folder: &Path, name: &str, line: &str) -> (Output, Vec<u8>) {
    let cubin = folder.join("k.cubin");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sassafras"));
    command.args(["-arch=sm_90", "-v"]).args(line.split(' ')).arg("-o").arg(&cubin);
    let output = command.arg(cases("exec").join(format!("{name}.ptx"))).output().unwrap();
    (output, std::fs::read(cubin).unwrap_or_default())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn steps_give_the_same_bytes_every_time_and_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let of = |line: &str| {
        let (output, cubin) = call(folder.path(), "many_kernels", line);
        assert!(output.status.success(), "{}", said(&output));
        let found: Vec<String> = said(&output).lines().filter(|l| l.contains("Search of")).map(String::from).collect();
        (cubin, found)
    };
    let (first, found) = of("--search-steps 5");
    assert!(!found.is_empty() && found.iter().all(|line| line.contains("5 steps, estimate ")), "{found:?}");
    assert_eq!(of("--search-steps 5 --split-compile 2"), (first, found));
    assert!(of("--tune loads=64").1.is_empty());
}

#[test]
fn seconds_end_a_search() {
    let folder = tempfile::tempdir().unwrap();
    let (output, cubin) = call(folder.path(), "many_kernels", "--search 1");
    assert!(output.status.success() && !cubin.is_empty(), "{}", said(&output));
    assert!(said(&output).contains("Search of"), "{}", said(&output));
}

#[test]
fn wrong_values_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (line, text) in [
        ("--tune lods=1", "Tunable 'lods' is not known; known are loads, "),
        ("--tune loads", "Tunable 'loads' is not NAME=VALUE"),
        ("--tune loads=-1", "Value '-1' of tunable 'loads' is not in 0..1000"),
        ("--search-steps 0", "Invalid value '0' for option '--search-steps'"),
        ("--search -1", "Invalid value '-1' for option '--search'"),
    ] {
        let (output, cubin) = call(folder.path(), "many_kernels", line);
        assert!(!output.status.success() && cubin.is_empty(), "{line}");
        assert!(said(&output).contains(text), "{line}: {}", said(&output));
    }
}

/// What the launches of a case leave in memory with a cubin.
fn left(file: &LaunchFile, cubin: &[u8]) -> Vec<Vec<ArgValue>> {
    let launches = file.launches.iter().map(|launch| {
        let mut values = launch.arg_values();
        let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
        let outcome = run_as(cubin, &launch.kernel, shape, &mut values, How::default()).unwrap();
        assert!(outcome.reports.is_empty(), "{}: {:?}", launch.kernel, outcome.reports);
        values
    });
    launches.collect()
}

#[test]
fn every_value_of_every_tunable_leaves_the_results_and_some_change_code() {
    for (case, target) in [("numba_matmul", "sm_90"), ("17_const_shared", "sm_120")] {
        let file = LaunchFile::load(&cases("corpus").join(format!("{case}.ron"))).unwrap();
        let module = std::fs::read_to_string(&file.module).unwrap();
        let cubin = |tuning: Tuning| {
            let options = Options { tuning, verify_ir: true, ..Options::new(target) };
            compile(&module, &options).unwrap_or_else(|errors| panic!("{case}, {tuning}: {errors:?}")).cubin
        };
        let usual = cubin(Tuning::default());
        let (wanted, mut seen) = (left(&file, &usual), vec![usual]);
        for tunable in Tunable::ALL {
            for value in tunable.info().tried {
                let other = cubin(Tuning::default().with(tunable, *value));
                if !seen.contains(&other) {
                    assert!(left(&file, &other) == wanted, "{case}: {}={value}", tunable.name());
                    seen.push(other);
                }
            }
        }
        assert!(seen.len() > 3, "{case}: {} codes", seen.len());
    }
}

#[test]
fn what_is_found_is_no_worse_by_estimate_and_some_is_better() {
    let file = LaunchFile::load(&cases("corpus").join("17_const_shared.ron")).unwrap();
    let module = std::fs::read_to_string(&file.module).unwrap();
    let mut options = Options::new("sm_90");
    options.search.steps = 12;
    let found = compile(&module, &options).unwrap().found;
    for found in &found {
        let ([before, after], name) = (found.times.map(|time| time.unwrap()), &found.function);
        assert!(found.steps <= 12 && after > 0 && after <= before, "{name}: {before} -> {after}");
        assert!(found.tuning != Tuning::default() || before == after, "{name}: {before} -> {after}");
    }
    assert!(found.iter().any(|found| found.times[1] < found.times[0]), "nothing is better");
}
