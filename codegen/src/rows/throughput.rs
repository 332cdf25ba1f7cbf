//! Rows of `latency/throughput.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaceRow {
    pub on: String,
    pub ops: String,
    pub when: String,
    pub pipe: String,
    pub cycles: u8,
    pub result: u16,
    pub read: u16,
    pub src: String,
}
