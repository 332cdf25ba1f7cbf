//! Reads a file as a [`Cubin`].
//!
//! The container is parsed first. Then each section moves into the model field that can reproduce
//! it exactly, and the rest is kept verbatim. The result refers to sections and symbols by name.
//! Any input gives a cubin or an error with the offset of what is malformed; there are no panics
//! and no reads past the file.

use super::attributes::{NameOf, Reading, read_function, read_module};
use super::bytes::Bytes;
use super::container::{Elf, SHF_CODE, SHT_REL, SHT_RELA, Section, has_no_bytes};
use super::error::CubinError;
use super::model::{Cubin, ElfKind, Function, Image, Reloc, Shared};
use super::notes;
use super::read_symbols;
use super::records;
use super::symbols::STT_FUNC;
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::elf::{Content, ElfTarget, RelocRow, SECTIONS, Scope, SectionRow};

/// Section flag of the second representation of the code (capsule, merc), which is listed by name
/// but not read.
const SHF_CAPSULE: u64 = 0x1000_0000;

/// The section whose number is the top byte of `e_flags`, as ptxas counts it.
const TARGET_NOTE: &str = ".note.nv.cuinfo";

/// Range of the top byte of `e_flags`.
const FLAGS_TOP: std::ops::RangeInclusive<u8> = 0x06..=0x3f;

/// Reads a cubin. Errors name the byte offset of what is malformed.
pub fn read(bytes: &[u8]) -> Result<Cubin, CubinError> {
    let elf = Elf::parse(bytes)?;
    let sm = elf.flags >> 8 & 0xff;
    let target = ElfTarget::of_sm(sm)
        .ok_or_else(|| CubinError::at(48, format!("elf/targets.ron has no row for SM number {sm}")))?;
    let mut cubin = Cubin { sm, without_abi: elf.without_abi, ..Cubin::default() };
    cubin.kind = match elf.kind {
        1 => ElfKind::Relocatable,
        2 => ElfKind::Executable,
        kind => return Err(CubinError::at(16, format!("ELF type {kind} is neither an object nor an executable"))),
    };
    // The number of a section (see the writer); cubins with many sections of debug information are
    // far below the end of this range.
    let top = (elf.flags >> 24) as u8;
    if !FLAGS_TOP.contains(&top) {
        return Err(CubinError::at(48, format!("flags {:#010x} have an unknown top byte", elf.flags)));
    }
    let note = elf.sections.iter().position(|section| section.name == TARGET_NOTE);
    cubin.flags_top = Some(top).filter(|top| note != Some(usize::from(*top)));
    let taken = vec![false; elf.sections.len()];
    let (relocs, functions, numbers) = (SortedMap::new(), SortedMap::new(), SortedMap::new());
    let mut reader = Reader { elf, target, cubin, taken, relocs, rows: Vec::new(), functions, numbers };
    reader.classify()?;
    reader.relocations()?;
    reader.notes()?;
    reader.functions()?;
    reader.images();
    reader.attributes()?;
    reader.constant0();
    read_symbols::read(reader)
}

/// The state of reading one file.
pub struct Reader {
    pub elf: Elf,
    pub target: &'static ElfTarget,
    pub cubin: Cubin,
    /// Sections that the model represents, which are not kept.
    pub taken: Vec<bool>,
    /// Relocations by the number of the section they apply to.
    pub relocs: SortedMap<usize, Vec<Reloc>>,
    /// The row of each section and, for a row per function, the function's name.
    pub rows: Vec<Option<(&'static SectionRow, String)>>,
    /// Index of each function by name.
    pub functions: SortedMap<String, usize>,
    /// Section numbers by content and function name (empty for module sections).
    numbers: SortedMap<(Content, String), usize>,
}

impl Reader {
    /// Whether a section belongs to the capsule.
    pub fn is_capsule(&self, number: usize) -> bool {
        self.elf.sections[number].flags & SHF_CAPSULE != 0
    }

    /// Finds the row of each section. Names must be distinct, because later steps refer to sections
    /// by name.
    fn classify(&mut self) -> Result<(), CubinError> {
        let mut names = SortedSet::new();
        let functions: SortedSet<&str> = self.elf.sections.iter().filter_map(function_of_code).collect();
        for (number, section) in self.elf.sections.iter().enumerate().skip(1) {
            let capsule = section.flags & SHF_CAPSULE != 0;
            if !capsule && !names.insert(section.name.as_str()) {
                let text = format!("section {number}: two sections are called `{}`", section.name);
                return Err(CubinError::at(section.offset, text));
            }
        }
        let find = |section: &Section| {
            let fits = SECTIONS.iter().filter(|row| row.order[self.target.layout as usize].is_some());
            fits.filter_map(|row| match row.scope {
                Scope::Module => (row.name == section.name).then(|| (row, String::new())),
                Scope::Function => {
                    let name = section.name.strip_prefix(row.name).filter(|name| functions.contains(name))?;
                    Some((row, name.to_string()))
                }
            })
            .find(|(row, _)| fits_row(section, row, self.cubin.kind))
        };
        self.rows = self.elf.sections.iter().map(find).collect();
        let known = self.rows.iter().enumerate().filter_map(|(i, row)| row.as_ref().map(|(row, name)| (i, row, name)));
        self.numbers = known.map(|(i, row, name)| ((row.content, name.clone()), i)).collect();
        Ok(())
    }

