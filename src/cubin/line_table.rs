//! Reads line tables: which source line an instruction comes from.
//!
//! It works on cubins of this compiler and of ptxas. The line comes from `.debug_line` where that
//! covers the instruction (for inlined code, the line inside the inlined function), otherwise from
//! `.nv_debug_line_sass`, as a line of the PTX text. A malformed table gives no lines and is never
//! an error, because only messages depend on it.

use super::model::{Cubin, Reloc};
use crate::sorted::SortedMap;
use gimli::{DebugLine, DebugLineOffset, LittleEndian, Reader, Relocate, RelocateReader};
use serde::Serialize;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourceLine {
    /// Name of the file with its directory, as in the table; empty for the PTX text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// From 1.
    pub line: u32,
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.file.is_empty() { write!(f, "line {}", self.line) } else { write!(f, "{}:{}", self.file, self.line) }
    }
}

/// Tables in order of preference.
const TABLES: [&str; 2] = [".debug_line", ".nv_debug_line_sass"];

/// Low bits of an address that hold the offset in a function; the function's index is above them.
const OFFSET_BITS: u32 = 32;

/// Lines by function, from the offset where each begins to apply; `None` where a range ends.
type Rows = SortedMap<usize, SortedMap<u64, Option<SourceLine>>>;

/// The source lines of a cubin.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    names: SortedMap<String, usize>,
    tables: Vec<Rows>,
}

/// Gives each function a distinct address range.
#[derive(Clone, Debug)]
struct Places<'a> {
    relocs: &'a [Reloc],
    names: &'a SortedMap<String, usize>,
}

impl Relocate for Places<'_> {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        let Some(reloc) = self.relocs.iter().find(|r| r.offset == offset as u64) else { return Ok(value) };
        let name = reloc.symbol.strip_prefix(".text.").unwrap_or(&reloc.symbol);
        let number = self.names.get(name).copied().unwrap_or(self.names.len());
        Ok(value.wrapping_add(reloc.addend as u64) | (number as u64 + 1) << OFFSET_BITS)
    }

    fn relocate_offset(&self, _: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}

impl LineTable {
    /// The lines of a cubin's functions.
    pub fn of(cubin: &Cubin) -> LineTable {
        let names: SortedMap<String, usize> =
            cubin.functions.iter().enumerate().map(|(number, f)| (f.name.clone(), number)).collect();
        let sections = TABLES.iter().flat_map(|name| cubin.kept.sections.iter().filter(move |s| s.name == *name));
        let read = |section: &super::KeptSection| {
            let places = Places { relocs: &section.image.relocs, names: &names };
            let bytes = gimli::EndianSlice::new(&section.image.bytes, LittleEndian);
            let mut rows = Rows::new();
            // The rows before an error are kept.
            let _ = collect(RelocateReader::new(bytes, places), section.image.bytes.len(), &mut rows);
            rows
        };
        let tables = sections.map(read).collect();
        LineTable { names, tables }
    }

    /// The line of the instruction at a byte offset of a function.
    pub fn at(&self, function: &str, offset: u64) -> Option<SourceLine> {
        let number = self.names.get(function)?;
        let in_table = |rows: &Rows| rows.get(number)?.range(..=offset).next_back()?.1.clone();
        self.tables.iter().find_map(in_table)
    }
}

/// Reads all line programs of a section.
fn collect<R: Reader<Offset = usize>>(bytes: R, length: usize, rows: &mut Rows) -> gimli::Result<()> {
    let section = DebugLine::from(bytes);
    let mut offset = 0;
    while offset < length {
        let program = section.program(DebugLineOffset(offset), 8, None, None)?;
        offset += program.header().unit_length() + 4;
        let mut list = program.rows();
        while let Some((header, row)) = list.next_row()? {
            let Some(function) = (row.address() >> OFFSET_BITS).checked_sub(1) else { continue };
            let at = row.address() & ((1 << OFFSET_BITS) - 1);
            let line = row.line().filter(|_| !row.end_sequence()).and_then(|line| u32::try_from(line.get()).ok());
            let file = match row.file(header) {
                Some(file) => named(header, file)?,
                None => String::new(),
            };
            rows.entry(function as usize).or_default().insert(at, line.map(|line| SourceLine { file, line }));
        }
    }
    Ok(())
}

/// A file name with its directory.
fn named<R: Reader<Offset = usize>>(
    header: &gimli::LineProgramHeader<R>,
    file: &gimli::FileEntry<R>,
) -> gimli::Result<String> {
    let text = |value: gimli::AttributeValue<R>| match value {
        gimli::AttributeValue::String(text) => text.to_string_lossy().map(std::borrow::Cow::into_owned),
        _ => Ok(String::new()),
    };
    let name = text(file.path_name())?;
    let folder = if file.directory_index() == 0 { None } else { file.directory(header) };
    let folder = folder.map_or(Ok(String::new()), text)?;
    Ok(if folder.is_empty() { name } else { format!("{folder}/{name}") })
}
