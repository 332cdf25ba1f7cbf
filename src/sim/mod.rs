//! A machine that executes cubins on the CPU.
//!
//! Input: a cubin and a launch. Output: what the kernel made of its buffers, or a report of what it did wrong. Parts:
//! `launch` describes launches and expected numbers, `sass` executes instructions, `ops` computes, `memory` holds bytes.

pub mod fault;
pub mod launch;
mod link;
pub mod memory;
pub mod ops;
pub mod ptx;
pub mod race;
pub mod report;
pub mod run;
pub mod sass;
