//! The legalization phases: six that expand, one that marks their end, and one that would follow them up.
//!
//! Input: a function and what the compilation was asked for. Output: the same, handed on to the backend. Invariants: a phase holds no
//! expansion itself; gates are knobs of `tables/knobs.ron`; after SetAfterLegalization every operation has an encoding on the target or is
//! bookkeeping of a later phase, at every optimisation level.

use super::backend::{Delegate, Inner, OuterBackend, SmBackend};
use super::knobs::Knobs;
use super::operands::{Encodes, reason};
use crate::analysis::PassCx;
use crate::ori::{Function, text};
use crate::tables::{Backend, Family, Knob, Prop, backend};
use std::sync::Arc;

/// What legalization is asked for.
#[derive(Clone, Debug)]
pub struct Legalization {
    pub knobs: Knobs,
    pub outer: Arc<dyn OuterBackend>,
    /// 0 to 3.
    pub opt_level: u8,
}

impl Default for Legalization {
    fn default() -> Self {
        Legalization { knobs: Knobs::default(), outer: Arc::new(Delegate), opt_level: 3 }
    }
}

/// Lowest level at which SetAfterLegalization sets its mark.
const MARKED_FROM: u8 = 2;

/// The target's backend, for phases that have nothing to do with encodings.
fn inner(function: &Function) -> Result<Inner<'static>, String> {
    inner_with(function, &|_, _| true)
}

fn inner_with<'a>(function: &Function, encodes: Encodes<'a>) -> Result<Inner<'a>, String> {
    let found: Option<&'static dyn Backend> = backend(function.target.name);
    found
        .map(|backend| Inner(backend, encodes))
        .ok_or_else(|| format!("Target '{}' has no backend", function.target.name))
}

/// ConvertUnsupportedOps (5): what cannot pass the optimiser as it is.
pub fn convert_unsupported_ops(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    if asked.knobs.is_on(Knob::ConvertUnsupportedOps) {
        asked.outer.convert_unsupported_ops(&inner(function)?, function);
    }
    function.stage.converted = true;
    Ok(())
}

/// UpdateAfterConvertUnsupportedOps (132): nothing but what an outer backend has to do.
pub fn update_after_convert_unsupported_ops(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    asked.outer.update_after_convert_unsupported_ops(function);
    Ok(())
}

/// MidExpansion (45): what later value numbering should see expanded.
pub fn mid_expansion(cx: &mut PassCx, _: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    inner(function)?.mid_expansion(function);
    Ok(())
}

/// LateExpansion (55): what the optimiser should see as one operation.
pub fn late_expansion(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    if asked.knobs.is_on(Knob::GeneralOptimization) {
        asked.outer.late_expansion(&inner(function)?, function);
    }
    Ok(())
}

/// AdvancedPhaseLateConvUnSup (77): whether anything is left for the next phase.
pub fn late_conversion_gate(cx: &mut PassCx, _: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    let mut insts = function.layout.iter().flat_map(|block| &function.blocks[*block]);
    function.stage.unsupported = insts.any(|inst| Family::of(function.insts[*inst].op).is_some());
    Ok(())
}

/// LateExpansionUnsupportedOps (78): what the phases before left or made.
pub fn late_expansion_unsupported_ops(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    let knobs = &asked.knobs;
    let runs = knobs.is_on(Knob::ConvertUnsupportedOps)
        && knobs.is_on(Knob::GeneralOptimization)
        && !knobs.is_on(Knob::DisableLateExpansionUnsupportedOps)
        && function.stage.unsupported;
    if runs {
        inner(function)?.late_expansion_unsupported_ops(function, knobs);
    }
    Ok(())
}

/// LateExpansionUnsupportedOpsMid (137): only where the backend has a handler.
pub fn late_expansion_unsupported_ops_mid(cx: &mut PassCx, _: &Legalization) -> Result<(), String> {
    let function = &mut *cx.function;
    let inner = inner(function)?;
    if inner.has_mid_handler() {
        inner.late_expansion_unsupported_ops_mid(function);
    }
    Ok(())
}

/// LateExpansionUnsupportedOps2 (93): what the phases since then left or made, then every operand.
pub fn late_expansion_unsupported_ops2(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let (function, encodes): (_, Encodes) = (&mut *cx.function, &cx.encoder.is_legal);
    asked.outer.late_expansion_unsupported_ops2(&inner_with(function, encodes)?, function);
    Ok(())
}

/// SetAfterLegalization (95): sets the mark, and refuses a function with an operation that the target has no encoding of.
pub fn set_after_legalization(cx: &mut PassCx, asked: &Legalization) -> Result<(), String> {
    let (function, encodes): (_, Encodes) = (&mut *cx.function, &cx.encoder.is_legal);
    if asked.opt_level >= MARKED_FROM && asked.knobs.is_on(Knob::GeneralOptimization) {
        inner(function)?.set_after_legalization(function);
    }
    let mut insts = function.layout.iter().flat_map(|block| &function.blocks[*block]);
    let wrong = insts.find(|inst| !function.insts[**inst].op.has(Prop::Bookkeeping) && !encodes(function, **inst));
    match wrong {
        None => Ok(()),
        Some(inst) => {
            let why = reason(function, *inst).map_or(String::new(), |why| format!("; {why}"));
            Err(format!(
                "operation {} has no encoding on {}: {}{why}",
                crate::tables::ori::op_name(function.insts[*inst].op),
                function.target.name,
                text::instruction(function, *inst)
            ))
        }
    }
}
