//! Bulk copies (`cp.async.bulk`) in random programs.
//!
//! Every thread writes its part of the heap, some threads copy all of it to the tile, in another
//! order, and a barrier tells when it is there. Then the threads change the tile, which is copied
//! or joined to the heap (`cp.reduce.async.bulk`), or copied within shared memory. A fence of the
//! proxy and a barrier of the block stand between accesses of threads and those of copies.

use super::counts::waited;
use super::families::{OPEN, Place, heap, leader, meet, taken, words};
use super::matrix::FLOATS;
use crate::random::Random;

/// Reductions of global memory: operation, type, and the float whose patterns its words are.
const JOINS: [(&str, &str, &str); 26] = [
    ("add", "u32", ""),
    ("add", "s32", ""),
    ("add", "u64", ""),
    ("add", "f32", "f32"),
    ("add", "f64", "f64"),
    ("add.noftz", "f16", "f16"),
    ("add.noftz", "bf16", "bf16"),
    ("min", "u32", ""),
    ("min", "s32", ""),
    ("min", "u64", ""),
    ("min", "s64", ""),
    ("min", "f16", "f16"),
    ("min", "bf16", "bf16"),
    ("max", "u32", ""),
    ("max", "s32", ""),
    ("max", "u64", ""),
    ("max", "s64", ""),
    ("max", "f16", "f16"),
    ("max", "bf16", "bf16"),
    ("inc", "u32", ""),
    ("dec", "u32", ""),
    ("and", "b32", ""),
    ("or", "b32", ""),
    ("xor", "b32", ""),
    ("and", "b64", ""),
    ("xor", "b64", ""),
];
/// Reductions of shared memory.
const JOINS_SHARED: [(&str, &str); 10] = [
    ("add", "u32"),
    ("add", "s32"),
    ("add", "u64"),
    ("min", "s32"),
    ("max", "u32"),
    ("inc", "u32"),
    ("dec", "u32"),
    ("and", "b32"),
    ("or", "b32"),
    ("xor", "b32"),
];

/// How the memory is divided: bytes of a thread, bytes of a copy, and how many copies there are.
struct Parts {
    own: usize,
    bytes: usize,
    count: usize,
}

impl Parts {
    fn any(random: &mut Random, threads: usize) -> Parts {
        let own = 16 << random.below(4);
        let bytes = own << random.below(threads.ilog2() as usize + 1);
        Parts { own, bytes, count: own * threads / bytes }
    }
}

/// Four words in `TW0` to `TW3`, patterns of a float if it has a name.
fn patterns(random: &mut Random, float: &str) -> String {
    let mut text = words(random, 4);
    if let Some((name, mask, base)) = FLOATS.iter().find(|f| f.0 == float) {
        let halves = if *name == "f64" { [(0, 0), (mask >> 32, base >> 32)] } else { [(*mask, *base); 2] };
        for i in 0..4 {
            let (mask, base) = halves[i % 2];
            text += &format!("and.b32 TW{i}, TW{i}, {mask:#x}; or.b32 TW{i}, TW{i}, {base:#x}; ");
        }
    }
    text
}

/// Stores the thread's part, from the address on.
fn fill(random: &mut Random, parts: &Parts, space: &str, address: &str, float: &str) -> String {
    let mut text = patterns(random, float);
    for at in (0..parts.own).step_by(16) {
        let list = if at.is_multiple_of(32) { "TW0, TW1, TW2, TW3" } else { "TW2, TW3, TW0, TW1" };
        text += &format!("st{space}.v4.b32 [{address}+{at}], {{{list}}}; ");
    }
    text
}

/// Loads a few words of the thread's part.
fn read(random: &mut Random, parts: &Parts, space: &str, address: &str) -> String {
    let mut text = String::new();
    for _ in 0..2 {
        let at = 4 * random.below(parts.own / 4);
        text += &format!("ld{space}.b32 TD, [{address}+{at}]; {}", taken(random, "TD"));
    }
    text
}

/// A fence between accesses of threads and of copies, and a barrier.
fn fenced(random: &mut Random, shared: bool) -> String {
    let fence = match random.below(3) {
        0 if shared => "fence.proxy.async.shared::cta; ",
        1 if !shared => "fence.proxy.async.global; fence.proxy.async.shared::cta; ",
        _ => "fence.proxy.async; ",
    };
    fence.to_string() + meet(random)
}

/// The byte at which a thread's copy begins, in a register: those of the others in another order.
fn moved(random: &mut Random, parts: &Parts, to: &str) -> String {
    format!("xor.b32 {to}, t, {}; mul.lo.u32 {to}, {to}, {}; ", random.below(parts.count), parts.bytes)
}

/// To shared memory and back.
pub fn there_and_back(random: &mut Random, place: &Place) -> String {
    let parts = Parts::any(random, place.threads);
    let at = format!("mb+{}", 8 * random.below(4));
    let (op, ty, float) = JOINS[random.below(JOINS.len())];
    let mut text = OPEN.to_string() + &leader(random, place) + &heap(place);
    text += &format!(
        "mul.wide.u32 TG, t, {0}; add.u64 TG, TG, TH; mov.u32 TA, tile; mad.lo.u32 TB, t, {0}, TA; ",
        parts.own
    );
    text += &format!("@TP mbarrier.init.shared.b64 [{at}], 1; ");
    text += &fill(random, &parts, ".global", "TG", float);
    if random.below(4) == 0 {
        text += &format!("cp.async.bulk.prefetch.L2.global [TH], {}; ", parts.bytes);
    }
    text += &fenced(random, false);
    text +=
        &format!("@TP mbarrier.arrive.expect_tx.shared.b64 _, [{at}], {}; {}", parts.own * place.threads, meet(random));
    text += &fetched(random, place, &parts, &at);
    text += &waited(random, place, &at, 0, false);
    text += &read(random, &parts, ".shared", "TB");
    text += meet(random);
    match random.below(4) {
        0 => {}
        1 => text += &within(random, place, &parts, &at),
        2 => text += &put(random, place, &parts, None),
        _ => text += &put(random, place, &parts, Some((op, ty, float))),
    }
    text + &format!("@TP mbarrier.inval.shared.b64 [{at}]; {}}}", meet(random))
}

