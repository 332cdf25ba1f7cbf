//! The phases as one table-checked list.
//!
//! Input: a lowered function. Output: the same function, legal, in physical registers, with control words. The order is that of
//! `tables/phases.ron`; this module only says which function a built phase runs. Invariants: every phase that the table
//! calls built has its function here and the reverse (a test checks it); with `verify` set the verifier runs after each
//! phase and names the phase it failed after; a phase changes no control condition of a convergent operation.

pub mod emit;
pub mod link;

use crate::alloc;
use crate::legal::{Legalization, phases};
use crate::opt;
use crate::ori::{Function, ssa, verify};
use crate::sched::{control, early, order, safe, sync};
use crate::tables::Phase;
use crate::tables::latency::Latency;
use crate::tables::phases::PHASES;
use crate::uniform;

/// What runs the pipeline and how closely it is watched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    /// Run the verifier after every phase.
    pub verify: bool,
}

/// A phase failed: a refusal of the function, or a broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseError {
    pub phase: Phase,
    pub message: String,
}

type Run = fn(&mut Function, &Legalization) -> Result<(), String>;

/// Wraps a phase that cannot fail.
macro_rules! infallible {
    ($f:path) => {
        |function: &mut Function, _: &Legalization| {
            $f(function);
            Ok(())
        }
    };
}

/// The function of a built phase.
fn body(phase: Phase) -> Option<Run> {
    let run: Run = match phase {
        Phase::OriCheckInitialProgram => |function, _| check_initial(function),
        Phase::ConvertUnsupportedOps => phases::convert_unsupported_ops,
        Phase::UpdateAfterConvertUnsupportedOps => phases::update_after_convert_unsupported_ops,
        Phase::EarlyOriSimpleLiveDead => infallible!(opt::dead::run),
        Phase::GenerateMovPhi => infallible!(ssa::construct),
        Phase::GeneralOptimize => infallible!(general_optimize),
        Phase::OriHoistInvariantsEarly => infallible!(hoist_invariants),
        Phase::OriPropagateVaryingFirst => infallible!(uniform::varying::run),
        Phase::MidExpansion => phases::mid_expansion,
        Phase::LateExpansion => phases::late_expansion,
        Phase::GeneralOptimizeLate => infallible!(general_optimize_late),
        Phase::OriPerformLiveDeadThird => infallible!(opt::dead::run),
        Phase::OriPropagateVaryingSecond => infallible!(uniform::varying::run),
        Phase::ConvertAllMovPhiToMov => infallible!(ssa::destruct),
        Phase::AdvancedPhaseLateConvUnSup => phases::late_conversion_gate,
        Phase::LateExpansionUnsupportedOps => phases::late_expansion_unsupported_ops,
        Phase::LateExpansionUnsupportedOpsMid => phases::late_expansion_unsupported_ops_mid,
        Phase::LateExpansionUnsupportedOps2 => {
            |function, asked| phases::late_expansion_unsupported_ops2(function, asked, &emit::is_legal)
        }
        Phase::SetAfterLegalization => {
            |function, asked| phases::set_after_legalization(function, asked, &emit::is_legal)
        }
        Phase::ScheduleInstructions => infallible!(schedule_early),
        Phase::OriDoSyncronization => infallible!(sync::run),
        Phase::AllocateRegisters => |function, _| alloc::run(function),
        Phase::OriRemoveNopCode => infallible!(opt::layout::remove_needless),
        Phase::PostSchedule => infallible!(post_schedule),
        Phase::PlaceBlocksInSourceOrder => infallible!(place_blocks),
        Phase::AdvancedScoreboardsAndOpexes => infallible!(control_words),
        Phase::ProcessO0WaitsAndSBs => infallible!(safe_control_words),
        _ => return None,
    };
    Some(run)
}

fn place_blocks(function: &mut Function) {
    opt::layout::place(function, &emit::encodes);
}

