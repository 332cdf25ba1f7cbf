//! Writes bits in the syntax of the encoding rows: `LO..HI`, `LO..HI+LO..HI`, `LO..HI=VALUE`.
//! `model::form_syntax` reads the result as the same bits.

use super::known::ranges as ranges_of;
use crate::check::bits::ranges;
use crate::model::form_syntax::Bits;

/// Runs of ascending bits: (lowest, count).
pub fn pieces(bits: &[u8]) -> Vec<(u8, u8)> {
    let mut pieces: Vec<(u8, u8)> = Vec::new();
    for bit in bits {
        match pieces.last_mut() {
            Some((lo, len)) if *lo + *len == *bit => *len += 1,
            _ => pieces.push((*bit, 1)),
        }
    }
    pieces
}

/// Bits in the syntax of the columns.
pub fn at(bits: &[u8]) -> String {
    ranges_of(&Bits { pieces: pieces(bits), shift: 0 })
}

/// Bits of a mask as `LO..HI=VALUE` words.
pub fn constants(mask: u128, word: u128) -> String {
    let one = |range: &str| {
        let (lo, hi) = range.split_once("..").unwrap_or((range, range));
        let (lo, hi): (u32, u32) = (lo.parse().unwrap_or(0), hi.parse().unwrap_or(0));
        // A range too wide for a number of the grammar is split.
        let cuts = (lo..=hi).step_by(64).map(|from| (from, hi.min(from + 63)));
        cuts.map(|(lo, hi)| {
            let value = word >> lo & ((1u128 << (hi - lo + 1)) - 1);
            let value = if value < 10 { value.to_string() } else { format!("{value:#x}") };
            if lo == hi { format!("{lo}={value}") } else { format!("{lo}..{hi}={value}") }
        })
        .collect::<Vec<_>>()
        .join(" ")
    };
    ranges(mask).split_whitespace().map(one).collect::<Vec<_>>().join(" ")
}
