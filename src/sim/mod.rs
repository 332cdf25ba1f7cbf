//! Simulates kernels on the CPU: cubins instruction by instruction (`sass`, started by `run`), and
//! PTX source by the rules of the ISA (`ptx`).
//!
//! A run returns the buffers as the kernel left them, or reports of what the program did wrong.
//! `launch` describes launches and expected results, `link` lays out a cubin, `ops` has the
//! arithmetic, `memory` and `race` model memory, `fault` and `report` hold the findings.

pub mod fault;
pub mod launch;
mod link;
pub mod memory;
pub mod ops;
pub mod patches;
pub mod ptx;
pub mod race;
pub mod report;
pub mod run;
pub mod sass;
