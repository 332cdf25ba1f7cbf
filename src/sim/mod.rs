//! A machine that executes cubins on the CPU.

pub mod launch;
pub mod ops;
