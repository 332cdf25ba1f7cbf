//! Compiles conversions with stochastic rounding, `cvt.rs` (PTX ISA 9.0, 9.7.9.21).
//!
//! A magnitude is rounded up if its fraction beyond the last place plus the random fraction is at
//! least one. With two numbers the first uses the upper half of the random bits (for f16 the lower
//! 13 bits of each half). With four numbers the first two share the upper half, and the other two
//! share the 16 bits that start lower by the width of two results. These bit positions have not
//! been confirmed on a GPU.

use super::int::one;
use super::program::Alu;
use crate::arrays::Each;
use crate::ptx::ast::Instruction;
use crate::tables::ptx::ScalarType;

/// A result format: mantissa and exponent widths, and the codes of the largest number, of a number
/// beyond it, and of NaN.
#[derive(Clone, Copy)]
struct Target {
    mant: u32,
    exp: u32,
    max: u64,
    beyond: u64,
    nan: u64,
}

impl Target {
    fn of(ty: ScalarType, finite: bool) -> Option<Target> {
        let small = |exp, mant, max, nan| Target { mant, exp, max, beyond: max, nan };
        let half = |exp, mant, infinity: u64| {
            let max = infinity - 1;
            Target { mant, exp, max, beyond: if finite { max } else { infinity }, nan: 0x7fff }
        };
        Some(match ty {
            ScalarType::F16x2 => half(5, 10, 0x7c00),
            ScalarType::Bf16x2 => half(8, 7, 0x7f80),
            ScalarType::E4m3x4 => small(4, 3, 0x7e, 0x7f),
            ScalarType::E5m2x4 => small(5, 2, 0x7b, 0x7f),
            ScalarType::E2m3x4 => small(2, 3, 0x1f, 0x1f),
            ScalarType::E3m2x4 => small(3, 2, 0x1f, 0x1f),
            ScalarType::E2m1x4 => small(2, 1, 0x7, 0x7),
            _ => return None,
        })
    }

    /// Encodes a number: adds `share` of the last place and truncates. All steps are exact: an f32
    /// has 24 bits, a share has 16, and an input too small for the f64 sum is too small to matter.
    fn encode(self, x: f32, share: f64, relu: bool) -> u64 {
        if x.is_nan() {
            return self.nan;
        }
        let sign = u64::from(x.is_sign_negative()) << (self.mant + self.exp);
        let (size, bias) = (f64::from(x.abs()), (1 << (self.exp - 1)) - 1);
        let code = if size.is_infinite() {
            self.beyond
        } else {
            let power = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
            let places = (size * 2f64.powi(self.mant as i32 - power) + share).floor() as u64;
            let code = (((power + bias - 1) as u64) << self.mant) + places;
            if code > self.max { self.beyond } else { code }
        };
        if relu && sign != 0 { 0 } else { code | sign }
    }
}

/// The function that `cvt.rs` computes, or `None` for an unknown result type.
pub fn compile(i: &Instruction) -> Option<Alu> {
    let (&to, relu) = (i.types.first()?, i.mods.relu);
    let target = Target::of(to, i.mods.saturate_finite)?;
    let share = |bits: u64, of: u32| (bits & ((1 << of) - 1)) as f64 / f64::from(1u32 << of);
    let number = |bits: u64| f32::from_bits(bits as u32);
    if matches!(to, ScalarType::F16x2 | ScalarType::Bf16x2) {
        let of = if to == ScalarType::F16x2 { 13 } else { 16 };
        return one(move |s| {
            let [a, b] = [(s[0], s[2] >> 16), (s[1], s[2])].each(|(x, r)| target.encode(number(x), share(r, of), relu));
            a << 16 | b
        });
    }
    let width = to.bits() / 4;
    one(move |s| {
        let (first, second) = (share(s[4] >> 16, 16), share(s[4] >> (16 - 2 * width), 16));
        let shares = [first, first, second, second];
        (0..4).fold(0, |all, n| all << width | target.encode(number(s[n]), shares[n], relu))
    })
}
