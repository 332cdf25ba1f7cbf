//! Integer arithmetic on words: sums with carries, products, shifts, bit fields, byte permutation,
//! logic tables.
//!
//! A shift count or field position outside the word is clamped or wrapped, as the caller says. No
//! function panics.

/// Adds three words and carries; returns the sum and the carry out of the word.
pub fn add3(a: u32, b: u32, c: u32, carries: u32) -> (u32, u32) {
    let sum = u64::from(a) + u64::from(b) + u64::from(c) + u64::from(carries);
    (sum as u32, (sum >> 32) as u32)
}

/// The 64-bit product a × b.
pub fn product(a: u32, b: u32, signed: bool) -> u64 {
    if signed { (i64::from(a as i32) * i64::from(b as i32)) as u64 } else { u64::from(a) * u64::from(b) }
}

/// Computes a × b + c + carry in 64 bits, with the product negated on request, and the carry out.
pub fn mad64(a: u32, b: u32, c: u64, carry: bool, signed: bool, negate: bool) -> (u64, bool) {
    let p = product(a, b, signed);
    let p = if negate { p.wrapping_neg() } else { p };
    let sum = u128::from(p) + u128::from(c) + u128::from(carry);
    (sum as u64, sum >> 64 != 0)
}

/// The modifiers of `LEA`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lea {
    /// Shift amount of `a`.
    pub shift: u8,
    /// Whether the high word of the shifted pair is added.
    pub hi: bool,
    /// Whether the high word of the pair is the sign of the low word.
    pub sx32: bool,
    /// Whether a carry comes in.
    pub x: bool,
    /// Whether `a` is a negated number: then the carry says that nothing was borrowed.
    pub negated: bool,
}

/// `LEA`: (a << shift) + b, or with the high word of the shifted pair c:a; returns the sum and its
/// carry.
pub fn lea(how: Lea, a: u32, b: u32, c: u32, carry: u32) -> (u32, u32) {
    let high = if how.sx32 { ((a as i32) >> 31) as u32 } else { c };
    let pair = u64::from(high) << 32 | u64::from(a);
    let shifted = pair << (how.shift & 31);
    let part = if how.hi { (shifted >> 32) as u32 } else { shifted as u32 };
    let (sum, out) = add3(part, b, 0, carry);
    // Zero is taken away as its complement and one, which carry.
    (sum, out | u32::from(how.negated && part == 0))
}

/// The modifiers of a funnel shift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// Whether it shifts right.
    pub right: bool,
    /// Whether a right shift is arithmetic.
    pub signed: bool,
    /// Whether the count is clamped to 64 instead of 32.
    pub wide: bool,
    /// Whether the count wraps instead of being clamped.
    pub wrap: bool,
    /// Whether the high word of the shifted pair is returned.
    pub high: bool,
}

/// Shifts the pair high:low and returns one of its words.
pub fn funnel(how: Shift, low: u32, count: u32, high: u32) -> u32 {
    let bits = if how.wide { 64 } else { 32 };
    let count = if how.wrap { count & (bits - 1) } else { count.min(bits) };
    let pair = u64::from(high) << 32 | u64::from(low);
    let shifted = match (how.right, how.signed) {
        (false, _) => pair.checked_shl(count).unwrap_or(0),
        (true, false) => pair.checked_shr(count).unwrap_or(0),
        (true, true) => ((pair as i64) >> count.min(63)) as u64,
    };
    if how.high { (shifted >> 32) as u32 } else { shifted as u32 }
}

/// A mask of `width` ones from bit `position` on.
pub fn bit_mask(position: u32, width: u32, wrap: bool) -> u32 {
    let (position, width) = if wrap { (position & 31, width & 31) } else { (position, width) };
    let ones = if width >= 32 { u32::MAX } else { (1 << width) - 1 };
    ones.checked_shl(position).unwrap_or(0)
}

/// The low `width` bits, zero- or sign-extended.
pub fn extend(a: u32, width: u32, signed: bool, wrap: bool) -> u32 {
    let width = if wrap { width & 31 } else { width };
    match width {
        0 => 0,
        32.. => a,
        _ if signed => (((a << (32 - width)) as i32) >> (32 - width)) as u32,
        _ => a << (32 - width) >> (32 - width),
    }
}

/// Position of the highest set bit (if signed, of the highest bit that differs from the sign);
/// `None` if there is none. `from_top` counts from bit 31.
pub fn find_leading(a: u32, signed: bool, from_top: bool) -> Option<u32> {
    let a = if signed && (a as i32) < 0 { !a } else { a };
    let zeros = a.leading_zeros();
    match zeros {
        32 => None,
        _ if from_top => Some(zeros),
        _ => Some(31 - zeros),
    }
}

