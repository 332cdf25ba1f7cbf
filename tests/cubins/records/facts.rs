//! What an ELF file says of each of its functions, as texts that do not depend on where the code
//! lies: records, sections, symbols and relocations, and how often each instruction stands in it.
//!
//! Sections and symbols are read apart from our reader.

use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian as LE, SectionIndex, elf};
use sassafras::cubin::{Attribute, listing};
use sassafras::sass;
use sassafras::tables::Target;
use sassafras::tables::elf::{AttributeRow, AttributeValue as V, COMPAT};
use std::collections::BTreeMap;

/// A function (empty for what is of none) and what is said of it.
pub type Fact = (String, String);

/// The facts of a file, each with how often it is said, and the mnemonics of each function.
#[derive(Default)]
pub struct Facts {
    pub said: BTreeMap<Fact, usize>,
    pub code: BTreeMap<String, BTreeMap<String, usize>>,
}

/// A symbol as other parts of the file refer to it.
struct Symbol {
    name: String,
    section: String,
    said: String,
}

const TEXT: &str = ".text.";

impl Facts {
    pub fn of(bytes: &[u8], target: &Target) -> Result<Facts, String> {
        let header = elf::FileHeader64::<LE>::parse(bytes).map_err(|e| e.to_string())?;
        let sections = header.sections(LE, bytes).map_err(|e| e.to_string())?;
        let name = |section| sections.section_name(LE, section).map_or("?".into(), String::from_utf8_lossy);
        let mut facts = Facts::default();
        for section in sections.iter() {
            if let Some(function) = name(section).strip_prefix(TEXT) {
                let code = section.data(LE, bytes).map_err(|e| e.to_string())?;
                facts.code.insert(function.to_string(), mnemonics(code, target));
            }
        }
        let table = sections.symbols(LE, bytes, elf::SHT_SYMTAB).map_err(|e| e.to_string())?;
        let symbol = |symbol: &elf::Sym64<LE>| {
            let text = symbol.name(LE, table.strings()).map_or("?".into(), String::from_utf8_lossy);
            let home = sections.section(SectionIndex(symbol.st_shndx(LE).0.into())).map_or("".into(), name);
            let (info, other) = (symbol.st_info().0, symbol.st_other().0);
            let binding = format!("binding {} type {} other {other:#x}", info >> 4, info & 15);
            Symbol { name: text.to_string(), section: home.to_string(), said: binding }
        };
        let symbols: Vec<Symbol> = table.iter().map(symbol).collect();
        for section in sections.iter().skip(1) {
            facts.section(&name(section), section);
            let rows = section.rel(LE, bytes).map_err(|e| e.to_string())?;
            let rows = rows.into_iter().flat_map(|(rows, _)| rows).map(|r| (r.r_sym(LE), r.r_type(LE)));
            let more = section.rela(LE, bytes).map_err(|e| e.to_string())?;
            let more = more.into_iter().flat_map(|(rows, _)| rows).map(|r| (r.r_sym(LE, false), r.r_type(LE, false)));
            for (at, kind) in rows.chain(more) {
                let to = symbols.get(at as usize).map_or("?", |symbol| &symbol.name);
                let text = format!("relocation {} {} {kind}", facts.starred(&name(section)), facts.starred(to));
                facts.add(facts.owner(&name(section), to), text);
            }
        }
        // ptxas leaves nameless remnants of removed symbols.
        for symbol in symbols.iter().filter(|symbol| !symbol.name.is_empty()) {
            let text = format!("{} in {}", facts.starred(&symbol.name), facts.starred(&symbol.section));
            facts.add(facts.owner(&symbol.section, &symbol.name), format!("symbol {text} {}", symbol.said));
        }
        for (section, records) in listing(bytes).map_err(|e| e.to_string())?.sections {
            for record in records {
                facts.record(&section, &record, &symbols);
            }
        }
        Ok(facts)
    }

    fn add(&mut self, function: String, text: String) {
        *self.said.entry((function, text)).or_default() += 1;
    }

    /// The function of which a section is, or else a symbol.
    fn owner(&self, section: &str, symbol: &str) -> String {
        let of = |name: &str| {
            self.code.keys().filter(|function| name == *function || ends(name, function)).max_by_key(|f| f.len())
        };
        of(section).or_else(|| of(symbol)).cloned().unwrap_or_default()
    }

