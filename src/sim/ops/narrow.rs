//! Conversions to formats of 16 bits and less, with clamping to finite numbers.
//!
//! Input: f32 or f16. Output: f16, bf16, tf32, or the two formats of 8 bits. Invariant: one rounding; NaN becomes the format's canonical NaN. E5M2 is a
//! small f16; E4M3 has no infinities and one NaN, its highest exponent being one more of numbers.

use super::format::{Exact, F16, F32, Format, Round, TF32, Value};
use super::real::Mode;

/// Formats of 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiny {
    E5m2,
    E4m3,
}

const E5M2: Format = Format { mant: 2, exp: 5 };
const E4M3: Format = Format { mant: 3, exp: 4 };
/// Largest magnitude of E4M3, and its NaN.
const E4M3_MAX: u8 = 0x7e;
const TINY_NAN: u8 = 0x7f;
/// What tf32 has less than f32.
const TF32_SHIFT: u32 = 13;

/// An f32 in a narrower format; `finite`: infinities become the largest number.
pub fn narrow(bits: u64, to: Format, mode: Mode, finite: bool) -> u64 {
    let result = F32.convert(bits, to, mode.round);
    let magnitude = result & (to.sign_bit() - 1);
    let clamped = if finite && magnitude == to.inf(false) { to.max(result & to.sign_bit() != 0) } else { result };
    mode.output(to, clamped)
}

/// An f32 rounded to the mantissa of tf32, in the upper bits of the word.
pub fn narrow_tf32(bits: u64, mode: Mode, finite: bool) -> u64 {
    if F32.is_nan(bits) { F32.nan() } else { narrow(bits, TF32, mode, finite) << TF32_SHIFT }
}

/// A number in 8 bits, to nearest, clamped to finite numbers.
pub fn to_tiny(to: Tiny, value: Value, relu: bool) -> u8 {
    let negative = |neg: bool| if neg { 0x80 } else { 0 };
    let result = match (to, value) {
        (_, Value::Nan) => return TINY_NAN,
        (_, Value::Zero(neg)) => negative(neg),
        (Tiny::E5m2, Value::Inf(neg)) => E5M2.max(neg) as u8,
        (Tiny::E4m3, Value::Inf(neg)) => E4M3_MAX | negative(neg),
        (Tiny::E5m2, Value::Num(x)) => {
            let bits = E5M2.pack(x, Round::Nearest);
            if bits & 0x7f == E5M2.inf(false) { E5M2.max(x.neg) as u8 } else { bits as u8 }
        }
        (Tiny::E4m3, Value::Num(x)) => e4m3(x),
    };
    if relu && result & 0x80 != 0 { 0 } else { result }
}

/// Numbers of the highest exponent are rounded at half their size.
fn e4m3(x: Exact) -> u8 {
    let sign = if x.neg { 0x80 } else { 0 };
    let bits = (E4M3.pack(x, Round::Nearest) & 0x7f) as u8;
    if bits < E4M3.inf(false) as u8 {
        return sign | bits;
    }
    let half = (E4M3.pack(Exact { exp: x.exp - 1, ..x }, Round::Nearest) & 0x7f) as u8;
    sign | (half + (1 << E4M3.mant)).min(E4M3_MAX)
}

/// A number of 8 bits as f16, exactly.
pub fn from_tiny(from: Tiny, bits: u8, relu: bool) -> u64 {
    let (neg, magnitude) = (bits & 0x80 != 0, bits & 0x7f);
    let result = match from {
        Tiny::E5m2 => E5M2.convert(bits.into(), F16, Round::Nearest),
        Tiny::E4m3 if magnitude == TINY_NAN => F16.nan(),
        Tiny::E4m3 if magnitude >= E4M3.inf(false) as u8 => {
            // Of the highest exponent: twice the number of the one below.
            let half = E4M3.convert((bits - (1 << E4M3.mant)).into(), F16, Round::Nearest);
            half + (1 << F16.mant)
        }
        Tiny::E4m3 => E4M3.convert(bits.into(), F16, Round::Nearest),
    };
    if relu && neg && !F16.is_nan(result) { 0 } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny(to: Tiny, x: f32) -> u8 {
        to_tiny(to, F32.unpack(x.to_bits().into()), false)
    }

    #[test]
    fn numbers_of_8_bits() {
        let e4m3 = [(1.0, 0x38), (-2.0, 0xc0), (448.0, 0x7e), (1e9, 0x7e), (256.0, 0x78), (272.0, 0x78), (288.0, 0x79)];
        e4m3.into_iter().for_each(|(x, want)| assert_eq!(tiny(Tiny::E4m3, x), want, "{x}"));
        // Between 240 and 256 the middle is 248.
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
                    assert_eq!(to_tiny(from, value, false), bits, "{from:?} {bits:x}");
                }
            }
        }
    }

    #[test]
    fn largest_numbers() {
        let mode = Mode::default();
        assert_eq!(narrow(F32.inf(true), F16, mode, true), F16.max(true));
        assert_eq!(narrow(F32.inf(true), F16, mode, false), F16.inf(true));
        assert_eq!(narrow_tf32(0x3f80_1001, mode, false), 0x3f80_2000);
    }
}
