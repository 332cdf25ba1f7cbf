//! The error of reading or writing a cubin: one line of text, with the byte offset in the file if
//! the error was found while reading.

use std::fmt;

/// An unreadable file, or a model that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CubinError {
    /// Byte offset in the file of the structure being read; `None` while writing.
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
