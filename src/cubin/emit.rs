//! Writes an [`Elf`] with final indices as bytes: first the layout, then the contents.
//!
//! Sections come in file order and symbols in table order. `.shstrtab`, `.strtab` and `.symtab` are
//! generated from names and symbols, whatever bytes they carry. NOBITS sections take no space in
//! the file.

use super::container::{
    ABI_VERSION, ABI_VERSION_WITHOUT, EM_CUDA, Elf, OS_ABI, SHF_ALLOC, SHF_CODE, SHF_WRITE, SHN_RESERVED, Section,
};
use super::container::{Special, has_no_bytes};
use super::error::CubinError;
use crate::tables::elf::LayoutInfo;
use object::Endianness;
use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, Sym, Writer};

/// Bytes of one program header.
const PROGRAM_HEADER: u64 = 56;
/// Program segment flags: execute, write, read.
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const PF_R: u32 = 4;

/// Largest alignment and size of a section that is written, and largest size of one without bytes
/// in the file.
const MAX_ALIGN: u64 = 1 << 16;
const MAX_SIZE: u64 = 1 << 40;
const MAX_ROOM: u64 = 1 << 56;

/// Writes the file. Errors: sizes or alignments over the limits, or not enough memory.
pub fn emit(file: &Elf, layout: &LayoutInfo) -> Result<Vec<u8>, CubinError> {
    for section in &file.sections {
        let good = section.align == 0 || section.align.is_power_of_two();
        let most = if has_no_bytes(section.kind) { MAX_ROOM } else { MAX_SIZE };
        if !good || section.align > MAX_ALIGN || section.size > most {
            let (name, size, align) = (&section.name, section.size, section.align);
            return Err(CubinError::model(format!(
                "`{name}`: {size:#x} bytes aligned to {align:#x} cannot be written"
            )));
        }
    }
    if file.sections.len() >= usize::from(SHN_RESERVED) {
        return Err(CubinError::model(format!("{} sections are too many for one file", file.sections.len())));
    }
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    let names = Names::reserve(file, &mut writer);
    let places = reserve_sections(file, &mut writer).map_err(too_big)?;
    writer.reserve_section_headers();
    let segments = segments(file, &places, layout);
    writer.reserve_program_headers(segments.len() as u32);
    // The file is allocated in one piece; a failed allocation is an error, not an abort.
    let length = usize::try_from(writer.reserved_len()).unwrap_or(usize::MAX);
    if Vec::<u8>::new().try_reserve_exact(length).is_err() {
        return Err(CubinError::model("Memory allocation failure"));
    }
    write_header(file, &mut writer).map_err(too_big)?;
    write_sections(file, &names, &places, &mut writer);
    write_section_headers(file, &names, &places, &mut writer);
    let headers = writer.write_align_program_headers();
    for segment in &segments {
        let size = PROGRAM_HEADER * segments.len() as u64;
        let (offset, file_size, memory) = segment.range.unwrap_or((headers, size, size));
        writer.write_program_header(&ProgramHeader {
            p_type: elf::ProgramType(segment.kind),
            p_flags: elf::ProgramFlags(segment.flags),
            p_offset: offset,
            p_vaddr: 0,
            p_paddr: 0,
            p_filesz: file_size,
            p_memsz: memory,
            p_align: 8,
        });
    }
    Ok(bytes)
}

fn too_big(error: object::write::Error) -> CubinError {
    CubinError::model(error.to_string())
}

/// String-table entries of sections (section 0 left out) and symbols (symbol 0 left out).
struct Names {
    sections: Vec<Option<StringId>>,
    symbols: Vec<Option<StringId>>,
    /// The strings referred to by the bytes of each section, section 0 included.
    strings: Vec<Vec<StringId>>,
}

impl Names {
    fn reserve<'a>(file: &'a Elf, writer: &mut Writer<'a>) -> Names {
        let mut sections = Vec::new();
        for section in file.sections.iter().skip(1) {
            let name = match section.special {
                Special::SectionNames => writer.reserve_shstrtab_section_index().0,
                Special::SymbolNames => writer.reserve_strtab_section_index().0,
                Special::Symbols => writer.reserve_symtab_section_index().0,
                Special::No => writer.reserve_section_index().0,
            };
            debug_assert_eq!(name as usize, sections.len() + 1);
            sections.push((section.special == Special::No).then(|| writer.add_section_name(section.name.as_bytes())));
        }
        writer.reserve_null_symbol_index();
        let mut symbols = Vec::new();
        for symbol in file.symbols.iter().skip(1) {
            writer.reserve_symbol_index(None);
            symbols.push(
                (!symbol.name.is_empty())
                    .then(|| writer.add_string(symbol.shared_name.as_ref().unwrap_or(&symbol.name).as_bytes())),
            );
        }
        let strings = file
            .sections
            .iter()
            .map(|section| section.strings.iter().map(|(_, text)| writer.add_string(text.as_bytes())).collect());
        let strings = strings.collect();
        Names { sections, symbols, strings }
    }
}

/// File offset of each section.
fn reserve_sections(file: &Elf, writer: &mut Writer<'_>) -> object::write::Result<Vec<u64>> {
    writer.reserve_file_header();
    let mut places = vec![0];
    for section in file.sections.iter().skip(1) {
        let before = writer.reserved_len();
        places.push(match section.special {
            Special::SectionNames => writer.reserve_shstrtab().map(|()| before)?,
            Special::SymbolNames => writer.reserve_strtab().map(|()| before)?,
            Special::Symbols => {
                writer.reserve_symtab();
                before.next_multiple_of(8)
            }
            Special::No if has_no_bytes(section.kind) => before,
            Special::No => writer.reserve(section.size, section.align.max(1)),
        });
    }
    Ok(places)
}

