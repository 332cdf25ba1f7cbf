//! What can go wrong with a cubin: one error, with the place in the file where it was noticed.
//!
//! Input: the reader's and the writer's complaints. Output: one line of text. Invariant: an error of the reader has the
//! byte offset of the structure it was looking at.

use std::fmt;

/// An unreadable file, or a model that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CubinError {
    /// Byte offset in the file; `None` where a model was being written.
    pub offset: Option<u64>,
    pub message: String,
}

impl CubinError {
    /// An error in a file, at a byte offset.
    pub fn at(offset: u64, message: impl Into<String>) -> Self {
        CubinError { offset: Some(offset), message: message.into() }
    }

    /// An error in a model.
    pub fn model(message: impl Into<String>) -> Self {
        CubinError { offset: None, message: message.into() }
    }
}

impl fmt::Display for CubinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "offset {offset:#x}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for CubinError {}
