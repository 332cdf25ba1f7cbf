//! Rows of `phases.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRow {
    pub order: u16,
    pub name: String,
    pub seed: Vec<u16>,
    #[serde(default)]
    pub progress: Option<u8>,
    pub category: String,
    pub state: String,
    pub src: String,
}
