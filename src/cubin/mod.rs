//! Cubin files: the ELF that the CUDA driver loads, in and out.
//!
//! Input of `write`: a [`Cubin`] and the `ElfFacts` of its target; output: bytes. Input of `read`: any bytes; output:
//! a [`Cubin`] or an error with the offset of what is wrong. Invariant: the bytes depend on the model and the facts
//! alone (no path, no clock, no hash), and reading what was written gives the same model.

mod attributes;
mod bytes;
mod container;
mod emit;
mod error;
mod frame;
pub mod model;
mod notes;
mod plan;
mod read;
mod read_rest;
mod records;
mod symbols;
mod write;

pub use error::CubinError;
pub use model::*;
pub use read::read;
pub use write::write;
