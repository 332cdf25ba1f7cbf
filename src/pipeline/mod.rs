//! The back end of the pipeline: encodes a finished function, and merges the code of several
//! functions.

pub mod emit;
mod loads;
pub mod merge_functions;
pub mod values;
