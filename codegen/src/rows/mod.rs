//! The tables' rows as serde sees them: one struct per table, field names as in the legends of the tables.
//!
//! Nothing is resolved here; names are strings until `model` turns them into ids.

pub mod choices;
pub mod elf;
pub mod encoding;
pub mod helpers;
pub mod latency;
pub mod legal;
pub mod legality;
pub mod lowering;
pub mod memory;
pub mod ori;
pub mod passes;
pub mod phases;
pub mod ptx;
pub mod regclass;
pub mod registers;
pub mod targets;
pub mod throughput;
