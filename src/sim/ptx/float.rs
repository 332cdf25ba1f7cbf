//! Compiles floating-point arithmetic of all formats (PTX ISA 9.7.3 to 9.7.5).
//!
//! Exact operations round once, in the mode of the instruction, and keep subnormals unless `.ftz`
//! is set. A NaN result is the canonical NaN of the format (f64: the first NaN operand, quieted).
//! An approximate function is computed in f64 and rounded to the format, so it gives the nearest
//! number to the true value. Two forms are coarser: `div.approx` by a very large divisor, and the
//! f64 approximations, which read and return only the upper word.

use super::compare::one_of;
use super::int::{one, two};
use super::program::Alu;
use super::values::{each, elements, format, round};
use crate::arrays::Each;
use crate::ptx::ast::Instruction;
use crate::sim::ops::format::{Exact, F32, F64, Format, Round, Value};
use crate::sim::ops::real::{self, Mode};
use crate::tables::ptx::{Modifiers, Op, Precision, ScalarType, Test};

/// An operation on numbers of one format with up to three operands, given and returned as bits.
type Scalar = Box<dyn Fn([u64; 3]) -> u64 + Send + Sync>;

/// The function that a floating-point operation computes, or `None` for other instructions.
pub fn compile(i: &Instruction) -> Option<Alu> {
    let ty = *i.types.first()?;
    let f = format(ty)?;
    if let (Op::Testp, Some(test)) = (i.op, i.mods.test) {
        return one(move |s| testp(f, test, s[0]).into());
    }
    if i.types.len() > 2 {
        return packed_of_types(i);
    }
    let scalar = mixed(i, f, rectified(scalar(i, ty, f)?, f, i.mods.relu));
    let (count, bits) = (elements(ty), f.bits());
    if count == 1 {
        return two(move |s| [scalar([s[0], s[1], s[2]]), 0]);
    }
    let cut = (1u64 << bits) - 1;
    one(move |s| each(bits, count, |e| scalar([0, 1, 2].each(|n: usize| s[n] >> (bits * e as u32) & cut))))
}

/// `add sub mul fma` of packed numbers whose types differ: each is done in singles, which hold the
/// halves exactly, and a narrower result is what remains of the single when it is truncated.
fn packed_of_types(i: &Instruction) -> Option<Alu> {
    let (to, of) = (format(i.types[0])?, i.types[1..].iter().map(|ty| format(*ty)).collect::<Option<Vec<_>>>()?);
    let single = scalar(i, ScalarType::F32x2, F32)?;
    one(move |s| {
        each(to.bits(), 2, |e| {
            let part = |n: usize| {
                let from = of.get(n).copied().unwrap_or(F32);
                let bits = s[n] >> (from.bits() * e as u32) & ((1u64 << from.bits()) - 1);
                from.convert(bits, F32, Round::Nearest)
            };
            F32.convert(single([0, 1, 2].each(part)), to, Round::Zero)
        })
    })
}

/// Mixed precision (`add.f32.f16`): the first operand, and for `fma` also the second, has the
/// 16-bit format of the second type and is widened exactly.
fn mixed(i: &Instruction, f: Format, scalar: Scalar) -> Scalar {
    let narrow = match (i.op, i.types.get(1)) {
        (Op::Add | Op::Sub | Op::Fma, Some(&ty)) => format(ty).filter(|n| n.bits() < f.bits()),
        _ => None,
    };
    let Some(narrow) = narrow else { return scalar };
    let cut = (1u64 << narrow.bits()) - 1;
    let wide = move |x: u64| narrow.convert(x & cut, f, Round::Nearest);
    let both = i.op == Op::Fma;
    Box::new(move |[a, b, c]| scalar([wide(a), if both { wide(b) } else { b }, c]))
}

/// `.relu`: a negative result becomes zero, NaN stays NaN.
fn rectified(scalar: Scalar, f: Format, relu: bool) -> Scalar {
    if !relu {
        return scalar;
    }
    Box::new(move |s| relu_of(f, scalar(s)))
}

/// Replaces a negative number by zero; NaN stays NaN.
pub fn relu_of(f: Format, bits: u64) -> u64 {
    if bits & f.sign_bit() != 0 && !f.is_nan(bits) { 0 } else { bits }
}

