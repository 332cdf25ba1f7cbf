//! Sparse factors in any order, for targets whose instructions want each pair of indices in order.
//!
//! Input: the words of a sparse first factor, its metadata, the selector. Output: the same product's factor and metadata, each pair of
//! indices in order, its elements exchanged likewise. Invariant: which lane has the metadata of which elements is what PTX ISA
//! 9.0, 9.7.14.6 says: of elements of 16 bits, 16 bits of a row and above them 16 of the row 8 further down; of bytes, 32 bits of
//! one row, the other in the next lane.

use super::builder::{Builder, Lowered};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::tables::ptx::SpecialRegister;
use crate::tables::{Op, Role};

/// Bits of the first index of every pair.
const FIRST: u32 = 0x3333_3333;
/// Lowest bit of every pair.
const LOWEST: u32 = 0x1111_1111;
/// Truth tables: a and not b; not (a xor b) and c; c ? b : a.
const AND_NOT: u8 = 0xf0 & !0xcc;
const EQUAL_AND: u8 = !(0xf0 ^ 0xcc) & 0xaa;
const CHOOSE: u8 = 0xaa & 0xcc | !0xaa & 0xf0;
/// Selectors of PRMT: all bytes in place; halves, low bytes, high bytes exchanged.
const PLACE: u32 = 0x3210;
const HALVES: u32 = 0x1032;
const LOW_BYTES: u32 = 0x3201;
const HIGH_BYTES: u32 = 0x2310;

impl Builder<'_> {
    /// Factor and metadata in order. `bits` of an element: 16 or 8; `lanes` of each four have metadata.
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
        // The lane's place among the pairs of its metadata, in bits.
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
            // Of halves, both rows of a block stand in one lane; of bytes, each in its own.
            let bit = if bits == 16 { 16 * lower } else { 0 };
            if bit == 0 {
                flags = self.flags_of(wrong, source, if bits == 16 { block } else { i as u32 }, place);
            }
            out.push(self.exchanged(*word, flags, bit, bits));
        }
        Ok((out, ordered))
    }

    /// One bit for each pair whose first index is the larger, and the metadata with these pairs turned round.
    fn ordered_metadata(&mut self, metadata: Operand) -> (Operand, Operand) {
        let first = self.masked_by(metadata, FIRST);
        let shifted = self.shifted(metadata, 2);
        let second = self.masked_by(shifted, FIRST);
        let (more, also, both) = (self.temp(), self.temp(), self.temp());
        self.lop3(more, first, second, Operand::zero(), AND_NOT);
        // The lower bits decide where the upper ones are equal: moved up to them.
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

    /// The bits of another lane's pairs, the lane's own ones lowest.
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

    /// A word whose elements change places where the flags from a bit on say so.
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

    pub(super) fn masked_by(&mut self, word: Operand, mask: u32) -> Operand {
        let (d, mask) = (self.temp(), self.imm(mask));
        self.and(d, word, mask);
        d
    }

    fn times(&mut self, word: Operand, factor: u32) -> Operand {
        let (d, factor) = (self.temp(), self.imm(factor));
        self.imad(d, word, factor, Operand::zero());
        d
    }

    pub(super) fn shifted(&mut self, word: Operand, by: u32) -> Operand {
        if by == 0 {
            return word;
        }
        let (d, by) = (self.temp(), self.imm(by));
        self.shf(&SHF_R_U32_HI, d, Operand::zero(), by, word);
        d
    }
}
