//! Kernels with launches and literal expected numbers, under `tests/cases/exec`.
//!
//! Input: every NAME.ron there and the PTX it names. What is checked so far: the numbers are those of the references
//! (`expected.py`), and the incumbent accepts every module for every target. Where Python or the incumbent is missing,
//! the test says so and stops.

use sassafras::sim::launch::LaunchFile;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The targets on which every kernel must run.
const TARGETS: [&str; 10] =
    ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All descriptions, by file name.
fn descriptions() -> Vec<(PathBuf, LaunchFile)> {
    let entries = std::fs::read_dir(root().join("tests/cases/exec")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    let load = |path: PathBuf| {
        let file = LaunchFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
        (path, file)
    };
    paths.into_iter().map(load).collect()
}

#[test]
fn numbers_are_those_of_the_references() {
    let script = root().join("tests/cases/exec/expected.py");
    match Command::new("python3").arg(script).arg("--check").output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => println!("skipped: python3: {error}"),
    }
}

#[test]
fn incumbent_accepts_every_module() {
    let ptxas = root().join("target/vendor/ptxas");
    if !ptxas.exists() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut failures = String::new();
    for (_, file) in descriptions() {
        for target in TARGETS {
            let cubin = folder.path().join("k.cubin");
            let output =
                Command::new(&ptxas).args(["-arch", target]).arg(&file.module).arg("-o").arg(cubin).output().unwrap();
            if !output.status.success() || !output.stderr.is_empty() {
                let text = String::from_utf8_lossy(&output.stderr);
                failures += &format!("{} {target}: {text}\n", file.module.display());
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
