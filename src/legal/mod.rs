//! Legalization: replaces operations that the target has no instruction for.
//!
//! [`phases`] has the phases, which call the [`backend`]s; [`expand`] walks a function;
//! [`operands`] rewrites operands to encodable ones; the other files have one kind of expansion
//! each. A phase removes the pseudo-operations it is responsible for. Afterwards the registers that
//! an operation defined have the same values; a function in SSA form stays in SSA form, with PHIs
//! where paths join.

mod atomic;
pub mod backend;
pub mod driver;
pub mod expand;
mod fdiv;
mod fsqrt;
mod idiv32;
mod idiv64;
mod knobs;
pub mod operands;
pub mod phases;
mod policy;
pub mod quads;
mod reciprocal;
mod slow_path;

pub use backend::{OuterBackend, SmBackend};
pub use knobs::Knobs;
pub use phases::Legalization;
pub(crate) use slow_path::RETURN_ADDRESS;
