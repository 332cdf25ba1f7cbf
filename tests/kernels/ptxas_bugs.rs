//! Kernels that ptxas compiles incorrectly: our code is right, and the code of ptxas gives the
//! recorded wrong values on the simulator.
//!
//! The input is tests/oracle/ptxas-bugs, NAME.ron and the module that it names; a row of README.md
//! there says on which targets and at which levels ptxas is wrong. The first launch of a
//! description has the right values, each further one the wrong values of ptxas's code on the
//! targets that it names. Interpreter and our code must give the right values on all targets, at
//! -O0 to -O3; the code of ptxas must give exactly the recorded wrong values where its row says so,
//! and the right ones elsewhere; every recorded value must occur. The code of ptxas runs without
//! timing and checks: uninitialised data count as the zeros that the simulator starts with, and a
//! fault (such as an out-of-bounds access) gives no values, except a deadlock where the row says
//! that it hangs. Without ptxas its half is skipped.
//! The second table of README.md lists kernels that are no PTX: we refuse them, and the code of the
//! releases of ptxas that take them gives the recorded values.

use crate::simulate_ptxas_support;
use crate::simulate_ptxas_support::{Tools, tool};
use sassafras::compile::{Options, compile};
use sassafras::cubin::{self, Cubin};
use sassafras::sim;
use sassafras::sim::launch::{ArgValue, Launch, LaunchFile};
use sassafras::sim::run::{How, Shape, decode, run_decoded};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const TARGETS: [&str; 5] = ["75", "80", "90", "100", "120"];
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
/// Levels of ptxas.
const PTXAS: [&str; 2] = ["-O0", "-O3"];

/// The heading of the second table of README.md.
const TAKEN: &str = "## What ptxas takes and the ISA does not have";
/// The releases of ptxas, and where they are installed.
const RELEASES: [(&str, &str); 2] = [("13.0.88", "ptxas"), ("13.5.37", "13.5/ptxas")];

/// What a row of README.md begins with whose code never ends.
const HANGS: &str = "hangs: ";

/// A row of README.md: name, targets, levels, and whether the code never ends.
struct Row {
    name: String,
    targets: String,
    levels: String,
    hangs: bool,
}

impl Row {
    fn wrong_at(&self, sm: &str, level: &str) -> bool {
        let has = |list: &str, word: &str| list.split_whitespace().any(|w| w == word);
        let elsewhere = |word: &str| {
            let parts = word.split_once('!').filter(|(at, _)| *at == level);
            parts.is_some_and(|(_, but)| but != format!("sm_{sm}"))
        };
        let there = self.targets == "all" || has(&self.targets, &format!("sm_{sm}"));
        there && (has(&self.levels, level) || self.levels.split_whitespace().any(elsewhere))
    }

    /// The result of a run, as the launch of its values; that of a kernel that hangs, as it should,
    /// is behind its launches.
    fn result(&self, ran: Result<usize, String>, launches: &[Launch]) -> Result<usize, String> {
        let stuck = |said: &str| ["deadlock", "do not reach the barrier"].iter().any(|kind| said.contains(kind));
        ran.or_else(|said| if self.hangs && stuck(&said) { Ok(launches.len()) } else { Err(said) })
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/ptxas-bugs")
}

/// The rows of both tables, five cells each.
fn tables() -> [Vec<[String; 5]>; 2] {
    let text = std::fs::read_to_string(folder().join("README.md")).expect("the list");
    let (first, second) = text.split_once(TAKEN).expect("both tables");
    let cells = |line: &str| {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect();
        let cells: [String; 5] = cells.try_into().unwrap_or_else(|_| panic!("not five cells: {line}"));
        assert!(cells.iter().all(|cell| !cell.is_empty()), "{line} says what is wrong");
        cells
    };
    let rows = |part: &str| {
        part.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| name ")).map(cells).collect::<Vec<_>>()
    };
    [rows(first), rows(second)]
}

fn rows() -> Vec<Row> {
    let [wrong, _] = tables();
    let row = |[name, targets, levels, what, _]: [String; 5]| {
        let hangs = what.starts_with(HANGS);
        Row { name, targets, levels, hangs }
    };
    wrong.into_iter().map(row).collect()
}

/// The index of the launch whose values equal those that a run of the first launch gave; if there
/// is none, the values.
fn place(launches: &[Launch], sm: Option<&str>, args: &[ArgValue]) -> Result<usize, String> {
    let target = sm.map(|sm| format!("sm_{sm}"));
    let wanted = |l: &Launch| target.as_ref().is_none_or(|target| l.wants(target));
    let fits = |(at, l): &(usize, &Launch)| (*at == 0 || wanted(l)) && l.check(args).is_ok();
    let differs = || {
        let all = launches[0].check(args).err().unwrap_or_default();
        let numbers = |value: &ArgValue| match value {
            ArgValue::Buffer { bytes, writable: true } => {
                let words =
                    bytes.chunks(4).map(|b| b.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte)));
                format!("{:?}", words.collect::<Vec<_>>())
            }
            _ => String::new(),
        };
        let all = all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        format!("not recorded: {all}: the words are {}", args.iter().map(numbers).collect::<String>())
    };
    launches.iter().enumerate().find(fits).map(|(at, _)| at).ok_or_else(differs)
}

