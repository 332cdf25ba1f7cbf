//! Register-class descriptors of opcodes: category, fields, and how a field is packed.
//!
//! Source: `tables/regclass/`. A descriptor has five words: category; memory space and address
//! type; attributes of register classes; flags; operand count. If the published table lists an
//! opcode's register files (`files`), every form in `tables/encoding` stays within them, which the
//! build checks, and the encoder rejects an instruction outside them. For other opcodes the table
//! says nothing, and nothing depends on it.

use super::Op;
use super::ori::{OPS, OpInfo};
use std::sync::LazyLock;

/// A row of `regclass/categories.ron`.
#[derive(Debug)]
pub struct Category {
    pub opcode: u16,
    /// The opcode with this number in `tables/ori`.
    pub op: Option<Op>,
    /// 0 to 542.
    pub category: u16,
    pub fields: &'static [u16],
    /// Operands (by slot) and the register files they may be in, as letters of the table; the
    /// encoder enforces them.
    pub files: &'static [(u8, &'static str)],
    /// Name of the opcode in the published table.
    pub published_as: &'static str,
    /// The published remark.
    pub says: &'static str,
    pub status: &'static str,
}

/// Position of a field: word, lowest bit, number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub word: u8,
    pub low: u8,
    pub bits: u8,
}

/// How a value is converted to the field's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// 1 if the value is 1, otherwise 0.
    Flag,
    /// A table entry, by index in [`LOOK_UPS`]. The published contents are not known; entry n is
    /// taken as n.
    LookUp(u8),
    Unpublished,
}

/// A row of `regclass/fields.ron`.
#[derive(Debug)]
pub struct Field {
    pub id: u16,
    pub group: &'static str,
    pub place: Option<Place>,
    pub values: Values,
    pub meaning: &'static str,
    pub status: &'static str,
}

/// An encoding descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The five words of the descriptor.
    pub words: [u32; 5],
}

/// First token of field 113.
const WIDTH_TOKENS: u32 = 61;

impl Field {
    /// The row of a field id.
    pub fn of(id: u16) -> Option<&'static Field> {
        FIELDS.binary_search_by_key(&id, |f| f.id).ok().map(|i| &FIELDS[i])
    }
}

impl Descriptor {
    /// The descriptor of an opcode; `None` if nothing is published about it. Only the category word
    /// is set, because the values of the other fields are not published.
    pub fn of(op: Op) -> Option<Descriptor> {
        let row = Category::of(op)?;
        Some(Descriptor { words: [row.category.into(), 0, 0, 0, 0] })
    }

    /// Sets a field. Returns `None` if its position or values are not published, or the value has
    /// no entry.
    pub fn set(&mut self, id: u16, value: u32) -> Option<()> {
        let field = Field::of(id)?;
        let place = field.place?;
        let bits = match field.values {
            Values::Flag => u32::from(value == 1),
            Values::LookUp(table) => {
                let entry = value.checked_sub(WIDTH_TOKENS)?;
                (entry < LOOK_UPS[usize::from(table)].1.into()).then_some(entry)?
            }
            Values::Unpublished => return None,
        };
        let mask = ((1u64 << place.bits) - 1) as u32;
        let word = &mut self.words[usize::from(place.word)];
        *word = *word & !(mask << place.low) | (bits & mask) << place.low;
        Some(())
    }
}

impl Category {
    /// The row of an opcode.
    #[inline]
    pub fn of(op: Op) -> Option<&'static Category> {
        static OF_OP: LazyLock<Vec<Option<&'static Category>>> = LazyLock::new(|| {
            let found = |op: &OpInfo| CATEGORIES.binary_search_by_key(&(op.op as u16), |c| c.opcode).ok();
            OPS.iter().map(|op| found(op).map(|i| &CATEGORIES[i])).collect()
        });
        OF_OP[op.position()]
    }

    /// The register files of an operand, if the table lists any.
    pub fn files_of(&self, slot: usize) -> Option<&'static str> {
        self.files.iter().find(|f| usize::from(f.0) == slot).map(|f| f.1)
    }
}

/// The category and the fields 115 and 113 of an opcode of the extended memory path; the numbers
/// are the published table's own.
pub fn memory_path(num: u16, predicated: bool, extended: bool) -> Option<(u16, [u16; 2])> {
    let (_, fields) = MEMORY_PATH.iter().find(|p| p.0 == num)?;
    let category = if predicated {
        442
    } else if extended {
        443
    } else {
        441
    };
    Some((category, *fields))
}

include!(concat!(env!("OUT_DIR"), "/regclass.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_fields_are_packed_bit_by_bit() {
        // Field 91: ((value == 1) << 16) | (word & 0xfffeffff). Field 113: (entry << 7) | (word &
        // 0xfffff87f), entries from 61 on.
        for before in [0, u32::MAX, 0x1234_5678] {
            for value in [0, 1, 2] {
                let mut d = Descriptor { words: [489, 0, before, 0, 0] };
                assert_eq!(d.set(91, value), Some(()));
                assert_eq!(d.words[2], u32::from(value == 1) << 16 | before & 0xfffe_ffff);
            }
            for value in 61..69 {
                let mut d = Descriptor { words: [489, 0, before, 0, 0] };
                assert_eq!(d.set(113, value), Some(()));
                assert_eq!(d.words[2], (value - 61) << 7 | before & 0xffff_f87f);
            }
        }
        let mut d = Descriptor::default();
        assert_eq!((d.set(113, 60), d.set(113, 69), d.set(94, 61), d.set(2, 0)), (None, None, None, None));
    }
}
