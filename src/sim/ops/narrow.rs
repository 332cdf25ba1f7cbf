//! Conversions to f16, bf16, tf32, to formats of 8, 6 and 4 bits, and to power-of-two scales
//! (ue8m0).
//!
//! A conversion rounds once, and NaN becomes the canonical NaN of the format. E5M2 is a small f16.
//! E4M3 has no infinities and only one NaN, since its highest exponent encodes numbers too. The 6-
//! and 4-bit formats encode numbers only.

use super::format::{BF16, Exact, F16, F32, Format, Round, TF32, Value};
use super::real::Mode;

/// Formats of 8, 6 and 4 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiny {
    E5m2,
    E4m3,
    E3m2,
    E2m3,
    E2m1,
}

impl Tiny {
    /// Mantissa and exponent widths.
    pub fn format(self) -> Format {
        let (mant, exp) = match self {
            Tiny::E5m2 => (2, 5),
            Tiny::E4m3 => (3, 4),
            Tiny::E3m2 => (2, 3),
            Tiny::E2m3 => (3, 2),
            Tiny::E2m1 => (1, 2),
        };
        Format { mant, exp }
    }

    fn sign(self, neg: bool) -> u8 {
        if neg { self.format().sign_bit() as u8 } else { 0 }
    }

    /// The encoding of the largest magnitude.
    pub fn max(self) -> u8 {
        match self {
            Tiny::E5m2 => 0x7b,
            Tiny::E4m3 => 0x7e,
            Tiny::E3m2 | Tiny::E2m3 => 0x1f,
            Tiny::E2m1 => 7,
        }
    }

    /// The encoding of NaN; the largest number if the format has no NaN.
    pub fn nan(self) -> u8 {
        if self.format().bits() == 8 { TINY_NAN } else { self.max() }
    }

    /// Distance in bits between packed numbers.
    pub fn step(self) -> u32 {
        if self == Tiny::E2m1 { 4 } else { 8 }
    }
}

/// The NaN of E4M3, also used for E5M2.
const TINY_NAN: u8 = 0x7f;
/// Mantissa bits that f32 has and tf32 lacks.
const TF32_SHIFT: u32 = 13;
/// ue8m0: exponent bias, largest exponent code, and NaN.
const SCALE_BIAS: i32 = 127;
const SCALE_MAX: i32 = 0xfe;
const SCALE_NAN: u8 = 0xff;

/// Converts an f32 to a narrower format; with `finite`, infinities become the largest number.
pub fn narrow(bits: u64, to: Format, mode: Mode, finite: bool) -> u64 {
    let result = F32.convert(bits, to, mode.round);
    let magnitude = result & (to.sign_bit() - 1);
    let clamped = if finite && magnitude == to.inf(false) { to.max(result & to.sign_bit() != 0) } else { result };
    mode.output(to, clamped)
}

/// Rounds an f32 to tf32, in the upper bits of the word.
pub fn narrow_tf32(bits: u64, mode: Mode, finite: bool) -> u64 {
    if F32.is_nan(bits) { F32.nan() } else { narrow(bits, TF32, mode, finite) << TF32_SHIFT }
}

/// Converts a number to a format of at most 8 bits: to nearest even or towards zero, clamped to
/// finite numbers.
pub fn to_tiny(to: Tiny, value: Value, how: Round, relu: bool) -> u8 {
    let result = match value {
        Value::Nan => return to.nan(),
        Value::Zero(neg) => to.sign(neg),
        Value::Inf(neg) => to.max() | to.sign(neg),
        Value::Num(x) => to.sign(x.neg) | magnitude(to, x, how).min(to.max()),
    };
    if relu && result & to.sign(true) != 0 { 0 } else { result }
}

/// Magnitudes with the highest exponent are rounded at half their size, because [`Format::pack`]
/// takes that exponent for infinity.
fn magnitude(to: Tiny, x: Exact, how: Round) -> u8 {
    let f = to.format();
    let packed = |x: Exact| (f.pack(Exact { neg: false, ..x }, how)) as u8;
    let bits = packed(x);
    // Truncation never reaches the infinity.
    let end = if how == Round::Nearest { f.inf(false) } else { f.max(false) };
    if to == Tiny::E5m2 || bits < end as u8 {
        return bits;
    }
    packed(Exact { exp: x.exp - 1, ..x }).saturating_add(1 << f.mant)
}

/// Converts a number of at most 8 bits to f16, exactly; higher bits are ignored.
pub fn from_tiny(from: Tiny, bits: u8, relu: bool) -> u64 {
    let f = from.format();
    let bits = bits & (from.sign(true) | (from.sign(true) - 1));
    let (neg, magnitude) = (bits & from.sign(true) != 0, bits & (from.sign(true) - 1));
    let result = match from {
        Tiny::E5m2 => f.convert(bits.into(), F16, Round::Nearest),
        Tiny::E4m3 if magnitude == TINY_NAN => F16.nan(),
        _ if magnitude >= f.inf(false) as u8 => {
            // The highest exponent: twice the number with the exponent below.
            let half = f.convert((bits - (1 << f.mant)).into(), F16, Round::Nearest);
            half + (1 << F16.mant)
        }
        _ => f.convert(bits.into(), F16, Round::Nearest),
    };
    if relu && neg && !F16.is_nan(result) { 0 } else { result }
}

