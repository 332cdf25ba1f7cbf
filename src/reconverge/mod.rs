//! Where the lanes of a warp reconverge: BSSY, BSYNC, WARPSYNC and YIELD.

mod calls;
pub mod insert;
