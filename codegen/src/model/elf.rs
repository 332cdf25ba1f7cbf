//! The ELF tables. A row has its order in each layout in the columns `rel` and `rela`.

use super::targets::Targets;
use crate::report::Report;
use crate::rows::elf::{AttributeRow, CompatRow, ElfTargetRow, LayoutRow, RelocationRow, ReservedRow, SectionRow};
use crate::source::{Row, Sources};

/// The ELF facts of a cubin.
pub struct Elf {
    pub layouts: Vec<Row<LayoutRow>>,
    pub targets: Vec<Row<ElfTargetRow>>,
    pub sections: Vec<Row<SectionRow>>,
    pub compat: Vec<Row<CompatRow>>,
    pub reserved: Vec<Row<ReservedRow>>,
    pub relocations: Vec<Row<RelocationRow>>,
    pub attributes: Vec<Row<AttributeRow>>,
}

/// The layouts that have a column in `sections.ron` and `eiattr.ron`, in the order of their
/// numbers.
pub const LAYOUTS: [&str; 2] = ["rel", "rela"];

impl Elf {
    /// Each implemented target whose SM number has no row inherits that of its nearest ancestor, so
    /// that a new target of a known kind needs only a row in `targets.ron`.
    pub fn inherit(&mut self, targets: &Targets) {
        for (_, target) in targets.built() {
            if self.targets.iter().any(|row| row.sm == target.sm) {
                continue;
            }
            let ancestors: Vec<u32> = targets.ancestors(target).map(|t| t.sm).collect();
            let from = ancestors.iter().find_map(|sm| self.targets.iter().find(|row| row.sm == *sm));
            let Some(mut row) = from.cloned() else { continue };
            let like = row.data.sm;
            row.data.sm = target.sm;
            self.targets.push(row);
            for reserved in self.reserved.iter_mut().filter(|r| r.data.sms.contains(&like)) {
                reserved.data.sms.push(target.sm);
            }
        }
    }

    /// Reads the rows; errors go to `report`.
    pub fn load(sources: &mut Sources, report: &mut Report) -> Elf {
        Elf {
            layouts: sources.rows("elf/layouts.ron", report),
            targets: sources.rows("elf/targets.ron", report),
            sections: sources.rows("elf/sections.ron", report),
            compat: sources.rows("elf/compat.ron", report),
            reserved: sources.rows("elf/reserved.ron", report),
            relocations: sources.rows("elf/relocations.ron", report),
            attributes: sources.rows("eiattr.ron", report),
        }
    }
}

/// Roles of relocations, in the order of the generated numbers.
pub const RELOCATION_ROLES: [&str; 20] = [
    "address",
    "address_low",
    "address_high",
    "function_address",
    "function_low",
    "function_high",
    "generic_address",
    "entry_address",
    "address_piece",
    "function_piece",
    "generic_piece",
    "entry_piece",
    "shared",
    "constant",
    "call",
    "pointer_call",
    "unused_size",
    "texture",
    "sampler",
    "surface",
];

/// The ranges of a `bits` column, `LOW..HIGH` each.
pub fn bit_ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let range = |word: &str| {
        let (low, high) = word.split_once("..")?;
        let (low, high) = (low.parse().ok()?, high.parse().ok()?);
        (low <= high && high < 128).then_some((low, high))
    };
    text.split_whitespace().map(range).collect()
}

/// The words of a `constants` column: name, and value if given. The error is a word that does not
/// parse.
pub fn constants(text: &str) -> Vec<Result<(&str, Option<u32>), &str>> {
    let number = |v: &str| v.strip_prefix("0x").and_then(|v| u32::from_str_radix(v, 16).ok());
    let word = |word| match str::split_once(word, '=') {
        None => Ok((word, None)),
        Some((name, value)) => number(value).map(|v| (name, Some(v))).ok_or(word),
    };
    text.split_whitespace().map(word).collect()
}

/// Parses bytes written as hexadecimal digits.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
