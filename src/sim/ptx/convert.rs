//! Compiles conversions between types (PTX ISA 9.7.9, `cvt`).
//!
//! A conversion rounds once. A float outside the range of an integer type becomes the nearest
//! integer of that type; NaN becomes 0, or only the sign bit where 64 bits are involved. `.ftz`
//! applies to f32 operands and results only.

use super::float::relu_of;
use super::int::one;
use super::program::Alu;
use super::random;
use super::values::{clamp, format, is_integer, is_signed, mask, number, round};
use crate::ptx::ast::Instruction;
use crate::sim::ops::convert::{IntType, float_to_int, int_to_float, round_float};
use crate::sim::ops::format::{BF16, Exact, F16, F32, F64, Format, Round, TF32, Value, shift_round};
use crate::sim::ops::real::Mode;
use crate::tables::ptx::{Modifiers, Op, Rounding, ScalarType};

/// The function that a conversion computes, or `None` for other instructions.
pub fn compile(i: &Instruction) -> Option<Alu> {
    let &[to, from, ..] = i.types.as_slice() else { return None };
    if i.op != Op::Cvt {
        return None;
    }
    if i.mods.rounding == Some(Rounding::Rs) {
        return random::compile(i);
    }
    if i.operands.len() == 3 {
        return pair(i, to, from);
    }
    match (is_integer(to), is_integer(from)) {
        (true, true) if i.mods.saturate => one(move |s| clamp(to, number(from, s[0]))),
        (true, true) => one(move |s| number(from, s[0]) as u64 & mask(to.bits())),
        (true, false) => to_integer(&i.mods, to, from),
        (false, true) => from_integer(&i.mods, to, from),
        (false, false) => floats(i, to, from),
    }
}

fn int_type(ty: ScalarType) -> IntType {
    IntType { bits: ty.bits(), signed: is_signed(ty) }
}

/// NaN becomes 0, or only the sign bit where 64 bits are involved.
fn to_integer(mods: &Modifiers, to: ScalarType, from: ScalarType) -> Option<Alu> {
    let f = format(from)?;
    let (how, ftz) = (round(mods.rounding), mods.ftz && f == F32);
    let nan = if f == F64 || to.bits() == 64 { 1 << (to.bits() - 1) } else { 0 };
    one(move |s| {
        let value = if f.is_nan(s[0]) { nan } else { float_to_int(f, s[0], int_type(to), how, ftz) };
        value & mask(to.bits())
    })
}

fn from_integer(mods: &Modifiers, to: ScalarType, from: ScalarType) -> Option<Alu> {
    let f = format(to)?;
    let mode = Mode { sat: mods.saturate, ..Mode::default() };
    let how = round(mods.rounding);
    one(move |s| mode.output(f, int_to_float(int_type(from), s[0], f, how)))
}

/// Converts one float or one packed value to another.
fn floats(i: &Instruction, to: ScalarType, from: ScalarType) -> Option<Alu> {
    match (to, from) {
        (ScalarType::Ue8m0x2, ScalarType::Bf16x2) => {
            let power = power_of(&i.mods, BF16)?;
            return one(move |s| power(s[0] & 0xffff) | power(s[0] >> 16 & 0xffff) << 8);
        }
        (ScalarType::Bf16x2, ScalarType::Ue8m0x2) => {
            return one(|s| number_of(s[0] & 0xff) | number_of(s[0] >> 8 & 0xff) << 16);
        }
        _ => {}
    }
    if let Some(small) = Small::of(from) {
        let (relu, finite, f) = (i.mods.relu, i.mods.saturate_finite, half_format(to)?);
        return one(move |s| {
            let half = |at: u32| {
                let bits = F16.convert(small.decode(s[0] >> at & mask(small.width())), f, Round::Nearest);
                let bits = if relu { relu_of(f, bits) } else { bits };
                match f.unpack(bits) {
                    Value::Inf(neg) if finite => f.max(neg),
                    _ => bits,
                }
            };
            half(0) | half(small.width()) << 16
        });
    }
    if let (Some(small), Some(f)) = (Small::of(to), half_format(from)) {
        let (how, relu) = (round(i.mods.rounding), i.mods.relu);
        return one(move |s| {
            small.encode(f, s[0] & 0xffff, how, relu) | small.encode(f, s[0] >> 16 & 0xffff, how, relu) << small.width()
        });
    }
    let convert = number_to(&i.mods, to, from)?;
    one(move |s| convert(s[0]))
}

/// The format of the elements of two packed halves.
fn half_format(ty: ScalarType) -> Option<Format> {
    match ty {
        ScalarType::F16x2 => Some(F16),
        ScalarType::Bf16x2 => Some(BF16),
        _ => None,
    }
}

