//! The PTX interpreter executes PTX source by the rules of the PTX ISA, thread by thread. It is the
//! reference for the compiler and shares no lowering code with it.
//!
//! `layout` assigns addresses, `resolve` and `operands` translate functions to a
//! [`program::Program`], and one module per instruction family says what an instruction computes:
//! `int`, `float`, `convert` and `random`, `compare`, `logic`, `video`. `memory`, `bulk`, `tensor`,
//! `cluster`, `atomic`, `barrier`, `call`, `system` and the warp-wide `warp`, `matrix`, `tiles`
//! (with `shapes` and `fragment`) execute the rest. `exec` runs one thread, `grid` schedules
//! threads, and `watch` detects undefined values and races.

mod atomic;
mod barrier;
mod bulk;
mod call;
mod cluster;
mod compare;
mod convert;
mod exec;
mod float;
mod fragment;
mod grid;
mod group;
pub(super) mod int;
mod layout;
mod logic;
mod matrix;
mod mbarrier;
mod memory;
mod operands;
mod program;
mod random;
mod resolve;
mod scaled;
mod shapes;
mod special;
mod state;
mod system;
mod tensor;
mod tensor_memory;
mod tensor_unit;
mod texture;
mod tiles;
mod values;
mod video;
mod warp;
mod watch;

pub use grid::{Outcome, STEP_LIMIT, refusals, run, run_inspected, run_within};
pub use state::Stop;

/// Parses the source that [`run`] executes; the module is `None` if parsing failed.
pub fn parse(source: &[u8]) -> (Option<crate::ptx::ast::Module>, Vec<crate::diag::Diagnostic>) {
    crate::ptx::parse_bytes(source)
}
