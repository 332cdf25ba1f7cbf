//! Helpers for typed values in 64-bit words: masks, sign extension, constants, conversion to
//! numbers.
//!
//! A typed value has zeros beyond the width of its type, both as an argument and as a result; only
//! [`sign_extend`] fills the upper bits.

use crate::ptx::ast::Constant;
use crate::sim::ops::format::{BF16, F16, F32, F64, Format};
use crate::tables::ptx::{Rounding, ScalarType, TypeClass};

/// A mask of the low `bits` bits.
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Sign-extends the low `bits` bits to 64 bits.
pub fn sign_extend(value: u64, bits: u32) -> u64 {
    if bits >= 64 || bits == 0 {
        return value;
    }
    (((value << (64 - bits)) as i64) >> (64 - bits)) as u64
}

/// Whether the numbers of a type are signed.
pub fn is_signed(ty: ScalarType) -> bool {
    matches!(ty.class(), TypeClass::Signed | TypeClass::SignedVector)
}

/// Whether a type is an integer or untyped bits.
pub fn is_integer(ty: ScalarType) -> bool {
    matches!(ty.class(), TypeClass::Signed | TypeClass::Unsigned | TypeClass::Bits)
}

/// The number that a value of an integer type means.
pub fn number(ty: ScalarType, bits: u64) -> i128 {
    if is_signed(ty) { i128::from(sign_extend(bits, ty.bits()) as i64) } else { i128::from(bits & mask(ty.bits())) }
}

/// The nearest number of an integer type, as bits.
pub fn clamp(ty: ScalarType, value: i128) -> u64 {
    let bits = ty.bits();
    let (low, high) =
        if is_signed(ty) { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, i128::from(mask(bits))) };
    value.clamp(low, high) as u64 & mask(bits)
}

/// The floating-point format of a type or of its elements.
pub fn format(ty: ScalarType) -> Option<Format> {
    match ty {
        ScalarType::F16 | ScalarType::F16x2 => Some(F16),
        ScalarType::Bf16 | ScalarType::Bf16x2 => Some(BF16),
        ScalarType::F32 | ScalarType::F32x2 => Some(F32),
        ScalarType::F64 => Some(F64),
        _ => None,
    }
}

/// Number of elements in a value of the type.
pub fn elements(ty: ScalarType) -> u32 {
    match ty.class() {
        _ if matches!(ty, ScalarType::U8x4 | ScalarType::S8x4) => 4,
        TypeClass::FloatVector | TypeClass::UnsignedVector | TypeClass::SignedVector => 2,
        _ => 1,
    }
}

/// The rounding mode of a modifier; the default is to nearest even.
pub fn round(rounding: Option<Rounding>) -> crate::sim::ops::format::Round {
    use crate::sim::ops::format::Round;
    match rounding {
        None | Some(Rounding::Rn | Rounding::Rni) => Round::Nearest,
        Some(Rounding::Rz | Rounding::Rzi) => Round::Zero,
        Some(Rounding::Rm | Rounding::Rmi) => Round::Down,
        Some(Rounding::Rp | Rounding::Rpi) => Round::Up,
        Some(Rounding::Rna) => Round::Away,
        Some(_) => Round::Nearest,
    }
}

/// The bits of a constant in the type.
pub fn constant(value: Constant, ty: Option<ScalarType>) -> u64 {
    let float = ty.filter(|ty| ty.class() == TypeClass::Float);
    let bits = match (value, float) {
        (Constant::Int { bits, .. }, _) => bits,
        (Constant::F32(bits), Some(ScalarType::F64)) => f64::from(f32::from_bits(bits)).to_bits(),
        (Constant::F64(bits), Some(ScalarType::F32)) => (f64::from_bits(bits) as f32).to_bits().into(),
        (Constant::F32(bits), _) => bits.into(),
        (Constant::F64(bits), _) => bits,
    };
    ty.map_or(bits, |ty| bits & mask(ty.bits()))
}

/// Builds a packed value from `count` elements of `bits` bits.
pub fn each(bits: u32, count: u32, f: impl Fn(usize) -> u64) -> u64 {
    (0..count).fold(0, |word, i| word | (f(i as usize) & mask(bits)) << (bits * i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_clamps() {
        assert_eq!(number(ScalarType::S8, 0x80), -128);
        assert_eq!(number(ScalarType::U8, 0x80), 128);
        assert_eq!(clamp(ScalarType::S16, 40000), 0x7fff);
        assert_eq!(clamp(ScalarType::U16, -1), 0);
        assert_eq!(clamp(ScalarType::S64, i128::MIN), 1 << 63);
        assert_eq!(sign_extend(0x80, 8), 0xffff_ffff_ffff_ff80);
        assert_eq!(each(16, 2, |i| i as u64 + 1), 0x0002_0001);
    }

    #[test]
    fn constants_take_the_type() {
        assert_eq!(constant(Constant::F64(1f64.to_bits()), Some(ScalarType::F32)), 0x3f80_0000);
        assert_eq!(constant(Constant::F32(0x3f80_0000), Some(ScalarType::F64)), 1f64.to_bits());
        assert_eq!(constant(Constant::Int { bits: u64::MAX, unsigned: false }, Some(ScalarType::B16)), 0xffff);
    }
}
