//! Square roots of floats, rounded as IEEE 754 says, and the reciprocal functions of f64.
//!
//! Input: `sqrt` with a rounding mode; `rcp` and `rsqrt` of f64 with `.approx`. Output: Newton's method from MUFU.RSQ on an operand scaled up where its
//! remainder would be subnormal; a root is never subnormal, so scaling back is exact and no branch is needed. In f32 the last
//! step is right for every mantissa and every estimate within the bound of MUFU (all were tried); in f64 the neighbours are tested.

use super::builder::{Builder, Lowered, Refusal};
use super::mods::*;
use super::quotient::{ONE_HIGH, last_rounding};
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{Op as PtxOp, ScalarType};
use crate::tables::{Op, Role};

/// 0.5, infinity and NaN as high words of f64.
const HALF_HIGH: u32 = 0x3fe0_0000;
const INFINITE_HIGH: u32 = 0x7ff0_0000;
const NAN_HIGH: u32 = 0xfff8_0000;
/// f64: below this high word (2 to the -922) the operand is scaled by 2 to the 512, its root by 2 to the -256.
const SMALL_HIGH: u32 = 0x0650_0000;
const UP_HIGH: u32 = 0x5ff0_0000;
const BACK_HIGH: u32 = 0x2ff0_0000;

impl Builder<'_> {
    /// `sqrt` with a rounding mode.
    pub fn exact_root(&mut self, inst: &ast::Instruction) -> Lowered {
        let (ty, rounding) = (inst.types[0], last_rounding(inst.mods.rounding));
        if ty == ScalarType::F64 {
            let x = self.pair_source(&inst.operands[1], ty)?;
            let d = self.dest(&inst.operands[0])?;
            self.root_f64(d, x, rounding);
        } else {
            let x = self.source_reg(&inst.operands[1], ty)?;
            let d = self.dest(&inst.operands[0])?;
            self.root_f32(d, x, rounding, inst.mods.ftz);
        }
        Ok(())
    }

    fn root_f32(&mut self, d: Operand, x: Operand, rounding: Option<M>, ftz: bool) {
        let [up, back, scaled, estimate] = [(); 4].map(|()| self.temp());
        let (limit, p) = (self.imm(0x0f80_0000), self.temp_pred());
        // Negative numbers are less, too; their root is NaN at any scale.
        self.isetp(p, &[LT, AND], x, limit);
        let (large, one, less) = (self.imm(0x6f80_0000), self.imm(1f32.to_bits()), self.imm(0x2780_0000));
        self.select(up, large, one, p);
        self.select(back, less, one, p);
        let flush: &[M] = if ftz { &[FTZ] } else { &[] };
        self.put(Op::FMUL, flush, &[(Role::D, scaled), (Role::A, x), (Role::B, up)]);
        self.put(Op::MUFU, &[MUFU_RSQ], &[(Role::D, estimate), (Role::A, scaled)]);
        let (half, nothing) = (self.imm(0.5f32.to_bits()), Operand::zero().negated());
        let half = self.in_reg(half);
        let g = self.ffma(scaled, estimate, nothing);
        let h = self.ffma(estimate, half, nothing);
        let error = self.ffma(g.negated(), h, half);
        let g = self.ffma(g, error, g);
        let h = self.ffma(h, error, h);
        let rest = self.ffma(g.negated(), g, scaled);
        let mut root = self.ffma(rest, h, g);
        if rounding.is_some() {
            let (rest, rounded) = (self.ffma(root.negated(), root, scaled), self.temp());
            self.put(
                Op::FFMA,
                rounding.as_slice(),
                &[(Role::D, rounded), (Role::A, rest), (Role::B, h), (Role::C, root)],
            );
            root = rounded;
        }
        let (special, p, chosen) = (self.temp(), self.temp_pred(), self.temp());
        self.put(Op::MUFU, &[MUFU_SQRT], &[(Role::D, special), (Role::A, scaled)]);
        self.put(Op::FSETP, &[FNUM, AND], &[(Role::Pu, p), (Role::A, root), (Role::B, root)]);
        self.select(chosen, root, special, p);
        self.put(Op::FMUL, &[], &[(Role::D, d), (Role::A, chosen), (Role::B, back)]);
    }

    /// The operand, scaled up where it is small, and the factor that scales its root (or, its reciprocal root) back.
    fn scaled_for_root(&mut self, x: Operand, back: u32) -> (Operand, Operand) {
        let (high, limit, p) = (self.words(x)[1], self.imm(SMALL_HIGH), self.temp_pred());
        self.isetp(p, &[LT, AND], high, limit);
        let (up, less, one) = (self.imm(UP_HIGH), self.imm(back), self.imm(ONE_HIGH));
        let factors = [up, less].map(|factor| {
            let high = self.temp();
            self.select(high, factor, one, p);
            self.pair_of([Operand::zero(), high])
        });
        (self.dmul(None, x, factors[0]), factors[1])
    }

    /// Root, and half the reciprocal root, by Goldschmidt's method.
    fn coupled_root(&mut self, x: Operand) -> (Operand, Operand) {
        let (estimate, half) = (self.mufu_high(MUFU_RSQ64H, x), self.double_constant(HALF_HIGH));
        let (mut g, mut h) = (self.dmul(None, x, estimate), self.dmul(None, estimate, half));
        for _ in 0..2 {
            let error = self.dfma(g.negated(), h, half);
            g = self.dfma(g, error, g);
            h = self.dfma(h, error, h);
        }
        (g, h)
    }

    fn root_f64(&mut self, d: Operand, x: Operand, rounding: Option<M>) {
        let (scaled, back) = self.scaled_for_root(x, BACK_HIGH);
        let (g, h) = self.coupled_root(scaled);
        let rest = self.dfma(g.negated(), g, scaled);
        let g = self.dfma(rest, h, g);
        let mut root = self.nearest_root(g, scaled);
        if rounding.is_some() {
            let (rest, rounded) = (self.dfma(root.negated(), root, scaled), self.temp_pair());
            self.dfma_into(rounded, rounding, rest, h, root);
            root = rounded;
        }
        let result = self.dmul(None, root, back);
        // Zeros and infinity are their own roots; of negative numbers and NaN, NaN came out.
        let (infinite, zero, own) =
            (self.double_constant(INFINITE_HIGH), self.dsetp(FEQ, x, Operand::zero()), self.temp_pred());
        self.put(Op::DSETP, &[FEQ, OR], &[(Role::Pu, own), (Role::A, x), (Role::B, infinite), (Role::Pp, zero)]);
        let result = self.select_pair(x, result, own);
        self.negative_is_nan(d, x, result);
    }

    /// The result, or where the operand is negative the NaN of an invalid operation.
    fn negative_is_nan(&mut self, d: Operand, x: Operand, result: Operand) {
        let (nan, negative) = (self.double_constant(NAN_HIGH), self.dsetp(FLT, x, Operand::zero()));
        self.select_into(d, nan, result, negative);
    }

    /// Of a number within one unit of a root and its two neighbours the nearest: x lies above the product with the lower
    /// neighbour and not above that with the upper one.
    fn nearest_root(&mut self, g: Operand, x: Operand) -> Operand {
        let mut root = g;
        for (step, cmp) in [(u32::MAX, FLE), (1, FGT)] {
            let (neighbour, by) = (self.temp_pair(), self.imm(step));
            let (to, from) = (self.words(neighbour), self.words(g));
            let upper = if step == 1 { Operand::zero() } else { by };
            self.add_long(to, from, [by, upper], false);
            let rest = self.dfma(neighbour.negated(), g, x);
            let p = self.dsetp(cmp, rest, Operand::zero());
            root = self.select_pair(neighbour, root, p);
        }
        root
    }

    /// `rcp.approx.ftz.f64` and `rsqrt.approx.f64`: the unit works on the high word; without `.ftz`, the whole number counts.
    pub fn approximate_double(&mut self, inst: &ast::Instruction) -> Lowered {
        let x = self.pair_source(&inst.operands[1], ScalarType::F64)?;
        let d = self.dest(&inst.operands[0])?;
        let result = match inst.op {
            PtxOp::Rcp => self.mufu_high(MUFU_RCP64H, x),
            PtxOp::Rsqrt if inst.mods.ftz => self.mufu_high(MUFU_RSQ64H, x),
            PtxOp::Rsqrt => self.refined_reciprocal_root(x),
            _ => return Err(Refusal::NotBuilt),
        };
        self.copy_value(d, result);
        Ok(())
    }

    /// Half the reciprocal root, doubled and scaled; where it is NaN, what the unit says of the operand (of zeros, infinity, negative numbers).
    fn refined_reciprocal_root(&mut self, x: Operand) -> Operand {
        let (scaled, back) = self.scaled_for_root(x, UP_HIGH - (256 << 20));
        let (special, (_, h)) = (self.mufu_high(MUFU_RSQ64H, scaled), self.coupled_root(scaled));
        let two = self.double_constant(ONE_HIGH + (1 << 20));
        let result = self.dmul(None, h, two);
        let result = self.dmul(None, result, back);
        let p = self.dsetp(FNUM, result, result);
        let (result, checked) = (self.select_pair(result, special, p), self.temp_pair());
        self.negative_is_nan(checked, x, result);
        checked
    }
}
