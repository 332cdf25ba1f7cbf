//! Tracks convergence regions whose masks are saved in registers: in a call, or where there are not
//! enough convergence barriers.
//!
//! BMOV saves a mask and restores it later; BREAK takes lanes out in between. For each lane and
//! barrier the masks form a stack, because calls return in reverse order.

use super::warp::LANES;

/// One saved mask.
#[derive(Clone, Copy, Debug)]
struct Mask {
    region: u32,
    /// The mask as it was saved.
    saved: u32,
    /// All ones, minus the lanes that have left the region since.
    left: u32,
}

/// The saved masks of a warp; allocated on demand, because few programs have any.
#[derive(Clone, Debug, Default)]
pub struct Kept(Option<Box<[[Vec<Mask>; 16]; LANES]>>);

impl Kept {
    /// Saves a lane's mask of a barrier. An empty mask is not recorded.
    pub fn push(&mut self, lane: usize, bar: usize, region: u32, mask: u32) {
        if mask != 0 && region != 0 {
            self.0.get_or_insert_default()[lane][bar].push(Mask { region, saved: mask, left: u32::MAX });
        }
    }

    /// Whether the lane has a saved mask of the region.
    pub fn holds(&self, lane: usize, region: u32) -> bool {
        self.0.as_ref().is_some_and(|masks| masks[lane].iter().flatten().any(|m| m.region == region))
    }

    /// Removes lanes from the lane's saved masks of a region.
    pub fn leave(&mut self, lane: usize, region: u32, without: u32) {
        let Some(masks) = &mut self.0 else { return };
        for mask in masks[lane].iter_mut().flatten().filter(|m| m.region == region) {
            mask.left &= without;
        }
    }

    /// Restores a lane's saved mask: returns its region (0 if the mask was never saved) and a mask
    /// of the lanes that have not left it. Masks saved later belong to frames that have ended and
    /// are dropped.
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
