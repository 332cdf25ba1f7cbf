//! Tracks asynchronous copies to shared memory that are in flight, and detects accesses that come
//! too early.
//!
//! A copy is complete when the issuing warp has waited for its group, and not before. With jitter
//! its bytes arrive at some instruction in between; otherwise they arrive immediately, which only a
//! program that gets a report can observe. Source: PTX ISA, `cp.async.wait_group`; ptxas waits with
//! DEPBAR.LE on the scoreboard of LDGDEPBAR.

use super::footprint::Reach;
use super::jitter::Jitter;

/// Bytes of the longest copy.
const LONGEST: usize = 16;
/// Granularity of the in-flight marks in bytes: the shortest copy.
const GRAIN: u64 = 4;
/// One in this many instructions of the warp delivers the bytes of a pending copy.
const ONE_IN: u64 = 4;

/// The copy of one lane.
#[derive(Clone, Copy, Debug)]
struct Copy {
    warp: usize,
    pc: u32,
    at: u64,
    bytes: u8,
    /// The scoreboard setting that completes it; `None` until its group is committed.
    setting: Option<(u8, u64)>,
    /// Bytes that have not been written to shared memory yet.
    data: Option<[u8; LONGEST]>,
}

/// The copies of a block that are in flight.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    list: Vec<Copy>,
    /// For each grain of shared memory 1 + the pc of a copy in flight to it; 0 for none.
    marks: Vec<u32>,
}

impl Copies {
    /// Whether no copy is in flight.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn mark(&mut self, at: u64, bytes: u8, mark: u32) {
        let (first, last) = ((at / GRAIN) as usize, ((at + u64::from(bytes.max(1)) - 1) / GRAIN) as usize);
        if self.marks.len() <= last {
            self.marks.resize(last + 1, 0);
        }
        self.marks[first..=last].fill(mark);
    }

    /// Records copies that were just executed. If the bytes are to arrive later, `before` holds the
    /// old contents of the destinations, which are restored.
    pub fn start(&mut self, shared: &mut [u8], warp: usize, pc: u32, reaches: &[Reach], before: &[[u8; LONGEST]]) {
        for (i, r) in reaches.iter().enumerate() {
            let mut data = None;
            let range = r.at as usize..r.at as usize + usize::from(r.bytes);
            if let (Some(old), Some(place)) = (before.get(i), shared.get_mut(range)) {
                let mut new = [0; LONGEST];
                new[..place.len()].copy_from_slice(place);
                place.copy_from_slice(&old[..place.len()]);
                data = Some(new);
            }
            self.mark(r.at, r.bytes, pc + 1);
            self.list.push(Copy { warp, pc, at: r.at, bytes: r.bytes, setting: None, data });
        }
    }

    /// The current contents of the copies' destinations.
    pub fn held(shared: &[u8], reaches: &[Reach]) -> Vec<[u8; LONGEST]> {
        let one = |r: &Reach| {
            let mut old = [0; LONGEST];
            let range = r.at as usize..r.at as usize + usize::from(r.bytes).min(LONGEST);
            if let Some(place) = shared.get(range) {
                old[..place.len()].copy_from_slice(place);
            }
            old
        };
        reaches.iter().map(one).collect()
    }

    /// Commits a warp's copies so far as a group that a scoreboard setting completes.
    pub fn commit(&mut self, warp: usize, setting: (u8, u64)) {
        let open = self.list.iter_mut().filter(|copy| copy.warp == warp && copy.setting.is_none());
        open.for_each(|copy| copy.setting = Some(setting));
    }

    /// Completes the copies of a warp whose group has been waited for.
    pub fn finish(&mut self, shared: &mut [u8], warp: usize, is_done: impl Fn((u8, u64)) -> bool) {
        let over = |copy: &Copy| copy.warp == warp && copy.setting.is_some_and(&is_done);
        if !self.list.iter().any(over) {
            return;
        }
        let list = std::mem::take(&mut self.list);
        let (done, left): (Vec<Copy>, Vec<Copy>) = list.into_iter().partition(over);
        for mut copy in done {
            put(shared, &mut copy);
            self.mark(copy.at, copy.bytes, 0);
        }
        left.iter().for_each(|copy| self.mark(copy.at, copy.bytes, copy.pc + 1));
        self.list = left;
    }

    /// An mbarrier says the end of all copies of a warp so far to whoever asks it: they are over.
    pub fn hand_over(&mut self, shared: &mut [u8], warp: usize) {
        self.list
            .iter_mut()
            .filter(|copy| copy.warp == warp && copy.setting.is_none())
            .for_each(|c| c.setting = Some((0, 0)));
        self.finish(shared, warp, |_| true);
    }

    /// Now and then delivers the bytes of one copy instruction.
    pub fn arrive(&mut self, shared: &mut [u8], warp: usize, jitter: &mut Jitter) {
        let own = self.list.iter().filter(|copy| copy.warp == warp && copy.data.is_some()).count() as u64;
        if own == 0 || !jitter.draw().is_multiple_of(ONE_IN) {
            return;
        }
        let nth = (jitter.draw() % own) as usize;
        let mut waiting = self.list.iter().filter(|copy| copy.warp == warp && copy.data.is_some());
        let Some(pc) = waiting.nth(nth).map(|copy| copy.pc) else { return };
        self.list.iter_mut().filter(|copy| copy.warp == warp && copy.pc == pc).for_each(|copy| put(shared, copy));
    }

    /// The pc of a copy in flight to bytes that the access touches.
    pub fn under_way(&self, r: &Reach) -> Option<u32> {
        let (first, last) = (r.at / GRAIN, (r.at + u64::from(r.bytes.max(1)) - 1) / GRAIN);
        let marks = self.marks.get(first as usize..).unwrap_or_default();
        marks.iter().take((last - first + 1) as usize).find(|mark| **mark != 0).map(|mark| mark - 1)
    }
}

fn put(shared: &mut [u8], copy: &mut Copy) {
    let range = copy.at as usize..copy.at as usize + usize::from(copy.bytes);
    if let (Some(data), Some(place)) = (copy.data.take(), shared.get_mut(range)) {
        place.copy_from_slice(&data[..place.len()]);
    }
}
