//! Sassafras: an open compiler from PTX to SASS.
//!
//! The flow: PTX text → [`ptx`] → Ori (the IR) → phases → SASS words → cubin. Beside it, and independent of it, stands
//! `sim`, a machine that executes the finished bytes. Every fact about a GPU comes from the tables under `tables/`
//! through [`tables`], the only module that includes generated code.

pub mod alloc;
pub mod cli;
pub mod compile;
pub mod cubin;
pub mod diag;
pub mod lower;
pub mod opt;
pub mod ori;
pub mod pipeline;
pub mod ptx;
pub mod sass;
pub mod sched;
pub mod sim;
pub mod tables;
pub mod uniform;
