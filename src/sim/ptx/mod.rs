//! The PTX interpreter: executes the source text by the rules of the PTX ISA, thread by thread.
//!
//! Input: a parsed module and a launch. Output: changed buffers, or a fault with the line of the source. Parts: `layout`
//! places variables; `resolve` and `operands` turn functions into [`program::Program`], with one file per family of
//! operations for what an instruction computes (`int`, `float`, `convert`, `compare`, `logic`, `video`); `memory`,
//! `atomic`, `warp`, `matrix`, `barrier`, `call` execute the rest; `exec` runs one thread, `grid` decides who runs, `watch` judges.
//! Invariant: nothing here knows how the compiler lowers anything.

mod atomic;
mod barrier;
mod call;
mod compare;
mod convert;
mod exec;
mod float;
mod fragment;
mod grid;
mod int;
mod layout;
mod logic;
mod matrix;
mod memory;
mod operands;
mod program;
mod random;
mod resolve;
mod shapes;
mod special;
mod state;
mod system;
mod tiles;
mod values;
mod video;
mod warp;
mod watch;

pub use grid::{Outcome, STEP_LIMIT, refusals, run, run_within};

/// Reads the text that [`run`] executes.
pub fn parse(source: &[u8]) -> (Option<crate::ptx::ast::Module>, Vec<crate::diag::Diagnostic>) {
    crate::ptx::parse_bytes(source)
}
