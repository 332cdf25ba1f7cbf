//! Stochastic rounding, as `F2FP.RS` does it.
//!
//! A magnitude is rounded up if its lost bits and the random bits, both as fractions of the last
//! place, add up to one or more. Exact numbers stay unchanged, and zero random bits truncate. That
//! the sum decides, and which random bits are used, is a reading of the figures in the PTX ISA; no
//! GPU has confirmed it.

use super::format::{Exact, F16, Format, Value};
use super::narrow::Tiny;
use crate::arrays::Each;

/// Result formats of stochastic rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Random {
    /// f16 or bf16.
    Half(Format),
    /// A format of at most 8 bits.
    Tiny(Tiny),
}

/// Number of random bits used for f16: the mantissa bits that it lacks against f32.
const F16_BITS: u32 = 13;
/// Number of random bits used for other formats.
const BITS: u32 = 16;
/// A number this many bits below the last place is smaller than any random fraction.
const FAR: i32 = 80;

impl Random {
    /// Whether two results fill a register; otherwise four or more do.
    pub fn halves(self) -> bool {
        matches!(self, Random::Half(_))
    }

    /// Distance in bits between packed results.
    pub fn step(self) -> u32 {
        match self {
            Random::Half(_) => 16,
            Random::Tiny(tiny) => tiny.step(),
        }
    }

    fn format(self) -> Format {
        match self {
            Random::Half(f) => f,
            Random::Tiny(tiny) => tiny.format(),
        }
    }

    fn bits(self) -> u32 {
        if self == Random::Half(F16) { F16_BITS } else { BITS }
    }

    /// The encodings of NaN, of an infinite input, and of the largest magnitude.
    fn ends(self, finite: bool) -> [u32; 3] {
        match self {
            Random::Half(f) => {
                let infinite = if finite { f.max(false) } else { f.inf(false) };
                [f.nan() as u32, infinite as u32, f.max(false) as u32]
            }
            Random::Tiny(tiny) => [tiny.nan(), tiny.max(), tiny.max()].each(u32::from),
        }
    }
}

/// Rounds a value to a format with the given random bits.
pub fn random_round(to: Random, value: Value, random: u32, finite: bool, relu: bool) -> u32 {
    let [nan, infinite, max] = to.ends(finite);
    let (neg, magnitude) = match value {
        Value::Nan => return nan,
        Value::Zero(neg) => (neg, 0),
        Value::Inf(neg) => (neg, infinite),
        Value::Num(x) => {
            let code = magnitude(to, x, random & ((1 << to.bits()) - 1));
            (x.neg, if code > u64::from(max) { infinite } else { code as u32 })
        }
    };
    let sign = if neg { to.format().sign_bit() as u32 } else { 0 };
    if neg && relu { 0 } else { magnitude | sign }
}

fn magnitude(to: Random, x: Exact, random: u32) -> u64 {
    let f = to.format();
    let top = x.exp + 127 - x.mant.leading_zeros() as i32;
    let unit = top.max(1 - f.bias()) - f.mant as i32;
    let shift = unit - x.exp;
    let kept = match shift {
        ..=0 => x.mant << -shift,
        1..=FAR => ((x.mant << to.bits()) + (u128::from(random) << shift)) >> (shift as u32 + to.bits()),
        _ => 0,
    };
    // The leading bit adds one to the exponent field; a subnormal has no leading bit.
    let field = (unit + f.mant as i32 + f.bias() - 1) as u64;
    (field << f.mant) + kept as u64
}

#[cfg(test)]
mod tests {
    use super::super::format::{BF16, F32};
    use super::*;

    fn of(to: Random, x: f32, random: u32) -> u32 {
        random_round(to, F32.unpack(x.to_bits().into()), random, false, false)
    }

    #[test]
    fn lost_and_random_bits_add_up() {
        let bf16 = Random::Half(BF16);
        // A quarter above 1, in units of the last place; it takes three quarters of random bits to
        // make one.
        let quarter = 1.0 + 2f32.powi(-9);
        assert_eq!((of(bf16, quarter, 0xbfff), of(bf16, quarter, 0xc000)), (0x3f80, 0x3f81));
        assert_eq!((of(bf16, -1.0, 0xffff), of(bf16, f32::MAX, 0), of(bf16, f32::MAX, 1)), (0xbf80, 0x7f7f, 0x7f80));
        let f16 = Random::Half(F16);
        assert_eq!((of(f16, 1.0 + 2f32.powi(-11), 0xfff), of(f16, 1.0 + 2f32.powi(-11), 0x1000)), (0x3c00, 0x3c01));
        // Only 13 bits are used; half of the least number is half a unit.
        assert_eq!((of(f16, 2f32.powi(-25), 0xe000), of(f16, 2f32.powi(-25), 0x1000)), (0, 1));
        assert_eq!((of(f16, 65504.0, 0x1fff), of(f16, 65519.0, 0x1fff), of(f16, 1e9, 0)), (0x7bff, 0x7c00, 0x7c00));
    }

    #[test]
    fn narrow_numbers_end_at_the_largest() {
        let e4m3 = Random::Tiny(Tiny::E4m3);
        assert_eq!((of(e4m3, 448.0, 0xffff), of(e4m3, 460.0, 0xffff), of(e4m3, -1e30, 0)), (0x7e, 0x7e, 0xfe));
        assert_eq!((of(e4m3, 17.0, 0x7fff), of(e4m3, 17.0, 0x8000), of(e4m3, f32::NAN, 0)), (0x58, 0x59, 0x7f));
        let e2m1 = Random::Tiny(Tiny::E2m1);
        assert_eq!((of(e2m1, 0.25, 0x7fff), of(e2m1, 0.25, 0x8000), of(e2m1, -5.0, 0x8000)), (0, 1, 0xf));
        assert_eq!((of(e2m1, 1e-40, 0xffff), of(e2m1, 1e-40, 0)), (0, 0));
    }
}
