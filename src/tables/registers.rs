//! Registers that a function preserves (callee-saved).

/// A function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Callee {
    /// A function of a program, by the calling convention.
    Device,
    /// A function of the driver, which preserves more.
    Driver,
    /// The slow path of an expansion, which uses general registers below this number.
    SlowPath(u16),
}

/// What a row says of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    Device,
    Driver,
    SlowPath,
}

/// A run of callee-saved registers of one file, both ends included. Source: `registers.ron`.
#[derive(Debug)]
pub struct Kept {
    pub by: KeptBy,
    pub file: &'static str,
    pub first: u16,
    pub last: u16,
}

impl Callee {
    /// Whether it is a function that only some lanes of a warp may call, and need not leave
    /// together.
    pub fn is_function(self) -> bool {
        matches!(self, Callee::Device | Callee::Driver)
    }

    /// The runs of registers of a file that it preserves.
    pub fn keeps(self, file: &str) -> impl Iterator<Item = std::ops::RangeInclusive<u16>> {
        let (kind, above) = match self {
            Callee::Device => (KeptBy::Device, None),
            Callee::Driver => (KeptBy::Driver, None),
            Callee::SlowPath(first) => (KeptBy::SlowPath, (file == "R").then_some(first..=254)),
        };
        KEPT.iter().filter(move |k| k.by == kind && k.file == file).map(|k| k.first..=k.last).chain(above)
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
