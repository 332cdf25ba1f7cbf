//! The second half of reading: symbols, the call graph, and what is kept verbatim.
//!
//! It starts from a [`Reader`] with finished functions, images and attributes. Each section and
//! symbol of the file ends in exactly one place: a model field, the kept lists, or the names of the
//! capsule.

use super::bytes::Bytes;
use super::container::{Elf, SHN_RESERVED, Symbol};
use super::error::CubinError;
use super::model::{Binding, CallRow, Cubin, ElfKind, Function, Label, Reloc};
use super::model::{Space, Variable};
use super::passthrough::{KeptSection, KeptSymbol, Order};
use super::passthrough::{SectionInfo, SymbolHome};
use super::read::Reader;
use super::symbols::{OTHER_MANAGED, STT_CUDA_OBJECT, STT_FUNC, STT_OBJECT, STT_SECTION, other_of, section_of};
use super::write::info_is_section;
use crate::tables::elf::{Content, SECTIONS, Scope};

/// Completes the model.
pub fn read(mut reader: Reader) -> Result<Cubin, CubinError> {
    if let Some(number) = reader.with(Content::CallGraph)
        && let Some(rows) = call_graph(&reader, number)
    {
        (reader.cubin.call_graph, reader.taken[number]) = (rows, true);
    }
    if let Some(number) = reader.with(Content::Prototypes)
        && let Some(rows) = prototypes(&reader, number)
    {
        (reader.cubin.prototypes, reader.taken[number]) = (rows, true);
    }
    symbols(&mut reader)?;
    sections(&mut reader);
    Ok(reader.cubin)
}

/// The rows of a relocation table.
pub fn relocations(table: Bytes<'_>, with_addend: bool, elf: &Elf) -> Result<Vec<Reloc>, CubinError> {
    let entry = if with_addend { 24 } else { 16 };
    if !table.len().is_multiple_of(entry) {
        return Err(CubinError::at(table.base(), format!("{:#x} bytes are no list of relocations", table.len())));
    }
    let mut list = Vec::new();
    for i in 0..table.len() / entry {
        let info = table.u64(i * entry + 8)?;
        // Symbol 0 means no symbol; its name is empty.
        let symbol = elf.symbols.get((info >> 32) as usize);
        let symbol = symbol.filter(|symbol| !symbol.name.is_empty() || info >> 32 == 0);
        let symbol = symbol.ok_or_else(|| {
            CubinError::at(table.base() + i * entry + 8, format!("there is no symbol {} with a name", info >> 32))
        })?;
        list.push(Reloc {
            offset: table.u64(i * entry)?,
            kind: info as u32,
            symbol: symbol.name.clone(),
            addend: if with_addend { table.u64(i * entry + 16)? as i64 } else { 0 },
            explicit_addend: false,
        });
    }
    Ok(list)
}

/// Binding of a symbol.
pub fn binding(symbol: &Symbol) -> Result<Binding, CubinError> {
    match symbol.info >> 4 {
        0 => Ok(Binding::Local),
        1 => Ok(Binding::Global),
        2 => Ok(Binding::Weak),
        other => Err(CubinError::at(symbol.offset + 4, format!("symbol binding {other} is not 0 to 2"))),
    }
}

/// The function symbols inside a function's code, from the symbols of its section.
pub fn labels<'a>(
    symbols: impl Iterator<Item = &'a Symbol>,
    section: usize,
    function: &mut Function,
) -> Result<(), CubinError> {
    for symbol in symbols.filter(|symbol| is_label(symbol, section, &function.name)) {
        function.labels.push(Label {
            name: symbol.name.clone(),
            offset: symbol.value,
            size: symbol.size,
            binding: binding(symbol)?,
            frame: None,
        });
    }
    Ok(())
}

fn is_label(symbol: &Symbol, section: usize, function: &str) -> bool {
    let inside = usize::from(symbol.section) == section && symbol.info & 0xf == STT_FUNC;
    inside && symbol.other == 0 && symbol.name != function && !symbol.name.is_empty() && symbol.shared_name.is_none()
}

/// Rows of the call graph; `None` unless they are four classes of rows between known symbols.
fn call_graph(reader: &Reader, number: usize) -> Option<Vec<CallRow>> {
    let table = reader.bytes(number);
    let name = |i: u32| reader.elf.symbols.get(i as usize).map(|s| s.name.clone()).filter(|name| !name.is_empty());
    let text = |at: u32| string_at(reader, at);
    let (mut rows, mut class) = (Vec::new(), 0u32);
    for i in 0..table.len() / 8 {
        let (from, to) = (table.u32(i * 8).ok()?, table.u32(i * 8 + 4).ok()?);
        if from == 0 && to == (class + 1).wrapping_neg() {
            class += 1;
            continue;
        }
        rows.push(match class {
            1 => CallRow::Direct { caller: name(from)?, callee: name(to)? },
            2 => CallRow::Address { function: name(from)?, prototype: text(to)? },
            3 => CallRow::Indirect { caller: name(from)?, prototype: text(to)? },
            4 => CallRow::Reaches { caller: name(from)?, callee: name(to)? },
            _ => return None,
        });
    }
    (class == 4 && table.len().is_multiple_of(8)).then_some(rows)
}

/// The string at an offset of the table of symbol names.
fn string_at(reader: &Reader, at: u32) -> Option<String> {
    let names = reader.bytes(reader.with(Content::SymbolNames)?);
    names.text(at.into(), 0).ok()
}

