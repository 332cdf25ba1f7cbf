//! Float division, correctly rounded as in IEEE 754: `div` and `rcp` of f32 and f64 with a rounding
//! mode, `div.full`, and small builders for float sequences.
//!
//! All operands are handled: subnormal, infinite, NaN. The fast path is Newton's method from MUFU;
//! its last step rounds a quotient that is within half a unit in the last place. The slow path,
//! which is a function of its own where the code may call one ([`super::slow_path`]), takes all
//! operands that the fast path cannot: in f64 for f32; with scaled mantissas for f64, and
//! with integers if the result is subnormal. Correctness depends on MUFU only through its error
//! bound.

use crate::arrays::Each;
use crate::ori::build::float::{EXPONENT, ONE_HIGH};
use crate::ori::build::int::LUT_OR;
use crate::ori::mods::*;
use crate::ori::{Code, Operand};
use crate::tables::ptx::ScalarType;
use crate::tables::{Op, Role};

pub(super) const SIGN: u32 = 1 << 31;
/// A subnormal f64 times 2 to this power is normal.
const LIFT: u32 = 54;
/// A power of two whose product with any mantissa overflows, and which two factors can still
/// represent.
const TOO_LARGE: u32 = 1100;

/// 2^126: greater divisors have subnormal reciprocals.
const LARGEST_WITH_NORMAL_RECIPROCAL: f32 = 8.507_059e37;

/// 2^64: the product with a subnormal f32 is normal, and its reciprocal a number.
const SCALE: f32 = 18_446_744_073_709_551_616.0;

/// An f64 dividend has an exact remainder if its high word, read as f32, is at least this.
const LEAST_DIVIDEND: u32 = 0x0360_0000;
/// High word of the least normal f64.
const LEAST_HIGH: u32 = 0x0010_0000;
/// `LOW_BIAS` is added to a divisor's high word; its reciprocal is normal if the sum, as f32
/// without its sign, is at least `LEAST_LOW`.
const LOW_BIAS: i32 = 0x0030_0402;
const LEAST_LOW: u32 = 0x0040_0402;

/// A rounding mode in the names of helpers.
pub(super) fn mode(rounding: Option<M>) -> &'static str {
    match rounding {
        None => "rn",
        Some(RM) => "rd",
        Some(RP) => "ru",
        Some(_) => "rz",
    }
}

/// Whether subnormals are zeros, in the names of helpers.
pub(super) fn flushes(ftz: bool) -> &'static str {
    if ftz { "ftz_" } else { "" }
}

impl Code {
    /// `d = a / b` in f32. From any estimate within one unit, one step finds the nearest reciprocal
    /// of every mantissa (all were tried with both estimates), and its quotient needs one
    /// correction (all divisors were tried with the dividends whose quotients are closest to the
    /// midpoint between two numbers).
    pub(super) fn quotient_f32(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>, ftz: bool) {
        let name = format!("__cuda_sm20_div_{}_{}f32", mode(rounding), flushes(ftz));
        self.quotient_f32_or(d, [a, b], rounding, ftz, (&name, &[a, b], d));
    }

    /// `d = 1 / b` in f32.
    pub(super) fn reciprocal_f32(&mut self, d: Operand, b: Operand, rounding: Option<M>, ftz: bool) {
        let one = self.imm(1f32.to_bits());
        let one = self.in_reg(one);
        let name = format!("__cuda_sm20_rcp_{}_{}f32_slowpath", mode(rounding), flushes(ftz));
        self.quotient_f32_or(d, [one, b], rounding, ftz, (&name, &[b], d));
    }

