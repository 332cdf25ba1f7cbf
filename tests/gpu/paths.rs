//! Tests this test program itself, with a driver whose GPU is the simulator: its output and exit
//! status.
//!
//! It needs examples/libmachine_driver.so beside this program, prints what differs, and says
//! nothing about a GPU.

use super::{NO_CARD, report};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The cases that the simulator's driver runs.
const SAMPLE: &str = "saxpy,bitonic,grid3d,large_parameters,loader";
const RESULTS: &str = "tests/gpu/RESULTS.md";

/// Runs all checks.
pub fn over_the_machine() -> ExitCode {
    let own = std::env::current_exe().unwrap();
    let mut wrong = kept_results();
    let library = own.parent().and_then(Path::parent).map(|p| p.join("examples/libmachine_driver.so"));
    match library.filter(|l| l.exists()) {
        Some(library) => wrong.extend(ways(&Program { own, library })),
        None => println!("skipped: examples/libmachine_driver.so is not built"),
    }
    wrong.iter().for_each(|line| println!("wrong: {line}"));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// RESULTS.md either says that there are no results or holds those of a real GPU, never of the
/// simulator.
fn kept_results() -> Vec<String> {
    if std::env::var_os("SASSAFRAS_BLESS").is_some() && !Path::new(RESULTS).exists() {
        std::fs::write(RESULTS, report::unseen()).unwrap();
    }
    let kept = std::fs::read_to_string(RESULTS).unwrap_or_default();
    let seen = kept.starts_with("# Results on a GPU\n\n")
        && kept.contains(", capability ")
        && !kept.contains("SASS simulator");
    let wrong = kept != report::unseen() && !seen;
    wrong.then(|| format!("{RESULTS} is neither what a GPU gave nor says that none was seen")).into_iter().collect()
}

/// This program and the driver to run it with.
struct Program {
    own: PathBuf,
    library: PathBuf,
}

impl Program {
    /// Runs it in a folder as a user would, without cargo. Returns exit status and output.
    fn run(&self, folder: &Path, case: &str, more: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut command = Command::new(&self.own);
        command.current_dir(folder).env_remove("CARGO_MANIFEST_DIR").env_remove("SASSAFRAS_GPU_REPORT");
        command.env("SASSAFRAS_CUDA_DRIVER", &self.library).env("SASSAFRAS_CASE", case).envs(more.iter().copied());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The checks that failed.
fn ways(program: &Program) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, (status, text): (Option<i32>, String), want: u8, says: &[&str]| {
        let missing: Vec<_> = says.iter().filter(|part| !text.contains(**part)).collect();
        if status != Some(want.into()) || !missing.is_empty() {
            wrong.push(format!("{what}: status {status:?}, without {missing:?}:\n{text}"));
        }
    };
    let here = Path::new(".");
    let ran = program.run(here, SAMPLE, &[]);
    print!("{}", ran.1);
    let levels: Vec<String> =
        (0..4).map(|level| format!("| saxpy | saxpy | sm_90 | ours -O{level} | right | right |")).collect();
    let mut says: Vec<&str> = levels.iter().map(String::as_str).collect();
    says.extend([
        "SASS simulator, capability 9.0",
        "0 as ptxas's, 0 wrong, 0 skipped",
        "| saxpy: section .text.saxpy | required |",
        "| ignored |",
    ]);
    check("a sample", ran, 0, &says);
    let nowhere = program.run(here, SAMPLE, &[("SASSAFRAS_CUDA_DRIVER", "/nowhere/libcuda.so")]);
    check("no driver", nowhere, NO_CARD, &["skipped: no GPU, nothing was judged"]);
    let flips = program.run(here, "saxpy", &[("SASSAFRAS_DRIVER_FLIPS", "1")]);
    check("a bad card", flips, 1, &["0 right"]);
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("tests/cases/exec");
    std::fs::create_dir_all(&cases).unwrap();
    let text = std::fs::read_to_string("tests/cases/exec/saxpy.ron").unwrap();
    std::fs::write(cases.join("gone.ron"), &text).unwrap();
    std::fs::write(cases.join("broken.ron"), "(").unwrap();
    let other =
        text.replace("smem: 0,", "smem: 0, targets: [\"sm_75\"],").replace("../../corpus/saxpy.ptx", "saxpy.ptx");
    std::fs::write(cases.join("other.ron"), other).unwrap();
    std::fs::copy("tests/corpus/saxpy.ptx", cases.join("saxpy.ptx")).unwrap();
    let gone = program.run(folder.path(), "gone", &[]);
    check("no module", gone, 1, &["| gone | - | - | - | skipped: ", "saxpy.ptx is not there", "0 wrong, 1 skipped"]);
    let other = program.run(folder.path(), "other", &[]);
    check("another target", other, 1, &["| other | saxpy | sm_90 | - | skipped: not for sm_90 |"]);
    let broken = program.run(folder.path(), "broken", &[]);
    check("no description", broken, 1, &["the description cannot be read", "1 wrong, 0 skipped"]);
    wrong
}
