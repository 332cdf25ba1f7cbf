//! The read-modify-write functions of atomics.
//!
//! The functions are pure; values are in the low bytes of the type's width.

use super::super::ops::format::{F32, Round};
use super::super::ops::half::{self, Pick};
use super::super::ops::real::{self, Mode};
use super::code::{AtomicOp, AtomicType};

/// Number of bytes that an atomic of the type accesses.
pub fn bytes(ty: AtomicType) -> u8 {
    match ty {
        AtomicType::Unsigned(n) | AtomicType::Signed(n) => n,
        AtomicType::Float(f) => (f.bits() / 8) as u8,
        AtomicType::Packed(_) => 4,
        AtomicType::Lanes(f, n) => (f.bits() / 8) as u8 * n,
    }
}

/// The value that the atomic stores.
pub fn apply(op: AtomicOp, ty: AtomicType, old: u64, b: u64, c: u64) -> u64 {
    let mask = u64::MAX >> (64 - 8 * u32::from(bytes(ty)));
    let (b, c) = (b & mask, c & mask);
    let new = match (op, ty) {
        (AtomicOp::Add, AtomicType::Float(f)) => real::add(f, old, b, float_mode(f == F32)),
        (AtomicOp::AddKept, AtomicType::Float(f)) => real::add(f, old, b, float_mode(false)),
        (AtomicOp::Min | AtomicOp::Max, AtomicType::Float(f)) => {
            real::min_max(f, old, b, op == AtomicOp::Min, false, Mode::default())
        }
        (_, AtomicType::Packed(f)) => {
            let (x, y) = (half::halves(Pick::Both, old as u32, f), half::halves(Pick::Both, b as u32, f));
            let one = |i: usize| match op {
                AtomicOp::Min => real::min_max(f, x[i], y[i], true, false, Mode::default()),
                AtomicOp::Max => real::min_max(f, x[i], y[i], false, false, Mode::default()),
                _ => real::add(f, x[i], y[i], Mode::default()),
            };
            half::join(one(0), one(1)).into()
        }
        (AtomicOp::Add | AtomicOp::AddKept, _) => old.wrapping_add(b),
        (AtomicOp::Min, _) => {
            if less(ty, b, old) {
                b
            } else {
                old
            }
        }
        (AtomicOp::Max, _) => {
            if less(ty, old, b) {
                b
            } else {
                old
            }
        }
        (AtomicOp::Inc, _) => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        (AtomicOp::Dec, _) => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        (AtomicOp::And, _) => old & b,
        (AtomicOp::Or, _) => old | b,
        (AtomicOp::Xor, _) => old ^ b,
        (AtomicOp::Exch, _) => b,
        (AtomicOp::Cas | AtomicOp::CasFlag, _) => {
            if old == b {
                c
            } else {
                old
            }
        }
        (AtomicOp::PopcInc, _) => old.wrapping_add(1),
    };
    new & mask
}

/// The words that an atomic of more than 8 bytes, or on packed numbers, stores.
pub fn apply_wide(op: AtomicOp, ty: AtomicType, old: &[u32], b: &[u32], c: &[u32]) -> Vec<u32> {
    let AtomicType::Lanes(f, _) = ty else {
        let new = match op {
            AtomicOp::Exch => b,
            AtomicOp::Cas if old == b => c,
            _ => old,
        };
        return new.to_vec();
    };
    let of = |old: u32, b: u32| match f.bits() {
        32 => apply(op, AtomicType::Float(f), old.into(), b.into(), 0) as u32,
        _ => apply(op, AtomicType::Packed(f), old.into(), b.into(), 0) as u32,
    };
    old.iter().zip(b).map(|(old, b)| of(*old, *b)).collect()
}

/// The value that the instruction returns.
pub fn result(op: AtomicOp, old: u64, b: u64, bytes: u8) -> u64 {
    let mask = u64::MAX >> (64 - 8 * u32::from(bytes));
    if op == AtomicOp::CasFlag { u64::from(old & mask == b & mask) } else { old }
}

/// Atomic additions in f32 flush subnormals unless told to keep them; other formats keep them.
fn float_mode(ftz: bool) -> Mode {
    Mode { ftz, round: Round::Nearest, ..Mode::default() }
}

fn less(ty: AtomicType, a: u64, b: u64) -> bool {
    match ty {
        AtomicType::Signed(4) => (a as i32) < b as i32,
        AtomicType::Signed(_) => (a as i64) < b as i64,
        _ => a < b,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ops::format::F64;
    use super::*;
    const U32: AtomicType = AtomicType::Unsigned(4);

    #[test]
    fn integers() {
        assert_eq!(apply(AtomicOp::Inc, U32, 5, 5, 0), 0);
        assert_eq!(apply(AtomicOp::Inc, U32, 4, 5, 0), 5);
        assert_eq!(apply(AtomicOp::Dec, U32, 0, 5, 0), 5);
        assert_eq!(apply(AtomicOp::Dec, U32, 9, 5, 0), 5);
        assert_eq!(apply(AtomicOp::Min, AtomicType::Signed(4), 1, 0xffff_ffff, 0), 0xffff_ffff);
        assert_eq!(apply(AtomicOp::Max, AtomicType::Signed(8), 1, u64::MAX, 0), 1);
        assert_eq!(apply(AtomicOp::Add, U32, 0xffff_ffff, 1, 0), 0);
        assert_eq!(apply(AtomicOp::Cas, U32, 7, 7, 9), 9);
        assert_eq!(apply(AtomicOp::Cas, U32, 7, 8, 9), 7);
    }

    #[test]
    fn floats() {
        let f = |x: f32| u64::from(x.to_bits());
        assert_eq!(apply(AtomicOp::Add, AtomicType::Float(F32), f(1.5), f(2.0), 0), f(3.5));
        let d = AtomicType::Float(F64);
        assert_eq!(apply(AtomicOp::Add, d, 1f64.to_bits(), 2f64.to_bits(), 0), 3f64.to_bits());
        let h = AtomicType::Packed(super::super::super::ops::format::F16);
        assert_eq!(apply(AtomicOp::Add, h, 0x3c00_3c00, 0x4000_3c00, 0), 0x4200_4000);
    }
}
