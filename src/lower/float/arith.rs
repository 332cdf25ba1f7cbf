//! Arithmetic of f32 and f64: `add sub mul fma mad min max abs neg` and the `.approx` functions.
//!
//! Emits FADD, FMUL, FFMA, FMNMX, MUFU and the double-precision opcodes. Products and sums without
//! an explicit rounding modifier are marked as contractible into FMA. Sequences that scale
//! subnormal inputs use selects, not predicated instructions.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::convert::half::pack_mods;
use crate::ori::mods::*;
use crate::ori::{File, Operand};
use crate::ptx::ast;
use crate::tables::ptx::{Modifiers, Op as PtxOp, Rounding, ScalarType};
use crate::tables::{Feature, Op, Role};
use smallvec::SmallVec;

/// Modifiers of a float instruction.
type FloatMods = SmallVec<[M; 6]>;

const SIGN: u32 = 1 << 31;

fn float_mods(mods: &Modifiers) -> Lowered<FloatMods> {
    let mut out = FloatMods::new();
    match mods.rounding {
        None | Some(Rounding::Rn) => {}
        Some(Rounding::Rm) => out.push(RM),
        Some(Rounding::Rp) => out.push(RP),
        Some(Rounding::Rz) => out.push(RZ),
        Some(_) => return Err(Refusal::NotBuilt),
    }
    if mods.ftz {
        out.push(FTZ);
    }
    if mods.saturate {
        out.push(SAT);
    }
    Ok(out)
}

