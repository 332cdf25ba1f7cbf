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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapFieldRow {
    pub field: String,
    pub index: u8,
    /// Dimensions of the maps of images that alone have it; 0 for all maps.
    #[serde(default)]
    pub rank: u8,
    pub at: u16,
    pub bits: u8,
    pub shift: u8,
    pub less: u8,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapTypeRow {
    pub number: u8,
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub bits: u8,
    pub code: u8,
    pub rounding: bool,
    pub src: String,
}
