//! Rows of `phases.ron`, and of `steps.ron`: work of the pipeline that is no pass.

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
    #[serde(default)]
    pub by: String,
    #[serde(default)]
    pub why: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRow {
    pub name: String,
    pub file: String,
    pub src: String,
}
