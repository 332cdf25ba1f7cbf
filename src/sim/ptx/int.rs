//! Compiles integer arithmetic (PTX ISA 9.7.1 and 9.7.2).
//!
//! Sources arrive masked to their types, and results wrap unless `.sat` is set. The carry flag is
//! the last source of an instruction that reads it and the second result of one that writes it.
//! After a subtraction it is the carry of `a + !b + 1`: the ISA speaks of a borrow and leaves
//! mixtures open, but code from NVIDIA's compiler reads the flag of a subtraction with `addc`.

use super::compare::integers;
use super::program::{Alu, Sources};
use super::values::{clamp, each, elements, is_integer, is_signed, mask, number, sign_extend};
use crate::ptx::ast::Instruction;
use crate::sim::ops::int::carryless_mad;
use crate::tables::ptx::{Modifiers, MulMode, Op, ScalarType, ShiftMode, TypeClass};

/// Index of the carry flag among the sources.
pub const CARRY: usize = 5;

/// Wraps an operation with one result.
pub fn one(f: impl Fn(&Sources) -> u64 + Send + Sync + 'static) -> Option<Alu> {
    Some(Box::new(move |s| [f(s), 0]))
}

/// Wraps an operation with two results.
pub fn two(f: impl Fn(&Sources) -> [u64; 2] + Send + Sync + 'static) -> Option<Alu> {
    Some(Box::new(f))
}

/// The function that an integer operation computes, or `None` for other instructions.
pub fn compile(i: &Instruction) -> Option<Alu> {
    let ty = *i.types.first()?;
    match ty.class() {
        TypeClass::UnsignedVector | TypeClass::SignedVector => packed(i.op, &i.mods, ty),
        _ if is_integer(ty) => {
            sums(i.op, &i.mods, ty).or_else(|| products(i.op, &i.mods, ty)).or_else(|| bits(i.op, &i.mods, ty, i))
        }
        _ => None,
    }
}

/// Sums, differences, minima and maxima, quotients.
fn sums(op: Op, mods: &Modifiers, ty: ScalarType) -> Option<Alu> {
    let n = move |x: u64| number(ty, x);
    let m = mask(ty.bits());
    let carry = move |x: u128| [x as u64 & m, (x >> ty.bits()) as u64 & 1];
    match op {
        Op::Add if mods.saturate => one(move |s| clamp(ty, n(s[0]) + n(s[1]))),
        Op::Sub if mods.saturate => one(move |s| clamp(ty, n(s[0]) - n(s[1]))),
        Op::Add => two(move |s| carry(u128::from(s[0]) + u128::from(s[1]))),
        Op::Addc => two(move |s| carry(u128::from(s[0]) + u128::from(s[1]) + u128::from(s[CARRY]))),
        Op::Sub => two(move |s| carry(u128::from(s[0]) + u128::from(!s[1] & m) + 1)),
        Op::Subc => two(move |s| carry(u128::from(s[0]) + u128::from(!s[1] & m) + u128::from(s[CARRY]))),
        Op::Sad => one(move |s| s[2].wrapping_add((n(s[0]) - n(s[1])).unsigned_abs() as u64) & m),
        Op::Div => one(move |s| quotient(ty, s[0], s[1])),
        Op::Rem => one(move |s| remainder(ty, s[0], s[1])),
        Op::Abs => one(move |s| n(s[0]).unsigned_abs() as u64 & m),
        Op::Neg => one(move |s| s[0].wrapping_neg() & m),
        Op::Min if mods.relu => one(move |s| n(s[0]).min(n(s[1])).max(0) as u64 & m),
        Op::Max if mods.relu => one(move |s| n(s[0]).max(n(s[1])).max(0) as u64 & m),
        Op::Min => one(move |s| n(s[0]).min(n(s[1])) as u64 & m),
        Op::Max => one(move |s| n(s[0]).max(n(s[1])) as u64 & m),
        _ => None,
    }
}

