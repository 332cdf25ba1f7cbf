//! Binary floating-point formats: unpacking to exact values, and the one function that rounds.
//!
//! An exact value is a sign and mantissa × 2^exponent, where the lowest mantissa bit may be sticky.
//! [`Format::pack`] rounds it once, in any rounding mode. Subnormals are kept unless the caller
//! flushes them, and a value that rounds to zero keeps its sign.

/// Rounding modes; `Nearest` breaks ties to even, `Away` breaks them away from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Round {
    #[default]
    Nearest,
    Down,
    Up,
    Zero,
    Away,
}

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Number of stored mantissa bits.
    pub mant: u32,
    /// Number of exponent bits.
    pub exp: u32,
}

/// IEEE 754 half precision.
pub const F16: Format = Format { mant: 10, exp: 5 };
/// bfloat16.
pub const BF16: Format = Format { mant: 7, exp: 8 };
/// tf32 as a 19-bit format.
pub const TF32: Format = Format { mant: 10, exp: 8 };
/// IEEE 754 single precision.
pub const F32: Format = Format { mant: 23, exp: 8 };
/// IEEE 754 double precision.
pub const F64: Format = Format { mant: 52, exp: 11 };

/// The value that an encoding means; the flags are signs, true for negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Nan,
    Inf(bool),
    Zero(bool),
    Num(Exact),
}

/// A number other than zero: (-1)^neg × mant × 2^exp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The sign: true for negative.
    pub neg: bool,
    /// The mantissa, not zero.
    pub mant: u128,
    /// The exponent of the lowest mantissa bit.
    pub exp: i32,
}

impl Format {
    /// Width of the format in bits.
    pub fn bits(self) -> u32 {
        1 + self.exp + self.mant
    }
    /// Exponent bias.
    pub fn bias(self) -> i32 {
        (1 << (self.exp - 1)) - 1
    }
    /// The mask of the sign bit.
    pub fn sign_bit(self) -> u64 {
        1 << (self.exp + self.mant)
    }
    /// The infinity with that sign.
    pub fn inf(self, neg: bool) -> u64 {
        (((1u64 << self.exp) - 1) << self.mant) | self.zero(neg)
    }
    /// The zero with that sign.
    pub fn zero(self, neg: bool) -> u64 {
        if neg { self.sign_bit() } else { 0 }
    }
    /// The largest finite number with that sign.
    pub fn max(self, neg: bool) -> u64 {
        (self.inf(false) - 1) | self.zero(neg)
    }
    /// The canonical NaN of arithmetic results: all ones below the sign, but 0xfff80000_00000000 in
    /// f64.
    pub fn nan(self) -> u64 {
        if self == F64 { 0xfff8_0000_0000_0000 } else { self.sign_bit() - 1 }
    }
    /// Whether the bits are a NaN.
    pub fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) > self.inf(false)
    }
    /// Whether the bits are a subnormal number; zero is none.
    pub fn is_subnormal(self, bits: u64) -> bool {
        let low = bits & (self.sign_bit() - 1);
        low != 0 && low >> self.mant == 0
    }
    /// Replaces a subnormal by a zero of the same sign.
    pub fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign_bit() } else { bits }
    }

    /// Decodes the bits.
    pub fn unpack(self, bits: u64) -> Value {
        let neg = bits & self.sign_bit() != 0;
        let exp = (bits >> self.mant) & ((1 << self.exp) - 1);
        let frac = bits & ((1 << self.mant) - 1);
        if exp == (1 << self.exp) - 1 {
            return if frac != 0 { Value::Nan } else { Value::Inf(neg) };
        }
        if exp == 0 && frac == 0 {
            return Value::Zero(neg);
        }
        let (mant, biased) = if exp == 0 { (frac, 1) } else { (frac | 1 << self.mant, exp as i32) };
        Value::Num(Exact { neg, mant: mant.into(), exp: biased - self.bias() - self.mant as i32 })
    }

    /// Rounds an exact value to the format. A mantissa of 0 gives a zero with the sign of `value`.
    pub fn pack(self, value: Exact, round: Round) -> u64 {
        let Exact { neg, mant, exp } = value;
        if mant == 0 {
            return self.zero(neg);
        }
        let top = 127 - mant.leading_zeros() as i32;
        let lowest = 1 - self.bias() - self.mant as i32;
        // Exponent of the unit in the last place, limited by the least subnormal.
        let unit = (exp + top - self.mant as i32).max(lowest);
        let kept = shift_round(mant, unit - exp, neg, round);
        let (mant, unit) = if kept >> (self.mant + 1) != 0 { (kept >> 1, unit + 1) } else { (kept, unit) };
        if mant >> self.mant == 0 {
            return self.zero(neg) | mant as u64;
        }
        let biased = unit + self.mant as i32 + self.bias();
        if biased >= (1 << self.exp) - 1 {
            return self.overflow(neg, round);
        }
        self.zero(neg) | (biased as u64) << self.mant | (mant as u64 & ((1 << self.mant) - 1))
    }

    fn overflow(self, neg: bool, round: Round) -> u64 {
        match round {
            Round::Zero => self.max(neg),
            Round::Down if !neg => self.max(neg),
            Round::Up if neg => self.max(neg),
            _ => self.inf(neg),
        }
    }

    /// Converts to another format with rounding; NaN becomes that format's canonical NaN.
    pub fn convert(self, bits: u64, to: Format, round: Round) -> u64 {
        match self.unpack(bits) {
            Value::Nan => to.nan(),
            Value::Inf(neg) => to.inf(neg),
            Value::Zero(neg) => to.zero(neg),
            Value::Num(x) => to.pack(x, round),
        }
    }
}

