//! Rows of `passes.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassRow {
    pub name: String,
    pub run: String,
    pub phase: String,
    pub when: String,
    pub optional: bool,
    pub requires: String,
    pub makes: String,
    pub destroys: String,
    pub preserves: String,
    /// Name of an earlier pass, and the reason for the order.
    pub after: Vec<(String, String)>,
    pub src: String,
}
