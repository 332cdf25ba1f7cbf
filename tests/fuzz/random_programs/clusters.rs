//! Clusters of blocks in random programs: memory and barriers of the other blocks.
//!
//! A statement begins and ends with a barrier of the cluster, so that no block touches memory that
//! another one still uses, and none ends before the others have left its memory. Between them each
//! thread writes what no other one reads, or many do with one commutative operation.

use super::counts::waited;
use super::families::{OPEN, Place, heap, leader, meet, slots, taken, words};
use super::make::register;
use crate::random::Random;
use sassafras::tables::Feature;

/// Reductions by one commutative operation: its name, its type, and the type's bytes.
const JOINS: [(&str, &str, usize); 10] = [
    ("add", "u32", 4),
    ("add", "s32", 4),
    ("min", "s32", 4),
    ("min", "u32", 4),
    ("max", "s32", 4),
    ("max", "u32", 4),
    ("and", "b32", 4),
    ("or", "b32", 4),
    ("xor", "b32", 4),
    ("add", "u64", 8),
];

/// A statement of a cluster.
pub fn statement(random: &mut Random, place: &Place) -> String {
    match random.below(7) {
        0 => loaded(random, place),
        1 => stored(random, place),
        2 => joined(random, place),
        3 => arrived(random, place),
        4 => sent(random, place),
        5 if !place.target.has(Feature::BulkCopiesByCall) => copied(random, place),
        _ => told(random),
    }
}

/// A barrier of the cluster, which orders memory.
pub fn all_meet(random: &mut Random) -> String {
    let aligned = [".aligned", ""][random.below(2)];
    let (release, acquire) = (["", ".release"][random.below(2)], ["", ".acquire"][random.below(2)]);
    format!("barrier.cluster.arrive{release}{aligned}; barrier.cluster.wait{acquire}{aligned};\n")
}

/// The rank of another block in `TR`, or of a block by a register, and the address of `from` there
/// in `to`, which may be `from`.
fn other(random: &mut Random, place: &Place) -> String {
    let by = 1 + random.below(place.cluster - 1);
    format!("mov.u32 TR, %cluster_ctarank; add.u32 TR, TR, {by}; and.b32 TR, TR, {}; ", place.cluster - 1)
}

/// The words that threads of another block stored.
fn loaded(random: &mut Random, place: &Place) -> String {
    let mut text = OPEN.to_string() + &slots(random, place, 16) + meet(random) + &words(random, 4);
    text += "st.shared.v4.b32 [TB], {TW0, TW1, TW2, TW3}; ";
    text += &all_meet(random);
    text += &other(random, place);
    let at = 4 * random.below(4);
    text += &match random.below(4) {
        0 => format!("mapa.shared::cluster.u32 TC, TC, TR; ld.shared::cluster.u32 TD, [TC+{at}]; "),
        1 => format!(
            "mapa.shared::cluster.u32 TC, TC, TR; ld.relaxed.cluster.shared::cluster.b32 TD, [TC+{at}]; \
             getctarank.shared::cluster.u32 TW0, TC; add.u32 TD, TD, TW0; "
        ),
        2 => "mapa.shared::cluster.u32 TC, TC, TR; ld.shared::cluster.v2.b32 {TD, TW0}, [TC+8]; xor.b32 TD, TD, TW0; "
            .to_string(),
        _ => format!("cvt.u64.u32 TM, TC; cvta.shared.u64 TM, TM; mapa.u64 TM, TM, TR; ld.b32 TD, [TM+{at}]; "),
    };
    text += &taken(random, "TD");
    text + &all_meet(random) + "}"
}

/// Words that threads store to another block.
fn stored(random: &mut Random, place: &Place) -> String {
    let mut text = OPEN.to_string() + &slots(random, place, 16) + meet(random) + &words(random, 4);
    text += "st.shared.v4.b32 [TB], {TW3, TW1, TW0, TW2}; ";
    text += &all_meet(random);
    text += &other(random, place);
    text += "mapa.shared::cluster.u32 TD, TC, TR; ";
    text += &match random.below(4) {
        0 => format!("st.shared::cluster.b32 [TD+{}], TW0; ", 4 * random.below(4)),
        1 => "st.shared::cluster.v2.b32 [TD+8], {TW0, TW1}; ".to_string(),
        2 => format!("st.release.cluster.shared::cluster.b32 [TD+{}], TW1; ", 4 * random.below(4)),
        _ => "cvt.u64.u32 TM, TC; cvta.shared.u64 TM, TM; mapa.u64 TM, TM, TR; st.v4.b32 [TM], {TW0, TW1, TW2, TW3}; "
            .to_string(),
    };
    text += &all_meet(random);
    text += &format!("ld.shared.b32 TD, [TB+{}]; {}", 4 * random.below(4), taken(random, "TD"));
    text + &all_meet(random) + "}"
}

