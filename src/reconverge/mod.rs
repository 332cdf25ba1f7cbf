//! Where the lanes of a warp reconverge: BSSY, BSYNC, WARPSYNC and YIELD.

pub mod insert;
