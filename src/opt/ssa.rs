//! SSA construction and destruction as passes; the algorithms are in
//! [`crate::ori::ssa`] and [`crate::ori::destruct`].

use crate::analysis::PassCx;
use crate::ori::{destruct, ssa};

/// Converts a function to SSA form. Unreachable blocks are dropped from the layout.
pub fn construct(cx: &mut PassCx) {
    ssa::construct(cx.function);
}

/// Converts a function out of SSA form.
pub fn destruct(cx: &mut PassCx) {
    destruct::destruct(cx.function);
}
