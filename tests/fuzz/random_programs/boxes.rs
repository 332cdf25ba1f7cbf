//! Copies of boxes of tensors (`cp.async.bulk.tensor`) in random programs.
//!
//! The maps are those of `arguments.rs`, of the heap's first bytes, which the threads write before.
//! A box, four rows, or pixels of images are fetched to the tile and read there, and perhaps put
//! back or joined at another corner. Several blocks fetch a box for each other.

use super::clusters::{all_meet, ended};
use super::counts::waited;
use super::families::{Place, meet, taken, words};
use super::tensor_memory;
use super::tensors::{Kind, Tensor, policy};
use crate::random::Random;
use sassafras::tables::Feature;

/// Bytes of the heap that tensors lie in.
const BYTES: usize = 4096;
/// Fetches a box, and perhaps puts one away.
pub fn boxes(random: &mut Random, place: &Place) -> String {
    let tensor = Tensor::one(random, place);
    let prefetch = random.below(4) == 0;
    let more = if prefetch { "@TP prefetch.tensormap [TS]; " } else { "" };
    tensor.begun(place) + &copied(random, place, &tensor, more)
}

/// Fetches a box by the map at `TS`, and perhaps puts one away; `front` stands before the first use
/// of the map, under `TP`, where the thread that copies is alone.
pub fn copied(random: &mut Random, place: &Place, tensor: &Tensor, front: &str) -> String {
    let (rank, bytes) = (tensor.rank(), tensor.bytes());
    let at = format!("mb+{}", 8 * random.below(4));
    // The corner is that of the thread that copies.
    let mut text =
        format!("setp.eq.u32 TP, t, {}; @TP mbarrier.init.shared.b64 [{at}], 1; ", random.below(place.threads));
    text += &fill(random, place);
    text += &format!("fence.proxy.async; {}{front}", meet(random));
    if random.below(4) == 0 {
        text += &tensor.prefetched(random, place);
    }
    let (front, list) = tensor.corner(random);
    let (more, offsets) = tensor.offsets(random);
    let ours = tensor_memory::fits(place);
    let to = match tensor.kind {
        Kind::Rows if !ours => "shared::cta",
        _ => ["shared::cta", "shared::cluster"][random.below(2)],
    };
    let group = if ours && random.below(3) == 0 { ".cta_group::1" } else { "" };
    let (policy, hint, operand) = policy(random);
    let mode = tensor.mode(random);
    text += &format!(
        "{front}{more}{policy}@TP mbarrier.arrive.expect_tx.shared.b64 _, [{at}], {bytes}; \
         @TP cp.async.bulk.tensor.{rank}d.{to}.global{mode}.mbarrier::complete_tx::bytes{group}{hint} [tile], [TS, {list}], [{at}]{offsets}{operand}; "
    );
    text += &waited(random, place, &at, 0, false);
    text += &read(random, bytes);
    if random.below(2) == 0 && (ours || !matches!(tensor.kind, Kind::Rows)) {
        text += &put(random, tensor);
    }
    text + &format!("{}@TP mbarrier.inval.shared.b64 [{at}]; {}}}", meet(random), meet(random))
}

/// Reads the box in the tile.
fn read(random: &mut Random, bytes: u64) -> String {
    let text = format!("mov.u32 TA, tile; mad.lo.u32 TB, t, 4, TA; setp.lt.u32 TQ, t, {}; ", bytes / 4);
    text + "mov.b32 TD, 0; @TQ ld.shared.b32 TD, [TB]; " + &taken(random, "TD")
}

/// The first bytes of the heap, by all threads.
fn fill(random: &mut Random, place: &Place) -> String {
    let mut text = words(random, 4);
    let own = BYTES / place.threads;
    text += &format!("mul.wide.u32 TG, t, {own}; add.u64 TG, TG, TH; ");
    for at in (0..own).step_by(16) {
        let list = if at.is_multiple_of(32) { "TW0, TW1, TW2, TW3" } else { "TW3, TW0, TW1, TW2" };
        text += &format!("st.global.v4.b32 [TG+{at}], {{{list}}}; ");
    }
    text
}

