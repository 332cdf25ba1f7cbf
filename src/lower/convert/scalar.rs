//! `cvt` between integers and floats of all widths: extensions, clamps, F2I, I2F, F2F, FRND.
//!
//! A destination register wider than the destination type receives the value, sign- or
//! zero-extended as that type says.

use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::float::half::is_half;
use crate::lower::operand::{Class, class_of, is_signed};
use crate::ori::mods::*;
use crate::ori::{Kind, Operand};
use crate::ptx::ast;
use crate::tables::ptx::{Modifiers, Rounding, ScalarType};
use crate::tables::{Feature, Op, Role};
use smallvec::SmallVec;

/// Modifiers of a conversion instruction.
type ConvertMods = SmallVec<[M; 6]>;

impl Builder<'_> {
    /// `cvt`
    pub fn convert(&mut self, inst: &ast::Instruction) -> Lowered {
        let (to, from) = (inst.types[0], *inst.types.get(1).ok_or(Refusal::NotBuilt)?);
        if inst.operands.len() == 3 || to.name().contains('x') || from.name().contains('x') || to == ScalarType::Tf32 {
            return self.convert_packed(inst, to, from);
        }
        if from == ScalarType::Tf32 {
            return Err(Refusal::NotBuilt);
        }
        if is_half(to) {
            return self.convert_to_half(inst, to, from);
        }
        if inst.mods.relu || inst.mods.saturate_finite {
            return Err(Refusal::NotBuilt);
        }
        match (class_of(from) == Class::Float, class_of(to) == Class::Float) {
            (false, false) => self.int_to_int(inst, to, from),
            (false, true) => self.int_to_float(inst, to, from),
            (true, false) => self.float_to_int(inst, to, from),
            (true, true) => self.float_to_float(inst, to, from),
        }?;
        // A float is written to the low word of a wider register.
        let d = self.dest(&inst.operands[0])?;
        if class_of(to) == Class::Float && to.bits() < 64 && matches!(d.kind(), Kind::Vector(_)) {
            let [_, high] = self.words(d);
            self.copy(high, Operand::zero());
        }
        Ok(())
    }

    /// The destination register of a float result, or its low word if it is wider.
    fn float_dest(&mut self, operand: &ast::Operand, to: ScalarType) -> Lowered<Operand> {
        let d = self.dest(operand)?;
        let wider = to.bits() < 64 && matches!(d.kind(), Kind::Vector(_));
        Ok(if wider { self.words(d)[0] } else { d })
    }

    /// A float source and its type; a 16-bit source is widened to f32, which is exact.
    pub(crate) fn float_source(&mut self, inst: &ast::Instruction, from: ScalarType) -> Lowered<(Operand, ScalarType)> {
        let operand = &inst.operands[1];
        match from {
            ScalarType::F64 => Ok((self.source_pair(operand, from)?, from)),
            ScalarType::F16 | ScalarType::Bf16 => {
                let half = self.source_reg(operand, from)?;
                Ok((self.widened_half(half, from, inst.mods.ftz), ScalarType::F32))
            }
            _ => Ok((self.source_reg(operand, from)?, from)),
        }
    }

    /// Writes a 32- or 64-bit value of a type into a destination register of any width.
    fn deliver(&mut self, d: Operand, value: [Operand; 2], ty: ScalarType) {
        let register_bits = if matches!(d.kind(), Kind::Vector(_)) { 64 } else { 32 };
        if ty.bits() == 64 {
            let parts = self.words(d);
            let count = register_bits / 32;
            (0..count).for_each(|i| self.copy(parts[i], value[i]));
            return;
        }
        let low = self.extend(value[0], ty);
        let [d_lo, d_hi] = self.words(d);
        self.copy(d_lo, low);
        if register_bits == 64 {
            if is_signed(ty) {
                let low = self.in_reg(low);
                self.sign_word(d_hi, low);
            } else {
                self.copy(d_hi, Operand::zero());
            }
        }
    }

    fn int_to_int(&mut self, inst: &ast::Instruction, to: ScalarType, from: ScalarType) -> Lowered {
        let value = self.source(&inst.operands[1], from)?;
        let mut words = self.words(value);
        if from.bits() < 64 {
            // The upper bits of a narrow source matter only if something reads them.
            if to.bits() > from.bits() || inst.mods.saturate {
                words[0] = self.extend(words[0], from);
            }
            words[1] = Operand::zero();
        }
        if inst.mods.saturate {
            words = self.clamp(words, to, from);
        }
        if from.bits() < 64 && to.bits() == 64 && is_signed(from) {
            let (high, low) = (self.temp(), self.in_reg(words[0]));
            self.sign_word(high, low);
            words[1] = high;
        }
        let d = self.dest(&inst.operands[0])?;
        let exact = self.register_is(&inst.operands[0], to);
        if exact {
            let parts = self.words(d);
            let count = if to.bits() == 64 { 2 } else { 1 };
            (0..count).for_each(|i| self.copy(parts[i], words[i]));
        } else {
            self.deliver(d, words, to);
        }
        Ok(())
    }

    /// Whether a destination register is no wider than a type.
    fn register_is(&self, operand: &ast::Operand, ty: ScalarType) -> bool {
        match &operand.kind {
            ast::OperandKind::Register(r) => self.source.registers[r.register].ty.bits() <= ty.bits(),
            _ => true,
        }
    }

    /// Clamps a value of one integer type to the range of another.
    pub(crate) fn clamp(&mut self, mut value: [Operand; 2], to: ScalarType, from: ScalarType) -> [Operand; 2] {
        let (min, max) = range(to);
        let (from_min, from_max) = range(from);
        let sign = if is_signed(from) { S32 } else { U32 };
        let wide = from.bits() == 64;
        for (bound, cmp, needed) in [(max, GT, max < from_max), (min, LT, min > from_min)] {
            if !needed {
                continue;
            }
            let bits = bound as u64;
            let words = [self.imm(bits as u32), self.imm((bits >> 32) as u32)];
            let p = self.temp_pred();
            if wide {
                self.compare_words(p, cmp, sign, value, words);
            } else {
                self.isetp(p, &[cmp, AND, sign], value[0], words[0]);
            }
            let count = if wide { 2 } else { 1 };
            for i in 0..count {
                let clamped = self.temp();
                self.select(clamped, words[i], value[i], p);
                value[i] = clamped;
            }
        }
        value
    }

    fn int_to_float(&mut self, inst: &ast::Instruction, to: ScalarType, from: ScalarType) -> Lowered {
        let a = match from.bits() {
            64 => self.source_pair(&inst.operands[1], from)?,
            32 => self.source_reg(&inst.operands[1], from)?,
            _ => {
                let value = self.extended(&inst.operands[1], from)?;
                self.in_reg(value)
            }
        };
        // A narrow integer is converted as its 32-bit extension.
        let from = if from.bits() == 64 { from } else { widened(from) };
        let mut mods: ConvertMods = SmallVec::from_slice(&[float_dst(to), i2f_src(from)]);
        mods.extend(rounding(&inst.mods)?);
        let d = self.float_dest(&inst.operands[0], to)?;
        let directed = mods.contains(&RM) || mods.contains(&RP);
        let packed = self.has(Feature::IntToFloatPacked) && to == ScalarType::F32 && !directed;
        let op = match (to.bits() == 64 || from.bits() == 64, packed) {
            (true, _) => Op::I2F_X,
            (false, true) => Op::I2FP,
            (false, false) => Op::I2F,
        };
        let result = if inst.mods.saturate { self.temp_like(d) } else { d };
        self.put(op, &mods, &[(Role::D, result), (Role::A, a)]);
        if inst.mods.saturate {
            self.saturate(d, result, to);
        }
        Ok(())
    }

    fn temp_like(&mut self, d: Operand) -> Operand {
        if matches!(d.kind(), Kind::Vector(_)) { self.temp_pair() } else { self.temp() }
    }

    /// Clamps a float to [0, 1]; NaN becomes 0.
    pub(crate) fn saturate(&mut self, d: Operand, a: Operand, ty: ScalarType) {
        match ty {
            ScalarType::F64 => {
                let above = self.dsetp(FGT, a, Operand::zero());
                let low = self.select_pair(a, Operand::zero(), above);
                let one = self.double_constant(crate::ori::build::float::ONE_HIGH);
                let below = self.dsetp(FLT, low, one);
                self.select_into(d, low, one, below);
            }
            ScalarType::F16 => self.saturate_f16(d, a),
            _ => {
                self.put(Op::FADD, &[SAT], &[(Role::D, d), (Role::A, a), (Role::B, Operand::zero())]);
            }
        }
    }

    fn float_to_int(&mut self, inst: &ast::Instruction, to: ScalarType, from: ScalarType) -> Lowered {
        let (a, from) = self.float_source(inst, from)?;
        // F2I has no form from f64 to 8 bits: convert to 32 bits, then clamp.
        let (wanted, to) = (to, if from.bits() == 64 && to.bits() == 8 { widened(to) } else { to });
        let mut mods: ConvertMods = SmallVec::from_slice(&[f2i_dst(to), float_src(from)]);
        mods.extend(int_rounding(&inst.mods)?);
        if inst.mods.ftz {
            mods.push(FTZ);
        }
        let wide = to.bits() == 64 || from.bits() == 64;
        if !wide {
            mods.push(F2I_NTZ);
        }
        let op = if wide { Op::F2I_X } else { Op::F2I };
        let d = self.dest(&inst.operands[0])?;
        if self.register_is(&inst.operands[0], to) && wanted == to {
            self.put(op, &mods, &[(Role::D, d), (Role::A, a)]);
            return Ok(());
        }
        let result = if to.bits() == 64 { self.temp_pair() } else { self.temp() };
        self.put(op, &mods, &[(Role::D, result), (Role::A, a)]);
        let mut words = self.words(result);
        if wanted != to {
            words = self.clamp(words, wanted, to);
            words[0] = self.unless_nan(words[0], a);
        }
        self.deliver(d, words, wanted);
        Ok(())
    }

    /// Gives the highest bit of the 8-bit result for an f64 NaN, which clamping would lose.
    fn unless_nan(&mut self, value: Operand, a: Operand) -> Operand {
        let (p, result, top) = (self.temp_pred(), self.temp(), self.imm(1 << 7));
        self.put(Op::DSETP, &[FNAN, AND], &[(Role::Pu, p), (Role::A, a), (Role::B, a)]);
        self.select(result, top, value, p);
        result
    }

    fn float_to_float(&mut self, inst: &ast::Instruction, to: ScalarType, from: ScalarType) -> Lowered {
        let ((a, from), written) = (self.float_source(inst, from)?, from);
        let d = self.float_dest(&inst.operands[0], to)?;
        let to_integer = rounds_to_integer(&inst.mods);
        let flush: &[M] = if inst.mods.ftz { &[FTZ] } else { &[] };
        if to != from {
            if to_integer {
                return Err(Refusal::NotBuilt);
            }
            let mut mods: ConvertMods = SmallVec::from_slice(&[float_dst(to), float_src(from)]);
            mods.extend(rounding(&inst.mods)?);
            let flushes = inst.mods.ftz && to == ScalarType::F32;
            mods.extend_from_slice(if flushes { &[] } else { flush });
            let (rounded, result) = (self.temp_like(d), self.temp_like(d));
            let result = if inst.mods.saturate { result } else { d };
            let rounded = if flushes { rounded } else { result };
            self.put(Op::F2F_X, &mods, &[(Role::D, rounded), (Role::A, a)]);
            if flushes {
                self.flush_tiny(result, rounded, a, &inst.mods)?;
            }
            if inst.mods.saturate {
                self.saturate(d, result, to);
            }
            return Ok(());
        }
        if to_integer {
            let result = if inst.mods.saturate { self.temp_like(d) } else { d };
            self.round_to_integer(result, a, to, &inst.mods)?;
            if inst.mods.saturate {
                self.saturate(d, result, to);
            }
        } else if to.bits() == 32 && (inst.mods.saturate || inst.mods.ftz && written == from) {
            let mut mods: ConvertMods = SmallVec::from_slice(flush);
            // Adding negative zero keeps the sign of a zero; a saturated zero is positive.
            let mut zero = Operand::zero().negated();
            if inst.mods.saturate {
                mods.push(SAT);
                zero = Operand::zero();
            }
            self.put(Op::FADD, &mods, &[(Role::D, d), (Role::A, a), (Role::B, zero)]);
        } else if inst.mods.saturate {
            self.saturate(d, a, to);
        } else {
            self.copy_value(d, a);
        }
        Ok(())
    }

    /// Flushes an f64 that was rounded to f32: the result is the zero of its sign if the value
    /// rounded to 24 bits is below the normal range. The `.FTZ` of F2F is not used: ptxas never
    /// sets it, and it may test the value after rounding to fewer bits.
    fn flush_tiny(&mut self, d: Operand, rounded: Operand, a: Operand, of: &Modifiers) -> Lowered {
        // The least magnitudes that round to the least normal f32: to nearest, away from zero,
        // towards zero.
        const NEAREST: u64 = 0x380f_ffff_f000_0000;
        const AWAY: u64 = 0x380f_ffff_e000_0001;
        const TOWARDS: u64 = 0x3810_0000_0000_0000;
        let (below, above) = match of.rounding {
            None | Some(Rounding::Rn) => (NEAREST, NEAREST),
            Some(Rounding::Rz) => (TOWARDS, TOWARDS),
            Some(Rounding::Rp) => (TOWARDS, AWAY),
            Some(Rounding::Rm) => (AWAY, TOWARDS),
            Some(_) => return Err(Refusal::NotBuilt),
        };
        let bound = self.double(above);
        let tiny = if below == above {
            self.dsetp(FLT, a.absolute(), bound)
        } else {
            let (less, tiny, bound_below) = (self.dsetp(FLT, a, bound), self.temp_pred(), self.double(below | 1 << 63));
            let args = [(Role::Pu, tiny), (Role::A, a), (Role::B, bound_below), (Role::Pp, less)];
            self.put(Op::DSETP, &[FGT, AND], &args);
            tiny
        };
        let (zero, least) = (self.temp(), self.imm(1 << 23));
        self.fmul(&[], zero, rounded, least);
        self.select(d, zero, rounded, tiny);
        Ok(())
    }

    /// An f64 constant in a register pair.
    fn double(&mut self, bits: u64) -> Operand {
        let words = [self.imm(bits as u32), self.imm((bits >> 32) as u32)];
        self.pair_of(words)
    }

    /// Rounds a float to an integral float of its format.
    pub(crate) fn round_to_integer(&mut self, d: Operand, a: Operand, ty: ScalarType, of: &Modifiers) -> Lowered {
        let mut mods: ConvertMods = int_rounding(of)?.into_iter().collect();
        if ty.bits() == 64 {
            mods.push(TO_F64);
        }
        if of.ftz {
            mods.push(FTZ);
        }
        self.put(if ty.bits() == 64 { Op::FRND_X } else { Op::FRND }, &mods, &[(Role::D, d), (Role::A, a)]);
        Ok(())
    }
}

