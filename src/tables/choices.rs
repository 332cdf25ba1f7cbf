//! Small lookup tables of lowering: comparisons, video instructions, cache policies, driver
//! functions.

use super::ori::{Mod, value};
use super::ptx::{Compare, Op};

/// A row of `lowering/compare.ron`.
#[derive(Debug)]
pub struct Comparison {
    compare: Compare,
    /// The comparison modifier of ISETP; `None` if the comparison does not apply to integers.
    pub int: Option<(Mod, u8)>,
    /// The comparison is unsigned whatever the type.
    pub unsigned: bool,
    /// The comparison modifier of FSETP, DSETP and HSETP2.
    pub float: Option<(Mod, u8)>,
}

/// What a video instruction does to each pair of values. Source: the legend of
/// `lowering/video.ron`.
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

/// The row of a PTX comparison operator.
pub fn comparison(compare: Compare) -> Option<&'static Comparison> {
    COMPARISONS.iter().find(|c| c.compare == compare)
}

/// The step and the number of lanes of a video instruction.
pub fn step(op: Op) -> Option<(Step, usize)> {
    STEPS.iter().find(|s| s.0 == op).map(|s| (s.1, s.2.into()))
}

/// The upper word of a cache policy: the bits of the first eviction priority that an instruction
/// names.
pub fn policy(op: Op) -> Option<u32> {
    POLICIES.iter().find(|p| p.0 == op).map(|p| p.1)
}

include!(concat!(env!("OUT_DIR"), "/choices.rs"));
