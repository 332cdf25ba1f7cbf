//! The symbol table of a cubin.
//!
//! The order is that of ptxas for the common kernels, or that of the file which was read. No name
//! occurs twice.

use super::container::{SHN_RESERVED, Symbol};
use super::error::CubinError;
use super::model::{Binding, Cubin, ElfKind, Function, Space, Variable};
use super::passthrough::{KeptSymbol, SymbolHome};
use super::plan::Draft;
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::elf::{Content, ElfTarget, RESERVED, ReservedRow, SECTIONS, Scope};
use crate::tables::targets::TARGETS;

/// Symbol types: data, code, section, and NVIDIA's type for data of relocatable objects.
pub const STT_OBJECT: u8 = 1;
pub const STT_FUNC: u8 = 2;
pub const STT_SECTION: u8 = 3;
pub const STT_CUDA_OBJECT: u8 = 13;
/// Symbol types of references.
pub const STT_TEXTURE: u8 = 10;
pub const STT_SAMPLER: u8 = 11;
pub const STT_SURFACE: u8 = 12;
/// Section type of shared memory in objects.
pub const SHT_CUDA_SHARED: u32 = 0x7000_000a;
/// `st_other`: a kernel; unified memory; data of relocatable objects, by space.
pub const OTHER_KERNEL: u8 = 0x10;
pub const OTHER_MANAGED: u8 = 0x04;
pub const OTHER_GLOBAL: u8 = 0x20;
pub const OTHER_CONSTANT: u8 = 0x80;
pub const OTHER_SHARED: u8 = 0x40;
pub const OTHER_TABLE: u8 = 0x81;

/// All symbols, the null symbol first.
pub fn symbols(cubin: &Cubin, target: &ElfTarget, drafts: &[Draft<'_>]) -> Result<Vec<Symbol>, CubinError> {
    let sections = drafts.iter().zip(1u32..).map(|(draft, number)| (draft.name.as_str(), number)).collect();
    let kept = cubin.kept.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    let order = cubin.kept.order.symbols.iter().map(String::as_str).collect();
    let (symbols, names) = (vec![Symbol::default()], SortedSet::new());
    let shared_base = if cubin.kind == ElfKind::Executable { shared_base(target) } else { 0 };
    let mut table = Table { cubin, sections, kept, order, shared_base, symbols, names };
    // A linker may drop weak symbols; in objects they are placed with the local ones.
    let object = cubin.kind == ElfKind::Relocatable;
    let early_constants = constants_before_code(target);
    table.module_sections(&[Content::ToolNote, Content::TargetNote])?;
    let shared = cubin.functions.iter().any(|function| function.shared.is_some());
    for (i, function) in cubin.functions.iter().enumerate() {
        if function.binding != Binding::Global {
            table.function(function)?;
        }
        table.function_sections(function, &[Content::Code, Content::Shared])?;
        if i == 0 {
            table.data(target, object, shared)?;
        }
        table.function_sections(function, &[Content::Constant2])?;
        if early_constants {
            table.function_sections(function, &[Content::Constant0])?;
        }
        table.labels(function, |binding| binding == Binding::Local)?;
    }
    if cubin.functions.is_empty() {
        table.data(target, object, shared)?;
    }
    table.kept(|info| info >> 4 == 0)?;
    table.module_sections(&[Content::Frame, Content::Kept, Content::CallGraph, Content::Prototypes, Content::Fixed])?;
    for (i, function) in cubin.functions.iter().enumerate() {
        if function.binding == Binding::Global {
            table.function(function)?;
        }
        table.labels(function, |binding| binding != Binding::Local)?;
        if i == 0 {
            table.kept(is_reference)?;
        }
    }
    table.variables(|binding| binding == Binding::Global || !object && binding == Binding::Weak)?;
    table.kept(|info| info >> 4 != 0 && (cubin.functions.is_empty() || !is_reference(info)))?;
    table.externs();
    if !early_constants {
        for function in &cubin.functions {
            table.function_sections(function, &[Content::Constant0])?;
        }
    }
    Ok(table.in_order())
}

/// Whether constant bank 0 precedes the code in this layout; its section symbol is then among the
/// other symbols of the function.
fn constants_before_code(target: &ElfTarget) -> bool {
    let place = |content| {
        let row = SECTIONS.iter().find(|row| row.content == content);
        row.and_then(|row| row.order[target.layout as usize])
    };
    place(Content::Constant0) < place(Content::Code)
}

/// Whether symbols of this `st_info` are references, which stand behind the first function.
fn is_reference(info: u8) -> bool {
    info >> 4 != 0 && matches!(info & 0xf, STT_TEXTURE | STT_SAMPLER | STT_SURFACE)
}

/// First byte of user data in shared memory.
fn shared_base(target: &ElfTarget) -> u64 {
    let info = TARGETS.iter().filter(|other| other.sm == target.sm).find_map(|other| other.info());
    info.map_or(0, |info| info.shared_base.into())
}

/// `st_info` of a binding and a type.
pub fn info(binding: Binding, kind: u8) -> u8 {
    let bits = match binding {
        Binding::Local => 0,
        Binding::Global => 1,
        Binding::Weak => 2,
    };
    bits << 4 | kind
}

struct Table<'a> {
    cubin: &'a Cubin,
    /// Section numbers by name; section 0 is the null section.
    sections: SortedMap<&'a str, u32>,
    /// Names of the kept symbols (`kept`), and of all symbols of a file that was read (`order`).
    kept: SortedSet<&'a str>,
    order: SortedSet<&'a str>,
    /// First byte of user data in shared memory.
    shared_base: u64,
    symbols: Vec<Symbol>,
    names: SortedSet<String>,
}

