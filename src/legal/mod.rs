//! Legalization: operations that the target has no instruction for become instructions that it has.
//!
//! [`phases`] are the phases, which hand on to the [`backend`]s; [`expand`] walks a function, [`operands`] makes every operand one that is encoded, and the other
//! files say what each operation becomes.
//!
//! Input: Ori with pseudo-operations. Output: the same without those that the phase is for. Invariant: the registers that an operation
//! defines have the same values behind what it became; in SSA form the function still is, with PHIs where paths meet.

mod atomic;
pub mod backend;
mod divide;
mod divide_long;
pub mod driver;
pub mod expand;
mod knobs;
pub mod operands;
pub mod phases;
mod policy;
mod quotient;
mod root;

pub use backend::{OuterBackend, SmBackend};
pub use knobs::Knobs;
pub use phases::Legalization;
