//! Conversions between integers and floats, and rounding of a float to an integral value.
//!
//! A conversion rounds once and saturates at the limits of the integer type. NaN becomes 0, or only
//! the sign bit if 64 bits are involved.

use super::format::{Exact, Format, Round, Value, shift_round};

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntType {
    /// Width in bits, at most 64.
    pub bits: u32,
    /// Whether it is signed, in two's complement.
    pub signed: bool,
}

impl IntType {
    fn limits(self) -> (i128, i128) {
        if self.signed {
            (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1)
        } else {
            (0, (1i128 << self.bits) - 1)
        }
    }

    /// The nearest number that the type can represent.
    pub fn clamp(self, value: i128) -> i128 {
        let (low, high) = self.limits();
        value.clamp(low, high)
    }

    /// The number that the low bits of a word mean in this type.
    pub fn value(self, word: u64) -> i128 {
        let shift = 64 - self.bits;
        if self.signed { i128::from(((word << shift) as i64) >> shift) } else { i128::from(word << shift >> shift) }
    }
}

/// Converts a float to an integer. NaN becomes 0, or only the sign bit if 64 bits are involved, as
/// on the hardware (PTX ISA 9.0, 9.7.9.21). The result has at least 32 valid bits: a signed type of
/// fewer bits is sign-extended to 32.
pub fn float_to_int(f: Format, bits: u64, to: IntType, round: Round, ftz: bool) -> u64 {
    let bits = if ftz { f.flush(bits) } else { bits };
    let (low, high) = to.limits();
    let value = match f.unpack(bits) {
        Value::Nan if to.bits == 64 => return 1 << 63,
        Value::Nan if f == super::format::F64 => to.value(1 << (to.bits - 1)),
        Value::Nan => 0,
        Value::Inf(true) => low,
        Value::Inf(false) => high,
        Value::Zero(_) => 0,
        Value::Num(x) => integer(x, round).clamp(low, high),
    };
    value as u64 & (u64::MAX >> (64 - to.bits.max(32)))
}

fn integer(x: Exact, round: Round) -> i128 {
    let top = 127 - x.mant.leading_zeros() as i32;
    let magnitude = if x.exp + top > 100 { 1 << 100 } else { shift_round(x.mant, -x.exp, x.neg, round) };
    if x.neg { -(magnitude as i128) } else { magnitude as i128 }
}

/// Converts an integer to a float.
pub fn int_to_float(from: IntType, word: u64, f: Format, round: Round) -> u64 {
    let value = from.value(word);
    f.pack(Exact { neg: value < 0, mant: value.unsigned_abs(), exp: 0 }, round)
}

/// Rounds a float to an integral value, in the same or another format.
pub fn round_float(from: Format, bits: u64, to: Format, round: Round, ftz: bool) -> u64 {
    let bits = if ftz { from.flush(bits) } else { bits };
    match from.unpack(bits) {
        Value::Num(x) if x.exp < 0 => {
            let mant = shift_round(x.mant, -x.exp, x.neg, round);
            if mant == 0 { to.zero(x.neg) } else { to.pack(Exact { neg: x.neg, mant, exp: 0 }, Round::Nearest) }
        }
        _ => from.convert(bits, to, Round::Nearest),
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{F16, F32, F64};
    use super::*;

    const S32: IntType = IntType { bits: 32, signed: true };
    const U32: IntType = IntType { bits: 32, signed: false };
    const S64: IntType = IntType { bits: 64, signed: true };
    const S8: IntType = IntType { bits: 8, signed: true };

    fn f(x: f32) -> u64 {
        x.to_bits().into()
    }

    #[test]
    fn floats_to_integers() {
        assert_eq!(float_to_int(F32, f(-1.5), S32, Round::Zero, false), u64::from(-1i32 as u32));
        assert_eq!(float_to_int(F32, f(2.5), S32, Round::Nearest, false), 2);
        assert_eq!(float_to_int(F32, f(3.5), S32, Round::Nearest, false), 4);
        assert_eq!(float_to_int(F32, f(-1.5), U32, Round::Zero, false), 0);
        assert_eq!(float_to_int(F32, f(3e9), S32, Round::Zero, false), 0x7fff_ffff);
        assert_eq!(float_to_int(F32, f(1e30), S64, Round::Zero, false), i64::MAX as u64);
        assert_eq!(float_to_int(F32, f(f32::NAN), S32, Round::Zero, false), 0);
        assert_eq!(float_to_int(F32, f(-300.0), S8, Round::Zero, false), u64::from(-128i32 as u32));
        assert_eq!(float_to_int(F32, f(0.1), S32, Round::Up, false), 1);
        assert_eq!(float_to_int(F32, f(1e-42), S32, Round::Up, true), 0);
    }

    #[test]
    fn integers_to_floats() {
        assert_eq!(int_to_float(U32, 0xffff_ffff, F32, Round::Nearest), f(4294967296.0));
        assert_eq!(int_to_float(U32, 0xffff_ffff, F32, Round::Zero), f(4294967040.0));
        assert_eq!(int_to_float(S32, 0xffff_ffff, F64, Round::Nearest), (-1f64).to_bits());
        assert_eq!(int_to_float(S8, 0x1ff, F32, Round::Nearest), f(-1.0));
        assert_eq!(int_to_float(S32, 0, F16, Round::Nearest), 0);
    }

    #[test]
    fn integral_floats() {
        assert_eq!(round_float(F32, f(-0.4), F32, Round::Nearest, false), f(-0.0));
        assert_eq!(round_float(F32, f(-0.4), F32, Round::Down, false), f(-1.0));
        assert_eq!(round_float(F32, f(2.5), F32, Round::Nearest, false), f(2.0));
        assert_eq!(round_float(F32, f(1e20), F32, Round::Zero, false), f(1e20));
    }
}
