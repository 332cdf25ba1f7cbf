//! What code reads from the compiler's own constant bank, which the cubin brings with it.

use super::operand::{Kind, Operand};

/// Values of 8 bytes that the code reads from the compiler's own constant bank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BankConstants {
    /// Byte offset of the first, behind the branch tables. A merged section may have another
    /// (`pipeline::merge_functions`).
    pub start: u32,
    /// How many there may be, so that those of a kernel and its functions fit the bank.
    pub most: usize,
    /// The values, each once.
    pub values: Vec<u64>,
}

impl BankConstants {
    /// The bank, which also has the branch tables.
    pub const BANK: u8 = 2;

    /// Bytes of a bank.
    pub const BYTES: usize = 1 << 16;

    /// The operand that reads a value, which is added if it is new; `None` if there are too many.
    pub fn operand(&mut self, value: u64) -> Option<Operand> {
        let known = self.values.iter().position(|known| *known == value);
        let index = known.unwrap_or(self.values.len());
        let offset = u16::try_from(self.start as usize + Self::bytes(index)).ok().filter(|_| index < self.most)?;
        if known.is_none() {
            self.values.push(value);
        }
        Some(Operand::constant(Self::BANK, offset))
    }

    /// The number of the value that an operand reads.
    #[inline]
    pub fn index(&self, operand: Operand) -> Option<usize> {
        let Kind::Const { bank: Self::BANK, offset } = operand.kind() else { return None };
        let within = u32::from(offset).checked_sub(self.start)? as usize;
        Some(within / Self::bytes(1)).filter(|index| *index < self.values.len())
    }

    /// Bytes of this many values.
    pub fn bytes(count: usize) -> usize {
        count * size_of::<u64>()
    }
}
