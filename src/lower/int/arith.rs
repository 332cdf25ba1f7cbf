//! Integer arithmetic of 16, 32 and 64 bits, with and without carry: `add sub mul mad` and their
//! variants.
//!
//! Emits IADD3, IMAD, IMAD.WIDE, IMAD.HI and bit-field opcodes. A 64-bit sum is an IADD3 of the low
//! words whose carry the IADD3 of the high words reads. 16-bit operations are computed in 32 bits;
//! only the low half of the result is defined.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::operand::is_signed;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{MulMode, ScalarType};
use crate::tables::{Feature, Op, Role};

impl Builder<'_> {
    /// `add` of two packed 16-bit lanes.
    pub fn packed_sum(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let (a, b) = (self.source_reg(&inst.operands[1], ty)?, self.source_reg(&inst.operands[2], ty)?);
        let d = self.dest(&inst.operands[0])?;
        if self.has(Feature::Viadd) {
            self.put(Op::VIADD, &[X16X2], &[(Role::D, d), (Role::A, a), (Role::B, b)]);
            return Ok(());
        }
        let sums = [0, 1].each(|half| {
            let [x, y] = [a, b].each(|word| self.half_of(word, half, false));
            let sum = self.temp();
            self.add(sum, x, y);
            sum
        });
        self.join_halves(d, sums[0], sums[1]);
        Ok(())
    }

    /// `dp4a` and `dp2a`
    pub fn dot_product(&mut self, inst: &ast::Instruction) -> Lowered {
        let [a, b] = [0, 1].each(|i| is_signed(inst.types[i]));
        let kind = match inst.mods.mul_mode {
            Some(MulMode::Lo) => Some(DOT_2A_LO),
            Some(_) => Some(DOT_2A_HI),
            None => None,
        };
        let mods: Vec<M> = kind.into_iter().chain([dot_sign_a(a), dot_sign_b(b)]).collect();
        let mut sources = Vec::new();
        for operand in &inst.operands[1..4] {
            sources.push(self.source_word(operand, ScalarType::B32)?);
        }
        let d = self.dest(&inst.operands[0])?;
        let args = [(Role::D, d), (Role::A, sources[0]), (Role::B, sources[1]), (Role::C, sources[2])];
        self.put(Op::IDP, &mods, &args);
        Ok(())
    }

    /// `mad.hi.sat.s32`: the high word of the product plus c, saturated.
    fn saturated_mad(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if inst.mods.mul_mode != Some(MulMode::Hi) || ty != ScalarType::S32 {
            return Err(Refusal::NotBuilt);
        }
        let [a, b] = self.factors(inst)?;
        let (c, high) = (self.source_word(&inst.operands[3], ty)?, self.temp());
        self.imad_high(high, S32, a, b);
        let d = self.dest(&inst.operands[0])?;
        self.add_saturated(d, high, c, false);
        Ok(())
    }

    /// `add` and `sub`
    pub fn add_sub(&mut self, inst: &ast::Instruction, subtract: bool) -> Lowered {
        let ty = inst.types[0];
        if inst.mods.saturate {
            return self.saturated_sum(inst, subtract);
        }
        if inst.mods.carry_out {
            return self.add_sub_carry(inst, subtract, false);
        }
        let [a, b] = [&inst.operands[1], &inst.operands[2]];
        if ty.bits() == 64 {
            let (a, b) = (self.source_words(a, ty)?, self.source_words(b, ty)?);
            let d = self.dest_words(&inst.operands[0])?;
            self.add_long(d, a, b, subtract);
        } else {
            let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
            let b = if subtract { self.negative(b) } else { b };
            let d = self.dest(&inst.operands[0])?;
            self.add(d, a, b);
        }
        Ok(())
    }

    /// `add.cc`, `addc`, `sub.cc`, `subc`: with carry out, carry in, or both, on 32 or 64 bits.
    pub fn add_sub_carry(&mut self, inst: &ast::Instruction, subtract: bool, carry_in: bool) -> Lowered {
        let ty = inst.types[0];
        let a = self.source_words(&inst.operands[1], ty)?;
        let b = self.source_words(&inst.operands[2], ty)?;
        let d = self.dest(&inst.operands[0])?;
        let d = self.words(d);
        let words = if ty.bits() == 64 { 2 } else { 1 };
        self.carry_chain(inst, &d[..words], [a, b], subtract, carry_in);
        Ok(())
    }

    /// Adds or subtracts word by word through the carry flag.
    fn carry_chain(
        &mut self,
        inst: &ast::Instruction,
        d: &[Operand],
        [a, b]: [[Operand; 2]; 2],
        subtract: bool,
        carry_in: bool,
    ) {
        let mut carry = if carry_in { self.carry_register() } else { Operand::NULL };
        for i in 0..d.len() {
            let out = match i + 1 == d.len() {
                true if !inst.mods.carry_out => Operand::NULL,
                _ => self.temp_pred(),
            };
            if carry.is_null() {
                self.add_carry_out(d[i], a[i], b[i], subtract, out);
            } else {
                self.add_carry_in(d[i], a[i], b[i], subtract, carry, out);
            }
            carry = out;
        }
        if inst.mods.carry_out {
            self.set_carry(carry);
        }
    }

    /// The carry flag. It is the carry of the adder; after a subtraction it is that of `a + ~b +
    /// 1`, and `subc` adds `~b` and the flag. ptxas does the same, and code that reads with `addc`
    /// what `sub.cc` wrote relies on it.
    fn carry_register(&mut self) -> Operand {
        if let Some(reg) = self.carry {
            return Operand::reg(reg);
        }
        let flag = self.temp_pred();
        self.carry = flag.as_reg();
        flag
    }

    /// Writes the carry flag; under a false guard it keeps its value.
    fn set_carry(&mut self, carry: Operand) {
        let flag = self.carry_register();
        if self.guard.is_null() {
            self.copy_pred(flag, carry);
            return;
        }
        let guard = self.guard;
        let inst = self.plop3(flag, [carry, Operand::always(), Operand::always()], crate::ori::build::int::LUT_AND);
        self.f[inst].guard = guard;
    }

    /// `mul` and `mad`
    pub fn mul_mad(&mut self, inst: &ast::Instruction) -> Lowered {
        if inst.mods.saturate {
            return self.saturated_mad(inst);
        }
        match (inst.types[0].bits(), inst.mods.mul_mode.unwrap_or(MulMode::Lo)) {
            (64, MulMode::Lo) => self.mul_long(inst, false),
            (64, MulMode::Hi) => self.mul_long(inst, true),
            (32, MulMode::Wide) => self.mul_wide(inst),
            (16, mode) => self.mul_short(inst, mode),
            (_, MulMode::Lo) => self.mul_low(inst),
            (_, MulMode::Hi) => self.mul_high(inst),
            _ => Err(Refusal::NotBuilt),
        }
    }

    fn factors(&mut self, inst: &ast::Instruction) -> Lowered<[Operand; 2]> {
        self.sources(&inst.operands[1], &inst.operands[2], inst.types[0])
    }

    /// The addend of a `mad`, RZ for a `mul`.
    fn addend(&mut self, inst: &ast::Instruction, ty: ScalarType) -> Lowered<Operand> {
        inst.operands.get(3).map_or(Ok(Operand::zero()), |c| self.source(c, ty))
    }

    fn mul_low(&mut self, inst: &ast::Instruction) -> Lowered {
        let [a, b] = self.factors(inst)?;
        let c = self.addend(inst, inst.types[0])?;
        let d = self.dest(&inst.operands[0])?;
        self.mul_add(inst, d, c, |s, d, c| s.imad(d, a, b, c))
    }

    fn mul_high(&mut self, inst: &ast::Instruction) -> Lowered {
        let [a, b] = self.factors(inst)?;
        let c = self.addend(inst, inst.types[0])?;
        let sign = if is_signed(inst.types[0]) { S32 } else { U32 };
        let d = self.dest(&inst.operands[0])?;
        self.mul_add(inst, d, c, |s, d, c| {
            if c == Operand::zero() {
                return s.imad_high(d, sign, a, b);
            }
            let high = s.temp();
            s.imad_high(high, sign, a, b);
            s.add(d, high, c);
        })
    }

    /// A product plus `c`: one multiply-add, or a product and a separate addition if the carry flag
    /// is read or written.
    fn mul_add(
        &mut self,
        inst: &ast::Instruction,
        d: Operand,
        c: Operand,
        step: impl Fn(&mut Self, Operand, Operand),
    ) -> Lowered {
        let carry_in = inst.op == crate::tables::ptx::Op::Madc;
        if !carry_in && !inst.mods.carry_out {
            step(self, d, c);
            return Ok(());
        }
        let product = self.temp();
        step(self, product, Operand::zero());
        let out = if inst.mods.carry_out { self.temp_pred() } else { Operand::NULL };
        if carry_in {
            let carry = self.carry_register();
            self.add_carry_in(d, product, c, false, carry, out);
        } else {
            self.add_carry_out(d, product, c, false, out);
        }
        if inst.mods.carry_out {
            self.set_carry(out);
        }
        Ok(())
    }

    fn mul_wide(&mut self, inst: &ast::Instruction) -> Lowered {
        let [a, b] = self.factors(inst)?;
        let c = self.addend(inst, ScalarType::U64)?;
        let c = self.in_pair(c);
        let sign = if is_signed(inst.types[0]) { S32 } else { U32 };
        let d = self.dest(&inst.operands[0])?;
        self.imad_wide(d, sign, a, b, c);
        Ok(())
    }

    fn mul_short(&mut self, inst: &ast::Instruction, mode: MulMode) -> Lowered {
        let ty = inst.types[0];
        let d = self.dest(&inst.operands[0])?;
        if mode == MulMode::Lo {
            return self.mul_low(inst);
        }
        let (a, b) = (self.extended(&inst.operands[1], ty)?, self.extended(&inst.operands[2], ty)?);
        let c = self.addend(inst, if mode == MulMode::Wide { ScalarType::U32 } else { ty })?;
        if mode == MulMode::Wide {
            self.imad(d, a, b, c);
            return Ok(());
        }
        let (product, high, half) = (self.temp(), self.temp(), self.imm(16));
        self.imad(product, a, b, Operand::zero());
        self.shf(&SHF_R_U32_HI, high, Operand::zero(), half, product);
        self.add(d, high, c);
        Ok(())
    }

    fn mul_long(&mut self, inst: &ast::Instruction, high: bool) -> Lowered {
        let ty = inst.types[0];
        let a = self.source_words(&inst.operands[1], ty)?;
        let b = self.source_words(&inst.operands[2], ty)?;
        let c = self.addend(inst, ty)?;
        let carry_in = inst.op == crate::tables::ptx::Op::Madc;
        let product = if high { self.product_high(a, b, is_signed(ty)) } else { self.product_low(a, b) };
        let words = self.words(product);
        let d = self.dest_words(&inst.operands[0])?;
        if carry_in || inst.mods.carry_out {
            let c = self.words(c);
            self.carry_chain(inst, &d, [words, c], false, carry_in);
        } else if c == Operand::zero() {
            d.into_iter().zip(words).for_each(|(d, word)| self.copy(d, word));
        } else {
            let c = self.words(c);
            self.add_long(d, words, c, false);
        }
        Ok(())
    }
}
