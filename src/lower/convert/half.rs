//! `cvt` to and from f16, bf16, their packed types, formats of 8 bits and fewer, and tf32.
//!
//! Uses F2FP where the target has it, otherwise F2F, I2F and HADD2.F32. A source of 16 bits is
//! first widened to f32, which is exact, so every conversion rounds once.

use super::scalar::{rounding, rounds_to_integer, widened};
use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::memory::load_store::elements;
use crate::lower::operand::{Class, class_of};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ori::operand::Kind;
use crate::ptx::ast;
use crate::tables::lowering::{Narrow, narrow};
use crate::tables::ptx::{Modifiers, Rounding, ScalarType};
use crate::tables::{Feature, Op, Role};
use smallvec::SmallVec;

/// Modifiers of a conversion instruction.
type PackMods = SmallVec<[M; 6]>;

/// Number of mantissa bits of f32 that tf32 lacks.
const TF32_DROPPED: u32 = 13;
const INFINITE: u32 = 0x7f80_0000;
/// The greatest finite f16, 65504, as f32.
const MOST_F16: u32 = 0x477f_e000;

fn is_float(ty: ScalarType) -> bool {
    class_of(ty) == Class::Float
}

impl Builder<'_> {
    /// Widens an f16 or bf16 to f32. A subnormal f16 is a normal f32; a subnormal bf16 is flushed
    /// if `ftz`.
    pub(crate) fn widened_half(&mut self, a: Operand, from: ScalarType, ftz: bool) -> Operand {
        let d = self.temp();
        if from == ScalarType::F16 {
            let zero = Operand::zero().negated();
            self.put(Op::HADD2_F32, &[LOW_B], &[(Role::D, d), (Role::A, zero), (Role::B, a)]);
            return d;
        }
        let places = self.imm(16);
        self.shf(&SHF_L, d, a, places, Operand::zero());
        if ftz { self.flushed(d) } else { d }
    }

    /// Flushes a subnormal f32 to the zero of its sign.
    fn flushed(&mut self, a: Operand) -> Operand {
        let d = self.temp();
        self.put(Op::FADD, &[FTZ], &[(Role::D, d), (Role::A, a), (Role::B, Operand::zero().negated())]);
        d
    }

    /// `cvt` to one f16 or bf16.
    pub(crate) fn convert_to_half(&mut self, inst: &ast::Instruction, to: ScalarType, from: ScalarType) -> Lowered {
        let d = self.dest(&inst.operands[0])?;
        let d = if matches!(d.kind(), Kind::Vector(_)) {
            let [low, high] = self.words(d);
            self.copy(high, Operand::zero());
            low
        } else {
            d
        };
        let result = if inst.mods.saturate { self.temp() } else { d };
        if !is_float(from) {
            self.int_to_half(inst, result, to, from)?;
        } else if from == to && !rounds_to_integer(&inst.mods) {
            // Adds negative zero, which turns NaN into the canonical NaN.
            let (a, zero) = (self.source_reg(&inst.operands[1], from)?, Operand::zero());
            if to == ScalarType::F16 {
                self.put(Op::HADD2, &[], &[(Role::D, result), (Role::A, a), (Role::B, zero.negated())]);
            } else {
                self.hfma2(result, zero.negated(), zero, a, &[BF16_V2]);
            }
        } else {
            let (mut a, from) = self.float_source(inst, from)?;
            if rounds_to_integer(&inst.mods) {
                let whole = self.temp();
                self.round_to_integer(whole, a, from, &inst.mods)?;
                a = whole;
                self.narrow(result, a, to, from, &Modifiers::default())?;
            } else {
                self.narrow(result, a, to, from, &inst.mods)?;
            }
        }
        if inst.mods.saturate {
            if to != ScalarType::F16 {
                return Err(Refusal::NotBuilt);
            }
            self.saturate_f16(d, result);
        }
        Ok(())
    }

    fn int_to_half(&mut self, inst: &ast::Instruction, d: Operand, to: ScalarType, from: ScalarType) -> Lowered {
        let wide = from.bits() == 64;
        let a = if wide {
            self.source_pair(&inst.operands[1], from)?
        } else {
            let value = self.extended(&inst.operands[1], from)?;
            self.in_reg(value)
        };
        let from = if wide { from } else { widened(from) };
        let mut mods: PackMods = SmallVec::from_slice(&[float_dst(to), i2f_src(from)]);
        mods.extend(rounding(&inst.mods)?);
        self.put(if wide { Op::I2F_X } else { Op::I2F }, &mods, &[(Role::D, d), (Role::A, a)]);
        Ok(())
    }

    /// Rounds an f32 or f64 to f16 or bf16.
    pub(crate) fn narrow(
        &mut self,
        d: Operand,
        a: Operand,
        to: ScalarType,
        from: ScalarType,
        of: &Modifiers,
    ) -> Lowered {
        let nearest = matches!(of.rounding, None | Some(Rounding::Rn));
        let flush = of.ftz && to == ScalarType::Bf16;
        let packs = from == ScalarType::F32 && (nearest || of.rounding == Some(Rounding::Rz)) && !flush;
        if packs && self.has(Feature::HalfPacking) {
            let mods = pack_mods(to, of)?;
            self.put(Op::F2FP, &mods, &[(Role::D, d), (Role::A, Operand::zero()), (Role::B, a)]);
            return Ok(());
        }
        let clamps = of.saturate_finite && from == ScalarType::F32 && to == ScalarType::F16;
        if of.relu || of.saturate_finite && !clamps {
            return Err(Refusal::NotBuilt);
        }
        let mut a = if clamps { self.within_f16(a) } else { a };
        if of.ftz && !flush && !nearest && of.rounding != Some(Rounding::Rz) && from == ScalarType::F32 {
            // Flush first: a value below the range of f16 could otherwise round up to its least
            // number. ptxas allows that, contrary to the ISA.
            a = self.flushed(a);
        }
        let mut mods: PackMods = SmallVec::from_slice(&[float_dst(to), float_src(from)]);
        mods.extend(rounding(of)?);
        if flush {
            mods.push(FTZ);
        }
        self.put(if from == ScalarType::F64 { Op::F2F_X } else { Op::F2F }, &mods, &[(Role::D, d), (Role::A, a)]);
        Ok(())
    }

    /// Clamps an f32 to the finite range of f16; NaN is kept.
    fn within_f16(&mut self, a: Operand) -> Operand {
        let [magnitude, bound, clamped] = [(); 3].each(|()| self.temp());
        let ([number, p], a) = ([self.temp_pred(), self.temp_pred()], self.in_reg(a));
        let [mask, infinite, most] = [i32::MAX as u32, INFINITE, MOST_F16].each(|bits| self.imm(bits));
        self.and(magnitude, a, mask);
        self.isetp(number, &[LE, AND, U32], magnitude, infinite);
        let args = [(Role::Pu, p), (Role::A, magnitude), (Role::B, most), (Role::Pp, number)];
        self.put(Op::ISETP, &[GT, AND, U32], &args);
        // The bound with the sign of the number.
        self.lop3(bound, a, mask, most, (0xcc & 0xaa) | (!0xcc & 0xf0));
        self.select(clamped, bound, a, p);
        clamped
    }

    /// `cvt` of two numbers at once, and `cvt` to tf32.
    pub(crate) fn convert_packed(&mut self, inst: &ast::Instruction, to: ScalarType, from: ScalarType) -> Lowered {
        use ScalarType::{Bf16x2, F16x2, F32, Tf32};
        let whole = self.dest(&inst.operands[0])?;
        let d = self.words(whole)[0];
        if matches!(whole.kind(), Kind::Vector(_)) {
            let upper = self.words(whole)[1];
            self.copy(upper, Operand::zero());
        }
        let flags = [(inst.mods.relu, RELU), (inst.mods.saturate_finite, SATFINITE)];
        let mut mods: PackMods = flags.into_iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
        if inst.mods.rounding == Some(Rounding::Rs) {
            return self.convert_randomly(inst, d, to, mods);
        }
        match (to, from) {
            (F16x2 | Bf16x2, F32) => {
                let (a, b) = (self.source_reg(&inst.operands[1], from)?, self.source_reg(&inst.operands[2], from)?);
                let mods = pack_mods(to, &inst.mods)?;
                self.put(Op::F2FP, &mods, &[(Role::D, d), (Role::A, a), (Role::B, b)]);
            }
            (_, F32) if let Some(n) = narrow(to) => {
                let (a, b) = (self.source_reg(&inst.operands[1], from)?, self.source_reg(&inst.operands[2], from)?);
                mods.extend([n.made, PACK_MERGE]);
                mods.extend(rounding(&inst.mods)?);
                let args = [(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, Operand::zero())];
                self.put(Op::F2FP, &mods, &args);
            }
            (_, F16x2 | Bf16x2) if let Some(n) = narrow(to).filter(|n| n.wide == from || n.wide == F16x2) => {
                let a = self.source_reg(&inst.operands[1], from)?;
                let source = if from == F16x2 { FROM_F16 } else { FROM_BF16 };
                mods.extend([n.made, source, UNPACK_MERGE]);
                mods.extend(rounding(&inst.mods)?);
                self.put(Op::F2FP, &mods, &[(Role::D, d), (Role::A, a), (Role::B, Operand::zero())]);
            }
            (F16x2 | Bf16x2, _) if let Some(n) = narrow(from).filter(|n| n.wide == to) => {
                let a = self.source_reg(&inst.operands[1], from)?;
                let result = if to == F16x2 { UNPACK_F16 } else { PACK_BF16 };
                mods.extend([result, n.read, UNPACK]);
                self.put(Op::F2FP, &mods, &[(Role::D, d), (Role::A, a)]);
            }
            (Bf16x2, _) if let Some(n) = narrow(from) => self.widen_to_bf16(inst, d, n)?,
            (Tf32, F32) if inst.mods.rounding == Some(Rounding::Rna) => self.round_tf32_away(inst, d)?,
            (Tf32, F32) => {
                let a = self.source_reg(&inst.operands[1], from)?;
                mods.extend([PACK_TF32, PACK_B]);
                mods.extend(rounding(&inst.mods)?);
                self.put(Op::F2FP, &mods, &[(Role::D, d), (Role::A, a)]);
            }
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }

    /// Two floats as halves in a word, `high` above `low`; the target has F2FP.
    pub fn pack_halves(&mut self, d: Operand, high: Operand, low: Operand) {
        self.put(Op::F2FP, &[], &[(Role::D, d), (Role::A, high), (Role::B, low)]);
    }

    /// Converts two numbers of at most 8 bits to bf16, by way of f16 and f32, which hold all of
    /// them.
    fn widen_to_bf16(&mut self, inst: &ast::Instruction, d: Operand, from: &Narrow) -> Lowered {
        let (a, pair, high, places) =
            (self.source_reg(&inst.operands[1], inst.types[1])?, self.temp(), self.temp(), self.imm(16));
        let mut mods: PackMods = SmallVec::from_slice(&[UNPACK_F16, from.read, UNPACK]);
        mods.extend(inst.mods.relu.then_some(RELU));
        self.put(Op::F2FP, &mods, &[(Role::D, pair), (Role::A, a)]);
        self.shf(&SHF_R_U32_HI, high, Operand::zero(), places, pair);
        let [a, b] = [high, pair].each(|half| self.widened_half(half, ScalarType::F16, false));
        let mods = pack_mods(ScalarType::Bf16x2, &Modifiers { relu: false, ..*inst.mods })?;
        self.put(Op::F2FP, &mods, &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        Ok(())
    }

    /// `cvt.rs`, stochastic rounding: random bits decide whether a magnitude is rounded up. Two
    /// 16-bit results take one instruction. Four narrower ones take two; the second one shifts the
    /// result of the first and uses the upper random bits.
    fn convert_randomly(&mut self, inst: &ast::Instruction, d: Operand, to: ScalarType, mut mods: PackMods) -> Lowered {
        let [_, numbers @ .., random] = inst.operands.as_slice() else { return Err(Refusal::NotBuilt) };
        let random = self.source_reg(random, ScalarType::B32)?;
        let numbers: SmallVec<[Operand; 4]> = numbers
            .iter()
            .flat_map(elements)
            .map(|number| self.source_reg(number, ScalarType::F32))
            .collect::<Lowered<_>>()?;
        mods.push(RS);
        match narrow(to) {
            Some(n) => mods.extend([n.made, PACK_MERGE]),
            None if to == ScalarType::Bf16x2 => mods.push(PACK_BF16),
            None => {}
        }
        let mut third = random;
        for (n, pair) in numbers.chunks_exact(2).enumerate() {
            let result = if 2 * n + 2 == numbers.len() { d } else { self.temp() };
            let args = [(Role::D, result), (Role::A, pair[0]), (Role::B, pair[1]), (Role::C, third)];
            self.put(Op::F2FP_RS, &mods, &args);
            third = result;
        }
        Ok(())
    }

    /// Rounds to tf32, ties away from zero: adds half a unit in the last place to the magnitude and
    /// truncates. Infinities and NaN are only truncated.
    fn round_tf32_away(&mut self, inst: &ast::Instruction, d: Operand) -> Lowered {
        let a = self.source_reg(&inst.operands[1], ScalarType::F32)?;
        let (infinite, half, mask) = (self.imm(INFINITE), 1 << (TF32_DROPPED - 1), self.imm(u32::MAX << TF32_DROPPED));
        let (p, sum, chosen) = (self.temp_pred(), self.plus(a, half), self.temp());
        self.put(Op::FSETP, &[FGEU, AND], &[(Role::Pu, p), (Role::A, a.absolute()), (Role::B, infinite)]);
        self.select(chosen, a, sum, p);
        if !inst.mods.saturate_finite {
            self.and(d, chosen, mask);
            return Ok(());
        }
        let (cut, less, q) = (self.temp(), u32::MAX << TF32_DROPPED, self.temp_pred());
        self.and(cut, chosen, mask);
        let less = self.plus(cut, less as i32);
        self.put(Op::FSETP, &[FGEU, AND], &[(Role::Pu, q), (Role::A, cut.absolute()), (Role::B, infinite)]);
        self.select(d, less, cut, q);
        Ok(())
    }
}

/// Modifiers of F2FP for a result of f16 or bf16.
pub(crate) fn pack_mods(to: ScalarType, of: &Modifiers) -> Lowered<PackMods> {
    let bf16 = matches!(to, ScalarType::Bf16 | ScalarType::Bf16x2);
    let flags = [(of.relu, RELU), (of.saturate_finite, SATFINITE), (bf16, PACK_BF16)];
    let mut mods: PackMods = flags.into_iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
    match of.rounding {
        None | Some(Rounding::Rn) => {}
        Some(Rounding::Rz) => mods.push(RZ),
        _ => return Err(Refusal::NotBuilt),
    }
    Ok(mods)
}
