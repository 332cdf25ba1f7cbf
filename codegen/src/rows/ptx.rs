//! Rows of `ptx/*.ron` and `ptx/forms/*.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationRow {
    pub op: String,
    pub also: String,
    /// PTX version from which on the other spellings exist.
    #[serde(default)]
    pub also_ptx: String,
    /// Whether the last part of the name may be anywhere among the modifiers.
    #[serde(default)]
    pub free: bool,
    /// PTX version and SM from which on (both together) it is removed.
    #[serde(default)]
    pub gone: Option<(String, u32)>,
    /// Whether its address in generic or global space has 64 bits.
    #[serde(default)]
    pub wide: bool,
    /// ISA class that a module with it has at least, and with integers in tensor memory.
    #[serde(default)]
    pub isa: u8,
    #[serde(default)]
    pub isa_integers: u8,
    /// How a module with it uses tensor maps.
    #[serde(default)]
    pub maps: u8,
    /// Whether it is about tensor memory.
    #[serde(default)]
    pub tensor_memory: bool,
    /// Whether it is about matrices that a warp holds in an order of the target's own.
    #[serde(default)]
    pub fragments: bool,
    pub doc: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRow {
    pub op: String,
    pub src: String,
}

/// A form without a row, known by suffixes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedFormRow {
    pub op: String,
    pub words: String,
    pub src: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum GroupKind {
    Choice,
    Flag,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRow {
    pub group: String,
    pub kind: GroupKind,
    pub missing: String,
    pub illegal: String,
    pub wrong: String,
    pub twice: String,
    #[serde(default)]
    pub then: String,
    /// The group that it must precede.
    #[serde(default)]
    pub before: String,
    pub doc: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModifierRow {
    pub group: String,
    pub text: String,
    /// Must directly follow the operation.
    #[serde(default)]
    pub first: bool,
    /// May be repeated.
    #[serde(default)]
    pub again: bool,
    pub src: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum TypeClass {
    Unsigned,
    Signed,
    Bits,
    Float,
    FloatVector,
    UnsignedVector,
    SignedVector,
    Narrow,
    Predicate,
    Opaque,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeRow {
    #[serde(rename = "type")]
    pub name: String,
    pub bits: u32,
    pub class: TypeClass,
    /// Lowest PTX version in which a variable may have the type.
    #[serde(default)]
    pub ptx: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeSetRow {
    pub set: String,
    pub types: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleRow {
    pub role: String,
    pub doc: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormRow {
    pub op: String,
    pub mods: String,
    pub types: String,
    pub args: String,
    /// Index of an address that no register narrower than 32 bits may be.
    #[serde(default)]
    pub whole: Option<u8>,
    pub ptx: String,
    pub sm: u32,
    pub on: String,
    /// What is said on a target that `on` leaves out, if not the general words.
    #[serde(default)]
    pub refused: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequirementRow {
    pub op: String,
    pub text: String,
    pub types: String,
    pub ptx: String,
    pub sm: u32,
    /// What requires it, as the message names it, if not the modifier or the type.
    #[serde(default)]
    pub says: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectiveRow {
    pub name: String,
    pub on: String,
    pub ptx: String,
    pub sm: u32,
    #[serde(default)]
    pub gone: Option<(String, String)>,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeRow {
    pub op: String,
    pub arg: u32,
    pub with: String,
    pub is: String,
    pub says: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitRow {
    pub limit: String,
    pub value: u64,
    pub ptx: String,
    pub sm: u32,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecialRow {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub least: u32,
    pub vector: u32,
    pub ptx: String,
    pub sm: u32,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorRow {
    pub bits: u32,
    pub spaces: String,
    pub ptx: String,
    pub sm: u32,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldRow {
    pub field: String,
    pub of: String,
    pub record: String,
    pub byte: u8,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldValueRow {
    pub name: String,
    pub value: u32,
    pub setting: u8,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionRow {
    pub version: String,
    pub src: String,
}
