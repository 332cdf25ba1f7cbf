//! Where the lanes of a warp meet again, and the control words of the finished instructions.

pub mod regions;
pub mod safe;
pub mod spin;
pub mod sync;
