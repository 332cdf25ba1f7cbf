//! Rows of `lowering/compare.ron`, `video.ron`, `policy.ron` and `system.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareRow {
    pub compare: String,
    pub int: String,
    pub unsigned: bool,
    pub float: String,
    pub src: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoRow {
    pub op: String,
    pub step: Step,
    pub lanes: u8,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRow {
    pub op: String,
    pub bits: u32,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemRow {
    pub name: String,
    pub returns: bool,
    pub src: String,
}