    /// Number of the module section with this content.
    pub fn with(&self, content: Content) -> Option<usize> {
        self.of_function(content, "")
    }

    /// Number of the section with this content that belongs to a function.
    fn of_function(&self, content: Content, function: &str) -> Option<usize> {
        self.numbers.get(&(content, function.to_string())).copied()
    }

    /// The bytes of a section, with their offset in the file.
    pub fn bytes(&self, number: usize) -> Bytes<'_> {
        let section = &self.elf.sections[number];
        Bytes::at(&section.bytes, section.offset)
    }

    /// Parses the relocation tables, by target section.
    fn relocations(&mut self) -> Result<(), CubinError> {
        for number in 1..self.elf.sections.len() {
            let section = &self.elf.sections[number];
            if ![SHT_REL, SHT_RELA].contains(&section.kind) || self.is_capsule(number) {
                continue;
            }
            let of = section.info as usize;
            let expected = self
                .elf
                .sections
                .get(of)
                .map(|of| format!("{}{}", if section.kind == SHT_REL { ".rel" } else { ".rela" }, of.name));
            if of == 0 || expected.as_ref() != Some(&section.name) {
                let text = format!("`{}` does not name the section {of} that it relocates", section.name);
                return Err(CubinError::at(section.offset, text));
            }
            let with_addend = section.kind == SHT_RELA;
            let mut list = read_symbols::relocations(self.bytes(number), with_addend, &self.elf)?;
            let split = self.target.layout.info().split_relocs;
            list.iter_mut().for_each(|reloc| reloc.explicit_addend = split && with_addend && reloc.addend == 0);
            self.relocs.entry(of).or_default().extend(list);
            self.taken[number] = true;
        }
        Ok(())
    }

    fn notes(&mut self) -> Result<(), CubinError> {
        if let Some(number) = self.with(Content::ToolNote)
            && let Some(tool) = notes::read_tool_note(&self.elf.sections[number].bytes)
        {
            (self.cubin.tool, self.taken[number]) = (tool, true);
        }
        if let Some(number) = self.with(Content::TargetNote)
            && let Some((ptx_sm, toolkit)) = notes::read_target_note(&self.elf.sections[number].bytes)
        {
            (self.cubin.ptx_sm, self.cubin.toolkit, self.taken[number]) = (ptx_sm, toolkit, true);
        }
        if let Some(number) = self.with(Content::Compat) {
            self.cubin.accelerator = notes::read_accelerator(self.bytes(number))?;
            let section = Bytes::at(&self.elf.sections[number].bytes, self.elf.sections[number].offset);
            notes::read_needs(&mut self.cubin, section)?;
            self.taken[number] = notes::compat(&self.cubin)? == self.elf.sections[number].bytes;
        }
        if let Some(number) = self.with(Content::Fixed) {
            let row = self.rows[number].as_ref().map(|(row, _)| row.bytes);
            self.taken[number] = row == Some(self.elf.sections[number].bytes.as_slice());
        }
        if let Some(number) = self.with(Content::ReservedShared) {
            let section = &self.elf.sections[number];
            let own = self.target.reserved_shared;
            let larger = own.map(|(size, align)| (size + super::plan::TENSOR_PARTITION, align));
            self.taken[number] =
                [own, larger].contains(&Some((section.size, section.align))) && self.cubin.kind == ElfKind::Executable;
        }
        for content in [Content::SectionNames, Content::SymbolNames, Content::Symbols] {
            let number = self.with(content).ok_or_else(|| {
                CubinError::at(40, format!("there is no section of {} as elf/sections.ron has it", content.name()))
            })?;
            self.taken[number] = true;
        }
        Ok(())
    }

    /// Creates one function per code section.
    fn functions(&mut self) -> Result<(), CubinError> {
        let usual = SECTIONS.iter().find(|row| row.content == Content::Code).map(|row| row.align);
        // Symbols by section, in order.
        let mut within: SortedMap<usize, Vec<usize>> = SortedMap::new();
        for (i, symbol) in self.elf.symbols.iter().enumerate() {
            within.entry(symbol.section.into()).or_default().push(i);
        }
        for number in 1..self.elf.sections.len() {
            let section = &self.elf.sections[number];
            let Some(name) = function_of_code(section) else { continue };
            if !section.bytes.len().is_multiple_of(16) {
                let text = format!("`{}`: {:#x} bytes are no whole words", section.name, section.bytes.len());
                return Err(CubinError::at(section.offset, text));
            }
            let own = within.get(&number).map_or(&[][..], Vec::as_slice).iter().map(|i| &self.elf.symbols[*i]);
            let symbol = own.clone().find(|s| s.name == name);
            let Some(symbol) = symbol.filter(|s| s.info & 0xf == STT_FUNC && s.value == 0) else {
                return Err(CubinError::at(section.offset, format!("`{}` has no function symbol", section.name)));
            };
            let registers = section.info >> 24;
            let mut function = Function {
                name: name.to_string(),
                kernel: symbol.other & super::symbols::OTHER_KERNEL != 0,
                binding: read_symbols::binding(symbol)?,
                code: section.bytes.clone(),
                code_align: if Some(section.align) == usual { 0 } else { section.align },
                code_relocs: self.relocs.get(&number).cloned().unwrap_or_default(),
                registers: if self.target.layout.info().text_info_registers { registers } else { 0 },
                ..Function::default()
            };
            read_symbols::labels(own, number, &mut function)?;
            self.taken[number] = true;
            self.functions.insert(function.name.clone(), self.cubin.functions.len());
            self.cubin.functions.push(function);
        }
        Ok(())
    }

