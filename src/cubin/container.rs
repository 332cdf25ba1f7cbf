//! The ELF container: sections and symbols with their indices, uninterpreted.
//!
//! [`Elf::parse`] accepts any bytes. Every name is resolved and every section's bytes lie inside
//! the file. No input causes a panic, or an allocation of more than a small multiple of the file's
//! size.

use super::bytes::Bytes;
use super::error::CubinError;
use super::symbols::STT_FUNC;
use crate::sorted::SortedSet;

/// `e_machine` of a cubin.
pub const EM_CUDA: u16 = 190;
/// `EI_OSABI` and `EI_ABIVERSION` of files written by toolkits from 13.0 on.
pub const OS_ABI: u8 = 0x41;
pub const ABI_VERSION: u8 = 8;
/// `EI_ABIVERSION` of a file whose functions do not follow the ABI. Source: ptxas 13.0.88 on
/// functions with several results, up to sm_89, with the warning that it disables the ABI.
pub const ABI_VERSION_WITHOUT: u8 = 2;

/// Section types of ELF itself.
pub const SHT_SYMTAB: u32 = 2;
pub const SHT_STRTAB: u32 = 3;
pub const SHT_RELA: u32 = 4;
pub const SHT_REL: u32 = 9;
/// Section flags of ELF itself.
pub const SHF_WRITE: u64 = 1;
pub const SHF_ALLOC: u64 = 2;
pub const SHF_CODE: u64 = 4;
pub const SHF_INFO_LINK: u64 = 0x40;

/// Section types without bytes in the file: NOBITS and NVIDIA's global, shared and reserved-shared.
const NO_BYTES: [u32; 4] = [8, 0x7000_0007, 0x7000_000a, 0x7000_0015];

/// Whether sections of a type have no bytes in the file.
pub fn has_no_bytes(kind: u32) -> bool {
    NO_BYTES.contains(&kind)
}

/// One ELF file.
#[derive(Clone, Debug, Default)]
pub struct Elf {
    /// `e_type`: 1 relocatable, 2 executable.
    pub kind: u16,
    /// `e_flags`
    pub flags: u32,
    /// The functions do not follow the ABI.
    pub without_abi: bool,
    /// Section 0 is the null section.
    pub sections: Vec<Section>,
    /// Symbol 0 is the null symbol.
    pub symbols: Vec<Symbol>,
}

/// One section. `bytes` is empty for a type without bytes in the file; `size` always counts.
#[derive(Clone, Debug, Default)]
pub struct Section {
    pub name: String,
    /// `sh_type`
    pub kind: u32,
    /// `sh_flags`
    pub flags: u64,
    /// `sh_addralign`
    pub align: u64,
    /// `sh_entsize`
    pub entry: u64,
    /// `sh_link`
    pub link: u32,
    /// `sh_info`
    pub info: u32,
    pub bytes: Vec<u8>,
    pub size: u64,
    /// Offset in the file that was read.
    pub offset: u64,
    /// Offsets of 4-byte fields to be filled with the index of a string in the table of symbol
    /// names; used only while writing.
    pub strings: Vec<(usize, String)>,
    /// Contents that the container writer generates.
    pub special: Special,
}

/// Sections whose contents follow from the file's names and symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Special {
    #[default]
    No,
    SectionNames,
    SymbolNames,
    Symbols,
}

/// One symbol.
#[derive(Clone, Debug, Default)]
pub struct Symbol {
    /// Distinct from all others, unless empty.
    pub name: String,
    /// The name in the file, if another symbol has the same one.
    pub shared_name: Option<String>,
    /// `st_info`
    pub info: u8,
    /// `st_other`
    pub other: u8,
    /// `st_shndx`
    pub section: u16,
    pub value: u64,
    pub size: u64,
    /// Offset of its entry in the file that was read.
    pub offset: u64,
}