impl Table<'_> {
    /// Number of a section.
    fn section(&self, name: &str) -> Result<u16, CubinError> {
        let found = self.sections.get(name).copied();
        let found = found.ok_or_else(|| CubinError::model(format!("a symbol is in `{name}`, which is not there")))?;
        u16::try_from(found).ok().filter(|i| *i < SHN_RESERVED).ok_or_else(|| CubinError::model("too many sections"))
    }

    fn push(&mut self, symbol: Symbol) -> Result<(), CubinError> {
        if !symbol.name.is_empty() && !self.names.insert(symbol.name.clone()) {
            return Err(CubinError::model(format!("two symbols are called `{}`", symbol.name)));
        }
        self.symbols.push(symbol);
        Ok(())
    }

    /// Adds a section symbol; a file that was read gets only those it had.
    fn section_symbol(&mut self, name: &str) -> Result<(), CubinError> {
        if self.kept.contains(name) || !(self.order.is_empty() || self.order.contains(name)) {
            return Ok(());
        }
        let (name, section) = (name.to_string(), self.section(name)?);
        self.push(Symbol { name, info: STT_SECTION, section, ..Symbol::default() })
    }

    fn module_sections(&mut self, contents: &[Content]) -> Result<(), CubinError> {
        for content in contents {
            let rows = SECTIONS.iter().filter(|row| row.content == *content && row.symbol);
            let rows: Vec<_> = rows.filter(|row| row.scope == Scope::Module).collect();
            if *content == Content::Kept {
                // In objects the name of the text ends in a number.
                let kept = self.cubin.kept.sections.iter().map(|section| section.name.as_str());
                for name in kept.filter(|name| rows.iter().any(|row| name.starts_with(row.name))) {
                    if !self.names.contains(name) {
                        self.section_symbol(name)?;
                    }
                }
                continue;
            }
            for row in rows {
                // Several layouts may each have a row for the same section.
                if self.sections.contains_key(row.name) && !self.names.contains(row.name) {
                    self.section_symbol(row.name)?;
                }
            }
        }
        Ok(())
    }

    fn function_sections(&mut self, function: &Function, contents: &[Content]) -> Result<(), CubinError> {
        for content in contents {
            for row in SECTIONS.iter().filter(|row| row.content == *content && row.symbol) {
                let name = format!("{}{}", row.name, function.name);
                // Shared memory that consists only of the reserved and launch-time parts gets no
                // symbol.
                let own = function.shared.is_some_and(|shared| shared.size > self.shared_base);
                let there = self.sections.contains_key(name.as_str());
                if there && (*content != Content::Shared || own || !self.order.is_empty()) {
                    self.section_symbol(&name)?;
                }
            }
        }
        Ok(())
    }

    /// Symbols of the reserved shared memory. A file that was read keeps its own instead.
    fn reserved(&mut self, target: &ElfTarget, wanted: impl Fn(&ReservedRow) -> bool) -> Result<(), CubinError> {
        if !self.cubin.kept.order.symbols.is_empty() {
            return Ok(());
        }
        let cubin = self.cubin;
        for row in RESERVED.iter().filter(|row| wanted(row) && cubin.describes(row, target)) {
            let section = if row.section.is_empty() { 0 } else { self.section(row.section)? };
            let name = row.name.to_string();
            let (info, other, value, size) = (row.info, row.other, row.value, row.size);
            self.push(Symbol { name, info, other, section, value, size, ..Symbol::default() })?;
        }
        Ok(())
    }

    /// Section symbols of the module's data, and the local variables.
    fn data(&mut self, target: &ElfTarget, object: bool, shared: bool) -> Result<(), CubinError> {
        self.reserved(target, |row| !row.when_shared)?;
        self.module_sections(&[Content::GlobalInit, Content::Constant4, Content::Global, Content::Constant3])?;
        self.variables(|binding| binding == Binding::Local || object && binding == Binding::Weak)?;
        self.reserved(target, |row| row.when_shared && shared)
    }

    fn variables(&mut self, wanted: impl Fn(Binding) -> bool) -> Result<(), CubinError> {
        for variable in self.cubin.variables.iter().filter(|variable| wanted(variable.binding)) {
            let section = self.section(section_of(variable.space))?;
            let object = self.cubin.kind == ElfKind::Relocatable;
            let kind = if object { STT_CUDA_OBJECT } else { STT_OBJECT };
            self.push(Symbol {
                name: variable.name.clone(),
                info: info(variable.binding, kind),
                other: other_of(variable, object),
                section,
                value: variable.offset,
                size: variable.size,
                ..Symbol::default()
            })?;
        }
        Ok(())
    }

    fn function(&mut self, function: &Function) -> Result<(), CubinError> {
        if self.kept.contains(function.name.as_str()) {
            return Ok(());
        }
        let section = self.section(&format!(".text.{}", function.name))?;
        self.push(Symbol {
            name: function.name.clone(),
            info: info(function.binding, STT_FUNC),
            other: if function.kernel { OTHER_KERNEL } else { 0 },
            section,
            value: 0,
            size: function.code.len() as u64,
            ..Symbol::default()
        })
    }

    fn labels(&mut self, function: &Function, wanted: impl Fn(Binding) -> bool) -> Result<(), CubinError> {
        for label in function.labels.iter().filter(|label| wanted(label.binding)) {
            let section = self.section(&format!(".text.{}", function.name))?;
            let (info, value, size) = (info(label.binding, STT_FUNC), label.offset, label.size);
            self.push(Symbol { name: label.name.clone(), info, other: 0, section, value, size, ..Symbol::default() })?;
        }
        Ok(())
    }

    fn kept(&mut self, wanted: impl Fn(u8) -> bool) -> Result<(), CubinError> {
        for KeptSymbol { name, shared_name, info, other, section, value, size } in &self.cubin.kept.symbols {
            if wanted(*info) {
                let section = match section {
                    SymbolHome::Undefined => 0,
                    SymbolHome::Reserved(number) => *number,
                    SymbolHome::Section(name) => self.section(name)?,
                };
                let symbol = Symbol {
                    name: name.clone(),
                    shared_name: shared_name.clone(),
                    info: *info,
                    other: *other,
                    section,
                    value: *value,
                    size: *size,
                    ..Symbol::default()
                };
                self.push(symbol)?;
            }
        }
        Ok(())
    }

    /// Undefined symbols for the external functions that have none yet.
    fn externs(&mut self) {
        for name in self.cubin.functions.iter().flat_map(|function| &function.externs) {
            if self.names.insert(name.clone()) {
                let info = info(Binding::Global, STT_FUNC);
                self.symbols.push(Symbol { name: name.clone(), info, ..Symbol::default() });
            }
        }
    }

    /// The symbols in the order of the file that was read, as far as it lists them.
    fn in_order(mut self) -> Vec<Symbol> {
        let order = &self.cubin.kept.order.symbols;
        if !order.is_empty() {
            // Nameless symbols are taken in list order, one for each nameless entry.
            let mut nameless = order.iter().enumerate().filter(|(_, name)| name.is_empty()).map(|(i, _)| i);
            let numbers: SortedMap<&str, usize> = order.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
            let mut place = |symbol: &Symbol| match symbol.name.is_empty() {
                true => nameless.next(),
                false => numbers.get(symbol.name.as_str()).copied(),
            };
            let places: Vec<_> = self.symbols[1..].iter().map(|s| place(s).unwrap_or(usize::MAX)).collect();
            let mut numbered: Vec<_> = places.into_iter().zip(self.symbols.drain(1..)).collect();
            crate::sorted::by_key(&mut numbered, |(place, _)| *place);
            self.symbols.extend(numbered.into_iter().map(|(_, symbol)| symbol));
        }
        self.symbols
    }
}

/// Section that holds the variables of a space.
pub fn section_of(space: Space) -> &'static str {
    match space {
        Space::Global => ".nv.global",
        Space::GlobalInit => ".nv.global.init",
        Space::Constant => ".nv.constant3",
    }
}

/// `st_other` of a variable.
pub fn other_of(variable: &Variable, object: bool) -> u8 {
    let space = match (object, variable.space) {
        (false, _) => 0,
        (true, Space::Constant) => OTHER_CONSTANT,
        (true, _) => OTHER_GLOBAL,
    };
    space | if variable.managed { OTHER_MANAGED } else { 0 }
}
