//! A block: its warps, its shared memory, its barriers.
//!
//! Input: arrivals at block barriers. Output: lanes released when a barrier is complete. Invariant: threads count, not
//! warps; a thread that has ended counts as arrived where all threads of the block are expected. A barrier with a number
//! of threads counts arrivals: a thread that only arrived may arrive again before the barrier is complete.

use super::super::fault::Fault;
use super::code::Gather;
use super::control;
use super::warp::{Wait, Warp, lanes_of};
use super::watch::Seen;

/// Number of block barriers.
pub const BARRIERS: usize = 16;

/// One block barrier: who has arrived since it was last complete.
#[derive(Clone, Debug, Default)]
struct Barrier {
    /// Lane masks of each warp; the second holds the lanes that arrived a second time, and so on. None is empty.
    arrived: Vec<Vec<u32>>,
    /// Threads expected; 0 where all are.
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

    /// Notes lanes of a warp, each in the first mask that does not hold it yet.
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
    /// What a watch knows of it.
    pub seen: Option<Box<Seen>>,
}

impl Block {
    /// A block about to start.
    pub fn new(id: [u32; 3], warps: Vec<Warp>, shared_bytes: usize) -> Block {
        let barrier = Barrier::fresh(warps.len());
        Block { id, warps, shared: vec![0; shared_bytes], barriers: vec![barrier; BARRIERS], seen: None }
    }

    /// Whether nobody has arrived at a barrier since it was last complete.
    pub fn is_fresh(&self, number: usize) -> bool {
        self.barriers.get(number).is_none_or(Barrier::is_fresh)
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

    /// Lets go whoever waits at barriers that are complete; called when lanes arrive or end.
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