/// The quotient, truncated towards zero. A division by zero, which the ISA leaves open, gives all
/// ones.
pub(in crate::sim) fn quotient(ty: ScalarType, a: u64, b: u64) -> u64 {
    let m = mask(ty.bits());
    if b == 0 { m } else { (number(ty, a) / number(ty, b)) as u64 & m }
}

/// The remainder, with the sign of the dividend. For a zero divisor, which the ISA leaves open, it
/// is the dividend, or all ones in 16 bits, as with ptxas.
fn remainder(ty: ScalarType, a: u64, b: u64) -> u64 {
    match (b, ty.bits()) {
        (0, 16) => mask(16),
        (0, _) => a,
        _ => (number(ty, a) % number(ty, b)) as u64 & mask(ty.bits()),
    }
}

/// The full product, twice as wide as the type.
fn product(ty: ScalarType, a: u64, b: u64) -> u128 {
    if is_signed(ty) { (number(ty, a) * number(ty, b)) as u128 } else { u128::from(a) * u128::from(b) }
}

/// The bits of the full product that the instruction returns.
fn part(mode: MulMode, ty: ScalarType, p: u128) -> u64 {
    match mode {
        MulMode::Lo => p as u64 & mask(ty.bits()),
        MulMode::Hi => (p >> ty.bits()) as u64 & mask(ty.bits()),
        MulMode::Wide => p as u64 & mask(2 * ty.bits()),
    }
}

fn products(op: Op, mods: &Modifiers, ty: ScalarType) -> Option<Alu> {
    let mode = mods.mul_mode?;
    let bits = if mode == MulMode::Wide { 2 * ty.bits() } else { ty.bits() };
    let m = mask(bits);
    let mul = move |s: &Sources| part(mode, ty, product(ty, s[0], s[1]));
    let mul24 = move |s: &Sources| {
        let cut = |x: u64| if is_signed(ty) { i128::from(sign_extend(x, 24) as i64) } else { i128::from(x & mask(24)) };
        let p = cut(s[0]) * cut(s[1]);
        (if mode == MulMode::Hi { p >> 16 } else { p }) as u64 & mask(32)
    };
    let sum = move |p: u64, s: &Sources| p.wrapping_add(s[2]) & m;
    let saturated = move |p: u64, s: &Sources| clamp(ty, number(ty, p) + number(ty, s[2]));
    match op {
        Op::Mul => one(mul),
        Op::Mad if mods.saturate => one(move |s| saturated(mul(s), s)),
        Op::Mad if !mods.carry_out => one(move |s| sum(mul(s), s)),
        Op::Mad | Op::Madc => two(move |s| {
            let carry = if op == Op::Madc { s[CARRY] } else { 0 };
            let total = u128::from(mul(s)) + u128::from(s[2]) + u128::from(carry);
            [total as u64 & m, (total >> bits) as u64 & 1]
        }),
        Op::Mul24 => one(mul24),
        Op::Mad24 if mods.saturate => one(move |s| saturated(mul24(s), s)),
        Op::Mad24 => one(move |s| sum(mul24(s), s)),
        _ => None,
    }
}

