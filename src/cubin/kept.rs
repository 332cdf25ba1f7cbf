//! What a file says and the model has no field for.
//!
//! Input: the reader fills it. Output: the writer puts it back. Invariant: references are by name, as in the model; the
//! second representation of the code is named but never kept.

use super::model::{Attribute, Image};

/// What the reader could not put into a field; the writer puts it back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Sections; one of them replaces the generated section of the same name.
    pub sections: Vec<KeptSection>,
    pub symbols: Vec<KeptSymbol>,
    /// Names of the second representation of the code (merc, capmerc), which is never written back: it would go on
    /// describing the old code after the code was changed.
    pub capsule: Vec<String>,
    /// Module-level attribute records that the model has no field for.
    pub attributes: Vec<Attribute>,
    /// Order of sections, of symbols and of attribute records in the file that was read. The writer follows it as far
    /// as it names what is there, so that a file comes out as it went in.
    pub order: Order,
}

/// A section as it stands in the file, its references by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptSection {
    pub name: String,
    pub kind: u32,
    pub flags: u64,
    pub align: u64,
    pub entry_size: u64,
    /// Name of the section in `sh_link`.
    pub link: Option<String>,
    pub info: SectionInfo,
    pub image: Image,
}

/// What `sh_info` of a kept section means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionInfo {
    Value(u32),
    Section(String),
}

impl Default for SectionInfo {
    fn default() -> Self {
        SectionInfo::Value(0)
    }
}

/// A symbol as it stands in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptSymbol {
    /// Distinct from all others, unless empty.
    pub name: String,
    /// The name in the file where another local symbol has it too.
    pub shared_name: Option<String>,
    /// `st_info`: binding in the upper half, type in the lower.
    pub info: u8,
    pub other: u8,
    pub section: SymbolHome,
    pub value: u64,
    pub size: u64,
}

/// Where a kept symbol is defined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SymbolHome {
    #[default]
    Undefined,
    Section(String),
    /// A reserved section number (absolute, common).
    Reserved(u16),
}

/// Order of a file that was read, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub sections: Vec<String>,
    pub symbols: Vec<String>,
}