/// Sums of all blocks in words of each, chosen by a register.
fn joined(random: &mut Random, place: &Place) -> String {
    let (op, ty, bytes) = JOINS[random.below(JOINS.len())];
    let mut text = OPEN.to_string() + &slots(random, place, 8) + meet(random);
    text += &format!("mov.b64 TS, {{t, t}}; st.shared.b64 [TB], TS; {}", all_meet(random));
    text += &format!("and.b32 TR, {}, {}; ", register(random, 'r'), place.cluster - 1);
    text += &format!("and.b32 TD, {}, {}; mad.lo.u32 TD, TD, 8, TA; ", register(random, 'r'), place.threads - 1);
    text += "mapa.shared::cluster.u32 TD, TD, TR; ";
    let value = if bytes == 8 { register(random, 'd') } else { register(random, 'r') };
    let old = if bytes == 8 { "TS" } else { "TN" };
    text += &match random.below(3) {
        0 => format!("atom.shared::cluster.{op}.{ty} {old}, [TD], {value}; "),
        1 => format!("red.relaxed.cluster.shared::cluster.{op}.{ty} [TD], {value}; "),
        _ => format!("red.shared::cluster.{op}.{ty} [TD], {value}; "),
    };
    text += &all_meet(random);
    text += &format!("ld.shared.b32 TD, [TB+{}]; {}", 4 * random.below(2), taken(random, "TD"));
    text + &all_meet(random) + "}"
}

/// Makes a barrier in each block, at which another block arrives.
fn barrier(random: &mut Random, place: &Place, count: usize) -> (String, String) {
    let at = format!("mb+{}", 8 * random.below(4));
    let mut text = leader(random, place) + meet(random);
    text += &format!("@TP mbarrier.init.shared::cta.b64 [{at}], {count}; @TP fence.mbarrier_init.release.cluster; ");
    (at, text)
}

/// Ends a statement with a barrier.
pub fn ended(random: &mut Random, at: &str) -> String {
    format!("{}@TP mbarrier.inval.shared.b64 [{at}]; {}}}", all_meet(random), meet(random))
}

/// Waits for the first phase, acquiring what other blocks released.
fn acquired(at: &str) -> String {
    format!("WAIT0: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 TQ, [{at}], 0; @!TQ bra WAIT0;\n")
}

/// Each thread stores a word to another block, and arrives at the barrier there.
fn arrived(random: &mut Random, place: &Place) -> String {
    let count = 1 + random.below(2);
    let (at, made) = barrier(random, place, count * place.threads);
    let mut text = OPEN.to_string() + &slots(random, place, 4) + &made + &all_meet(random) + &other(random, place);
    text += &format!("mapa.shared::cluster.u32 TD, TC, TR; st.shared::cluster.b32 [TD], {}; ", register(random, 'r'));
    text += &format!("mov.u32 TD, {at}; mapa.shared::cluster.u32 TD, TD, TR; ");
    let number = if count == 1 { String::new() } else { format!(", {count}") };
    text += &format!("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [TD]{number}; ");
    text += &acquired(&at);
    text += &format!("ld.shared.b32 TD, [TB]; {}", taken(random, "TD"));
    text + &ended(random, &at)
}

