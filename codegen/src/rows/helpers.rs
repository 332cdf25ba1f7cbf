//! Rows of `helpers/*.ron`: families of helpers, and the categories that say how many there are.

use serde::Deserialize;

/// How a helper gets into the code that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Tier {
    /// A weak function that is called.
    Call,
    /// A template that is spliced into its caller.
    Inline,
}

/// Where a name or a prototype comes from.
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
    /// Not built, and why.
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
