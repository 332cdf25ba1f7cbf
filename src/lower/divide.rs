//! Division and remainder of integers of 16 and 32 bits.
//!
//! Input: `div` and `rem`. Output: a reciprocal in f32, rounded down so that it is never too large, made exact to 32 bits by one step of Newton's
//! method; the quotient from its high product is short by at most two, which two corrections add. A zero divisor gives all ones.

use super::builder::{Builder, Lowered};
use super::mods::*;
use super::operand::is_signed;
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{Op as PtxOp, ScalarType};
use crate::tables::{Op, Role};

/// Adds 32 to a float's exponent and takes two units of the last place away.
const TIMES_2_TO_32_LESS_2: u32 = 0x0fff_fffe;

impl Builder<'_> {
    /// `div` and `rem` of integers.
    pub fn int_divide(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if ty.bits() > 32 {
            return self.divide_long(inst);
        }
        let (a, b) = (self.extended(&inst.operands[1], ty)?, self.extended(&inst.operands[2], ty)?);
        let (a, b) = (self.in_reg(a), self.in_reg(b));
        let remainder = inst.op == PtxOp::Rem;
        let result = if is_signed(ty) { self.signed_division(a, b, remainder) } else { self.quotient(a, b, remainder) };
        let p = self.temp_pred();
        self.isetp(p, &[NE, AND, U32], b, Operand::zero());
        let d = self.dest(&inst.operands[0])?;
        let ones = self.imm(u32::MAX);
        self.select(d, result, ones, p);
        Ok(())
    }

    fn signed_division(&mut self, a: Operand, b: Operand, remainder: bool) -> Operand {
        let magnitudes = [a, b].map(|value| {
            let magnitude = self.temp();
            self.unary(Op::IABS, &[], magnitude, value);
            magnitude
        });
        let result = self.quotient(magnitudes[0], magnitudes[1], remainder);
        // A remainder has the sign of the dividend, a quotient that of the product.
        let sign = if remainder {
            a
        } else {
            let sign = self.temp();
            self.lop3(sign, a, b, Operand::zero(), super::logic::LUT_XOR);
            sign
        };
        let [negative, signed, p] = [self.temp(), self.temp(), self.temp_pred()];
        self.add(negative, result.negated(), Operand::zero());
        self.isetp(p, &[LT, AND], sign, Operand::zero());
        self.select(signed, negative, result, p);
        signed
    }

    /// The unsigned quotient or remainder.
    pub fn quotient(&mut self, a: Operand, b: Operand, remainder: bool) -> Operand {
        let inverse = self.scaled_reciprocal(b);
        let mut q = self.temp();
        self.imad_high(q, U32, inverse, a);
        let negative = self.temp();
        self.add(negative, q.negated(), Operand::zero());
        let mut r = self.temp();
        self.imad(r, b, negative, a);
        for _ in 0..2 {
            let [less, more, p] = [self.temp(), self.temp(), self.temp_pred()];
            let one = self.imm(1);
            self.isetp(p, &[GE, AND, U32], r, b);
            self.add(less, r, b.negated());
            self.add(more, q, one);
            let [next_r, next_q] = [self.temp(), self.temp()];
            self.select(next_r, less, r, p);
            self.select(next_q, more, q, p);
            [r, q] = [next_r, next_q];
        }
        if remainder { r } else { q }
    }

    /// 2³² / b, never too large.
    fn scaled_reciprocal(&mut self, b: Operand) -> Operand {
        let [float, inverse, scaled, estimate] = [(); 4].map(|()| self.temp());
        self.put(Op::I2F, &[I2F_U32, RP], &[(Role::D, float), (Role::A, b)]);
        self.put(Op::MUFU, &[MUFU_RCP], &[(Role::D, inverse), (Role::A, float)]);
        let scale = self.imm(TIMES_2_TO_32_LESS_2);
        self.add(scaled, inverse, scale);
        self.put(Op::F2I, &[FTZ, F2I_U32, TRUNC, F2I_NTZ], &[(Role::D, estimate), (Role::A, scaled)]);
        // estimate += estimate * (-b * estimate mod 2³²) / 2³²
        let [negative, error, better] = [(); 3].map(|()| self.temp());
        self.add(negative, b.negated(), Operand::zero());
        self.imad(error, negative, estimate, Operand::zero());
        let above = self.pair_of([Operand::zero(), estimate]);
        let args = [(Role::D, better), (Role::A, estimate), (Role::B, error), (Role::C, above)];
        self.put(Op::IMAD_HI, &[U32], &args);
        better
    }

    /// `mul24` and `mad24`: of the low 24 bits, the low 32 bits of the product or its upper 32 of 48.
    pub fn mul_24(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let sign = if is_signed(ty) { S32 } else { U32 };
        let width = self.imm(24);
        let mut factors = [Operand::zero(); 2];
        for (factor, operand) in factors.iter_mut().zip(&inst.operands[1..3]) {
            let value = self.source_reg(operand, ty)?;
            *factor = self.temp();
            self.put(Op::SGXT, &[sign], &[(Role::D, *factor), (Role::A, value), (Role::B, width)]);
        }
        let c = inst.operands.get(3).map_or(Ok(Operand::zero()), |c| self.source(c, ScalarType::U32))?;
        let d = self.dest(&inst.operands[0])?;
        if inst.mods.mul_mode != Some(crate::tables::ptx::MulMode::Hi) {
            self.imad(d, factors[0], factors[1], c);
            return Ok(());
        }
        let product = self.temp_pair();
        self.put(
            Op::IMAD_WIDE,
            &[sign],
            &[(Role::D, product), (Role::A, factors[0]), (Role::B, factors[1]), (Role::C, Operand::zero())],
        );
        let ([low, high], upper, places) = (self.words(product), self.temp(), self.imm(16));
        self.shf(&SHF_R_U64, upper, low, places, high);
        if inst.mods.saturate {
            let c = self.in_reg(c);
            self.add_saturated(d, upper, c, false);
        } else {
            self.add(d, upper, c);
        }
        Ok(())
    }

    /// `sad`: c plus the distance of a and b.
    pub fn distance(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if ty.bits() > 32 {
            return self.long_distance(inst);
        }
        let (a, b) = (self.extended(&inst.operands[1], ty)?, self.extended(&inst.operands[2], ty)?);
        let (a, b) = (self.in_reg(a), self.in_reg(b));
        let c = self.source(&inst.operands[3], ty)?;
        let [up, down, either, p] = [self.temp(), self.temp(), self.temp(), self.temp_pred()];
        self.isetp(p, &[GE, AND, if is_signed(ty) { S32 } else { U32 }], a, b);
        self.add(up, a, b.negated());
        self.add(down, b, a.negated());
        self.select(either, up, down, p);
        let d = self.dest(&inst.operands[0])?;
        self.add(d, either, c);
        Ok(())
    }

    /// `sad` of 64 bits.
    fn long_distance(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let mut words = [[Operand::zero(); 2]; 3];
        for (pair, operand) in words.iter_mut().zip(&inst.operands[1..4]) {
            *pair = self.source_words(operand, ty)?.map(|word| self.in_reg(word));
        }
        let [a, b, c] = words;
        let p = self.temp_pred();
        let [up, down, either] = [(); 3].map(|()| [self.temp(), self.temp()]);
        self.compare_words(p, GE, if is_signed(ty) { S32 } else { U32 }, a, b);
        self.add_long(up, a, b, true);
        self.add_long(down, b, a, true);
        (0..2).for_each(|i| self.select(either[i], up[i], down[i], p));
        let d = self.dest_words(&inst.operands[0])?;
        self.add_long(d, either, c, false);
        Ok(())
    }

    /// `add.sat.s32` and `sub.sat.s32`: where the sign came out wrong, the bound on the other side.
    pub fn saturated_sum(&mut self, inst: &ast::Instruction, subtract: bool) -> Lowered {
        let ty = inst.types[0];
        let (a, b) = (self.source_reg(&inst.operands[1], ty)?, self.source_reg(&inst.operands[2], ty)?);
        let d = self.dest(&inst.operands[0])?;
        self.add_saturated(d, a, b, subtract);
        Ok(())
    }

    /// `a + b` or `a - b`, or the bound that it passed.
    pub fn add_saturated(&mut self, d: Operand, a: Operand, b: Operand, subtract: bool) {
        let [sum, wrong, side, bound, p] = [self.temp(), self.temp(), self.temp(), self.temp(), self.temp_pred()];
        self.add(sum, a, if subtract { b.negated() } else { b });
        // Overflow: both operands (the second with its sign as added) differ in sign from the result.
        let lut = if subtract { (0xf0 ^ 0xcc) & (0xf0 ^ 0xaa) } else { (0xf0 ^ 0xaa) & (0xcc ^ 0xaa) };
        self.lop3(wrong, a, b, sum, lut);
        self.sign_word(side, sum);
        let top = self.imm(1 << 31);
        self.lop3(bound, side, top, Operand::zero(), super::logic::LUT_XOR);
        self.isetp(p, &[LT, AND], wrong, Operand::zero());
        self.select(d, bound, sum, p);
    }
}
