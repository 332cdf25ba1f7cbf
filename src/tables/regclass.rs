//! The register-class descriptors of opcodes: category, fields, and how a field is packed.
//!
//! Source: `tables/regclass/`. A descriptor has five words: category; memory space and address type; attributes of register classes; flags;
//! operand count. Where the published table speaks of an opcode's register files (`files`), no form of `tables/encoding` goes beyond them, which is a
//! law of the build, and the encoder looks for no form of an instruction that does; elsewhere the table is silent, and nothing depends on it.

use super::Op;

/// A row of `regclass/categories.ron`.
#[derive(Debug)]
pub struct Category {
    pub opcode: u16,
    /// The opcode of that number in `tables/ori`.
    pub op: Option<Op>,
    /// 0 to 542.
    pub category: u16,
    pub fields: &'static [u16],
    /// Operands (slots of the opcode) and the register files that they may be in, letters as in the table: the choice of a form keeps to them.
    pub files: &'static [(u8, &'static str)],
    pub published_as: &'static str,
    pub says: &'static str,
    pub status: &'static str,
}

/// Where a field is: word, lowest bit, number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub word: u8,
    pub low: u8,
    pub bits: u8,
}

/// How a value becomes the field's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// 1 where the value is 1.
    Flag,
    /// The entry of a table, by position in [`LOOK_UPS`]; its published contents are not known, entry n is n.
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
    pub words: [u32; 5],
}

/// Tokens of field 113 begin here.
const WIDTH_TOKENS: u32 = 61;

impl Field {
    pub fn of(id: u16) -> Option<&'static Field> {
        FIELDS.binary_search_by_key(&id, |f| f.id).ok().map(|i| &FIELDS[i])
    }
}

impl Descriptor {
    /// The descriptor of an opcode; none where nothing is published of it. The other words are 0: which values an opcode's fields have is not published.
    pub fn of(op: Op) -> Option<Descriptor> {
        let row = Category::of(op)?;
        Some(Descriptor { words: [row.category.into(), 0, 0, 0, 0] })
    }

    /// Writes a field. `None` where its place or its values are not published, or the value has no entry.
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
    pub fn of(op: Op) -> Option<&'static Category> {
        CATEGORIES.binary_search_by_key(&(op as u16), |c| c.opcode).ok().map(|i| &CATEGORIES[i])
    }

    /// The files of an operand, if the table says any.
    pub fn files_of(&self, slot: usize) -> Option<&'static str> {
        self.files.iter().find(|f| usize::from(f.0) == slot).map(|f| f.1)
    }
}

/// The category and the fields 115 and 113 of an opcode of the extended memory path; the numbers are the published table's own.
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
        // Field 91: ((value == 1) << 16) | (word & 0xfffeffff). Field 113: (entry << 7) | (word & 0xfffff87f), entries from 61 on.
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
