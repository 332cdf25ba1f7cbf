//! Analyses of a function, cached until a pass does not preserve them.
//!
//! A pass is `fn run(cx: &mut PassCx)`. It requests an analysis from the context and gets a shared
//! copy, which does not change while the pass rewrites the function. After each pass the manager
//! drops the analyses that the pass's row in `tables/passes.ron` does not preserve.

pub mod bit_flow;
pub mod cache;
pub mod calls_apart;
pub mod def_use;
pub mod divergence;
pub mod loops;
pub mod low_zeros;
pub mod memory_dependence;
pub mod occupancy;
pub mod reconvergence;
pub mod regions;
pub mod row_bits;
pub mod spin_loops;
pub mod sums;

pub use cache::{Encoder, PassCx};
pub use def_use::{DefUse, Fits};
pub use loops::Loops;

/// Maximum number of instructions in an arm of a branch that are guarded instead; they execute
/// without effect when the branch would have skipped them.
pub const SHORT_ARM: usize = 6;
