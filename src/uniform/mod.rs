//! Varying propagation and uniform registers.

mod candidates;
pub mod convert;
mod pressure;
mod rewrite;
pub mod varying;
