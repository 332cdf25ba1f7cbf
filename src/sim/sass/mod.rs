//! The SASS machine: executes decoded instructions, lane by lane, without time.
//!
//! Input: instructions, constant banks, geometry ([`setup::Setup`]) and global memory. Output: changed memory or a fault.
//! Parts: `predecode` makes [`code::Code`]; `warp` and `block` hold state; `exec`, `access`, `atomic`, `lanes` execute;
//! `control`, `kept` and `block` decide who waits; `grid` decides who runs. Time will need only another `grid` and marks on
//! registers in `warp`.

mod access;
pub mod alu;
mod atomic;
pub mod block;
pub mod code;
pub mod control;
mod exec;
pub mod grid;
mod kept;
mod lanes;
mod matrix;
pub mod predecode;
mod product;
mod quarters;
pub mod setup;
mod system;
mod tile;
pub mod warp;
pub mod watch;
pub mod words;
