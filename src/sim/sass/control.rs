//! Divergence and reconvergence: convergence barriers, warp barriers, YIELD.
//!
//! A convergence barrier (B0 to B15) is a mask per lane: each lane has its own copy of the lanes
//! that entered the region with it at BSSY. A lane that waits at BSYNC continues when every lane of
//! its mask waits at the same place with this lane in its own mask, has ended, or has left the
//! region (BREAK, YIELD). The mask is cleared then, so that lanes that waited beside it are not
//! released elsewhere when it yields.
//!
//! A lane may save its mask in a register (BMOV). It waits and is waited for as before, with two
//! rules:
//! * YIELD removes no lanes from a saved mask: a register cannot lose lanes, so a lane released
//!   meanwhile would be waited for in vain when the mask comes back.
//! * BREAK does remove lanes from saved masks. ptxas lets lanes leave a region while others of the
//!   region are in a call that has saved its mask, and the leaving lanes go on to wait in an
//!   enclosing region.
//!
//! Each BSSY starts a new region, so that what happens to a barrier in a call does not affect the
//! outer region that uses the same barrier. ptxas also lets a lane return to the BSSY of a region
//! without having reconverged with the others (irreducible loops, `-O0`). On sm_75 it clears the
//! barrier before every BSSY, so the old contents of the barrier are abandoned there.

use super::warp::{Apart, LANES, Wait, Warp, lanes_of};

/// BSSY: each lane records the lanes that enter the region with it.
pub fn enter_region(warp: &mut Warp, bar: usize, lanes: u32) {
    warp.yielded &= !lanes;
    empty(warp, bar, lanes);
    warp.last_region += 1;
    for lane in lanes_of(lanes) {
        warp.bars[bar][lane] = lanes;
        warp.regions[bar][lane] = warp.last_region;
    }
}

/// The first step of BSSY and of `BMOV.CLEAR RZ`: the lanes leave their regions of this barrier.
pub fn empty(warp: &mut Warp, bar: usize, lanes: u32) {
    abandon(warp, bar, lanes);
    lanes_of(lanes).for_each(|lane| warp.bars[bar][lane] = 0);
}

/// What happens to a region when the lanes overwrite its barrier. A lane that is still in it, and
/// has saved its mask nowhere, leaves it, because it can no longer reconverge with the others. A
/// function of ptxas that returns out of a region only restores the mask of its caller's.
fn abandon(warp: &mut Warp, bar: usize, lanes: u32) {
    let inside = |lane: usize| warp.bars[bar][lane] >> lane & 1 != 0;
    let left = warp.lanes_where(lanes, |lane| inside(lane) && !warp.kept.holds(lane, warp.regions[bar][lane]));
    if left != 0 {
        leave_region(warp, bar, left);
    }
}

/// BSYNC: the lanes wait at their pc for the lanes of their masks.
pub fn converge(warp: &mut Warp, bar: usize, lanes: u32) {
    warp.yielded &= !lanes;
    warp.suspend(lanes, |_| Wait::Converge(bar as u8));
    settle(warp);
}

/// BREAK: each lane leaves its region, in the masks of all lanes that entered it, including saved
/// ones and those of lanes that have left before.
pub fn leave_region(warp: &mut Warp, bar: usize, lanes: u32) {
    let mut left = lanes;
    while let Some(lane) = lanes_of(left).next() {
        let region = warp.regions[bar][lane];
        let gone = warp.lanes_where(left, |lane| warp.regions[bar][lane] == region);
        for other in 0..LANES {
            if warp.regions[bar][other] == region {
                warp.bars[bar][other] &= !gone;
            }
            warp.kept.leave(other, region, !gone);
        }
        left &= !gone;
    }
    settle(warp);
}

/// BMOV from a barrier: returns the lanes' masks, which count as saved in registers from now on.
pub fn keep_region(warp: &mut Warp, bar: usize, lanes: u32, clear: bool) -> [u32; LANES] {
    let masks = warp.bars[bar];
    for lane in lanes_of(lanes) {
        warp.kept.push(lane, bar, warp.regions[bar][lane], masks[lane]);
        if clear {
            warp.bars[bar][lane] = 0;
        }
    }
    masks
}