/// Whether a conversion yields an integral float.
pub(crate) fn rounds_to_integer(mods: &Modifiers) -> bool {
    matches!(mods.rounding, Some(Rounding::Rni | Rounding::Rzi | Rounding::Rmi | Rounding::Rpi))
}

/// The 32-bit integer type with the same signedness.
pub(crate) fn widened(ty: ScalarType) -> ScalarType {
    if is_signed(ty) { ScalarType::S32 } else { ScalarType::U32 }
}

/// Least and greatest value of an integer type.
fn range(ty: ScalarType) -> (i128, i128) {
    let bits = ty.bits();
    if is_signed(ty) { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Rounding modifier of a conversion to a float; `None` for the default, to nearest.
pub(crate) fn rounding(mods: &Modifiers) -> Lowered<Option<M>> {
    Ok(match mods.rounding {
        None | Some(Rounding::Rn) => None,
        Some(Rounding::Rm) => Some(RM),
        Some(Rounding::Rp) => Some(RP),
        Some(Rounding::Rz) => Some(RZ),
        Some(_) => return Err(Refusal::NotBuilt),
    })
}

/// Rounding modifier to an integral value; `None` for the default, to nearest.
fn int_rounding(mods: &Modifiers) -> Lowered<Option<M>> {
    Ok(match mods.rounding {
        None | Some(Rounding::Rni) => None,
        Some(Rounding::Rmi) => Some(FLOOR),
        Some(Rounding::Rpi) => Some(CEIL),
        Some(Rounding::Rzi) => Some(TRUNC),
        Some(_) => return Err(Refusal::NotBuilt),
    })
}
