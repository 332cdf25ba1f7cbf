//! Two numbers of 16 bits in a word.
//!
//! Input: words and which half (or both) of each operand takes part. Output: words. Invariant: each half is computed on
//! its own by [`super::real`].

use super::format::{BF16, F16, F32, Format, Round};

/// Which halves of an operand the two results use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// Low for the low result, high for the high one.
    #[default]
    Both,
    Low,
    High,
    Swapped,
    /// The operand is one f32, cut off to the format (ptxas 13.0.88 makes `cvt.rz.f16.f32` of it): the same number for both.
    Single,
}

/// The operand as two numbers in format `f`, low first.
pub fn halves(pick: Pick, word: u32, f: Format) -> [u64; 2] {
    let (low, high) = (u64::from(word & 0xffff), u64::from(word >> 16));
    match pick {
        Pick::Both => [low, high],
        Pick::Low => [low, low],
        Pick::High => [high, high],
        Pick::Swapped => [high, low],
        Pick::Single => [F32.convert(word.into(), f, Round::Zero); 2],
    }
}

/// Two results in one word.
pub fn join(low: u64, high: u64) -> u32 {
    (low as u32 & 0xffff) | (high as u32) << 16
}

/// The format of packed operands.
pub fn packed(bf16: bool) -> Format {
    if bf16 { BF16 } else { F16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks() {
        assert_eq!(halves(Pick::Both, 0x1234_5678, F16), [0x5678, 0x1234]);
        assert_eq!(halves(Pick::High, 0x1234_5678, F16), [0x1234, 0x1234]);
        assert_eq!(halves(Pick::Swapped, 0x1234_5678, F16), [0x1234, 0x5678]);
        assert_eq!(halves(Pick::Single, 1f32.to_bits(), F16), [0x3c00, 0x3c00]);
        assert_eq!(join(0x5678, 0x1234), 0x1234_5678);
    }
}