/// How PRMT interprets its selector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permute {
    /// Four selector nibbles, each the index of a byte.
    #[default]
    Index,
    /// Four bytes forward from the index.
    F4e,
    /// Four bytes backward from the index.
    B4e,
    /// One byte, replicated.
    Rc8,
    /// Clamped from below by the byte's position.
    Ecl,
    /// Clamped from above by the byte's position.
    Ecr,
    /// One half-word, replicated.
    Rc16,
}

/// Selects four of the eight bytes of the pair c:a.
pub fn permute(mode: Permute, a: u32, selector: u32, c: u32) -> u32 {
    let pair = u64::from(c) << 32 | u64::from(a);
    let s = selector & 3;
    let pick: [u32; 4] = match mode {
        Permute::Index => std::array::from_fn(|i| selector >> (4 * i) & 15),
        Permute::F4e => std::array::from_fn(|i| s + i as u32),
        Permute::B4e => std::array::from_fn(|i| (s + 8 - i as u32) & 7),
        Permute::Rc8 => [s; 4],
        Permute::Ecl => std::array::from_fn(|i| s.max(i as u32)),
        Permute::Ecr => std::array::from_fn(|i| s.min(i as u32)),
        Permute::Rc16 => [2 * (s & 1), 2 * (s & 1) + 1, 2 * (s & 1), 2 * (s & 1) + 1],
    };
    pick.iter().rev().fold(0, |word, p| {
        let byte = (pair >> (8 * (p & 7))) as u8;
        let byte = if p & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 };
        word << 8 | u32::from(byte)
    })
}

/// Applies a truth table of three inputs to each bit of three words; the index is a·4 + b·2 + c.
pub fn logic3(lut: u8, a: u32, b: u32, c: u32) -> u32 {
    (0..8).filter(|i| lut >> i & 1 != 0).fold(0, |word, i| {
        let pick = |x: u32, on: bool| if on { x } else { !x };
        word | pick(a, i & 4 != 0) & pick(b, i & 2 != 0) & pick(c, i & 1 != 0)
    })
}

/// Applies a truth table to three truth values.
pub fn logic3_bool(lut: u8, a: bool, b: bool, c: bool) -> bool {
    lut >> (u8::from(a) * 4 + u8::from(b) * 2 + u8::from(c)) & 1 != 0
}

/// Integer comparisons, in the order of their encoding in the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cmp {
    #[default]
    False,
    Lt,
    Eq,
    Le,
    Gt,
    Ne,
    Ge,
    True,
}

/// Compares two numbers; the caller has already applied the signedness.
pub fn compare(cmp: Cmp, a: i128, b: i128) -> bool {
    match cmp {
        Cmp::False => false,
        Cmp::Lt => a < b,
        Cmp::Eq => a == b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ne => a != b,
        Cmp::Ge => a >= b,
        Cmp::True => true,
    }
}

/// Compares the high words of a 64-bit comparison; `low` is the result of the low words.
pub fn compare_high(cmp: Cmp, a: i128, b: i128, low: bool) -> bool {
    match cmp {
        Cmp::Lt | Cmp::Le => a < b || a == b && low,
        Cmp::Gt | Cmp::Ge => a > b || a == b && low,
        Cmp::Eq => a == b && low,
        Cmp::Ne => a != b || low,
        Cmp::False | Cmp::True => compare(cmp, a, b),
    }
}

/// Adds to c the dot product of four bytes with four bytes, or of two half-words with two bytes
/// (`halves`: of the high pair).
pub fn dot(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, halves: Option<bool>) -> u32 {
    let byte = |w: u32, i: u32, signed: bool| {
        let v = (w >> (8 * i)) as u8;
        if signed { i32::from(v as i8) } else { i32::from(v) }
    };
    let half = |i: u32| {
        let v = (a >> (16 * i)) as u16;
        if a_signed { i32::from(v as i16) } else { i32::from(v) }
    };
    let sum = match halves {
        None => (0..4).map(|i| byte(a, i, a_signed) * byte(b, i, b_signed)).fold(0, i32::wrapping_add),
        Some(high) => {
            let first = if high { 2 } else { 0 };
            (0..2).map(|i| half(i).wrapping_mul(byte(b, first + i, b_signed))).fold(0, i32::wrapping_add)
        }
    };
    c.wrapping_add(sum as u32)
}

