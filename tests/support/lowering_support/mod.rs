//! The cases of `tests/cases/lowering` and the values they run with.

pub mod forms;
pub mod values;
