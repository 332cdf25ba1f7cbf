//! Rows of `latency/*.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRow {
    pub name: String,
    pub on: String,
    pub scheduled: bool,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassRow {
    pub name: String,
    pub result: String,
    pub sources: String,
    pub in_order: bool,
    pub queue: String,
    pub alone: bool,
    pub expected: u16,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRow {
    pub on: String,
    pub ops: String,
    pub when: String,
    pub part: String,
    pub class: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistanceRow {
    pub on: String,
    pub file: String,
    pub from: String,
    pub to: String,
    /// Like `to`, if the simulator and the checker require less than the schedule keeps.
    #[serde(default)]
    pub demanded: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallRow {
    pub on: String,
    pub ops: String,
    pub least: u8,
    /// The cycles that the simulator and the checker require, if less than the schedule keeps.
    #[serde(default)]
    pub demanded: Option<u8>,
    /// Whether `demanded` applies only to guarded instructions.
    #[serde(default)]
    pub guarded: bool,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairRow {
    pub on: String,
    pub first: String,
    pub second: String,
    pub least: u8,
    /// The cycles that the simulator and the checker require, if less than the schedule keeps.
    #[serde(default)]
    pub demanded: Option<u8>,
    pub src: String,
}