/// Rows of `.nv.prototype`; `None` if a row is malformed.
fn prototypes(reader: &Reader, number: usize) -> Option<Vec<(String, String)>> {
    let table = reader.bytes(number);
    let row = |i: u64| {
        let symbol = reader.elf.symbols.get(table.u32(i * 8).ok()? as usize)?;
        let named = (!symbol.name.is_empty()).then(|| symbol.name.clone())?;
        Some((named, string_at(reader, table.u32(i * 8 + 4).ok()?)?))
    };
    if !table.len().is_multiple_of(8) {
        return None;
    }
    (0..table.len() / 8).map(row).collect()
}

/// Sorts symbols into variables, symbols of a represented function or section, and kept symbols.
fn symbols(reader: &mut Reader) -> Result<(), CubinError> {
    for i in 1..reader.elf.symbols.len() {
        let symbol = reader.elf.symbols[i].clone();
        let number = usize::from(symbol.section);
        if symbol.section < SHN_RESERVED && number > 0 && reader.is_capsule(number) {
            continue;
        }
        reader.cubin.kept.order.symbols.push(symbol.name.clone());
        let section = (symbol.section < SHN_RESERVED).then(|| reader.elf.sections[number].name.clone());
        if is_regenerated(&symbol, section.as_deref().unwrap_or_default(), reader) {
            continue;
        }
        if let Some(variable) = variable(&symbol, section.as_deref(), reader) {
            reader.cubin.variables.push(variable);
            continue;
        }
        let section = match section {
            None => SymbolHome::Reserved(symbol.section),
            Some(_) if number == 0 => SymbolHome::Undefined,
            Some(name) => SymbolHome::Section(name),
        };
        let Symbol { name, shared_name, info, other, value, size, .. } = symbol;
        reader.cubin.kept.symbols.push(KeptSymbol { name, shared_name, info, other, section, value, size });
    }
    Ok(())
}

/// Whether the writer generates this symbol from a section or a function.
fn is_regenerated(symbol: &Symbol, section: &str, reader: &Reader) -> bool {
    let number = usize::from(symbol.section);
    if symbol.info == STT_SECTION {
        let has_symbol = SECTIONS.iter().any(|row| match row.scope {
            Scope::Module => row.symbol && row.name == section,
            Scope::Function => {
                let function = section.strip_prefix(row.name);
                row.symbol && function.is_some_and(|name| reader.functions.contains_key(name))
            }
        });
        let bare = symbol.other == 0 && symbol.value == 0 && symbol.size == 0;
        return has_symbol && bare && number > 0 && symbol.name == section;
    }
    let owner = section.strip_prefix(".text.").and_then(|name| reader.functions.get(name));
    owner.is_some_and(|owner| {
        let function = &reader.cubin.functions[*owner];
        let whole = function.code.len() as u64;
        let plain = [0, super::symbols::OTHER_KERNEL].contains(&symbol.other);
        let itself = symbol.name == function.name && symbol.value == 0 && symbol.size == whole && plain;
        (itself && symbol.info & 0xf == STT_FUNC) || is_label(symbol, number, &function.name)
    })
}

/// The variable that a symbol names; `None` if it is something else, or has properties that a
/// variable cannot express.
fn variable(symbol: &Symbol, section: Option<&str>, reader: &Reader) -> Option<Variable> {
    let spaces = [Space::Global, Space::GlobalInit, Space::Constant];
    let space = spaces.into_iter().find(|space| Some(section_of(*space)) == section)?;
    let modelled = reader.taken.get(usize::from(symbol.section)).copied().unwrap_or_default();
    let object = reader.cubin.kind == ElfKind::Relocatable;
    let variable = Variable {
        name: symbol.name.clone(),
        space,
        offset: symbol.value,
        size: symbol.size,
        binding: binding(symbol).ok()?,
        managed: symbol.other & OTHER_MANAGED != 0,
    };
    let kind = if object { STT_CUDA_OBJECT } else { STT_OBJECT };
    let exact = symbol.info & 0xf == kind && symbol.other == other_of(&variable, object) && !symbol.name.is_empty();
    let exact = exact && symbol.shared_name.is_none();
    (modelled && exact).then_some(variable)
}

/// Keeps the sections that the model does not represent, and remembers the order of all.
fn sections(reader: &mut Reader) {
    let mut order = Order { symbols: std::mem::take(&mut reader.cubin.kept.order.symbols), ..Order::default() };
    for number in 1..reader.elf.sections.len() {
        let section = &reader.elf.sections[number];
        if reader.is_capsule(number) {
            reader.cubin.kept.capsule.push(section.name.clone());
            continue;
        }
        order.sections.push(section.name.clone());
        if reader.taken[number] {
            continue;
        }
        let name_of = |i: u32| reader.elf.sections.get(i as usize).filter(|_| i > 0).map(|s| s.name.clone());
        let info = match name_of(section.info).filter(|_| info_is_section(section.flags)) {
            Some(name) => SectionInfo::Section(name),
            None => SectionInfo::Value(section.info),
        };
        let kept = KeptSection {
            name: section.name.clone(),
            kind: section.kind,
            flags: section.flags,
            align: section.align,
            entry_size: section.entry,
            link: name_of(section.link),
            info,
            image: reader.image(number),
        };
        reader.cubin.kept.sections.push(kept);
    }
    reader.cubin.kept.order = order;
}