    /// Takes the image of a section that the model represents.
    fn take(&mut self, number: Option<usize>) -> Option<Image> {
        let number = number?;
        self.taken[number] = true;
        Some(self.image(number))
    }

    /// The image of a section.
    pub fn image(&self, number: usize) -> Image {
        let section = &self.elf.sections[number];
        let relocs = self.relocs.get(&number).cloned().unwrap_or_default();
        Image { bytes: section.bytes.clone(), size: section.size, align: section.align, relocs }
    }

    fn images(&mut self) {
        self.cubin.global = self.take(self.with(Content::Global));
        self.cubin.global_init = self.take(self.with(Content::GlobalInit));
        self.cubin.constant3 = self.take(self.with(Content::Constant3));
        self.cubin.constant4 = self.take(self.with(Content::Constant4));
        for i in 0..self.cubin.functions.len() {
            let name = self.cubin.functions[i].name.clone();
            let shared = self.take(self.of_function(Content::Shared, &name));
            let constant2 = self.take(self.of_function(Content::Constant2, &name));
            let function = &mut self.cubin.functions[i];
            function.shared = shared.map(|image| Shared { size: image.size, align: image.align });
            function.constant2 = constant2;
        }
    }

    /// Attribute records of the functions and of the module.
    fn attributes(&mut self) -> Result<(), CubinError> {
        let symbols: Vec<String> = self.elf.symbols.iter().map(|symbol| symbol.name.clone()).collect();
        let name: &NameOf<'_> = &|i| symbols.get(i as usize).map(String::as_str);
        let reading = Reading { target: self.target, toolkit: self.cubin.toolkit, name };
        for i in 0..self.cubin.functions.len() {
            let Some(number) = self.of_function(Content::FunctionInfo, &self.cubin.functions[i].name) else { continue };
            let list = records::read(self.bytes(number))?;
            let function = &mut self.cubin.functions[i];
            let kept = list.into_iter().filter(|record| !read_function(record, function, &reading));
            let kept: Vec<_> = kept.collect();
            function.kept_attributes = kept;
            crate::sorted::by_key(&mut function.params, |param| param.ordinal);
            self.taken[number] = true;
        }
        if let Some(number) = self.with(Content::ModuleInfo) {
            let mut last = None;
            for record in records::read(self.bytes(number))? {
                if !read_module(&record, &mut self.cubin, &reading, &mut last) {
                    self.cubin.kept.attributes.push(record);
                }
            }
            self.taken[number] = true;
        }
        Ok(())
    }

    /// Bank 0 holds zeros for the parameters, and words of references; a section with other bytes
    /// is kept.
    fn constant0(&mut self) {
        for i in 0..self.cubin.functions.len() {
            let Some(number) = self.of_function(Content::Constant0, &self.cubin.functions[i].name) else { continue };
            let section = &self.elf.sections[number];
            let function = &mut self.cubin.functions[i];
            if function.param_bytes == 0 {
                function.param_base = section.size as u32;
            }
            let is_reference = |reloc: &Reloc| RelocRow::of(reloc.kind).is_some_and(RelocRow::is_reference);
            let relocs = self.relocs.get(&number).map_or(&[][..], Vec::as_slice);
            if relocs.iter().all(is_reference) {
                function.references = relocs.iter().rev().cloned().collect();
            }
            let plain = section.bytes.iter().all(|byte| *byte == 0) && relocs.iter().all(is_reference);
            self.taken[number] = plain && function.kernel && section.size == u64::from(function.constant0_bytes());
        }
    }
}

/// The function name of a code section.
pub fn function_of_code(section: &Section) -> Option<&str> {
    let row = SECTIONS.iter().find(|row| row.content == Content::Code)?;
    (section.kind == row.kind && section.flags & SHF_CODE != 0).then(|| section.name.strip_prefix(row.name))?
}

/// Whether a section's header matches its row.
fn fits_row(section: &Section, row: &SectionRow, kind: ElfKind) -> bool {
    let expected = if kind == ElfKind::Relocatable { row.object_kind } else { row.kind };
    let align = if row.align == 0 { section.align } else { section.align.max(row.align) };
    section.kind == expected
        && section.flags == row.flags
        && section.entry == row.entry
        && section.align == align
        && (has_no_bytes(section.kind) || section.size == section.bytes.len() as u64)
}
