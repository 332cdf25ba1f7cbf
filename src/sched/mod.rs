//! Instruction scheduling before and after register allocation, and the dependences it respects.

mod accesses;
mod block_order;
mod dependences;
pub(crate) mod effects;
mod estimate;
mod first_fit;
pub mod list_scheduler;
pub mod prepass_scheduler;
pub mod pressure_scheduler;
mod quickest;
mod ready;
mod region;
mod sweep;
mod touches;
mod trees;
