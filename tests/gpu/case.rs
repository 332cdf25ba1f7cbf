//! Runs the launches of one description on the GPU and on the simulator, each compared with the
//! interpreter.
//!
//! Every launch of the file gets a row (`report`) per cubin, or one row with the reason if it is
//! not run.

use super::{card, report::row};
use sassafras::compile::{Options, compile};
use sassafras::gpu::Card;
use sassafras::sim;
use sassafras::sim::launch::{Launch, LaunchFile};
use sassafras::sim::run::{How, Shape, run_as};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Number of timed runs of a kernel.
const REPEATS: usize = 20;

/// Runs all launches of a description.
pub fn run(path: &Path) -> ExitCode {
    let card = card().unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let alone =
        |kernel: &str, target: &str, why: &str| print!("{}", row([&name, kernel, target, "-", why, "-", "-", "-"]));
    let file = match LaunchFile::load(path) {
        Ok(file) => file,
        Err(error) => {
            alone("-", "-", &format!("the description cannot be read: {error}"));
            return ExitCode::SUCCESS;
        }
    };
    let Ok(text) = std::fs::read_to_string(&file.module) else {
        alone("-", "-", &format!("skipped: {} is not there", file.module.display()));
        return ExitCode::SUCCESS;
    };
    let (major, minor) = card.capability;
    let Some(target) = card.target_for(&text) else {
        alone("-", "-", &format!("skipped: capability {major}.{minor} is no target"));
        return ExitCode::SUCCESS;
    };
    for launch in &file.launches {
        if !file.allows(target.name) || !launch.wants(target.name) {
            alone(&launch.kernel, target.name, &format!("skipped: not for {}", target.name));
            continue;
        }
        if launch.has_textures() {
            alone(&launch.kernel, target.name, "skipped: its textures are not made on a GPU");
            continue;
        }
        match launch.source(&text) {
            Ok(source) => compared(&card, (&name, launch), &source, target.name),
            Err(error) => alone(&launch.kernel, target.name, &error),
        }
    }
    ExitCode::SUCCESS
}

/// A row per cubin of a launch: the verdicts of the GPU and the simulator, its time, and the ratio
/// of ours to ptxas's.
fn compared(card: &Card, (name, launch): (&str, &Launch), source: &str, target: &str) {
    let expected = match expected(launch, source) {
        Ok(expected) => expected,
        Err(error) => return print!("{}", row([name, &launch.kernel, target, "-", &error, "-", "-", "-"])),
    };
    let mut theirs = None;
    for (how, cubin) in cubins(source, target) {
        let (on_card, machine) = match &cubin {
            Ok(cubin) => (on(card, cubin, launch, &expected), on_the_machine(cubin, launch, &expected)),
            Err(error) => (Err(error.clone()), Err("-".to_string())),
        };
        let time = on_card.as_ref().ok().copied();
        if how == THEIRS {
            theirs = time.filter(|ms| *ms > 0.0);
        }
        let ratio = time.zip(theirs).filter(|_| how != THEIRS).map(|(ours, theirs)| format!("{:.2}", ours / theirs));
        let ms = time.map_or("-".to_string(), |ms| format!("{ms:.4}"));
        let said = |result: Result<(), String>| result.map_or_else(|error| error, |()| "right".to_string());
        let (on_card, machine) = (said(on_card.map(|_| ())), said(machine));
        print!(
            "{}",
            row([name, &launch.kernel, target, how, &on_card, &machine, &ms, ratio.as_deref().unwrap_or("-")])
        );
    }
}

/// The launch, with the interpreter's values as expected values if it requests them.
fn expected(launch: &Launch, source: &str) -> Result<Launch, String> {
    let (module, _) = sim::ptx::parse(source.as_bytes());
    let module = module.ok_or("the interpreter does not read it")?;
    let mut values = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    match sim::ptx::run(&module, &launch.kernel, shape, &mut values) {
        Ok(_) => Ok(launch.expecting(&values)),
        Err(fault) => Err(format!("interpreter: {fault}")),
    }
}

/// Runs a cubin on the simulator and compares it with the interpreter's values.
fn on_the_machine(cubin: &[u8], launch: &Launch, expected: &Launch) -> Result<(), String> {
    let mut values = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    let ran = run_as(cubin, &launch.kernel, shape, &mut values, How::default());
    ran.and_then(|outcome| outcome.clean()).map_err(|fault| fault.to_string())?;
    expected.check(&values).map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

type Made = Result<Vec<u8>, String>;

/// Label of ptxas's cubin.
const THEIRS: &str = "ptxas -O3";
/// Labels of our cubins, by level.
const OURS: [&str; 4] = ["ours -O0", "ours -O1", "ours -O2", "ours -O3"];

/// The cubins to run, by label: ptxas's first, since the times of ours are compared with it.
fn cubins(source: &str, target: &str) -> Vec<(&'static str, Made)> {
    let ours = |opt_level| {
        let options = Options { opt_level, fmad: false, ..Options::new(target) };
        let error = |all: Vec<sassafras::Diagnostic>| all.into_iter().map(|d| d.message).collect::<Vec<_>>().join("; ");
        compile(source, &options).map(|o| o.cubin).map_err(error)
    };
    let tool = Path::new("target/vendor/ptxas");
    let theirs = tool.exists().then(|| (THEIRS, ptxas(tool, source, target)));
    theirs.into_iter().chain((0..).zip(OURS).map(|(level, name)| (name, ours(level)))).collect()
}

fn ptxas(ptxas: &Path, source: &str, target: &str) -> Made {
    let folder = std::env::temp_dir().join(format!("sassafras-gpu-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let (from, to) = (folder.join("k.ptx"), folder.join("k.cubin"));
    std::fs::write(&from, source).map_err(|e| e.to_string())?;
    let output = Command::new(ptxas).args(["-arch", target, "--fmad=false"]).arg(from).arg("-o").arg(&to).output();
    let output = output.map_err(|e| e.to_string())?;
    let made = if output.status.success() {
        std::fs::read(&to).map_err(|e| e.to_string())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).replace(['\n', '\t'], " "))
    };
    _ = std::fs::remove_dir_all(folder);
    made
}

/// Runs it on the GPU. Returns the median of its times in milliseconds, or the error.
pub fn on(card: &Card, cubin: &[u8], launch: &Launch, expected: &Launch) -> Result<f32, String> {
    let mut values = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    // The loader checks what the cubin states.
    let mut times = card.run(cubin, &launch.kernel, shape, &mut values, REPEATS)?;
    expected.check(&values).map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    times.sort_by(f32::total_cmp);
    Ok(times[REPEATS / 2])
}