    /// A name with `@` for that of a function that ends it, and `#` for the number of a variable of
    /// a function, which counts what its compiler has declared before.
    fn starred(&self, name: &str) -> String {
        if let Some((start, number)) = name.strip_prefix("$__").and_then(|name| name.rsplit_once("__"))
            && number.parse::<u32>().is_ok()
        {
            return format!("$__{start}__#");
        }
        let function = self.owner(name, name);
        let start = name.strip_suffix(&function).filter(|_| !function.is_empty());
        start.map_or_else(|| name.to_string(), |start| format!("{start}@"))
    }

    fn section(&mut self, name: &str, section: &elf::SectionHeader64<LE>) {
        let (kind, flags) = (section.sh_type(LE).0, section.sh_flags(LE).0);
        // The fourth byte of the flags of code is the number of its barriers, a record of its own.
        let text = format!("section {} type {kind:#x} flags {flags:#x}", self.starred(name));
        let empty = if section.sh_size(LE) == 0 { " empty" } else { "" };
        let text = format!("{text} align {} entry {}{empty}", section.sh_addralign(LE), section.sh_entsize(LE));
        self.add(self.owner(name, name), text);
    }

    fn record(&mut self, section: &str, record: &Attribute, symbols: &[Symbol]) {
        let words: Vec<u32> =
            record.payload.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        let first = words.first().and_then(|at| symbols.get(*at as usize));
        let (of, named) =
            first.map_or((String::new(), String::new()), |s| (self.owner(&s.section, &s.name), self.starred(&s.name)));
        if section == ".nv.compat" {
            let name = COMPAT.iter().find(|row| row.id == record.id).map_or("?", |row| row.name);
            return self.add(String::new(), format!("compat {name} {}", hex(&record.payload)));
        }
        let row = AttributeRow::of(record.id);
        let value = row.map_or(V::Kept, |row| row.value);
        let name = row.map_or("?", |row| row.name);
        let module = self.owner(section, section);
        match value {
            // Registers, frames and what they add up to are of the code.
            V::RegisterCount | V::FrameSize | V::MinStack | V::MaxStack => self.add(of, format!("{name} {named}")),
            V::Externs => {
                let mut names: Vec<&str> =
                    words.iter().filter_map(|at| Some(&*symbols.get(*at as usize)?.name)).collect();
                names.sort();
                self.add(module, format!("{name} {}", names.join(" ")));
            }
            V::ParamBank => self.add(module, format!("{name} {named} {:#x}", words[1])),
            V::SamplerInit | V::SamplerUnnormalized => self.add(module, format!("{name} {named} {:#x}", words[1])),
            _ => match length(value, name) {
                Some(length) => self.add(module, format!("{name} x{}", record.payload.len() / length)),
                None => self.add(module, format!("{name} {}", hex(&record.payload))),
            },
        }
    }
}

/// The bytes of an entry of the records that list places in the code.
fn length(value: V, name: &str) -> Option<usize> {
    match value {
        V::Exits | V::WarpWide | V::InsertedWarpWide | V::WarpWideMasks | V::Syscalls | V::BlockZ => Some(4),
        V::PartlyRead => Some(8),
        V::RegisterMap => Some(12),
        V::MbarrierInstructions => Some(16),
        // One each, whatever its length.
        V::IndirectBranches => Some(usize::MAX),
        _ => (name == "ANNOTATIONS" || name == "ATOM16_EMUL_INSTR_REG_MAP").then_some(usize::MAX),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a name is that of a function behind a dot.
fn ends(name: &str, function: &str) -> bool {
    name.strip_suffix(function).is_some_and(|start| start.ends_with('.'))
}

/// How often each instruction stands in some code, with its modifiers; words that fill it up do
/// not count.
fn mnemonics(code: &[u8], target: &Target) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in code.chunks_exact(16).map(|word| u128::from_le_bytes(word.try_into().unwrap())) {
        let text = sass::decode(target, word).map_or("?".into(), |inst| sass::text(target, &inst, 0, None));
        let mut words = text.split_whitespace().skip_while(|word| word.starts_with('@'));
        *counts.entry(words.next().unwrap_or("?").trim_end_matches(';').to_string()).or_default() += 1;
    }
    counts
}
