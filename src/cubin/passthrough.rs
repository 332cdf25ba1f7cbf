//! Contents of a file that the model has no field for: the reader keeps them and the writer puts
//! them back.
//!
//! References are by name, as in the model. The second representation of the code is named but
//! never kept.

use super::model::{Attribute, Image, Shared};
use super::symbols::SHT_CUDA_SHARED;

/// Contents that the reader could not put into a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Sections; each replaces the generated section of the same name.
    pub sections: Vec<KeptSection>,
    pub symbols: Vec<KeptSymbol>,
    /// Section names of the second representation of the code (merc, capmerc). It is never written
    /// back, because it would describe the old code after a change.
    pub capsule: Vec<String>,
    /// Module-level attribute records that the model has no field for.
    pub attributes: Vec<Attribute>,
    /// Order of sections, symbols and attribute records in the file that was read. The writer
    /// follows it, so that an unchanged file keeps its order.
    pub order: Order,
}

/// A section with its bytes as in the file and its references by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptSection {
    pub name: String,
    /// `sh_type`
    pub kind: u32,
    /// `sh_flags`
    pub flags: u64,
    /// `sh_addralign`
    pub align: u64,
    /// `sh_entsize`
    pub entry_size: u64,
    /// Name of the section in `sh_link`.
    pub link: Option<String>,
    pub info: SectionInfo,
    pub image: Image,
}

impl KeptSection {
    /// The section of shared variables that belong to no entry.
    pub fn of_shared(name: &str, shared: Shared) -> KeptSection {
        let image = Image { size: shared.size, align: shared.align, ..Image::default() };
        let (kind, flags) = (SHT_CUDA_SHARED, 3);
        KeptSection { name: name.to_string(), kind, flags, align: shared.align, image, ..KeptSection::default() }
    }
}

/// Meaning of `sh_info` of a kept section.
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

/// A symbol with its fields as in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptSymbol {
    /// Distinct from all others, unless empty.
    pub name: String,
    /// The name in the file, if another local symbol has the same one.
    pub shared_name: Option<String>,
    /// `st_info`: binding in the upper half, type in the lower.
    pub info: u8,
    /// `st_other`
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

/// Order of the file that was read, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub sections: Vec<String>,
    pub symbols: Vec<String>,
}
