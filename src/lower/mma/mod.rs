//! Matrix operations and the fragments they work on.

pub(crate) mod block_scale;
pub(crate) mod fragment_order;
pub(crate) mod groups;
pub(crate) mod matrix_memory;
pub(crate) mod mma_m8n8k4;
pub(crate) mod mma_sync;