/// Copies from the heap by the first threads, one each.
fn fetched(random: &mut Random, place: &Place, parts: &Parts, at: &str) -> String {
    let (bytes, count) = (parts.bytes, parts.count);
    let mut text = format!("setp.lt.u32 TQ, t, {count}; @!TQ bra FETCHED; ");
    text += &moved(random, parts, "TC");
    text += &format!("cvt.u64.u32 TM, TC; add.u64 TM, TM, TH; mad.lo.u32 TC, t, {bytes}, TA; ");
    let hint = hint(random);
    let to = match random.below(2) {
        0 if place.cluster == 0 => "shared::cluster",
        _ => "shared::cta",
    };
    let size = if random.below(2) == 0 { bytes.to_string() } else { "TN".to_string() };
    text += &format!("mov.u32 TN, {bytes}; {}", hint.0);
    text += &format!(
        "cp.async.bulk.{to}.global.mbarrier::complete_tx::bytes{} [TC], [TM], {size}, [{at}]{}; FETCHED: ",
        hint.1, hint.2
    );
    text
}

/// A policy of the cache: what makes it, the modifier, the operand.
fn hint(random: &mut Random) -> (&'static str, &'static str, &'static str) {
    match random.below(4) {
        0 => ("createpolicy.fractional.L2::evict_first.b64 TS, 1.0; ", ".L2::cache_hint", ", TS"),
        _ => ("", "", ""),
    }
}

/// Copies or joins the tile to the heap.
fn put(random: &mut Random, place: &Place, parts: &Parts, join: Option<(&str, &str, &str)>) -> String {
    let mut text = fill(random, parts, ".shared", "TB", join.map_or("", |join| join.2));
    text += &fenced(random, true);
    text += &format!("setp.lt.u32 TQ, t, {}; @!TQ bra PUT; ", parts.count);
    text += &moved(random, parts, "TC");
    text += &format!("cvt.u64.u32 TM, TC; add.u64 TM, TM, TH; mad.lo.u32 TC, t, {}, TA; ", parts.bytes);
    let (front, modifier, operand) = hint(random);
    let (bytes, masked) = (parts.bytes, place.from(100) && random.below(3) == 0);
    text += front;
    text += &match join {
        None if masked => {
            let mask = 0xffff ^ (1 << random.below(16) | 1 << random.below(16));
            format!(
                "cp.async.bulk.global.shared::cta.bulk_group{modifier}.cp_mask [TM], [TC], {bytes}{operand}, {mask:#x}; "
            )
        }
        None => format!("cp.async.bulk.global.shared::cta.bulk_group{modifier} [TM], [TC], {bytes}{operand}; "),
        Some((op, ty, _)) => format!(
            "cp.reduce.async.bulk.global.shared::cta.bulk_group{modifier}.{op}.{ty} [TM], [TC], {bytes}{operand}; "
        ),
    };
    text += "cp.async.bulk.commit_group; ";
    if random.below(3) == 0 {
        text += "cp.async.bulk.wait_group.read 0; ";
    }
    text += &format!("cp.async.bulk.wait_group 0; PUT: {}", meet(random));
    text += &read(random, parts, ".global", "TG");
    text + meet(random)
}

/// Copies or joins the lower half of the tile to the upper one: to the block's own memory by its
/// address in the cluster.
fn within(random: &mut Random, place: &Place, parts: &Parts, at: &str) -> String {
    let whole = parts.own * place.threads / 2;
    let mut text = fill(random, parts, ".shared", "TB", "");
    if place.from(100) && random.below(3) == 0 {
        let (from, bytes) = (8 * random.below(parts.own / 8), 8 * (1 + random.below(whole / 8)));
        text += &format!("{}@TP st.bulk.weak.shared::cta [tile+{from}], {bytes}, 0; ", meet(random));
    }
    text += &fenced(random, true);
    let join = match random.below(2) {
        0 => None,
        _ => Some(JOINS_SHARED[random.below(JOINS_SHARED.len())]),
    };
    text += &format!("mov.u32 TR, %cluster_ctarank; add.u32 TC, TA, {whole}; mapa.shared::cluster.u32 TC, TC, TR; ");
    text += &format!("mov.u32 TD, {at}; mapa.shared::cluster.u32 TD, TD, TR; ");
    text += &format!("@TP mbarrier.arrive.expect_tx.shared.b64 _, [{at}], {whole}; ");
    let (op, kind) = match join {
        None => ("cp.async.bulk", String::new()),
        Some((op, ty)) => ("cp.reduce.async.bulk", format!(".{op}.{ty}")),
    };
    text +=
        &format!("@TP {op}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{kind} [TC], [TA], {whole}, [TD]; ");
    text += &waited(random, place, at, 1, false);
    text += &read(random, parts, ".shared", "TB");
    text + meet(random)
}
