//! The back end of the pipeline: encodes a finished function, and merges the code of several
//! functions.

pub mod emit;
pub mod encodable;
mod loads;
pub mod merge_functions;
pub mod values;
