//! Bitwise operations, shifts, byte permutations, moves and selects: `and or xor not cnot lop3 shl
//! shr shf prmt mov selp slct copysign`.
//!
//! Emits LOP3, PLOP3, SHF, PRMT, SEL and copies. Truth tables are indexed by a = 0xf0, b = 0xcc, c
//! = 0xaa, in PTX and in SASS alike.

use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::build::int::LUT_OR;
use crate::ori::mods::*;
use crate::ori::{Kind, Operand};
use crate::ptx::ast::{self, Constant, OperandKind};
use crate::tables::ptx::{BoolOp, PrmtMode, ScalarType, ShiftDirection, ShiftMode};
use crate::tables::{Op, Role};

/// `~b`
const LUT_NOT_B: u8 = !0xcc;

impl Builder<'_> {
    /// `and`, `or`, `xor`
    pub fn logic(&mut self, inst: &ast::Instruction, lut: u8) -> Lowered {
        let ty = inst.types[0];
        let [d, a, b] = [&inst.operands[0], &inst.operands[1], &inst.operands[2]];
        if ty == ScalarType::Pred {
            let (d, a, b) = (self.dest(d)?, self.source(a, ty)?, self.source(b, ty)?);
            self.plop3(d, [a, b, Operand::always()], lut);
            return Ok(());
        }
        let values = self.word_sources(&[a, b], ty)?;
        let to = self.dest(d)?;
        for (d, pair) in self.dest_parts(to).into_iter().zip(values) {
            self.lop3(d, pair[0], pair[1], Operand::zero(), lut);
        }
        Ok(())
    }

    /// The words of the sources of an operation that treats each word alone.
    fn word_sources(&mut self, operands: &[&ast::Operand], ty: ScalarType) -> Lowered<Vec<Vec<Operand>>> {
        let count = if ty.bits() == 64 { 2 } else { 1 };
        let mut parts = vec![Vec::new(); count];
        for operand in operands {
            let words = self.source_words(operand, ty)?;
            parts.iter_mut().zip(words).for_each(|(part, word)| part.push(word));
        }
        Ok(parts)
    }

    /// The words of a destination: one or two.
    pub(in crate::lower) fn dest_parts(&mut self, d: Operand) -> Vec<Operand> {
        match d.kind() {
            Kind::Vector(vector) => self.f.vector_regs(vector).iter().map(|reg| Operand::reg(*reg)).collect(),
            _ => vec![d],
        }
    }

    /// `not`
    pub fn not(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let to = self.dest(&inst.operands[0])?;
        if ty == ScalarType::Pred {
            let a = self.source(&inst.operands[1], ty)?;
            self.copy_pred(to, a.inverted());
            return Ok(());
        }
        let values = self.word_sources(&[&inst.operands[1]], ty)?;
        for (d, a) in self.dest_parts(to).into_iter().zip(values) {
            self.lop3(d, Operand::zero(), a[0], Operand::zero(), LUT_NOT_B);
        }
        Ok(())
    }

    /// `cnot`: 1 for zero, 0 for anything else.
    pub fn cnot(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let to = self.dest(&inst.operands[0])?;
        let any = if ty.bits() == 64 {
            let [low, high] = self.source_words(&inst.operands[1], ty)?;
            let any = self.temp();
            self.lop3(any, low, high, Operand::zero(), LUT_OR);
            any
        } else {
            let low = self.source(&inst.operands[1], ty)?;
            if ty.bits() < 32 { self.extend(low, ScalarType::U16) } else { low }
        };
        let p = self.temp_pred();
        self.isetp(p, &[NE, AND, U32], any, Operand::zero());
        let one = self.imm(1);
        let parts = self.dest_parts(to);
        self.select(parts[0], Operand::zero(), one, p);
        parts.get(1).into_iter().for_each(|high| self.copy(*high, Operand::zero()));
        Ok(())
    }

    /// `lop3`
    pub fn lop3_ptx(&mut self, inst: &ast::Instruction) -> Lowered {
        let lut = self.constant_operand(&inst.operands[4])? as u8;
        let (d, p) = self.dest_and_pred(&inst.operands[0])?;
        let a = self.source_word(&inst.operands[1], ScalarType::B32)?;
        let b = self.source(&inst.operands[2], ScalarType::B32)?;
        let c = self.source_word(&inst.operands[3], ScalarType::B32)?;
        if p.is_null() {
            self.lop3(d, a, b, c, lut);
            return Ok(());
        }
        // The predicate result: whether the word is not zero, combined with another predicate.
        let with = if inst.mods.bool_op == Some(BoolOp::Or) { OR } else { AND };
        let other = self.source(&inst.operands[5], ScalarType::Pred)?;
        let result = self.temp();
        self.lop3(result, a, b, c, lut);
        if d != Operand::zero() {
            self.copy(d, result);
        }
        let args = [(Role::Pu, p), (Role::A, result), (Role::B, Operand::zero()), (Role::Pp, other)];
        self.put(Op::ISETP, &[NE, with, U32], &args);
        Ok(())
    }

    /// The value of an operand that must be an integer constant.
    pub fn constant_operand(&self, operand: &ast::Operand) -> Lowered<u64> {
        match operand.kind {
            OperandKind::Constant(Constant::Int { bits, .. }) => Ok(bits),
            _ => Err(Refusal::At(operand.pos, "A constant is expected here".to_string())),
        }
    }

    /// `shl` and `shr`: an amount beyond the width shifts all bits out.
    pub fn shift(&mut self, inst: &ast::Instruction, left: bool) -> Lowered {
        let ty = inst.types[0];
        let signed = crate::lower::operand::is_signed(ty);
        let d = self.dest(&inst.operands[0])?;
        let amount = self.source(&inst.operands[2], ScalarType::U32)?;
        if ty.bits() == 64 {
            let a = self.source_pair(&inst.operands[1], ty)?;
            self.shift_long(d, a, amount, left, signed);
            return Ok(());
        }
        // 16 bits: a right shift needs the operand extended; the amount stays below 2^32.
        let a = if left { self.source(&inst.operands[1], ty)? } else { self.extended(&inst.operands[1], ty)? };
        let zero = Operand::zero();
        match (left, signed) {
            (true, _) => self.shf(&SHF_L, d, a, amount, zero),
            (false, false) => self.shf(&SHF_R_U32_HI, d, zero, amount, a),
            (false, true) => self.shf(&SHF_R_S32_HI, d, zero, amount, a),
        }
        Ok(())
    }

    /// `shf`
    pub fn funnel_shift(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = ScalarType::B32;
        let d = self.dest(&inst.operands[0])?;
        let (low, high) = (self.source_word(&inst.operands[1], ty)?, self.source_word(&inst.operands[2], ty)?);
        let amount = self.source(&inst.operands[3], ty)?;
        let wrap = inst.mods.shift_mode == Some(ShiftMode::Wrap);
        let mods: &[M] = match (inst.mods.shift_direction, wrap) {
            (Some(ShiftDirection::L), false) => &SHF_L_U32_HI,
            (Some(ShiftDirection::L), true) => &SHF_L_W_U32_HI,
            (_, false) => &SHF_R_U32,
            (_, true) => &SHF_R_W_U32,
        };
        self.shf(mods, d, low, amount, high);
        Ok(())
    }

    /// `prmt`
    pub fn prmt(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = ScalarType::B32;
        let d = self.dest(&inst.operands[0])?;
        let (a, c) = (self.source_word(&inst.operands[1], ty)?, self.source_word(&inst.operands[2], ty)?);
        let selector = self.source(&inst.operands[3], ty)?;
        let mode: &[M] = match inst.mods.prmt_mode {
            None => &[],
            Some(PrmtMode::F4e) => &[PRMT_F4E],
            Some(PrmtMode::B4e) => &[PRMT_B4E],
            Some(PrmtMode::Rc8) => &[PRMT_RC8],
            Some(PrmtMode::Ecl) => &[PRMT_ECL],
            Some(PrmtMode::Ecr) => &[PRMT_ECR],
            Some(PrmtMode::Rc16) => &[PRMT_RC16],
        };
        self.put(Op::PRMT, mode, &[(Role::D, d), (Role::A, a), (Role::B, selector), (Role::C, c)]);
        Ok(())
    }

    /// `selp`
    pub fn selp(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let values = self.word_sources(&[&inst.operands[1], &inst.operands[2]], ty)?;
        let p = self.source(&inst.operands[3], ScalarType::Pred)?;
        let to = self.dest(&inst.operands[0])?;
        for (d, pair) in self.dest_parts(to).into_iter().zip(values) {
            self.select(d, pair[0], pair[1], p);
        }
        Ok(())
    }

    /// `slct`: `a` if the third operand is not negative, else `b`.
    pub fn slct(&mut self, inst: &ast::Instruction) -> Lowered {
        let (ty, by) = (inst.types[0], inst.types[1]);
        let c = self.source_word(&inst.operands[3], by)?;
        let p = self.temp_pred();
        if by == ScalarType::F32 {
            let mods: &[M] = if inst.mods.ftz { &[FGE, AND, FTZ] } else { &[FGE, AND] };
            self.put(Op::FSETP, mods, &[(Role::Pu, p), (Role::A, c), (Role::B, Operand::zero())]);
        } else {
            self.isetp(p, &[GE, AND], c, Operand::zero());
        }
        let values = self.word_sources(&[&inst.operands[1], &inst.operands[2]], ty)?;
        let to = self.dest(&inst.operands[0])?;
        for (d, pair) in self.dest_parts(to).into_iter().zip(values) {
            self.select(d, pair[0], pair[1], p);
        }
        Ok(())
    }

    /// `copysign`: the sign of the first on the magnitude of the second.
    pub fn copysign(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let signs = self.source_words(&inst.operands[1], ty)?;
        let values = self.source_words(&inst.operands[2], ty)?;
        let to = self.dest(&inst.operands[0])?;
        let parts = self.dest_parts(to);
        let top = parts.len() - 1;
        let (sign, value) = (self.in_reg(signs[top]), self.in_reg(values[top]));
        let mask = self.imm(1 << 31);
        // mask ? sign : value
        self.lop3(parts[top], sign, mask, value, (0xf0 & 0xcc) | (0xaa & !0xcc));
        if top == 1 {
            self.copy(parts[0], values[0]);
        }
        Ok(())
    }

    /// `mov` of one value, or between a vector of parts and the scalar that they form.
    pub fn mov(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        match (&inst.operands[0].kind, &inst.operands[1].kind) {
            (OperandKind::Vector(to), OperandKind::Vector(from)) if to.len() == from.len() => {
                self.move_elements(to, from, ty)
            }
            (OperandKind::Vector(parts), _) => self.unpack(parts, &inst.operands[1], ty),
            (_, OperandKind::Vector(parts)) => self.pack_parts(&inst.operands[0], parts, ty),
            (_, OperandKind::Symbol { symbol, .. }) if self.role_of_reference(*symbol).is_some() => {
                self.handle_of_reference(inst, *symbol)
            }
            _ if ty == ScalarType::Pred => {
                let (d, a) = (self.dest(&inst.operands[0])?, self.source(&inst.operands[1], ty)?);
                self.copy_pred(d, a);
                Ok(())
            }
            _ => {
                let (d, a) = (self.dest(&inst.operands[0])?, self.source(&inst.operands[1], ty)?);
                if ty.bits() == 128 {
                    let words = self.dest_parts(a);
                    self.dest_parts(d).into_iter().zip(words).for_each(|(d, a)| self.copy(d, a));
                } else {
                    self.copy_value(d, a);
                }
                Ok(())
            }
        }
    }

    /// Moves element by element; all elements are read before one is written.
    fn move_elements(&mut self, to: &[ast::Operand], from: &[ast::Operand], ty: ScalarType) -> Lowered {
        let mut values = Vec::new();
        for element in from {
            let value = self.source(element, ty)?;
            let kept = if ty.bits() == 64 { self.temp_pair() } else { self.temp() };
            self.copy_value(kept, value);
            values.push(kept);
        }
        for (element, value) in to.iter().zip(values) {
            let d = self.dest(element)?;
            if d != Operand::zero() {
                self.copy_value(d, value);
            }
        }
        Ok(())
    }

    fn unpack(&mut self, parts: &[ast::Operand], from: &ast::Operand, ty: ScalarType) -> Lowered {
        let bits = ty.bits() as usize / parts.len();
        let whole = self.source(from, ty)?;
        let words =
            if matches!(whole.kind(), Kind::Vector(_)) { self.dest_parts(whole) } else { self.words(whole).to_vec() };
        if words.len() * 32 < ty.bits() as usize && ty.bits() > 32 {
            return Err(Refusal::NotBuilt);
        }
        let mut values = Vec::new();
        for i in 0..parts.len() {
            let (word, byte) = (words[i * bits / 32], i * bits % 32 / 8);
            if byte == 0 || bits >= 32 {
                values.push(word);
            } else {
                let part = self.temp();
                let shift = self.imm(8 * byte as u32);
                self.shf(&SHF_R_U32_HI, part, Operand::zero(), shift, word);
                values.push(part);
            }
        }
        for (i, (part, value)) in parts.iter().zip(values).enumerate() {
            let d = self.dest(part)?;
            match d.kind() {
                Kind::Vector(_) if bits == 64 => self.copy_words(d, [words[2 * i], words[2 * i + 1]]),
                Kind::Reg(_) => self.copy(d, value),
                Kind::Zero => {}
                _ => return Err(Refusal::NotBuilt),
            }
        }
        Ok(())
    }

    fn pack_parts(&mut self, to: &ast::Operand, parts: &[ast::Operand], ty: ScalarType) -> Lowered {
        let bits = ty.bits() / parts.len() as u32;
        if bits == 64 {
            let d = self.dest(to)?;
            let mut words = Vec::new();
            for part in parts {
                words.extend(self.source_words(part, ScalarType::B64)?);
            }
            self.dest_parts(d).into_iter().zip(words).for_each(|(d, a)| self.copy(d, a));
            return Ok(());
        }
        let part_type = match bits {
            8 => ScalarType::B8,
            16 => ScalarType::B16,
            32 => ScalarType::B32,
            _ => return Err(Refusal::NotBuilt),
        };
        let mut words = Vec::new();
        for group in parts.chunks((32 / bits) as usize) {
            let mut values = Vec::new();
            for part in group {
                values.push(self.source(part, part_type)?);
            }
            words.push(if bits == 32 { values[0] } else { self.pack(&values, bits) });
        }
        let d = self.dest(to)?;
        for (d, a) in self.dest_parts(d).into_iter().zip(words) {
            self.copy(d, a);
        }
        Ok(())
    }
}
