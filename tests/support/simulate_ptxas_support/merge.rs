//! Makes one ELF file of the code of many cubins, for nvdisasm.
//!
//! nvdisasm takes half a second to start, and little for a kernel. Only sections of code, their
//! relocations and the symbols are taken. A section's name gets the index of its cubin, as in
//! `.text.3$name`; symbols keep their names. An undefined symbol is entered once, because nvdisasm
//! numbers those of one name.

use std::collections::HashMap;

/// A section header: the ten words of an ELF64 header in their order.
type Header = [u64; 10];
const NAME: usize = 0;
const KIND: usize = 1;
const OFFSET: usize = 4;
const SIZE: usize = 5;
const LINK: usize = 6;
const INFO: usize = 7;

/// Width of each word of a section header.
const WIDTHS: [usize; 10] = [4, 4, 8, 8, 8, 8, 4, 4, 8, 8];
const HEADER: usize = 64;
const SYMBOL: usize = 24;
/// Bits of `sh_info` of code that are a symbol; above them is the number of registers.
const SYMBOL_BITS: u64 = 0xff_ffff;
/// The first special section index of a symbol.
const SPECIAL: u64 = 0xff00;

const STRINGS: u64 = 3;
const SYMBOLS: u64 = 2;
const NO_BITS: u64 = 8;
/// Kinds of relocations, and the size of an entry of each.
const RELOCATIONS: [(u64, usize); 2] = [(4, 24), (9, 16)];

/// Indices of the sections of the whole that all cubins share.
const NAMES_AT: usize = 1;
const STRINGS_AT: u64 = 2;
const SYMBOLS_AT: u64 = 3;

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

fn put(bytes: &mut [u8], at: usize, width: usize, value: u64) {
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// The contents of a section.
fn contents<'a>(file: &'a [u8], header: &Header) -> Option<&'a [u8]> {
    let size = if header[KIND] == NO_BITS { 0 } else { header[SIZE] as usize };
    file.get(header[OFFSET] as usize..(header[OFFSET] as usize).checked_add(size)?)
}

/// A text of a table of strings.
fn text(table: &[u8], at: u64) -> Option<&[u8]> {
    table.get(at as usize..)?.split(|b| *b == 0).next()
}

fn headers(file: &[u8]) -> Option<Vec<Header>> {
    let (start, count) = (number(file, 40, 8)? as usize, number(file, 60, 2)? as usize);
    let header = |i: usize| {
        let (mut header, mut at) = ([0; 10], start + i * HEADER);
        for (word, width) in header.iter_mut().zip(WIDTHS) {
            *word = number(file, at, width)?;
            at += width;
        }
        Some(header)
    };
    (0..count).map(header).collect()
}

/// The name of a section of code, or of relocations of it, with the cubin's index.
fn renamed(name: &[u8], index: usize) -> Option<Vec<u8>> {
    let before = [&b".text."[..], b".rel.text.", b".rela.text."].into_iter().find(|before| name.starts_with(before))?;
    Some([before, format!("{index}$").as_bytes(), &name[before.len()..]].concat())
}

/// The sections so far.
#[derive(Default)]
struct Whole {
    sections: Vec<(Vec<u8>, Header, Vec<u8>)>,
    strings: Vec<u8>,
    symbols: Vec<u8>,
    undefined: HashMap<Vec<u8>, u64>,
}

impl Whole {
    /// Adds the code of a cubin; `None` if it cannot be read.
    fn add(&mut self, file: &[u8], index: usize) -> Option<()> {
        let headers = headers(file)?;
        let names = contents(file, headers.get(number(file, 62, 2)? as usize)?)?;
        let table = headers.iter().find(|header| header[KIND] == SYMBOLS)?;
        let (mut kept, mut new_index) = (Vec::new(), HashMap::new());
        for (i, header) in headers.iter().enumerate() {
            if let Some(name) = renamed(text(names, header[NAME])?, index) {
                new_index.insert(i as u64, (self.sections.len() + kept.len()) as u64);
                kept.push((name, *header, contents(file, header)?.to_vec()));
            }
        }
        let strings = contents(file, headers.get(table[LINK] as usize)?)?;
        let symbols: Vec<u64> = contents(file, table)?
            .chunks_exact(SYMBOL)
            .map(|symbol| self.symbol(symbol, strings, &new_index))
            .collect::<Option<_>>()?;
        for (_, header, data) in &mut kept {
            match RELOCATIONS.iter().find(|(kind, _)| *kind == header[KIND]) {
                Some((_, size)) => {
                    (header[LINK], header[INFO]) = (SYMBOLS_AT, *new_index.get(&header[INFO])?);
                    for entry in data.chunks_exact_mut(*size) {
                        let symbol = *symbols.get(number(entry, 12, 4)? as usize)?;
                        put(entry, 12, 4, symbol);
                    }
                }
                None => {
                    let symbol = *symbols.get((header[INFO] & SYMBOL_BITS) as usize)?;
                    (header[LINK], header[INFO]) = (SYMBOLS_AT, header[INFO] & !SYMBOL_BITS | symbol);
                }
            }
        }
        self.sections.extend(kept);
        Some(())
    }

