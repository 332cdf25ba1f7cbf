//! Numbers of a launch description: element types, literals, and the named generators.
//!
//! Input: the text of a number, or a generator's figures. Output: bits, in the low end of a `u64`. Invariant: a decimal
//! becomes the nearest value of its type (integers must fit), a hexadecimal number is the bits themselves, and a
//! generator gives the same numbers on every machine.

use serde::Deserialize;

/// The type of a scalar argument or of a buffer's elements, under its PTX name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F32,
    F64,
}

use ElementType::*;

impl ElementType {
    /// All types and their names.
    pub const ALL: [(ElementType, &'static str); 10] = [
        (U8, "u8"),
        (S8, "s8"),
        (U16, "u16"),
        (S16, "s16"),
        (U32, "u32"),
        (S32, "s32"),
        (U64, "u64"),
        (S64, "s64"),
        (F32, "f32"),
        (F64, "f64"),
    ];

    /// The type of this name.
    pub fn from_name(name: &str) -> Option<ElementType> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(ty, _)| *ty)
    }

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(ty, _)| *ty == self).map_or("", |(_, name)| name)
    }

    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            U8 | S8 => 1,
            U16 | S16 => 2,
            U32 | S32 | F32 => 4,
            U64 | S64 | F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, F32 | F64)
    }

    pub fn is_signed(self) -> bool {
        matches!(self, S8 | S16 | S32 | S64)
    }

    fn bits(self) -> u32 {
        8 * self.size() as u32
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The bits of a number written as text: decimal, `0x…` for the bits, and for floats `nan`, `inf`, `-inf`.
    pub fn parse(self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let digits: String = text.chars().filter(|c| *c != '_').collect();
        if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            let bits = u64::from_str_radix(hex, 16).map_err(|_| self.not_a_number(text))?;
            return if bits <= self.mask() { Ok(bits) } else { Err(self.does_not_fit(text)) };
        }
        match self {
            // The standard library reads decimals with one rounding, and `nan` as the quiet NaN without payload.
            F32 => digits.parse::<f32>().map(|v| v.to_bits().into()).map_err(|_| self.not_a_number(text)),
            F64 => digits.parse::<f64>().map(f64::to_bits).map_err(|_| self.not_a_number(text)),
            _ => {
                let value: i128 = digits.parse().map_err(|_| self.not_a_number(text))?;
                if self.range().contains(&value) { Ok(self.wrap(value)) } else { Err(self.does_not_fit(text)) }
            }
        }
    }

    fn range(self) -> std::ops::RangeInclusive<i128> {
        let bits = self.bits();
        if self.is_signed() { -(1 << (bits - 1))..=(1 << (bits - 1)) - 1 } else { 0..=(1 << bits) - 1 }
    }

    fn not_a_number(self, text: &str) -> String {
        format!("`{text}` is not a number of type {}", self.name())
    }

    fn does_not_fit(self, text: &str) -> String {
        format!("`{text}` does not fit into {}", self.name())
    }

    /// The low bits of an integer.
    fn wrap(self, value: i128) -> u64 {
        value as u64 & self.mask()
    }

    /// Appends the element with these bits to a buffer.
    pub fn put(self, bits: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&bits.to_le_bytes()[..self.size()]);
    }

    /// The bits of one element, `bytes` being as long as the type.
    pub fn get(self, bytes: &[u8]) -> u64 {
        bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// The value of a float's bits; an f32 is widened without loss.
    pub fn float(self, bits: u64) -> f64 {
        if self == F32 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
    }

    /// Text of an element for a person: the value, and the bits where the value does not show them all.
    pub fn show(self, bits: u64) -> String {
        let width = 2 * self.size() + 2;
        match self {
            F32 => format!("{} ({bits:#0width$x})", f32::from_bits(bits as u32)),
            F64 => format!("{} ({bits:#0width$x})", f64::from_bits(bits)),
            _ if self.is_signed() => {
                let shift = 64 - self.bits();
                format!("{} ({bits:#0width$x})", ((bits << shift) as i64) >> shift)
            }
            _ => format!("{bits} ({bits:#0width$x})"),
        }
    }

    /// `n` elements start, start + step, start + 2 step, …; integers wrap, f32 is computed in f64 and rounded once.
    pub fn iota(self, n: usize, start: &str, step: &str) -> Result<Vec<u64>, String> {
        if self.is_float() {
            let number = |text: &str| F64.parse(text).map(f64::from_bits);
            let (start, step) = (number(start)?, number(step)?);
            let element = |i: usize| start + i as f64 * step;
            return Ok((0..n).map(|i| self.nearest_to(element(i))).collect());
        }
        let integer = |text: &str| text.trim().parse::<i64>().map_err(|_| self.not_a_number(text));
        let (start, step) = (integer(start)?, integer(step)?);
        Ok((0..n).map(|i| self.wrap(i128::from(start) + i as i128 * i128::from(step))).collect())
    }

    fn nearest_to(self, value: f64) -> u64 {
        if self == F32 { (value as f32).to_bits().into() } else { value.to_bits() }
    }

    /// `n` pseudo-random elements: a 64-bit linear congruential generator, each state with its halves swapped (the high
    /// bits are the good ones) and the mask; an integer keeps the low bits, a float takes the value.
    pub fn lcg(self, n: usize, seed: u64, mask: u64) -> Vec<u64> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = state.rotate_left(32) & mask;
            if self.is_float() { self.nearest_to(value as f64) } else { self.wrap(value.into()) }
        };
        std::iter::repeat_with(next).take(n).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals() {
        assert_eq!(U32.parse("4294967295"), Ok(0xffff_ffff));
        assert_eq!(S32.parse("-1"), Ok(0xffff_ffff));
        assert_eq!(S8.parse("-128"), Ok(0x80));
        assert_eq!(S32.parse("0xffff_ffff"), Ok(0xffff_ffff));
        assert_eq!(U64.parse("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(F32.parse("0.1"), Ok(0x3dcc_cccd));
        assert_eq!(F32.parse("0x3f800000"), Ok(0x3f80_0000));
        assert_eq!(F32.parse("1"), Ok(0x3f80_0000));
        assert_eq!(F64.parse("-inf"), Ok(f64::NEG_INFINITY.to_bits()));
        assert!(f32::from_bits(F32.parse("nan").unwrap() as u32).is_nan());
        assert_eq!(U32.parse("-1"), Err("`-1` does not fit into u32".into()));
        assert_eq!(S16.parse("32768"), Err("`32768` does not fit into s16".into()));
        assert_eq!(U8.parse("0x100"), Err("`0x100` does not fit into u8".into()));
        assert_eq!(S32.parse("2.5"), Err("`2.5` is not a number of type s32".into()));
        assert_eq!(F32.parse("x"), Err("`x` is not a number of type f32".into()));
    }

    #[test]
    fn generators() {
        assert_eq!(U8.iota(3, "250", "5"), Ok(vec![250, 255, 4]));
        assert_eq!(S16.iota(2, "-1", "-1"), Ok(vec![0xffff, 0xfffe]));
        assert_eq!(F32.iota(2, "0.5", "0.25"), Ok(vec![0x3f00_0000, 0x3f40_0000]));
        // state 1: 1 * 6364136223846793005 + 1442695040888963407 = 0x6c576e0fbfa5e4bc… halves swapped, low byte
        let state = 6364136223846793005u64.wrapping_add(1442695040888963407);
        assert_eq!(U32.lcg(1, 1, 0xff), vec![(state >> 32) & 0xff]);
        assert_eq!(F32.lcg(1, 1, 0xff), vec![u64::from(((state >> 32 & 0xff) as f32).to_bits())]);
    }

    #[test]
    fn shown() {
        assert_eq!(S8.show(0xff), "-1 (0xff)");
        assert_eq!(U16.show(7), "7 (0x0007)");
        assert_eq!(F32.show(0x4020_0000), "2.5 (0x40200000)");
    }
}
