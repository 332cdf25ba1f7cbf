//! The state of a block: its warps, shared memory and barriers.
//!
//! A barrier counts threads, not warps. If all threads of the block are expected, ended threads
//! count as arrived. A barrier with a thread count counts arrivals instead: a thread that only
//! arrived may arrive again before the barrier is complete.

use super::super::fault::Fault;
use super::super::ops::tensor_memory::Tensor;
use super::cluster::Meeting;
use super::code::Gather;
use super::control;
use super::sanitizer::Seen;
use super::warp::{Wait, Warp, lanes_of};

/// Number of barriers in a block.
pub const BARRIERS: usize = 16;

/// The arrivals at one barrier since it was last complete.
#[derive(Clone, Debug, Default)]
struct Barrier {
    /// For each warp the masks of arrived lanes: the second mask holds the lanes that arrived a
    /// second time, and so on. No mask is empty.
    arrived: Vec<Vec<u32>>,
    /// Number of expected threads; 0 means all threads of the block.
    expected: u32,
    votes: u32,
    all: bool,
    any: bool,
    gather: Option<Gather>,
}

impl Barrier {
    fn fresh(warps: usize) -> Barrier {
        Barrier { arrived: vec![Vec::new(); warps], all: true, ..Barrier::default() }
    }

    fn is_fresh(&self) -> bool {
        self.arrived.iter().all(Vec::is_empty)
    }

    /// Records the arrival of lanes, each in the first mask that lacks it.
    fn add(&mut self, warp: usize, lanes: u32) {
        let mut rest = lanes;
        for mask in &mut self.arrived[warp] {
            let new = rest & !*mask;
            *mask |= new;
            rest &= !new;
        }
        if rest != 0 {
            self.arrived[warp].push(rest);
        }
    }
}

/// The arrival of a group of lanes at a barrier.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The lanes that arrive.
    pub lanes: u32,
    /// The barrier's number.
    pub barrier: u32,
    /// Number of expected threads; 0 means all threads of the block.
    pub count: u32,
    /// Whether the lanes continue without waiting.
    pub arrive_only: bool,
    /// The reduction that the barrier performs.
    pub gather: Gather,
    /// The predicate of each lane.
    pub votes: u32,
}

/// One block of the grid.
#[derive(Clone, Debug)]
pub struct Block {
    /// Block index (x, y, z).
    pub id: [u32; 3],
    /// Its number in its cluster.
    pub rank: u32,
    /// The barrier of its cluster.
    pub meeting: Meeting,
    /// The block's warps.
    pub warps: Vec<Warp>,
    /// Shared memory.
    pub shared: Vec<u8>,
    /// Bytes at the start of shared memory that the system reserves.
    pub reserved: usize,
    /// Tensor memory.
    pub tensor: Tensor,
    /// Registers of each lane that warps have given and no warp has taken.
    pub free_registers: u32,
    barriers: Vec<Barrier>,
    /// The sanitizer's state for this block.
    pub seen: Option<Box<Seen>>,
}

impl Block {
    /// A block that is about to start.
    pub fn new(id: [u32; 3], warps: Vec<Warp>, shared_bytes: usize) -> Block {
        let barrier = Barrier::fresh(warps.len());
        let (shared, barriers) = (vec![0; shared_bytes], vec![barrier; BARRIERS]);
        let (tensor, meeting) = (Tensor::default(), Meeting::new(warps.len()));
        Block { id, rank: 0, meeting, warps, shared, reserved: 0, tensor, free_registers: 0, barriers, seen: None }
    }

    /// Whether no thread has arrived at the barrier since it was last complete.
    pub fn is_fresh(&self, number: usize) -> bool {
        self.barriers.get(number).is_none_or(Barrier::is_fresh)
    }

    /// Gives registers of a warp to the pool of the block, or takes them from it; whether the pool
    /// had enough.
    ///
    /// # Errors
    ///
    /// A change in the other direction.
    pub fn change_registers(&mut self, warp: usize, count: u16, takes: bool) -> Result<bool, Fault> {
        let now = self.warps[warp].limit;
        if takes && count < now || !takes && count > now {
            let what = if takes { "taking" } else { "giving" };
            return Err(Fault::new(format!("{what} registers: the warp has {now} and asks for {count}")));
        }
        let wanted = count.saturating_sub(now).into();
        if self.free_registers < wanted {
            return Ok(false);
        }
        self.free_registers = self.free_registers - wanted + u32::from(now.saturating_sub(count));
        self.warps[warp].limit = count;
        Ok(true)
    }

    /// Whether every thread has ended.
    pub fn done(&self) -> bool {
        self.warps.iter().all(|w| w.alive == 0)
    }

    /// Records that lanes of a warp arrive at a barrier, and completes it if it is full.
    ///
    /// # Errors
    ///
    /// An invalid barrier number, a second arrival, or two different thread counts.
    pub fn arrive(&mut self, warp: usize, a: Arrival) -> Result<(), Fault> {
        let number = a.barrier as usize;
        let Some(barrier) = self.barriers.get_mut(number) else {
            return Err(Fault::new(format!("barrier number {number} of {BARRIERS}")));
        };
        if a.count == 0 && barrier.arrived[warp].iter().any(|mask| mask & a.lanes != 0) {
            return Err(Fault::new(format!("threads arrive twice at barrier {number} before it is complete")));
        }
        if !barrier.is_fresh() && barrier.expected != a.count {
            let (was, now) = (barrier.expected, a.count);
            return Err(Fault::new(format!("barrier {number} expects {was} threads and now {now}")));
        }
        barrier.expected = a.count;
        barrier.add(warp, a.lanes);
        barrier.votes += (a.votes & a.lanes).count_ones();
        barrier.all &= !a.votes & a.lanes == 0;
        barrier.any |= a.votes & a.lanes != 0;
        if a.gather != Gather::None {
            barrier.gather = Some(a.gather);
        }
        if a.arrive_only {
            for lane in lanes_of(a.lanes) {
                self.warps[warp].pc[lane] += 1;
            }
        } else {
            self.warps[warp].suspend(a.lanes, |_| Wait::Block(number as u8));
        }
        self.complete(number);
        Ok(())
    }

