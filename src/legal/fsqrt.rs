//! Square roots, correctly rounded as in IEEE 754, and the approximate reciprocal functions of f64.
//!
//! Newton's method from MUFU.RSQ. An operand whose remainder would be subnormal is scaled up; a
//! root is never subnormal, so scaling back is exact. In f32 the last step is correct for every
//! mantissa and every estimate within the error bound of MUFU (all were tried); in f64 the
//! neighbours are tested.

use super::fdiv::{flushes, mode};
use crate::arrays::Each;
use crate::ori::build::float::ONE_HIGH;
use crate::ori::mods::*;
use crate::ori::{Code, Operand};
use crate::tables::{Op, Role};

/// f32: 2^-101, the least operand whose remainder is exact.
const LEAST_ROOTED: u32 = 0x0d00_0000;
/// f64: high word of 2^-970, the least operand whose remainder is exact.
const LEAST_ROOTED_HIGH: u32 = 0x0350_0000;
/// 0.375, 0.5, infinity and NaN as high words of f64.
const THREE_EIGHTHS_HIGH: u32 = 0x3fd8_0000;
const HALF_HIGH: u32 = 0x3fe0_0000;
const INFINITE_HIGH: u32 = 0x7ff0_0000;
const NAN_HIGH: u32 = 0xfff8_0000;
/// f64: operands below 2^-922 (this high word) are scaled by 2^512, their roots by 2^-256.
const SMALL_HIGH: u32 = 0x0650_0000;
const UP_HIGH: u32 = 0x5ff0_0000;
const BACK_HIGH: u32 = 0x2ff0_0000;

impl Code {
    /// `d = sqrt(x)` in f32. If the remainder is normal, the result is correct for every mantissa
    /// and the nearest estimate of its reciprocal root (all were tried); otherwise the operand is
    /// scaled.
    pub(super) fn root_f32(&mut self, d: Operand, x: Operand, rounding: Option<M>, ftz: bool) {
        let (p, last) = (self.temp_pred(), self.imm(0x7f7f_ffff - LEAST_ROOTED));
        let rank = self.plus(x, (LEAST_ROOTED as i32).wrapping_neg());
        self.isetp(p, &[GT, AND, U32], rank, last);
        let name = format!("__cuda_sm20_sqrt_{}_{}f32_slowpath", mode(rounding), flushes(ftz));
        self.seldom(
            p,
            (&name, &[x], d),
            |code| code.scaled_root_f32(d, x, rounding, ftz),
            |code| {
                let (estimate, nothing, half) = (code.temp(), Operand::zero().negated(), code.imm(0.5f32.to_bits()));
                let half = code.in_reg(half);
                code.mufu(MUFU_RSQ, estimate, x);
                let (g, h) = (code.ffma(x, estimate, nothing), code.ffma(estimate, half, nothing));
                let rest = code.ffma(g.negated(), g, x);
                let mut root = code.ffma(rest, h, g);
                if rounding.is_some() {
                    let (rest, rounded) = (code.ffma(root.negated(), root, x), code.temp());
                    let args = [(Role::D, rounded), (Role::A, rest), (Role::B, h), (Role::C, root)];
                    code.put(Op::FFMA, rounding.as_slice(), &args);
                    root = rounded;
                }
                code.copy(d, root);
            },
        );
    }