/// BMOV to a barrier: restores the saved masks, without the lanes that have left their regions
/// since.
pub fn resume_regions(warp: &mut Warp, bar: usize, lanes: u32, mask_of: impl Fn(&Warp, usize) -> u32) {
    abandon(warp, bar, lanes);
    for lane in lanes_of(lanes) {
        let mask = mask_of(warp, lane);
        let (region, left) = warp.kept.pop(lane, bar, mask);
        (warp.regions[bar][lane], warp.bars[bar][lane]) = (region, mask & left);
    }
}

/// BMOV between barriers: moves the lanes' masks and regions and clears the first barrier.
pub fn move_region(warp: &mut Warp, from: usize, to: usize, lanes: u32) {
    for lane in lanes_of(lanes) {
        warp.regions[to][lane] = warp.regions[from][lane];
        warp.bars[to][lane] = std::mem::take(&mut warp.bars[from][lane]);
    }
}

/// YIELD: lanes that wait for the yielding ones need not wait any longer.
pub fn yield_lanes(warp: &mut Warp, lanes: u32) {
    warp.yielded |= lanes;
    settle(warp);
}

/// WARPSYNC: the lanes wait for the lanes of their masks, and go on apart if it says so.
pub fn warp_sync(warp: &mut Warp, lanes: u32, apart: Option<Apart>, mask_of: impl Fn(&Warp, usize) -> u32) {
    let masks: Vec<u32> = (0..32).map(|lane| mask_of(warp, lane)).collect();
    warp.suspend(lanes, |lane| Wait::Warp(masks[lane], apart));
    settle(warp);
}

/// BMOV from MEXITED or MACTIVE, for a lane of a group.
pub fn state(warp: &Warp, lane: usize, group: u32, active: bool) -> u32 {
    if active { group } else { !warp.alive | warp.ended[lane] }
}

/// BMOV to MEXITED: what the lanes count as ended from now on, besides those that have.
pub fn set_ended(warp: &mut Warp, lane: usize, mask: u32) {
    warp.ended[lane] = mask & warp.alive;
}

/// BMOV to MACTIVE, by lanes that have gone on behind it: those that are not in the mask stand
/// still there until the others name them again, wherever that is.
pub fn set_active(warp: &mut Warp, group: u32, mask: u32) {
    let off = group & !mask;
    warp.suspend(off, |_| Wait::Off(group & mask));
    let asleep = |lane: usize| matches!(warp.wait[lane], Wait::Off(by) if by & group != 0);
    let woken = warp.lanes_where(mask & warp.alive & !warp.running, asleep);
    let Some(lead) = lanes_of(group).next() else { return };
    for lane in lanes_of(woken) {
        (warp.wait[lane], warp.pc[lane]) = (Wait::Nothing, warp.pc[lead]);
    }
    warp.running |= woken;
}

/// Releases every lane whose wait is over; called whenever lanes wait, end or leave.
pub fn settle(warp: &mut Warp) {
    while settle_once(warp) {}
}

fn settle_once(warp: &mut Warp) -> bool {
    let waiting = warp.alive & !warp.running;
    let (mut free, mut left) = (0, waiting);
    while let Some(lane) = lanes_of(left).next() {
        left &= !(1 << lane);
        let met = match warp.wait[lane] {
            Wait::Converge(bar) => {
                if let Some((here, met)) = together(warp, waiting, lane, bar) {
                    left &= !here;
                    free |= met;
                    continue;
                }
                converged(warp, waiting, lane, bar)
            }
            Wait::Warp(mask, _) => {
                let same = |l: usize| matches!(warp.wait[l], Wait::Warp(m, _) if (m ^ mask) & warp.alive == 0);
                mask & warp.alive & !warp.lanes_where(waiting, same) == 0
            }
            Wait::Nothing | Wait::Block(_) | Wait::Cluster | Wait::Off(_) => false,
        };
        free |= u32::from(met) << lane;
    }
    for lane in lanes_of(free) {
        if let Wait::Converge(bar) = warp.wait[lane] {
            forget(warp, usize::from(bar), lane, free);
        }
    }
    for lane in lanes_of(free) {
        if let Wait::Converge(bar) = warp.wait[lane] {
            warp.bars[usize::from(bar)][lane] = 0;
        }
    }
    warp.release(free);
    free != 0
}

