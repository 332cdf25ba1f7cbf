//! Integer and bit operations.

pub(crate) mod arith;
pub(crate) mod bitfield64;
pub(crate) mod bits;
pub(crate) mod idiv;
pub(crate) mod lanes;
pub(crate) mod logic;