    /// Adds a symbol; its new index.
    fn symbol(&mut self, symbol: &[u8], strings: &[u8], sections: &HashMap<u64, u64>) -> Option<u64> {
        let name = text(strings, number(symbol, 0, 4)?)?;
        let section = number(symbol, 6, 2)?;
        let next = (self.symbols.len() / SYMBOL) as u64;
        if section == 0 {
            let known = *self.undefined.entry(name.to_vec()).or_insert(next);
            if known != next {
                return Some(known);
            }
        }
        let mut new = symbol.to_vec();
        put(&mut new, 0, 4, self.strings.len() as u64);
        if section < SPECIAL {
            put(&mut new, 6, 2, sections.get(&section).copied().unwrap_or(0));
        }
        self.strings.extend(name);
        self.strings.push(0);
        self.symbols.extend(new);
        Some(next)
    }

    /// The file, with the ELF header of one of the cubins.
    fn write(mut self, elf_header: &[u8]) -> Vec<u8> {
        self.sections[SYMBOLS_AT as usize].1[INFO] = (self.symbols.len() / SYMBOL) as u64;
        self.sections[SYMBOLS_AT as usize].2 = std::mem::take(&mut self.symbols);
        self.sections[STRINGS_AT as usize].2 = std::mem::take(&mut self.strings);
        let mut names = Vec::new();
        for (name, header, _) in &mut self.sections {
            header[NAME] = names.len() as u64;
            names.extend_from_slice(name);
            names.push(0);
        }
        self.sections[NAMES_AT].2 = names;
        let mut file = elf_header.to_vec();
        for (_, header, data) in self.sections.iter_mut().skip(1) {
            file.resize(file.len().next_multiple_of(128), 0);
            header[OFFSET] = file.len() as u64;
            header[SIZE] = data.len() as u64;
            file.extend_from_slice(data);
        }
        file.resize(file.len().next_multiple_of(8), 0);
        let start = file.len() as u64;
        // No program headers; the headers of sections are at the end.
        for (at, width, value) in [(32, 8, 0), (40, 8, start), (56, 2, 0), (60, 2, self.sections.len() as u64)] {
            put(&mut file, at, width, value);
        }
        put(&mut file, 62, 2, NAMES_AT as u64);
        for (_, header, _) in &self.sections {
            header.iter().zip(WIDTHS).for_each(|(word, width)| file.extend(&word.to_le_bytes()[..width]));
        }
        file
    }
}

/// The code of cubins of one target in one file; `None` if one of them cannot be read.
pub fn merge(cubins: &[Vec<u8>]) -> Option<Vec<u8>> {
    let elf_header = cubins.first()?.get(..HEADER)?;
    let mut whole = Whole { strings: vec![0], symbols: vec![0; SYMBOL], ..Whole::default() };
    let table = |name: &str, kind: u64, link: u64, entry: u64| {
        (name.as_bytes().to_vec(), [0, kind, 0, 0, 0, 0, link, 0, 8, entry], Vec::new())
    };
    whole.sections = vec![
        (Vec::new(), [0; 10], Vec::new()),
        table(".shstrtab", STRINGS, 0, 0),
        table(".strtab", STRINGS, 0, 0),
        table(".symtab", SYMBOLS, STRINGS_AT, SYMBOL as u64),
    ];
    for (index, cubin) in cubins.iter().enumerate() {
        whole.add(cubin, index)?;
    }
    Some(whole.write(elf_header))
}

/// The part of a listing of the whole that is about each cubin, with the names of its own sections.
pub fn parts(listing: &str, count: usize) -> Vec<String> {
    const SECTION: &str = "//--------------------- .text.";
    let mut parts = vec![String::new(); count];
    for section in listing.split(SECTION).skip(1) {
        if let Some((index, rest)) = section.split_once('$')
            && let Some(part) = index.parse().ok().and_then(|index: usize| parts.get_mut(index))
        {
            part.push_str(SECTION);
            part.push_str(rest);
        }
    }
    parts
}
