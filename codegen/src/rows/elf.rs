//! Rows of `elf/*.ron` and `eiattr.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutRow {
    pub name: String,
    pub relocs: String,
    pub readonly: u32,
    pub headers: String,
    pub text_info: String,
    pub small_params: u32,
    pub large_base: Option<u32>,
    pub pointers: Vec<(String, u8)>,
    pub src: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElfTargetRow {
    pub sm: u32,
    pub layout: String,
    pub flags_low: u8,
    pub text_blocks: u32,
    pub reserved: Option<(u64, u64)>,
    pub constants: String,
    #[serde(default = "first_toolkit")]
    pub toolkit: u32,
    pub src: String,
}

/// The toolkit whose rules a cubin follows where its target does not need a later one.
fn first_toolkit() -> u32 {
    130
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionRow {
    pub name: String,
    pub scope: String,
    pub content: String,
    pub kind: u32,
    pub object_kind: u32,
    pub flags: u64,
    pub align: u64,
    pub entry: u64,
    pub link: String,
    pub info: String,
    pub symbol: String,
    pub bytes: String,
    pub rel: Option<u16>,
    pub rela: Option<u16>,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatRow {
    pub id: u8,
    pub name: String,
    pub format: u8,
    pub value: String,
    #[serde(default)]
    pub toolkit: Option<u32>,
    pub differ: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReservedRow {
    pub name: String,
    pub sms: Vec<u32>,
    pub when: String,
    pub info: u8,
    pub other: u8,
    pub section: String,
    pub value: u64,
    pub size: u64,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelocationRow {
    pub number: u32,
    pub name: String,
    pub rel: String,
    pub rela: String,
    pub bits: String,
    pub shift: u32,
    pub applies: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttributeRow {
    pub id: u8,
    pub name: String,
    pub format: u8,
    pub place: String,
    pub value: String,
    pub of: String,
    pub rel: u16,
    pub rela: u16,
    pub payload: String,
    pub when: String,
    pub driver: String,
    pub differ: String,
    pub src: String,
}