impl Builder<'_> {
    fn is_double(&self, inst: &ast::Instruction) -> Lowered<bool> {
        match inst.types[0] {
            ScalarType::F32 => Ok(false),
            ScalarType::F64 => Ok(true),
            _ => Err(Refusal::NotBuilt),
        }
    }

    /// Sources of a float operation: pairs of registers, or words.
    fn float_sources(&mut self, inst: &ast::Instruction, double: bool) -> Lowered<[Operand; 2]> {
        let (a, b, ty) = (&inst.operands[1], &inst.operands[2], inst.types[0]);
        if double {
            Ok([self.source_pair(a, ty)?, self.source_pair(b, ty)?])
        } else {
            Ok([self.source(a, ty)?, self.source(b, ty)?])
        }
    }

    /// `-b`; the negation of an immediate flips its sign bit.
    fn float_negative(&mut self, b: Operand) -> Operand {
        match self.f.imm_value(b) {
            Some(bits) => self.imm(bits as u32 ^ SIGN),
            None => b.negated(),
        }
    }

    /// `add`, `sub`, `mul`
    pub fn float_binary(&mut self, inst: &ast::Instruction) -> Lowered {
        let double = self.is_double(inst)?;
        let mods = float_mods(&inst.mods)?;
        let [a, b] = self.float_sources(inst, double)?;
        let d = self.dest(&inst.operands[0])?;
        let b = if inst.op == PtxOp::Sub { self.float_negative(b) } else { b };
        let op = match (inst.op, double) {
            (PtxOp::Mul, false) => Op::FMUL,
            (PtxOp::Mul, true) => Op::DMUL,
            (_, false) => Op::FADD,
            (_, true) => Op::DADD,
        };
        let made = self.put(op, &mods, &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        self.f[made].contract = inst.mods.rounding.is_none();
        Ok(())
    }

    /// `fma` and `mad`
    pub fn fused(&mut self, inst: &ast::Instruction) -> Lowered {
        let double = self.is_double(inst)?;
        let mods = float_mods(&inst.mods)?;
        let [a, b] = self.float_sources(inst, double)?;
        let ty = inst.types[0];
        let c = if double { self.source_pair(&inst.operands[3], ty)? } else { self.source(&inst.operands[3], ty)? };
        let d = self.dest(&inst.operands[0])?;
        let op = if double { Op::DFMA } else { Op::FFMA };
        self.put(op, &mods, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
        Ok(())
    }

    /// `abs` and `neg`: an addition of negative zero.
    pub fn float_sign(&mut self, inst: &ast::Instruction) -> Lowered {
        let double = self.is_double(inst)?;
        let mods = float_mods(&inst.mods)?;
        let ty = inst.types[0];
        let a = if double { self.source_pair(&inst.operands[1], ty)? } else { self.source(&inst.operands[1], ty)? };
        let d = self.dest(&inst.operands[0])?;
        let a = match inst.op {
            PtxOp::Abs => a.absolute(),
            _ if double => a.negated(),
            _ => self.float_negative(a),
        };
        let zero = Operand::zero().negated();
        if double {
            self.put(Op::DADD, &mods, &[(Role::D, d), (Role::A, zero), (Role::B, a)]);
        } else {
            self.put(Op::FADD, &mods, &[(Role::D, d), (Role::A, a), (Role::B, zero)]);
        }
        Ok(())
    }

    /// `min` and `max` of floats.
    pub fn float_min_max(&mut self, inst: &ast::Instruction, max: bool) -> Lowered {
        let double = self.is_double(inst)?;
        let [a, b] = self.float_sources(inst, double)?;
        if double {
            return self.double_min_max(inst, a, b, max);
        }
        let mut mods = float_mods(&inst.mods)?;
        if inst.mods.nan {
            mods.push(FMNMX_NAN);
        }
        if inst.mods.xorsign {
            mods.push(XORSIGN);
        }
        let which = if max { Operand::never() } else { Operand::always() };
        let third = match inst.operands.get(3) {
            Some(operand) => Some(self.source(operand, inst.types[0])?),
            None => None,
        };
        let d = self.dest(&inst.operands[0])?;
        let [a, b] = if inst.mods.abs { [a.absolute(), b.absolute()] } else { [a, b] };
        if let Some(third) = third.filter(|_| self.has(Feature::ThreeInputF32MinMax) && !inst.mods.xorsign) {
            let third = if inst.mods.abs { third.absolute() } else { third };
            let args = [(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, third), (Role::Pp, which)];
            self.put(Op::FMNMX3, &mods, &args);
            return Ok(());
        }
        let first = if third.is_some() { self.temp() } else { d };
        self.put(Op::FMNMX, &mods, &[(Role::D, first), (Role::A, a), (Role::B, b), (Role::Pp, which)]);
        if let Some(third) = third {
            let third = if inst.mods.abs { third.absolute() } else { third };
            self.put(Op::FMNMX, &mods, &[(Role::D, d), (Role::A, first), (Role::B, third), (Role::Pp, which)]);
        }
        Ok(())
    }

    /// `add`, `sub` and `fma` of f32 with 16-bit operands, which are widened exactly.
    pub fn mixed_precision(&mut self, inst: &ast::Instruction) -> Lowered {
        let (mods, narrow) = (float_mods(&inst.mods)?, inst.types[1]);
        let last = inst.operands.len() - 1;
        let mut sources: SmallVec<[Operand; 4]> = SmallVec::new();
        for operand in &inst.operands[1..last] {
            let half = self.source_reg(operand, narrow)?;
            sources.push(self.widened_half(half, narrow, false));
        }
        let c = self.source_reg(&inst.operands[last], ScalarType::F32)?;
        let c = if inst.op == PtxOp::Sub { c.negated() } else { c };
        let d = self.dest(&inst.operands[0])?;
        if inst.op == PtxOp::Fma {
            let args = [(Role::D, d), (Role::A, sources[0]), (Role::B, sources[1]), (Role::C, c)];
            self.put(Op::FFMA, &mods, &args);
        } else {
            self.put(Op::FADD, &mods, &[(Role::D, d), (Role::A, sources[0]), (Role::B, c)]);
        }
        Ok(())
    }

    /// Both of two packed numbers in words: of 16 bits, widened exactly.
    fn both_singles(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<[Operand; 2]> {
        if ty == ScalarType::F32x2 {
            return Ok(self.source_words(operand, ty)?.each(|word| self.in_reg(word)));
        }
        let word = self.source_reg(operand, ty)?;
        let half = if ty == ScalarType::Bf16x2 { ScalarType::Bf16 } else { ScalarType::F16 };
        let (upper, amount) = (self.temp(), self.imm(16));
        self.shf(&SHF_R_U32_HI, upper, Operand::zero(), amount, word);
        Ok([word, upper].each(|word| self.widened_half(word, half, false)))
    }

    /// `add sub mul fma` of two packed f32: at once where the target can, else lane by lane; of the
    /// sources or the result, some may have 16 bits. Truncating twice is truncating once.
    pub fn packed_singles(&mut self, inst: &ast::Instruction) -> Lowered {
        let mods = float_mods(&inst.mods)?;
        let narrow = inst.types[0] != ScalarType::F32x2;
        let mut sources: SmallVec<[[Operand; 2]; 3]> = SmallVec::new();
        for (n, operand) in inst.operands[1..].iter().enumerate() {
            sources.push(self.both_singles(operand, *inst.types.get(n + 1).unwrap_or(&ScalarType::F32x2))?);
        }
        let results = if self.has(Feature::PackedF32) {
            self.singles_at_once(inst.op, mods, &sources)
        } else {
            [0, 1].each(|i| self.single_of_two(inst.op, &mods, &sources, i))
        };
        if narrow {
            let d = self.dest(&inst.operands[0])?;
            let mods = pack_mods(inst.types[0], &inst.mods)?;
            self.put(Op::F2FP, &mods, &[(Role::D, d), (Role::A, results[1]), (Role::B, results[0])]);
            return Ok(());
        }
        let d = self.dest_words(&inst.operands[0])?;
        (0..2).for_each(|i| self.copy(d[i], results[i]));
        Ok(())
    }

    /// One lane of an operation on packed f32.
    fn single_of_two(&mut self, op: PtxOp, mods: &[M], sources: &[[Operand; 2]], lane: usize) -> Operand {
        let (result, a, b) = (self.temp(), sources[0][lane], sources[1][lane]);
        match op {
            PtxOp::Fma => {
                let args = [(Role::D, result), (Role::A, a), (Role::B, b), (Role::C, sources[2][lane])];
                self.put(Op::FFMA, mods, &args);
            }
            PtxOp::Mul => self.fmul(mods, result, a, b),
            _ => {
                let b = if op == PtxOp::Sub { b.negated() } else { b };
                self.put(Op::FADD, mods, &[(Role::D, result), (Role::A, a), (Role::B, b)]);
            }
        }
        result
    }

    /// Both lanes of an operation on packed f32. What is the same in both is named once.
    fn singles_at_once(&mut self, op: PtxOp, mut mods: FloatMods, sources: &[[Operand; 2]]) -> [Operand; 2] {
        let d = self.f.new_vector(File::R, 2);
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        args.push((Role::D, Operand::vector(d)));
        let roles = [(Role::A, PAIR_A_ONE), (Role::B, PAIR_B_ONE), (Role::C, PAIR_C_ONE)];
        for ((role, once), words) in roles.into_iter().zip(sources) {
            let operand = if words[0] == words[1] {
                mods.push(once);
                words[0]
            } else {
                self.pair_of(*words)
            };
            let turned = op == PtxOp::Sub && role == Role::B;
            args.push((role, if turned { operand.negated() } else { operand }));
        }
        let op = match op {
            PtxOp::Fma => Op::FFMA2,
            PtxOp::Mul => Op::FMUL2,
            _ => Op::FADD2,
        };
        self.put(op, &mods, &args);
        let regs = self.f.vector_regs(d);
        [regs[0], regs[1]].each(Operand::reg)
    }

    /// `min` and `max` of f64: a comparison chooses the operand; if the second one is a NaN, it is
    /// made quiet.
    fn double_min_max(&mut self, inst: &ast::Instruction, a: Operand, b: Operand, max: bool) -> Lowered {
        let (take_a, quiet) = (self.temp_pred(), self.temp_pred());
        let cmp = if max { FMAX } else { FMIN };
        self.put(Op::DSETP, &[cmp, AND], &[(Role::Pu, take_a), (Role::Pv, quiet), (Role::A, a), (Role::B, b)]);
        let (a, b) = (self.words(a), self.words(b));
        let [low, high, silent] = [self.temp(), self.temp(), self.temp()];
        self.select(low, a[0], b[0], take_a);
        self.select(high, a[1], b[1], take_a);
        let quiet_bit = self.imm(1 << 19);
        self.lop3(silent, b[1], quiet_bit, Operand::zero(), crate::ori::build::int::LUT_OR);
        let d = self.dest_words(&inst.operands[0])?;
        self.copy(d[0], low);
        self.select(d[1], silent, high, quiet);
        Ok(())
    }

    /// `x`, scaled up if it is subnormal, and the predicate that is true if it is not.
    fn scaled(&mut self, x: Operand, factor: f32) -> (Operand, Operand) {
        let normal = self.is_normal(x);
        (self.multiplied_unless(normal, x, factor), normal)
    }

    /// `p ? x : x * factor`, as a guarded product over a copy of `x`: where `x` ends there, it is
    /// one instruction and no constant waits in a register.
    fn multiplied_unless(&mut self, p: Operand, x: Operand, factor: f32) -> Operand {
        let (product, factor) = (self.temp(), self.imm(factor.to_bits()));
        self.copy(product, x);
        self.put_if(p.inverted(), Op::FMUL, &[], &[(Role::D, product), (Role::A, x), (Role::B, factor)]);
        product
    }

    /// `rcp sqrt rsqrt sin cos lg2 ex2 tanh` with `.approx`.
    pub fn approximate(&mut self, inst: &ast::Instruction) -> Lowered {
        if inst.types[0] != ScalarType::F32 || inst.mods.rounding.is_some() {
            return Err(Refusal::NotBuilt);
        }
        let x = self.source_reg(&inst.operands[1], ScalarType::F32)?;
        let d = self.dest(&inst.operands[0])?;
        let flush = inst.mods.ftz;
        /// 2^24: makes any subnormal normal.
        const UP: f32 = 16_777_216.0;
        match inst.op {
            PtxOp::Tanh => self.mufu(MUFU_TANH, d, x),
            PtxOp::Sin | PtxOp::Cos => {
                let (turns, by) = (self.temp(), self.imm(TURNS_PER_RADIAN));
                let mods: &[M] = if flush { &[RZ, FTZ] } else { &[RZ] };
                self.fmul(mods, turns, x, by);
                self.mufu(if inst.op == PtxOp::Sin { MUFU_SIN } else { MUFU_COS }, d, turns);
            }
            _ if flush => self.mufu(function_of(inst.op)?, d, x),
            PtxOp::Rcp => self.reciprocal(d, x),
            PtxOp::Sqrt => self.scaled_function(d, x, MUFU_SQRT, UP, 1.0 / 4096.0),
            PtxOp::Rsqrt => self.scaled_function(d, x, MUFU_RSQ, UP, 4096.0),
            PtxOp::Lg2 => {
                let (scaled, normal) = self.scaled(x, UP);
                let (log, correction) = (self.temp(), self.imm((-24.0f32).to_bits()));
                self.mufu(MUFU_LG2, log, scaled);
                let args = [(Role::D, log), (Role::A, log), (Role::B, correction)];
                self.put_if(normal.inverted(), Op::FADD, &[], &args);
                self.copy(d, log);
            }
            PtxOp::Ex2 => {
                let large = self.compare_float(FGEU, x, -126.0);
                let scaled = self.multiplied_unless(large, x, 0.5);
                let power = self.temp();
                self.mufu(MUFU_EX2, power, scaled);
                let args = [(Role::D, power), (Role::A, power), (Role::B, power)];
                self.put_if(large.inverted(), Op::FMUL, &[], &args);
                self.copy(d, power);
            }
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }

    /// The factor that brings a divisor into the range of MUFU.RCP: subnormals are scaled up, the
    /// largest numbers down.
    fn divisor_scale(&mut self, x: Operand) -> Operand {
        let normal = self.is_normal(x);
        let large = self.compare_float(FGT, x.absolute(), LARGEST_WITH_NORMAL_RECIPROCAL);
        let up = self.factor_unless(normal, 16_777_216.0);
        let (quarter, scale) = (self.imm(0.25f32.to_bits()), self.temp());
        self.select(scale, up, quarter, large.inverted());
        scale
    }

    fn reciprocal(&mut self, d: Operand, x: Operand) {
        let scale = self.divisor_scale(x);
        let [scaled, result] = [self.temp(), self.temp()];
        self.fmul(&[], scaled, x, scale);
        self.mufu(MUFU_RCP, result, scaled);
        self.fmul(&[], d, result, scale);
    }

    /// `div.approx`: if the divisor is subnormal, both operands are scaled.
    pub fn divide_approximately(&mut self, inst: &ast::Instruction) -> Lowered {
        let a = self.source_reg(&inst.operands[1], ScalarType::F32)?;
        let b = self.source_reg(&inst.operands[2], ScalarType::F32)?;
        let d = self.dest(&inst.operands[0])?;
        let mods: &[M] = if inst.mods.ftz { &[FTZ] } else { &[] };
        let (mut a, mut b) = (a, b);
        if !inst.mods.ftz {
            let normal = self.is_normal(b);
            [a, b] = [a, b].each(|x| self.multiplied_unless(normal, x, 16_777_216.0));
        }
        let inverse = self.temp();
        self.mufu(MUFU_RCP, inverse, b);
        self.fmul(mods, d, inverse, a);
        Ok(())
    }

    fn scaled_function(&mut self, d: Operand, x: Operand, function: M, up: f32, back: f32) {
        let (scaled, normal) = self.scaled(x, up);
        let (result, back) = (self.temp(), self.imm(back.to_bits()));
        self.mufu(function, result, scaled);
        self.put_if(normal.inverted(), Op::FMUL, &[], &[(Role::D, result), (Role::A, result), (Role::B, back)]);
        self.copy(d, result);
    }
}

/// 1 / 2π, the argument scale of MUFU.SIN and MUFU.COS: rounded up, so that the product rounded
/// towards zero is right.
const TURNS_PER_RADIAN: u32 = 0x3e22_f983;

/// 2^126: greater divisors have subnormal reciprocals.
const LARGEST_WITH_NORMAL_RECIPROCAL: f32 = 8.507_059e37;

fn function_of(op: PtxOp) -> Lowered<M> {
    Ok(match op {
        PtxOp::Rcp => MUFU_RCP,
        PtxOp::Sqrt => MUFU_SQRT,
        PtxOp::Rsqrt => MUFU_RSQ,
        PtxOp::Lg2 => MUFU_LG2,
        PtxOp::Ex2 => MUFU_EX2,
        _ => return Err(Refusal::NotBuilt),
    })
}
