//! Arithmetic and comparisons of f16 and bf16, scalar or packed in pairs.
//!
//! Covers `add sub mul fma abs neg min max ex2 tanh setp set`; emits HADD2, HMUL2, HFMA2, HMNMX2,
//! HSETP2, HSET2 and MUFU. A scalar is the low lane of a packed operation; its other lane is
//! ignored, except by results that combine both. Targets without bf16 addition and multiplication
//! use FMA instead. The front end has already checked which forms the target has.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::build::int::Combined;
use crate::ori::mods::*;
use crate::ori::{InstId, Operand};
use crate::ptx::ast;
use crate::tables::ptx::{Op as PtxOp, Rounding, ScalarType};
use crate::tables::{Feature, Op, Role};
use smallvec::SmallVec;

/// Modifiers of a packed-half instruction.
type HalfMods = SmallVec<[M; 6]>;

/// Two packed bf16 with the value 1.0.
const ONES_BF16: u32 = 0x3f80_3f80;

/// Whether a type is f16, bf16 or a packed pair of them.
pub(crate) fn is_half(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::F16 | ScalarType::F16x2 | ScalarType::Bf16 | ScalarType::Bf16x2)
}

fn is_bf16(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::Bf16 | ScalarType::Bf16x2)
}

fn is_single(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::F16 | ScalarType::Bf16)
}