/// Converts the magnitude of a number to a ue8m0 code: a power-of-two exponent biased by 127,
/// rounded by `.rz` or `.rp`; 255 is NaN. A magnitude below the least power becomes the least
/// power. One above the greatest power becomes NaN, or the greatest power with `.satfinite`.
fn power_of(mods: &Modifiers, f: Format) -> Option<impl Fn(u64) -> u64 + Send + Sync + 'static> {
    let up = mods.rounding? == Rounding::Rp;
    let limit = if mods.saturate_finite { 254 } else { 255 };
    Some(move |bits: u64| match f.unpack(bits) {
        Value::Nan => 255,
        Value::Inf(_) => limit,
        Value::Zero(_) => 0,
        Value::Num(x) => {
            let size = f64::from_bits(f.convert(bits, F64, Round::Nearest)).abs();
            // Exact, because all these numbers are normal in f64.
            let below = (size.to_bits() >> 52) as i64 - 1023;
            let exact = x.mant & (x.mant - 1) == 0;
            let code = below + i64::from(up && !exact) + 127;
            if code > 254 { limit } else { code.max(0) as u64 }
        }
    })
}

/// The power of two that a ue8m0 code means, as bf16.
fn number_of(code: u64) -> u64 {
    let value = if code == 255 { f64::NAN } else { 2f64.powi(code as i32 - 127) };
    if value.is_nan() { BF16.nan() } else { F64.convert(value.to_bits(), BF16, Round::Nearest) }
}

/// Converts two floats to a packed value; the first operand becomes the upper half.
fn pair(i: &Instruction, to: ScalarType, from: ScalarType) -> Option<Alu> {
    if to == ScalarType::Ue8m0x2 {
        let power = power_of(&i.mods, format(from)?)?;
        return one(move |s| power(s[1]) | power(s[0]) << 8);
    }
    if let Some(small) = Small::of(to) {
        let (f, how, relu) = (format(from)?, round(i.mods.rounding), i.mods.relu);
        return one(move |s| small.encode(f, s[1], how, relu) | small.encode(f, s[0], how, relu) << small.width());
    }
    let element = match to {
        ScalarType::F16x2 => ScalarType::F16,
        ScalarType::Bf16x2 => ScalarType::Bf16,
        _ => return None,
    };
    let convert = number_to(&i.mods, element, from)?;
    one(move |s| convert(s[1]) | convert(s[0]) << 16)
}

/// Converts one number from one format to another.
fn number_to(
    mods: &Modifiers,
    to: ScalarType,
    from: ScalarType,
) -> Option<impl Fn(u64) -> u64 + Send + Sync + 'static> {
    let source = format(from)?;
    let tf32 = to == ScalarType::Tf32;
    let target = if tf32 { TF32 } else { format(to)? };
    let mods = *mods;
    let how = round(mods.rounding);
    let integral = matches!(mods.rounding, Some(Rounding::Rni | Rounding::Rzi | Rounding::Rmi | Rounding::Rpi));
    let (flush_in, flush_out) = (mods.ftz && source == F32, mods.ftz && target == F32);
    let mode = Mode { sat: mods.saturate, ftz: flush_out, ..Mode::default() };
    Some(move |bits: u64| {
        let bits = if flush_in { source.flush(bits) } else { bits };
        let value = match integral {
            true => round_float(source, bits, target, how, false),
            false if flush_out && source == F64 && is_tiny(bits, how) => bits >> 32 & target.sign_bit(),
            false => source.convert(bits, target, how),
        };
        let value = mode.output(target, value);
        let value = if mods.relu { relu_of(target, value) } else { value };
        let infinite = matches!(target.unpack(value), Value::Inf(_));
        let value = if mods.saturate_finite && infinite { target.max(value & target.sign_bit() != 0) } else { value };
        if tf32 { value << 13 } else { value }
    })
}

/// Whether an f64, rounded to 24 bits with an unbounded exponent, is below the normal range of f32.
/// `.ftz` flushes exactly these to zero, which is how ptxas folds constants. Some of them would
/// round up to the least normal number if the exponent were bounded first.
fn is_tiny(bits: u64, how: Round) -> bool {
    const UP: u64 = 64;
    let near = (1..F64.bias() as u64 - 100).contains(&(bits >> 52 & 0x7ff));
    near && F64.convert(bits + (UP << 52), F32, how) & !F32.sign_bit() < (127 - 126 + UP) << 23
}

/// A format of at most 8 bits. Its conversions never produce an infinity: a value that is too large
/// becomes the largest number.
#[derive(Clone, Copy, Debug)]
pub struct Small {
    mant: u32,
    exp: u32,
    /// The codes of the largest number and of NaN.
    max: u64,
    nan: u64,
}

impl Small {
    /// The format of the elements of a packed type.
    pub fn of(ty: ScalarType) -> Option<Small> {
        match ty {
            ScalarType::E4m3 | ScalarType::E4m3x2 => Some(Small { mant: 3, exp: 4, max: 0x7e, nan: 0x7f }),
            ScalarType::E5m2 | ScalarType::E5m2x2 => Some(Small { mant: 2, exp: 5, max: 0x7b, nan: 0x7f }),
            ScalarType::E2m1x2 => Some(Small { mant: 1, exp: 2, max: 0x7, nan: 0x7 }),
            ScalarType::E2m3x2 => Some(Small { mant: 3, exp: 2, max: 0x1f, nan: 0x1f }),
            ScalarType::E3m2x2 => Some(Small { mant: 2, exp: 3, max: 0x1f, nan: 0x1f }),
            _ => None,
        }
    }