/// One half of the 127-bit product of two polynomials of bits, plus `c`, without carries.
pub fn carryless_mad(a: u64, b: u64, c: u64, high: bool) -> u64 {
    let product = (0..64).filter(|i| b >> i & 1 != 0).fold(0u128, |sum, i| sum ^ u128::from(a) << i);
    c ^ (if high { product >> 64 } else { product }) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products() {
        assert_eq!(add3(u32::MAX, u32::MAX, u32::MAX, 2), (u32::MAX, 2));
        assert_eq!(mad64(u32::MAX, u32::MAX, u64::MAX, false, false, false), (0xffff_fffe_0000_0000, true));
        assert_eq!(mad64(u32::MAX, 5, 0, false, true, false), (-5i64 as u64, false));
        assert_eq!(lea(Lea { shift: 2, ..Lea::default() }, 0x4000_0001, 3, 0, 0), (7, 0));
        let hi = Lea { shift: 2, hi: true, x: true, ..Lea::default() };
        assert_eq!(lea(hi, 0xc000_0001, 10, 0, 1), (14, 0));
        assert_eq!(lea(Lea { sx32: true, ..hi }, 0xc000_0001, 10, 0, 1), (10, 1));
        let minus = Lea { shift: 7, negated: true, ..Lea::default() };
        assert_eq!((lea(minus, 0, 70, 0, 0), lea(minus, 1u32.wrapping_neg(), 70, 0, 0)), ((70, 1), (-58i32 as u32, 0)));
        assert_eq!(lea(minus, 1u32.wrapping_neg(), 128, 0, 0), (0, 1));
    }

    #[test]
    fn shifts() {
        let shift = |right, signed, wide, wrap, high| Shift { right, signed, wide, wrap, high };
        assert_eq!(funnel(shift(false, false, false, false, false), 1, 40, 0), 0);
        assert_eq!(funnel(shift(false, false, false, true, false), 1, 40, 0), 0x100);
        assert_eq!(funnel(shift(true, false, false, false, true), 0, 4, 0x80), 8);
        assert_eq!(funnel(shift(true, true, false, false, true), 0, 99, 0x8000_0000), u32::MAX);
        assert_eq!(funnel(shift(true, false, true, false, false), 0, 36, 0x80), 8);
        assert_eq!(funnel(shift(false, false, true, false, true), 1, 36, 0), 16);
        assert_eq!(funnel(shift(false, false, false, false, true), 0xdead_beef, 32, 7), 0xdead_beef);
    }

    #[test]
    fn bit_fields() {
        assert_eq!(bit_mask(4, 8, false), 0xff0);
        assert_eq!(bit_mask(40, 8, false), 0);
        assert_eq!(bit_mask(40, 8, true), 0xff00);
        assert_eq!(bit_mask(0, 32, false), u32::MAX);
        assert_eq!(extend(0x80, 8, true, false), 0xffff_ff80);
        assert_eq!(extend(0x1ff, 8, false, false), 0xff);
        assert_eq!(extend(5, 0, true, false), 0);
        assert_eq!(find_leading(0, false, false), None);
        assert_eq!(find_leading(0x10, false, false), Some(4));
        assert_eq!(find_leading(0x10, false, true), Some(27));
        assert_eq!(find_leading(-2i32 as u32, true, false), Some(0));
    }

    #[test]
    fn bytes_and_logic() {
        assert_eq!(permute(Permute::Index, 0x3322_1100, 0x5410, 0x7766_5544), 0x5544_1100);
        assert_eq!(permute(Permute::Index, 0x80, 0x8888, 0), 0xffff_ffff);
        assert_eq!(permute(Permute::F4e, 0x3322_1100, 1, 0x7766_5544), 0x4433_2211);
        assert_eq!(permute(Permute::B4e, 0x3322_1100, 1, 0x7766_5544), 0x6677_0011);
        assert_eq!(logic3(0xc0, 0b1100, 0b1010, 0), 0b1000);
        assert_eq!(logic3(0x96, 1, 2, 7), 4);
        assert!(logic3_bool(0x80, true, true, true) && !logic3_bool(0x80, true, true, false));
        assert_eq!(dot(0x0101_01ff, 0x0202_0202, 1, true, true, None), 5);
        assert_eq!(dot(0x0002_0003, 0x0504_0302, 0, true, true, Some(true)), 22);
    }

    #[test]
    fn wide_comparison() {
        assert!(compare_high(Cmp::Ge, 1, 1, true) && !compare_high(Cmp::Ge, 1, 1, false));
        assert!(compare_high(Cmp::Lt, 0, 1, false) && compare_high(Cmp::Ne, 1, 1, true));
        assert!(!compare_high(Cmp::Eq, 2, 1, true));
    }
}