    fn scaled_root_f32(&mut self, d: Operand, x: Operand, rounding: Option<M>, ftz: bool) {
        let [up, back, scaled, estimate] = [(); 4].each(|()| self.temp());
        let (limit, p) = (self.imm(0x0f80_0000), self.temp_pred());
        // Negative numbers compare less too; their root is NaN at any scale.
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

    /// The operand, scaled up if it is small, and the factor that scales its root (or its
    /// reciprocal root) back.
    fn scaled_for_root(&mut self, x: Operand, back: u32) -> (Operand, Operand) {
        let (high, limit, p) = (self.words(x)[1], self.imm(SMALL_HIGH), self.temp_pred());
        self.isetp(p, &[LT, AND], high, limit);
        let (up, less, one) = (self.imm(UP_HIGH), self.imm(back), self.imm(ONE_HIGH));
        let factors = [up, less].each(|factor| {
            let high = self.temp();
            self.select(high, factor, one, p);
            self.pair_of([Operand::zero(), high])
        });
        (self.dmul(None, x, factors[0]), factors[1])
    }

    /// The root and half the reciprocal root, by Goldschmidt's method.
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

    /// `d = sqrt(x)` in f64. One third-order step turns the 20 bits of MUFU into the reciprocal
    /// root; its product with x, corrected once, is the nearest root (tried with all operands whose
    /// roots are close to the midpoint between two numbers). Operands outside the range are scaled.
    pub(super) fn root_f64(&mut self, d: Operand, x: Operand, rounding: Option<M>) {
        let (high, p, limit) = (self.words(x)[1], self.temp_pred(), self.imm(INFINITE_HIGH - LEAST_ROOTED_HIGH));
        let low = self.plus(high, (LEAST_ROOTED_HIGH as i32).wrapping_neg());
        self.isetp(p, &[GE, AND, U32], low, limit);
        let name = match rounding {
            None => "__cuda_sm20_dsqrt_rn_f64_mediumpath_v1".to_string(),
            _ => format!("__cuda_sm20_dsqrt_{}_f64", mode(rounding)),
        };
        self.seldom(
            p,
            (&name, &[x], d),
            |code| code.scaled_root_f64(d, x, rounding),
            |code| {
                let estimate = code.temp_pair();
                let [to_low, to_high] = code.words(estimate);
                code.copy(to_low, low);
                code.mufu(MUFU_RSQ64H, to_high, high);
                let constants = [ONE_HIGH, HALF_HIGH, THREE_EIGHTHS_HIGH].each(|high| code.double_constant(high));
                let square = code.dmul(None, estimate, estimate);
                let error = code.dfma(x, square.negated(), constants[0]);
                // 1 / sqrt(1 - error) = 1 + error * (1/2 + 3/8 error)
                let factor = code.dfma(error, constants[2], constants[1]);
                let step = code.dmul(None, estimate, error);
                let y = code.dfma(factor, step, estimate);
                let (g, h) = (code.dmul(None, x, y), code.dmul(None, y, constants[1]));
                let rest = code.dfma(g.negated(), g, x);
                let mut root = code.dfma(rest, h, g);
                if rounding.is_some() {
                    let (rest, rounded) = (code.dfma(root.negated(), root, x), code.temp_pair());
                    code.dfma_into(rounded, rounding, rest, h, root);
                    root = rounded;
                }
                code.copy_value(d, root);
            },
        );
    }

    fn scaled_root_f64(&mut self, d: Operand, x: Operand, rounding: Option<M>) {
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
        // Zeros and infinity are their own roots; negative numbers and NaN have already given NaN.
        let (infinite, zero, own) =
            (self.double_constant(INFINITE_HIGH), self.dsetp(FEQ, x, Operand::zero()), self.temp_pred());
        self.put(Op::DSETP, &[FEQ, OR], &[(Role::Pu, own), (Role::A, x), (Role::B, infinite), (Role::Pp, zero)]);
        let result = self.select_pair(x, result, own);
        self.negative_is_nan(d, x, result);
    }

    /// The result, or the NaN of an invalid operation if the operand is negative.
    fn negative_is_nan(&mut self, d: Operand, x: Operand, result: Operand) {
        let (nan, negative) = (self.double_constant(NAN_HIGH), self.dsetp(FLT, x, Operand::zero()));
        self.select_into(d, nan, result, negative);
    }

    /// The nearest root among a number within one unit of the root and its two neighbours: x is
    /// above the product with the lower neighbour and not above that with the upper one.
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

    /// Half the reciprocal root, doubled and scaled; if it is NaN, the result of MUFU for the
    /// operand (zero, infinity, negative).
    pub(super) fn refined_reciprocal_root(&mut self, x: Operand) -> Operand {
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