/// Bytes of the file header, of a section header and of a symbol.
const HEADER: u64 = 64;
const SECTION_HEADER: u64 = 64;
const SYMBOL: u64 = 24;
/// Section numbers from here on are reserved (absolute, common).
pub const SHN_RESERVED: u16 = 0xff00;

/// Limit on the bytes of names and sections per byte of the file, since several headers may refer
/// to the same bytes.
const MOST_TOLD: u64 = 4;

/// Bytes that headers and symbols have referred to so far.
struct Told {
    most: u64,
    so_far: u64,
}

impl Told {
    fn add(&mut self, bytes: usize, at: u64) -> Result<(), CubinError> {
        self.so_far = self.so_far.saturating_add(bytes as u64);
        if self.so_far > self.most {
            return Err(CubinError::at(at, "the same bytes are named again and again"));
        }
        Ok(())
    }
}

impl Elf {
    /// Parses a file.
    pub fn parse(bytes: &[u8]) -> Result<Elf, CubinError> {
        let file = Bytes::new(bytes);
        check_header(file)?;
        let (table, count) = (file.u64(40)?, file.u16(60)?);
        if file.u16(58)? != SECTION_HEADER as u16 {
            return Err(CubinError::at(58, format!("section headers are {} bytes, not 64", file.u16(58)?)));
        }
        let headers = file.range(table, SECTION_HEADER * u64::from(count), 40)?;
        let names = strings(headers, file.u16(62)?.into(), file, 62)?;
        let mut told = Told { most: MOST_TOLD * bytes.len() as u64, so_far: 0 };
        let sections: Result<_, _> =
            (0..count).map(|i| parse_section(headers, i.into(), names, file, &mut told)).collect();
        let without_abi = file.u8(8)? == ABI_VERSION_WITHOUT;
        let (kind, flags, sections, symbols) = (file.u16(16)?, file.u32(48)?, sections?, Vec::new());
        let mut elf = Elf { kind, flags, without_abi, sections, symbols };
        elf.symbols = parse_symbols(headers, &elf.sections, file, &mut told)?;
        tell_apart(&mut elf.symbols)?;
        tell_sections_apart(&mut elf.sections, &elf.symbols);
        Ok(elf)
    }
}

fn check_header(file: Bytes<'_>) -> Result<(), CubinError> {
    file.range(0, HEADER, 0)?;
    if file.slice(0, 4)? != b"\x7fELF" {
        return Err(CubinError::at(0, "not an ELF file"));
    }
    if file.slice(4, 3)? != [2, 1, 1] {
        return Err(CubinError::at(4, "not a 64-bit little-endian ELF of version 1"));
    }
    if file.u8(7)? != OS_ABI || ![ABI_VERSION, ABI_VERSION_WITHOUT].contains(&file.u8(8)?) {
        let found = (file.u8(7)?, file.u8(8)?);
        let text =
            format!("ABI {:#x} version {} is not that of toolkit 13 ({OS_ABI:#x}, {ABI_VERSION})", found.0, found.1);
        return Err(CubinError::at(7, text));
    }
    match file.u16(18)? {
        EM_CUDA => Ok(()),
        machine => Err(CubinError::at(18, format!("machine {machine} is not CUDA ({EM_CUDA})"))),
    }
}

/// Gives distinct names to local symbols that share one (each kernel's `_param` in objects). Other
/// symbols must be unique.
fn tell_apart(symbols: &mut [Symbol]) -> Result<(), CubinError> {
    let mut names = SortedSet::new();
    for (i, symbol) in symbols.iter_mut().enumerate() {
        if symbol.name.is_empty() || names.insert(symbol.name.clone()) {
            continue;
        }
        let distinct = format!("{}#{i}", symbol.name);
        if symbol.info >> 4 != 0 || !names.insert(distinct.clone()) {
            return Err(CubinError::at(symbol.offset, format!("two symbols are called `{}`", symbol.name)));
        }
        symbol.shared_name = Some(std::mem::replace(&mut symbol.name, distinct));
    }
    Ok(())
}

