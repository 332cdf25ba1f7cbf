//! The tables' rows as serde reads them: one struct per table, with the field names of the legends.
//! Names are strings until `model` resolves them to ids.

pub mod choices;
pub mod elf;
pub mod encoding;
pub mod helpers;
pub mod images;
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
pub mod tuning;
