//! Rows of `tunables.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunableRow {
    pub name: String,
    pub pass: String,
    pub default: u32,
    pub tried: Vec<u32>,
    pub what: String,
    pub src: String,
}
