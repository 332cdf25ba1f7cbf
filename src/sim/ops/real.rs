//! Add, multiply, fused multiply-add, compare, minimum and maximum in any format and rounding mode.
//!
//! Each operation rounds once. A NaN result is the canonical NaN of the format; in f64 it is the
//! first NaN operand, quieted.

use super::format::{Exact, F32, F64, Format, Round, Value, add_exact};

/// The modifiers of a floating-point operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// The rounding mode.
    pub round: Round,
    /// Subnormal operands and results become zero.
    pub ftz: bool,
    /// Like `ftz`, and zero times anything is zero.
    pub fmz: bool,
    /// The result is clamped to [0, 1]; NaN becomes 0.
    pub sat: bool,
    /// A negative result becomes 0; NaN stays NaN.
    pub relu: bool,
}

impl Mode {
    fn flushes(self) -> bool {
        self.ftz || self.fmz
    }

    fn input(self, f: Format, bits: u64) -> u64 {
        if self.flushes() { f.flush(bits) } else { bits }
    }

    /// Applies the modifiers to a rounded result.
    pub fn output(self, f: Format, bits: u64) -> u64 {
        let bits = if self.flushes() { f.flush(bits) } else { bits };
        let negative = bits & f.sign_bit() != 0;
        if self.relu {
            return if f.is_nan(bits) {
                f.nan()
            } else if negative {
                0
            } else {
                bits
            };
        }
        if !self.sat {
            return bits;
        }
        let one = (((1u64 << (f.exp - 1)) - 1) << f.mant).max(1);
        if f.is_nan(bits) || negative { 0 } else { bits.min(one) }
    }
}

fn nan_of(f: Format, operands: &[u64]) -> u64 {
    if f != F64 {
        return f.nan();
    }
    let first = operands.iter().find(|bits| f.is_nan(**bits));
    first.map_or(f.nan(), |bits| bits | 1 << (f.mant - 1))
}

/// The sum of two values, rounded; signs of zero by IEEE 754. `None` means NaN.
fn sum(f: Format, a: Value, b: Value, round: Round) -> Option<u64> {
    Some(match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => return None,
        (Value::Inf(x), Value::Inf(y)) if x != y => return None,
        (Value::Inf(x), _) | (_, Value::Inf(x)) => f.inf(x),
        (Value::Zero(x), Value::Zero(y)) if x == y => f.zero(x),
        (Value::Zero(_), Value::Zero(_)) => f.zero(round == Round::Down),
        (Value::Zero(_), Value::Num(x)) | (Value::Num(x), Value::Zero(_)) => f.pack(x, round),
        (Value::Num(x), Value::Num(y)) => {
            add_exact(x, y).map_or(f.zero(round == Round::Down), |exact| f.pack(exact, round))
        }
    })
}

/// The exact product of two values.
fn product(a: Value, b: Value, fmz: bool) -> Value {
    let sign = |v: Value| match v {
        Value::Nan => false,
        Value::Inf(neg) | Value::Zero(neg) => neg,
        Value::Num(x) => x.neg,
    };
    let neg = sign(a) != sign(b);
    match (a, b) {
        (Value::Zero(_), _) | (_, Value::Zero(_)) if fmz => Value::Zero(false),
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Inf(_), Value::Zero(_)) | (Value::Zero(_), Value::Inf(_)) => Value::Nan,
        (Value::Inf(_), _) | (_, Value::Inf(_)) => Value::Inf(neg),
        (Value::Zero(_), _) | (_, Value::Zero(_)) => Value::Zero(neg),
        (Value::Num(x), Value::Num(y)) => Value::Num(Exact { neg, mant: x.mant * y.mant, exp: x.exp + y.exp }),
    }
}

/// a + b.
pub fn add(f: Format, a: u64, b: u64, mode: Mode) -> u64 {
    let (a, b) = (mode.input(f, a), mode.input(f, b));
    let bits = match (f, mode.round) {
        (F32, Round::Nearest) => native32(f32::from_bits(a as u32) + f32::from_bits(b as u32)),
        _ => sum(f, f.unpack(a), f.unpack(b), mode.round).unwrap_or_else(|| nan_of(f, &[a, b])),
    };
    mode.output(f, bits)
}

/// a × b.
pub fn mul(f: Format, a: u64, b: u64, mode: Mode) -> u64 {
    let (a, b) = (mode.input(f, a), mode.input(f, b));
    let bits = match (f, mode.round) {
        (F32, Round::Nearest) if !mode.fmz => native32(f32::from_bits(a as u32) * f32::from_bits(b as u32)),
        _ => match product(f.unpack(a), f.unpack(b), mode.fmz) {
            Value::Nan => nan_of(f, &[a, b]),
            Value::Inf(neg) => f.inf(neg),
            Value::Zero(neg) => f.zero(neg),
            Value::Num(x) => f.pack(x, mode.round),
        },
    };
    mode.output(f, bits)
}

/// a × b + c, rounded once.
pub fn fma(f: Format, a: u64, b: u64, c: u64, mode: Mode) -> u64 {
    let (a, b, c) = (mode.input(f, a), mode.input(f, b), mode.input(f, c));
    let product = product(f.unpack(a), f.unpack(b), mode.fmz);
    let bits = sum(f, product, f.unpack(c), mode.round).unwrap_or_else(|| nan_of(f, &[a, b, c]));
    mode.output(f, bits)
}