/// The index of the launch with a cubin's values. Fails if the cubin does not run to its end or,
/// with checks, has a report.
fn runs(cubin: &Cubin, launches: &[Launch], sm: &str, watched: bool) -> Result<usize, String> {
    let launch = &launches[0];
    let mut args = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    let code = decode(cubin, &launch.kernel).map_err(|fault| fault.to_string())?;
    let how = How { watched, timed: watched, ..How::default() };
    let ran = run_decoded(cubin, &launch.kernel, shape, &mut args, &code, how);
    ran.and_then(|outcome| outcome.clean()).map_err(|fault| fault.to_string())?;
    place(launches, Some(sm), &args)
}

fn interpreted(source: &str, launches: &[Launch]) -> Result<usize, String> {
    let module = sim::ptx::parse(source.as_bytes()).0.ok_or("it does not parse")?;
    let launch = &launches[0];
    let mut args = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    sim::ptx::run(&module, &launch.kernel, shape, &mut args).map_err(|fault| fault.to_string())?;
    place(launches, None, &args)
}

fn ours(source: &str, launches: &[Launch], sm: &str, opt_level: u8) -> Result<usize, String> {
    let options = Options { opt_level, ..Options::new(&format!("sm_{sm}")) };
    let made = compile(source, &options).map_err(|errors| format!("{:?}", errors.first().map(|e| &e.message)))?;
    runs(&cubin::read(&made.cubin).map_err(|error| error.to_string())?, launches, sm, true)
}

/// What is needed to judge a kernel.
struct Case {
    row: Row,
    file: LaunchFile,
    source: String,
}

impl Case {
    fn of(row: Row) -> Case {
        let file = LaunchFile::load(&folder().join(format!("{}.ron", row.name))).unwrap_or_else(|e| panic!("{e}"));
        let source = std::fs::read_to_string(&file.module).expect("its module");
        let described =
            |l: &Launch| l.kernel == file.launches[0].kernel && l.arg_values() == file.launches[0].arg_values();
        assert!(
            (file.launches.len() > 1) != row.hangs && file.launches.iter().all(described),
            "{}: right and wrong numbers, or it hangs",
            row.name
        );
        Case { row, file, source }
    }

    /// Runs the interpreter and our code, everywhere.
    fn ours_are_right(&self, wrong: &mut Vec<String>) {
        let launches = &self.file.launches;
        let mut expect = |what: String, ran: Result<usize, String>| {
            if ran != Ok(0) {
                wrong.push(format!("{} {what}: {ran:?}, and launch 0 has the right numbers", self.row.name));
            }
        };
        expect("interpreter".into(), interpreted(&self.source, launches));
        for sm in TARGETS {
            for (number, level) in LEVELS.iter().enumerate() {
                expect(format!("sm_{sm} {level} ours"), ours(&self.source, launches, sm, number as u8));
            }
        }
    }

