//! `.debug_frame`: how a debugger finds the caller's frame.
//!
//! The section has one common entry and one frame entry per function, with relocations to the
//! functions. The frame entries cover the code exactly. The canonical frame address is R1 plus the
//! stack frame; the location of a device function's return address is not described.

use super::bytes::push_unsigned;
use super::model::{ElfKind, Function, Image, Reloc};
use crate::tables::elf::{Layout, RelocRole, RelocRow};

/// The common entry: version 3, addresses in units of 4 bytes, data in units of -4; no return
/// address register; the frame address is R1 + 0; R255 and R1 keep their values.
const COMMON: [u8; 48] = [
    0xff, 0xff, 0xff, 0xff, 0x24, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0x03, 0x00, 0x04, 0x7c, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x0c, 0x81, 0x80, 0x80, 0x28, 0x00, 0x08, 0xff, 0x81,
    0x80, 0x28, 0x08, 0x81, 0x80, 0x80, 0x28, 0x00, 0x00, 0x00,
];
/// DW_CFA_def_cfa with R1; the offset follows.
const FRAME_ADDRESS: [u8; 5] = [0x0c, 0x81, 0x80, 0x80, 0x28];
/// R_CUDA_64.
const ADDRESS: u32 = 2;

/// The section for these functions and for the device functions inside their code.
pub fn section(functions: &[Function], kind: ElfKind, layout: Layout) -> Image {
    let mut image = Image { align: 1, ..Image::default() };
    for function in functions {
        let common = image.bytes.len() as u64;
        image.bytes.extend(&COMMON);
        let whole = function.code.len() as u64;
        let inner = function.labels.iter().map(|label| label.offset).min();
        entry(&mut image, common, &function.name, (0, inner.unwrap_or(whole)), function.stack.frame);
        for label in &function.labels {
            entry(&mut image, common, &function.name, (label.offset, label.size), label.frame.unwrap_or_default());
        }
    }
    if kind == ElfKind::Relocatable {
        link(&mut image, layout);
    }
    image.size = image.bytes.len() as u64;
    image
}

/// Relocations for a linker: the offset of each entry's common entry, and the length of the code as
/// long as that code is kept. Relocation tables are written in reverse.
fn link(image: &mut Image, layout: Layout) {
    let number = |role| RelocRow::for_role(role, layout).map_or(0, |row| row.number);
    let (address, size) = (number(RelocRole::Address), number(RelocRole::UnusedSize));
    for code in std::mem::take(&mut image.relocs).into_iter().rev() {
        let at = code.offset as usize - 8;
        let common = image.bytes[at..at + 8].iter().rev().fold(0, |n, byte| n << 8 | i64::from(*byte));
        image.bytes[at..at + 8].fill(0);
        let reloc = |offset, kind, symbol: &str, addend, explicit_addend| Reloc {
            offset,
            kind,
            symbol: symbol.to_string(),
            addend,
            explicit_addend,
        };
        image.relocs.push(reloc(code.offset + 8, size, &code.symbol, 0, layout.info().split_relocs));
        let frame = reloc(code.offset - 8, address, ".debug_frame", common, false);
        image.relocs.extend([code, frame]);
    }
}

/// Appends the entry for a range of code: offset and size in the code of `symbol`, and stack bytes.
fn entry(image: &mut Image, common: u64, symbol: &str, (start, size): (u64, u64), frame: u32) {
    let mut rules = FRAME_ADDRESS.to_vec();
    push_unsigned(&mut rules, u64::from(frame));
    // Padded so that the entry with its 12 bytes of length is a multiple of 8.
    rules.resize((rules.len() + 4).next_multiple_of(8) - 4, 0);
    image.bytes.extend(0xffff_ffffu32.to_le_bytes());
    image.bytes.extend((24 + rules.len() as u64).to_le_bytes());
    image.bytes.extend(common.to_le_bytes());
    let (offset, symbol, addend) = (image.bytes.len() as u64, symbol.to_string(), start as i64);
    image.relocs.push(Reloc { offset, kind: ADDRESS, symbol, addend, explicit_addend: false });
    image.bytes.extend(0u64.to_le_bytes());
    image.bytes.extend(size.to_le_bytes());
    image.bytes.extend(rules);
}
