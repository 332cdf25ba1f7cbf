//! What passes know of a function, computed once and kept until a pass does not preserve it.
//!
//! A pass is `fn run(cx: &mut PassCx)`. It asks the context for an analysis and gets a shared copy,
//! which stays what it was while the pass rewrites the function. The manager drops, after each
//! pass, what the pass's row in `tables/passes.ron` does not preserve.

pub mod cache;
pub mod def_use;
pub mod loops;

pub use cache::{Encoder, PassCx};
pub use def_use::{DefUse, Fits};
pub use loops::Loops;
