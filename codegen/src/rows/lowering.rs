//! Rows of `lowering/*.ron`.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum Way {
    Direct,
    Bytes,
    Nibbles,
    Bits,
    Differ,
    DifferBits,
    Order,
    OrderNibbles,
    SparseBytes,
    OrderBytes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProductRow {
    pub op: String,
    pub shape: String,
    pub types: String,
    pub bit: String,
    #[serde(rename = "if")]
    pub only_if: String,
    pub way: Way,
    pub inst: String,
    pub mods: String,
    pub frag: String,
    pub steps: String,
    pub swap: bool,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NarrowRow {
    #[serde(rename = "type")]
    pub ty: String,
    pub name: String,
    pub wide: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileRow {
    pub part: String,
    pub shape: String,
    pub types: String,
    #[serde(rename = "if")]
    pub only_if: String,
    pub along: String,
    pub per: u8,
    pub tiles: String,
    pub src: String,
}
