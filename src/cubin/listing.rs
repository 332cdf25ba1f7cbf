//! The raw attribute records of a file, by section, for listings and comparisons, with the symbols
//! that payloads refer to by number. Nothing is interpreted or left out.

use super::bytes::Bytes;
use super::container::Elf;
use super::error::CubinError;
use super::model::Attribute;
use super::records;
use crate::tables::elf::{Content, SECTIONS, Scope};

/// The attribute records of a file.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Names of all symbols by number.
    pub symbols: Vec<String>,
    /// `.nv.info`, `.nv.info.NAME` and `.nv.compat` in file order.
    pub sections: Vec<(String, Vec<Attribute>)>,
}

/// Lists the attribute records of a file.
pub fn listing(bytes: &[u8]) -> Result<Listing, CubinError> {
    let elf = Elf::parse(bytes)?;
    let mut listing =
        Listing { symbols: elf.symbols.into_iter().map(|symbol| symbol.name).collect(), sections: vec![] };
    let contents = [Content::ModuleInfo, Content::FunctionInfo, Content::Compat];
    for section in &elf.sections {
        let row = SECTIONS.iter().filter(|row| contents.contains(&row.content)).find(|row| match row.scope {
            Scope::Module => section.name == row.name,
            Scope::Function => section.name.starts_with(row.name),
        });
        if row.is_some_and(|row| row.kind == section.kind) {
            let records = records::read(Bytes::at(&section.bytes, section.offset))?;
            listing.sections.push((section.name.clone(), records));
        }
    }
    Ok(listing)
}
