//! SSA construction and destruction as passes; the algorithms are in [`crate::ori::ssa`].

use crate::analysis::PassCx;
use crate::ori::ssa;

/// Converts a function to SSA form. Unreachable blocks are dropped from the layout.
pub fn construct(cx: &mut PassCx) {
    ssa::construct(cx.function);
}

/// Converts a function out of SSA form.
pub fn destruct(cx: &mut PassCx) {
    ssa::destruct(cx.function);
}
