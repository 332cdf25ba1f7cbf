//! Bit fields of 64 bits, masks, and tests of bit patterns.
//!
//! Input: `bfe bfi bfind` of 64 bits, `bmsk szext testp isspacep`. Output: shifts that clamp at 64, LOP3 under masks, comparisons.

use super::builder::{Builder, Lowered, Refusal};
use super::mods::*;
use super::operand::is_signed;
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{ScalarType, ShiftMode, Test};
use crate::tables::{Op, Role};

impl Builder<'_> {
    /// `bfe` of 64 bits: down to the bottom, up until its last bit is the sign, and down again.
    pub fn extract_long(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let a = self.source_pair(&inst.operands[1], ty)?;
        let (position, length) = (self.byte(&inst.operands[2])?, self.byte(&inst.operands[3])?);
        let spare = self.spare_bits(length);
        let [down, up, field] = [(); 3].map(|()| self.temp_pair());
        self.shift_long(down, a, position, false, is_signed(ty));
        self.shift_long(up, down, spare, true, false);
        self.shift_long(field, up, spare, false, is_signed(ty));
        let d = self.dest(&inst.operands[0])?;
        self.copy_value(d, field);
        Ok(())
    }

    /// 64 - length, at least 0.
    fn spare_bits(&mut self, length: Operand) -> Operand {
        let [rest, spare, p] = [self.temp(), self.temp(), self.temp_pred()];
        let (all, length) = (self.imm(64), self.in_reg(length));
        self.add(rest, length.negated(), all);
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
        let [above, field, shifted, mask] = [(); 4].map(|()| self.temp_pair());
        self.shift_long(above, ones, length, true, false);
        let (above_words, field_words) = (self.words(above), self.words(field));
        (0..2).for_each(|i| self.lop3(field_words[i], Operand::zero(), above_words[i], Operand::zero(), !0xcc));
        self.shift_long(mask, field, position, true, false);
        self.shift_long(shifted, a, position, true, false);
        let (mask, shifted) = (self.words(mask), self.words(shifted));
        let d = self.dest_words(&inst.operands[0])?;
        for i in 0..2 {
            let into = self.in_reg(into[i]);
            self.lop3(d[i], shifted[i], mask[i], into, (0xf0 & 0xcc) | (0xaa & !0xcc));
        }
        Ok(())
    }

    /// `bfind` of 64 bits: the highest bit that differs from the sign.
    pub fn find_long(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let mut words = self.source_words(&inst.operands[1], ty)?.map(|w| self.in_reg(w));
        if is_signed(ty) {
            let sign = self.temp();
            self.sign_word(sign, words[1]);
            words = words.map(|word| {
                let differs = self.temp();
                self.lop3(differs, word, sign, Operand::zero(), super::logic::LUT_XOR);
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

    /// `testp` of f32: a comparison of the bits without the sign, after taking `from` away.
    pub fn test_float(&mut self, inst: &ast::Instruction) -> Lowered {
        if inst.types[0] != ScalarType::F32 {
            return Err(Refusal::NotBuilt);
        }
        const INFINITY: u32 = 0x7f80_0000;
        const LEAST_NORMAL: u32 = 0x0080_0000;
        let (from, cmp, bound) = match inst.mods.test.ok_or(Refusal::NotBuilt)? {
            Test::Finite => (0, LT, INFINITY),
            Test::Infinite => (0, EQ, INFINITY),
            Test::Number => (0, LE, INFINITY),
            Test::Notanumber => (0, GT, INFINITY),
            // Zero counts as normal.
            Test::Normal => (LEAST_NORMAL, LT, INFINITY - LEAST_NORMAL),
            Test::Subnormal => (1, LT, LEAST_NORMAL - 1),
        };
        let (a, mut bits, mask) =
            (self.source_reg(&inst.operands[1], ScalarType::F32)?, self.temp(), self.imm(0x7fff_ffff));
        self.and(bits, a, mask);
        if from != 0 {
            let (rest, amount) = (self.temp(), self.imm(from.wrapping_neg()));
            self.add(rest, bits, amount);
            bits = rest;
        }
        let (p, bound) = (self.dest(&inst.operands[0])?, self.imm(bound));
        if inst.mods.test != Some(Test::Normal) {
            self.isetp(p, &[cmp, AND, U32], bits, bound);
            return Ok(());
        }
        let (zero, magnitude) = (self.temp_pred(), self.temp());
        self.and(magnitude, a, mask);
        self.isetp(zero, &[EQ, AND, U32], magnitude, Operand::zero());
        let args = [(Role::Pu, p), (Role::A, bits), (Role::B, bound), (Role::Pp, zero)];
        self.put(Op::ISETP, &[cmp, OR, U32], &args);
        Ok(())
    }
}
