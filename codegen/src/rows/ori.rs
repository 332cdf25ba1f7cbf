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
    pub recipe: String,
    /// Forms in the uniform datapath; absent: none.
    #[serde(default)]
    pub uniform: String,
    /// The product and the sum in one; absent: none.
    #[serde(default)]
    pub fused: String,
    /// The modifier with which alone it is idempotent; absent: with any.
    #[serde(default)]
    pub idempotent_with: String,
    pub state: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyRow {
    pub name: String,
    pub meaning: String,
    /// Properties that an opcode with this one must have; absent: none.
    #[serde(default)]
    pub needs: String,
    /// Properties of which it must have at least one; absent: none.
    #[serde(default)]
    pub needs_one: String,
    /// Properties that it must not have; absent: none.
    #[serde(default)]
    pub excludes: String,
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueRow {
    pub kind: String,
    pub says: String,
    pub values: String,
    pub is: u8,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeRow {
    pub name: String,
    pub category: String,
    pub steps: String,
    pub status: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveRow {
    pub to: String,
    pub from: String,
    pub op: String,
    pub args: String,
    pub mods: String,
    pub src: String,
}
