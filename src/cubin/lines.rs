//! Writes line tables: `.debug_line` (source language), `.nv_debug_line_sass` (PTX text), the PTX
//! text itself, and the names of inlined functions.
//!
//! The words of each function carry their PTX line; [`LineInfo`] holds the `.file` and `.loc`
//! directives. The tables are DWARF version 2, with one sequence per function that covers its code.
//! A row for inlined code follows a row for its call at the same address and refers to that row by
//! number. Source: what ptxas 13.0.88 writes with -lineinfo, read by readelf and nvdisasm.

use super::bytes::{push_signed as signed, push_unsigned as unsigned};
use super::model::{Function, Image, Reloc};
use super::passthrough::KeptSection;
use crate::sorted::SortedMap;

/// The line information of a PTX text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineInfo {
    /// `.file`, by its number.
    pub files: SortedMap<u32, SourceFile>,
    /// `.debug_str`: NUL-terminated names.
    pub names: Vec<u8>,
    /// Each `.loc`, in the order of the text.
    pub places: Vec<SourcePlace>,
    /// The `.loc` in effect at a PTX line, as an index into `places`.
    pub at_line: SortedMap<u32, usize>,
    /// The PTX text.
    pub text: String,
}

impl LineInfo {
    /// Whether the text records calls of inlined code.
    pub fn inlined(&self) -> bool {
        self.places.iter().any(|place| place.call.is_some())
    }
}

/// A file of the source language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    pub name: String,
    /// Seconds since 1970; 0 if not given.
    pub time: u64,
    /// In bytes; 0 if not given.
    pub size: u64,
}

/// A line of the source language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    pub file: u32,
    pub line: u32,
    /// For inlined code: the call, as an index of an earlier place, and the byte offset of the
    /// function's name in `names`.
    pub call: Option<(usize, u64)>,
}

/// R_CUDA_64 and R_CUDA_32.
const ADDRESS: u32 = 2;
const ADDRESS_32: u32 = 1;
const SOURCE_LINES: &str = ".debug_line";
/// The PTX text.
const TEXT: &str = ".nv_debug_ptx_txt";
/// The names of inlined functions.
pub const NAMES: &str = ".debug_str";
/// SHT_PROGBITS.
const BITS: u32 = 1;
/// Smallest line advance of a special opcode.
const LINE_BASE: i64 = -5;
/// Number of line advances that special opcodes cover.
const LINE_RANGE: u64 = 14;
/// The first special opcode, which advances address and line at once.
const SPECIAL: u64 = 10;
/// Depth up to which calls of inlined code are recorded.
const MAX_CALLS: u32 = 64;
/// NVIDIA's extended opcode for inlined code; its operands are the number of the call's row and the
/// offset of the function's name.
const INLINED: u8 = 0x90;

/// Layout of the file that receives the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// A file to be linked: each PTX text has a distinct name, which the tables use as its file
    /// name.
    pub object: bool,
    /// Relocations with and without addend are in separate tables, which are written in reverse in
    /// objects.
    pub split_relocs: bool,
}

/// The sections, in file order.
pub fn sections(functions: &[Function], info: &LineInfo, placement: Placement) -> Vec<KeptSection> {
    let text = text(&info.text);
    let text_name = match placement.object {
        true => format!("{TEXT}.{}", digest(&info.text)),
        false => TEXT.to_string(),
    };
    let text_file = placement.object.then_some(text_name.as_str());
    let mut lines = source_lines(functions, info);
    let mut text_lines = text_lines(functions, text_file);
    if placement.object && placement.split_relocs {
        lines.relocs.reverse();
        text_lines.relocs.reverse();
        lines.relocs.extend(info.inlined().then(|| names_reloc(&lines)));
    }
    let mut sections = vec![section(SOURCE_LINES, lines)];
    sections.push(section(".nv_debug_line_sass", text_lines));
    sections.push(section(&text_name, Image::new(nul_terminated(&text), 1)));
    if !info.names.is_empty() {
        // The names that the source lines refer to follow these.
        let place = if info.inlined() { 1 } else { sections.len() };
        sections.insert(place, section(NAMES, Image::new(info.names.clone(), 1)));
    }
    sections
}

/// The header's reference to the names of inlined functions, for a linker that merges the names of
/// several objects.
fn names_reloc(lines: &Image) -> Reloc {
    let header = lines.bytes.get(6..10).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default();
    // The field ends the header, which begins after the lengths and the version.
    let offset = u64::from(u32::from_le_bytes(header)) + 10 - 4;
    Reloc { offset, kind: ADDRESS_32, symbol: NAMES.to_string(), addend: 0, explicit_addend: true }
}

fn section(name: &str, image: Image) -> KeptSection {
    KeptSection { name: name.to_string(), kind: BITS, align: 1, image, ..KeptSection::default() }
}