/// Operations on bits and bytes.
fn bits(op: Op, mods: &Modifiers, ty: ScalarType, i: &Instruction) -> Option<Alu> {
    let bits = ty.bits();
    let wrap = mods.shift_mode == Some(ShiftMode::Wrap);
    let shift_amount = mods.shift_amount;
    match op {
        // The top byte of a shared address names the block. The last sources are the own rank and
        // the number of blocks: alone, the byte is the rank; among several it is one more, and 0 is
        // the own block.
        Op::Mapa => one(|s| {
            let byte = match (s[3], s[1] == s[2]) {
                (1, _) => s[1],
                (_, true) => 0,
                _ => s[1] + 1,
            };
            s[0] & !0xff00_0000 | (byte & 255) << 24
        }),
        Op::Getctarank => one(|s| {
            let byte = s[0] >> 24 & 255;
            if s[2] == 1 { byte } else { byte.checked_sub(1).unwrap_or(s[1]) }
        }),
        Op::Popc => one(|s| s[0].count_ones().into()),
        Op::Clz => one(move |s| u64::from(s[0].leading_zeros() - (64 - bits))),
        Op::Brev => one(move |s| s[0].reverse_bits() >> (64 - bits)),
        Op::Bfind => one(move |s| find(ty, s[0], shift_amount)),
        Op::Fns => one(|s| find_nth(s[0] as u32, s[1] as u32, s[2] as i32).into()),
        Op::Bfe => one(move |s| extract(ty, s[0], s[1] & 255, s[2] & 255)),
        Op::Bfi => one(move |s| insert(bits, s[0], s[1], s[2] & 255, s[3] & 255)),
        Op::Szext => one(move |s| {
            let width = if wrap { s[1] & 31 } else { s[1].min(32) } as u32;
            let low = s[0] & mask(width);
            if is_signed(ty) && width != 0 { sign_extend(low, width) & mask(32) } else { low }
        }),
        Op::Bmsk => one(move |s| {
            let (at, width) = if wrap { (s[0] & 31, s[1] & 31) } else { (s[0].min(32), s[1].min(32)) };
            mask(width as u32) << at & mask(32)
        }),
        Op::Clmad => {
            let high = mods.mul_mode == Some(MulMode::Hi);
            one(move |s| carryless_mad(s[0], s[1], s[2], high))
        }
        Op::Dp4a => dot(ty, *i.types.get(1)?, None),
        Op::Dp2a => dot(ty, *i.types.get(1)?, mods.mul_mode),
        _ => None,
    }
}

/// The position of the highest bit that differs from the sign; all ones if there is none.
fn find(ty: ScalarType, value: u64, shift_amount: bool) -> u64 {
    let bits = ty.bits();
    let flipped = if is_signed(ty) && number(ty, value) < 0 { !value & mask(bits) } else { value };
    if flipped == 0 {
        return mask(32);
    }
    let at = u64::from(63 - flipped.leading_zeros());
    if shift_amount { u64::from(bits - 1) - at } else { at }
}

/// The position of the n-th set bit at or after `base`, upwards or downwards.
fn find_nth(word: u32, base: u32, offset: i32) -> u32 {
    let set = |at: i64| (0..32).contains(&at) && word >> at & 1 != 0;
    let base = i64::from(base);
    if offset == 0 {
        return if set(base) { base as u32 } else { u32::MAX };
    }
    let step = i64::from(offset.signum());
    let mut left = offset.unsigned_abs();
    let mut at = base;
    while (0..32).contains(&at) {
        left -= u32::from(set(at));
        if left == 0 {
            return at as u32;
        }
        at += step;
    }
    u32::MAX
}

/// `len` bits from `pos` on, extended by the sign bit, which is the last existing bit of the field.
fn extract(ty: ScalarType, value: u64, pos: u64, len: u64) -> u64 {
    let top = u64::from(ty.bits()) - 1;
    let sign = is_signed(ty) && len != 0 && value >> (pos + len - 1).min(top) & 1 != 0;
    let bit = |i: u64| if i < len && pos + i <= top { value >> (pos + i) & 1 != 0 } else { sign };
    (0..=top).fold(0, |word, i| word | u64::from(bit(i)) << i)
}

/// `b` with `len` bits from `pos` on replaced by the low bits of `a`.
fn insert(bits: u32, a: u64, b: u64, pos: u64, len: u64) -> u64 {
    if pos >= bits.into() {
        return b;
    }
    let field = mask(len.min(64) as u32) << pos & mask(bits);
    b & !field | a << pos & field
}

