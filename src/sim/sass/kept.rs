//! Convergence regions whose masks lanes keep in registers: in a call, or where there are not enough barriers.
//!
//! Input: what BMOV saves, what BREAK leaves, what BMOV brings back. Output: the region that a mask stands for, and who has left it
//! meanwhile. Invariant: per lane and barrier the newest stands last, as calls return in the opposite order.

use super::warp::LANES;

/// One mask in a register.
#[derive(Clone, Copy, Debug)]
struct Mask {
    region: u32,
    /// As it was saved.
    saved: u32,
    /// Every lane that has not left the region since.
    left: u32,
}

/// The masks of a warp. Few programs have any.
#[derive(Clone, Debug, Default)]
pub struct Kept(Option<Box<[[Vec<Mask>; 16]; LANES]>>);

impl Kept {
    /// A lane saves its mask of a barrier. One that is empty needs no account.
    pub fn push(&mut self, lane: usize, bar: usize, region: u32, mask: u32) {
        if mask != 0 && region != 0 {
            self.0.get_or_insert_default()[lane][bar].push(Mask { region, saved: mask, left: u32::MAX });
        }
    }

    /// Whether a lane keeps a mask of a region.
    pub fn holds(&self, lane: usize, region: u32) -> bool {
        self.0.as_ref().is_some_and(|masks| masks[lane].iter().flatten().any(|m| m.region == region))
    }

    /// Takes lanes out of the masks that a lane keeps of a region.
    pub fn leave(&mut self, lane: usize, region: u32, without: u32) {
        let Some(masks) = &mut self.0 else { return };
        for mask in masks[lane].iter_mut().flatten().filter(|m| m.region == region) {
            mask.left &= without;
        }
    }

    /// A lane brings a mask back into a barrier: its region, 0 for one that nobody saved, and who is still in it. What was saved
    /// later than that lies in a frame that is gone.
    pub fn pop(&mut self, lane: usize, bar: usize, saved: u32) -> (u32, u32) {
        let Some(masks) = &mut self.0 else { return (0, u32::MAX) };
        let found = masks[lane][bar].iter().rposition(|m| m.saved == saved);
        if let Some(at) = found {
            let mask = masks[lane][bar][at];
            masks[lane][bar].truncate(at);
            return (mask.region, mask.left);
        }
        let elsewhere = masks[lane].iter().filter_map(|kept| kept.iter().rfind(|m| m.saved == saved));
        elsewhere.max_by_key(|m| m.region).map_or((0, u32::MAX), |m| (m.region, m.left))
    }
}
