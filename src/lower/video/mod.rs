//! SIMD video instructions.

pub(crate) mod number;
pub(crate) mod vector;
