//! Quotients of floats, rounded as IEEE 754 says: `div` and `rcp` of f32 and f64 with a rounding mode, and small builders for float sequences.
//!
//! Input: operands of any kind, subnormal, infinite, NaN. Output: a fast way by Newton's method from MUFU, whose last step rounds a quotient that is
//! right to half a unit, and a slow way for all operands that the fast one cannot take: in f64 for f32; for f64 with
//! scaled mantissas, and by integers where the result is subnormal. Nothing depends on MUFU beyond its bound of error.

use super::builder::{Builder, Lowered};
use super::mods::*;
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{Op as PtxOp, Rounding, ScalarType};
use crate::tables::{Op, Role};

/// The exponent field of f64 in its high word.
const EXPONENT: u32 = 0x7ff;
/// High word of 1.0.
pub(super) const ONE_HIGH: u32 = 0x3ff0_0000;
const SIGN: u32 = 1 << 31;
/// A subnormal f64 times 2 to this is normal.
const LIFT: u32 = 54;
/// A power of two whose product with any mantissa overflows, and which two factors can still make.
const TOO_LARGE: u32 = 1100;

/// Rounding of a last step.
pub(super) fn last_rounding(rounding: Option<Rounding>) -> Option<M> {
    match rounding {
        Some(Rounding::Rm) => Some(RM),
        Some(Rounding::Rp) => Some(RP),
        Some(Rounding::Rz) => Some(RZ),
        _ => None,
    }
}