/// Renames the sections of a local function with a shared name (its code and the sections that
/// belong to it) to the distinct name.
fn tell_sections_apart(sections: &mut [Section], symbols: &[Symbol]) {
    for symbol in symbols {
        let Some(shared) = symbol.shared_name.as_ref().filter(|_| symbol.info == STT_FUNC) else { continue };
        let number = usize::from(symbol.section);
        for (i, section) in sections.iter_mut().enumerate() {
            let belongs = i == number || section.flags & SHF_INFO_LINK != 0 && section.info as usize == number;
            if let Some(head) = section.name.strip_suffix(shared.as_str()).filter(|_| belongs && number > 0) {
                section.name = format!("{head}{}", symbol.name);
            }
        }
    }
}

/// The string table in section `index`; `at` is the file offset of that index.
fn strings<'a>(headers: Bytes<'a>, index: u64, file: Bytes<'a>, at: u64) -> Result<Bytes<'a>, CubinError> {
    let header = headers.range(index * SECTION_HEADER, SECTION_HEADER, at)?;
    if header.u32(4)? != SHT_STRTAB {
        return Err(CubinError::at(at, format!("section {index} is not a string table")));
    }
    file.range(header.u64(24)?, header.u64(32)?, header.base() + 24)
}

fn parse_section(
    headers: Bytes<'_>,
    i: u64,
    names: Bytes<'_>,
    file: Bytes<'_>,
    told: &mut Told,
) -> Result<Section, CubinError> {
    let header = headers.range(i * SECTION_HEADER, SECTION_HEADER, 0)?;
    let (kind, offset, size) = (header.u32(4)?, header.u64(24)?, header.u64(32)?);
    let content = match kind {
        0 => &[],
        kind if has_no_bytes(kind) => &[],
        _ => file.range(offset, size, header.base() + 24)?.all(),
    };
    let name = names.text(header.u32(0)?.into(), header.base())?;
    told.add(name.len() + content.len(), header.base())?;
    Ok(Section {
        name,
        kind,
        flags: header.u64(8)?,
        align: header.u64(48)?,
        entry: header.u64(56)?,
        link: header.u32(40)?,
        info: header.u32(44)?,
        bytes: content.to_vec(),
        size: if kind == 0 { 0 } else { size },
        offset: if kind == 0 { header.base() } else { offset },
        strings: Vec::new(),
        special: Special::No,
    })
}

/// The symbols of the first symbol table; empty if there is none.
fn parse_symbols(
    headers: Bytes<'_>,
    sections: &[Section],
    file: Bytes<'_>,
    told: &mut Told,
) -> Result<Vec<Symbol>, CubinError> {
    let Some(table) = sections.iter().find(|s| s.kind == SHT_SYMTAB) else { return Ok(Vec::new()) };
    let names = strings(headers, table.link.into(), file, table.offset)?;
    if !table.size.is_multiple_of(SYMBOL) {
        return Err(CubinError::at(table.offset, format!("{:#x} bytes are no list of 24-byte symbols", table.size)));
    }
    let table = file.range(table.offset, table.size, table.offset)?;
    let mut symbols = Vec::new();
    for i in 0..table.len() / SYMBOL {
        let entry = table.range(i * SYMBOL, SYMBOL, 0)?;
        let section = entry.u16(6)?;
        if usize::from(section) >= sections.len() && section < SHN_RESERVED {
            return Err(CubinError::at(entry.base() + 6, format!("symbol {i}: there is no section {section}")));
        }
        let name = names.text(entry.u32(0)?.into(), entry.base())?;
        told.add(name.len(), entry.base())?;
        symbols.push(Symbol {
            name,
            shared_name: None,
            info: entry.u8(4)?,
            other: entry.u8(5)?,
            section,
            value: entry.u64(8)?,
            size: entry.u64(16)?,
            offset: entry.base(),
        });
    }
    Ok(symbols)
}
