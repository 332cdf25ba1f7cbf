//! Sorts the index pairs of sparse A operands, for targets whose mma requires each pair of metadata
//! indices in ascending order.
//!
//! Where a pair of indices is swapped, the two elements of A are swapped too, so the result of the
//! mma is the same. Source for the distribution of metadata over lanes: PTX ISA 9.0, 9.7.14.6. For
//! 16-bit elements, a lane has 16 bits of a row and, above them, 16 bits of the row 8 further down;
//! for bytes, it has 32 bits of one row, and the next lane those of the other.

use crate::lower::builder::{Builder, Lowered};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::tables::ptx::SpecialRegister;
use crate::tables::{Op, Role};

/// Mask of the first index of every pair.
const FIRST: u32 = 0x3333_3333;
/// Lowest bit of every pair.
const LOWEST: u32 = 0x1111_1111;
/// Truth tables: `a & !b`; `!(a ^ b) & c`; `c ? b : a`.
const AND_NOT: u8 = 0xf0 & !0xcc;
const EQUAL_AND: u8 = !(0xf0 ^ 0xcc) & 0xaa;
const CHOOSE: u8 = 0xaa & 0xcc | !0xaa & 0xf0;
/// PRMT selectors: identity; swapped halves, low bytes, high bytes.
const PLACE: u32 = 0x3210;
const HALVES: u32 = 0x1032;
const LOW_BYTES: u32 = 0x3201;
const HIGH_BYTES: u32 = 0x2310;

impl Builder<'_> {
    /// The sorted fragment and metadata. `bits` is the size of an element, 16 or 8; `lanes` of
    /// every four lanes have metadata.
    pub fn in_order(
        &mut self,
        a: &[Operand],
        metadata: Operand,
        selector: u32,
        (bits, lanes): (u32, u32),
    ) -> Lowered<(Vec<Operand>, Operand)> {
        let (wrong, ordered) = self.ordered_metadata(metadata);
        let lane = self.special_source(SpecialRegister::Laneid)?;
        let (quad, in_quad) = (self.masked_by(lane, 0x1c), self.masked_by(lane, 3));
        // Bit position of the lane's own pairs in its metadata.
        let place = self.times(in_quad, if bits == 16 { 4 } else { 8 });
        let mut source = quad;
        if selector != 0 {
            let moved = self.temp();
            let by = self.imm(selector * lanes);
            self.add(moved, source, by);
            source = moved;
        }
        let mut out = Vec::new();
        let mut flags = Operand::NULL;
        for (i, word) in a.iter().enumerate() {
            let (block, lower) = (i as u32 / 2, i as u32 % 2);
            // For halves, one lane has both rows of a block; for bytes, each row is in a lane of
            // its own.
            let bit = if bits == 16 { 16 * lower } else { 0 };
            if bit == 0 {
                flags = self.flags_of(wrong, source, if bits == 16 { block } else { i as u32 }, place);
            }
            out.push(self.exchanged(*word, flags, bit, bits));
        }
        Ok((out, ordered))
    }

    /// Flags of the pairs whose first index is larger, and the metadata with these pairs swapped.
    fn ordered_metadata(&mut self, metadata: Operand) -> (Operand, Operand) {
        let first = self.masked_by(metadata, FIRST);
        let shifted = self.shifted(metadata, 2);
        let second = self.masked_by(shifted, FIRST);
        let (more, also, both) = (self.temp(), self.temp(), self.temp());
        self.lop3(more, first, second, Operand::zero(), AND_NOT);
        // If the upper bits are equal, the lower ones decide; move them up to the same position.
        let low = self.times(more, 2);
        self.lop3(also, first, second, low, EQUAL_AND);
        self.lop3(both, more, also, Operand::zero(), 0xf0 | 0xcc);
        let upper = self.shifted(both, 1);
        let wrong = self.masked_by(upper, LOWEST);
        let pairs = self.times(wrong, 3);
        let (new_first, new_second, ordered) = (self.temp(), self.temp(), self.temp());
        self.lop3(new_first, first, second, pairs, CHOOSE);
        self.lop3(new_second, second, first, pairs, CHOOSE);
        let four = self.imm(4);
        self.imad(ordered, new_second, four, new_first);
        (wrong, ordered)
    }

    /// The flags of another lane, shifted so that those of this lane's pairs are lowest.
    fn flags_of(&mut self, wrong: Operand, source: Operand, further: u32, place: Operand) -> Operand {
        let mut from = source;
        if further != 0 {
            let (moved, by) = (self.temp(), self.imm(further));
            self.add(moved, source, by);
            from = moved;
        }
        let (got, clamp, flags) = (self.temp(), self.literal(0x1f), self.temp());
        self.put(Op::SHFL, &[SHFL_IDX], &[(Role::D, got), (Role::A, wrong), (Role::B, from), (Role::C, clamp)]);
        self.shf(&SHF_R_U32_HI, flags, Operand::zero(), place, got);
        flags
    }

    /// Swaps the elements of a word for which the flags, starting at bit `bit`, are set.
    fn exchanged(&mut self, word: Operand, flags: Operand, bit: u32, bits: u32) -> Operand {
        let exchanges: &[(u32, u32)] = if bits == 16 { &[(0, HALVES)] } else { &[(0, LOW_BYTES), (4, HIGH_BYTES)] };
        let mut selector = self.imm(PLACE);
        for (at, exchange) in exchanges {
            let moved = self.shifted(flags, bit + at);
            let flag = self.masked_by(moved, 1);
            let (sum, step) = (self.temp(), self.imm(exchange.wrapping_sub(PLACE)));
            self.imad(sum, flag, step, selector);
            selector = sum;
        }
        let d = self.temp();
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, word), (Role::B, selector), (Role::C, Operand::zero())]);
        d
    }

    pub(crate) fn masked_by(&mut self, word: Operand, mask: u32) -> Operand {
        let (d, mask) = (self.temp(), self.imm(mask));
        self.and(d, word, mask);
        d
    }

    fn times(&mut self, word: Operand, factor: u32) -> Operand {
        let (d, factor) = (self.temp(), self.imm(factor));
        self.imad(d, word, factor, Operand::zero());
        d
    }

    pub(crate) fn shifted(&mut self, word: Operand, by: u32) -> Operand {
        if by == 0 {
            return word;
        }
        let (d, by) = (self.temp(), self.imm(by));
        self.shf(&SHF_R_U32_HI, d, Operand::zero(), by, word);
        d
    }
}
