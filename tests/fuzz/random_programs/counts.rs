//! Barriers in shared memory (`mbarrier`) in random programs.
//!
//! Each statement makes a barrier, whose count is what all threads together arrive with in a phase,
//! and invalidates it at its end. Threads hand words to each other under it. A wait that is asked
//! for before the last arrival, which is behind a barrier of the block, is answered by no.

use super::families::{OPEN, Place, leader, meet, slots, taken};
use super::make::register;
use crate::random::Random;

/// How a barrier is named: what makes its address, the state space, the address.
fn space(random: &mut Random, at: &str) -> (String, &'static str, String) {
    match random.below(4) {
        0 => (String::new(), ".shared::cta", format!("[{at}]")),
        1 => (format!("mov.u64 TI, {at}; cvta.shared.u64 TI, TI; "), "", "[TI]".to_string()),
        _ => (String::new(), ".shared", format!("[{at}]")),
    }
}

/// Makes a barrier under `TP`.
fn made(random: &mut Random, place: &Place, at: &str, count: usize) -> String {
    let (front, space, address) = space(random, at);
    let fence = match random.below(3) {
        0 if place.from(90) => "@TP fence.mbarrier_init.release.cluster; ",
        _ => "",
    };
    format!("{}{front}@TP mbarrier.init{space}.b64 {address}, {count}; {fence}{}", meet(random), meet(random))
}

/// Ends a barrier.
fn ended(random: &mut Random, at: &str) -> String {
    let (front, space, address) = space(random, at);
    format!("{}{front}@TP mbarrier.inval{space}.b64 {address}; {}}}", meet(random), meet(random))
}

/// A question whether a phase is over, answered in `TQ`; `known`: whether `TS` is its state.
fn asked(random: &mut Random, place: &Place, at: &str, phase: usize, known: bool) -> String {
    let (front, space, address) = space(random, at);
    let order = ["", ".acquire.cta", ".acquire.cluster"][random.below(if place.from(90) { 3 } else { 2 })];
    let tried = place.from(90) && random.below(2) == 0;
    let hint = if tried && random.below(3) == 0 { ", 0x20000" } else { "" };
    let op = if tried { "try_wait" } else { "test_wait" };
    match known && random.below(2) == 0 {
        true => format!("{front}mbarrier.{op}{order}{space}.b64 TQ, {address}, TS{hint}; "),
        false => format!("{front}mbarrier.{op}.parity{order}{space}.b64 TQ, {address}, {}{hint}; ", phase & 1),
    }
}

/// Waits for the end of a phase.
pub fn waited(random: &mut Random, place: &Place, at: &str, phase: usize, known: bool) -> String {
    let label = format!("WAIT{phase}");
    format!("{label}: {}@!TQ bra {label};\n", asked(random, place, at, phase, known))
}

/// A thread's arrivals of a phase, so many; the state of the last one is in `TS`.
fn arrivals(random: &mut Random, place: &Place, at: &str, count: usize, drop: bool) -> String {
    let mut one = |op: &str, count: &str| {
        let (front, space, address) = space(random, at);
        let order = ["", ".release.cta", ".release.cluster"][random.below(if place.from(90) { 3 } else { 2 })];
        format!("{front}mbarrier.{op}{order}{space}.b64 TS, {address}{count}; ")
    };
    let last = if drop { "arrive_drop" } else { "arrive" };
    match (count, place.from(90)) {
        (1, _) => one(last, ""),
        (_, true) => one(last, &format!(", {count}")),
        // A thread's first arrivals never complete a phase that waits for its last one.
        _ => {
            let first = format!("mbarrier.{last}.noComplete.shared.b64 TS, [{at}], {}; ", count - 1);
            first + &one(last, "")
        }
    }
}

/// Phases of a barrier: words are handed on, answers are taken, and threads leave.
pub fn phases(random: &mut Random, place: &Place) -> String {
    let at = format!("mb+{}", 8 * random.below(4));
    let (each, phases) = (1 + random.below(2), 1 + random.below(3));
    // What the leader learns depends on which thread it is.
    let mut text = OPEN.to_string() + &format!("setp.eq.u32 TP, t, {}; ", random.below(place.threads));
    text += &slots(random, place, 4);
    text += &made(random, place, &at, each * place.threads);
    let mut left = None;
    for phase in 0..phases {
        let last = phase + 1 == phases;
        text += &match left {
            // The threads that left only wait.
            Some(stay) => {
                let own = arrivals(random, place, &at, each, false);
                format!("setp.lt.u32 TQ, t, {stay}; @!TQ bra GONE{phase}; {own}GONE{phase}: ")
                    + &waited(random, place, &at, phase, false)
            }
            None if !last && random.below(3) == 0 => {
                let stay = 1 + random.below(place.threads - 1);
                left = Some(stay);
                // Leaving with all arrivals of a later phase, of which this one is the first.
                let (stays, leaves) =
                    (arrivals(random, place, &at, each, false), arrivals(random, place, &at, each, true));
                format!(
                    "setp.lt.u32 TQ, t, {stay}; @TQ bra STAY{phase}; {leaves}bra BOTH{phase}; STAY{phase}: {stays}BOTH{phase}: "
                ) + &waited(random, place, &at, phase, false)
            }
            None if random.below(3) == 0 => answered(random, place, &at, each, phase),
            None => handed(random, place, &at, each, phase),
        };
        // Who does not arrive must not miss the end of a phase.
        if left.is_some() {
            text += meet(random);
        }
    }
    text + &ended(random, &at)
}

