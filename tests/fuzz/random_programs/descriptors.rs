//! Factors in shared memory, of warp groups and of tensor memory, in random programs.
//!
//! The whole tile holds elements whose products have exact sums, so that a factor may lie anywhere
//! in it: a random layout is taken, of which every byte is in the tile.

use super::families::{Place, meet, words};
use super::matrix::FLOATS;
use super::tree::OWN_TILE;
use crate::random::Random;

/// A factor in the tile: its first byte, what is or-ed to its descriptor, and whether its lines are
/// the other way round.
pub struct Factor {
    pub start: usize,
    pub bits: u64,
    pub turned: bool,
}

/// A layout of so many lines of `depth` elements; `turning`: whether a factor may be turned.
pub fn factor(
    random: &mut Random,
    place: &Place,
    (lines, depth): (usize, usize),
    bits: usize,
    turning: bool,
) -> Factor {
    let tile = place.threads * OWN_TILE;
    loop {
        let span = [16, 32, 64, 128][random.below(4)];
        let turned = turning && bits == 16 && random.below(2) == 0;
        // A step of eight lines or more; steps of the other side are of whole patterns too.
        let unit = 8 * span;
        let (leading, stride) = (unit * (1 + random.below(4)), unit * (1 + random.below(4)));
        let start = unit * random.below(tile / unit / 2);
        let last = |line: usize, place: usize| {
            let (near, far) = if turned { (line, place) } else { (place, line) };
            let (by_far, by_near) = match (turned, span) {
                (true, 16) => (leading, stride),
                (false, 32..) => (stride, span),
                _ => (stride, leading),
            };
            near * bits / 8 / span * by_near + far / 8 * by_far
        };
        if start + last(lines - 1, depth - 1) + unit > tile {
            continue;
        }
        let layout = match span {
            16 => 0u64,
            _ => 256 / span as u64 / 2,
        };
        let layout = [0, 1, 2, 0, 3][layout as usize];
        let bits = (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | layout << 62;
        return Factor { start, bits, turned };
    }
}

/// Sets a register to a factor's descriptor.
pub fn descriptor(factor: &Factor, to: &str, more: u64) -> String {
    format!(
        "mov.u32 TA, tile; add.u32 TA, TA, {}; shr.u32 TA, TA, 4; and.b32 TA, TA, 0x3fff; cvt.u64.u32 {to}, TA; or.b64 {to}, {to}, {:#x}; ",
        factor.start,
        factor.bits | more
    )
}

/// Writes the tile, by all threads: elements of one type or of two of the same width.
pub fn fill(random: &mut Random, elements: &str) -> String {
    let mut text = meet(random).to_string() + &words(random, 4);
    if let Some((_, mask, base)) = FLOATS.iter().find(|f| f.0 == elements) {
        for i in 0..4 {
            text += &format!("and.b32 TW{i}, TW{i}, {mask:#x}; or.b32 TW{i}, TW{i}, {base:#x}; ");
        }
    }
    text += &format!("mov.u32 TA, tile; mad.lo.u32 TB, t, {OWN_TILE}, TA; ");
    for at in (0..OWN_TILE).step_by(16) {
        let list = ["TW0, TW1, TW2, TW3", "TW2, TW0, TW3, TW1", "TW1, TW3, TW0, TW2"][random.below(3)];
        text += &format!("st.shared.v4.b32 [TB+{at}], {{{list}}}; ");
    }
    text + ["fence.proxy.async; ", "fence.proxy.async.shared::cta; "][random.below(2)] + meet(random)
}