impl Builder<'_> {
    fn half_mods(&self, inst: &ast::Instruction) -> Lowered<HalfMods> {
        let m = &inst.mods;
        if !matches!(m.rounding, None | Some(Rounding::Rn)) {
            return Err(Refusal::NotBuilt);
        }
        let flags = [(m.ftz, FTZ), (m.oob, OOB), (m.saturate, SAT), (m.relu, RELU), (is_bf16(inst.types[0]), BF16_V2)];
        Ok(flags.into_iter().filter(|flag| flag.0).map(|flag| flag.1).collect())
    }

    /// Operations on these types other than comparisons.
    pub fn half_operation(&mut self, inst: &ast::Instruction) -> Lowered {
        let mods = self.half_mods(inst)?;
        let ty = inst.types[0];
        match inst.op {
            PtxOp::Ex2 | PtxOp::Tanh => return self.half_function(inst),
            PtxOp::Min | PtxOp::Max => return self.half_min_max(inst, mods),
            _ => {}
        }
        let mut sources: SmallVec<[Operand; 4]> = SmallVec::new();
        for operand in &inst.operands[1..] {
            sources.push(self.source_reg(operand, ty)?);
        }
        let d = self.dest(&inst.operands[0])?;
        match inst.op {
            PtxOp::Add | PtxOp::Sub | PtxOp::Mul => {
                let (a, b) = (sources[0], sources[1]);
                let made = match inst.op {
                    PtxOp::Add => self.half_sum(d, a, b, &mods, is_bf16(ty)),
                    PtxOp::Sub => self.half_sum(d, a, b.negated(), &mods, is_bf16(ty)),
                    _ => self.half_product(d, a, b, &mods, is_bf16(ty)),
                };
                self.f[made].contract = inst.mods.rounding.is_none();
            }
            PtxOp::Fma => {
                self.hfma2(d, sources[0], sources[1], sources[2], &mods);
            }
            PtxOp::Abs | PtxOp::Neg => {
                let a = if inst.op == PtxOp::Abs { sources[0].absolute() } else { sources[0].negated() };
                let zero = Operand::zero();
                if is_bf16(ty) {
                    self.hfma2(d, zero.negated(), zero, a, &mods);
                } else {
                    self.put(Op::HADD2, &mods, &[(Role::D, d), (Role::A, a), (Role::B, zero.negated())]);
                }
            }
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }

    pub(crate) fn hfma2(&mut self, d: Operand, a: Operand, b: Operand, c: Operand, mods: &[M]) -> InstId {
        self.put(Op::HFMA2, mods, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)])
    }

    /// `a + b`; on targets without bf16 addition, `a * 1 + b`.
    fn half_sum(&mut self, d: Operand, a: Operand, b: Operand, mods: &[M], bf16: bool) -> InstId {
        if !bf16 || self.has(Feature::Bf16Arithmetic) {
            return self.put(Op::HADD2, mods, &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        }
        let ones = self.imm(ONES_BF16);
        self.hfma2(d, a, ones, b, mods)
    }

    /// `a * b`; on targets without bf16 multiplication, `a * b - 0`.
    fn half_product(&mut self, d: Operand, a: Operand, b: Operand, mods: &[M], bf16: bool) -> InstId {
        if !bf16 || self.has(Feature::Bf16Arithmetic) {
            self.put(Op::HMUL2, mods, &[(Role::D, d), (Role::A, a), (Role::B, b)])
        } else {
            self.hfma2(d, a, b, Operand::zero().negated(), mods)
        }
    }

    fn half_min_max(&mut self, inst: &ast::Instruction, mut mods: HalfMods) -> Lowered {
        let ty = inst.types[0];
        if inst.mods.nan {
            mods.push(FMNMX_NAN);
        }
        let (a, b) = (self.source_reg(&inst.operands[1], ty)?, self.source_reg(&inst.operands[2], ty)?);
        let d = self.dest(&inst.operands[0])?;
        let which = if inst.op == PtxOp::Max { Operand::never() } else { Operand::always() };
        let (mut x, mut y) = (a, b);
        if inst.mods.abs {
            (x, y) = (a.absolute(), b.absolute());
        }
        if inst.mods.xorsign {
            mods.push(XORSIGN);
        }
        self.put(Op::HMNMX2, &mods, &[(Role::D, d), (Role::A, x), (Role::B, y), (Role::Pp, which)]);
        Ok(())
    }

    /// `ex2` and `tanh`: MUFU computes one lane, the low one.
    fn half_function(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let function = if inst.op == PtxOp::Ex2 { MUFU_EX2 } else { MUFU_TANH };
        let format = if is_bf16(ty) { MUFU_BF16 } else { MUFU_F16 };
        let x = self.source_reg(&inst.operands[1], ty)?;
        let d = self.dest(&inst.operands[0])?;
        if is_single(ty) {
            self.put(Op::MUFU, &[function, format], &[(Role::D, d), (Role::A, x)]);
            return Ok(());
        }
        let (high, half) = (self.temp(), self.imm(16));
        self.shf(&SHF_R_U32_HI, high, Operand::zero(), half, x);
        let results = [x, high].each(|x| {
            let y = self.temp();
            self.put(Op::MUFU, &[function, format], &[(Role::D, y), (Role::A, x)]);
            y
        });
        self.join_halves(d, results[0], results[1]);
        Ok(())
    }

    /// Packs the low halves of two registers.
    pub fn join_halves(&mut self, d: Operand, low: Operand, high: Operand) {
        let selector = self.imm(0x5410);
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, low), (Role::B, selector), (Role::C, high)]);
    }

    /// A comparison into predicates: of a scalar, or of two lanes into two predicates.
    pub(crate) fn compare_half(&mut self, inst: &ast::Instruction, ty: ScalarType, cmp: M, to: &Combined) -> Lowered {
        let mods = self.comparison_mods(inst, ty, cmp, to.with);
        let (a, b) = (self.source_reg(&inst.operands[1], ty)?, self.source_reg(&inst.operands[2], ty)?);
        self.put_compare(Op::HSETP2, &mods, to, a, b);
        Ok(())
    }

    fn comparison_mods(&self, inst: &ast::Instruction, ty: ScalarType, cmp: M, with: M) -> HalfMods {
        let mut mods: HalfMods = SmallVec::from_slice(&[cmp, with]);
        if is_bf16(ty) {
            mods.push(BF16_V2);
        }
        if inst.mods.ftz {
            mods.push(FTZ);
        }
        mods
    }

    /// `set` of these types: the result is all ones, or 1.0 if it is a float.
    pub(crate) fn set_half(&mut self, inst: &ast::Instruction, cmp: M, with: M, input: Operand) -> Lowered {
        let (to, ty) = (inst.types[0], inst.types[1]);
        let mut mods = self.comparison_mods(inst, ty, cmp, with);
        if is_half(to) {
            mods.push(FLOAT_RESULT);
        }
        // A scalar comparison gives the same result in both halves.
        if is_single(ty) {
            mods.extend([LOW_A, LOW_B]);
        }
        let (a, b) = (self.source_reg(&inst.operands[1], ty)?, self.source_reg(&inst.operands[2], ty)?);
        let d = self.dest(&inst.operands[0])?;
        let args = [(Role::D, d), (Role::A, a), (Role::B, b), (Role::Pp, input)];
        self.put(Op::HSET2, &mods, &args);
        Ok(())
    }

    /// Clamps an f16 to [0, 1].
    pub(crate) fn saturate_f16(&mut self, d: Operand, a: Operand) {
        self.put(Op::HADD2, &[SAT], &[(Role::D, d), (Role::A, a), (Role::B, Operand::zero().negated())]);
    }
}