/// Each thread stores a word, arrives, and loads another thread's word when all have.
fn handed(random: &mut Random, place: &Place, at: &str, each: usize, phase: usize) -> String {
    let mut text = format!("st.shared.b32 [TB], {}; ", register(random, 'r'));
    text += &arrivals(random, place, at, each, false);
    text += &waited(random, place, at, phase, true);
    text += &format!("ld.shared.b32 TD, [TC]; {}", taken(random, "TD"));
    text + meet(random)
}

/// The answers before and after the last arrival, which is that of the leader.
fn answered(random: &mut Random, place: &Place, at: &str, each: usize, phase: usize) -> String {
    let own = arrivals(random, place, at, each, false);
    let mut text = format!("@TP bra HOLD{phase}; {own}HOLD{phase}: {}", meet(random));
    text += &asked(random, place, at, phase, false);
    text += &format!("selp.u32 TW0, 5, 9, TQ; {}", meet(random));
    let own = arrivals(random, place, at, each, false);
    text += &format!("@!TP bra HELD{phase}; {own}");
    if each == 1 {
        // Nobody else arrives meanwhile.
        text += &format!("mbarrier.pending_count.b64 TD, TS; {}", taken(random, "TD"));
    }
    text += &format!("HELD{phase}: {}", meet(random));
    text += &asked(random, place, at, phase, false);
    text += &format!("selp.u32 TW1, 6, 8, TQ; mad.lo.u32 TW0, TW0, 77, TW1; {}", taken(random, "TW0"));
    text + meet(random)
}

/// Copies of each thread whose end a barrier tells (`cp.async`).
pub fn copies(random: &mut Random, place: &Place) -> String {
    let at = format!("mb+{}", 8 * random.below(4));
    let bytes = [4, 8, 16][random.below(3)];
    let counted = random.below(2) == 0;
    let mut text =
        OPEN.to_string() + &leader(random, place) + &slots(random, place, 16) + &super::families::heap(place);
    text += &made(random, place, &at, place.threads);
    let from = 16 * random.below(8);
    text += &super::families::words(random, 4);
    text += &format!("st.global.v4.b32 [TG+{from}], {{TW0, TW1, TW2, TW3}}; ");
    let how = if bytes == 16 { ["ca", "cg"][random.below(2)] } else { "ca" };
    // What the source does not give is zero.
    let part = if random.below(3) == 0 { format!(", {}", 4 * random.below(bytes / 4 + 1)) } else { String::new() };
    text += &format!("cp.async.{how}.shared.global [TB], [TG+{from}], {bytes}{part}; ");
    let (front, space, address) = space(random, &at);
    text += &match counted {
        true => {
            format!("{front}cp.async.mbarrier.arrive{space}.b64 {address}; mbarrier.arrive.shared.b64 TS, [{at}]; ")
        }
        false => format!("{front}cp.async.mbarrier.arrive.noinc{space}.b64 {address}; "),
    };
    text += &waited(random, place, &at, 0, counted);
    for word in 0..bytes / 4 {
        text += &format!("ld.shared.b32 TD, [TC+{}]; {}", 4 * word, taken(random, "TD"));
    }
    text + &ended(random, &at)
}

/// A phase that waits for bytes, which threads tell to have come.
pub fn bytes(random: &mut Random, place: &Place) -> String {
    let at = format!("mb+{}", 8 * random.below(4));
    let (share, threads) = (4 * (1 + random.below(4)), place.threads);
    let mut text = OPEN.to_string() + &leader(random, place) + &slots(random, place, 4);
    text += &made(random, place, &at, 1);
    text += &format!("st.shared.b32 [TB], {}; {}", register(random, 'r'), meet(random));
    text += &match random.below(3) {
        0 => format!("@TP mbarrier.arrive.expect_tx.shared.b64 _, [{at}], {}; ", share * threads),
        1 => format!(
            "@TP mbarrier.expect_tx.relaxed.cta.shared.b64 [{at}], {}; @TP mbarrier.arrive.shared.b64 _, [{at}]; ",
            share * threads
        ),
        _ => format!("@TP mbarrier.arrive_drop.expect_tx.shared.b64 _, [{at}], {}; ", share * threads),
    };
    text += meet(random);
    text += &match random.below(2) {
        0 => format!("mbarrier.complete_tx.shared.b64 [{at}], {share}; "),
        _ => format!(
            "mov.u32 TD, {at}; mov.u32 TR, %cluster_ctarank; mapa.shared::cluster.u32 TD, TD, TR; \
             mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [TD], {share}; "
        ),
    };
    text += &waited(random, place, &at, 0, false);
    text += &format!("ld.shared.b32 TD, [TC]; {}", taken(random, "TD"));
    text + &ended(random, &at)
}
