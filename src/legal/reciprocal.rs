//! The reciprocal of an f64 that the fast path cannot take: zero, infinite, NaN, or so small or
//! large that its reciprocal is near the end of the range of normal numbers.
//!
//! A number m·2^e with m from 1 to below 2 has the reciprocal (1/m)·2^-e. That is subnormal only
//! from 2^1022 on, where it lacks one or two bits of the 53, so no integer operations are needed:
//! it is rounded while 1 or 2 is added to 1/m, a sum whose last place is that of the result.
//! The remainder of the sum is exact, and one DFMA rounds with it, in each mode. Where 1/m is next
//! to a midpoint of two results, its nearest 53 bits are that midpoint, so that the product with
//! the remainder is on the right side of it.

use super::fdiv::SIGN;
use crate::arrays::Each;
use crate::ori::build::float::{EXPONENT, ONE_HIGH};
use crate::ori::mods::*;
use crate::ori::{Code, Operand};
use crate::tables::{Op, Role};

/// The exponent field from which on a reciprocal is subnormal, unless the mantissa is 1.
const LARGE: u32 = EXPONENT - 2;
/// The greatest exponent field.
const GREATEST: u32 = EXPONENT - 1;
/// High words of one half, two and eight.
const HALF: u32 = 0x3fe0_0000;
const TWO: u32 = 0x4000_0000;
const EIGHT: u32 = 0x4020_0000;

impl Code {
    /// `d = 1 / b` in f64.
    pub(super) fn reciprocal_of_any(&mut self, d: Operand, b: Operand, rounding: Option<M>) {
        let (b, exponent, finite) = self.mantissa_and_exponent(b);
        let one = self.double_constant(ONE_HIGH);
        // MUFU reads only the high word, which for some NaN is that of an infinity; multiplying by
        // one makes the NaN canonical.
        let b = self.dmul(None, b, one);
        let special = self.mufu_high(MUFU_RCP64H, b);
        let y = self.reciprocal_from(special, b);
        let limit = self.imm(LARGE);
        let large = self.isetp_with(&[GE, AND], exponent, limit, Operand::always());
        let raise = self.raise(b, exponent, large);
        let first = self.dadd(y, raise);
        let nearest = self.dadd(first, raise.negated());
        let (rest, sum) = (self.dfma(b.negated(), nearest, one), self.temp_pair());
        self.dfma_into(sum, rounding, rest, y, first);
        let q = self.dadd(sum, raise.negated());
        let result = self.lowered(q, exponent, large, rounding);
        self.select_into(d, result, special, finite);
    }

    /// What is added to the reciprocal of a mantissa so that the sum ends where the result does, of
    /// the mantissa's sign.
    fn raise(&mut self, b: Operand, exponent: Operand, large: Operand) -> Operand {
        let (high, place, signed, to) = (self.temp(), self.imm(20), self.temp(), self.temp());
        // One for the first exponent whose reciprocals are subnormal, two for the next.
        let field = self.plus(exponent, (ONE_HIGH >> 20) as i32 - LARGE as i32);
        self.shf(&SHF_L, high, field, place, Operand::zero());
        let (sign, of) = (self.imm(SIGN), self.words(b)[1]);
        // a | b & c
        self.lop3(signed, high, sign, of, 0xf0 | (0xcc & 0xaa));
        self.select(to, signed, Operand::zero(), large);
        self.pair_of([Operand::zero(), to])
    }

    /// The reciprocal of a mantissa times the reciprocal of its power of two, by two factors of
    /// which the first is exact.
    fn lowered(&mut self, q: Operand, exponent: Operand, large: Operand, rounding: Option<M>) -> Operand {
        // Their product is above the greatest power of two.
        let below = self.imm(-1i32 as u32);
        let over = self.isetp_with(&[LT, AND], exponent, below, Operand::always());
        let [half, two, eight] = [HALF, TWO, EIGHT].each(|factor| self.imm(factor));
        let (usual, first) = (self.temp(), self.temp());
        let half = self.in_reg(half);
        self.select(usual, half, two, large);
        self.select(first, usual, eight, over.inverted());
        // Twice, or half, is in the first factor.
        let [more, less] = [GREATEST + 1, GREATEST - 1].each(|field| self.imm(field));
        let (base, field, bounded, most) = (self.temp(), self.temp(), self.temp(), self.imm(GREATEST));
        let more = self.in_reg(more);
        self.select(base, more, less, large);
        self.add(field, base, exponent.negated());
        self.select(bounded, field, most, over.inverted());
        let (second, place) = (self.temp(), self.imm(20));
        self.shf(&SHF_L, second, bounded, place, Operand::zero());
        let [first, second] = [first, second].each(|high| self.pair_of([Operand::zero(), high]));
        let scaled = self.dmul(None, q, first);
        self.dmul(rounding, scaled, second)
    }

    /// `a + b` in f64.
    fn dadd(&mut self, a: Operand, b: Operand) -> Operand {
        let d = self.temp_pair();
        self.put(Op::DADD, &[], &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        d
    }
}
