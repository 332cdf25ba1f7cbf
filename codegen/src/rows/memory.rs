//! Rows of `lowering/order.ron`, `cache.ron`, `atomic.ron` and `special.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderRow {
    pub access: String,
    pub semantics: String,
    pub scope: String,
    pub space: String,
    #[serde(default, rename = "if")]
    pub feature: String,
    pub mods: String,
    pub before: String,
    pub after: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheRow {
    pub access: String,
    pub text: String,
    pub mods: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtomicRow {
    pub op: String,
    pub types: String,
    pub vector: u32,
    pub space: String,
    pub how: String,
    pub size: String,
    #[serde(default)]
    pub keeps: bool,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecialHomeRow {
    pub name: String,
    pub on: String,
    pub from: String,
    pub sr: String,
    pub at: u32,
    pub shift: u8,
    pub mask: u32,
    pub src: String,
}
