//! Rows of `legality/operations.ron`, `instructions.ron`, `recipes.ron` and of the rules, one file
//! per family.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationRow {
    pub id: u32,
    pub op: String,
    pub family: String,
    pub forms: String,
    pub min_ptx: String,
    pub state: String,
    pub status: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionRow {
    pub op: String,
    #[serde(rename = "is")]
    pub instructions: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeRow {
    pub class: u32,
    pub name: String,
    pub kind: String,
    pub phase: String,
    pub expands: String,
    pub ops: String,
    pub what: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleRow {
    pub ops: String,
    pub on: String,
    pub verdict: String,
    #[serde(default)]
    pub status: String,
    pub src: String,
}
