//! Rows of `lowering/image_calls.ron` and `image_words.ron`.

use serde::Deserialize;

/// What a function does.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum ImageCall {
    ReadLevel,
    ReadGradients,
    VolumeGradients,
    Gather,
    Query,
    Load,
    Store,
    Reduce,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageCallRow {
    pub what: ImageCall,
    pub name: String,
    pub geometries: String,
    #[serde(default)]
    pub elements: String,
    pub args: String,
    pub results: String,
    /// What an object says of it.
    #[serde(default)]
    pub prototype: String,
    pub src: String,
}

/// What a word is given to.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum ImageWord {
    Read,
    Query,
    Access,
    Reduce,
}

/// What bits of a word say.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum ImagePart {
    Always,
    Floats,
    IntegerLevel,
    OwnSampler,
    Offsets,
    Resident,
    GatherRed,
    GatherGreen,
    GatherBlue,
    GatherAlpha,
    Red,
    Green,
    Blue,
    Alpha,
    Width,
    Height,
    Depth,
    Clamp,
    Trap,
    Zero,
    Bits8,
    Bits16,
    Bits32,
    Bits64,
    Bits128,
    ByBytes,
    Packed,
    AnyU32,
    S32,
    U64,
    S64,
    Element32,
    Element64,
    Add,
    Min,
    Max,
    And,
    Or,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageWordRow {
    pub of: ImageWord,
    pub part: ImagePart,
    pub mask: u32,
    pub bits: u32,
    pub src: String,
}