/// The operation on one number.
fn scalar(i: &Instruction, ty: ScalarType, f: Format) -> Option<Scalar> {
    let mods = *i.mods;
    let mode = Mode { round: round(mods.rounding), ftz: mods.ftz, fmz: false, sat: mods.saturate, relu: false };
    let sign = f.sign_bit();
    let flush = move |x: u64| if mode.ftz { f.flush(x) } else { x };
    let approximate = mods.precision.is_some();
    let three = i.operands.len() == 4;
    Some(match i.op {
        Op::Add => Box::new(move |[a, b, _]| add(f, a, b, mode)),
        Op::Sub => Box::new(move |[a, b, _]| add(f, a, b ^ sign, mode)),
        Op::Mul => Box::new(move |[a, b, _]| mul(f, a, b, mode)),
        Op::Fma if mods.oob => Box::new(move |[a, b, c]| out_of_bounds(f, a, b, c, mode)),
        Op::Fma | Op::Mad => Box::new(move |[a, b, c]| fma(f, a, b, c, mode)),
        Op::Div if mods.precision == Some(Precision::Approx) => Box::new(move |[a, b, _]| fast_divide(f, a, b, mode)),
        Op::Div => Box::new(move |[a, b, _]| divide(f, a, b, mode)),
        Op::Rcp if approximate && ty == ScalarType::F64 => Box::new(|[a, ..]| rough(a, |x| 1.0 / x)),
        Op::Rsqrt if approximate && ty == ScalarType::F64 && mods.ftz => {
            Box::new(|[a, ..]| rough(a, |x| 1.0 / x.sqrt()))
        }
        Op::Rcp => Box::new(move |[a, ..]| divide(f, one_of(f), a, mode)),
        Op::Sqrt => Box::new(move |[a, ..]| root(f, a, mode)),
        Op::Rsqrt | Op::Sin | Op::Cos | Op::Lg2 | Op::Ex2 | Op::Tanh => function(i.op, f, mode),
        Op::Abs => Box::new(move |[a, ..]| flush(a) & !sign),
        Op::Neg => Box::new(move |[a, ..]| flush(a) ^ sign),
        Op::Min | Op::Max => {
            let least = i.op == Op::Min;
            Box::new(move |s| extreme(f, &s.each(flush)[..if three { 3 } else { 2 }], least, &mods))
        }
        Op::Copysign => Box::new(move |[a, b, _]| a & sign | b & !sign),
        _ => return None,
    })
}

fn native(f: Format, mode: Mode) -> bool {
    mode.round == Round::Nearest && (f == F32 || f == F64)
}

/// Computes with the host's IEEE 754 arithmetic. Returns `None` for a NaN result, which the caller
/// computes itself.
fn host(f: Format, s: [u64; 3], single: impl Fn([f32; 3]) -> f32, double: impl Fn([f64; 3]) -> f64) -> Option<u64> {
    let bits = match f {
        F32 => u64::from(single(s.each(|x| f32::from_bits(x as u32))).to_bits()),
        _ => double(s.each(f64::from_bits)).to_bits(),
    };
    (!f.is_nan(bits)).then_some(bits)
}

fn inputs(f: Format, s: [u64; 3], mode: Mode) -> [u64; 3] {
    if mode.ftz { s.each(|x| f.flush(x)) } else { s }
}

fn add(f: Format, a: u64, b: u64, mode: Mode) -> u64 {
    let s = inputs(f, [a, b, 0], mode);
    match native(f, mode).then(|| host(f, s, |[a, b, _]| a + b, |[a, b, _]| a + b)).flatten() {
        Some(bits) => mode.output(f, bits),
        None => real::add(f, a, b, mode),
    }
}

fn mul(f: Format, a: u64, b: u64, mode: Mode) -> u64 {
    let s = inputs(f, [a, b, 0], mode);
    match native(f, mode).then(|| host(f, s, |[a, b, _]| a * b, |[a, b, _]| a * b)).flatten() {
        Some(bits) => mode.output(f, bits),
        None => real::mul(f, a, b, mode),
    }
}

fn fma(f: Format, a: u64, b: u64, c: u64, mode: Mode) -> u64 {
    let s = inputs(f, [a, b, c], mode);
    match native(f, mode).then(|| host(f, s, |[a, b, c]| a.mul_add(b, c), |[a, b, c]| a.mul_add(b, c))).flatten() {
        Some(bits) => mode.output(f, bits),
        None => real::fma(f, a, b, c, mode),
    }
}

/// `.oob`: the result is zero if a factor is the NaN that marks an out-of-bounds element.
fn out_of_bounds(f: Format, a: u64, b: u64, c: u64, mode: Mode) -> u64 {
    let marked = f.sign_bit() | f.nan();
    if a == marked || b == marked { 0 } else { fma(f, a, b, c, mode) }
}

