//! Writes a [`Cubin`] as bytes.
//!
//! Sections and symbols are numbered first, then every section gets its bytes, then the file its
//! layout. The bytes depend only on the model and the tables.

use super::attributes::{write_function, write_module};
use super::container::{Elf, SHF_INFO_LINK, Section, Special, Symbol, has_no_bytes};
use super::emit::emit;
use super::error::CubinError;
use super::model::{CallRow, Cubin, ElfKind, Param, Reloc};
use super::passthrough::{KeptSection, SectionInfo};
use super::plan::{self, Draft, Shape};
use super::symbols::symbols;
use crate::sorted::SortedMap;
use crate::tables::elf::{Content, ElfTarget, InfoRule, SectionRow};

/// The top byte of `e_flags` is the number of the section of the target's note, so it grows with
/// every section of debug information. Source: ptxas 13.0.88 with none to nine of them.
const COUNTED: Content = Content::TargetNote;

/// Low byte of `e_flags` of an object whose code is in `.text` alone. Source: for sm_100 and
/// sm_120, nvlink 13.0.88 accepts objects without the second representation of the code only with
/// this byte.
const PLAIN_CODE: u8 = 0x04;

/// Largest size of a section with bytes in the file.
const MAX_BYTES: u64 = 1 << 32;

/// Writes a cubin.
///
/// # Errors
///
/// An SM number without ELF facts, a reference to a symbol or section that does not exist, or a
/// value that the file format cannot hold.
pub fn write(cubin: &Cubin) -> Result<Vec<u8>, CubinError> {
    let target = ElfTarget::of_sm(cubin.sm)
        .ok_or_else(|| CubinError::model(format!("elf/targets.ron has no row for SM number {}", cubin.sm)))?;
    check(cubin)?;
    let drafts = plan::sections(cubin, target)?;
    let symbols = symbols(cubin, target, &drafts)?;
    let numbers = Numbers::new(&drafts, &symbols);
    let mut sections = vec![Section::default()];
    for draft in &drafts {
        sections.push(section(draft, cubin, target, &numbers)?);
    }
    let counted = |draft: &Draft<'_>| matches!(draft.shape, Shape::Row(row, _) if row.content == COUNTED);
    let top = drafts.iter().position(counted).map_or(0, |place| place as u32 + 1);
    let top = cubin.flags_top.map_or(top & 0xff, u32::from);
    let low = if cubin.kind == ElfKind::Relocatable { PLAIN_CODE } else { target.flags_low };
    let elf = Elf {
        without_abi: cubin.without_abi,
        kind: if cubin.kind == ElfKind::Relocatable { 1 } else { 2 },
        flags: top << 24 | cubin.sm << 8 | u32::from(low),
        sections,
        symbols: symbols.clone(),
    };
    emit(&elf, target.layout.info())
}

/// Rejects values that the file format cannot hold.
fn check(cubin: &Cubin) -> Result<(), CubinError> {
    for function in &cubin.functions {
        let name = &function.name;
        if !function.code.len().is_multiple_of(16) {
            return Err(CubinError::model(format!("{name}: {} bytes are no whole words", function.code.len())));
        }
        if function.param_base > 0xffff || function.param_bytes > 0xffff {
            return Err(CubinError::model(format!("{name}: {} bytes of parameters", function.param_bytes)));
        }
        let end = |param: &Param| u32::from(param.offset) + u32::from(param.size);
        if let Some(param) = function.params.iter().find(|param| end(param) > function.param_bytes) {
            let (ordinal, bytes) = (param.ordinal, function.param_bytes);
            return Err(CubinError::model(format!("{name}: parameter {ordinal} ends past the {bytes} bytes of all")));
        }
        if function.registers > 0xff && function.kernel {
            return Err(CubinError::model(format!("{name}: {} registers", function.registers)));
        }
    }
    Ok(())
}

/// Section and symbol indices by name.
struct Numbers<'a> {
    sections: SortedMap<&'a str, u32>,
    symbols: SortedMap<&'a str, u32>,
    /// Index of the last local symbol + 1.
    locals: u32,
}

impl<'a> Numbers<'a> {
    fn new(drafts: &'a [Draft<'a>], symbols: &'a [Symbol]) -> Self {
        let last = symbols.iter().rposition(|symbol| symbol.info >> 4 == 0);
        let named = symbols.iter().enumerate().filter(|(_, symbol)| !symbol.name.is_empty());
        Numbers {
            sections: drafts.iter().zip(1..).map(|(draft, number)| (draft.name.as_str(), number)).collect(),
            symbols: named.map(|(i, symbol)| (symbol.name.as_str(), i as u32)).collect(),
            locals: last.map_or(0, |i| i as u32 + 1),
        }
    }

    fn section(&self, name: &str) -> Result<u32, CubinError> {
        let found = self.sections.get(name).copied();
        found.ok_or_else(|| CubinError::model(format!("there is no section `{name}`")))
    }

    fn symbol(&self, name: &str) -> Result<u32, CubinError> {
        let found = self.symbols.get(name).copied();
        found.ok_or_else(|| CubinError::model(format!("there is no symbol `{name}`")))
    }
}

