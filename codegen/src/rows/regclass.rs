//! Rows of `regclass/categories.ron`, `fields.ron`, `groups.ron`, `luts.ron` and `memory_path.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CategoryRow {
    pub num: u16,
    pub category: u16,
    pub seed: String,
    pub fields: String,
    pub contract: String,
    pub status: String,
    pub says: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldRow {
    pub id: u16,
    pub group: String,
    pub place: String,
    pub values: String,
    pub meaning: String,
    pub status: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRow {
    pub name: String,
    pub from: u16,
    pub to: u16,
    pub words: String,
    pub what: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LutRow {
    pub name: String,
    pub size: u16,
    pub fields: String,
    pub what: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRow {
    pub nums: String,
    pub field115: u16,
    pub field113: u16,
    pub src: String,
}
