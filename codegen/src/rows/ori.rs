//! Rows of `ori/*.ron` and `encoding/modifiers.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpRow {
    pub num: u16,
    pub op: String,
    pub text: String,
    pub roles: String,
    pub props: String,
    pub state: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyRow {
    pub name: String,
    pub meaning: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModifierRow {
    pub kind: String,
    pub set: String,
    pub values: String,
    pub src: String,
}
