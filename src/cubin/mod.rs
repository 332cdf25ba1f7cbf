//! Cubin files: reads and writes the ELF format that the CUDA driver loads.
//!
//! [`write()`] turns a [`Cubin`] into bytes; [`read()`] turns any bytes into a [`Cubin`], or an
//! error with the offset of the malformed structure. The bytes depend only on the model and the
//! tables (no path, clock or hash), and reading what was written gives the same facts.

mod attributes;
mod bytes;
mod container;
mod emit;
mod error;
mod frame;
pub mod line_table;
pub mod lines;
mod listing;
pub mod model;
mod notes;
mod pad;
pub mod passthrough;
pub mod patches;
mod plan;
mod read;
mod read_symbols;
mod records;
pub mod symbols;
mod write;

pub use error::CubinError;
pub use listing::{Listing, listing};
pub use model::*;
pub use pad::pad_code;
pub use passthrough::*;
pub use read::read;
pub use write::write;
