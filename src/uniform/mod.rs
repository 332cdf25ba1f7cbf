//! Varying propagation and uniform registers.

pub mod varying;
