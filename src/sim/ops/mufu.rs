//! The approximate functions of the multi-function unit.
//!
//! A function is computed in f64 and rounded to the format of its operand, so exact results such as
//! powers of two are exact. Subnormals of f32 are flushed on input and output, as the unit does.
//! `Rcp64h` and `Rsq64h` read and return the high word of an f64.

use super::format::{F32, F64, Format, Round};

/// The function that `MUFU` computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Cos,
    Sin,
    Ex2,
    Lg2,
    Rcp,
    Rsq,
    Rcp64h,
    Rsq64h,
    Sqrt,
    Tanh,
}

/// Applies a function to the bits of a number.
pub fn apply(function: Function, f: Format, bits: u64) -> u64 {
    if matches!(function, Function::Rcp64h | Function::Rsq64h) {
        return high_word(function, bits as u32).into();
    }
    let flushed = if f == F32 { f.flush(bits) } else { bits };
    let x = f64::from_bits(f.convert(flushed, F64, Round::Nearest));
    let y = of_f64(function, x);
    if y.is_nan() {
        return f.nan();
    }
    let rounded = F64.convert(y.to_bits(), f, Round::Nearest);
    if f == F32 { f.flush(rounded) } else { rounded }
}

/// The f32 neighbour of [`apply`]'s result on the other side of the true value: the result itself
/// if it is exact, and for the functions on high words the next one up. Both are less than one unit
/// in the last place away, which the ISA allows for a reciprocal.
pub fn other_side(function: Function, bits: u64) -> u32 {
    let nearest = apply(function, F32, bits) as u32;
    if matches!(function, Function::Rcp64h | Function::Rsq64h) {
        return nearest.wrapping_add(1);
    }
    let value = |bits: u64| f64::from_bits(F32.convert(bits, F64, Round::Nearest));
    let (wanted, got) = (of_f64(function, value(F32.flush(bits))).abs(), value(nearest.into()).abs());
    match wanted.partial_cmp(&got) {
        Some(std::cmp::Ordering::Less) => nearest.wrapping_sub(1),
        Some(std::cmp::Ordering::Greater) => nearest.wrapping_add(1),
        _ => nearest,
    }
}

fn of_f64(function: Function, x: f64) -> f64 {
    // Sine and cosine take their argument in turns, because the range reduction multiplies by 1/2π
    // first.
    let angle = (x - x.floor()) * std::f64::consts::TAU;
    match function {
        Function::Cos => angle.cos(),
        Function::Sin => angle.sin(),
        Function::Ex2 => x.exp2(),
        Function::Lg2 => x.log2(),
        Function::Rcp | Function::Rcp64h => 1.0 / x,
        Function::Rsq | Function::Rsq64h => 1.0 / x.sqrt(),
        Function::Sqrt => x.sqrt(),
        Function::Tanh => x.tanh(),
    }
}

fn high_word(function: Function, word: u32) -> u32 {
    let bits = F64.flush(u64::from(word) << 32);
    let y = of_f64(function, f64::from_bits(bits));
    if y.is_nan() { 0x7fff_ffff } else { (F64.flush(y.to_bits()) >> 32) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32_of(function: Function, x: f32) -> f32 {
        f32::from_bits(apply(function, F32, x.to_bits().into()) as u32)
    }

    #[test]
    fn two_numbers_stand_around_a_true_value() {
        for x in [3.0f32, 1.999_999_9, 0.7, 1e20, -5.5, 2.0] {
            let (nearest, other) =
                (f32_of(Function::Rcp, x), f32::from_bits(other_side(Function::Rcp, x.to_bits().into())));
            let (nearest, other, truth) = (f64::from(nearest), f64::from(other), 1.0 / f64::from(x));
            assert!((nearest - truth).abs() <= (other - truth).abs(), "{x}");
            assert!(nearest == truth && other == truth || (nearest - truth) * (other - truth) < 0.0, "{x}");
        }
    }

    #[test]
    fn known_values() {
        assert_eq!(f32_of(Function::Rcp, 4.0), 0.25);
        assert_eq!(f32_of(Function::Rcp, 0.0), f32::INFINITY);
        assert_eq!(f32_of(Function::Rcp, -0.0), f32::NEG_INFINITY);
        assert_eq!(f32_of(Function::Rcp, 1e-40), f32::INFINITY);
        assert_eq!(f32_of(Function::Rcp, 3e38), 0.0);
        assert_eq!(f32_of(Function::Rsq, 16.0), 0.25);
        assert_eq!(f32_of(Function::Ex2, 10.0), 1024.0);
        assert_eq!(f32_of(Function::Lg2, 8.0), 3.0);
        assert_eq!(f32_of(Function::Sqrt, 2.25), 1.5);
        assert_eq!(f32_of(Function::Sin, 0.25), 1.0);
        assert!(f32_of(Function::Rsq, -1.0).is_nan());
        assert_eq!(apply(Function::Rcp64h, F32, u64::from((2f64.to_bits() >> 32) as u32)), 0.5f64.to_bits() >> 32);
    }
}
