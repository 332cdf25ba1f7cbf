//! Cubin files: the ELF that the CUDA driver loads, in and out.
//!
//! Input of [`write()`]: a [`Cubin`]; output: bytes. Input of [`read()`]: any bytes; output: a [`Cubin`] or an error with the
//! offset of what is wrong. Invariant: the bytes depend on the model and the tables alone (no path, no clock, no hash), and
//! reading what was written gives the same facts.

mod attributes;
mod bytes;
mod container;
mod emit;
mod error;
mod frame;
pub mod kept;
pub mod line_table;
pub mod lines;
mod listing;
pub mod model;
mod notes;
mod pad;
mod plan;
mod read;
mod read_rest;
mod records;
pub mod symbols;
mod write;

pub use error::CubinError;
pub use kept::*;
pub use listing::{Listing, listing};
pub use model::*;
pub use pad::pad_code;
pub use read::read;
pub use write::write;
