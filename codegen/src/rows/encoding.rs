//! Rows of `encoding/*.ron` (forms and aliases) and `special_registers.ron`.

use serde::Deserialize;

/// One form of an opcode: the meaning of each bit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormRow {
    pub op: String,
    pub on: String,
    pub code: u16,
    #[serde(default)]
    pub text: String,
    #[serde(default, rename = "if")]
    pub only_if: String,
    #[serde(default)]
    pub guard: String,
    #[serde(default)]
    pub fix: String,
    #[serde(default)]
    pub mods: String,
    #[serde(default)]
    pub args: String,
    #[serde(default)]
    pub must: String,
    /// Bits that are never all set.
    #[serde(default)]
    pub apart: String,
    #[serde(default)]
    pub alias_of: String,
    pub src: String,
}

/// A word that nvdisasm prints after the mnemonic if operands have certain values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AliasRow {
    pub op: String,
    pub on: String,
    pub word: String,
    pub when: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecialRow {
    pub num: u8,
    pub text: String,
    pub on: String,
    /// Whether it is the same in all lanes of a warp.
    #[serde(default)]
    pub uniform: bool,
    /// Bits that may differ between the lanes of a warp whose threads are in one row of the block.
    #[serde(default)]
    pub row_bits: Option<u32>,
    /// Whether it counts while a thread runs, so that a read of it keeps its place.
    #[serde(default)]
    pub counts: bool,
    /// Whether a thread always reads the same value.
    #[serde(default)]
    pub keeps: bool,
    #[serde(default, rename = "if")]
    pub only_if: String,
    pub src: String,
}
