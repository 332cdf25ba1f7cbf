//! The legalization phases: six that expand, AdvancedPhaseLateConvUnSup, SetAfterLegalization,
//! which ends them, and a follow-up for host programs.
//!
//! Phases contain no expansion; they call the backend, gated by the knobs of `tables/knobs.ron`.
//! After SetAfterLegalization, at every optimization level, each operation has an encoding on the
//! target or is bookkeeping of a later phase.

use super::backend::{Delegate, Inner, OuterBackend, SmBackend};
use super::knobs::Knobs;
use super::operands::{Encodes, reason};
use crate::analysis::PassCx;
use crate::ori::{Function, text};
use crate::tables::{Backend, Family, Knob, Prop, backend};
use std::sync::Arc;

/// Options of legalization.
#[derive(Clone, Debug)]
pub struct Legalization {
    /// Values of the knobs that gate phases.
    pub knobs: Knobs,
    /// Wrapper around the target's backend.
    pub outer: Arc<dyn OuterBackend>,
    /// Optimization level, 0 to 3.
    pub opt_level: u8,
}

impl Default for Legalization {
    fn default() -> Self {
        Legalization { knobs: Knobs::default(), outer: Arc::new(Delegate), opt_level: 3 }
    }
}

/// Lowest optimization level at which SetAfterLegalization marks the function as legalized.
const MARKED_FROM: u8 = 2;

/// The backend of the target, for phases that do not need encodings.
fn inner(function: &Function) -> Result<Inner<'static>, String> {
    inner_with(function, &|_, _| true)
}

fn inner_with<'a>(function: &Function, encodes: Encodes<'a>) -> Result<Inner<'a>, String> {
    let found: Option<&'static dyn Backend> = backend(function.target().name);
    found
        .map(|backend| Inner(backend, encodes))
        .ok_or_else(|| format!("Target '{}' has no backend", function.target().name))
}

/// ConvertUnsupportedOps (5): expands operations that the optimizer cannot handle.
pub fn convert_unsupported_ops(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    if asked.knobs.is_on(Knob::ConvertUnsupportedOps) {
        asked.outer.convert_unsupported_ops(&inner(function)?, function);
    }
    function.stage_mut().converted = true;
    Ok(())
}

/// UpdateAfterConvertUnsupportedOps (132): runs the follow-up work of the outer backend.
pub fn update_after_convert_unsupported_ops(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    asked.outer.update_after_convert_unsupported_ops(function);
    Ok(())
}

/// MidExpansion (45): expands operations whose parts value numbering should see.
pub fn mid_expansion(cx: &mut PassCx, _: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    inner(function)?.mid_expansion(function);
    Ok(())
}

/// LateExpansion (55): expands operations that the optimizer should see as one.
pub fn late_expansion(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    if asked.knobs.is_on(Knob::GeneralOptimization) {
        asked.outer.late_expansion(&inner(function)?, function);
    }
    Ok(())
}

/// AdvancedPhaseLateConvUnSup (77): records whether LateExpansionUnsupportedOps has anything to do.
pub fn late_conversion_gate(cx: &mut PassCx, _: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    let mut insts = function.layout().iter().flat_map(|block| &function[*block]);
    function.stage_mut().unsupported = insts.any(|inst| Family::of(function[*inst].op).is_some());
    Ok(())
}

/// LateExpansionUnsupportedOps (78): expands what earlier phases left or introduced.
pub fn late_expansion_unsupported_ops(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    let knobs = &asked.knobs;
    let runs = knobs.is_on(Knob::ConvertUnsupportedOps)
        && knobs.is_on(Knob::GeneralOptimization)
        && !knobs.is_on(Knob::DisableLateExpansionUnsupportedOps)
        && function.stage().unsupported;
    if runs {
        inner(function)?.late_expansion_unsupported_ops(function, knobs);
    }
    Ok(())
}

/// LateExpansionUnsupportedOpsMid (137): runs the handler of the backend, if it has one.
pub fn late_expansion_unsupported_ops_mid(cx: &mut PassCx, _: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    let inner = inner(function)?;
    if inner.has_mid_handler() {
        inner.late_expansion_unsupported_ops_mid(function);
    }
    Ok(())
}

/// LateExpansionUnsupportedOps2 (93): expands what later phases left or introduced, then legalizes
/// all operands.
pub fn late_expansion_unsupported_ops2(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let (function, encodes): (_, Encodes) = (&mut *cx.function, &cx.encoder.is_legal);
    asked.outer.late_expansion_unsupported_ops2(&inner_with(function, encodes)?, function);
    Ok(())
}

/// SetAfterLegalization (95): marks the function as legalized.
///
/// # Errors
///
/// The first operation that the target cannot encode, with the reason if known.
pub fn set_after_legalization(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let (function, encodes): (_, Encodes) = (&mut *cx.function, &cx.encoder.is_legal);
    if asked.opt_level >= MARKED_FROM && asked.knobs.is_on(Knob::GeneralOptimization) {
        inner(function)?.set_after_legalization(function);
    }
    let mut insts = function.layout().iter().flat_map(|block| &function[*block]);
    let wrong = insts.find(|inst| !function[**inst].op.has(Prop::Bookkeeping) && !encodes(function, **inst));
    match wrong {
        None => Ok(()),
        Some(inst) => {
            let why = reason(function, *inst).map_or(String::new(), |why| format!("; {why}"));
            Err(format!(
                "operation {} has no encoding on {}: {}{why}",
                crate::tables::ori::op_name(function[*inst].op),
                function.target().name,
                text::instruction(function, *inst)
            ))
        }
    }
}
