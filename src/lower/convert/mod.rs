//! Conversions between types.

pub(crate) mod half;
pub(crate) mod scalar;