impl Builder<'_> {
    /// `a * b + c` in f32, rounded to nearest.
    pub fn ffma(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        let d = self.temp();
        self.put(Op::FFMA, &[], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
        d
    }

    /// `a * b + c` in f64, rounded to nearest.
    pub fn dfma(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        let d = self.temp_pair();
        self.dfma_into(d, None, a, b, c);
        d
    }

    pub fn dfma_into(&mut self, d: Operand, rounding: Option<M>, a: Operand, b: Operand, c: Operand) {
        self.put(Op::DFMA, rounding.as_slice(), &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
    }

    /// `a * b` in f64.
    pub fn dmul(&mut self, rounding: Option<M>, a: Operand, b: Operand) -> Operand {
        let d = self.temp_pair();
        self.put(Op::DMUL, rounding.as_slice(), &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        d
    }

    /// A constant of f64 with a zero low word, in a pair.
    pub fn double_constant(&mut self, high: u32) -> Operand {
        let high = self.imm(high);
        self.pair_of([Operand::zero(), high])
    }

    /// A function of the high word of an f64: the high word of the result, its low word zero.
    pub fn mufu_high(&mut self, function: M, a: Operand) -> Operand {
        let (high, of) = (self.temp(), self.words(a)[1]);
        self.put(Op::MUFU, &[function], &[(Role::D, high), (Role::A, of)]);
        self.pair_of([Operand::zero(), high])
    }

    /// Both words of `p ? a : b`.
    pub fn select_pair(&mut self, a: Operand, b: Operand, p: Operand) -> Operand {
        let d = self.temp_pair();
        self.select_into(d, a, b, p);
        d
    }

    pub fn select_into(&mut self, d: Operand, a: Operand, b: Operand, p: Operand) {
        let (d, a, b) = (self.words(d), self.words(a), self.words(b));
        (0..2).for_each(|i| self.select(d[i], a[i], b[i], p));
    }

    /// A predicate from a comparison of f64.
    pub fn dsetp(&mut self, cmp: M, a: Operand, b: Operand) -> Operand {
        let p = self.temp_pred();
        self.put(Op::DSETP, &[cmp, AND], &[(Role::Pu, p), (Role::A, a), (Role::B, b)]);
        p
    }

    /// A comparison of words joined to another predicate.
    pub fn isetp_with(&mut self, mods: &[M], a: Operand, b: Operand, with: Operand) -> Operand {
        let p = self.temp_pred();
        self.put(Op::ISETP, mods, &[(Role::Pu, p), (Role::A, a), (Role::B, b), (Role::Pp, with)]);
        p
    }

    /// A sum with a constant, in a fresh register.
    pub fn plus(&mut self, a: Operand, value: i32) -> Operand {
        let (d, value) = (self.temp(), self.imm(value as u32));
        self.add(d, a, value);
        d
    }

    /// The exponent field of an f64.
    pub fn exponent_of(&mut self, a: Operand) -> Operand {
        let (high, shifted, field) = (self.words(a)[1], self.temp(), self.temp());
        let (by, mask) = (self.imm(20), self.imm(EXPONENT));
        self.shf(&SHF_R_U32_HI, shifted, Operand::zero(), by, high);
        self.and(field, shifted, mask);
        field
    }

    /// `div` and `rcp` with a rounding mode.
    pub fn exact_quotient(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let rounding = last_rounding(inst.mods.rounding);
        let reciprocal = inst.op == PtxOp::Rcp;
        let divisor = &inst.operands[if reciprocal { 1 } else { 2 }];
        let d = self.dest(&inst.operands[0])?;
        if ty == ScalarType::F64 {
            let b = self.pair_source(divisor, ty)?;
            let a = if reciprocal { self.double_constant(ONE_HIGH) } else { self.pair_source(&inst.operands[1], ty)? };
            self.quotient_f64(d, a, b, rounding);
        } else {
            let a = if reciprocal { self.imm(1f32.to_bits()) } else { self.source(&inst.operands[1], ty)? };
            let (a, b) = (self.in_reg(a), self.source_reg(divisor, ty)?);
            self.quotient_f32(d, a, b, rounding, inst.mods.ftz);
        }
        Ok(())
    }

    /// A source of 64 bits in a pair of registers, zero included.
    pub fn pair_source(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        let value = self.source_pair(operand, ty)?;
        Ok(self.never_rz(value))
    }

    fn never_rz(&mut self, value: Operand) -> Operand {
        if value == Operand::zero() { self.pair_of([value; 2]) } else { value }
    }

    /// `d = a / b` in f32. The reciprocal is right to half a unit after two steps (for all mantissas but that of ones), so that the third
    /// quotient is the nearest one; its remainder is exact and rounds it in any other way.
    fn quotient_f32(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>, ftz: bool) {
        let [fast, slow, done] = [(); 3].map(|()| self.f.new_block());
        let guard = self.skip_unless_guarded(done);
        let p = self.temp_pred();
        self.put(Op::FCHK, &[], &[(Role::Pu, p), (Role::A, a), (Role::B, b)]);
        let (filled, upper, all) = (self.temp(), self.imm(0xff80_0000), self.imm(u32::MAX));
        self.lop3(filled, b, upper, Operand::zero(), super::logic::LUT_OR);
        let p = self.isetp_with(&[EQ, OR, U32], filled, all, p);
        self.branch_if(p, slow, fast);
        let (estimate, one) = (self.temp(), self.imm(1f32.to_bits()));
        let one = self.in_reg(one);
        self.put(Op::MUFU, &[MUFU_RCP], &[(Role::D, estimate), (Role::A, b)]);
        let mut y = estimate;
        for _ in 0..2 {
            let error = self.ffma(b.negated(), y, one);
            y = self.ffma(y, error, y);
        }
        let mut q = self.ffma(a, y, Operand::zero().negated());
        for _ in 0..if rounding.is_some() { 2 } else { 1 } {
            let rest = self.ffma(b.negated(), q, a);
            q = self.ffma(rest, y, q);
        }
        let rest = self.ffma(b.negated(), q, a);
        self.put(Op::FFMA, rounding.as_slice(), &[(Role::D, d), (Role::A, rest), (Role::B, y), (Role::C, q)]);
        self.enter_after(done, slow);
        self.quotient_by_f64(d, a, b, rounding, ftz);
        self.enter(done);
        self.guard = guard;
    }

    /// `d = a / b` in f32 through f64, where no f32 is subnormal and no quotient out of range. A quotient of f32 that is no number of the
    /// result's format (subnormals included) is further from all of them and from the middle between two than the error of f64.
    fn quotient_by_f64(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>, ftz: bool) {
        let flush: &[M] = if ftz { &[FTZ] } else { &[] };
        let up: Vec<M> = [TO_F64, float_src(ScalarType::F32)].into_iter().chain(flush.iter().copied()).collect();
        let [a, b] = [a, b].map(|x| {
            let wide = self.temp_pair();
            self.put(Op::F2F_X, &up, &[(Role::D, wide), (Role::A, x)]);
            wide
        });
        let one = self.double_constant(ONE_HIGH);
        let estimate = self.mufu_high(MUFU_RCP64H, b);
        // Zeros, infinities and NaN: the estimate is exact enough for them.
        let special = self.dmul(None, a, estimate);
        let mut y = estimate;
        for _ in 0..2 {
            let error = self.dfma(b.negated(), y, one);
            y = self.dfma(y, error, y);
        }
        let first = self.dmul(None, a, y);
        let rest = self.dfma(b.negated(), first, a);
        let q = self.dfma(rest, y, first);
        let ordinary = self.dsetp(FGT, q.absolute(), Operand::zero());
        let result = self.select_pair(q, special, ordinary);
        let down = [float_dst(ScalarType::F32), float_src(ScalarType::F64)];
        let down: Vec<M> = down.into_iter().chain(rounding).chain(flush.iter().copied()).collect();
        self.put(Op::F2F_X, &down, &[(Role::D, d), (Role::A, result)]);
    }

    /// `d = a / b` in f64.
    fn quotient_f64(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>) {
        let [fast, slow, done] = [(); 3].map(|()| self.f.new_block());
        let guard = self.skip_unless_guarded(done);
        let p = self.out_of_range(a, b);
        self.branch_if(p, slow, fast);
        let (y, q) = self.nearest_quotient(a, b, rounding.is_some());
        let rest = self.dfma(b.negated(), q, a);
        self.dfma_into(d, rounding, rest, y, q);
        self.enter_after(done, slow);
        self.scaled_quotient(d, a, b, rounding);
        self.enter(done);
        self.guard = guard;
    }

    /// Whether a quotient, its divisor's reciprocal or a remainder could leave the range of normal numbers: rather too often.
    fn out_of_range(&mut self, a: Operand, b: Operand) -> Operand {
        let (xa, xb) = (self.exponent_of(a), self.exponent_of(b));
        let (low_a, low_b) = (self.plus(xa, -64), self.plus(xb, -4));
        let distance = self.temp();
        self.add(distance, xa, xb.negated());
        let distance = self.plus(distance, 1000);
        let mut p = Operand::never();
        for (value, limit) in [(low_a, 1980), (low_b, 2036), (distance, 2000)] {
            let limit = self.imm(limit);
            p = self.isetp_with(&[GE, OR, U32], value, limit, p);
        }
        p
    }

    /// The divisor's reciprocal to half a unit, and the quotient: the nearest, or one whose remainder rounds to it.
    fn nearest_quotient(&mut self, a: Operand, b: Operand, to_nearest: bool) -> (Operand, Operand) {
        let estimate = self.mufu_high(MUFU_RCP64H, b);
        self.quotient_from(estimate, a, b, to_nearest)
    }

    fn quotient_from(&mut self, estimate: Operand, a: Operand, b: Operand, to_nearest: bool) -> (Operand, Operand) {
        let one = self.double_constant(ONE_HIGH);
        let mut y = estimate;
        // From 20 bits to 40, to 53, to half a unit.
        for _ in 0..3 {
            let error = self.dfma(b.negated(), y, one);
            y = self.dfma(y, error, y);
        }
        let y = self.unless_all_ones(y, b);
        let mut q = self.dmul(None, a, y);
        for _ in 0..if to_nearest { 2 } else { 1 } {
            let rest = self.dfma(b.negated(), q, a);
            q = self.dfma(rest, y, q);
        }
        (y, q)
    }

    /// The reciprocal of a mantissa of ones lies so close above the middle between two numbers that Newton's method takes the lower one.
    fn unless_all_ones(&mut self, y: Operand, b: Operand) -> Operand {
        let ([low, high], ones, all) = (self.words(b), self.temp(), self.imm(u32::MAX));
        let (upper, p, one) = (self.imm(0xfff0_0000), self.temp_pred(), self.imm(1));
        // a & (b | c)
        self.lop3(ones, low, upper, high, 0xf0 & (0xcc | 0xaa));
        self.isetp(p, &[EQ, AND, U32], ones, all);
        let (y, fixed) = (self.words(y), self.temp_pair());
        let to = self.words(fixed);
        self.select(to[0], one, y[0], p);
        self.copy(to[1], y[1]);
        fixed
    }

    /// The mantissa of a number, with its sign, and its exponent; zeros, infinities and NaN as they are.
    fn mantissa_and_exponent(&mut self, a: Operand) -> (Operand, Operand) {
        let (field, factor) = (self.exponent_of(a), self.double_constant(ONE_HIGH + (LIFT << 20)));
        let lifted = self.dmul(None, a, factor);
        let p = self.temp_pred();
        self.isetp(p, &[EQ, AND, U32], field, Operand::zero());
        let normal = self.select_pair(lifted, a, p);
        let (raise, none, less) = (self.imm(LIFT), Operand::zero(), self.temp());
        self.select(less, raise, none, p);
        let field = self.exponent_of(normal);
        let exponent = self.temp();
        self.add(exponent, field, less.negated());
        let rank = self.plus(field, -1);
        let limit = self.imm(EXPONENT - 1);
        let finite = self.isetp_with(&[LT, AND, U32], rank, limit, Operand::always());
        let [low, high] = self.words(normal);
        let (bare, mantissa, keep, unit) = (self.temp(), self.temp(), self.imm(SIGN | 0xf_ffff), self.imm(ONE_HIGH));
        self.and(bare, high, keep);
        self.lop3(mantissa, bare, unit, Operand::zero(), super::logic::LUT_OR);
        let pair = self.temp_pair();
        let to = self.words(pair);
        self.copy(to[0], low);
        self.select(to[1], mantissa, high, finite);
        (pair, exponent)
    }

    /// The quotient of scaled mantissas, scaled back: by two factors, or, where it is subnormal, by integers.
    fn scaled_quotient(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>) {
        let ((a, exponent_a), (b, exponent_b)) = (self.mantissa_and_exponent(a), self.mantissa_and_exponent(b));
        let by = self.temp();
        self.add(by, exponent_a, exponent_b.negated());
        let estimate = self.mufu_high(MUFU_RCP64H, b);
        let special = self.dmul(None, a, estimate);
        let (y, nearest) = self.quotient_from(estimate, a, b, true);
        let rest = self.dfma(b.negated(), nearest, a);
        let ordinary = self.dsetp(FGT, nearest.absolute(), Operand::zero());
        let truncated = self.temp_pair();
        self.dfma_into(truncated, Some(RZ), rest, y, nearest);
        let small = self.subnormal(truncated, rest, by, rounding);
        let q = match rounding {
            None => nearest,
            Some(_) => {
                let rounded = self.temp_pair();
                self.dfma_into(rounded, rounding, rest, y, nearest);
                rounded
            }
        };
        let scaled = self.times_power(q, by, rounding);
        let (field, exponent, one, p) = (self.exponent_of(q), self.temp(), self.imm(1), self.temp_pred());
        self.add(exponent, field, by);
        self.isetp(p, &[LT, AND], exponent, one);
        let result = self.select_pair(small, scaled, p);
        self.select_into(d, result, special, ordinary);
    }

    /// `a` times 2 to a power, where the result is normal or too large.
    fn times_power(&mut self, a: Operand, power: Operand, rounding: Option<M>) -> Operand {
        let (limit, p, bounded) = (self.imm(TOO_LARGE), self.temp_pred(), self.temp());
        self.isetp(p, &[LT, AND], power, limit);
        self.select(bounded, power, limit, p);
        let (half, rest, one) = (self.temp(), self.temp(), self.imm(1));
        self.shf(&SHF_R_S32_HI, half, Operand::zero(), one, bounded);
        self.add(rest, bounded, half.negated());
        let mut result = a;
        for part in [half, rest] {
            let (high, place, unit) = (self.temp(), self.imm(20), self.imm(ONE_HIGH));
            self.shf(&SHF_L, high, part, place, Operand::zero());
            let factor_high = self.temp();
            self.add(factor_high, high, unit);
            let factor = self.pair_of([Operand::zero(), factor_high]);
            result = self.dmul(rounding, result, factor);
        }
        result
    }

    /// A truncated quotient of mantissas times 2 to a power, as a subnormal number: its integer mantissa shifted down and rounded by the bits
    /// that fall off, with one more for what the truncation left.
    fn subnormal(&mut self, truncated: Operand, rest: Operand, power: Operand, rounding: Option<M>) -> Operand {
        let [low, high] = self.words(truncated);
        let (field, amount) = (self.exponent_of(truncated), self.temp());
        self.add(amount, field.negated(), power.negated());
        let (one, most, p, shift) = (self.imm(1), self.imm(63), self.temp_pred(), self.temp());
        let amount = self.plus(amount, 1);
        self.isetp(p, &[LT, AND], amount, most);
        self.select(shift, amount, most, p);
        let (fraction, mantissa, implicit) = (self.temp(), self.temp_pair(), self.imm(1 << 20));
        let mask = self.imm(0xf_ffff);
        self.and(fraction, high, mask);
        let to = self.words(mantissa);
        self.copy(to[0], low);
        self.lop3(to[1], fraction, implicit, Operand::zero(), super::logic::LUT_OR);
        let (kept, lost, back, width) = (self.temp_pair(), self.temp_pair(), self.temp(), self.imm(64));
        self.shift_long(kept, mantissa, shift, false, false);
        self.add(back, shift.negated(), width);
        self.shift_long(lost, mantissa, back, true, false);
        let ([lost_low, lost_high], [kept_low, kept_high]) = (self.words(lost), self.words(kept));
        let more = self.temp_pred();
        self.isetp(more, &[NE, AND, U32], lost_low, Operand::zero());
        let any = self.temp_pred();
        let args = [(Role::Pu, any), (Role::A, rest), (Role::B, Operand::zero()), (Role::Pp, more)];
        self.put(Op::DSETP, &[FNEU, OR], &args);
        let (bit, off) = (self.temp(), self.temp());
        self.select(bit, one, Operand::zero(), any);
        self.lop3(off, lost_high, bit, Operand::zero(), super::logic::LUT_OR);
        let (up, increment) = (self.rounds_up(off, kept_low, high, rounding), self.temp());
        self.select(increment, one, Operand::zero(), up);
        let result = self.temp_pair();
        let words = self.words(result);
        self.add_long(words, [kept_low, kept_high], [increment, Operand::zero()], false);
        let sign = self.imm(SIGN);
        // a | b & c
        self.lop3(words[1], words[1], sign, high, 0xf0 | (0xcc & 0xaa));
        result
    }

    /// Whether bits that fell off (a half is the highest one) round a magnitude up.
    fn rounds_up(&mut self, off: Operand, kept: Operand, sign: Operand, rounding: Option<M>) -> Operand {
        if rounding == Some(RZ) {
            return Operand::never();
        }
        if rounding.is_none() {
            let (one, half, tie) = (self.imm(1), self.imm(SIGN), self.temp());
            // Half and an odd number: more than half. a | b & c
            self.lop3(tie, off, one, kept, 0xf0 | (0xcc & 0xaa));
            return self.isetp_with(&[GT, AND, U32], tie, half, Operand::always());
        }
        let away = self.temp_pred();
        self.isetp(away, &[if rounding == Some(RP) { GE } else { LT }, AND], sign, Operand::zero());
        self.isetp_with(&[NE, AND, U32], off, Operand::zero(), away)
    }
}
