//! Instruction builders, by kind of instruction.

pub(crate) mod address;
pub mod float;
pub mod int;