fn native32(x: f32) -> u64 {
    if x.is_nan() { F32.nan() } else { x.to_bits().into() }
}

/// The relation of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Less,
    Equal,
    Greater,
    Unordered,
}

/// Compares two numbers of a format; `ftz` flushes subnormals first.
pub fn compare(f: Format, a: u64, b: u64, ftz: bool) -> Relation {
    let (a, b) = if ftz { (f.flush(a), f.flush(b)) } else { (a, b) };
    if f.is_nan(a) || f.is_nan(b) {
        return Relation::Unordered;
    }
    match ordered(f, a).cmp(&ordered(f, b)) {
        std::cmp::Ordering::Less => Relation::Less,
        std::cmp::Ordering::Equal => Relation::Equal,
        std::cmp::Ordering::Greater => Relation::Greater,
    }
}

/// Maps the bits to an integer with the same order; both zeros map to 0.
fn ordered(f: Format, bits: u64) -> i64 {
    let low = (bits & (f.sign_bit() - 1)) as i64;
    if bits & f.sign_bit() != 0 { -low } else { low }
}

/// The minimum or maximum of two numbers, with -0 < +0. If one operand is NaN the result is the
/// other one, or NaN with `want_nan`.
pub fn min_max(f: Format, a: u64, b: u64, min: bool, want_nan: bool, mode: Mode) -> u64 {
    let (a, b) = (mode.input(f, a), mode.input(f, b));
    let (nan_a, nan_b) = (f.is_nan(a), f.is_nan(b));
    let bits = match (nan_a, nan_b) {
        (true, true) => f.nan(),
        (true, false) | (false, true) if want_nan => f.nan(),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            let key = |bits: u64| (ordered(f, bits), bits & f.sign_bit() == 0);
            if (key(a) <= key(b)) == min { a } else { b }
        }
    };
    mode.output(f, bits)
}

/// The minimum or maximum of the magnitudes, with the sign of the product of the operands; a NaN
/// result has no sign.
pub fn min_max_magnitudes(f: Format, a: u64, b: u64, min: bool, want_nan: bool, mode: Mode) -> u64 {
    let magnitude = f.sign_bit() - 1;
    let bits = min_max(f, a & magnitude, b & magnitude, min, want_nan, mode);
    if f.is_nan(bits) { bits } else { bits | (a ^ b) & f.sign_bit() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(x: f32) -> u64 {
        x.to_bits().into()
    }
    const RN: Mode = Mode { round: Round::Nearest, ftz: false, fmz: false, sat: false, relu: false };

    #[test]
    fn fma_agrees_with_the_host() {
        let xs = [0.0f32, -0.0, 1.0, -1.5, 3.4e38, 1e-38, -1e-45, 1.0000001, 16777217.0, f32::INFINITY, 0.1];
        for a in xs {
            for b in xs {
                for c in xs {
                    let want = a.mul_add(b, c);
                    let want = if want.is_nan() { F32.nan() } else { f(want) };
                    assert_eq!(fma(F32, f(a), f(b), f(c), RN), want, "{a} {b} {c}");
                    let (a, b, c) = (f64::from(a), f64::from(b), f64::from(c));
                    let want = a.mul_add(b, c);
                    let got = f64::from_bits(fma(F64, a.to_bits(), b.to_bits(), c.to_bits(), RN));
                    assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn directed_sums() {
        let mode = |round| Mode { round, ..RN };
        let tiny = f(1e-30);
        assert_eq!(add(F32, f(1.0), tiny, mode(Round::Up)), f(1.0) + 1);
        assert_eq!(add(F32, f(1.0), tiny, mode(Round::Zero)), f(1.0));
        assert_eq!(add(F32, f(1.0), f(-1e-30), mode(Round::Down)), f(1.0) - 1);
        assert_eq!(add(F32, f(1.0), f(-1.0), mode(Round::Down)), f(-0.0));
        assert_eq!(mul(F32, f(0.0), f(1.0), mode(Round::Down)), f(0.0));
        assert_eq!(fma(F32, f(3.0), f(5.0), f(-15.0), mode(Round::Up)), f(0.0));
    }

    #[test]
    fn flush_and_saturate() {
        let ftz = Mode { ftz: true, ..RN };
        assert_eq!(add(F32, f(1e-40), f(0.0), ftz), 0);
        assert_eq!(mul(F32, f(-1e-20), f(1e-20), ftz), f(-0.0));
        let sat = Mode { sat: true, ..RN };
        assert_eq!(add(F32, f(1.0), f(1.0), sat), f(1.0));
        assert_eq!(add(F32, f(-1.0), f(0.5), sat), 0);
        assert_eq!(add(F32, f(f32::NAN), f(0.5), sat), 0);
        assert_eq!(mul(F32, 0, F32.inf(false), Mode { fmz: true, ..RN }), 0);
    }

    #[test]
    fn minimum_and_maximum() {
        assert_eq!(min_max(F32, f(-0.0), f(0.0), true, false, RN), f(-0.0));
        assert_eq!(min_max(F32, f(-0.0), f(0.0), false, false, RN), f(0.0));
        assert_eq!(min_max(F32, f(f32::NAN), f(2.0), true, false, RN), f(2.0));
        assert_eq!(min_max(F32, f(f32::NAN), f(2.0), true, true, RN), F32.nan());
        assert_eq!(min_max(F32, f(-3.0), f(2.0), false, false, RN), f(2.0));
    }
}
