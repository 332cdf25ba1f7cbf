//! Decides which sections a cubin gets and in which order, and fills those that need no index.
//!
//! It follows the rows of `elf/sections.ron`. A kept section replaces the generated one of its
//! name; a file that was read gets no bookkeeping section that it did not have.

use super::error::CubinError;
use super::model::{Cubin, ElfKind, Function, Image, Reloc};
use super::passthrough::KeptSection;
use super::{frame, notes};
use crate::sorted::SortedMap;
use crate::tables::elf::{Content, ElfTarget, RESERVED, ReservedRow, SECTIONS, Scope, SectionRow};
use crate::tables::targets::TARGETS;

/// A planned section: its name, the source of its header fields, and its content as far as it needs
/// no index.
pub struct Draft<'a> {
    pub name: String,
    pub shape: Shape<'a>,
    pub image: Image,
}

/// Source of the header fields.
pub enum Shape<'a> {
    /// A row, and the function if there is one section per function.
    Row(&'static SectionRow, Option<&'a Function>),
    Kept(&'a KeptSection),
    /// Relocations of the section of this name.
    Relocs(&'static SectionRow, String),
}

/// Sort key in the file: the row's order, then the function's, then the row's index in its table.
type Key = (u16, usize, usize);
/// Order of a section without a row.
const LAST: u16 = u16::MAX;

/// All sections but the null section, in file order.
pub fn sections<'a>(cubin: &'a Cubin, target: &'static ElfTarget) -> Result<Vec<Draft<'a>>, CubinError> {
    let mut drafts: Vec<(Key, Draft<'a>)> = Vec::new();
    for (number, row) in SECTIONS.iter().enumerate() {
        let Some(order) = row.order[target.layout as usize] else { continue };
        match row.scope {
            Scope::Module => {
                if let Some(image) = module_image(row, cubin, target)? {
                    let shape = Shape::Row(row, None);
                    drafts.push(((order, 0, number), Draft { name: row.name.to_string(), shape, image }));
                }
            }
            Scope::Function => {
                for (i, function) in cubin.functions.iter().enumerate() {
                    if let Some(image) = function_image(row, function).filter(|_| wanted_of(row, function, cubin)) {
                        let (name, shape) = (format!("{}{}", row.name, function.name), Shape::Row(row, Some(function)));
                        drafts.push(((order, i, number), Draft { name, shape, image }));
                    }
                }
            }
        }
    }
    replace_by_kept(&mut drafts, cubin, target);
    add_relocs(&mut drafts, cubin, target);
    let order = &cubin.kept.order.sections;
    let order: SortedMap<&str, usize> = order.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    crate::sorted::by_key(&mut drafts, |(key, draft)| {
        (order.get(draft.name.as_str()).map_or(usize::MAX, |i| *i), *key)
    });
    Ok(drafts.into_iter().map(|(_, draft)| draft).collect())
}

/// Replaces generated sections by kept ones; other kept sections go to the place of their row, or
/// last.
fn replace_by_kept<'a>(drafts: &mut Vec<(Key, Draft<'a>)>, cubin: &'a Cubin, target: &ElfTarget) {
    for (i, kept) in cubin.kept.sections.iter().enumerate() {
        let key = match drafts.iter().position(|(_, draft)| draft.name == kept.name) {
            Some(found) => drafts.remove(found).0,
            None => key_of(&kept.name, i, target).unwrap_or((LAST, 0, i)),
        };
        let draft = Draft { name: kept.name.clone(), shape: Shape::Kept(kept), image: kept.image.clone() };
        drafts.push((key, draft));
    }
}

/// The sort key of a section name; line tables stay in the order in which they were kept.
fn key_of(name: &str, place: usize, target: &ElfTarget) -> Option<Key> {
    let row = SECTIONS.iter().enumerate().find(|(_, row)| match row.scope {
        // In objects the name of the text ends in a number.
        Scope::Module if row.content == Content::Kept => name.starts_with(row.name),
        Scope::Module => row.name == name,
        Scope::Function => name.starts_with(row.name),
    });
    row.and_then(|(number, row)| {
        let number = if row.content == Content::Kept { SECTIONS.len() + place } else { number };
        Some((row.order[target.layout as usize]?, 0, number))
    })
}

/// Adds the relocation sections: one for each section with relocations, and those of the file that
/// was read.
fn add_relocs<'a>(drafts: &mut Vec<(Key, Draft<'a>)>, cubin: &'a Cubin, target: &ElfTarget) {
    let mut more = Vec::new();
    for (number, (key, draft)) in drafts.iter().enumerate() {
        let mut tables = reloc_tables(draft, cubin, target);
        // If a section has two tables, the one with the smaller first offset comes first.
        crate::sorted::by_key(&mut tables, |(_, table)| table.image.relocs.iter().map(|reloc| reloc.offset).min());
        for (i, (order, table)) in tables.into_iter().enumerate() {
            more.push(((order, relocs_place(key, draft, order), 2 * number + i), table));
        }
    }
    drafts.extend(more);
}

/// The relocation sections of a section, each with the order of its row.
fn reloc_tables<'a>(draft: &Draft<'_>, cubin: &Cubin, target: &ElfTarget) -> Vec<(u16, Draft<'a>)> {
    let split = target.layout.info().split_relocs;
    let table = |row: &'static SectionRow| {
        let order = row.order[target.layout as usize]?;
        let with_addend = match row.content {
            Content::Relocations => false,
            Content::RelocationsWithAddend => true,
            _ => return None,
        };
        let own = |r: &&Reloc| with_addend == (!split || r.explicit_addend || r.addend != 0);
        let relocs: Vec<Reloc> = draft.image.relocs.iter().filter(own).cloned().collect();
        let name = format!("{}{}", row.name, draft.name);
        if relocs.is_empty() && !cubin.kept.order.sections.contains(&name) {
            return None;
        }
        let size = relocs.len() as u64 * row.entry;
        let image = Image { relocs, size, align: row.align, bytes: Vec::new() };
        Some((order, Draft { name, shape: Shape::Relocs(row, draft.name.clone()), image }))
    };
    SECTIONS.iter().filter_map(table).collect()
}