    /// Completes all full barriers; called when lanes end.
    pub fn settle(&mut self) {
        for number in 0..BARRIERS {
            if !self.barriers[number].is_fresh() {
                self.complete(number);
            }
        }
    }

    fn complete(&mut self, number: usize) {
        let barrier = &self.barriers[number];
        let pairs = || self.warps.iter().zip(&barrier.arrived);
        let full = if barrier.expected == 0 {
            pairs().all(|(warp, masks)| warp.alive & !masks.first().unwrap_or(&0) == 0)
        } else {
            let threads = |warp: &Warp, mask: u32| if warp.alive & !mask == 0 { 32 } else { mask.count_ones() };
            pairs().flat_map(|(w, masks)| masks.iter().map(move |m| threads(w, *m))).sum::<u32>() >= barrier.expected
        };
        if full {
            self.open(number);
        }
    }

    fn open(&mut self, number: usize) {
        let fresh = Barrier::fresh(self.warps.len());
        let old = std::mem::replace(&mut self.barriers[number], fresh);
        let gathered = match old.gather {
            Some(Gather::Popc) => Some(old.votes),
            Some(Gather::And) => Some(old.all.into()),
            Some(Gather::Or) => Some(old.any.into()),
            Some(Gather::None) | None => None,
        };
        for warp in &mut self.warps {
            let waiting = warp.lanes_where(warp.alive & !warp.running, |l| warp.wait[l] == Wait::Block(number as u8));
            if waiting != 0 {
                warp.gathered = gathered.unwrap_or(warp.gathered);
                warp.release(waiting);
                control::settle(warp);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(warps: &[u32]) -> Block {
        let warps = warps.iter().enumerate().map(|(i, lanes)| Warp::new(i as u32, *lanes, 8, 0)).collect();
        Block::new([0; 3], warps, 0)
    }
    fn sync(lanes: u32, count: u32) -> Arrival {
        Arrival { lanes, barrier: 0, count, arrive_only: false, gather: Gather::None, votes: 0 }
    }

    #[test]
    fn all_threads_must_come() {
        let mut b = block(&[u32::MAX, 0xff]);
        b.arrive(0, sync(u32::MAX, 0)).expect("arrives");
        b.arrive(1, sync(0x0f, 0)).expect("arrives");
        assert_eq!((b.warps[0].running, b.warps[1].running), (0, 0xf0));
        b.warps[1].exit(0xf0);
        b.settle();
        assert_eq!((b.warps[0].running, b.warps[1].running), (u32::MAX, 0x0f));
        assert_eq!(b.warps[0].pc[0], 1);
    }

    #[test]
    fn counted_barriers_round_warps_up() {
        let mut b = block(&[u32::MAX, 0xffff, u32::MAX]);
        b.arrive(0, Arrival { arrive_only: true, ..sync(u32::MAX, 64) }).expect("arrives");
        assert_eq!((b.warps[0].running, b.warps[0].pc[5]), (u32::MAX, 1));
        b.arrive(1, sync(0xffff, 64)).expect("arrives");
        assert_eq!(b.warps[1].running, 0xffff);
    }

    #[test]
    fn reductions() {
        for (gather, want) in [(Gather::Popc, 17), (Gather::And, 0), (Gather::Or, 1)] {
            let mut b = block(&[u32::MAX]);
            b.arrive(0, Arrival { gather, votes: 0x1ffff, ..sync(u32::MAX, 0) }).expect("arrives");
            assert_eq!(b.warps[0].gathered, want);
        }
    }

    #[test]
    fn mistakes_are_reported() {
        let mut b = block(&[u32::MAX, 1]);
        assert!(b.arrive(0, Arrival { barrier: 16, ..sync(1, 0) }).is_err());
        b.arrive(0, Arrival { arrive_only: true, ..sync(1, 0) }).expect("arrives");
        assert!(b.arrive(0, sync(1, 0)).is_err());
        assert!(b.arrive(0, sync(2, 32)).is_err());
    }

    /// `barrier.arrive 3, 128; barrier.sync 3, 128` in a block of 64 threads.
    #[test]
    fn counted_barriers_count_arrivals() {
        let mut b = block(&[u32::MAX, u32::MAX]);
        for warp in 0..2 {
            b.arrive(warp, Arrival { arrive_only: true, ..sync(u32::MAX, 128) }).expect("arrives");
        }
        b.arrive(0, sync(0xffff, 128)).expect("arrives");
        b.arrive(0, sync(0xffff_0000, 128)).expect("arrives");
        assert_eq!((b.warps[0].running, b.warps[1].running), (0, u32::MAX));
        b.arrive(1, sync(u32::MAX, 128)).expect("arrives");
        assert_eq!((b.warps[0].running, b.warps[0].pc[0], b.warps[1].pc[0]), (u32::MAX, 2, 2));
        assert!(b.barriers[0].is_fresh());
    }
}