    /// Runs the code of ptxas. Returns how often it gave the recorded wrong values.
    fn theirs_are_wrong(&self, tools: &Tools, wrong: &mut Vec<String>) -> usize {
        let launches = &self.file.launches;
        let (mut seen, mut shown) = (BTreeSet::new(), 0);
        for (sm, level) in TARGETS.iter().flat_map(|sm| PTXAS.map(|level| (sm, level))) {
            let made = simulate_ptxas_support::compile_alone(tools, &self.file.module, sm, level);
            let ran = self.row.result(made.and_then(|cubin| runs(&cubin, launches, sm, false)), launches);
            let is_wrong = self.row.wrong_at(sm, level);
            if !ran.as_ref().is_ok_and(|at| (*at > 0) == is_wrong) {
                let expected = if is_wrong { "one of its wrong numbers" } else { "the right ones" };
                wrong.push(format!("{} sm_{sm} {level} ptxas: {ran:?}, expected {expected}", self.row.name));
            }
            shown += usize::from(ran.as_ref().is_ok_and(|at| *at > 0));
            seen.extend(ran);
        }
        let stale = (1..launches.len()).filter(|at| !seen.contains(at));
        wrong.extend(stale.map(|at| format!("{}: nobody gives the numbers of launch {at}", self.row.name)));
        shown
    }
}

#[test]
fn ours_are_right_and_ptxas_wrong() {
    let cases: Vec<Case> = rows().into_iter().map(Case::of).collect();
    let entries = std::fs::read_dir(folder()).expect("a folder").flatten().map(|e| e.path());
    let files = entries.filter(|p| p.extension().is_some_and(|e| e == "ron")).count();
    assert_eq!(files, cases.len() + tables()[1].len(), "a row for each kernel");
    let tools = tool("ptxas").zip(tool("nvdisasm")).map(|(ptxas, nvdisasm)| Tools { ptxas, nvdisasm, newest: false });
    let (mut wrong, mut shown) = (Vec::new(), 0);
    for case in &cases {
        case.ours_are_right(&mut wrong);
        shown += tools.as_ref().map_or(0, |tools| case.theirs_are_wrong(tools, &mut wrong));
    }
    println!("{} kernels; ptxas's code gave the recorded wrong numbers {shown} times", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the code of a release gives for the one launch of a description; `None` if it refuses the
/// module.
fn taken(ptxas: &Path, file: &LaunchFile, sm: &str, level: &str) -> Option<Result<usize, String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let cubin = folder.path().join("a.cubin");
    let mut run = std::process::Command::new(ptxas);
    run.args([&format!("-arch=sm_{sm}"), level]).arg(&file.module).arg("-o").arg(&cubin);
    let done = run.output().expect("ptxas runs");
    let read = || cubin::read(&std::fs::read(&cubin).expect("its cubin")).expect("its cubin is read");
    done.status.success().then(|| runs(&read(), &file.launches, sm, false))
}

#[test]
fn what_the_isa_does_not_have_is_refused() {
    let [_, rows] = tables();
    assert!(!rows.is_empty(), "kernels that are no PTX");
    let (mut wrong, mut shown) = (Vec::new(), 0);
    for [name, releases, targets, ..] in &rows {
        let file = LaunchFile::load(&folder().join(format!("{name}.ron"))).unwrap_or_else(|e| panic!("{e}"));
        let source = std::fs::read_to_string(&file.module).expect("its module");
        for sm in targets.split_whitespace().map(|target| target.trim_start_matches("sm_")) {
            for opt_level in 0..4 {
                let options = Options { opt_level, ..Options::new(&format!("sm_{sm}")) };
                let refused = compile(&source, &options).is_err();
                wrong.extend((!refused).then(|| format!("{name} sm_{sm} -O{opt_level}: ours takes it")));
            }
            for (release, place) in RELEASES {
                let Some(ptxas) = tool(place) else { continue };
                for level in PTXAS {
                    let (expected, given) = (releases.contains(release), taken(&ptxas, &file, sm, level));
                    shown += usize::from(given.is_some());
                    if given != expected.then_some(Ok(0)) {
                        wrong.push(format!("{name} sm_{sm} {level} ptxas {release}: {given:?}, taken: {expected}"));
                    }
                }
            }
        }
    }
    println!("{} kernels; ptxas's code gave the recorded numbers {shown} times", rows.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