/// First words of lines that become empty: data and locations that other sections hold.
const LEFT_OUT: [&str; 5] = [".loc", ".file", ".b8", ".b32", ".b64"];

/// The lines of the text as in `.nv_debug_ptx_txt`: without indentation, comments and left-out
/// lines empty, empty lines at the end dropped. Source: ptxas 13.0.88 -lineinfo on texts with one
/// such line each.
fn text(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').map(text_line).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

fn text_line(line: &str) -> &str {
    let line = line.trim_start_matches([' ', '\t', '\r']);
    let line = line.split('\r').next().unwrap_or(line);
    let word = line.split([' ', '\t']).next().unwrap_or(line);
    if line.starts_with("//") || LEFT_OUT.contains(&word) { "" } else { line }
}

/// The lines, each followed by a NUL.
fn nul_terminated(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.bytes().chain([0])).collect()
}

/// Adler-32.
fn digest(text: &str) -> u32 {
    const MODULUS: u32 = 65521;
    let (low, high) = text.bytes().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}

/// Lines of the source language.
fn source_lines(functions: &[Function], info: &LineInfo) -> Image {
    let mut program = Program::new(&info.files, info.inlined());
    for function in functions {
        let places: Vec<(u64, usize)> =
            words(function).filter_map(|(at, line)| Some((at, *info.at_line.get(&line)?))).collect();
        if places.is_empty() {
            continue;
        }
        program.begin(&function.name);
        let mut last = None;
        for (at, place) in places {
            if last.replace(place) != Some(place) {
                program.place(at, place, info, MAX_CALLS);
            }
        }
        program.end(function.code.len() as u64);
    }
    program.finish()
}

/// Lines of the PTX text, which is file 0, or file 1 if it has a name.
fn text_lines(functions: &[Function], name: Option<&str>) -> Image {
    let file = name.map(|name| (1, SourceFile { name: name.to_string(), ..SourceFile::default() }));
    let number = file.iter().len() as u64;
    let mut program = Program::new(&file.into_iter().collect(), false);
    for function in functions.iter().filter(|f| words(f).next().is_some()) {
        program.begin(&function.name);
        let mut last = 0;
        for (at, line) in words(function) {
            if line != last {
                program.row(at, (number, line), None);
                last = line;
            }
        }
        program.end(function.code.len() as u64);
    }
    program.finish()
}

/// Byte offset and PTX line of the words that have one.
fn words(function: &Function) -> impl Iterator<Item = (u64, u32)> + '_ {
    let words = function.lines.iter().enumerate().filter(|(_, line)| **line != 0);
    words.map(|(i, line)| (i as u64 * 16, *line))
}

/// A line program being written, with the registers of the DWARF state machine that reads it.
struct Program {
    bytes: Vec<u8>,
    relocs: Vec<Reloc>,
    /// Index in the table of files, by `.file` number.
    files: SortedMap<u32, u64>,
    address: u64,
    file: Option<u64>,
    line: i64,
    call: (u64, u64),
    /// Number of rows in this sequence.
    rows: u64,
}