/// The dot product of bytes with bytes, or of half-words with the low or high bytes, plus the third
/// source.
fn dot(a: ScalarType, b: ScalarType, half: Option<MulMode>) -> Option<Alu> {
    let (a_signed, b_signed) = (is_signed(a), is_signed(b));
    let take = |word: u64, at: u32, bits: u32, signed: bool| {
        let part = word >> at & mask(bits);
        if signed { sign_extend(part, bits) } else { part }
    };
    one(move |s| {
        let (count, width, first) = match half {
            None => (4, 8, 0),
            Some(MulMode::Hi) => (2, 16, 16),
            Some(_) => (2, 16, 0),
        };
        let terms = (0..count)
            .map(|i| take(s[0], width * i, width, a_signed).wrapping_mul(take(s[1], first + 8 * i, 8, b_signed)));
        terms.fold(s[2], u64::wrapping_add) & mask(32)
    })
}

/// Operations on two 16-bit integers in a word.
fn packed(op: Op, mods: &Modifiers, ty: ScalarType) -> Option<Alu> {
    let (signed, count) = (ty.class() == TypeClass::SignedVector, elements(ty));
    let element = match (signed, count) {
        (true, 4) => ScalarType::S8,
        (false, 4) => ScalarType::U8,
        (true, _) => ScalarType::S16,
        _ => ScalarType::U16,
    };
    let (relu, saturate, bits) = (mods.relu, mods.saturate, element.bits());
    let compare = mods.compare;
    let f = move |a: i128, b: i128| match op {
        Op::Set => Some(if integers(compare?, a.cmp(&b)) { -1 } else { 0 }),
        Op::Add => Some(a + b),
        Op::Sub => Some(a - b),
        Op::Neg => Some(-a),
        Op::Min => Some(a.min(b)),
        Op::Max => Some(a.max(b)),
        _ => None,
    };
    f(0, 0)?;
    one(move |s| {
        each(bits, count, |i| {
            let n = |x: u64| number(element, x >> (bits as usize * i) & mask(bits));
            let value = f(n(s[0]), n(s[1])).unwrap_or(0);
            if saturate { clamp(element, value) } else { (if relu { value.max(0) } else { value }) as u64 & mask(bits) }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScalarType::{S32, U32, U64};

    #[test]
    fn fields() {
        assert_eq!(extract(S32, 0x80000000, 31, 1), 0xffff_ffff);
        assert_eq!(extract(S32, 0x8000_0000, 40, 4), 0xffff_ffff);
        assert_eq!(extract(U32, 0xabcd_ef01, 8, 8), 0xef);
        assert_eq!(extract(U32, 0xffff_ffff, 4, 0), 0);
        assert_eq!(insert(32, 0xff, 0, 28, 8), 0xf000_0000);
        assert_eq!(insert(64, 0xff, 1, 255, 8), 1);
    }

    #[test]
    fn bits_found() {
        assert_eq!(find(U32, 1 << 20, false), 20);
        assert_eq!(find(U32, 1 << 20, true), 11);
        assert_eq!(find(S32, 0xffff_ffff, false), 0xffff_ffff);
        assert_eq!(find(U64, 1 << 63, true), 0);
        assert_eq!(find_nth(0b1010, 0, 2), 3);
        assert_eq!(find_nth(0b1010, 3, -2), 1);
        assert_eq!(find_nth(0b1010, 1, 0), 1);
        assert_eq!(find_nth(0b1010, 0, 3), u32::MAX);
    }

    #[test]
    fn division_edges() {
        assert_eq!(quotient(S32, 0x8000_0000, 0xffff_ffff), 0x8000_0000);
        assert_eq!(remainder(S32, 0x8000_0000, 0xffff_ffff), 0);
        assert_eq!(remainder(S32, u64::from(-7i32 as u32), 3), u64::from(-1i32 as u32));
        assert_eq!(quotient(ScalarType::S64, 1 << 63, u64::MAX), 1 << 63);
    }
}
