//! Packs and unpacks two 16-bit numbers in a 32-bit word.
//!
//! The operand modifier ([`Pick`]) selects which half feeds each result; the arithmetic on the
//! halves is in [`super::real`].

use super::format::{BF16, F16, F32, Format, Round};

/// The halves of an operand that feed the low and the high result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// The low half for the low result, the high half for the high one.
    #[default]
    Both,
    /// The low half for both.
    Low,
    /// The high half for both.
    High,
    /// The halves exchanged.
    Swapped,
    /// The operand is one f32, truncated to the format and used for both results; ptxas 13.0.88
    /// implements `cvt.rz.f16.f32` with it.
    Single,
}

/// The two numbers that an operand provides in format `f`, low first.
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

/// Packs two results into a word.
pub fn join(low: u64, high: u64) -> u32 {
    (low as u32 & 0xffff) | (high as u32) << 16
}

/// The format of packed operands: bf16 or f16.
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
