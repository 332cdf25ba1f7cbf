//! The pass manager: runs the passes of `tables/passes.ron`, phase by phase.
//!
//! Every pass has a row and can be dumped, timed, verified and stopped after; an optional pass can
//! be disabled. After a pass, analyses that it does not preserve are dropped; in debug builds the
//! preserved ones are compared with fresh ones. With `verify`, the IR verifier runs after each
//! pass, and a change of the control conditions of a convergent operation is an error.

mod dispatch;
pub mod dump;
mod encoder;

use crate::analysis::PassCx;
use crate::legal::Legalization;
use crate::ori::{Function, verify};
use crate::tables::latency::Latency;
use crate::tables::passes::When;
use crate::tables::{Pass, Phase};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use encoder::ENCODER;

/// Changes a function after a pass: tests plant faults with it for bisecting.
pub type Tamper = Arc<dyn Fn(Pass, &mut Function) + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// Which passes run, and what is checked.
#[derive(Clone, Default)]
pub struct PassControl {
    /// Whether to run the verifier after every pass.
    pub verify: bool,
    /// Optional passes that must not run.
    pub disabled: Vec<Pass>,
    /// The last pass to run.
    pub stop_after: Option<Pass>,
    /// The last pass before optimization is switched off: the rest runs as at level 0.
    pub plain_after: Option<Pass>,
    /// A planted fault, for tests.
    pub tamper: Option<Tamper>,
}

impl std::fmt::Debug for PassControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PassControl { verify, disabled, stop_after, plain_after, tamper } = self;
        let tampers = tamper.is_some();
        write!(f, "PassControl {{ verify: {verify}, disabled: {disabled:?}, stop_after: {stop_after:?}, ")?;
        write!(f, "plain_after: {plain_after:?}, tamper: {tampers} }}")
    }
}

/// A pass failed: it refused the function, or broke an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassError {
    /// The pass that failed.
    pub pass: Pass,
    /// The reason.
    pub message: String,
}

impl std::fmt::Display for PassError {
    /// Writes the phase and the message.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.pass.info().phase.name(), self.message)
    }
}

