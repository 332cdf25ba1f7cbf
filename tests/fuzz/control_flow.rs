//! Unstructured control flow: the program's own evaluation, the interpreter, our cubins and those
//! of ptxas on the simulator agree.
//!
//! The input is random programs and two shapes that need many convergence barriers
//! (`control_flow/flow.rs`), with 256 threads that branch by their data. All must store the same
//! values, without deadlock or other report, in any order of the warps (jitter). About one cubin of
//! ptxas in 4,000 hangs as `return_out_of_loop` of tests/oracle/ptxas-bugs does: what waits then is
//! at a BSYNC, for lanes that have returned.
//! Of the largest sizes of the two shapes one of two programs is taken in turn, the entry or the
//! function, of the others both; `SASSAFRAS_ORACLE=all` takes both of all.
//! `SASSAFRAS_PROGRAMS` is the number of random programs (a few by default), `SASSAFRAS_SEED` the
//! first seed; `SASSAFRAS_KEEP=FOLDER` keeps the programs that fail. Without ptxas, its half is
//! skipped.

mod flow;

use crate::random;
use crate::vendor;
use flow::{Leave, Program, THREADS};
use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Shape, run_as};
use std::path::Path;
use std::process::Command;

const TARGETS: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_120"];
const SHAPE: Shape = Shape { grid: [1, 1, 1], block: [THREADS, 1, 1], smem: 0 };
/// Default number of random programs.
const FEW: u64 = 12;

fn buffer() -> [ArgValue; 1] {
    [ArgValue::Buffer { bytes: vec![0; 4 * THREADS as usize], writable: true }]
}

fn bytes(values: [ArgValue; 1]) -> Vec<u8> {
    match values {
        [ArgValue::Buffer { bytes, .. }] => bytes,
        _ => panic!("the buffer is gone"),
    }
}

/// The values that a cubin stores on the simulator.
fn machine(cubin: &[u8], how: How) -> Result<Vec<u8>, String> {
    let mut values = buffer();
    let outcome = run_as(cubin, "k", SHAPE, &mut values, how);
    outcome.and_then(|o| o.clean()).map_err(|fault| fault.to_string())?;
    Ok(bytes(values))
}

fn interpreted(text: &str) -> Result<Vec<u8>, String> {
    let (module, diagnostics) = sassafras::sim::ptx::parse(text.as_bytes());
    let module = module.ok_or_else(|| format!("{diagnostics:?}"))?;
    let mut values = buffer();
    sassafras::sim::ptx::run(&module, "k", SHAPE, &mut values).map_err(|fault| fault.to_string())?;
    Ok(bytes(values))
}

fn ours(text: &str, target: &str, level: u8) -> Result<Vec<u8>, String> {
    let options = Options { opt_level: level, verify_ir: true, ..Options::new(target) };
    Ok(compile(text, &options).map_err(|error| format!("{error:?}"))?.cubin)
}

/// The cubin of ptxas, or `None` if ptxas crashes, as it does on some of these programs.
fn theirs(ptxas: &Path, text: &str, target: &str, level: u8) -> Result<Option<Vec<u8>>, String> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (source, cubin) = (dir.path().join("k.ptx"), dir.path().join("k.cubin"));
    std::fs::write(&source, text).expect("the text written");
    let options = [format!("-arch={target}"), format!("-O{level}"), "-o".into()];
    let run = Command::new(ptxas).arg(&source).args(options).arg(&cubin).output().expect("ptxas runs");
    if run.status.code().is_none() {
        return Ok(None);
    }
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).into_owned());
    }
    Ok(Some(std::fs::read(&cubin).expect("the cubin")))
}

