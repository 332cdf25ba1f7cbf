//! The engines that launches are compared on.
//!
//! An engine takes the text of one kernel, a launch and the compile options, and returns the
//! arguments after the launch. A refusal (the compiler or the engine lacks something and names it)
//! is distinguished from a failure.

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

/// How to compile a kernel.
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
    /// Something is unsupported, and the message names it.
    Refused(String),
    /// The run failed.
    Wrong(String),
}

pub type Ran = Result<Vec<ArgValue>, Failure>;

fn shape(launch: &Launch) -> Shape {
    Shape { grid: launch.grid, block: launch.block, smem: launch.smem }
}

/// The first lines of a message, joined into one line.
fn short(message: &str) -> String {
    message.lines().filter(|l| !l.trim().is_empty()).take(3).collect::<Vec<_>>().join(" | ").chars().take(400).collect()
}

/// A panic counts as a failure, and the other launches continue.
pub fn guarded<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(Failure::Wrong(format!("panicked: {}", text.unwrap_or_default())))
    })
}

/// Runs a cubin on the simulator; a report is a failure.
pub fn on_the_machine(cubin: &[u8], launch: &Launch) -> Ran {
    let mut values = launch.arg_values();
    let ran = run_as(cubin, &launch.kernel, shape(launch), &mut values, Run::default());
    match ran.and_then(|outcome| outcome.clean()) {
        Ok(_) => Ok(values),
        Err(fault) => Err(failure(&fault)),
    }
}

/// The same with a jitter seed; also returns whether functions were executed whose last place
/// `noise` changes.
pub fn jittered(cubin: &[u8], launch: &Launch, seed: u64, noise: bool) -> Result<(Vec<ArgValue>, bool), Failure> {
    let mut values = launch.arg_values();
    let how = Run { jitter: Some(seed), noise, ..Run::default() };
    let ran = run_as(cubin, &launch.kernel, shape(launch), &mut values, how);
    let outcome = ran.map_err(|fault| failure(&fault))?;
    let approximate = outcome.counts.contains_key("MUFU");
    outcome.clean().map_err(|fault| failure(&fault))?;
    Ok((values, approximate))
}

/// A failure that says that the engine lacks something is a refusal.
fn failure(fault: &Fault) -> Failure {
    let message = fault.to_string();
    if fault.is_refused() { Failure::Refused(message) } else { Failure::Wrong(message) }
}

/// Compiles with this compiler.
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

/// The result of running ptxas's cubin.
pub struct Finished {
    pub values: Vec<ArgValue>,
    /// Whether functions were executed whose last place jitter may change.
    pub approximate: bool,
    /// Hazards by our latency tables: the key of each for `hazards`, and the report. With hazards,
    /// the values are those of a run without timing.
    pub hazards: Vec<(String, String)>,
}

/// Runs ptxas's cubin on the simulator, with jitter if there is a seed. A report other than a
/// hazard is a failure.
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
    // The values then come from a run without timing, since the hazard corrupts those with timing.
    let (values, outcome) = run(Run { timed: false, ..how })?;
    outcome.clean().map_err(|fault| failure(&fault))?;
    Ok(Finished { values, approximate, hazards })
}

/// Compiles with ptxas; a cubin of the same text is reused from the build folder.
pub fn ptxas(ptxas: &Path, source: &str, how: &How) -> Result<Vec<u8>, Failure> {
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
    // Renamed into place, since another test may look for it at the same time.
    std::fs::rename(&to, &kept).map_err(io)?;
    std::fs::read(&kept).map_err(io)
}

/// Interprets the PTX text.
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