    /// `d = a / b` in f32, or the call of a slow path.
    fn quotient_f32_or(
        &mut self,
        d: Operand,
        [a, b]: [Operand; 2],
        rounding: Option<M>,
        ftz: bool,
        call: (&str, &[Operand], Operand),
    ) {
        let p = self.temp_pred();
        self.put(Op::FCHK, &[], &[(Role::Pu, p), (Role::A, a), (Role::B, b)]);
        self.seldom(
            p,
            call,
            |code| code.rare_quotient(d, a, b, rounding, ftz),
            |code| {
                let (estimate, one) = (code.temp(), code.imm(1f32.to_bits()));
                let one = code.in_reg(one);
                code.mufu(MUFU_RCP, estimate, b);
                let error = code.ffma(b.negated(), estimate, one);
                // Round the square up: otherwise a mantissa of ones, estimated from below, has a
                // reciprocal at the midpoint between two numbers.
                let more = code.temp();
                code.put(Op::FFMA, &[RP], &[(Role::D, more), (Role::A, error), (Role::B, error), (Role::C, error)]);
                let y = code.ffma(estimate, more, estimate);
                let first = code.ffma(a, y, Operand::zero().negated());
                let rest = code.ffma(b.negated(), first, a);
                let mut q = code.ffma(rest, y, first);
                if rounding.is_some() {
                    let (rest, rounded) = (code.ffma(b.negated(), q, a), code.temp());
                    let args = [(Role::D, rounded), (Role::A, rest), (Role::B, y), (Role::C, q)];
                    code.put(Op::FFMA, rounding.as_slice(), &args);
                    q = rounded;
                }
                code.copy(d, q);
            },
        );
    }

    /// `d = a / b` in f32 within two units in the last place: if the divisor has no normal
    /// reciprocal, both operands are scaled. Quotients of one divisor share all but two products.
    pub(super) fn full_quotient(&mut self, d: Operand, a: Operand, b: Operand, ftz: bool) {
        let mods: &[M] = if ftz { &[FTZ] } else { &[] };
        let (normal, large) =
            (self.is_normal(b), self.compare_float(FGT, b.absolute(), LARGEST_WITH_NORMAL_RECIPROCAL));
        let [one, less, more] = [1f32, 0.25, 16_777_216.0].each(|factor| self.imm(factor.to_bits()));
        let (one, usual, factor) = (self.in_reg(one), self.temp(), self.temp());
        self.select(usual, one, more, normal);
        self.select(factor, usual, less, large.inverted());
        let [a, b] = [a, b].each(|x| {
            let scaled = self.temp();
            self.fmul(mods, scaled, factor, x);
            scaled
        });
        let inverse = self.temp();
        self.mufu(MUFU_RCP, inverse, b);
        self.fmul(mods, d, inverse, a);
    }

    /// `d = a / b` in f32 for what FCHK rejects. Zeros, infinite divisors and NaN, which programs
    /// divide often, need no f64, whose pipe is slow on many targets: there the product with the
    /// reciprocal is exact. The divisor is scaled so that its reciprocal is zero or infinite only
    /// where the quotient is.
    fn rare_quotient(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>, ftz: bool) {
        let flush: &[M] = if ftz { &[FTZ] } else { &[] };
        let (infinite, up) = (self.imm(f32::INFINITY.to_bits()), self.imm(SCALE.to_bits()));
        let mut exact = Operand::NULL;
        for (x, limit) in [(b.absolute(), infinite), (b, Operand::zero()), (a, Operand::zero())] {
            let p = self.temp_pred();
            let mods: Vec<M> = [FEQU, OR].into_iter().chain(flush.iter().copied()).collect();
            let before = if exact.is_null() { Operand::never() } else { exact };
            self.put(Op::FSETP, &mods, &[(Role::Pu, p), (Role::A, x), (Role::B, limit), (Role::Pp, before)]);
            exact = p;
        }
        self.either(
            exact,
            |code| {
                let (scaled, inverse) = (code.temp(), code.temp());
                code.fmul(flush, scaled, b, up);
                code.mufu(MUFU_RCP, inverse, scaled);
                code.fmul(flush, d, a, inverse);
            },
            |code| code.quotient_by_f64(d, a, b, rounding, ftz),
        );
    }