    /// The format with that name in PTX.
    pub fn by_name(name: &str) -> Option<Small> {
        match name {
            "e4m3" => Small::of(ScalarType::E4m3x2),
            "e5m2" => Small::of(ScalarType::E5m2x2),
            "e3m2" => Small::of(ScalarType::E3m2x2),
            "e2m3" => Small::of(ScalarType::E2m3x2),
            "e2m1" => Small::of(ScalarType::E2m1x2),
            _ => None,
        }
    }

    /// Distance in bits between two elements of a packed value.
    fn width(self) -> u32 {
        if self.max == 0x7 { 4 } else { 8 }
    }

    /// How many bits lie below the element in the byte that it takes up in a matrix (PTX ISA
    /// 9.7.14.5).
    pub fn lead(self) -> u32 {
        if self.max == 0x7 { 2 } else { 0 }
    }

    fn bias(self) -> i32 {
        (1 << (self.exp - 1)) - 1
    }

    /// Encodes the nearest number, ties to even, or the next one towards zero.
    pub fn encode(self, f: Format, bits: u64, how: Round, relu: bool) -> u64 {
        let bits = if relu { relu_of(f, bits) } else { bits };
        let sign = |neg: bool| u64::from(neg) << (self.mant + self.exp);
        match f.unpack(bits) {
            Value::Nan => self.nan,
            Value::Inf(neg) => sign(neg) | self.max,
            Value::Zero(neg) => sign(neg),
            Value::Num(x) => sign(x.neg) | self.magnitude(x, how).min(self.max),
        }
    }

    fn magnitude(self, x: Exact, how: Round) -> u64 {
        let top = x.exp + 127 - x.mant.leading_zeros() as i32;
        let exponent = top.max(1 - self.bias());
        let kept = shift_round(x.mant, exponent - self.mant as i32 - x.exp, x.neg, how) as u64;
        if top > self.bias() + 8 {
            return self.max;
        }
        // The leading bit adds one to the exponent field; a subnormal has none.
        (((exponent + self.bias() - 1) as u64) << self.mant) + kept
    }

    /// Decodes to f16, which holds every value exactly.
    pub fn decode(self, code: u64) -> u64 {
        F64.convert(self.value(code).to_bits(), F16, Round::Nearest)
    }

    /// Decodes to f64.
    pub fn value(self, code: u64) -> f64 {
        let low = code & mask(self.mant + self.exp);
        let (field, frac) = (low >> self.mant, low & mask(self.mant));
        let eight = self.mant + self.exp == 7;
        let size = if eight && low > self.max {
            // Above the largest number e5m2 has an infinity; all other codes are NaN.
            if self.mant == 2 && frac == 0 { f64::INFINITY } else { return f64::NAN }
        } else if field == 0 {
            frac as f64 * 2f64.powi(1 - self.bias() - self.mant as i32)
        } else {
            (frac | 1 << self.mant) as f64 * 2f64.powi(field as i32 - self.bias() - self.mant as i32)
        };
        if code >> (self.mant + self.exp) & 1 != 0 { -size } else { size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(ty: ScalarType) -> Small {
        Small::of(ty).expect("a small format")
    }

    #[test]
    fn small_formats() {
        let e4m3 = |x: f32| small(ScalarType::E4m3x2).encode(F32, x.to_bits().into(), Round::Nearest, false);
        let cases =
            [(1.0, 0x38), (448.0, 0x7e), (1e9, 0x7e), (-0.0, 0x80), (0.001953125, 1), (0.0009765625, 0), (17.0, 0x58)];
        for (x, code) in cases {
            assert_eq!(e4m3(x), code, "{x}");
        }
        assert_eq!(e4m3(f32::NAN), 0x7f);
        let e5m2 = |x: f32| small(ScalarType::E5m2x2).encode(F32, x.to_bits().into(), Round::Nearest, false);
        assert_eq!((e5m2(1.0), e5m2(1e30), e5m2(-57344.0), e5m2(1.125)), (0x3c, 0x7b, 0xfb, 0x3c));
    }

    #[test]
    fn small_formats_come_back() {
        for ty in [ScalarType::E4m3x2, ScalarType::E5m2x2] {
            let f = small(ty);
            for code in 0..256 {
                let value = f.value(code);
                if value.is_finite() {
                    assert_eq!(f.encode(F64, value.to_bits(), Round::Nearest, false), code, "{ty:?} {value}");
                    assert_eq!(f.encode(F16, f.decode(code), Round::Nearest, false), code);
                }
            }
        }
        assert!(small(ScalarType::E4m3x2).value(0xff).is_nan());
        assert_eq!(small(ScalarType::E5m2x2).decode(0xfc), 0xfc00);
        assert_eq!(small(ScalarType::E5m2x2).decode(0x7d), 0x7fff);
    }
}
