//! Small maps of lowering: comparisons, video instructions, cache policies, functions of the driver.

use super::ori::{Mod, value};
use super::ptx::{Compare, Op};

/// A row of `lowering/compare.ron`.
#[derive(Debug)]
pub struct Comparison {
    compare: Compare,
    /// What ISETP is asked.
    pub int: Option<(Mod, u8)>,
    /// Whatever the type says.
    pub unsigned: bool,
    /// What FSETP, DSETP and HSETP2 are asked.
    pub float: Option<(Mod, u8)>,
}

/// What a video instruction does to each pair of numbers. Source: the legend of `lowering/video.ron`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Add,
    Sub,
    Average,
    Difference,
    Min,
    Max,
    Set,
    ShiftLeft,
    ShiftRight,
}

/// What is asked for a comparison of PTX.
pub fn comparison(compare: Compare) -> Option<&'static Comparison> {
    COMPARISONS.iter().find(|c| c.compare == compare)
}

/// The step and the number of lanes of a video instruction.
pub fn step(op: Op) -> Option<(Step, usize)> {
    STEPS.iter().find(|s| s.0 == op).map(|s| (s.1, s.2.into()))
}

/// The bits of the first priority that an instruction names, in the high word of its policy.
pub fn policy(op: Op) -> Option<u32> {
    POLICIES.iter().find(|p| p.0 == op).map(|p| p.1)
}

include!(concat!(env!("OUT_DIR"), "/choices.rs"));