/// Computes mant / 2^shift, rounded to an integer; a negative shift multiplies.
pub fn shift_round(mant: u128, shift: i32, neg: bool, round: Round) -> u128 {
    if shift <= 0 {
        return mant << (-shift).min(127);
    }
    if shift >= 128 {
        let up = match round {
            Round::Up => !neg,
            Round::Down => neg,
            _ => false,
        };
        return (up && mant != 0) as u128;
    }
    let (kept, lost) = (mant >> shift, mant & ((1u128 << shift) - 1));
    let half = 1u128 << (shift - 1);
    let up = match round {
        Round::Nearest => lost > half || (lost == half && kept & 1 != 0),
        Round::Away => lost >= half,
        Round::Up => !neg && lost != 0,
        Round::Down => neg && lost != 0,
        Round::Zero => false,
    };
    kept + up as u128
}

/// Adds two exact values; bits shifted out at the lower end set a sticky lowest bit. `None` means
/// an exact zero.
pub fn add_exact(a: Exact, b: Exact) -> Option<Exact> {
    let (a, b) = (normal(a), normal(b));
    let (big, small) = if (a.exp, a.mant) >= (b.exp, b.mant) { (a, b) } else { (b, a) };
    let low = jam(small.mant, (big.exp - small.exp) as u32);
    let mant = if big.neg == small.neg { big.mant + low } else { big.mant - low };
    (mant != 0).then_some(Exact { neg: big.neg, mant, exp: big.exp })
}

/// The same value with its leading bit at position 126, so that a sum cannot overflow.
fn normal(x: Exact) -> Exact {
    let shift = x.mant.leading_zeros() as i32 - 1;
    Exact { neg: x.neg, mant: x.mant << shift, exp: x.exp - shift }
}

fn jam(mant: u128, shift: u32) -> u128 {
    match shift {
        0 => mant,
        1..=127 => mant >> shift | (mant & ((1 << shift) - 1) != 0) as u128,
        _ => (mant != 0) as u128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_conversions_agree() {
        for x in [0.0f64, -0.0, 1.0, 1.0 / 3.0, 1e-40, -1e-45, 7e-46, 3.5e38, 65504.0, f64::INFINITY, 1e300, 5e-324] {
            assert_eq!(F64.convert(x.to_bits(), F32, Round::Nearest), u64::from((x as f32).to_bits()), "{x}");
            assert_eq!(F64.convert(x.to_bits(), F64, Round::Up), x.to_bits(), "{x}");
        }
    }

    #[test]
    fn directed_modes() {
        let third = (1.0f64 / 3.0).to_bits();
        let near = F64.convert(third, F32, Round::Nearest);
        assert_eq!(F64.convert(third, F32, Round::Up), near);
        assert_eq!(F64.convert(third, F32, Round::Down), near - 1);
        assert_eq!(F64.convert(third, F32, Round::Zero), near - 1);
        assert_eq!(F64.convert(1e300f64.to_bits(), F32, Round::Zero), u64::from(f32::MAX.to_bits()));
        assert_eq!(F64.convert((-1e300f64).to_bits(), F32, Round::Up), u64::from(f32::MIN.to_bits()));
        assert_eq!(F64.convert(65520f64.to_bits(), F16, Round::Nearest), 0x7c00);
        assert_eq!(F64.convert(65519f64.to_bits(), F16, Round::Nearest), 0x7bff);
    }

    #[test]
    fn cancellation_is_exact() {
        let unpack = |x: f64| match F64.unpack(x.to_bits()) {
            Value::Num(e) => e,
            other => unreachable!("{other:?}"),
        };
        for (a, b) in [(1.0, -1.0 + f64::EPSILON), (1e300, -1e-300), (3.0, 4.0), (1e16, -0.5), (5e-324, 5e-324)] {
            let sum = add_exact(unpack(a), unpack(b)).map_or(0, |e| F64.pack(e, Round::Nearest));
            assert_eq!(f64::from_bits(sum), a + b);
        }
        assert_eq!(add_exact(unpack(2.0), unpack(-2.0)), None);
    }
}
