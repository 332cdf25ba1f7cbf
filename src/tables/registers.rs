//! Which registers a function leaves as it found them.

/// A run of registers of one file that calls leave alone, both ends included. Source: `registers.ron`.
#[derive(Debug)]
pub struct Kept {
    pub file: &'static str,
    pub first: u16,
    pub last: u16,
}

/// Whether a call leaves the register of this file and number alone.
pub fn kept_across_calls(file: &str, number: u16) -> bool {
    KEPT.iter().any(|k| k.file == file && (k.first..=k.last).contains(&number))
}

include!(concat!(env!("OUT_DIR"), "/registers.rs"));