/// The relocations of code come first, then those of data in the order of their sections, then
/// those of the line tables, and those of the frame last.
fn relocs_place(key: &Key, draft: &Draft<'_>, order: u16) -> usize {
    match draft.shape {
        Shape::Row(row, _) if row.content == Content::Code => 0,
        Shape::Row(row, _) if row.content == Content::Frame => usize::MAX,
        _ if key.0 <= order => usize::MAX - 1,
        _ => 1,
    }
}

/// Content of a section that exists once; `None` if this file has none.
fn module_image(row: &SectionRow, cubin: &Cubin, target: &ElfTarget) -> Result<Option<Image>, CubinError> {
    let order = &cubin.kept.order.sections;
    let wanted = order.is_empty() || order.iter().any(|name| name == row.name);
    let bytes = |bytes| Ok(Some(Image::new(bytes, row.align)));
    match row.content {
        Content::Constant3 => return Ok(cubin.constant3.clone()),
        Content::Constant4 => return Ok(cubin.constant4.clone()),
        Content::Global => return Ok(cubin.global.clone()),
        Content::GlobalInit => return Ok(cubin.global_init.clone()),
        _ if !wanted => return Ok(None),
        _ => {}
    }
    match row.content {
        Content::Prototypes if cubin.prototypes.is_empty() && order.is_empty() => Ok(None),
        Content::Frame => Ok(Some(frame::section(&cubin.functions, cubin.kind, target.layout, uniform(target)))),
        Content::ToolNote => bytes(notes::tool_note(&cubin.tool)),
        Content::TargetNote => bytes(notes::target_note(cubin)),
        Content::Compat => bytes(notes::compat(cubin)?),
        // Objects do not have it yet.
        Content::Fixed if cubin.kind == ElfKind::Relocatable && order.is_empty() => Ok(None),
        Content::Fixed => bytes(row.bytes.to_vec()),
        Content::ReservedShared => Ok(reserved_shared(cubin, target)),
        // Filled in later, once names have indices.
        Content::SectionNames | Content::SymbolNames | Content::Symbols | Content::ModuleInfo => bytes(Vec::new()),
        Content::CallGraph | Content::Prototypes => bytes(Vec::new()),
        // Present only among the kept sections.
        Content::Kept => Ok(None),
        // Handled above, made for each function, or derived from the others.
        Content::Constant3 | Content::Constant4 | Content::Global | Content::GlobalInit => Ok(None),
        Content::FunctionInfo | Content::Code | Content::Constant0 | Content::Constant2 | Content::Shared => Ok(None),
        Content::Relocations | Content::RelocationsWithAddend => Ok(None),
    }
}

/// Number of uniform registers of a target.
fn uniform(target: &ElfTarget) -> u32 {
    let info = TARGETS.iter().filter(|other| other.sm == target.sm).find_map(|other| other.info());
    info.map_or(0, |info| info.ur_count)
}

/// The reserved part of shared memory: in an object, of what it needs itself.
fn reserved_shared(cubin: &Cubin, target: &ElfTarget) -> Option<Image> {
    let described = |row: &&ReservedRow| !row.section.is_empty() && cubin.describes(row, target);
    let mut symbols = RESERVED.iter().filter(described);
    if cubin.kind == ElfKind::Relocatable {
        let (size, align) = symbols.fold((0, 0), |(size, align), row| (size + row.size, align.max(row.value)));
        return (size > 0).then(|| Image { size, align, ..Image::default() });
    }
    let (size, align) = target.reserved_shared.filter(|_| !cubin.separate || symbols.next().is_some())?;
    let size = size + if cubin.allocates_tensor_memory() { TENSOR_PARTITION } else { 0 };
    Some(Image { size, align, ..Image::default() })
}

/// Bytes in which a block keeps what it has of tensor memory.
pub const TENSOR_PARTITION: u64 = 0x20;

/// A function of a file that was read gets no section of bookkeeping that it did not have.
fn wanted_of(row: &SectionRow, function: &Function, cubin: &Cubin) -> bool {
    let order = &cubin.kept.order.sections;
    let new = !order.contains(&format!(".text.{}", function.name));
    let is_data = !matches!(row.content, Content::FunctionInfo | Content::Constant0);
    new || is_data || order.contains(&format!("{}{}", row.name, function.name))
}

/// Content of a section that exists once per function; `None` if this function has none.
fn function_image(row: &SectionRow, function: &Function) -> Option<Image> {
    match row.content {
        Content::FunctionInfo => Some(Image::new(Vec::new(), row.align)),
        Content::Code => {
            let align = function.code_align.max(row.align);
            Some(Image { relocs: function.code_relocs.clone(), ..Image::new(function.code.clone(), align) })
        }
        Content::Constant0 if function.kernel => {
            let relocs = function.references.iter().rev().cloned().collect();
            Some(Image { relocs, ..Image::new(vec![0; function.constant0_bytes() as usize], row.align) })
        }
        Content::Constant2 => function.constant2.clone(),
        Content::Shared => {
            function.shared.map(|shared| Image { size: shared.size, align: shared.align, ..Image::default() })
        }
        _ => None,
    }
}
