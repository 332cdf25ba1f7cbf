//! Random statements of a warp or of a block, as PTX text. A mask names exactly the lanes that
//! reach the statement; a shuffle reads from a lane of its mask.

use super::make::{Lanes, guard, register};
use super::tree::OWN;
use crate::random::Random;

/// An operation across the lanes of a mask.
pub fn group(random: &mut Random, lanes: Lanes) -> String {
    let m = match lanes {
        Lanes::Mask(m) => m,
        _ => 0,
    };
    let [r, r2, d] = ['r', 'r', 'd'].map(|kind| register(random, kind));
    let (p, g) = (register(random, 'p'), guard(random));
    let texts = [
        // From the highest lane, and from the next higher lane of the mask.
        format!("bfind.u32 a, m{m}; shfl.sync.idx.b32 {r}, {r2}, a, 0x1f, m{m};"),
        format!(
            "mov.u32 a, %lanemask_gt; and.b32 a, a, m{m}; setp.eq.u32 q, a, 0; selp.b32 a, m{m}, a, q; brev.b32 a, a; bfind.shiftamt.u32 a, a; shfl.sync.idx.b32 {r}|{p}, {r2}, a, 0x1f, m{m};"
        ),
        format!("vote.sync.ballot.b32 {r}, {g}, m{m}; popc.b32 {r}, {r};"),
        format!("vote.sync.any.pred {p}, {g}, m{m};"),
        format!("match.any.sync.b32 {r}, {r2}, m{m};"),
        format!("match.any.sync.b64 {r}, {d}, m{m};"),
        format!("and.b32 a, {r2}, 1; match.all.sync.b32 {r}|{p}, a, m{m};"),
        format!("bar.warp.sync m{m};"),
        // One lane writes a value that the others read.
        format!(
            "bfind.u32 a, m{m}; mov.u32 w, %laneid; setp.eq.u32 q, a, w; sub.u32 a, a, w; mad.lo.u32 a, a, {OWN}, s; @q st.shared.b32 [a+16], {r2}; bar.warp.sync m{m}; ld.shared.b32 {r}, [a+16]; bar.warp.sync m{m};"
        ),
    ];
    texts[random.below(texts.len())].clone()
}

/// Exchanges values with another thread of the block through shared memory.
pub fn exchange(random: &mut Random, threads: usize) -> String {
    let (r, r2, by) = (register(random, 'r'), register(random, 'r'), 1 + random.below(threads - 1));
    let bar = ["bar.sync 0;", "barrier.sync 0;", "barrier.cta.sync.aligned 0;", "bar.cta.sync 3;"][random.below(4)];
    let guarded = if random.below(2) == 0 { String::new() } else { format!("@{} ", guard(random)) };
    format!(
        "add.u32 a, t, {by}; and.b32 a, a, {}; mov.u32 w, sh; mad.lo.u32 a, a, {OWN}, w; {bar} {guarded}st.shared.b32 [s+16], {r}; {bar} ld.shared.b32 {r2}, [a+16]; {bar}",
        threads - 1
    )
}