fn write_header(file: &Elf, writer: &mut Writer<'_>) -> object::write::Result<()> {
    writer.write_file_header(&FileHeader {
        os_abi: elf::OsAbi(OS_ABI),
        abi_version: if file.without_abi { ABI_VERSION_WITHOUT } else { ABI_VERSION },
        e_type: elf::FileType(file.kind),
        e_machine: elf::Machine(EM_CUDA),
        e_entry: 0,
        e_flags: elf::FileFlags(file.flags),
    })
}

fn write_sections(file: &Elf, names: &Names, places: &[u64], writer: &mut Writer<'_>) {
    for (i, (section, place)) in file.sections.iter().zip(places).enumerate().skip(1) {
        match section.special {
            Special::SectionNames => writer.write_shstrtab(),
            Special::SymbolNames => writer.write_strtab(),
            Special::Symbols => write_symbols(file, names, writer),
            Special::No if has_no_bytes(section.kind) => {}
            Special::No => {
                writer.pad_until(*place);
                let mut done = 0;
                for ((at, _), id) in section.strings.iter().zip(&names.strings[i]) {
                    writer.write(&section.bytes[done..*at]);
                    let place = writer.string_offset(Some(*id));
                    writer.write(&place.to_le_bytes());
                    done = at + 4;
                }
                writer.write(&section.bytes[done..]);
                writer.pad_until(*place + section.size);
            }
        }
    }
}

fn write_symbols(file: &Elf, names: &Names, writer: &mut Writer<'_>) {
    writer.write_null_symbol();
    for (symbol, name) in file.symbols.iter().skip(1).zip(&names.symbols) {
        let special = symbol.section == 0 || symbol.section >= SHN_RESERVED;
        writer.write_symbol(&Sym {
            section: (!special).then_some(symbol.section.into()),
            st_name: writer.string_offset(*name),
            st_info: elf::SymbolInfo(symbol.info),
            st_other: elf::SymbolOther(symbol.other),
            st_shndx: elf::SymbolSection(if special { symbol.section } else { 0 }),
            st_value: symbol.value,
            st_size: symbol.size,
        });
    }
}

fn write_section_headers(file: &Elf, names: &Names, places: &[u64], writer: &mut Writer<'_>) {
    writer.write_null_section_header();
    for ((section, place), name) in file.sections.iter().zip(places).skip(1).zip(&names.sections) {
        match section.special {
            Special::SectionNames => writer.write_shstrtab_section_header(),
            Special::SymbolNames => writer.write_strtab_section_header(),
            Special::Symbols => writer.write_symtab_section_header(section.info),
            Special::No => {
                let header = section_header(section, writer.section_name_offset(*name), *place);
                writer.write_section_header(&header);
            }
        }
    }
}

fn section_header(section: &Section, name: u32, offset: u64) -> SectionHeader {
    SectionHeader {
        sh_name: name,
        sh_type: elf::SectionType(section.kind),
        sh_flags: elf::SectionFlags(section.flags),
        sh_addr: 0,
        sh_offset: offset,
        sh_size: section.size,
        sh_link: section.link,
        sh_info: section.info,
        sh_addralign: section.align,
        sh_entsize: section.entry,
    }
}

/// One program header; a range of `None` is that of the program headers themselves.
struct Segment {
    kind: u32,
    flags: u32,
    /// Offset, bytes in the file, bytes in memory.
    range: Option<(u64, u64, u64)>,
}

/// The loaded segments: runs of sections in memory that share their permissions, and the program
/// headers. A relocatable object has none.
fn segments(file: &Elf, places: &[u64], layout: &LayoutInfo) -> Vec<Segment> {
    const PT_LOAD: u32 = 1;
    const PT_PHDR: u32 = 6;
    if file.kind != 2 {
        return Vec::new();
    }
    let mut loads: Vec<Segment> = Vec::new();
    for (section, place) in file.sections.iter().zip(places) {
        if section.flags & SHF_ALLOC == 0 {
            continue;
        }
        let flags = match section.flags {
            flags if flags & SHF_WRITE != 0 => PF_R | PF_W,
            flags if flags & SHF_CODE != 0 => PF_R | PF_X,
            _ => layout.readonly_flags,
        };
        if loads.last().is_none_or(|last| last.flags != flags) {
            loads.push(Segment { kind: PT_LOAD, flags, range: Some((*place, 0, 0)) });
        }
        if let Some(Segment { range: Some((start, size, memory)), .. }) = loads.last_mut() {
            let begin = match has_no_bytes(section.kind) {
                true => memory.checked_next_multiple_of(section.align.max(1)).unwrap_or(u64::MAX),
                false => *place - *start,
            };
            *memory = begin.saturating_add(section.size);
            *size = if has_no_bytes(section.kind) { *size } else { *memory };
        }
    }
    let own = |kind| Segment { kind, flags: layout.readonly_flags, range: None };
    let place = if layout.headers_first { 0 } else { loads.len() };
    loads.insert(place, own(PT_LOAD));
    loads.insert(0, own(PT_PHDR));
    loads
}
