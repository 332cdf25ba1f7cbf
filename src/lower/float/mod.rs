//! Floating-point operations and comparisons.

pub(crate) mod arith;
pub(crate) mod compare;
pub(crate) mod fdiv;
pub(crate) mod half;