/// Each thread sends words to another block, or joins them there, which its barrier counts.
fn sent(random: &mut Random, place: &Place) -> String {
    let (kind, bytes, operand) = [
        ("st.async.weak", 4, ".b32"),
        ("st.async", 8, ".b64"),
        ("st.async", 8, ".v2.u32"),
        ("st.async.weak", 16, ".v4.b32"),
        ("st.async", 16, ".v2.b64"),
        ("red.async.relaxed.cluster", 0, ""),
    ][random.below(6)];
    let (op, ty, width) = JOINS[random.below(JOINS.len())];
    let (at, made) = barrier(random, place, 1);
    let mut text = OPEN.to_string() + &slots(random, place, 16) + &made + &words(random, 4);
    let total = place.threads * if bytes == 0 { width } else { bytes };
    text += &format!("@TP mbarrier.arrive.expect_tx.shared.b64 _, [{at}], {total}; ");
    text += &format!("st.shared.v4.b32 [TB], {{TW1, TW2, TW3, TW0}}; {}", all_meet(random));
    text += &other(random, place);
    text += &format!("mov.u32 TN, {at}; mapa.shared::cluster.u32 TN, TN, TR; ");
    text += "mov.b64 TM, {TW0, TW2}; mov.b64 TG, {TW3, TW1}; ";
    // A join may meet those of other threads.
    if bytes == 0 {
        text += &format!("and.b32 TC, {}, {}; mad.lo.u32 TC, TC, 16, TA; ", register(random, 'r'), place.threads - 1);
    }
    text += "mapa.shared::cluster.u32 TD, TC, TR; ";
    let space = ".shared::cluster.mbarrier::complete_tx::bytes";
    let value = match operand {
        ".b32" => "TW0",
        ".b64" => "TM",
        ".v2.u32" => "{TW0, TW1}",
        ".v4.b32" => "{TW0, TW1, TW2, TW3}",
        ".v2.b64" => "{TM, TG}",
        _ if width == 8 => "TM",
        _ => "TW0",
    };
    text += &match bytes {
        0 => format!("{kind}{space}.{op}.{ty} [TD], {value}, [TN]; "),
        _ => format!("{kind}{space}{operand} [TD], {value}, [TN]; "),
    };
    text += &acquired(&at);
    text += &format!("ld.shared.b32 TD, [TB+{}]; {}", 4 * random.below(4), taken(random, "TD"));
    text + &ended(random, &at)
}

/// Copies from the heap to several blocks at once, or from one block to another.
fn copied(random: &mut Random, place: &Place) -> String {
    let (at, made) = barrier(random, place, 1);
    let bytes = 16 << random.below(3);
    let total = bytes * place.threads;
    let mut text = OPEN.to_string() + &slots(random, place, bytes) + &heap(place) + &made + &words(random, 4);
    let several = random.below(2) == 0;
    text += &match several {
        // The first block's part of the heap.
        true => format!(
            "ld.param.u64 TH, [heap]; mul.wide.u32 TM, t, {bytes}; add.u64 TM, TM, TH; mov.u32 TR, %cluster_ctarank; setp.eq.u32 TQ, TR, 0; "
        ),
        false => String::new(),
    };
    for from in (0..bytes).step_by(16) {
        text += &match several {
            true => format!("@TQ st.global.v4.b32 [TM+{from}], {{TW0, TW1, TW2, TW3}}; "),
            false => format!("st.shared.v4.b32 [TB+{from}], {{TW0, TW1, TW2, TW3}}; "),
        };
    }
    text += &format!("@TP mbarrier.arrive.expect_tx.shared.b64 _, [{at}], {total}; fence.proxy.async; ");
    text += &all_meet(random);
    text += &match several {
        true => {
            let mask = (1 << place.cluster) - 1;
            format!(
                "and.pred TQ, TQ, TP; @!TQ bra SENT; {{ .reg .b16 TX; mov.u16 TX, {mask}; \
                 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [TH], {total}, [{at}], TX; }} SENT: "
            )
        }
        false => {
            let half = place.threads * 128 / 2;
            other(random, place)
                + &format!(
                    "add.u32 TN, TA, {half}; mapa.shared::cluster.u32 TN, TN, TR; mov.u32 TD, {at}; \
                     mapa.shared::cluster.u32 TD, TD, TR; add.u32 TB, TB, {half}; \
                     @TP cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [TN], [tile], {total}, [TD]; "
                )
        }
    };
    text += &waited(random, place, &at, 0, false);
    text += &format!("ld.shared.b32 TD, [TB+{}]; {}", 4 * random.below(bytes / 4), taken(random, "TD"));
    text + &ended(random, &at)
}

/// What a block knows of its cluster.
fn told(random: &mut Random) -> String {
    let all = [
        "%cluster_ctarank",
        "%cluster_nctarank",
        "%cluster_ctaid.x",
        "%cluster_nctaid.x",
        "%cluster_nctaid.y",
        "%nclusterid.x",
        "%clusterid.x",
        "%ctaid.x",
    ];
    let mut text = OPEN.to_string();
    for _ in 0..1 + random.below(3) {
        text += &format!("mov.u32 TD, {}; {}", all[random.below(all.len())], taken(random, "TD"));
    }
    text + &all_meet(random) + "}"
}
