//! Varying propagation and uniform registers.

pub mod bases;
mod candidates;
mod chains;
mod comparisons;
pub mod constants;
pub mod convert;
pub mod elections;
pub mod loads;
mod pressure;
pub mod repeated_constants;
mod rewrite;
pub mod shader_constants;
mod taken;
mod turns;
mod twins;
pub mod varying;
