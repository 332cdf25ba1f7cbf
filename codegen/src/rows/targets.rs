//! Rows of `targets.ron`, `generations.ron` and `features.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetRow {
    pub col: u32,
    pub name: String,
    pub sm: u32,
    pub variant: String,
    pub kind: String,
    pub parent: Option<String>,
    pub generation: Option<String>,
    pub min_ptx: Option<String>,
    #[serde(default)]
    pub renamed: Option<u32>,
    pub src: String,
}

impl TargetRow {
    /// The configurations whose features this one has too, in the row's order.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        self.parent.iter().flat_map(|names| names.split_whitespace())
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationRow {
    pub name: String,
    pub ur_bits: u32,
    pub ur_count: u32,
    pub ur_first: u32,
    pub reg_limit: u32,
    pub reg_file: u32,
    pub reg_unit: u32,
    pub abi_min: u32,
    pub param_base: u32,
    pub stack_top: u32,
    pub global_desc: Option<u32>,
    pub ntid: u32,
    pub nctaid: u32,
    pub shared_window: Option<u32>,
    pub local_window: u32,
    pub const_window: u32,
    pub param_window: u32,
    pub param_window_at: u32,
    pub param_end: u32,
    pub alias_flag: Option<u32>,
    pub image_tables: u32,
    pub shared_base: u32,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureRow {
    pub name: String,
    pub on: String,
    pub src: String,
}
