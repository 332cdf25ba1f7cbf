//! The two backends of legalization: the inner one, which depends on the target, and the outer one,
//! through which a host program can replace steps of the inner one.
//!
//! The default outer backend only calls the inner one. The rows of `tables/backends.ron` say what
//! the backend of a target expands; no code here tests for a target.

use super::driver;
use super::expand;
use super::knobs::Knobs;
use super::operands::{self, Encodes};
use crate::ori::Function;
use crate::tables::legal::LegalizerInfo;
use crate::tables::operands::Hook;
use crate::tables::{Backend, Family, Slot};
use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// Legalization for one target: one method per legalization phase. The default methods expand the
/// families that the backend's row names.
pub trait SmBackend {
    /// The row of `tables/backends.ron`.
    fn info(&self) -> &'static LegalizerInfo;

    /// Expands the families of ConvertUnsupportedOps.
    fn convert_unsupported_ops(&self, function: &mut Function) {
        self.expand(function, Slot::ConvertUnsupportedOps);
    }

    /// Expands the families of MidExpansion.
    fn mid_expansion(&self, function: &mut Function) {
        self.expand(function, Slot::MidExpansion);
    }

    /// Expands the families of LateExpansion.
    fn late_expansion(&self, function: &mut Function) {
        self.expand(function, Slot::LateExpansion);
    }

    /// Expands the families of LateExpansionUnsupportedOps, block by block, until none is left.
    fn late_expansion_unsupported_ops(&self, function: &mut Function, knobs: &Knobs) {
        if let Some(families) = self.info().families(Slot::LateExpansionUnsupportedOps) {
            driver::converge(function, knobs, families);
        }
    }

    /// LateExpansionUnsupportedOps2: expands what the phases since LateExpansionUnsupportedOps
    /// introduced, then legalizes the operands.
    fn late_expansion_unsupported_ops2(&self, function: &mut Function) {
        self.expand(function, Slot::LateExpansionUnsupportedOps2);
        self.legalize_operands(function);
    }

    /// Rewrites every operand to one that the target encodes.
    fn legalize_operands(&self, function: &mut Function);

    /// Whether the backend legalizes the operands of opcodes whose recipe names this hook.
    fn takes_operands_of(&self, hook: Hook) -> bool {
        self.info().hooks.contains(&hook)
    }

    /// Whether the backend has a handler for LateExpansionUnsupportedOpsMid.
    fn has_mid_handler(&self) -> bool {
        self.info().families(Slot::LateExpansionUnsupportedOpsMid).is_some()
    }

    /// Expands the families of LateExpansionUnsupportedOpsMid.
    fn late_expansion_unsupported_ops_mid(&self, function: &mut Function) {
        self.expand(function, Slot::LateExpansionUnsupportedOpsMid);
    }

    /// SetAfterLegalization: from here on no phase may introduce an operation without an encoding.
    fn set_after_legalization(&self, function: &mut Function) {
        function.stage_mut().legalized = true;
    }

    /// Expands the families that the row names for a slot.
    fn expand(&self, function: &mut Function, slot: Slot) {
        let families = self.info().families(slot).unwrap_or_default();
        if !families.is_empty() {
            expand::run(function, |function, inst| is_of(function[inst].op, families));
        }
    }
}

/// Whether an operation is of one of these families.
#[inline]
pub fn is_of(op: crate::tables::Op, families: &[Family]) -> bool {
    families.iter().any(|family| family.has(op))
}

/// The backend of a generated target struct, with the predicate that tells whether the target
/// encodes an instruction.
pub struct Inner<'a>(pub &'static dyn Backend, pub Encodes<'a>);

impl SmBackend for Inner<'_> {
    fn info(&self) -> &'static LegalizerInfo {
        self.0.legalizer()
    }

    fn legalize_operands(&self, function: &mut Function) {
        operands::run(function, self, self.1);
    }
}

/// Wraps the inner backend: a host that uses the library may omit expansions, replace them, or add
/// some. Each method receives the inner backend; the defaults only call it.
pub trait OuterBackend: Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// ConvertUnsupportedOps.
    fn convert_unsupported_ops(&self, inner: &dyn SmBackend, function: &mut Function) {
        inner.convert_unsupported_ops(function);
    }

    /// LateExpansion.
    fn late_expansion(&self, inner: &dyn SmBackend, function: &mut Function) {
        inner.late_expansion(function);
    }

    /// LateExpansionUnsupportedOps2.
    fn late_expansion_unsupported_ops2(&self, inner: &dyn SmBackend, function: &mut Function) {
        inner.late_expansion_unsupported_ops2(function);
    }

    /// UpdateAfterConvertUnsupportedOps: follow-up work of a host that replaced
    /// ConvertUnsupportedOps. Does nothing by default.
    fn update_after_convert_unsupported_ops(&self, _: &mut Function) {}
}

/// The outer backend that leaves everything to the inner one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delegate;

impl OuterBackend for Delegate {}
