//! Registers that a function preserves (callee-saved).

/// A kind of function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of a program, by the calling convention.
    Device,
    /// The slow path of an expansion, which uses few registers.
    SlowPath,
}

/// A run of callee-saved registers of one file, both ends included. Source: `registers.ron`.
#[derive(Debug)]
pub struct Kept {
    pub by: Callee,
    pub file: &'static str,
    pub first: u16,
    pub last: u16,
}

impl Callee {
    /// All kinds.
    pub const ALL: [Callee; 2] = [Callee::Device, Callee::SlowPath];

    /// The runs of registers of a file that such a function preserves.
    pub fn keeps(self, file: &str) -> impl Iterator<Item = std::ops::RangeInclusive<u16>> {
        KEPT.iter().filter(move |k| k.by == self && k.file == file).map(|k| k.first..=k.last)
    }
}

/// Whether the register of this file and number is preserved across calls of device functions.
pub fn kept_across_calls(file: &str, number: u16) -> bool {
    Callee::Device.keeps(file).any(|run| run.contains(&number))
}

/// The lowest register of a file that is preserved across calls of device functions.
pub fn first_kept(file: &str) -> Option<u16> {
    Callee::Device.keeps(file).map(|run| *run.start()).min()
}

include!(concat!(env!("OUT_DIR"), "/registers.rs"));
