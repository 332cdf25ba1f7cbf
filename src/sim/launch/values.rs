//! Numbers of a launch description: element types, literals, and the named generators.
//!
//! Values are bits in the low end of a `u64`. A decimal literal becomes the nearest value of its
//! type (an integer must fit), a hexadecimal literal is the bits themselves, and a generator gives
//! the same numbers on every host.

use crate::sim::ops::format::{self, Format, Round};
use serde::Deserialize;

/// The type of a scalar argument or of a buffer's elements, with its PTX name.
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
    F16,
    BF16,
    F32,
    F64,
}

use ElementType::*;

impl ElementType {
    /// All types with their names.
    pub const ALL: [(ElementType, &'static str); 12] = [
        (U8, "u8"),
        (S8, "s8"),
        (U16, "u16"),
        (S16, "s16"),
        (U32, "u32"),
        (S32, "s32"),
        (U64, "u64"),
        (S64, "s64"),
        (F16, "f16"),
        (BF16, "bf16"),
        (F32, "f32"),
        (F64, "f64"),
    ];

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<ElementType> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(ty, _)| *ty)
    }

    /// The PTX name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(ty, _)| *ty == self).map_or("", |(_, name)| name)
    }

    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            U8 | S8 => 1,
            U16 | S16 | F16 | BF16 => 2,
            U32 | S32 | F32 => 4,
            U64 | S64 | F64 => 8,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        self.format().is_some()
    }

    /// The format of a floating-point type.
    fn format(self) -> Option<Format> {
        match self {
            F16 => Some(format::F16),
            BF16 => Some(format::BF16),
            F32 => Some(format::F32),
            F64 => Some(format::F64),
            _ => None,
        }
    }

    /// Whether it is a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, S8 | S16 | S32 | S64)
    }

    fn bits(self) -> u32 {
        8 * self.size() as u32
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Parses a number: decimal, `0x…` for the bits, and for floats `nan`, `inf`, `-inf`.
    ///
    /// # Errors
    ///
    /// Text that is no number, or an integer that does not fit.
    pub fn parse(self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let digits: String = text.chars().filter(|c| *c != '_').collect();
        if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            let bits = u64::from_str_radix(hex, 16).map_err(|_| self.not_a_number(text))?;
            return if bits <= self.mask() { Ok(bits) } else { Err(self.does_not_fit(text)) };
        }
        match self {
            // The standard library rounds a decimal once and reads `nan` as the quiet NaN without
            // payload.
            F32 => digits.parse::<f32>().map(|v| v.to_bits().into()).map_err(|_| self.not_a_number(text)),
            F64 | F16 | BF16 => digits.parse::<f64>().map(|v| self.nearest_to(v)).map_err(|_| self.not_a_number(text)),
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

    /// Truncates an integer to the type.
    fn wrap(self, value: i128) -> u64 {
        value as u64 & self.mask()
    }

    /// Appends an element with these bits to a buffer.
    pub fn put(self, bits: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&bits.to_le_bytes()[..self.size()]);
    }

    /// Reads one element; `bytes` has the size of the type.
    pub fn get(self, bytes: &[u8]) -> u64 {
        bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// Widens a float exactly to f64.
    pub fn float(self, bits: u64) -> f64 {
        let from = self.format().unwrap_or(format::F64);
        f64::from_bits(from.convert(bits, format::F64, Round::Nearest))
    }

    /// Formats an element for a message: the value and its bits.
    pub fn show(self, bits: u64) -> String {
        let width = 2 * self.size() + 2;
        match self {
            F32 => format!("{} ({bits:#0width$x})", f32::from_bits(bits as u32)),
            F64 | F16 | BF16 => format!("{} ({bits:#0width$x})", self.float(bits)),
            _ if self.is_signed() => {
                let shift = 64 - self.bits();
                format!("{} ({bits:#0width$x})", ((bits << shift) as i64) >> shift)
            }
            _ => format!("{bits} ({bits:#0width$x})"),
        }
    }

    /// The `n` elements start, start + step, start + 2 step, …. Integers wrap; floats are computed
    /// in f64 and rounded once.
    ///
    /// # Errors
    ///
    /// A start or step that is no number of the type.
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
        let to = self.format().unwrap_or(format::F64);
        format::F64.convert(value.to_bits(), to, Round::Nearest)
    }

    /// `n` pseudo-random elements of a 64-bit linear congruential generator. Each state is rotated
    /// by 32 bits, since its high bits are the better ones, and masked. An integer keeps the low
    /// bits; a float takes the value.
    pub fn lcg(self, n: usize, seed: u64, mask: u64) -> Vec<u64> {
        let one = |state: u64| {
            let value = state.rotate_left(32) & mask;
            if self.is_float() { self.nearest_to(value as f64) } else { self.wrap(value.into()) }
        };
        states(seed).take(n).map(one).collect()
    }

    /// `n` pseudo-random elements between `low` and `high`: uniform over the integers, including
    /// both ends; floats are computed in f64 and rounded once.
    ///
    /// # Errors
    ///
    /// A bound that is no number of the type, or an empty range.
    pub fn random(self, n: usize, seed: u64, low: &str, high: &str) -> Result<Vec<u64>, String> {
        if self.is_float() {
            let number = |text: &str| F64.parse(text).map(f64::from_bits);
            let (low, high) = (number(low)?, number(high)?);
            let unit = |state: u64| (state >> 11) as f64 / (1u64 << 53) as f64;
            return Ok(states(seed).take(n).map(|s| self.nearest_to(low + (high - low) * unit(s))).collect());
        }
        let integer = |text: &str| text.trim().parse::<i128>().map_err(|_| self.not_a_number(text));
        let (low, high) = (integer(low)?, integer(high)?);
        if low > high || !self.range().contains(&low) || !self.range().contains(&high) {
            return Err(format!("{low} to {high} is no range of {}", self.name()));
        }
        let span = (high - low) as u128 + 1;
        let below = |state: u64| (u128::from(state) * span) >> 64;
        Ok(states(seed).take(n).map(|s| self.wrap(low + below(s) as i128)).collect())
    }

    /// `n` elements: every other one is an edge case of the type (zeros, ones, extremes,
    /// infinities, NaN, subnormals), the rest are random bits.
    pub fn edges(self, n: usize, seed: u64) -> Vec<u64> {
        let edges = self.edge_values();
        let one = |(i, state): (usize, u64)| {
            let bits = state.rotate_left(32);
            if i % 2 == 0 { edges[(bits % edges.len() as u64) as usize] } else { bits & self.mask() }
        };
        states(seed).take(n).enumerate().map(one).collect()
    }

    fn edge_values(self) -> Vec<u64> {
        let Some(f) = self.format() else {
            let half = self.bits() / 2;
            let top = self.mask() >> 1;
            return vec![
                0,
                1,
                2,
                3,
                7,
                31,
                self.mask(),
                self.mask() - 1,
                top,
                top + 1,
                top + 2,
                1 << half,
                top >> half,
            ];
        };
        let smallest_normal = 1u64 << f.mant;
        let mut values: Vec<u64> = [0.5, 1.0, 1.5, 2.0, 3.0, 100.0].iter().map(|v| self.nearest_to(*v)).collect();
        values.extend([0, 1, smallest_normal - 1, smallest_normal, f.max(false), f.inf(false)]);
        values.extend(values.clone().iter().map(|v| v | f.sign_bit()));
        values.push(f.inf(false) | 1 << (f.mant - 1));
        values
    }
}

