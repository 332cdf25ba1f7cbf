//! Arithmetic of the machine: pure functions on values, exact.
//!
//! Input: operand bits. Output: result bits, carries and flags. Invariant: nothing here knows lanes, registers or
//! instructions, so that each rule can be tested on its own.

pub mod convert;
pub mod format;
pub mod half;
pub mod int;
pub mod mufu;
pub mod narrow;
pub mod random;
pub mod real;