/// The quotient a / b, rounded once.
pub fn divide(f: Format, a: u64, b: u64, mode: Mode) -> u64 {
    let [a, b, _] = inputs(f, [a, b, 0], mode);
    if let Some(bits) = native(f, mode).then(|| host(f, [a, b, 0], |[a, b, _]| a / b, |[a, b, _]| a / b)).flatten() {
        return mode.output(f, bits);
    }
    let neg = (a ^ b) & f.sign_bit() != 0;
    let bits = match (f.unpack(a), f.unpack(b)) {
        (Value::Nan, _) | (_, Value::Nan) => nan_of(f, &[a, b]),
        (Value::Inf(_), Value::Inf(_)) | (Value::Zero(_), Value::Zero(_)) => f.nan(),
        (Value::Inf(_), _) | (_, Value::Zero(_)) => f.inf(neg),
        (Value::Zero(_), _) | (_, Value::Inf(_)) => f.zero(neg),
        (Value::Num(x), Value::Num(y)) => {
            // With the dividend's leading bit at 127 the quotient has more bits than any format
            // keeps; the remainder becomes a sticky bit.
            let up = x.mant.leading_zeros();
            let (q, r) = ((x.mant << up) / y.mant, (x.mant << up) % y.mant);
            let exact = if q >> 126 == 0 { (q << 1 | u128::from(r != 0), 1) } else { (q | u128::from(r != 0), 0) };
            f.pack(Exact { neg, mant: exact.0, exp: x.exp - up as i32 - y.exp - exact.1 }, mode.round)
        }
    };
    mode.output(f, bits)
}

/// The square root, rounded once.
pub fn root(f: Format, a: u64, mode: Mode) -> u64 {
    let [a, ..] = inputs(f, [a, 0, 0], mode);
    let bits = match f.unpack(a) {
        Value::Nan => nan_of(f, &[a]),
        Value::Zero(neg) => f.zero(neg),
        Value::Inf(true) | Value::Num(Exact { neg: true, .. }) => f.nan(),
        Value::Inf(false) => f.inf(false),
        Value::Num(x) => {
            // With an even exponent and the leading bit at 123 or 124 the root has 62 bits; the
            // remainder becomes a sticky bit.
            let up = x.mant.leading_zeros() as i32 - 3;
            let up = up - ((x.exp - up) & 1);
            let mant = x.mant << up;
            let q = mant.isqrt();
            let exact = Exact { neg: false, mant: q << 1 | u128::from(q * q != mant), exp: (x.exp - up) / 2 - 1 };
            f.pack(exact, mode.round)
        }
    };
    mode.output(f, bits)
}

fn nan_of(f: Format, operands: &[u64]) -> u64 {
    let first = operands.iter().find(|bits| f.is_nan(**bits));
    first.filter(|_| f == F64).map_or(f.nan(), |bits| bits | 1 << (f.mant - 1))
}

/// `div.approx`: a × (1 / b). The result is zero for a divisor so large that its reciprocal is
/// subnormal.
fn fast_divide(f: Format, a: u64, b: u64, mode: Mode) -> u64 {
    let large = f32::from_bits(b as u32).abs();
    if f == F32 && large > 2f32.powi(126) && large.is_finite() {
        let infinite = f32::from_bits(a as u32).is_infinite() || f.is_nan(a);
        return if infinite { f.nan() } else { (a ^ b) & f.sign_bit() };
    }
    divide(f, a, b, mode)
}

/// The f64 approximations read only the upper word and return only an upper word.
fn rough(a: u64, of: impl Fn(f64) -> f64) -> u64 {
    let x = f64::from_bits(F64.flush(a >> 32 << 32));
    let y = of(x);
    if y.is_nan() { 0x7fff_ffff << 32 } else { F64.flush(y.to_bits()) >> 32 << 32 }
}

/// An approximate function, computed in f64 and rounded to the format.
fn function(op: Op, f: Format, mode: Mode) -> Scalar {
    let of: fn(f64) -> f64 = match op {
        Op::Rsqrt => |x| 1.0 / x.sqrt(),
        Op::Sin => f64::sin,
        Op::Cos => f64::cos,
        Op::Lg2 => f64::log2,
        Op::Ex2 => f64::exp2,
        _ => f64::tanh,
    };
    Box::new(move |[a, ..]| {
        let [a, ..] = inputs(f, [a, 0, 0], mode);
        let y = of(f64::from_bits(f.convert(a, F64, Round::Nearest)));
        if y.is_nan() { f.nan() } else { mode.output(f, F64.convert(y.to_bits(), f, Round::Nearest)) }
    })
}