impl Program {
    /// The header: version 2, directories, files.
    fn new(files: &SortedMap<u32, SourceFile>, inlined: bool) -> Program {
        let mut directories: Vec<&str> = Vec::new();
        let mut table = Vec::new();
        for file in files.values() {
            let (directory, name) = file.name.rsplit_once('/').unwrap_or(("", &file.name));
            let number = match directories.iter().position(|d| *d == directory) {
                _ if directory.is_empty() => 0,
                Some(known) => known + 1,
                None => {
                    directories.push(directory);
                    directories.len()
                }
            };
            table.extend(name.bytes().chain([0]));
            [number as u64, file.time, file.size].into_iter().for_each(|n| unsigned(&mut table, n));
        }
        let mut rest = vec![1, 1, LINE_BASE as u8, LINE_RANGE as u8, SPECIAL as u8, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        rest.extend(directories.iter().flat_map(|d| d.bytes().chain([0])));
        rest.push(0);
        rest.extend(table);
        rest.push(0);
        if inlined {
            // Offset of the names in `.debug_str`: a header field that is present if calls are
            // recorded.
            rest.extend([0; 4]);
        }
        // The total length is filled in at the end.
        let mut bytes = vec![0; 4];
        bytes.extend(2u16.to_le_bytes());
        bytes.extend((rest.len() as u32).to_le_bytes());
        bytes.extend(rest);
        let files = files.keys().zip(1..).map(|(number, place)| (*number, place)).collect();
        Program { bytes, relocs: Vec::new(), files, address: 0, file: None, line: 1, call: (0, 0), rows: 0 }
    }

    fn begin(&mut self, symbol: &str) {
        self.bytes.extend([0, 9, 2]);
        let offset = self.bytes.len() as u64;
        let symbol = symbol.to_string();
        self.relocs.push(Reloc { offset, kind: ADDRESS, symbol, addend: 0, explicit_addend: false });
        self.bytes.extend([0; 8]);
        (self.address, self.file, self.line, self.call, self.rows) = (0, None, 1, (0, 0), 0);
    }

    /// Writes the row of a place, for inlined code after the row of its call. Returns the row's
    /// number.
    fn place(&mut self, at: u64, place: usize, info: &LineInfo, depth: u32) -> u64 {
        let SourcePlace { file, line, call } = info.places[place];
        let call = call.filter(|_| depth > 0).map(|(caller, name)| (self.place(at, caller, info, depth - 1), name));
        let file = self.files.get(&file).copied().unwrap_or(0);
        self.row(at, (file, line), call);
        self.rows
    }

    fn row(&mut self, at: u64, (file, line): (u64, u32), call: Option<(u64, u64)>) {
        if self.file.replace(file) != Some(file) {
            self.bytes.push(4);
            unsigned(&mut self.bytes, file);
        }
        let call = call.unwrap_or_default();
        if std::mem::replace(&mut self.call, call) != call {
            let mut operands = Vec::new();
            unsigned(&mut operands, call.0);
            unsigned(&mut operands, call.1);
            self.bytes.extend([0, operands.len() as u8 + 1, INLINED]);
            self.bytes.extend(operands);
        }
        let (by, address) = (i64::from(line) - self.line, at - self.address);
        (self.line, self.address) = (i64::from(line), at);
        self.rows += 1;
        let special = u64::try_from(by - LINE_BASE).ok().filter(|n| *n < LINE_RANGE - 1);
        let special = special.map(|n| n.saturating_add(LINE_RANGE.saturating_mul(address)).saturating_add(SPECIAL));
        if let Some(Ok(opcode)) = special.map(u8::try_from) {
            self.bytes.push(opcode);
            return;
        }
        if by != 0 || address == 0 {
            self.bytes.push(3);
            signed(&mut self.bytes, by);
        }
        if address != 0 {
            self.advance(address);
        }
        self.bytes.push(1);
    }

    fn end(&mut self, size: u64) {
        self.advance(size - self.address);
        self.bytes.extend([0, 1, 1]);
    }

    /// Advances the address, in bytes. ptxas writes the operand with room for a sign bit, which a
    /// reader of unsigned LEB128 takes for leading zeros.
    fn advance(&mut self, by: u64) {
        self.bytes.push(2);
        signed(&mut self.bytes, by as i64);
    }

    fn finish(mut self) -> Image {
        let length = self.bytes.len() as u32 - 4;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        Image { relocs: self.relocs, ..Image::new(self.bytes, 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ptxas 13.0.88 writes for the same rows.
    const EXPECTED: [&str; 4] = [
        "720000000200350000000101fb0e0a000101010100000001",
        "2f746d702f610000666f6f2e6375000100006261722e637568000180e2cfaa06d2090000000000",
        "000902000000000000000004010309",
        "01f102c000010402000390030003080104010003900000037902c00001030102200102d001000101",
    ];

    #[test]
    fn lines_are_as_ptxas_writes_them() {
        let file = |name: &str, time, size| SourceFile { name: name.into(), time, size };
        let place = |file, line, call| SourcePlace { file, line, call };
        let mut function = Function { name: "k".into(), code: vec![0; 0x180], ..Function::default() };
        function.lines = [vec![1], vec![2; 4], vec![3; 4], vec![4; 2], vec![5], vec![0; 12]].concat();
        let info = LineInfo {
            files: [(1, file("/tmp/a/foo.cu", 0, 0)), (2, file("/tmp/a/bar.cuh", 1_700_000_000, 1234))].into(),
            places: vec![
                place(1, 10, None),
                place(1, 12, None),
                place(2, 20, Some((1, 0))),
                place(1, 13, None),
                place(1, 14, None),
            ],
            at_line: (1..=5).zip(0..).collect(),
            ..LineInfo::default()
        };
        let image = source_lines(&[function], &info);
        let hex: String = image.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, EXPECTED.concat());
        assert_eq!(image.relocs.iter().map(|r| (r.offset, r.symbol.as_str())).collect::<Vec<_>>(), [(0x42, "k")]);
    }

    #[test]
    fn calls_that_call_each_other_end() {
        let places = (0..1000).map(|i| SourcePlace { file: 1, line: i, call: (i > 0).then(|| (i as usize - 1, 0)) });
        let info = LineInfo { places: places.collect(), at_line: [(1, 999)].into(), ..LineInfo::default() };
        let function = Function { name: "k".into(), code: vec![0; 16], lines: vec![1], ..Function::default() };
        let image = source_lines(&[function], &info);
        let calls = image.bytes.iter().filter(|byte| **byte == INLINED).count();
        assert_eq!(calls, MAX_CALLS as usize);
    }
}
