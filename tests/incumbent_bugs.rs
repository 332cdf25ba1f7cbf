//! Kernels that the incumbent compiles wrongly: ours are right, and its code shows the wrong numbers on the machine.
//!
//! Input: tests/oracle/incumbent-bugs, NAME.ron and the module that it names; a row of README.md there says on which targets and at which
//! levels the incumbent is wrong. Checked: interpreter and our code give the numbers on all targets at -O0 and -O3; the incumbent's give
//! others exactly where its row says so. Its numbers are judged without time. Without the incumbent its half is skipped.

#[allow(dead_code, reason = "this test compiles and does not compare listings")]
#[path = "machine_support/mod.rs"]
mod machine_support;

use machine_support::{Tools, tool};
use sassafras::compile::{Options, compile};
use sassafras::cubin::{self, Cubin};
use sassafras::sim;
use sassafras::sim::launch::{Launch, LaunchFile};
use sassafras::sim::run::{How, Shape, decode, run_decoded};
use std::path::{Path, PathBuf};

const TARGETS: [&str; 5] = ["75", "80", "90", "100", "120"];
const LEVELS: [&str; 2] = ["-O0", "-O3"];

/// A row of README.md: name, targets, levels.
struct Row {
    name: String,
    targets: String,
    levels: String,
}

impl Row {
    fn wrong_at(&self, sm: &str, level: &str) -> bool {
        let has = |list: &str, word: &str| list.split_whitespace().any(|w| w == word);
        (self.targets == "all" || has(&self.targets, &format!("sm_{sm}"))) && has(&self.levels, level)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/incumbent-bugs")
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(folder().join("README.md")).expect("the list");
    let rows = text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| name "));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, targets, levels, what, isa] = cells[..] else { panic!("not five cells: {line}") };
        assert!(!what.is_empty() && !isa.is_empty(), "{name} says what is wrong");
        Row { name: name.into(), targets: targets.into(), levels: levels.into() }
    };
    rows.map(row).collect()
}

/// Whether the numbers of a cubin are the expected ones; an error where it does not run.
fn right(cubin: &Cubin, launch: &Launch, timed: bool) -> Result<bool, String> {
    let mut args = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    let code = decode(cubin, &launch.kernel).map_err(|fault| fault.to_string())?;
    let ran = run_decoded(cubin, &launch.kernel, shape, &mut args, &code, How { timed, ..How::default() });
    match ran.and_then(|outcome| outcome.clean()) {
        Ok(_) => Ok(launch.check(&args).is_ok()),
        // What has no value, or lies outside of all memory, is as wrong as a number.
        Err(fault) if !fault.is_refused() && !timed => Ok(false),
        Err(fault) => Err(fault.to_string()),
    }
}

fn interpreted(source: &str, launch: &Launch) -> Result<bool, String> {
    let module = sim::ptx::parse(source.as_bytes()).0.ok_or("it does not parse")?;
    let mut args = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    sim::ptx::run(&module, &launch.kernel, shape, &mut args).map_err(|fault| fault.to_string())?;
    Ok(launch.check(&args).is_ok())
}

fn ours(source: &str, launch: &Launch, sm: &str, level: &str) -> Result<bool, String> {
    let opt_level = if level == "-O0" { 0 } else { 3 };
    let options = Options { opt_level, ..Options::new(&format!("sm_{sm}")) };
    let made = compile(source, &options).map_err(|errors| format!("{:?}", errors.first().map(|e| &e.message)))?;
    right(&cubin::read(&made.cubin).map_err(|error| error.to_string())?, launch, true)
}

#[test]
fn ours_are_right_and_the_incumbents_wrong() {
    let rows = rows();
    let entries = std::fs::read_dir(folder()).expect("a folder").flatten().map(|e| e.path());
    let files = entries.filter(|p| p.extension().is_some_and(|e| e == "ron")).count();
    assert_eq!(files, rows.len(), "a row for each kernel");
    let tools = tool("ptxas").zip(tool("nvdisasm")).map(|(ptxas, nvdisasm)| Tools { ptxas, nvdisasm });
    let (mut wrong, mut shown) = (Vec::new(), 0);
    for row in &rows {
        let file = LaunchFile::load(&folder().join(format!("{}.ron", row.name))).unwrap_or_else(|e| panic!("{e}"));
        let source = std::fs::read_to_string(&file.module).expect("its module");
        let launch = &file.launches[0];
        let mut expect = |what: String, ran: Result<bool, String>, expected: bool| {
            if ran != Ok(expected) {
                wrong.push(format!("{} {what}: {ran:?}, expected {expected}", row.name));
            }
        };
        expect("interpreter".into(), interpreted(&source, launch), true);
        for sm in TARGETS {
            for level in LEVELS {
                expect(format!("sm_{sm} {level} ours"), ours(&source, launch, sm, level), true);
                let Some(tools) = &tools else { continue };
                let made = machine_support::compile(tools, &file.module, sm, level);
                let ran = made.and_then(|made| right(&made.cubin, launch, false));
                shown += usize::from(ran == Ok(false));
                expect(format!("sm_{sm} {level} incumbent"), ran, !row.wrong_at(sm, level));
            }
        }
    }
    println!("{} kernels; the incumbent's code gave wrong numbers {shown} times", rows.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
