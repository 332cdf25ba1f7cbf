//! Sparse factors of 8 bits for instructions on 16 bits.
//!
//! Input: the words of a second factor of bytes, 64 along k, and the metadata of the first. Output: the second factor's bytes for two
//! instructions of 32 along k, and their metadata in one register: selector 0 is of the first, 1 of the second. Why so: of four
//! neighbours along k the metadata keeps two, and such a group may not be torn. A word of the first factor has the kept pairs of two
//! groups, so the lower halves of all words are the groups with even numbers, and the upper ones those with odd numbers. A lane has
//! a whole group of the second factor in a word; the instruction on 16 bits wants it in two lanes side by side. Source of the
//! fragments: PTX ISA 9.0, 9.7.14.6.

use super::builder::{Builder, Lowered};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::tables::ptx::SpecialRegister;
use crate::tables::{Op, Role};

/// Nibbles with even numbers: the metadata of every second group.
const EVEN_NIBBLES: u32 = 0x0f0f_0f0f;
/// Selectors of PRMT: the lower halves of two words, the upper ones; bytes 0 and 2 of two words.
const LOWER: u32 = 0x5410;
const UPPER: u32 = 0x7632;
const EVEN_BYTES: u32 = 0x6420;

impl Builder<'_> {
    /// The second factor of either instruction, two bytes of each word of the fragment in a half, and the metadata of both.
    pub(super) fn sparse_groups(&mut self, b: &[Operand], metadata: Operand) -> Lowered<([Vec<Operand>; 2], Operand)> {
        let lane = self.special_source(SpecialRegister::Laneid)?;
        let bit = self.masked_by(lane, 1);
        let odd = self.temp_pred();
        self.isetp(odd, &[NE, AND], bit, Operand::zero());
        let metadata = self.metadata_of_groups(metadata, lane, bit);
        let own = self.selector(bit, LOWER, UPPER);
        let others = self.selector(bit, UPPER, LOWER);
        let mut groups = [Vec::new(), Vec::new()];
        for words in b.chunks(2) {
            let pair = [words[0], words.get(1).copied().unwrap_or(Operand::zero())];
            let kept = self.permuted(pair, own);
            let sent = self.permuted(pair, others);
            let (got, one, clamp) = (self.temp(), self.imm(1), self.literal(0x1f));
            self.put(Op::SHFL, &[SHFL_BFLY], &[(Role::D, got), (Role::A, sent), (Role::B, one), (Role::C, clamp)]);
            let (even_group, odd_group) = (self.temp(), self.temp());
            self.select(even_group, got, kept, odd);
            self.select(odd_group, kept, got, odd);
            groups[0].push(even_group);
            groups[1].push(odd_group);
        }
        Ok((groups, metadata))
    }

    /// Lanes 0 and 1 of four get the metadata of the even groups in the order of instructions on 16 bits, lanes 2 and 3 that of the odd
    /// ones: in each the row of the lane's number in the lower half and the row 8 further down in the upper one.
    fn metadata_of_groups(&mut self, metadata: Operand, lane: Operand, bit: Operand) -> Operand {
        let even = self.packed_nibbles(metadata);
        let moved = self.shifted(metadata, 4);
        let odd = self.packed_nibbles(moved);
        let all = self.imm(EVEN_BYTES);
        let both = self.permuted([even, odd], all);
        // The first 8 groups of both rows stand in lanes 0 and 1, the others in lanes 2 and 3.
        let quad = self.masked_by(lane, 0x1c);
        let (first, second, two, one) = (self.temp(), self.temp(), self.imm(2), self.imm(1));
        self.imad(first, bit, two, quad);
        self.add(second, first, one);
        let rows = [first, second].map(|from| {
            let (got, clamp) = (self.temp(), self.literal(0x1f));
            self.put(Op::SHFL, &[SHFL_IDX], &[(Role::D, got), (Role::A, both), (Role::B, from), (Role::C, clamp)]);
            got
        });
        let upper = self.shifted(lane, 1);
        let upper = self.masked_by(upper, 1);
        let selector = self.selector(upper, LOWER, UPPER);
        self.permuted(rows, selector)
    }

    /// Nibbles 0 and 2 side by side in byte 0, nibbles 4 and 6 in byte 2.
    fn packed_nibbles(&mut self, word: Operand) -> Operand {
        let even = self.masked_by(word, EVEN_NIBBLES);
        let moved = self.shifted(even, 4);
        let d = self.temp();
        self.lop3(d, even, moved, Operand::zero(), 0xf0 | 0xcc);
        d
    }

    /// `bit` 0: the first number, 1: the second one.
    fn selector(&mut self, bit: Operand, zero: u32, one: u32) -> Operand {
        let (d, step, base) = (self.temp(), self.imm(one.wrapping_sub(zero)), self.imm(zero));
        self.imad(d, bit, step, base);
        d
    }

    fn permuted(&mut self, [a, c]: [Operand; 2], selector: Operand) -> Operand {
        let d = self.temp();
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, a), (Role::B, selector), (Role::C, c)]);
        d
    }
}
