//! Runs the launches of descriptions on the GPU and on the simulator, each compared with the
//! interpreter.
//!
//! Every launch of a file gets a row (`report`) per cubin, or one row with the reason if it is not
//! run. The simulator runs the project's own cases alone, since those that `SASSAFRAS_GPU_CASES`
//! names are judged by the tests that wrote them. Where the GPU differs from the interpreter and
//! leaves what ptxas's cubin leaves there, the row says so (`AS_THEIRS`): instructions that
//! approximate need not be the interpreter's. After an error of the GPU the process has no context
//! any more and ends (`LOST`). Kernels are timed one at a time, under a lock of a file.

use super::{card, report::row};
use sassafras::compile::{Options, compile};
use sassafras::gpu::Card;
use sassafras::sim;
use sassafras::sim::launch::{ArgValue, Launch, LaunchFile};
use sassafras::sim::run::{How, Shape, run_as};
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Number of timed runs of a kernel.
const REPEATS: usize = 20;
/// Exit status after an error of the GPU.
pub const LOST: u8 = 4;
/// Beginning of the line behind a description's rows.
pub const DONE: &str = "done ";
/// Verdict on a cubin that differs from the interpreter and agrees with ptxas's.
pub const AS_THEIRS: &str = "as ptxas's";

/// Runs all launches of the descriptions, but for the first rows of the first one.
pub fn run(paths: &[String], known: usize) -> ExitCode {
    let start = std::time::Instant::now();
    let card = card().unwrap();
    eprintln!("context in {:.2} s", start.elapsed().as_secs_f32());
    let mut rows = Rows { known };
    for path in paths {
        file(&card, Path::new(path), &mut rows);
        println!("{DONE}{path}");
        rows.known = 0;
    }
    ExitCode::SUCCESS
}

/// Rows of the current description that were printed by an earlier process.
struct Rows {
    known: usize,
}

impl Rows {
    /// Whether the next row is to be made.
    fn wanted(&mut self) -> bool {
        let wanted = self.known == 0;
        self.known = self.known.saturating_sub(1);
        wanted
    }

    /// Prints a row without a cubin, unless it is known.
    fn alone(&mut self, [name, kernel, target]: [&str; 3], why: &str) {
        if self.wanted() {
            print!("{}", row([name, kernel, target, "-", why, "-", "-", "-"]));
        }
    }
}

/// Runs all launches of a description.
fn file(card: &Card, path: &Path, rows: &mut Rows) {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let file = match LaunchFile::load(path) {
        Ok(file) => file,
        Err(error) => return rows.alone([&name, "-", "-"], &format!("the description cannot be read: {error}")),
    };
    let Ok(text) = std::fs::read_to_string(&file.module) else {
        return rows.alone([&name, "-", "-"], &format!("skipped: {} is not there", file.module.display()));
    };
    let (major, minor) = card.capability;
    let Some(target) = card.target_for(&text) else {
        return rows.alone([&name, "-", "-"], &format!("skipped: capability {major}.{minor} is no target"));
    };
    for launch in &file.launches {
        let place = [name.as_str(), &launch.kernel, target.name];
        if !file.allows(target.name) || !launch.wants(target.name) {
            rows.alone(place, &format!("skipped: not for {}", target.name));
        } else if launch.has_textures() {
            rows.alone(place, "skipped: its textures are not made on a GPU");
        } else {
            match launch.source(&text) {
                Ok(source) => compared(card, (&name, launch), &source, target.name, rows),
                Err(error) => rows.alone(place, &error),
            }
        }
    }
}

/// A row per cubin of a launch: the verdicts of the GPU and the simulator, its time, and the ratio
/// of ours to ptxas's. The process ends where the context is lost.
fn compared(card: &Card, (name, launch): (&str, &Launch), source: &str, target: &str, rows: &mut Rows) {
    let expected = match expected(launch, source) {
        Ok(expected) => expected,
        Err(error) => return rows.alone([name, &launch.kernel, target], &error),
    };
    let machine_too = std::env::var_os("SASSAFRAS_GPU_CASES").is_none();
    let (mut time_of_theirs, mut theirs) = (None, None);
    for (how, cubin) in cubins(source, target) {
        if !rows.wanted() {
            continue;
        }
        let (ran, machine) = match &cubin {
            Ok(cubin) if machine_too => (Some(on(card, cubin, launch)), said(on_the_machine(cubin, launch, &expected))),
            Ok(cubin) => (Some(on(card, cubin, launch)), "-".to_string()),
            Err(error) => (None, error.clone()),
        };
        let (mut on_card, mut time, mut lost) = ("-".to_string(), None, false);
        match ran {
            None => {}
            Some(Err(error)) => (on_card, lost) = (error, true),
            Some(Ok((values, ms))) => {
                on_card = said(judged(&expected, &values));
                if on_card != RIGHT && theirs.as_ref() == Some(&values) {
                    on_card = format!("{AS_THEIRS}: {on_card}");
                }
                time = Some(ms);
                if how == THEIRS {
                    (theirs, time_of_theirs) = (Some(values), time.filter(|ms| *ms > 0.0));
                }
            }
        }
        let ratio = time.zip(time_of_theirs).filter(|_| how != THEIRS);
        let ratio = ratio.map_or("-".to_string(), |(ours, theirs)| format!("{:.2}", ours / theirs));
        let ms = time.filter(|ms| *ms > 0.0).map_or("-".to_string(), |ms| format!("{ms:.4}"));
        print!("{}", row([name, &launch.kernel, target, how, &on_card, &machine, &ms, &ratio]));
        if lost {
            // Without the destructors: the driver may hang in them.
            std::process::exit(LOST.into());
        }
    }
}

/// Verdict on a cubin that gives the interpreter's values.
const RIGHT: &str = "right";

fn said(result: Result<(), String>) -> String {
    result.map_or_else(|error| error, |()| RIGHT.to_string())
}

/// Compares values with the expected ones.
fn judged(expected: &Launch, values: &[ArgValue]) -> Result<(), String> {
    expected.check(values).map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
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
    judged(expected, &values)
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

/// The values that a cubin leaves, and the median of its times in milliseconds.
type Ran = (Vec<ArgValue>, f32);

/// Runs it on the GPU. The error is the driver's, and the context is lost then.
pub fn on(card: &Card, cubin: &[u8], launch: &Launch) -> Result<Ran, String> {
    let mut values = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    // The loader checks what the cubin states. A kernel that hangs does so before it has the lock.
    card.run(cubin, &launch.kernel, shape, &mut values, 0)?;
    if std::env::var("SASSAFRAS_GPU_TIMES").is_ok_and(|text| text == "0") {
        return Ok((values, 0.0));
    }
    let alone = File::create(std::env::temp_dir().join("sassafras-gpu.lock")).and_then(|file| {
        file.lock()?;
        Ok(file)
    });
    let alone = alone.map_err(|e| e.to_string())?;
    let mut times = card.run(cubin, &launch.kernel, shape, &mut launch.arg_values(), REPEATS)?;
    drop(alone);
    times.sort_by(f32::total_cmp);
    Ok((values, times[REPEATS / 2]))
}

/// Runs it on the GPU and compares its values with the launch's own expectations.
pub fn right(card: &Card, cubin: &[u8], launch: &Launch) -> Result<(), String> {
    on(card, cubin, launch).and_then(|(values, _)| judged(launch, &values))
}
