//! Expands `createpolicy` pseudo-operations into the two words of a cache policy, as ptxas computes
//! them; the lower word is zero.
//!
//! A fractional policy has a share of the accesses; a range policy counts in granules of 2^s bytes,
//! with s such that 128 granules cover the range.

use crate::arrays::Each;
use crate::ori::build::int::LUT_OR;
use crate::ori::mods::*;
use crate::ori::{Code, Operand};
use crate::tables::{Op, Role};

/// Position of the fraction (in sixteenths, less one) in the high word, and of the granule shift.
const SHARE_SHIFT: u32 = 20;
const SHARE_MASK: u32 = 0xf;
/// Scale of a fraction, as in ptxas.
const SHARE_SCALE: f32 = 15.99;

/// Granules have at least 2^12 bytes.
const LEAST_SHIFT: u32 = 12;
/// Mask of a number of granules, and positions of the first granule and of their count.
const LINES_MASK: u32 = 0x7f;
const FIRST_SHIFT: u32 = 12;
const COUNT_SHIFT: u32 = 5;
/// Subtracted from the highest bit of (size - 1) to get the shift with at most 128 granules: plus
/// one, less seven.
const LINES_BELOW: u32 = 6u32.wrapping_neg();

impl Code {
    /// The policy for a fraction (f32) of accesses.
    pub(super) fn policy_of_fraction(&mut self, d: Operand, fraction: Operand, form: Operand) {
        let [low_word, high_word] = self.words(d);
        self.copy(low_word, Operand::zero());
        if let (Some(bits), Some(form)) = (self.constant(fraction), self.constant(form)) {
            let share = (f32::from_bits(bits as u32) * SHARE_SCALE) as u32 & SHARE_MASK;
            let high = self.imm(form as u32 | share << SHARE_SHIFT);
            self.copy(high_word, high);
            return;
        }
        let [scaled, share] = [(); 2].each(|()| self.temp());
        let scale = self.f.imm(SHARE_SCALE.to_bits().into());
        self.put(Op::FMUL, &[], &[(Role::D, scaled), (Role::A, fraction), (Role::B, scale)]);
        self.put(Op::F2I, &[F2I_U32, TRUNC, F2I_NTZ], &[(Role::D, share), (Role::A, scaled)]);
        self.field(high_word, form, share, SHARE_MASK, SHARE_SHIFT);
    }

    /// `d = word | (value & mask) << shift`
    fn field(&mut self, d: Operand, word: Operand, value: Operand, mask: u32, shift: u32) {
        let (part, placed, mask, shift) = (self.temp(), self.temp(), self.imm(mask), self.imm(shift));
        self.and(part, value, mask);
        self.shf(&SHF_L, placed, part, shift, Operand::zero());
        self.lop3(d, placed, word, Operand::zero(), LUT_OR);
    }

    /// The policy in which `primary` bytes from an address on have the primary priority, of `total`
    /// bytes.
    pub(super) fn policy_of_range(
        &mut self,
        d: Operand,
        start: Operand,
        [primary, total]: [Operand; 2],
        form: Operand,
    ) {
        let ([low_word, high_word], start) = (self.words(d), self.words(start));
        let [less, bit, lines, s, granule] = [(); 5].each(|()| self.temp());
        let (minus_one, down, least, one) =
            (self.imm(u32::MAX), self.imm(LINES_BELOW), self.imm(LEAST_SHIFT), self.imm(1));
        self.add(less, total, minus_one);
        self.unary(Op::FLO, &[U32], bit, less);
        self.add(lines, bit, down);
        self.word_min_max(s, lines, least, true, true, false);
        self.shf(&SHF_L, granule, one, s, Operand::zero());

        // The end, rounded up to a granule.
        let [rounded, span, first, last, count, most] = [(); 6].each(|()| self.temp());
        let end = [self.temp(), self.temp()];
        self.add(rounded, granule, minus_one);
        self.add(span, primary, rounded);
        self.add_long(end, start, [span, Operand::zero()], false);
        self.shf(&SHF_R_U64, first, start[0], s, start[1]);
        self.shf(&SHF_R_U64, last, end[0], s, end[1]);
        self.add(count, last, first.negated());
        let mask = self.imm(LINES_MASK);
        self.word_min_max(most, count, mask, false, false, false);

        let [above, with_shift, with_first] = [(); 3].each(|()| self.temp());
        let minus_least = self.imm(LEAST_SHIFT.wrapping_neg());
        self.add(above, s, minus_least);
        self.field(with_shift, form, above, SHARE_MASK, SHARE_SHIFT);
        self.field(with_first, with_shift, first, LINES_MASK, FIRST_SHIFT);
        self.field(high_word, with_first, most, LINES_MASK, COUNT_SHIFT);
        self.copy(low_word, Operand::zero());
    }
}
