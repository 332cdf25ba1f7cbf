//! Rows of `registers.ron`.

use serde::Deserialize;

/// What preserves registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum KeptBy {
    #[default]
    Device,
    Driver,
    SlowPath,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRow {
    #[serde(default)]
    pub by: KeptBy,
    pub file: String,
    pub first: u16,
    pub last: u16,
    pub src: String,
}
