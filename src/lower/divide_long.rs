//! Division and remainder of integers of 64 bits.
//!
//! Input: `div` and `rem` of u64 and s64. Output: where both numbers fit in 32 bits, the division of 32 bits; otherwise an estimate of 2⁶⁴ / divisor
//! from f32, never too large, made better by two steps of Newton's method in integers, a quotient from its high product that is short
//! by at most two, and two corrections. A zero divisor gives all ones.

use super::builder::{Builder, Lowered};
use super::logic::{LUT_OR, LUT_XOR};
use super::mods::*;
use super::operand::is_signed;
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::Op as PtxOp;
use crate::tables::{Op, Role};

/// Adds 64 to a float's exponent and takes four units of the last place away: more than the estimate can be too large.
const TIMES_2_TO_64_LESS_4: u32 = 0x1fff_fffc;

impl Builder<'_> {
    /// `div` and `rem` of 64 bits.
    pub fn divide_long(&mut self, inst: &ast::Instruction) -> Lowered {
        let (ty, remainder) = (inst.types[0], inst.op == PtxOp::Rem);
        let a = self.source_words(&inst.operands[1], ty)?.map(|word| self.in_reg(word));
        let b = self.source_words(&inst.operands[2], ty)?.map(|word| self.in_reg(word));
        let d = self.dest_words(&inst.operands[0])?;
        let done = self.f.new_block();
        let guard = self.skip_unless_guarded(done);
        let result = if is_signed(ty) {
            let magnitudes = [a, b].map(|value| self.magnitude(value));
            let result = self.quotient_long(magnitudes[0], magnitudes[1], remainder);
            let sign = self.temp();
            let other = if remainder { Operand::zero() } else { b[1] };
            self.lop3(sign, a[1], other, Operand::zero(), LUT_XOR);
            self.with_sign(result, sign)
        } else {
            self.quotient_long(a, b, remainder)
        };
        let (any, p, ones) = (self.temp(), self.temp_pred(), self.imm(u32::MAX));
        self.lop3(any, b[0], b[1], Operand::zero(), LUT_OR);
        self.isetp(p, &[NE, AND, U32], any, Operand::zero());
        (0..2).for_each(|i| self.select(d[i], result[i], ones, p));
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    fn magnitude(&mut self, value: [Operand; 2]) -> [Operand; 2] {
        self.with_sign(value, value[1])
    }

    /// The value, or its negation where a word is negative.
    fn with_sign(&mut self, value: [Operand; 2], sign: Operand) -> [Operand; 2] {
        let (negative, p) = (self.temp_pair(), self.temp_pred());
        let words = self.words(negative);
        self.add_long(words, [Operand::zero(); 2], value, true);
        self.isetp(p, &[LT, AND], sign, Operand::zero());
        [0, 1].map(|i| {
            let d = self.temp();
            self.select(d, words[i], value[i], p);
            d
        })
    }

    fn quotient_long(&mut self, a: [Operand; 2], b: [Operand; 2], remainder: bool) -> [Operand; 2] {
        let [short, long, done] = [(); 3].map(|()| self.f.new_block());
        let (high, p, result) = (self.temp(), self.temp_pred(), [self.temp(), self.temp()]);
        self.lop3(high, a[1], b[1], Operand::zero(), LUT_OR);
        self.isetp(p, &[NE, AND, U32], high, Operand::zero());
        self.branch_if(p, long, short);
        let low = self.quotient(a[0], b[0], remainder);
        self.copy(result[0], low);
        self.copy(result[1], Operand::zero());
        self.enter_after(done, long);
        let wide = self.quotient_of_longs(a, b, remainder);
        (0..2).for_each(|i| self.copy(result[i], wide[i]));
        self.enter(done);
        result
    }

    fn quotient_of_longs(&mut self, a: [Operand; 2], b: [Operand; 2], remainder: bool) -> [Operand; 2] {
        let inverse = self.scaled_reciprocal_long(b);
        let q = self.product_high(inverse, a, false);
        let q = self.words(q);
        let product = self.product_low(q, b);
        let (product, rest) = (self.words(product), self.temp_pair());
        let rest = self.words(rest);
        self.add_long(rest, a, product, true);
        let [mut q, mut r] = [q, rest];
        for _ in 0..2 {
            let (p, less, more) = (self.temp_pred(), self.temp_pair(), self.temp_pair());
            self.compare_words(p, GE, U32, r, b);
            let (less, more, one) = (self.words(less), self.words(more), self.imm(1));
            self.add_long(less, r, b, true);
            self.add_long(more, q, [one, Operand::zero()], false);
            for i in 0..2 {
                let [next_r, next_q] = [self.temp(), self.temp()];
                self.select(next_r, less[i], r[i], p);
                self.select(next_q, more[i], q[i], p);
                [r[i], q[i]] = [next_r, next_q];
            }
        }
        if remainder { r } else { q }
    }

    /// 2⁶⁴ / b, never too large, and short by less than two.
    fn scaled_reciprocal_long(&mut self, b: [Operand; 2]) -> [Operand; 2] {
        let [float, inverse, scaled] = [(); 3].map(|()| self.temp());
        let (divisor, estimate) = (self.pair_of(b), self.temp_pair());
        self.put(
            Op::I2F_X,
            &[i2f_src(crate::tables::ptx::ScalarType::U64), RP],
            &[(Role::D, float), (Role::A, divisor)],
        );
        self.put(Op::MUFU, &[MUFU_RCP], &[(Role::D, inverse), (Role::A, float)]);
        let scale = self.imm(TIMES_2_TO_64_LESS_4);
        self.add(scaled, inverse, scale);
        let to = f2i_dst(crate::tables::ptx::ScalarType::U64);
        self.put(Op::F2I_X, &[to, TRUNC], &[(Role::D, estimate), (Role::A, scaled)]);
        let mut inverse = self.words(estimate);
        for _ in 0..2 {
            // inverse += inverse * (-b * inverse mod 2⁶⁴) / 2⁶⁴
            let product = self.product_low(inverse, b);
            let (product, error) = (self.words(product), self.temp_pair());
            let error = self.words(error);
            self.add_long(error, [Operand::zero(); 2], product, true);
            let more = self.product_high(inverse, error, false);
            let (more, better) = (self.words(more), self.temp_pair());
            let better = self.words(better);
            self.add_long(better, inverse, more, false);
            inverse = better;
        }
        inverse
    }
}