/// The minimum or maximum of numbers; the result is NaN only if all operands are.
pub fn extreme_of(f: Format, s: &[u64], least: bool) -> u64 {
    extreme(f, s, least, &Modifiers::default())
}

/// The minimum or maximum of numbers. -0 is less than +0; a NaN operand decides only with `.NaN`.
fn extreme(f: Format, s: &[u64], least: bool, mods: &Modifiers) -> u64 {
    let sign = f.sign_bit();
    let magnitude = |x: u64| if mods.abs { x & !sign } else { x };
    if s.iter().all(|x| f.is_nan(*x)) || mods.nan && s.iter().any(|x| f.is_nan(*x)) {
        return f.nan();
    }
    let key = |x: u64| if x & sign != 0 { -1 - (x & !sign) as i64 } else { x as i64 };
    let numbers = s.iter().filter(|x| !f.is_nan(**x)).map(|x| magnitude(*x));
    let best = if least { numbers.min_by_key(|x| key(*x)) } else { numbers.max_by_key(|x| key(*x)) };
    let flip = if mods.xorsign { s.iter().fold(0, |bits, x| bits ^ x) & sign } else { 0 };
    best.unwrap_or(f.nan()) ^ flip
}

fn testp(f: Format, test: Test, x: u64) -> bool {
    let finite = !matches!(f.unpack(x), Value::Nan | Value::Inf(_));
    match test {
        Test::Finite => finite,
        Test::Infinite => matches!(f.unpack(x), Value::Inf(_)),
        Test::Number => !f.is_nan(x),
        Test::Notanumber => f.is_nan(x),
        Test::Normal => finite && !f.is_subnormal(x),
        Test::Subnormal => f.is_subnormal(x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::ops::format::F16;

    fn mode(round: Round) -> Mode {
        Mode { round, ..Mode::default() }
    }

    #[test]
    fn quotients_and_roots_agree_with_the_host() {
        let xs = [1.0f64, 3.0, 1e-310, 1e300, 0.1, -7.0, 5e-324, f64::MAX, 1.0 + f64::EPSILON, 2.0, 0.0, -0.0];
        for a in xs {
            for b in xs {
                let wide = |round| divide(F64, a.to_bits(), b.to_bits(), mode(round));
                let (down, up) = (f64::from_bits(wide(Round::Down)), f64::from_bits(wide(Round::Up)));
                let near = a / b;
                assert!(near.is_nan() || down <= near && near <= up, "{a} / {b}: {down} {near} {up}");
                let away = f64::from_bits(wide(Round::Away));
                // Ties are possible only among subnormal quotients.
                assert!(!near.is_normal() || away == near, "{a} / {b}: {away}");
            }
            let near = f64::from_bits(root(F64, a.to_bits(), mode(Round::Nearest)));
            assert!(near.to_bits() == a.sqrt().to_bits() || near.is_nan() && a.sqrt().is_nan(), "{a}: {near}");
            let single = root(F32, u64::from((a as f32).to_bits()), mode(Round::Nearest));
            let host = (a as f32).sqrt();
            assert!(f32::from_bits(single as u32).to_bits() == host.to_bits() || host.is_nan(), "{a}");
        }
        assert_eq!(divide(F32, 0x3f80_0000, 0x4040_0000, mode(Round::Up)), 0x3eaa_aaab);
        assert_eq!(divide(F32, 0x3f80_0000, 0x4040_0000, mode(Round::Down)), 0x3eaa_aaaa);
        assert_eq!(root(F32, 0x4000_0000, mode(Round::Zero)), 0x3fb5_04f3);
        assert_eq!(root(F32, 0xbf80_0000, mode(Round::Zero)), 0x7fff_ffff);
    }

    #[test]
    fn extremes() {
        let run = |a, b, least, mods: Modifiers| extreme(F32, &[a, b], least, &mods);
        let plain = Modifiers::default();
        assert_eq!(run(0, 0x8000_0000, true, plain), 0x8000_0000);
        assert_eq!(run(0x8000_0000, 0, false, plain), 0);
        assert_eq!(run(0x7fc0_0000, 0x3f80_0000, true, plain), 0x3f80_0000);
        assert_eq!(run(0x7fc0_0000, 0x3f80_0000, true, Modifiers { nan: true, ..plain }), 0x7fff_ffff);
        let signs = Modifiers { abs: true, xorsign: true, ..plain };
        assert_eq!(run(0xc000_0000, 0x3f80_0000, false, signs), 0xc000_0000);
        assert_eq!(extreme(F16, &[0x3c00, 0xbc00], true, &plain), 0xbc00);
    }
}
