//! Comparisons: `setp`, `set`, and minimum and maximum of integers.
//!
//! Emits ISETP, FSETP, DSETP and SEL for every width, with the combination by a boolean operation.
//! A comparison of 64-bit integers compares the low words as unsigned; the extended comparison of
//! the high words reads that result.

use super::half::is_half;
use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::operand::{Class, class_of, is_signed};
use crate::ori::Operand;
use crate::ori::build::int::Combined;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::choices;
use crate::tables::ptx::{BoolOp, Compare, ScalarType};
use crate::tables::{Feature, Op, Role};

/// 1.0 as an f16 (IEEE 754 binary16) and as a bf16.
const ONE_F16: u32 = 0x3c00;
const ONE_BF16: u32 = 0x3f80;

/// The ISETP comparison for a comparison modifier.
pub(crate) fn int_comparison(compare: Option<Compare>) -> Option<M> {
    choices::comparison(compare?)?.int
}

impl Builder<'_> {
    /// `setp`
    pub fn setp(&mut self, inst: &ast::Instruction) -> Lowered {
        let (p, q) = self.dest_and_pred(&inst.operands[0])?;
        let combined = self.combination(inst, [p, q])?;
        self.compare(inst, inst.types[0], &combined)
    }

    fn combination(&mut self, inst: &ast::Instruction, results: [Operand; 2]) -> Lowered<Combined> {
        let with = match inst.mods.bool_op {
            None | Some(BoolOp::And) => AND,
            Some(BoolOp::Or) => OR,
            Some(BoolOp::Xor) => XOR,
        };
        let input = match inst.operands.get(3) {
            Some(operand) => self.source(operand, ScalarType::Pred)?,
            None => Operand::NULL,
        };
        // PT as a destination discards the result.
        let results = results.each(|r| if r == Operand::zero() { Operand::always() } else { r });
        Ok(Combined { results, with, input })
    }

    fn compare(&mut self, inst: &ast::Instruction, ty: ScalarType, to: &Combined) -> Lowered {
        let compare = inst.mods.compare.ok_or(Refusal::NotBuilt)?;
        let row = choices::comparison(compare).ok_or(Refusal::NotBuilt)?;
        let [a, b] = [&inst.operands[1], &inst.operands[2]];
        match (class_of(ty), ty.bits()) {
            (Class::Float, 32) => {
                let cmp = row.float.ok_or(Refusal::NotBuilt)?;
                let mods: &[M] = if inst.mods.ftz { &[cmp, to.with, FTZ] } else { &[cmp, to.with] };
                let (a, b) = (self.source_word(a, ty)?, self.source(b, ty)?);
                self.put_compare(Op::FSETP, mods, to, a, b);
            }
            (Class::Float, 64) => {
                let cmp = row.float.ok_or(Refusal::NotBuilt)?;
                let (a, b) = (self.source_pair(a, ty)?, self.source_pair(b, ty)?);
                self.put_compare(Op::DSETP, &[cmp, to.with], to, a, b);
            }
            _ if is_half(ty) => self.compare_half(inst, ty, row.float.ok_or(Refusal::NotBuilt)?, to)?,
            (Class::Float | Class::Pred, _) => return Err(Refusal::NotBuilt),
            (_, bits) => {
                let cmp = row.int.ok_or(Refusal::NotBuilt)?;
                let sign = if is_signed(ty) && !row.unsigned { S32 } else { U32 };
                if bits == 64 {
                    let (a, b) = (self.source_words(a, ty)?, self.source_words(b, ty)?);
                    self.compare_long(cmp, sign, to, a, b);
                } else {
                    let (a, b) = (self.extended(a, ty)?, self.extended(b, ty)?);
                    self.put_compare(Op::ISETP, &[cmp, to.with, sign], to, a, b);
                }
            }
        }
        Ok(())
    }

    /// `set`: the result is all ones or zero, or 1.0 or 0.0.
    pub fn set(&mut self, inst: &ast::Instruction) -> Lowered {
        let (to, ty) = (inst.types[0], inst.types[1]);
        // There is no instruction that compares f16 and writes a bf16.
        if is_half(ty) && (to != ScalarType::Bf16 || ty != ScalarType::F16) {
            let combined = self.combination(inst, [Operand::NULL; 2])?;
            let compare = inst.mods.compare.ok_or(Refusal::NotBuilt)?;
            let row = choices::comparison(compare).ok_or(Refusal::NotBuilt)?;
            return self.set_half(inst, row.float.ok_or(Refusal::NotBuilt)?, combined.with, combined.input);
        }
        let p = self.temp_pred();
        let combined = self.combination(inst, [p, Operand::NULL])?;
        self.compare(inst, ty, &combined)?;
        let d = self.dest(&inst.operands[0])?;
        let truth = match to {
            ScalarType::F32 => self.imm(1.0f32.to_bits()),
            ScalarType::F16 => self.imm(ONE_F16),
            ScalarType::Bf16 => self.imm(ONE_BF16),
            _ if to.bits() == 32 => self.imm(u32::MAX),
            _ => return Err(Refusal::NotBuilt),
        };
        self.select(d, truth, Operand::zero(), p);
        Ok(())
    }

    /// `min` and `max` of integers: scalar, or two packed 16-bit lanes.
    pub fn min_max(&mut self, inst: &ast::Instruction, max: bool) -> Lowered {
        let ty = inst.types[0];
        let [a, b] = [&inst.operands[1], &inst.operands[2]];
        if ty.bits() == 64 {
            let (cmp, sign) = (if max { GT } else { LT }, if is_signed(ty) { S32 } else { U32 });
            let p = self.temp_pred();
            let (a, b) = (self.source_words(a, ty)?, self.source_words(b, ty)?);
            self.compare_words(p, cmp, sign, a, b);
            let d = self.dest_words(&inst.operands[0])?;
            (0..2).for_each(|i| self.select(d[i], a[i], b[i], p));
        } else if matches!(ty, ScalarType::U16x2 | ScalarType::S16x2) {
            let (a, b) = (self.source_reg(a, ty)?, self.source_reg(b, ty)?);
            let d = self.dest(&inst.operands[0])?;
            self.packed_min_max(d, a, b, max, ty == ScalarType::S16x2, inst.mods.relu);
        } else {
            let (a, b) = (self.extended(a, ty)?, self.extended(b, ty)?);
            let d = self.dest(&inst.operands[0])?;
            self.word_min_max(d, a, b, max, is_signed(ty), inst.mods.relu);
        }
        Ok(())
    }

    /// Minimum or maximum of two packed lanes; `relu` clamps the result to at least zero.
    fn packed_min_max(&mut self, d: Operand, a: Operand, b: Operand, max: bool, signed: bool, relu: bool) {
        if self.has(Feature::IntegerMinMaxVimnmx) {
            let which = if max { Operand::never() } else { Operand::always() };
            let ty = if signed { VTYPE_S16X2 } else { VTYPE_U16X2 };
            let mods: &[M] = if relu { &[ty, RELU] } else { &[ty] };
            self.put(Op::VIMNMX, mods, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::Pp, which)]);
            return;
        }
        let results = [0, 1].each(|half| {
            let [x, y] = [a, b].each(|word| self.half_of(word, half, signed));
            let result = self.temp();
            self.word_min_max(result, x, y, max, signed, relu);
            result
        });
        self.join_halves(d, results[0], results[1]);
    }

    /// One 16-bit half of a word, extended to 32 bits.
    pub(crate) fn half_of(&mut self, word: Operand, half: usize, signed: bool) -> Operand {
        let d = self.temp();
        let selector = self.imm(match (half, signed) {
            (0, false) => 0x4410,
            (_, false) => 0x4432,
            (0, true) => 0x9910,
            (_, true) => 0xbb32,
        });
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, word), (Role::B, selector), (Role::C, Operand::zero())]);
        d
    }
}
