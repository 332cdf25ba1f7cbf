//! Registers that a function preserves (callee-saved).

/// A run of callee-saved registers of one file, both ends included. Source: `registers.ron`.
#[derive(Debug)]
pub struct Kept {
    pub file: &'static str,
    pub first: u16,
    pub last: u16,
}

/// Whether the register of this file and number is preserved across calls.
pub fn kept_across_calls(file: &str, number: u16) -> bool {
    KEPT.iter().any(|k| k.file == file && (k.first..=k.last).contains(&number))
}

/// The runs of registers of a file that are preserved across calls.
pub fn runs_kept(file: &str) -> impl Iterator<Item = std::ops::RangeInclusive<u16>> {
    KEPT.iter().filter(move |k| k.file == file).map(|k| k.first..=k.last)
}

/// The lowest register of a file that is preserved across calls.
pub fn first_kept(file: &str) -> Option<u16> {
    KEPT.iter().filter(|k| k.file == file).map(|k| k.first).min()
}

include!(concat!(env!("OUT_DIR"), "/registers.rs"));
