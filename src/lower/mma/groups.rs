//! Sparse mma of 8-bit elements through two sparse mma of 16-bit elements.
//!
//! Input are the words of a B operand of bytes, 64 along k, and the metadata of A. The result is B
//! for two instructions of 32 along k, and their metadata in one register: selector 0 for the
//! first, selector 1 for the second.
//!
//! Metadata keeps two of each group of four neighbours along k, and a group must not be split. A
//! word of A has the kept pairs of two groups, so the lower halves of all words are the groups with
//! even numbers, the upper halves those with odd numbers. A lane has a whole group of B in a word;
//! the 16-bit instruction wants it in two adjacent lanes. Source of the fragment layouts: PTX ISA
//! 9.0, 9.7.14.6.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::tables::ptx::SpecialRegister;
use crate::tables::{Op, Role};

/// Mask of the even nibbles: the metadata of every second group.
const EVEN_NIBBLES: u32 = 0x0f0f_0f0f;
/// PRMT selectors: the lower halves of two words; the upper halves; bytes 0 and 2 of both words.
const LOWER: u32 = 0x5410;
const UPPER: u32 = 0x7632;
const EVEN_BYTES: u32 = 0x6420;

impl Builder<'_> {
    /// B for each of the two instructions, with two bytes of each word of the fragment in a half,
    /// and the metadata of both.
    pub(crate) fn sparse_groups(&mut self, b: &[Operand], metadata: Operand) -> Lowered<([Vec<Operand>; 2], Operand)> {
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

    /// Distributes the metadata in the order of 16-bit instructions: lanes 0 and 1 of each four get
    /// that of the even groups, lanes 2 and 3 that of the odd groups. The lower half of each is the
    /// row of the lane's number, the upper half the row 8 further down.
    fn metadata_of_groups(&mut self, metadata: Operand, lane: Operand, bit: Operand) -> Operand {
        let even = self.packed_nibbles(metadata);
        let moved = self.shifted(metadata, 4);
        let odd = self.packed_nibbles(moved);
        let all = self.imm(EVEN_BYTES);
        let both = self.permuted([even, odd], all);
        // Lanes 0 and 1 have the first 8 groups of both rows, lanes 2 and 3 the others.
        let quad = self.masked_by(lane, 0x1c);
        let (first, second, two, one) = (self.temp(), self.temp(), self.imm(2), self.imm(1));
        self.imad(first, bit, two, quad);
        self.add(second, first, one);
        let rows = [first, second].each(|from| {
            let (got, clamp) = (self.temp(), self.literal(0x1f));
            self.put(Op::SHFL, &[SHFL_IDX], &[(Role::D, got), (Role::A, both), (Role::B, from), (Role::C, clamp)]);
            got
        });
        let upper = self.shifted(lane, 1);
        let upper = self.masked_by(upper, 1);
        let selector = self.selector(upper, LOWER, UPPER);
        self.permuted(rows, selector)
    }

    /// Moves nibbles 0 and 2 to byte 0, nibbles 4 and 6 to byte 2.
    fn packed_nibbles(&mut self, word: Operand) -> Operand {
        let even = self.masked_by(word, EVEN_NIBBLES);
        let moved = self.shifted(even, 4);
        let d = self.temp();
        self.lop3(d, even, moved, Operand::zero(), 0xf0 | 0xcc);
        d
    }

    /// `zero` if `bit` is 0, `one` if it is 1.
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
