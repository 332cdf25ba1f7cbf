//! The arithmetic of the simulator: pure functions on bits.
//!
//! They know nothing of lanes, registers or instructions, so that each rule can be tested on its
//! own.

pub mod clusters;
pub mod convert;
pub mod format;
pub mod half;
pub mod int;
pub mod mbarrier;
pub mod mufu;
pub mod narrow;
pub mod random;
pub mod real;
pub mod tensor_beside;
pub mod tensor_map;
pub mod tensor_memory;
pub mod tensor_unit;
pub mod texture;