/// Puts the box at a corner, or joins it to what is there, and reads the heap.
fn put(random: &mut Random, tensor: &Tensor) -> String {
    let rank = tensor.rank();
    let (front, list) = tensor.corner(random);
    let joins: &[&str] = match (tensor.kind, tensor.ty) {
        (Kind::Rows, _) => &[],
        (_, 2) => &["add", "min", "max", "and", "or", "xor", "inc", "dec"],
        (_, 3 | 4) => &["add", "min", "max", "and", "or", "xor"],
        (_, 5) => &["min", "max", "and", "or", "xor"],
        _ => &[],
    };
    let mode = match tensor.kind {
        Kind::Box => ["", ".tile"][random.below(2)],
        Kind::Rows => ".tile::scatter4",
        Kind::Pixels(_) => ".im2col_no_offs",
    };
    let (policy, hint, operand) = policy(random);
    let mut text = format!("fence.proxy.async; {}{front}{policy}", meet(random));
    let (name, op) = match joins.get(random.below(2 * joins.len() + 1)) {
        Some(op) => ("cp.reduce.async", format!(".{op}")),
        None => ("cp.async", String::new()),
    };
    text += &format!(
        "@TP {name}.bulk.tensor.{rank}d.global.shared::cta{op}{mode}.bulk_group{hint} [TS, {list}], [tile]{operand}; "
    );
    text += &format!("@TP cp.async.bulk.commit_group; @TP cp.async.bulk.wait_group 0; {}", meet(random));
    text += &format!("ld.global.b32 TD, [TG+{}]; {}", 4 * random.below(8), taken(random, "TD"));
    text
}

/// Whether blocks fetch boxes for each other, and not the driver.
pub fn are_shared_out(place: &Place) -> bool {
    place.from(90) && place.cluster > 1 && !place.target.has(Feature::BulkCopiesByCall)
}

/// A block fetches a box for some blocks of the cluster, and the barrier in each of them, or in
/// that one of its pair that is as the fetching one is, learns of it.
pub fn shared_out(random: &mut Random, place: &Place) -> String {
    let ours = tensor_memory::fits(place);
    let mut tensor = Tensor::one(random, place);
    while matches!(tensor.kind, Kind::Rows) && !ours {
        tensor = Tensor::one(random, place);
    }
    let (rank, bytes) = (tensor.rank(), tensor.bytes());
    let at = format!("mb+{}", 8 * random.below(4));
    let mut text = tensor.begun(place) + meet(random);
    text +=
        &format!("setp.eq.u32 TP, t, {}; @TP mbarrier.init.shared::cta.b64 [{at}], 1; ", random.below(place.threads));
    text += "@TP fence.mbarrier_init.release.cluster; ";
    // Only the first block's part of the heap is in the tensor.
    text += "mov.u32 TR, %cluster_ctarank; setp.ne.u32 TQ, TR, 0; @TQ bra FILLED; ";
    text += &fill(random, place);
    text += "FILLED: ";
    let mask = 1 + random.below((1 << place.cluster) - 1);
    let from = random.below(place.cluster);
    let group = if ours { ["", ".cta_group::1", ".cta_group::2"][random.below(3)] } else { "" };
    let pair = group.ends_with('2');
    // How often each block's barrier learns of a box.
    let mut boxes = vec![0; place.cluster];
    for block in (0..place.cluster).filter(|block| mask >> block & 1 == 1) {
        boxes[if pair { block & !1 | from & 1 } else { block }] += 1;
    }
    for (block, times) in boxes.iter().enumerate().filter(|(_, times)| **times > 0) {
        text += &format!(
            "setp.eq.and.u32 TQ, TR, {block}, TP; @TQ mbarrier.arrive.expect_tx.shared.b64 _, [{at}], {}; ",
            times * bytes
        );
    }
    text += "fence.proxy.async; ";
    text += &all_meet(random);
    let (front, list) = tensor.corner(random);
    let (more, offsets) = tensor.offsets(random);
    let (policy, hint, operand) = policy(random);
    let (mode, cast) =
        (tensor.mode(random), ["", "::16b"][usize::from(place.target.min_ptx >= (9, 4)) * random.below(2)]);
    text += &format!(
        "{front}{more}{policy}setp.eq.and.u32 TQ, TR, {from}, TP; {{ .reg .b16 TY; mov.u16 TY, {mask}; \
         @TQ cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes.multicast::cluster{cast}{group}{hint} \
         [tile], [TS, {list}], [{at}]{offsets}, TY{operand}; }} "
    );
    let waits: Vec<usize> = (0..place.cluster).filter(|block| boxes[*block] > 0).collect();
    let set = waits.iter().fold(0, |set, block| set | 1 << block);
    text +=
        &format!("mov.b32 TD, {set}; shr.u32 TD, TD, TR; and.b32 TD, TD, 1; setp.eq.u32 TQ, TD, 0; @TQ bra PASSED; ");
    text += &waited(random, place, &at, 0, false);
    text += &format!("PASSED: {}", all_meet(random));
    text += &format!("mov.b32 TC, {mask}; shr.u32 TC, TC, TR; and.b32 TC, TC, 1; mul.lo.u32 TC, TC, {}; ", bytes / 4);
    text +=
        "mov.u32 TA, tile; mad.lo.u32 TB, t, 4, TA; setp.lt.u32 TQ, t, TC; mov.b32 TD, 0; @TQ ld.shared.b32 TD, [TB]; ";
    text += &taken(random, "TD");
    text + &ended(random, &at)
}
