//! Integer operations with one operand, and 32-bit bit fields: `abs neg popc clz bfind brev bfe
//! bfi`.
//!
//! Emits IABS, POPC, FLO, BREV, BMSK, SGXT and LOP3.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered};
use crate::lower::operand::is_signed;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::ScalarType;
use crate::tables::{Op, Role};

impl Builder<'_> {
    /// `neg` of integers.
    pub fn negate(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if ty.bits() == 64 {
            let a = self.source_words(&inst.operands[1], ty)?;
            let d = self.dest_words(&inst.operands[0])?;
            self.add_long(d, [Operand::zero(); 2], a, true);
        } else {
            let a = self.source_word(&inst.operands[1], ty)?;
            let d = self.dest(&inst.operands[0])?;
            let a = self.negative(a);
            self.add(d, a, Operand::zero());
        }
        Ok(())
    }

    /// `abs` of integers.
    pub fn absolute(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if ty.bits() < 64 {
            let a = self.extended(&inst.operands[1], ty)?;
            let d = self.dest(&inst.operands[0])?;
            self.unary(Op::IABS, &[], d, a);
            return Ok(());
        }
        let a = self.source_words(&inst.operands[1], ty)?;
        let a = a.each(|word| self.in_reg(word));
        let (negative, p) = (self.temp_pair(), self.temp_pred());
        let n = self.words(negative);
        self.add_long(n, [Operand::zero(); 2], a, true);
        self.isetp(p, &[LT, AND], a[1], Operand::zero());
        let d = self.dest_words(&inst.operands[0])?;
        (0..2).for_each(|i| self.select(d[i], n[i], a[i], p));
        Ok(())
    }

    /// `popc`
    pub fn population(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let d = self.dest(&inst.operands[0])?;
        let words = self.source_words(&inst.operands[1], ty)?.each(|w| self.in_reg(w));
        if ty.bits() == 32 {
            self.unary(Op::POPC, &[], d, words[0]);
            return Ok(());
        }
        let counts = words.each(|word| {
            let count = self.temp();
            self.unary(Op::POPC, &[], count, word);
            count
        });
        self.add(d, counts[0], counts[1]);
        Ok(())
    }

    /// `clz`: FLO gives the position of the highest set bit, or -1.
    pub fn leading_zeros(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let d = self.dest(&inst.operands[0])?;
        let words = self.source_words(&inst.operands[1], ty)?.each(|w| self.in_reg(w));
        if ty.bits() == 32 {
            let top = self.temp();
            self.unary(Op::FLO, &[U32], top, words[0]);
            let last = self.imm(31);
            self.add(d, top.negated(), last);
            return Ok(());
        }
        let (top, distance) = self.highest_of_long(words, U32);
        self.add(d, top.negated(), distance);
        Ok(())
    }

    /// The position of the highest set bit within the word that contains it, and 31 or 63 to
    /// compute the distance from the top.
    fn highest_of_long(&mut self, words: [Operand; 2], sign: M) -> (Operand, Operand) {
        let positions = words.each(|word| {
            let position = self.temp();
            self.unary(Op::FLO, &[sign], position, word);
            position
        });
        let p = self.temp_pred();
        self.isetp(p, &[NE, AND, U32], words[1], Operand::zero());
        let (top, distance) = (self.temp(), self.temp());
        self.select(top, positions[1], positions[0], p);
        let (near, far) = (self.imm(31), self.imm(63));
        self.select(distance, near, far, p);
        (top, distance)
    }

    /// `bfind`
    pub fn find_bit(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if ty.bits() != 32 {
            return self.find_long(inst);
        }
        let a = self.source_word(&inst.operands[1], ty)?;
        let d = self.dest(&inst.operands[0])?;
        let sign = if is_signed(ty) { S32 } else { U32 };
        let mods: &[M] = if inst.mods.shift_amount { &[sign, FLO_SH] } else { &[sign] };
        self.unary(Op::FLO, mods, d, a);
        Ok(())
    }

    /// `brev`
    pub fn reverse(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let words = self.source_words(&inst.operands[1], ty)?.each(|w| self.in_reg(w));
        let d = self.dest(&inst.operands[0])?;
        if ty.bits() == 32 {
            self.unary(Op::BREV, &[], d, words[0]);
            return Ok(());
        }
        let reversed = [words[1], words[0]].each(|word| {
            let reversed = self.temp();
            self.unary(Op::BREV, &[], reversed, word);
            reversed
        });
        self.copy_words(d, reversed);
        Ok(())
    }

    /// The low byte of a bit position or length.
    pub fn byte(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        let value = self.source(operand, ScalarType::U32)?;
        Ok(self.extend(value, ScalarType::U8))
    }

    /// `bfe`: shifts the field down by the position, then extends it from its length; bits above
    /// the operand are copies of its sign.
    pub fn extract_field(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if ty.bits() != 32 {
            return self.extract_long(inst);
        }
        let a = self.source_reg(&inst.operands[1], ty)?;
        let (position, length) = (self.byte(&inst.operands[2])?, self.byte(&inst.operands[3])?);
        let d = self.dest(&inst.operands[0])?;
        let shifted = self.temp();
        let (shift, sign): (&[M], M) = if is_signed(ty) { (&SHF_R_S32_HI, S32) } else { (&SHF_R_U32_HI, U32) };
        self.shf(shift, shifted, Operand::zero(), position, a);
        self.put(Op::SGXT, &[sign], &[(Role::D, d), (Role::A, shifted), (Role::B, length)]);
        Ok(())
    }

    /// `bfi`: inserts the field, shifted up, under a mask of its length.
    pub fn insert_field(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if ty.bits() != 32 {
            return self.insert_long(inst);
        }
        let (a, into) = (self.source_reg(&inst.operands[1], ty)?, self.source_reg(&inst.operands[2], ty)?);
        let (position, length) = (self.byte(&inst.operands[3])?, self.byte(&inst.operands[4])?);
        let (shifted, mask) = (self.temp(), self.temp());
        self.shf(&SHF_L, shifted, a, position, Operand::zero());
        self.put(Op::BMSK, &[], &[(Role::D, mask), (Role::A, position), (Role::B, length)]);
        let d = self.dest(&inst.operands[0])?;
        // mask ? shifted : into
        self.lop3(d, shifted, mask, into, (0xf0 & 0xcc) | (0xaa & !0xcc));
        Ok(())
    }
}
