//! The two backends of legalization: the inner one, which knows the target, and the outer one, which may replace what it does.
//!
//! Input: a function. Output: the same, legalized as far as the phase goes. Invariant: the default outer backend does what the inner one does, and nothing
//! else. What a backend expands is a row of `tables/backends.ron`; nothing here asks for a target.

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

/// What the legalization phases call of a target. The methods are the published backend slots; the defaults expand the families that the
/// backend's row names.
pub trait SmBackend {
    /// The row of `tables/backends.ron`.
    fn info(&self) -> &'static LegalizerInfo;

    /// Inner slot +0x78, for ConvertUnsupportedOps.
    fn convert_unsupported_ops(&self, function: &mut Function) {
        self.expand(function, Slot::ConvertUnsupportedOps);
    }

    /// Slot +0xB0, for MidExpansion.
    fn mid_expansion(&self, function: &mut Function) {
        self.expand(function, Slot::MidExpansion);
    }

    /// Inner slot +0xE0, for LateExpansion.
    fn late_expansion(&self, function: &mut Function) {
        self.expand(function, Slot::LateExpansion);
    }

    /// Slot +0x178, for LateExpansionUnsupportedOps: block by block, until nothing is left.
    fn late_expansion_unsupported_ops(&self, function: &mut Function, knobs: &Knobs) {
        if let Some(families) = self.info().families(Slot::LateExpansionUnsupportedOps) {
            driver::converge(function, knobs, families);
        }
    }

    /// Inner slots +0x118 and +0xC10, for LateExpansionUnsupportedOps2: first what phases since then made, then the operands.
    fn late_expansion_unsupported_ops2(&self, function: &mut Function) {
        self.expand(function, Slot::LateExpansionUnsupportedOps2);
        self.legalize_operands(function);
    }

    /// Inner slot +0xC10: every operand becomes one that the target encodes.
    fn legalize_operands(&self, function: &mut Function);

    /// Slots +2328 to +2896: whether the operands of the opcodes whose recipe asks for a hook are legalized by the recipe.
    fn takes_operands_of(&self, hook: Hook) -> bool {
        self.info().hooks.contains(&hook)
    }

    /// Whether slot +0x180 has a handler.
    fn has_mid_handler(&self) -> bool {
        self.info().families(Slot::LateExpansionUnsupportedOpsMid).is_some()
    }

    /// Slot +0x180, for LateExpansionUnsupportedOpsMid.
    fn late_expansion_unsupported_ops_mid(&self, function: &mut Function) {
        self.expand(function, Slot::LateExpansionUnsupportedOpsMid);
    }

    /// Slot +0x108, for SetAfterLegalization: from here on no phase makes an operation without an encoding.
    fn set_after_legalization(&self, function: &mut Function) {
        function.stage.legalized = true;
    }

    /// Expands what a slot's families hold.
    fn expand(&self, function: &mut Function, slot: Slot) {
        let families = self.info().families(slot).unwrap_or_default();
        if !families.is_empty() {
            expand::run(function, |function, inst| is_of(function.insts[inst].op, families));
        }
    }
}

/// Whether an operation is of one of these families.
pub fn is_of(op: crate::tables::Op, families: &[Family]) -> bool {
    families.iter().any(|family| family.ops().contains(&op))
}

/// The backend of a generated target struct, and whether the target encodes an instruction.
pub struct Inner<'a>(pub &'static dyn Backend, pub Encodes<'a>);

impl SmBackend for Inner<'_> {
    fn info(&self) -> &'static LegalizerInfo {
        self.0.legalizer()
    }

    fn legalize_operands(&self, function: &mut Function) {
        operands::run(function, self, self.1);
    }
}

/// What stands around the inner backend: a host that compiles as a library may leave expansions out, do others, or add some. Each method has the inner
/// backend to call; the defaults do just that. Published slots: 0, +0x58, +0x60.
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

    /// UpdateAfterConvertUnsupportedOps: for a host that has to follow up on what it did in ConvertUnsupportedOps. Nothing by default.
    fn update_after_convert_unsupported_ops(&self, _: &mut Function) {}
}

/// The outer backend that leaves everything to the inner one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delegate;

impl OuterBackend for Delegate {}