/// The failure of a program on one of the targets at one level, if any.
fn judge(name: &str, program: &Program, turn: u64, ptxas: Option<&Path>) -> Vec<String> {
    let (text, right) = (program.text(), program.results());
    let (target, level) = (TARGETS[turn as usize % TARGETS.len()], (turn / 4 % 4) as u8);
    let mine = How { jitter: Some(turn).filter(|turn| turn % 3 != 0), ..How::default() };
    let mut got = vec![
        ("the interpreter", interpreted(&text)),
        ("our cubin", ours(&text, target, level).and_then(|cubin| machine(&cubin, mine))),
    ];
    if let Some(ptxas) = ptxas {
        // Latencies are tested elsewhere; this test is about reconvergence.
        let untimed = How { timed: false, ..How::default() };
        match theirs(ptxas, &text, target, level) {
            Ok(None) => println!("not compared: {name} {target} -O{level}, at which ptxas crashes"),
            Ok(Some(cubin)) => got.push(("the cubin of ptxas", machine(&cubin, untimed))),
            Err(error) => got.push(("ptxas", Err(error))),
        }
    }
    let wrong = got.into_iter().filter(|(_, result)| result.as_ref() != Ok(&right));
    let what = |result: Result<Vec<u8>, String>| result.map_or_else(|error| error, |_| "other values".into());
    let wrong = wrong.map(|(who, result)| format!("{name} {target} -O{level}: {who}: {}", what(result)));
    let wrong: Vec<String> = wrong.collect();
    if let Some(folder) = std::env::var_os("SASSAFRAS_KEEP").filter(|_| !wrong.is_empty()) {
        std::fs::write(Path::new(&folder).join(format!("{name}.ptx")), &text).expect("the program kept");
    }
    wrong
}

fn ptxas() -> Option<std::path::PathBuf> {
    let found = vendor::tool("ptxas");
    if found.is_none() {
        println!("skipped: the cubins of ptxas: target/vendor/ptxas is missing");
    }
    found
}

/// Whether a shape of this size is taken in a function or in the entry itself: which of the two is
/// one's turn where the size is large, whose compile takes seconds.
fn on_turn(large: bool, turn: usize, called: bool) -> bool {
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    all || !large || turn.is_multiple_of(2) == called
}

fn number(variable: &str, without: u64) -> u64 {
    std::env::var(variable).map_or(without, |text| text.parse().expect("a number"))
}

#[test]
fn random_control_flow_computes_the_same() {
    let (ptxas, first) = (ptxas(), number("SASSAFRAS_SEED", 0));
    let count = number("SASSAFRAS_PROGRAMS", FEW);
    let one = |seed| judge(&format!("program {seed}"), &Program::random(seed), seed, ptxas.as_deref());
    let wrong: Vec<String> = (first..first + count).flat_map(one).collect();
    println!("{count} random programs, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// More branches to one block than there are convergence barriers, in entries and in functions.
#[test]
fn ladders_need_no_more_barriers_than_there_are() {
    let ptxas = ptxas();
    let mut wrong = Vec::new();
    for (turn, rungs) in (0..).zip([4, 6, 7, 15, 16, 17, 18, 33, 100]) {
        let leaves = [None, Some(Leave::Return), Some(Leave::Exit), Some(Leave::Trap)];
        for (kind, leave) in leaves.into_iter().enumerate() {
            for called in [false, true].into_iter().filter(|called| on_turn(rungs > 18, kind + turn as usize, *called))
            {
                let name = format!("ladder {rungs} {kind} {called}");
                let program = Program::ladder(rungs, called, leave);
                wrong.extend(judge(&name, &program, turn + kind as u64, ptxas.as_deref()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nested loops, deeper than there are convergence barriers, with breaks to any enclosing loop.
#[test]
fn nests_of_breaks_need_no_more_barriers_than_there_are() {
    let ptxas = ptxas();
    let mut wrong = Vec::new();
    for (turn, depth) in (0..).zip([2, 5, 8, 17, 40, 100]) {
        for called in [false, true].into_iter().filter(|called| on_turn(depth > 17, turn as usize, *called)) {
            let name = format!("nest {depth} {called}");
            wrong.extend(judge(&name, &Program::nest(depth, called), turn, ptxas.as_deref()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
