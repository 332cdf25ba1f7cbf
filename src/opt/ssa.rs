//! Into SSA form and out of it, as passes. The algorithms are [`crate::ori::ssa`]'s.

use crate::analysis::PassCx;
use crate::ori::ssa;

/// Puts a function into SSA form. Unreachable blocks are dropped from the layout.
pub fn construct(cx: &mut PassCx) {
    ssa::construct(cx.function);
}

/// Takes a function out of SSA form.
pub fn destruct(cx: &mut PassCx) {
    ssa::destruct(cx.function);
}
