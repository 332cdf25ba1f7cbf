//! Integer division, 24-bit products, absolute differences and saturated sums: `div rem mul24 mad24
//! sad`.
//!
//! A division or remainder becomes one pseudo-operation, which LateExpansion expands, so the phases
//! in between see a single operation. The other operations are emitted directly.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered};
use crate::lower::operand::is_signed;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{Op as PtxOp, ScalarType};
use crate::tables::{Op, Role};

impl Builder<'_> {
    /// `div` and `rem` of integers. 16-bit operands are extended for the 32-bit division.
    pub fn int_divide(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let op = match (ty.bits(), inst.op == PtxOp::Rem) {
            (64, false) => Op::IDIV_64,
            (64, true) => Op::IREM_64,
            (16, false) => Op::IDIV_16,
            (16, true) => Op::IREM_16,
            (_, false) => Op::IDIV,
            (_, true) => Op::IREM,
        };
        let [a, b] = [1, 2].each(|i| &inst.operands[i]);
        let (a, b) = if ty.bits() == 64 {
            (self.pair_source(a, ty)?, self.pair_source(b, ty)?)
        } else {
            let (a, b) = (self.extended(a, ty)?, self.extended(b, ty)?);
            (self.in_reg(a), self.in_reg(b))
        };
        let d = self.dest(&inst.operands[0])?;
        self.put(op, &[if is_signed(ty) { S32 } else { U32 }], &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        Ok(())
    }

    /// `mul24` and `mad24`: multiplies the low 24 bits; takes the low 32 bits of the product
    /// (`.lo`) or the upper 32 of its 48 bits (`.hi`).
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

    /// `sad`: c + |a - b|.
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
            *pair = self.source_words(operand, ty)?.each(|word| self.in_reg(word));
        }
        let [a, b, c] = words;
        let p = self.temp_pred();
        let [up, down, either] = [(); 3].each(|()| [self.temp(), self.temp()]);
        self.compare_words(p, GE, if is_signed(ty) { S32 } else { U32 }, a, b);
        self.add_long(up, a, b, true);
        self.add_long(down, b, a, true);
        (0..2).for_each(|i| self.select(either[i], up[i], down[i], p));
        let d = self.dest_words(&inst.operands[0])?;
        self.add_long(d, either, c, false);
        Ok(())
    }

    /// `add.sat.s32` and `sub.sat.s32`: on overflow, the bound in the direction of the overflow.
    pub fn saturated_sum(&mut self, inst: &ast::Instruction, subtract: bool) -> Lowered {
        let ty = inst.types[0];
        let (a, b) = (self.source_reg(&inst.operands[1], ty)?, self.source_reg(&inst.operands[2], ty)?);
        let d = self.dest(&inst.operands[0])?;
        self.add_saturated(d, a, b, subtract);
        Ok(())
    }

    /// `a + b` or `a - b`, saturated.
    pub fn add_saturated(&mut self, d: Operand, a: Operand, b: Operand, subtract: bool) {
        let [sum, wrong, side, bound, p] = [self.temp(), self.temp(), self.temp(), self.temp(), self.temp_pred()];
        self.add(sum, a, if subtract { b.negated() } else { b });
        // Overflow: both operands (the second with the sign it is added with) differ in sign from
        // the result.
        let lut = if subtract { (0xf0 ^ 0xcc) & (0xf0 ^ 0xaa) } else { (0xf0 ^ 0xaa) & (0xcc ^ 0xaa) };
        self.lop3(wrong, a, b, sum, lut);
        self.sign_word(side, sum);
        let top = self.imm(1 << 31);
        self.lop3(bound, side, top, Operand::zero(), crate::ori::build::int::LUT_XOR);
        self.isetp(p, &[LT, AND], wrong, Operand::zero());
        self.select(d, bound, sum, p);
    }
}
