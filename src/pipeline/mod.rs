//! From a finished function to words: encoding, and putting the code of several functions together.

pub mod emit;
pub mod link;