/// Progress of the pass manager.
pub enum Event<'a> {
    Before(Pass, &'a Function),
    After(Pass, &'a Function, Duration),
    /// Every pass of an implemented phase has run.
    AfterPhase(Phase, &'a Function),
}

/// Verifies the function before any other pass.
///
/// # Errors
///
/// All violations that the verifier finds.
pub fn check_input(cx: &mut PassCx) -> Result<(), String> {
    let errors = verify::verify(cx.function);
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// Whether a pass runs on a function.
fn runs(pass: Pass, function: &Function, control: &PassControl) -> bool {
    let info = pass.info();
    let scheduled = || function.attributes().optimise && Latency::of(function.target()).is_some_and(|l| l.scheduled);
    let plain = info.optional && control.plain_after.is_some_and(|last| pass > last);
    let when = match info.when {
        When::Always => true,
        When::Optimised => function.attributes().optimise,
        When::Scheduled => scheduled(),
        When::Unscheduled => !scheduled(),
    };
    when && !plain && !(info.optional && control.disabled.contains(&pass))
}

/// Runs every pass in order; `tell` sees the function before and after each.
///
/// # Errors
/// The first pass that refuses the function or breaks an invariant.
pub fn run(
    function: &mut Function,
    options: &Legalization,
    control: &PassControl,
    mut tell: impl FnMut(Event),
) -> Result<(), PassError> {
    let mut cx = PassCx::new(function, ENCODER);
    let mut passes = Pass::ALL.into_iter().peekable();
    let mut conditions = None;
    for phase in Phase::ALL {
        cx.function.stage_mut().progress = phase.info().progress.unwrap_or(cx.function.stage().progress);
        while let Some(pass) = passes.next_if(|pass| pass.info().phase == phase) {
            if control.plain_after.is_some_and(|last| pass > last) {
                cx.function.attributes_mut().optimise = false;
            }
            if runs(pass, cx.function, control) {
                tell(Event::Before(pass, cx.function));
                let elapsed = step(pass, &mut cx, options, control, &mut conditions)?;
                tell(Event::After(pass, cx.function, elapsed));
            }
            if control.stop_after == Some(pass) {
                return Ok(());
            }
        }
        if phase.info().runs() {
            tell(Event::AfterPhase(phase, cx.function));
        }
    }
    Ok(())
}

/// Runs one pass and the checks after it. `conditions` are those of the convergent operations
/// behind the pass before, if they were asked for.
fn step(
    pass: Pass,
    cx: &mut PassCx,
    options: &Legalization,
    control: &PassControl,
    conditions: &mut Option<verify::Conditions>,
) -> Result<Duration, PassError> {
    if cx.compact() {
        *conditions = None;
    }
    let before =
        control.verify.then(|| conditions.take().unwrap_or_else(|| verify::convergent_conditions(cx.function)));
    cx.decided.clear();
    cx.hoisted.clear();
    cx.asked.clear();
    (cx.unchanged, cx.sweeps) = (false, false);
    let start = Instant::now();
    cx.function.list_registers();
    let outcome = dispatch::run(pass, cx, options);
    let elapsed = start.elapsed();
    outcome.map_err(|message| PassError { pass, message })?;
    let mut errors = Vec::new();
    if !cx.unchanged {
        cx.invalidate(pass.info().preserves);
    }
    cx.swept = (cx.sweeps || cx.swept && cx.unchanged) && control.tamper.is_none();
    if cfg!(debug_assertions) {
        let stale = cx.stale();
        errors.extend(stale.iter().map(|analysis| format!("{} is not preserved", analysis.name())));
        // What a pass changes without a word stays wrong until one says that it changed something.
        let wrong = if cx.unchanged { None } else { cx.function.wrongly_listed() };
        errors.extend(wrong.map(|inst| format!("the registers of {inst} are others")));
    }
    if let Some(tamper) = &control.tamper {
        tamper(pass, cx.function);
        cx.invalidate(&[]);
    }
    if let Some(before) = before {
        errors.extend(verify::verify(cx.function));
        let now = verify::convergent_conditions(cx.function);
        if cx.decided.is_empty() || verify::ends(cx.function) {
            let changes = verify::Changes { decided: &cx.decided, hoisted: &cx.hoisted, asked: &cx.asked };
            errors.extend(verify::compare_conditions(cx.function, &before, &now, changes));
        }
        *conditions = Some(now);
    }
    if errors.is_empty() {
        return Ok(elapsed);
    }
    Err(PassError { pass, message: format!("broken invariant behind {}: {}", pass.name(), errors.join("; ")) })
}

/// Runs one pass, or all passes of a phase, by name, with the verifier after each; for tests.
///
/// # Errors
///
/// An unknown name, a refusal by a pass, or a broken invariant.
pub fn run_one(function: &mut Function, name: &str) -> Result<(), String> {
    run_one_as(function, name, &Legalization::default())
}

/// As [`run_one`], with other options.
///
/// # Errors
///
/// As [`run_one`].
pub fn run_one_as(function: &mut Function, name: &str, options: &Legalization) -> Result<(), String> {
    let phase = Phase::ALL.into_iter().find(|phase| phase.name() == name);
    let wanted: Vec<Pass> = match (Pass::by_name(name), phase) {
        (Some(pass), _) => vec![pass],
        (None, Some(phase)) => Pass::ALL.into_iter().filter(|pass| pass.info().phase == phase).collect(),
        (None, None) => return Err(format!("no pass and no phase is called `{name}`")),
    };
    if wanted.is_empty() {
        return Err(format!("phase `{name}` runs no pass"));
    }
    let control = PassControl::default();
    let mut cx = PassCx::new(function, ENCODER);
    for pass in wanted {
        if runs(pass, cx.function, &control) {
            step_of_one(pass, &mut cx, options)?;
        }
    }
    Ok(())
}

fn step_of_one(pass: Pass, cx: &mut PassCx, options: &Legalization) -> Result<(), String> {
    dispatch::run(pass, cx, options)?;
    cx.invalidate(pass.info().preserves);
    let stale = cx.stale();
    let mut errors = verify::verify(cx.function);
    errors.extend(stale.iter().map(|analysis| format!("{} is not preserved", analysis.name())));
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}
