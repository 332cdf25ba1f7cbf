//! The `.section` directives of a PTX text: data with the names of labels, variables and sections
//! in it, which become numbers and relocations.

use super::places::{Place, Places};
use crate::cubin::{Image, Reloc};
use crate::ptx::ast::{DebugSection, Module};
use crate::sorted::SortedMap;

/// R_CUDA_64, R_CUDA_32 and R_CUDA_G64.
const ADDRESS: u32 = 2;
const ADDRESS_32: u32 = 1;
const GENERIC: u32 = 4;
/// DW_OP_addr, DW_OP_fbreg and DW_OP_nop.
const OP_ADDRESS: u8 = 0x03;
const OP_FRAME: u8 = 0x91;
const OP_NOTHING: u8 = 0x96;

/// A section of the text.
pub struct Text {
    pub name: String,
    /// Zero where a name stands.
    pub bytes: Vec<u8>,
    names: Vec<Name>,
    labels: SortedMap<String, u64>,
}

/// A name, or a difference of two, in the data.
struct Name {
    at: usize,
    size: usize,
    name: String,
    minus: Option<String>,
    plus: i64,
}

/// Reads the sections; those of one name are one.
pub fn read(module: &Module) -> Vec<Text> {
    let mut texts: Vec<Text> = Vec::new();
    for section in module.debug_sections.iter().filter(|section| section.name.starts_with('.')) {
        let at = texts.iter().position(|text| text.name == section.name).unwrap_or_else(|| {
            let name = section.name.clone();
            texts.push(Text { name, bytes: Vec::new(), names: Vec::new(), labels: SortedMap::new() });
            texts.len() - 1
        });
        add(section, &mut texts[at]);
    }
    texts
}

fn add(section: &DebugSection, text: &mut Text) {
    for line in &section.lines {
        let mut rest = line.split_once("//").map_or(line.as_str(), |(code, _)| code).trim();
        while let Some((label, tail)) = rest.split_once(':') {
            text.labels.insert(label.trim().to_string(), text.bytes.len() as u64);
            rest = tail.trim();
        }
        let (kind, list) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let size = match kind {
            ".b8" => 1,
            ".b16" => 2,
            ".b32" => 4,
            ".b64" => 8,
            _ => continue,
        };
        for item in list.split(',') {
            let item = item.trim().trim_end_matches(';').trim();
            let at = text.bytes.len();
            let value = number(item);
            text.bytes.extend_from_slice(&value.unwrap_or(0).to_le_bytes()[..size]);
            if value.is_none() {
                text.names.push(Name { at, size, ..name(item) });
            }
        }
    }
}

fn number(text: &str) -> Option<i64> {
    let (digits, negative) = text.strip_prefix('-').map_or((text, false), |digits| (digits, true));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { (value as i64).wrapping_neg() } else { value as i64 })
}

/// `name`, `name+1`, `name-1` or `name-other`.
fn name(text: &str) -> Name {
    let (name, plus, minus) = match text.find(['+', '-']) {
        Some(at) => {
            let (name, rest) = text.split_at(at);
            let (sign, rest) = rest.split_at(1);
            match number(rest.trim()) {
                Some(value) => (name, if sign == "-" { value.wrapping_neg() } else { value }, None),
                None => (name, 0, Some(rest.trim().to_string())),
            }
        }
        None => (text, 0, None),
    };
    Name { at: 0, size: 0, name: name.trim().to_string(), minus, plus }
}

/// The contents with every name resolved. Offsets in sections need relocations only for a linker,
/// in an `object`.
pub fn resolve(text: &Text, all: &[Text], places: &Places<'_>, object: bool) -> Image {
    let mut bytes = text.bytes.clone();
    let mut relocs = Vec::new();
    for name in &text.names {
        let place = |wanted: &str| own(wanted, text, all).or_else(|| places.of(wanted));
        let Some(found) = place(&name.name) else { continue };
        if let Some(minus) = &name.minus {
            let distance = place(minus).and_then(|minus| found.offset()?.checked_sub(minus.offset()?));
            put(&mut bytes, name, distance.unwrap_or(0));
            continue;
        }
        let mut reloc = |kind: u32, symbol: String, addend: i64| {
            let kind = if name.size == 4 { ADDRESS_32 } else { kind };
            relocs.push(Reloc { offset: name.at as u64, kind, symbol, addend, explicit_addend: false });
        };
        match found {
            Place::Number(value) => put(&mut bytes, name, value as i64 + name.plus),
            Place::Frame(below) => in_frame(&mut bytes, name, below + name.plus),
            Place::Section { name: section, offset } => {
                let addend = offset as i64 + name.plus;
                put(&mut bytes, name, addend);
                if object {
                    reloc(ADDRESS, section, addend);
                }
            }
            Place::Symbol { symbol, offset, generic } => {
                let addend = offset as i64 + name.plus;
                // A reader that takes no relocations sees the offset.
                put(&mut bytes, name, addend);
                reloc(if generic { GENERIC } else { ADDRESS }, symbol, addend);
            }
        }
    }
    let with_addends = relocs.iter().any(|reloc| reloc.addend != 0);
    relocs.iter_mut().for_each(|reloc| reloc.explicit_addend = with_addends);
    relocs.reverse();
    Image { relocs, ..Image::new(bytes, 1) }
}

/// A section, or a label in one.
fn own(name: &str, text: &Text, all: &[Text]) -> Option<Place> {
    let at = |text: &Text, offset| Place::Section { name: text.name.clone(), offset };
    if name.starts_with(".debug_") {
        return Some(Place::Section { name: name.to_string(), offset: 0 });
    }
    let inside = |text: &Text| text.labels.get(name).map(|offset| at(text, *offset));
    inside(text).or_else(|| all.iter().find_map(inside))
}

fn put(bytes: &mut [u8], name: &Name, value: i64) {
    bytes[name.at..name.at + name.size].copy_from_slice(&value.to_le_bytes()[..name.size]);
}

/// A variable of the stack frame: its address as an operand of DW_OP_addr becomes the distance from
/// the frame's end, and the bytes that are left do nothing.
fn in_frame(bytes: &mut [u8], name: &Name, offset: i64) {
    if name.size != 8 || name.at == 0 || bytes[name.at - 1] != OP_ADDRESS {
        return;
    }
    bytes[name.at - 1] = OP_FRAME;
    let room = &mut bytes[name.at..name.at + name.size];
    room.fill(OP_NOTHING);
    let mut rest = offset;
    for byte in room {
        let low = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 && low & 0x40 == 0 || rest == -1 && low & 0x40 != 0 {
            *byte = low;
            return;
        }
        *byte = low | 0x80;
    }
}