/// The states of the generator after a seed.
fn states(seed: u64) -> impl Iterator<Item = u64> {
    let next = |state: &u64| Some(state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    std::iter::successors(Some(seed), next).skip(1)
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
        // state 1: 1 * 6364136223846793005 + 1442695040888963407 = 0x6c576e0fbfa5e4bc… halves
        // swapped, low byte
        let state = 6364136223846793005u64.wrapping_add(1442695040888963407);
        assert_eq!(U32.lcg(1, 1, 0xff), vec![(state >> 32) & 0xff]);
        assert_eq!(F32.lcg(1, 1, 0xff), vec![u64::from(((state >> 32 & 0xff) as f32).to_bits())]);
    }

    #[test]
    fn half_precision() {
        assert_eq!(F16.parse("1"), Ok(0x3c00));
        assert_eq!(F16.parse("65504"), Ok(0x7bff));
        assert_eq!(BF16.parse("-2.5"), Ok(0xc020));
        assert_eq!(BF16.parse("inf"), Ok(0x7f80));
        assert_eq!(F16.float(0x0001), 2f64.powi(-24));
        assert_eq!(BF16.iota(2, "1", "0.5"), Ok(vec![0x3f80, 0x3fc0]));
        assert_eq!(F16.show(0xc100), "-2.5 (0xc100)");
    }

    #[test]
    fn random_numbers_stay_in_their_range() {
        let floats = F32.random(1000, 7, "-2", "3").unwrap();
        assert!(floats.iter().all(|b| (-2.0..=3.0).contains(&F32.float(*b))));
        assert!(floats.iter().any(|b| F32.float(*b) < -1.9) && floats.iter().any(|b| F32.float(*b) > 2.9));
        let ints = S8.random(1000, 7, "-3", "3").unwrap();
        assert!([0xfd, 0xfe, 0xff, 0, 1, 2, 3].iter().all(|v| ints.contains(v)));
        assert!(ints.iter().all(|v| *v < 4 || *v > 0xfc));
        assert_eq!(U64.random(1, 1, "0", "18446744073709551615").unwrap().len(), 1);
        assert_eq!(U8.random(1, 1, "3", "2"), Err("3 to 2 is no range of u8".into()));
        assert_eq!(U8.random(1, 1, "0", "256"), Err("0 to 256 is no range of u8".into()));
        assert_eq!(F32.random(1, 1, "a", "2"), Err("`a` is not a number of type f64".into()));
    }

    #[test]
    fn edges_come_in_between() {
        let all = F32.edges(400, 3);
        for edge in [0u32, 0x8000_0000, 0x7f80_0000, 0xff7f_ffff, 1, 0x807f_ffff, 0x0080_0000, 0x3f80_0000] {
            assert!(all.contains(&edge.into()), "{edge:#x}");
        }
        assert!(all.iter().any(|b| F32.float(*b).is_nan()));
        let all = S16.edges(200, 3);
        assert!([0, 1, 0xffff, 0x7fff, 0x8000].iter().all(|v| all.contains(v)));
        assert!(U64.edges(200, 3).contains(&u64::MAX));
    }

    #[test]
    fn shown() {
        assert_eq!(S8.show(0xff), "-1 (0xff)");
        assert_eq!(U16.show(7), "7 (0x0007)");
        assert_eq!(F32.show(0x4020_0000), "2.5 (0x40200000)");
    }
}