/// The lanes that wait beside this one, and those of them that [`converged`] lets go: where all of
/// them have one mask, as they mostly do, and no lane of it yields.
fn together(warp: &Warp, waiting: u32, lane: usize, bar: u8) -> Option<(u32, u32)> {
    let bars = &warp.bars[usize::from(bar)];
    let (mask, pc) = (bars[lane], warp.pc[lane]);
    let beside = |l: usize| warp.wait[l] == Wait::Converge(bar) && warp.pc[l] == pc;
    let here = warp.lanes_where(waiting, beside);
    let needed = mask & warp.alive;
    let alike = warp.lanes_where(here, |l| bars[l] == mask) == here;
    if !alike || needed & warp.yielded & warp.running != 0 {
        return None;
    }
    // A lane outside of the mask has nobody beside it that expects it.
    let met = if needed == 0 { here } else { here & mask };
    Some((here, if needed & !here == 0 { met } else { 0 }))
}

/// Whether all lanes of this lane's mask wait beside it, have ended, or yield.
fn converged(warp: &Warp, waiting: u32, lane: usize, bar: u8) -> bool {
    let needed = warp.bars[usize::from(bar)][lane] & warp.alive;
    if needed & !(waiting | warp.yielded & warp.running) != 0 {
        return false;
    }
    // A lane that waits at the same place for other lanes than this one is in a deeper recursion.
    let expects = |l: usize| warp.bars[usize::from(bar)][l] >> lane & 1 != 0;
    let beside = |l: usize| warp.wait[l] == Wait::Converge(bar) && warp.pc[l] == warp.pc[lane] && expects(l);
    let there = warp.lanes_where(waiting & needed, beside);
    // A yielding lane can release only lanes whose mask of the region is in the barrier, not in a
    // register.
    let yielding = warp.lanes_where(warp.yielded & warp.running & needed, expects);
    needed & !there & !yielding == 0
}

/// After a lane continues without some lanes of its mask, neither these nor the lanes that stay
/// behind wait for it.
fn forget(warp: &mut Warp, bar: usize, lane: usize, free: u32) {
    let without = warp.bars[bar][lane] & warp.alive & !free;
    for other in lanes_of(without) {
        warp.bars[bar][other] &= !(1 << lane);
    }
}

