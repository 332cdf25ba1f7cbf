//! 64-bit bit fields, masks, and tests of bit patterns: `bfe bfi bfind` of 64 bits, `bmsk szext
//! testp isspacep`.
//!
//! Emits shifts that clamp at 64, LOP3 with masks, and comparisons.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::operand::is_signed;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{ScalarType, ShiftMode, Test};
use crate::tables::{Op, Role};

impl Builder<'_> {
    /// `bfe` of 64 bits: shifts the field down to bit 0, then up until its last bit is the sign,
    /// then down again with that sign.
    pub fn extract_long(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let a = self.source_pair(&inst.operands[1], ty)?;
        let (position, length) = (self.byte(&inst.operands[2])?, self.byte(&inst.operands[3])?);
        let spare = self.spare_bits(length);
        let [down, up, field] = [(); 3].each(|()| self.temp_pair());
        self.shift_long(down, a, position, false, is_signed(ty));
        self.shift_long(up, down, spare, true, false);
        self.shift_long(field, up, spare, false, is_signed(ty));
        let d = self.dest(&inst.operands[0])?;
        self.copy_value(d, field);
        Ok(())
    }

    /// `64 - length`, but at least 0.
    fn spare_bits(&mut self, length: Operand) -> Operand {
        let [rest, spare, p] = [self.temp(), self.temp(), self.temp_pred()];
        let (all, less) = (self.imm(64), self.negative(length));
        self.add(rest, less, all);
        self.isetp(p, &[LT, AND], rest, Operand::zero());
        self.select(spare, Operand::zero(), rest, p);
        spare
    }

    /// `bfi` of 64 bits.
    pub fn insert_long(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let (a, into) = (self.source_pair(&inst.operands[1], ty)?, self.source_words(&inst.operands[2], ty)?);
        let (position, length) = (self.byte(&inst.operands[3])?, self.byte(&inst.operands[4])?);
        let ones = self.imm(u32::MAX);
        let ones = self.pair_of([ones, ones]);
        let [above, field, shifted, mask] = [(); 4].each(|()| self.temp_pair());
        self.shift_long(above, ones, length, true, false);
        let (above_words, field_words) = (self.words(above), self.words(field));
        (0..2).for_each(|i| self.lop3(field_words[i], Operand::zero(), above_words[i], Operand::zero(), !0xcc));
        self.shift_long(mask, field, position, true, false);
        self.shift_long(shifted, a, position, true, false);
        let (mask, shifted) = (self.words(mask), self.words(shifted));
        let d = self.dest_words(&inst.operands[0])?;
        for i in 0..2 {
            self.lop3(d[i], shifted[i], mask[i], into[i], (0xf0 & 0xcc) | (0xaa & !0xcc));
        }
        Ok(())
    }

    /// `bfind` of 64 bits: the highest bit that differs from the sign.
    pub fn find_long(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let mut words = self.source_words(&inst.operands[1], ty)?.each(|w| self.in_reg(w));
        if is_signed(ty) {
            let sign = self.temp();
            self.sign_word(sign, words[1]);
            words = words.each(|word| {
                let differs = self.temp();
                self.lop3(differs, word, sign, Operand::zero(), crate::ori::build::int::LUT_XOR);
                differs
            });
        }
        let [low, high, above, found, p] = [self.temp(), self.temp(), self.temp(), self.temp(), self.temp_pred()];
        self.unary(Op::FLO, &[U32], low, words[0]);
        self.unary(Op::FLO, &[U32], high, words[1]);
        let word = self.imm(32);
        self.add(above, high, word);
        self.isetp(p, &[NE, AND, U32], words[1], Operand::zero());
        self.select(found, above, low, p);
        let d = self.dest(&inst.operands[0])?;
        if !inst.mods.shift_amount {
            self.copy(d, found);
            return Ok(());
        }
        let [amount, none, last] = [self.temp(), self.temp_pred(), self.imm(63)];
        self.add(amount, found.negated(), last);
        self.isetp(none, &[LT, AND], found, Operand::zero());
        self.select(d, found, amount, none);
        Ok(())
    }

    /// `bmsk` and `szext`.
    pub fn mask_or_extend(&mut self, inst: &ast::Instruction, op: Op) -> Lowered {
        let ty = inst.types[0];
        let (a, b) = (self.source_reg(&inst.operands[1], ty)?, self.source(&inst.operands[2], ScalarType::U32)?);
        let mut mods = Vec::new();
        if inst.mods.shift_mode == Some(ShiftMode::Wrap) {
            mods.push(WRAP);
        }
        if op == Op::SGXT {
            mods.push(if is_signed(ty) { S32 } else { U32 });
        }
        let d = self.dest(&inst.operands[0])?;
        self.put(op, &mods, &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        Ok(())
    }

    /// `testp`: compares the magnitude bits, less `from`, with a bound.
    pub fn test_float(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let (infinity, least) = match ty {
            ScalarType::F32 => (0x7f80_0000u64, 0x0080_0000),
            ScalarType::F64 => (0x7ff0_0000_0000_0000, 0x0010_0000_0000_0000),
            _ => return Err(Refusal::NotBuilt),
        };
        let (from, cmp, bound) = match inst.mods.test.ok_or(Refusal::NotBuilt)? {
            Test::Finite => (0, LT, infinity),
            Test::Infinite => (0, EQ, infinity),
            Test::Number => (0, LE, infinity),
            Test::Notanumber => (0, GT, infinity),
            // PTX counts zero as normal.
            Test::Normal => (least, LT, infinity - least),
            Test::Subnormal => (1, LT, least - 1),
        };
        let magnitude = self.unsigned_bits(&inst.operands[1], ty)?;
        let mut bits = magnitude;
        if from != 0 {
            let amount = (from as i64).wrapping_neg() as u64;
            let (rest, amount) =
                ([self.temp(), self.temp()], [self.imm(amount as u32), self.imm((amount >> 32) as u32)]);
            if ty == ScalarType::F64 {
                self.add_long(rest, bits, amount, false)
            } else {
                self.add(rest[0], bits[0], amount[0])
            }
            bits = rest;
        }
        let p = self.dest(&inst.operands[0])?;
        if inst.mods.test != Some(Test::Normal) {
            self.compare_magnitude(p, cmp, bits, bound, ty);
            return Ok(());
        }
        let (zero, normal) = (self.temp_pred(), self.temp_pred());
        self.compare_magnitude(zero, EQ, magnitude, 0, ty);
        self.compare_magnitude(normal, cmp, bits, bound, ty);
        self.plop3(p, [zero, normal, Operand::always()], crate::ori::build::int::LUT_OR);
        Ok(())
    }

    /// The bits of a float without its sign; the second word is zero for f32.
    fn unsigned_bits(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<[Operand; 2]> {
        let (mask, cut) = (self.imm(0x7fff_ffff), self.temp());
        if ty == ScalarType::F32 {
            let a = self.source_reg(operand, ty)?;
            self.and(cut, a, mask);
            return Ok([cut, Operand::zero()]);
        }
        let [low, high] = self.source_words(operand, ty)?.each(|word| self.in_reg(word));
        self.and(cut, high, mask);
        Ok([low, cut])
    }

    /// Compares the bits of [`Self::unsigned_bits`] with a constant.
    fn compare_magnitude(&mut self, p: Operand, cmp: M, bits: [Operand; 2], bound: u64, ty: ScalarType) {
        let bound = [self.imm(bound as u32), self.imm((bound >> 32) as u32)];
        if ty == ScalarType::F64 {
            self.compare_words(p, cmp, U32, bits, bound);
        } else {
            self.isetp(p, &[cmp, AND, U32], bits[0], bound[0]);
        }
    }
}
