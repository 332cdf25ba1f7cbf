//! Where the lanes of a warp meet again, and the control words of the finished instructions.

mod boards;
pub mod control;
pub mod early;
mod effects;
mod memory;
pub mod order;
mod pending;
pub mod regions;
pub mod safe;
pub mod spin;
pub mod sync;
