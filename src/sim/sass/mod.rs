//! The SASS simulator executes decoded instructions lane by lane. It does not model time itself;
//! the sanitizer adds timing checks and a cycle estimate.
//!
//! `setup` holds a launch's constants and `predecode` builds the executable [`code::Code`]. `warp`
//! and `block` hold state; `exec`, `access`, `alu`, `atomic`, `matrix` (with `mma`, `mma_884`,
//! `ldmatrix`) and `warp_ops` execute instructions; `control`, `kept` and `block` decide who waits,
//! and `grid` decides who runs. `system` has the driver's functions, and `sanitizer` checks each
//! instruction.

mod access;
pub mod alu;
mod atomic;
pub mod block;
mod bulk;
mod cluster;
pub mod code;
pub mod control;
mod exec;
pub mod grid;
mod group;
mod image_call;
mod kept;
mod ldmatrix;
mod matrix;
mod mbarrier;
mod mma;
mod mma_884;
mod mma_scaled;
pub mod predecode;
pub mod sanitizer;
pub mod setup;
pub mod stop;
mod system;
mod tensor;
mod tensor_memory;
mod texture;
pub mod warp;
mod warp_ops;
pub mod words;
