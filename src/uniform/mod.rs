//! Varying propagation and uniform registers.