    /// `d = a / b` in f32, computed in f64, in which no f32 is subnormal and no quotient out of
    /// range. A quotient of two f32 that is not exactly a number of the result's format (subnormals
    /// included) is further from all of them, and from the midpoints between them, than the error
    /// of the f64 computation.
    fn quotient_by_f64(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>, ftz: bool) {
        let flush: &[M] = if ftz { &[FTZ] } else { &[] };
        let up: Vec<M> = [TO_F64, float_src(ScalarType::F32)].into_iter().chain(flush.iter().copied()).collect();
        let [a, b] = [a, b].each(|x| {
            let wide = self.temp_pair();
            self.put(Op::F2F_X, &up, &[(Role::D, wide), (Role::A, x)]);
            wide
        });
        let one = self.double_constant(ONE_HIGH);
        let estimate = self.mufu_high(MUFU_RCP64H, b);
        // The estimate is accurate enough for zeros, infinities and NaN.
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

    /// `d = a / b` in f64. The quotient is always computed, and used unless it or an operand left
    /// the range of normal numbers.
    pub(super) fn quotient_f64(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>) {
        let ([_, high_a], [_, high_b], one) = (self.words(a), self.words(b), self.imm(1));
        let y = self.nearest_reciprocal(b, one);
        let first = self.dmul(None, a, y);
        let rest = self.dfma(b.negated(), first, a);
        let q = self.dfma(y, rest, first);
        // High words read as f32 are ordered as the f64 are; those of large and special numbers are
        // NaN, which a product with zero keeps.
        let (large_a, p, limits) =
            (self.temp_pred(), self.temp_pred(), [LEAST_DIVIDEND, LEAST_HIGH].each(|x| self.imm(x)));
        let (ordinary, high_q) = (self.temp(), self.words(q)[1]);
        self.put(Op::FSETP, &[FGEU, AND], &[(Role::Pu, large_a), (Role::A, high_a.absolute()), (Role::B, limits[0])]);
        self.put(
            Op::FFMA,
            &[],
            &[(Role::D, ordinary), (Role::A, Operand::zero()), (Role::B, high_b), (Role::C, high_q)],
        );
        let args = [(Role::Pu, p), (Role::A, ordinary.absolute()), (Role::B, limits[1]), (Role::Pp, large_a)];
        self.put(Op::FSETP, &[FGT, AND], &args);
        let name = match rounding {
            None => "__cuda_sm20_div_rn_f64_full".to_string(),
            _ => format!("__cuda_sm20_div_{}_f64_v2", mode(rounding)),
        };
        self.seldom(
            p.inverted(),
            (&name, &[a, b], d),
            |code| code.scaled_quotient(d, a, b, rounding),
            |code| {
                let q = code.rounded_quotient(q, y, a, b, rounding);
                code.copy_value(d, q);
            },
        );
    }

    /// Rounds a nearest quotient in another mode, by its remainder.
    fn rounded_quotient(&mut self, q: Operand, y: Operand, a: Operand, b: Operand, rounding: Option<M>) -> Operand {
        if rounding.is_none() {
            return q;
        }
        let (rest, rounded) = (self.dfma(b.negated(), q, a), self.temp_pair());
        self.dfma_into(rounded, rounding, rest, y, q);
        rounded
    }

    /// `d = 1 / b` in f64. The low word of the estimate is made from the divisor's high word, and
    /// tells whether the divisor is in the range in which the reciprocal is normal.
    pub(super) fn reciprocal_f64(&mut self, d: Operand, b: Operand, rounding: Option<M>) {
        let (high, p, limit) = (self.words(b)[1], self.temp_pred(), self.imm(LEAST_LOW));
        let low = self.plus(high, LOW_BIAS);
        let y = self.nearest_reciprocal(b, low);
        self.put(Op::FSETP, &[FGEU, AND], &[(Role::Pu, p), (Role::A, low.absolute()), (Role::B, limit)]);
        let name = match rounding {
            None => "__cuda_sm20_dblrcp_rn_slowpath_v3".to_string(),
            _ => format!("__cuda_sm20_rcp_{}_f64", mode(rounding)),
        };
        self.seldom(
            p.inverted(),
            (&name, &[b], d),
            |code| code.reciprocal_of_any(d, b, rounding),
            |code| {
                let one = code.double_constant(ONE_HIGH);
                let y = code.rounded_quotient(y, y, one, b, rounding);
                code.copy_value(d, y);
            },
        );
    }

    /// The reciprocal within half a unit, from the 20 bits of MUFU and a low word that makes it
    /// slightly too large: the reciprocal of a mantissa of ones is so close above the midpoint
    /// between two numbers that Newton's method from below yields the lower one.
    fn nearest_reciprocal(&mut self, b: Operand, low: Operand) -> Operand {
        let (estimate, one) = (self.temp_pair(), self.double_constant(ONE_HIGH));
        let ([to_low, to_high], high) = (self.words(estimate), self.words(b)[1]);
        self.copy(to_low, low);
        self.mufu(MUFU_RCP64H, to_high, high);
        let error = self.dfma(b.negated(), estimate, one);
        // (1 + error + error²), so 20 bits become 60; then within half a unit.
        let error = self.dfma(error, error, error);
        let y = self.dfma(estimate, error, estimate);
        let error = self.dfma(b.negated(), y, one);
        self.dfma(y, error, y)
    }

    /// A mantissa's reciprocal within half a unit, from the 20 bits of MUFU.
    pub(super) fn reciprocal_from(&mut self, estimate: Operand, b: Operand) -> Operand {
        let one = self.double_constant(ONE_HIGH);
        let mut y = estimate;
        // From 20 bits to 40, to 53, to within half a unit.
        for _ in 0..3 {
            let error = self.dfma(b.negated(), y, one);
            y = self.dfma(y, error, y);
        }
        self.unless_all_ones(y, b)
    }

    /// The divisor's reciprocal within half a unit, and the quotient: the nearest, or one whose
    /// remainder determines the nearest.
    fn quotient_from(&mut self, estimate: Operand, a: Operand, b: Operand, to_nearest: bool) -> (Operand, Operand) {
        let y = self.reciprocal_from(estimate, b);
        let mut q = self.dmul(None, a, y);
        for _ in 0..if to_nearest { 2 } else { 1 } {
            let rest = self.dfma(b.negated(), q, a);
            q = self.dfma(rest, y, q);
        }
        (y, q)
    }

    /// Replaces the reciprocal of a mantissa of ones, which is so close above the midpoint between
    /// two numbers that Newton's method yields the lower one.
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

    /// The signed mantissa of a number, its exponent with the bias, and whether it is one; zeros,
    /// infinities and NaN are returned unchanged.
    pub(super) fn mantissa_and_exponent(&mut self, a: Operand) -> (Operand, Operand, Operand) {
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
        self.lop3(mantissa, bare, unit, Operand::zero(), LUT_OR);
        let pair = self.temp_pair();
        let to = self.words(pair);
        self.copy(to[0], low);
        self.select(to[1], mantissa, high, finite);
        (pair, exponent, finite)
    }

    /// The quotient of scaled mantissas, scaled back by two factors, or by integer operations if it
    /// is subnormal.
    fn scaled_quotient(&mut self, d: Operand, a: Operand, b: Operand, rounding: Option<M>) {
        let ((a, exponent_a, _), (b, exponent_b, _)) = (self.mantissa_and_exponent(a), self.mantissa_and_exponent(b));
        let by = self.temp();
        self.add(by, exponent_a, exponent_b.negated());
        // MUFU reads only the high word, which for some NaN is that of an infinity; multiplying by
        // one makes the NaN canonical.
        let one = self.double_constant(ONE_HIGH);
        let b = self.dmul(None, b, one);
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

    /// `a` times a power of two, for results that are normal or too large.
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

    /// Rounds a truncated quotient of mantissas, times a power of two, to a subnormal number:
    /// shifts its integer mantissa right and rounds by the lost bits, with a sticky bit for the
    /// truncation.
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
        self.lop3(to[1], fraction, implicit, Operand::zero(), LUT_OR);
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
        self.lop3(off, lost_high, bit, Operand::zero(), LUT_OR);
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

    /// Whether the lost bits (the highest is a half) round a magnitude up.
    fn rounds_up(&mut self, off: Operand, kept: Operand, sign: Operand, rounding: Option<M>) -> Operand {
        if rounding == Some(RZ) {
            return Operand::never();
        }
        if rounding.is_none() {
            let (one, half, tie) = (self.imm(1), self.imm(SIGN), self.temp());
            // Half and an odd number counts as more than half. a | b & c
            self.lop3(tie, off, one, kept, 0xf0 | (0xcc & 0xaa));
            return self.isetp_with(&[GT, AND, U32], tie, half, Operand::always());
        }
        let away = self.temp_pred();
        self.isetp(away, &[if rounding == Some(RP) { GE } else { LT }, AND], sign, Operand::zero());
        self.isetp_with(&[NE, AND, U32], off, Operand::zero(), away)
    }
}