/// The finished section of a draft.
fn section(draft: &Draft<'_>, cubin: &Cubin, target: &ElfTarget, numbers: &Numbers<'_>) -> Result<Section, CubinError> {
    let mut section = Section { name: draft.name.clone(), ..Section::default() };
    (section.bytes, section.align) = (draft.image.bytes.clone(), draft.image.align);
    match &draft.shape {
        Shape::Row(row, function) => {
            shape_by_row(&mut section, row, cubin.kind);
            section.special = match row.content {
                Content::SectionNames => Special::SectionNames,
                Content::SymbolNames => Special::SymbolNames,
                Content::Symbols => Special::Symbols,
                _ => Special::No,
            };
            section.bytes = match row.content {
                Content::ModuleInfo => write_module(cubin, target, &|name| numbers.symbol(name))?,
                Content::CallGraph => call_graph(cubin, numbers, &mut section.strings)?,
                Content::Prototypes => prototypes(cubin, numbers, &mut section.strings)?,
                Content::FunctionInfo => match function {
                    Some(function) => write_function(function, cubin, target, &|name| numbers.symbol(name))?,
                    None => Vec::new(),
                },
                _ => section.bytes,
            };
            section.link = if row.link.is_empty() { 0 } else { numbers.section(row.link)? };
            section.info = info_of(draft, row, target, numbers)?;
        }
        Shape::Relocs(row, of) => {
            shape_by_row(&mut section, row, cubin.kind);
            section.bytes = relocations(&draft.image.relocs, row, numbers)?;
            section.link = numbers.section(row.link)?;
            section.info = numbers.section(of)?;
        }
        Shape::Kept(kept) => shape_by_kept(&mut section, kept, numbers)?,
    }
    if has_no_bytes(section.kind) {
        section.size = draft.image.size;
        section.bytes.clear();
    } else {
        if draft.image.size > MAX_BYTES {
            let (name, size) = (&draft.name, draft.image.size);
            return Err(CubinError::model(format!("`{name}`: {size:#x} bytes cannot be written")));
        }
        // Missing bytes are zero, up to the section's size.
        section.size = draft.image.size.max(section.bytes.len() as u64);
    }
    Ok(section)
}

fn shape_by_row(section: &mut Section, row: &SectionRow, kind: ElfKind) {
    section.kind = if kind == ElfKind::Relocatable { row.object_kind } else { row.kind };
    (section.flags, section.entry) = (row.flags, row.entry);
    section.align = section.align.max(row.align);
}

fn shape_by_kept(section: &mut Section, kept: &KeptSection, numbers: &Numbers<'_>) -> Result<(), CubinError> {
    (section.kind, section.flags, section.entry) = (kept.kind, kept.flags, kept.entry_size);
    section.link = kept.link.as_ref().map_or(Ok(0), |name| numbers.section(name))?;
    section.info = match &kept.info {
        SectionInfo::Value(value) => *value,
        SectionInfo::Section(name) => numbers.section(name)?,
    };
    Ok(())
}

/// `sh_info` according to the row.
fn info_of(draft: &Draft<'_>, row: &SectionRow, target: &ElfTarget, numbers: &Numbers<'_>) -> Result<u32, CubinError> {
    let Shape::Row(_, function) = draft.shape else { return Ok(0) };
    match (row.info, function) {
        (InfoRule::Symbols, _) => Ok(numbers.locals),
        (InfoRule::Section(name), _) => numbers.section(name),
        (InfoRule::Text, Some(function)) => numbers.section(&format!(".text.{}", function.name)),
        (InfoRule::Function, Some(function)) => {
            let top = if target.layout.info().text_info_registers { function.registers } else { 0 };
            Ok(numbers.symbol(&function.name)? | top << 24)
        }
        _ => Ok(0),
    }
}

fn relocations(relocs: &[Reloc], row: &SectionRow, numbers: &Numbers<'_>) -> Result<Vec<u8>, CubinError> {
    let mut out = Vec::new();
    for reloc in relocs {
        let symbol = if reloc.symbol.is_empty() { 0 } else { numbers.symbol(&reloc.symbol)? };
        out.extend(reloc.offset.to_le_bytes());
        out.extend((u64::from(symbol) << 32 | u64::from(reloc.kind)).to_le_bytes());
        if row.content == Content::RelocationsWithAddend {
            out.extend(reloc.addend.to_le_bytes());
        }
    }
    Ok(out)
}

/// Rows of the call graph: each class starts with a row (0, -class).
fn call_graph(cubin: &Cubin, numbers: &Numbers<'_>, strings: &mut Vec<(usize, String)>) -> Result<Vec<u8>, CubinError> {
    let mut out = Vec::new();
    let mut put = |from: u32, to: u32, text: Option<&String>| {
        out.extend(from.to_le_bytes());
        strings.extend(text.map(|text| (out.len(), text.clone())));
        out.extend(to.to_le_bytes());
    };
    for class in 1..=4u32 {
        put(0, class.wrapping_neg(), None);
        for row in &cubin.call_graph {
            match (class, row) {
                (1, CallRow::Direct { caller, callee }) | (4, CallRow::Reaches { caller, callee }) => {
                    put(numbers.symbol(caller)?, numbers.symbol(callee)?, None);
                }
                (2, CallRow::Address { function: name, prototype })
                | (3, CallRow::Indirect { caller: name, prototype }) => {
                    put(numbers.symbol(name)?, 0, Some(prototype));
                }
                _ => {}
            }
        }
    }
    Ok(out)
}

/// Rows of `.nv.prototype`: a function and a string.
fn prototypes(cubin: &Cubin, numbers: &Numbers<'_>, strings: &mut Vec<(usize, String)>) -> Result<Vec<u8>, CubinError> {
    let mut out = Vec::new();
    for (function, prototype) in &cubin.prototypes {
        out.extend(numbers.symbol(function)?.to_le_bytes());
        strings.push((out.len(), prototype.clone()));
        out.extend(0u32.to_le_bytes());
    }
    Ok(out)
}

/// Whether `sh_info` of a section is a section index.
pub fn info_is_section(flags: u64) -> bool {
    flags & SHF_INFO_LINK != 0
}
