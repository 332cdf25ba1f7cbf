//! The engines that run a program: the interpreter, our cubins, those of ptxas.

use sassafras::compile::{Options, compile};
use sassafras::sim;
use sassafras::sim::fault::{Fault, Kind};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::report::Report;
use sassafras::sim::run::{How, Outcome, Shape, run_as};

/// Instruction limits of a program: on the simulator, and on the interpreter, which counts each
/// thread.
const STEPS: u64 = 8_000_000;
const THREAD_STEPS: u64 = 60_000_000;

/// Why a run has no values.
pub enum Failure {
    /// The program exceeds the limit.
    Long,
    Wrong(String),
}

pub type Numbers = Result<Vec<u32>, Failure>;
/// The values of a run and its reports.
pub type Ran = Result<(Vec<u32>, Vec<Report>), Failure>;

fn shape(threads: u32) -> Shape {
    Shape { grid: [1, 1, 1], block: [threads, 1, 1], smem: 0 }
}

fn arguments(threads: u32) -> [ArgValue; 1] {
    [ArgValue::Buffer { bytes: vec![0xa5; 4 * threads as usize], writable: true }]
}

fn numbers(values: &[ArgValue]) -> Vec<u32> {
    let ArgValue::Buffer { bytes, .. } = &values[0] else { return Vec::new() };
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn failure(fault: &Fault) -> Failure {
    if fault.kind == Kind::StepLimit {
        Failure::Long
    } else {
        Failure::Wrong(format!("{}: {fault}", fault.kind.name()))
    }
}

/// A panic counts as a failure of this program, and the others continue.
fn guarded<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Failure::Wrong("panicked".into())))
}

/// Runs the PTX text on the interpreter. Returns its values and reports.
pub fn interpreted(ptx: &str, threads: u32) -> Ran {
    guarded(|| {
        let (module, diagnostics) = sim::ptx::parse(ptx.as_bytes());
        let refused = || diagnostics.iter().map(|d| d.render("ptx", ptx)).collect::<String>();
        let module = module.ok_or_else(|| Failure::Wrong(refused()))?;
        let mut values = arguments(threads);
        let (outcome, done) = sim::ptx::run_within(&module, "kern", shape(threads), &mut values, THREAD_STEPS);
        done.map(|()| (numbers(&values), outcome.reports)).map_err(|fault| failure(&fault))
    })
}

/// Runs our cubin.
pub fn ours(ptx: &str, target: &str, level: u8) -> Result<Vec<u8>, Failure> {
    guarded(|| {
        let options = Options { opt_level: level, verify_ir: true, ..Options::new(target) };
        compile(ptx, &options).map(|output| output.cubin).map_err(|all| {
            Failure::Wrong(format!("refused: {}", all.iter().map(|d| d.render("ptx", ptx)).collect::<String>()))
        })
    })
}

/// Runs a cubin on the simulator. Returns its values and reports; with hazards, the values are
/// those of a run without timing.
pub fn run(cubin: &[u8], threads: u32) -> Ran {
    guarded(|| {
        let (values, outcome) = once(cubin, threads, true)?;
        let hazard = |outcome: &Outcome| outcome.reports.iter().any(|r| r.fault.kind == Kind::Hazard);
        if !hazard(&outcome) {
            return ended(values, outcome);
        }
        let reports = outcome.reports;
        let (values, outcome) = once(cubin, threads, false)?;
        ended(values, outcome).map(|(numbers, more)| (numbers, [reports, more].concat()))
    })
}

fn once(cubin: &[u8], threads: u32, timed: bool) -> Result<([ArgValue; 1], Outcome), Failure> {
    let mut values = arguments(threads);
    let how = How { timed, step_limit: STEPS, ..How::default() };
    let outcome = run_as(cubin, "kern", shape(threads), &mut values, how).map_err(|fault| failure(&fault))?;
    Ok((values, outcome))
}

fn ended(values: [ArgValue; 1], outcome: Outcome) -> Ran {
    match outcome.reports.last().filter(|_| !outcome.ended) {
        Some(report) if report.fault.kind == Kind::StepLimit => Err(Failure::Long),
        Some(report) => Err(Failure::Wrong(report.to_string())),
        None => Ok((numbers(&values), outcome.reports)),
    }
}