/// Whether a function gets control words by the latency tables; the safe schedule otherwise.
fn is_scheduled(function: &Function) -> bool {
    function.optimise && Latency::of(function.target).is_some_and(|l| l.scheduled)
}

fn schedule_early(function: &mut Function) {
    if is_scheduled(function) {
        early::run(function);
    }
}

fn post_schedule(function: &mut Function) {
    if is_scheduled(function) {
        order::run(function);
    }
}

fn control_words(function: &mut Function) {
    if is_scheduled(function) {
        control::run(function);
    }
}

fn safe_control_words(function: &mut Function) {
    if !is_scheduled(function) {
        safe::run(function);
    }
}

/// Contraction is done at every level, so that all levels give the same bits.
fn general_optimize(function: &mut Function) {
    opt::copies::run(function);
    opt::contract::run(function);
    if !function.optimise {
        return;
    }
    opt::divide::run(function);
    opt::common::run(function);
    opt::dead::run(function);
    opt::offsets::run(function, &emit::encodes);
    opt::dead::run(function);
    opt::simplify::run(function, &emit::encodes);
    opt::reduce::run(function, &emit::encodes);
    opt::copies::run(function);
}

fn hoist_invariants(function: &mut Function) {
    if function.optimise {
        opt::hoist::run(function);
    }
}

/// What LateExpansion wrote is cleaned; products and sums of expansions are not contracted.
fn general_optimize_late(function: &mut Function) {
    opt::copies::run(function);
    if !function.optimise {
        return;
    }
    opt::common::run(function);
    opt::dead::run(function);
    opt::simplify::run(function, &emit::encodes);
    opt::copies::run(function);
    opt::constants::run(function, &emit::encodes);
    opt::dead::run(function);
}

fn check_initial(function: &mut Function) -> Result<(), String> {
    let errors = verify::verify(function);
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// Runs every built phase in order; `after` sees the function after each.
pub fn run(
    function: &mut Function,
    asked: &Legalization,
    watch: Watch,
    mut after: impl FnMut(Phase, &Function),
) -> Result<(), PhaseError> {
    for phase in Phase::ALL {
        function.stage.progress = phase.info().progress.unwrap_or(function.stage.progress);
        let Some(body) = body(phase).filter(|_| phase.info().built) else { continue };
        let conditions = watch.verify.then(|| verify::convergent_conditions(function));
        body(function, asked).map_err(|message| PhaseError { phase, message })?;
        if let Some(conditions) = conditions {
            let mut errors = verify::verify(function);
            errors.extend(verify::compare_conditions(&conditions, &verify::convergent_conditions(function)));
            if !errors.is_empty() {
                return Err(PhaseError { phase, message: format!("broken invariant: {}", errors.join("; ")) });
            }
        }
        after(phase, function);
    }
    Ok(())
}

/// Runs one phase by name, with the verifier behind it; for tests of a single phase.
pub fn run_one(function: &mut Function, name: &str) -> Result<(), String> {
    run_one_as(function, name, &Legalization::default())
}

/// The same as something else than the default asks for.
pub fn run_one_as(function: &mut Function, name: &str, asked: &Legalization) -> Result<(), String> {
    let phase = Phase::ALL.into_iter().find(|p| p.name() == name);
    let phase = phase.ok_or_else(|| format!("no phase is called `{name}`"))?;
    let body = body(phase).ok_or_else(|| format!("phase `{name}` is planned"))?;
    body(function, asked)?;
    let errors = verify::verify(function);
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

/// Phases in order with what the table says of them, for `--help` texts and tests.
pub fn phases() -> impl Iterator<Item = (Phase, bool)> {
    Phase::ALL.into_iter().map(|p| (p, PHASES[p as usize].built))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_code_agree_on_what_is_built() {
        for (phase, built) in phases() {
            // FormatCodeList is the encoder's; it makes words, not Ori.
            assert_eq!(built, body(phase).is_some() || phase == Phase::FormatCodeList, "{}", phase.name());
        }
    }
}