/// The ue8m0 code of the power of two at or below the magnitude (`up`: at or above). A greater
/// magnitude becomes NaN, or the greatest power with `finite`. That the sign is dropped has not
/// been confirmed on a GPU.
pub fn to_scale(value: Value, up: bool, finite: bool) -> u8 {
    let beyond = if finite { SCALE_MAX as u8 } else { SCALE_NAN };
    match value {
        Value::Nan => SCALE_NAN,
        Value::Inf(_) => beyond,
        Value::Zero(_) => 0,
        Value::Num(x) => {
            let top = x.exp + 127 - x.mant.leading_zeros() as i32;
            let above = up && !x.mant.is_power_of_two();
            let code = top + SCALE_BIAS + i32::from(above);
            if code > SCALE_MAX { beyond } else { code.max(0) as u8 }
        }
    }
}

/// The power of two that a ue8m0 code means, as bf16.
pub fn from_scale(code: u8) -> u64 {
    match code {
        SCALE_NAN => BF16.nan(),
        0 => 1 << (BF16.mant - 1),
        _ => u64::from(code) << BF16.mant,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny(to: Tiny, x: f32) -> u8 {
        to_tiny(to, F32.unpack(x.to_bits().into()), Round::Nearest, false)
    }

    #[test]
    fn numbers_of_8_bits() {
        let e4m3 = [(1.0, 0x38), (-2.0, 0xc0), (448.0, 0x7e), (1e9, 0x7e), (256.0, 0x78), (272.0, 0x78), (288.0, 0x79)];
        e4m3.into_iter().for_each(|(x, want)| assert_eq!(tiny(Tiny::E4m3, x), want, "{x}"));
        // 248 is half-way between 240 and 256.
        assert_eq!((tiny(Tiny::E4m3, 247.9), tiny(Tiny::E4m3, 248.1)), (0x77, 0x78));
        assert_eq!(tiny(Tiny::E4m3, 0.001953125), 1);
        assert_eq!(tiny(Tiny::E4m3, f32::NAN), 0x7f);
        assert_eq!(tiny(Tiny::E5m2, 57344.0), 0x7b);
        assert_eq!(tiny(Tiny::E5m2, f32::NEG_INFINITY), 0xfb);
        assert_eq!(tiny(Tiny::E5m2, 1.125), 0x3c);
        for from in [Tiny::E4m3, Tiny::E5m2] {
            for bits in 0..=255u8 {
                let wide = from_tiny(from, bits, false);
                let value = F16.unpack(wide);
                if matches!(value, Value::Num(_) | Value::Zero(_)) {
                    assert_eq!(to_tiny(from, value, Round::Nearest, false), bits, "{from:?} {bits:x}");
                }
            }
        }
    }

    #[test]
    fn numbers_of_6_and_4_bits() {
        let e2m1 = [(0.25, 0), (0.3, 1), (0.75, 2), (2.5, 4), (3.5, 6), (5.0, 6), (5.1, 7), (-9.0, 0xf), (-0.0, 8)];
        e2m1.into_iter().for_each(|(x, want)| assert_eq!(tiny(Tiny::E2m1, x), want, "{x}"));
        assert_eq!((tiny(Tiny::E2m1, f32::NAN), tiny(Tiny::E3m2, f32::NAN)), (7, 0x1f));
        assert_eq!((tiny(Tiny::E3m2, 28.0), tiny(Tiny::E3m2, -0.0625), tiny(Tiny::E2m3, 7.5)), (0x1f, 0x21, 0x1f));
        for (from, count) in [(Tiny::E2m1, 16), (Tiny::E2m3, 64), (Tiny::E3m2, 64)] {
            for bits in 0..count {
                let value = F16.unpack(from_tiny(from, bits, false));
                for how in [Round::Nearest, Round::Zero] {
                    assert_eq!(to_tiny(from, value, how, false), bits, "{from:?} {bits:x}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_truncated() {
        let cut = |to: Tiny, x: f32| to_tiny(to, F32.unpack(x.to_bits().into()), Round::Zero, false);
        let e4m3 =
            [(271.0, 0x78), (287.9, 0x78), (288.0, 0x79), (447.9, 0x7d), (1e9, 0x7e), (-255.9, 0xf7), (0.0019, 0)];
        e4m3.into_iter().for_each(|(x, want)| assert_eq!(cut(Tiny::E4m3, x), want, "{x}"));
        let e2m1 = [(0.49, 0), (0.99, 1), (2.9, 4), (3.9, 5), (5.9, 6), (6.0, 7), (1e9, 7), (-5.9, 0xe)];
        e2m1.into_iter().for_each(|(x, want)| assert_eq!(cut(Tiny::E2m1, x), want, "{x}"));
        assert_eq!((cut(Tiny::E5m2, 57343.0), cut(Tiny::E5m2, 1e9), cut(Tiny::E2m3, 7.49)), (0x7a, 0x7b, 0x1e));
    }

    #[test]
    fn powers_of_two() {
        let scale = |x: f32, up, finite| to_scale(F32.unpack(x.to_bits().into()), up, finite);
        assert_eq!((scale(1.0, true, false), scale(1.5, true, false), scale(1.5, false, false)), (127, 128, 127));
        assert_eq!((scale(f32::MAX, true, false), scale(f32::MAX, true, true)), (255, 254));
        assert_eq!((scale(f32::INFINITY, false, true), scale(f32::NAN, false, true)), (254, 255));
        assert_eq!((scale(1e-45, true, false), scale(0.0, true, false)), (0, 0));
        assert_eq!((from_scale(127), from_scale(0), from_scale(255)), (0x3f80, 0x40, 0x7fff));
    }

    #[test]
    fn largest_numbers() {
        let mode = Mode::default();
        assert_eq!(narrow(F32.inf(true), F16, mode, true), F16.max(true));
        assert_eq!(narrow(F32.inf(true), F16, mode, false), F16.inf(true));
        assert_eq!(narrow_tf32(0x3f80_1001, mode, false), 0x3f80_2000);
    }
}