/// The lanes of a group that jump at a branch whose guard some of them hold: BRA.U is for all of
/// them or for none. Source: with it, ptxas 13.0.88 and 13.5.37 pass a region of BSSY on sm_120
/// where no lane needs what is inside, with a guard that differs between the lanes.
pub fn jumping(held: u32, group: u32, uniform: bool) -> u32 {
    if uniform && held != group { 0 } else { held }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warp() -> Warp {
        Warp::new(0, u32::MAX, 8, 0)
    }

    #[test]
    fn lanes_meet_at_the_end_of_a_region() {
        let mut w = warp();
        enter_region(&mut w, 0, u32::MAX);
        converge(&mut w, 0, 0xffff);
        assert_eq!(w.running, 0xffff_0000);
        converge(&mut w, 0, 0xffff_0000);
        assert_eq!(w.running, u32::MAX);
        assert!(w.pc.iter().all(|pc| *pc == 1));
    }

    #[test]
    fn a_uniform_branch_is_for_all_or_none() {
        let jumps = [(0xff, true), (0xf, true), (0, true), (0xf, false)].map(|(held, u)| jumping(held, 0xff, u));
        assert_eq!(jumps, [0xff, 0, 0, 0xf]);
    }

    #[test]
    fn ended_lanes_are_not_waited_for() {
        let mut w = warp();
        enter_region(&mut w, 0, u32::MAX);
        converge(&mut w, 0, 0xffff);
        w.exit(0xffff_0000);
        settle(&mut w);
        assert_eq!(w.running, 0xffff);
    }

    #[test]
    fn each_arm_may_use_the_same_barrier() {
        let mut w = warp();
        enter_region(&mut w, 0, 0xff);
        enter_region(&mut w, 0, 0xff00);
        converge(&mut w, 0, 0xff);
        assert_eq!(w.running & 0xff, 0xff);
    }

    #[test]
    fn places_of_waiting_do_not_mix() {
        let mut w = warp();
        enter_region(&mut w, 0, 0x3);
        w.pc[1] = 7;
        converge(&mut w, 0, 0x1);
        converge(&mut w, 0, 0x2);
        assert_eq!(w.running & 3, 0);
    }

    #[test]
    fn a_lane_deeper_in_a_recursion_is_still_waited_for() {
        let mut w = warp();
        enter_region(&mut w, 6, 0x3);
        converge(&mut w, 6, 0x1);
        let saved = keep_region(&mut w, 6, 0x2, false);
        enter_region(&mut w, 6, 0x2);
        let back = w.pc[1];
        converge(&mut w, 6, 0x2);
        assert_eq!(w.running & 3, 2);
        resume_regions(&mut w, 6, 0x2, |_, lane| saved[lane]);
        w.pc[1] = back;
        converge(&mut w, 6, 0x2);
        assert_eq!(w.running & 3, 3);
    }

    #[test]
    fn break_leaves_the_masks() {
        let mut w = warp();
        enter_region(&mut w, 1, 0xf);
        converge(&mut w, 1, 0x7);
        assert_eq!(w.running & 0xf, 0x8);
        leave_region(&mut w, 1, 0x8);
        assert_eq!(w.running & 0xf, 0xf);
    }

    #[test]
    fn lanes_that_leave_in_two_steps_wait_for_nobody() {
        let mut w = warp();
        enter_region(&mut w, 2, 0xf);
        leave_region(&mut w, 2, 0xa);
        leave_region(&mut w, 2, 0x5);
        converge(&mut w, 2, 0xa);
        assert_eq!(w.running & 0xf, 0xf);
    }

    #[test]
    fn break_in_a_recursion_leaves_no_mask_further_out() {
        let mut w = warp();
        enter_region(&mut w, 7, 0xf);
        converge(&mut w, 7, 0x3);
        // The others go deeper and leave a region of the same barrier there.
        let saved = keep_region(&mut w, 7, 0xc, true);
        enter_region(&mut w, 7, 0xc);
        leave_region(&mut w, 7, 0xc);
        assert_eq!(w.running & 0xf, 0xc);
        resume_regions(&mut w, 7, 0xc, |_, lane| saved[lane]);
        for lane in [2, 3] {
            w.pc[lane] = w.pc[0];
        }
        converge(&mut w, 7, 0xc);
        assert_eq!(w.running & 0xf, 0xf);
    }

    #[test]
    fn break_leaves_a_mask_that_a_call_has_saved() {
        let mut w = warp();
        enter_region(&mut w, 6, 0xf);
        let saved = keep_region(&mut w, 6, 0x1, true);
        // The call has a region of the same barrier, then a second call follows.
        enter_region(&mut w, 6, 0x1);
        let deeper = keep_region(&mut w, 6, 0x1, true);
        leave_region(&mut w, 6, 0x4);
        resume_regions(&mut w, 6, 0x1, |_, lane| deeper[lane]);
        assert_eq!(w.bars[6][0], 0x1);
        resume_regions(&mut w, 6, 0x1, |_, lane| saved[lane]);
        assert_eq!((w.bars[6][0], w.bars[6][1]), (0xb, 0xb));
        converge(&mut w, 6, 0x3);
        assert_eq!(w.running & 0xf, 0xc);
        converge(&mut w, 6, 0x8);
        assert_eq!(w.running & 0xf, 0xf);
    }

    #[test]
    fn a_lane_that_enrols_again_has_left() {
        let mut w = warp();
        enter_region(&mut w, 6, 0xf);
        converge(&mut w, 6, 0x3);
        enter_region(&mut w, 6, 0x8);
        assert_eq!(w.running & 0xf, 0xc);
        converge(&mut w, 6, 0x4);
        assert_eq!(w.running & 0xf, 0xf);
        converge(&mut w, 6, 0x8);
        assert_eq!(w.running & 0xf, 0xf);
    }

    #[test]
    fn a_lane_that_returns_out_of_a_region_has_left() {
        let mut w = warp();
        enter_region(&mut w, 6, 0xf);
        let saved = keep_region(&mut w, 6, 0xf, true);
        enter_region(&mut w, 6, 0xf);
        converge(&mut w, 6, 0x3);
        resume_regions(&mut w, 6, 0xc, |_, lane| saved[lane]);
        assert_eq!((w.running & 0xf, w.bars[6][2]), (0xf, 0xf));
    }

    #[test]
    fn yield_frees_the_waiting() {
        let mut w = warp();
        enter_region(&mut w, 0, 0xf);
        converge(&mut w, 0, 0x1);
        yield_lanes(&mut w, 0xe);
        assert_eq!(w.running & 0xf, 0xf);
        // The others do not wait for the lane that went on.
        converge(&mut w, 0, 0xe);
        assert_eq!(w.running & 0xe, 0xe);
    }

    #[test]
    fn a_lane_in_a_saved_mask_is_not_let_go() {
        let mut w = warp();
        enter_region(&mut w, 6, 0xf);
        converge(&mut w, 6, 0x1);
        // BMOV.CLEAR in a function that the others call, with a loop that yields.
        let saved = [1, 2, 3].map(|lane| std::mem::take(&mut w.bars[6][lane]));
        yield_lanes(&mut w, 0xe);
        assert_eq!(w.running & 0xf, 0xe);
        w.bars[6][1..4].copy_from_slice(&saved);
        converge(&mut w, 6, 0xe);
        assert_eq!(w.running & 0xf, 0xf);
    }

    #[test]
    fn a_region_that_was_left_together_lets_nobody_go() {
        let mut w = warp();
        // All lanes met at the end of an earlier region. A region around a call follows, with its
        // mask in a register.
        enter_region(&mut w, 0, 0xf);
        converge(&mut w, 0, 0xf);
        enter_region(&mut w, 0, 0xf);
        let saved: Vec<u32> = (0..4).map(|lane| std::mem::take(&mut w.bars[0][lane])).collect();
        // The function has a region of all lanes; two lanes come back while the others go round a
        // loop that yields.
        enter_region(&mut w, 0, 0xf);
        converge(&mut w, 0, 0xf);
        w.bars[0][..2].copy_from_slice(&saved[..2]);
        converge(&mut w, 0, 0x3);
        yield_lanes(&mut w, 0xc);
        assert_eq!(w.running & 0xf, 0xc);
        w.bars[0][2..4].copy_from_slice(&saved[2..]);
        for lane in 2..4 {
            w.pc[lane] = w.pc[0];
        }
        converge(&mut w, 0, 0xc);
        assert_eq!(w.running & 0xf, 0xf);
    }

    #[test]
    fn those_that_stay_forget_who_went_on() {
        let mut w = warp();
        enter_region(&mut w, 0, 0x7);
        // Lane 1 also waits for lane 3; lane 0 does not.
        enter_region(&mut w, 1, 0x8);
        w.bars[0][1] |= 0x8;
        converge(&mut w, 0, 0x3);
        yield_lanes(&mut w, 0x4);
        assert_eq!((w.running & 3, w.bars[0][1] & 1), (1, 0));
        // It does not wait for lane 0 either when the other two come.
        w.bars[0][3] = 0xa;
        converge(&mut w, 0, 0xc);
        assert_eq!(w.running & 0xf, 0xf);
    }

    #[test]
    fn lanes_that_are_switched_off_go_on_where_the_others_are() {
        let mut w = warp();
        set_active(&mut w, 0xf, 0x3);
        assert_eq!(w.running & 0xf, 0x3);
        w.pc[..2].fill(9);
        set_active(&mut w, 0x3, 0xf);
        assert_eq!((w.running & 0xf, w.pc[2], w.pc[3]), (0xf, 9, 9));
    }

    #[test]
    fn lanes_that_count_as_ended_are_not_waited_for() {
        let mut w = warp();
        (0..2).for_each(|lane| set_ended(&mut w, lane, !0x3));
        assert_eq!(state(&w, 0, 0x3, false), !0x3);
        warp_sync(&mut w, 0x3, None, |w, lane| !w.ended[lane]);
        assert_eq!((w.running & 0x3, w.pc[0]), (0x3, 1));
        set_ended(&mut w, 0, 0);
        assert_eq!((state(&w, 0, 0x3, false), state(&w, 0, 0x3, true)), (0, 0x3));
    }

    #[test]
    fn warp_barrier_waits_for_its_mask() {
        let mut w = warp();
        w.pc[1] = 5;
        warp_sync(&mut w, 0x1, None, |_, _| 0x3);
        assert_eq!(w.running & 3, 2);
        warp_sync(&mut w, 0x2, None, |_, _| 0x3);
        assert_eq!((w.running & 3, w.pc[0], w.pc[1]), (3, 1, 6));
    }

    #[test]
    fn warp_barriers_of_other_masks_do_not_count() {
        let mut w = warp();
        warp_sync(&mut w, 0x0000_ffff, None, |_, _| u32::MAX);
        warp_sync(&mut w, 0x0fff_0000, None, |_, _| 0xffff_0000);
        assert_eq!(w.running, 0xf000_0000);
        warp_sync(&mut w, 0xf000_0000, None, |_, _| 0xffff_0000);
        assert_eq!(w.running, 0xffff_0000);
    }
}
