//! Rows of `helpers/*.ron`: families of helpers, and the categories with the number of helpers in
//! each.

use serde::Deserialize;

/// How a helper is added to the code that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Tier {
    /// A weak function that is called.
    Call,
    /// A template that is inlined into its caller.
    Inline,
}

/// The source of a name or prototype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Status {
    Published,
    Derived,
    Proposed,
}

#[derive(Clone, Debug, Deserialize)]
pub enum Body {
    /// A file beside the tables, with placeholders.
    Ptx(String),
    /// Not implemented, and why.
    Planned(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyRow {
    pub names: String,
    pub with: Vec<String>,
    pub category: String,
    pub convention: char,
    pub returns: String,
    pub params: String,
    pub op: String,
    pub on: String,
    pub computes: String,
    pub body: Body,
    #[serde(default)]
    pub slow_path: u16,
    pub name: Status,
    pub proto: Status,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CategoryRow {
    pub category: String,
    pub tier: Tier,
    pub first: u16,
    pub count: u16,
    pub src: String,
}
