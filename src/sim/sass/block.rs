//! A block: its warps, its shared memory, its barriers.
//!
//! Input: arrivals at block barriers. Output: lanes released when a barrier is complete. Invariant: threads count, not
//! warps; a thread that has ended counts as arrived where all threads of the block are expected.

use super::super::fault::Fault;
use super::code::Gather;
use super::control;
use super::warp::{Wait, Warp, lanes_of};

/// Number of block barriers.
pub const BARRIERS: usize = 16;

/// One block barrier: who has arrived since it was last complete.
#[derive(Clone, Debug, Default)]
struct Barrier {
    /// A lane mask per warp.
    arrived: Vec<u32>,
    /// Threads expected; 0 where all are.
    expected: u32,
    votes: u32,
    all: bool,
    any: bool,
    gather: Option<Gather>,
}

/// What a group brings to a barrier.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub lanes: u32,
    pub barrier: u32,
    /// Threads expected; 0 where all are.
    pub count: u32,
    pub arrive_only: bool,
    pub gather: Gather,
    /// The predicate of each lane.
    pub votes: u32,
}

/// One block.
#[derive(Clone, Debug)]
pub struct Block {
    pub id: [u32; 3],
    pub warps: Vec<Warp>,
    pub shared: Vec<u8>,
    barriers: Vec<Barrier>,
}

impl Block {
    /// A block about to start.
    pub fn new(id: [u32; 3], warps: Vec<Warp>, shared_bytes: usize) -> Block {
        let barrier = Barrier { arrived: vec![0; warps.len()], all: true, ..Barrier::default() };
        Block { id, warps, shared: vec![0; shared_bytes], barriers: vec![barrier; BARRIERS] }
    }

    /// Whether every thread has ended.
    pub fn done(&self) -> bool {
        self.warps.iter().all(|w| w.alive == 0)
    }

    /// Lanes of a warp arrive at a barrier.
    pub fn arrive(&mut self, warp: usize, a: Arrival) -> Result<(), Fault> {
        let number = a.barrier as usize;
        let Some(barrier) = self.barriers.get_mut(number) else {
            return Err(Fault::new(format!("barrier number {number} of {BARRIERS}")));
        };
        if barrier.arrived[warp] & a.lanes != 0 {
            return Err(Fault::new(format!("threads arrive twice at barrier {number} before it is complete")));
        }
        let fresh = barrier.arrived.iter().all(|lanes| *lanes == 0);
        if !fresh && barrier.expected != a.count {
            let (was, now) = (barrier.expected, a.count);
            return Err(Fault::new(format!("barrier {number} expects {was} threads and now {now}")));
        }
        barrier.expected = a.count;
        barrier.arrived[warp] |= a.lanes;
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

    /// Lets go whoever waits at barriers that are complete; called when lanes arrive or end.
    pub fn settle(&mut self) {
        for number in 0..BARRIERS {
            if self.barriers[number].arrived.iter().any(|lanes| *lanes != 0) {
                self.complete(number);
            }
        }
    }

    fn complete(&mut self, number: usize) {
        let barrier = &self.barriers[number];
        let missing = |warp: &Warp, arrived: u32| warp.alive & !arrived;
        let pairs = || self.warps.iter().zip(&barrier.arrived);
        let full = if barrier.expected == 0 {
            pairs().all(|(warp, arrived)| missing(warp, *arrived) == 0)
        } else {
            let threads = |(warp, arrived): (&Warp, &u32)| match (*arrived, missing(warp, *arrived)) {
                (0, _) => 0,
                (_, 0) => 32,
                (some, _) => some.count_ones(),
            };
            pairs().map(threads).sum::<u32>() >= barrier.expected
        };
        if full {
            self.open(number);
        }
    }

    fn open(&mut self, number: usize) {
        let fresh = Barrier { arrived: vec![0; self.warps.len()], all: true, ..Barrier::default() };
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
        b.arrive(0, Arrival { arrive_only: true, ..sync(1, 64) }).expect("arrives");
        assert!(b.arrive(0, sync(1, 64)).is_err());
        assert!(b.arrive(0, sync(2, 32)).is_err());
    }
}
