//! Instruction scheduling before and after register allocation, and the dependences it respects.

pub(crate) mod effects;
pub mod list_scheduler;
mod memory_dependence;
pub mod prepass_scheduler;
