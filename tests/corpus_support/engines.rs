//! The engines that launches are compared on.
//!
//! Input: the text of one kernel, a launch, how to compile. Output: the arguments after the launch. Invariant: a refusal
//! (the compiler or the engine lacks something and names it) is told apart from a fault of what ran.

use super::hazards;
use sassafras::compile::{Options, compile};
use sassafras::cubin;
use sassafras::sim;
use sassafras::sim::fault::{Fault, Kind};
use sassafras::sim::launch::{ArgValue, Launch};
use sassafras::sim::run::{How as Run, Shape, run_as};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a kernel is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct How {
    pub target: String,
    pub level: u8,
    pub registers: Option<u32>,
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} -O{}", self.target, self.level)?;
        self.registers.map_or(Ok(()), |n| write!(f, " {n} registers"))
    }
}

/// Why there is no result.
#[derive(Debug)]
pub enum Failure {
    /// Something is not built, and the message names it.
    Refused(String),
    /// What ran went wrong.
    Wrong(String),
}

pub type Ran = Result<Vec<ArgValue>, Failure>;

fn shape(launch: &Launch) -> Shape {
    Shape { grid: launch.grid, block: launch.block, smem: launch.smem }
}

/// The first lines of a message, on one line.
fn short(message: &str) -> String {
    message.lines().filter(|l| !l.trim().is_empty()).take(3).collect::<Vec<_>>().join(" | ").chars().take(400).collect()
}

/// A panic is a fault of what panics, and the other launches go on.
pub fn guarded<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(Failure::Wrong(format!("panicked: {}", text.unwrap_or_default())))
    })
}

/// A cubin on the machine; a report is a failure.
pub fn on_the_machine(cubin: &[u8], launch: &Launch) -> Ran {
    let mut values = launch.arg_values();
    let ran = run_as(cubin, &launch.kernel, shape(launch), &mut values, Run::default());
    match ran.and_then(|outcome| outcome.clean()) {
        Ok(_) => Ok(values),
        Err(fault) => Err(failure(&fault)),
    }
}

/// The same under a seed's jitter, and whether functions were executed whose last place that changes where it has `noise`.
pub fn jittered(cubin: &[u8], launch: &Launch, seed: u64, noise: bool) -> Result<(Vec<ArgValue>, bool), Failure> {
    let mut values = launch.arg_values();
    let how = Run { jitter: Some(seed), noise, ..Run::default() };
    let ran = run_as(cubin, &launch.kernel, shape(launch), &mut values, how);
    let outcome = ran.map_err(|fault| failure(&fault))?;
    let approximate = outcome.counts.contains_key("MUFU");
    outcome.clean().map_err(|fault| failure(&fault))?;
    Ok((values, approximate))
}

/// A fault that says that the engine lacks something is a refusal.
fn failure(fault: &Fault) -> Failure {
    let message = fault.to_string();
    if fault.is_refused() { Failure::Refused(message) } else { Failure::Wrong(message) }
}

/// A cubin of ours.
pub fn ours(source: &str, how: &How) -> Result<Vec<u8>, Failure> {
    let mut options = Options { verify_ir: true, opt_level: how.level, fmad: false, ..Options::new(&how.target) };
    if how.registers.is_some() {
        (options.max_registers, options.override_directives) = (how.registers, true);
    }
    let output = compile(source, &options).map_err(|diagnostics| {
        Failure::Refused(short(&diagnostics.iter().map(|d| d.render("ptx", source)).collect::<String>()))
    })?;
    Ok(output.cubin)
}

/// What a run of the incumbent's cubin gave.
pub struct Finished {
    pub values: Vec<ArgValue>,
    /// Whether functions were executed whose last place jitter may change.
    pub approximate: bool,
    /// Its hazards by our tables: the key of each in `hazards`, and the report. Where there are any, the values are those without time.
    pub hazards: Vec<(String, String)>,
}

/// The incumbent's cubin on the machine, jittered where there is a seed; a report of another kind than a hazard is a failure.
pub fn theirs(cubin: &[u8], launch: &Launch, jitter: Option<u64>, noise: bool) -> Result<Finished, Failure> {
    let how = Run { jitter, noise, ..Run::default() };
    let run = |how: Run| {
        let mut values = launch.arg_values();
        let ran = run_as(cubin, &launch.kernel, shape(launch), &mut values, how);
        ran.map(|outcome| (values, outcome)).map_err(|fault| failure(&fault))
    };
    let (values, outcome) = run(how)?;
    let approximate = outcome.counts.contains_key("MUFU");
    let only_hazards = !outcome.reports.is_empty() && outcome.reports.iter().all(|r| r.fault.kind == Kind::Hazard);
    if !only_hazards {
        outcome.clean().map_err(|fault| failure(&fault))?;
        return Ok(Finished { values, approximate, hazards: Vec::new() });
    }
    let read = cubin::read(cubin).map_err(|error| Failure::Wrong(error.to_string()))?;
    let key = |report| (hazards::key(&read, &launch.kernel, report), report.to_string());
    let hazards = outcome.reports.iter().map(key).collect();
    // What it computes is judged without time, then: with time it is spoilt.
    let (values, outcome) = run(Run { timed: false, ..how })?;
    outcome.clean().map_err(|fault| failure(&fault))?;
    Ok(Finished { values, approximate, hazards })
}

/// Compiled by the incumbent; what was made before from the same text is taken from the build folder.
pub fn incumbent(ptxas: &Path, source: &str, how: &How) -> Result<Vec<u8>, Failure> {
    assembled(ptxas, source, how).map_err(|message| Failure::Wrong(short(&message)))
}

fn assembled(ptxas: &Path, source: &str, how: &How) -> Result<Vec<u8>, String> {
    let mut hasher = std::hash::DefaultHasher::new();
    (source, how.level, &how.target).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    let kept: PathBuf = folder.join(format!("{:016x}.cubin", hasher.finish()));
    if let Ok(bytes) = std::fs::read(&kept) {
        return Ok(bytes);
    }
    let io = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&folder).map_err(io)?;
    let work = tempfile::tempdir_in(&folder).map_err(io)?;
    let (from, to) = (work.path().join("a.ptx"), work.path().join("a.cubin"));
    std::fs::write(&from, source).map_err(io)?;
    let mut command = Command::new(ptxas);
    command.args(["-arch", &how.target, &format!("-O{}", how.level), "--fmad=false"]).arg(&from).arg("-o").arg(&to);
    let output = command.output().map_err(io)?;
    if !output.status.success() {
        return Err(format!("ptxas: {}", String::from_utf8_lossy(&output.stderr)));
    }
    // Renamed into place: another test may look for it at the same time.
    std::fs::rename(&to, &kept).map_err(io)?;
    std::fs::read(&kept).map_err(io)
}

/// Interpreted from its text.
pub fn interpreted(source: &str, launch: &Launch) -> Ran {
    let (module, diagnostics) = sim::ptx::parse(source.as_bytes());
    let Some(module) = module else {
        let text = diagnostics.iter().map(|d| d.render("ptx", source)).collect::<String>();
        return Err(Failure::Refused(short(&text)));
    };
    let mut values = launch.arg_values();
    match sim::ptx::run(&module, &launch.kernel, shape(launch), &mut values) {
        Ok(_) => Ok(values),
        Err(fault) => Err(failure(&fault)),
    }
}
