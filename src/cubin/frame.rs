//! `.debug_frame`: how a debugger finds the caller's frame.
//!
//! The section has one common entry and one frame entry per function, with relocations to the
//! functions. The frame entries cover the code exactly. The canonical frame address is R1 plus the
//! stack frame; the location of a device function's return address is not described.

use super::bytes::push_unsigned;
use super::model::{ElfKind, Function, Image, Reloc};
use crate::tables::elf::{Layout, RelocRole, RelocRow};
use crate::tables::registers::kept_across_calls;

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

/// The section for these functions and for the device functions inside their code; `uniform` is the
/// number of uniform registers of the target.
pub fn section(functions: &[Function], kind: ElfKind, layout: Layout, uniform: u32) -> Image {
    let mut image = Image { align: 1, ..Image::default() };
    for function in functions {
        let common = image.bytes.len() as u64;
        if let Some(moves) = &function.unwinding {
            image.bytes.extend(common_entry(function.kernel, uniform));
            let rules = moves_of(moves);
            entry(&mut image, common, &function.name, (0, function.code.len() as u64), rules);
            continue;
        }
        image.bytes.extend(&COMMON);
        let whole = function.code.len() as u64;
        let inner = function.labels.iter().map(|label| label.offset).min();
        entry(&mut image, common, &function.name, (0, inner.unwrap_or(whole)), frame_at(function.stack.frame));
        for label in &function.labels {
            let rules = frame_at(label.frame.unwrap_or_default());
            entry(&mut image, common, &function.name, (label.offset, label.size), rules);
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

/// Register classes of NVIDIA's DWARF numbers: in the top byte, above the register's number.
const GENERAL: u64 = 5;
const PREDICATE: u64 = 2;
const UNIFORM: u64 = 11;
const UNIFORM_PREDICATE: u64 = 9;
/// A class with one register, the condition codes of older targets.
const CONDITION: u64 = 1;
/// The register that holds a device function's return address.
const RETURN: u64 = 20;
const STACK: u64 = 1;
/// DW_CFA_undefined, DW_CFA_same_value, DW_CFA_advance_loc4.
const UNDEFINED: u8 = 7;
const SAME: u8 = 8;
const ADVANCE: u8 = 4;

/// The common entry with debug information for values: it also says of every register whether the
/// function keeps it. Source: ptxas 13.0.88 -g, kernels and functions of sm_75 to sm_120; it leaves
/// out predicate 1 of both files.
fn common_entry(kernel: bool, uniform: u32) -> Vec<u8> {
    let number = |class: u64, register: u64| class << 24 | register;
    let mut rest = vec![0xff; 8];
    rest.extend([3, 0, 4, 0x7c]);
    push_unsigned(&mut rest, if kernel { 0xffff_ffff } else { number(GENERAL, RETURN) });
    rest.extend(FRAME_ADDRESS);
    rest.push(0);
    let mut rule = |class: u64, register: u64, kept: bool| {
        rest.push(if kept { SAME } else { UNDEFINED });
        push_unsigned(&mut rest, number(class, register));
    };
    rule(GENERAL, 255, true);
    let predicates = || std::iter::once(0).chain(2..=6);
    predicates().for_each(|n| rule(UNIFORM_PREDICATE, n, false));
    // The two last ones are not for programs.
    let last = u64::from(uniform.next_multiple_of(2)) - 3;
    (4..=last).for_each(|n| rule(UNIFORM, n, !kernel && UNIFORM_KEPT.contains(&n)));
    rule(CONDITION, 0, false);
    predicates().for_each(|n| rule(PREDICATE, n, false));
    let kept = |n: u64| !kernel && kept_across_calls("R", n as u16);
    (0..=254).for_each(|n| rule(GENERAL, n, n == STACK || kept(n)));
    rest.resize((rest.len() + 4).next_multiple_of(8) - 4, 0);
    let mut bytes = vec![0xff; 4];
    bytes.extend((rest.len() as u64).to_le_bytes());
    bytes.extend(rest);
    bytes
}

/// The uniform registers that a function keeps.
const UNIFORM_KEPT: std::ops::RangeInclusive<u64> = 36..=63;

/// The rules of an entry for a stack pointer that moves, from byte offsets on.
fn moves_of(moves: &[(u64, u32)]) -> Vec<u8> {
    let (mut rules, mut last) = (Vec::new(), 0);
    for (at, below) in moves {
        rules.push(ADVANCE);
        // In units of four bytes.
        rules.extend((((at - last) / 4) as u32).to_le_bytes());
        rules.extend(frame_at(*below));
        last = *at;
    }
    rules
}

/// The rule of an entry whose frame is there throughout.
fn frame_at(frame: u32) -> Vec<u8> {
    let mut rules = FRAME_ADDRESS.to_vec();
    push_unsigned(&mut rules, u64::from(frame));
    rules
}

/// Appends the entry for a range of code: offset and size in the code of `symbol`, and its rules.
fn entry(image: &mut Image, common: u64, symbol: &str, (start, size): (u64, u64), mut rules: Vec<u8>) {
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
