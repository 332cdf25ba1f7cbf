//! Copies of boxes of tensors (`cp.async.bulk.tensor`) in random programs.
//!
//! The maps are those of `arguments.rs`, of the heap's first bytes, which the threads write before.
//! A box is fetched to the tile and read there, and perhaps put back or joined at another corner.

use super::arguments::PLANS;
use super::counts::waited;
use super::families::{OPEN, Place, heap, meet, taken, words};
use super::make::register;
use crate::random::Random;

/// Bytes of the heap that tensors lie in.
const BYTES: usize = 4096;

/// Coordinates of a corner in `TW`: of the tensor, and a little outside of it.
fn corner(random: &mut Random, sizes: &[u64]) -> (String, String) {
    let mut text = String::new();
    for (i, size) in sizes.iter().enumerate() {
        text += &match random.below(2) {
            0 => format!("mov.b32 TW{i}, {}; ", random.below(*size as usize + 4) as i64 - 3),
            _ => {
                let mask = (size.next_power_of_two() - 1).min(15);
                format!("and.b32 TW{i}, {}, {mask}; sub.s32 TW{i}, TW{i}, 2; ", register(random, 'r'))
            }
        };
    }
    let list: Vec<String> = (0..sizes.len()).map(|i| format!("TW{i}")).collect();
    (text, format!("{{{}}}", list.join(", ")))
}

/// Fetches a box, and perhaps puts one away.
pub fn boxes(random: &mut Random, place: &Place) -> String {
    let number = random.below(PLANS.len());
    let plan = &PLANS[number];
    let rank = plan.sizes.len();
    let bytes = plan.boxes.iter().product::<u64>() * plan.bytes;
    let at = format!("mb+{}", 8 * random.below(4));
    // The corner is that of the thread that copies.
    let leader = format!("setp.eq.u32 TP, t, {}; ", random.below(place.threads));
    let mut text = OPEN.to_string() + &leader + &heap(place);
    text += &format!("mov.b64 TS, map{number}; cvta.param.u64 TS, TS; @TP mbarrier.init.shared.b64 [{at}], 1; ");
    if random.below(4) == 0 {
        text += "@TP prefetch.tensormap [TS]; ";
    }
    text += &fill(random, place);
    text += &format!("fence.proxy.async; {}", meet(random));
    let (front, list) = corner(random, plan.sizes);
    let tile = ["", ".tile"][random.below(2)];
    if random.below(4) == 0 {
        text += &format!("{front}@TP cp.async.bulk.prefetch.tensor.{rank}d.L2.global{tile} [TS, {list}]; ");
    }
    let (front, list) = corner(random, plan.sizes);
    let to = ["shared::cta", "shared::cluster"][random.below(2)];
    let (policy, hint, operand) = match random.below(4) {
        0 => ("createpolicy.fractional.L2::evict_last.b64 TM, 1.0; ", ".L2::cache_hint", ", TM"),
        _ => ("", "", ""),
    };
    text += &format!(
        "{front}{policy}@TP mbarrier.arrive.expect_tx.shared.b64 _, [{at}], {bytes}; \
         @TP cp.async.bulk.tensor.{rank}d.{to}.global{tile}.mbarrier::complete_tx::bytes{hint} [tile], [TS, {list}], [{at}]{operand}; "
    );
    text += &waited(random, place, &at, 0, false);
    text += &format!("mov.u32 TA, tile; mad.lo.u32 TB, t, 4, TA; setp.lt.u32 TQ, t, {}; ", bytes / 4);
    text += "mov.b32 TD, 0; @TQ ld.shared.b32 TD, [TB]; ";
    text += &taken(random, "TD");
    if random.below(2) == 0 {
        text += &put(random, plan.sizes, plan.bytes, number);
    }
    text + &format!("{}@TP mbarrier.inval.shared.b64 [{at}]; {}}}", meet(random), meet(random))
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
fn put(random: &mut Random, sizes: &[u64], width: u64, number: usize) -> String {
    let rank = sizes.len();
    let (front, list) = corner(random, sizes);
    let joins: &[&str] = match width {
        4 => &["add", "min", "max", "and", "or", "xor"],
        8 => &["add", "min", "max", "and", "or", "xor"],
        _ => &[],
    };
    let tile = ["", ".tile"][random.below(2)];
    let mut text =
        format!("mov.b64 TS, map{number}; cvta.param.u64 TS, TS; fence.proxy.async; {}{front}", meet(random));
    text += &match joins.get(random.below(2 * joins.len() + 1)) {
        Some(op) => format!(
            "@TP cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}{tile}.bulk_group [TS, {list}], [tile]; "
        ),
        None => format!("@TP cp.async.bulk.tensor.{rank}d.global.shared::cta{tile}.bulk_group [TS, {list}], [tile]; "),
    };
    text += &format!("@TP cp.async.bulk.commit_group; @TP cp.async.bulk.wait_group 0; {}", meet(random));
    text += &format!("ld.global.b32 TD, [TG+{}]; {}", 4 * random.below(8), taken(random, "TD"));
    text
}
