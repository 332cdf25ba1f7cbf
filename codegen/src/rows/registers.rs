//! Rows of `registers.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRow {
    pub file: String,
    pub first: u16,
    pub last: u16,
    pub src: String,
}
