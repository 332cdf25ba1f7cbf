//! Detects data races in shared memory: two accesses of the same byte, at least one of them a
//! store, by threads that no synchronization orders.
//!
//! The order is tracked by vector clocks over the warps of a block. A barrier orders all its
//! participants. An atomic orders everything before it with everything after a later atomic on the
//! same address (a lock), a strong store to an address what is before it with what is behind a
//! later strong load or atomic there. Ordered accesses are never reported. Lanes of one warp are
//! ordered if they have executed an instruction together since, but not within one instruction: if
//! two lanes store to the same byte, one of them wins, and the caller says whether they store the
//! same value. Two atomic or strong accesses never race. To bound the state, each byte remembers
//! its last writer, the last two warps that read it, and the last two that stored the same value
//! without order.
//!
//! A race is *benign* if both accesses store the same value, since the byte is the same whichever
//! comes last; compilers let warps do this that compute the same value (Triton's replicated
//! layouts). So is one of an atomic with a load of machine code, which does not say whether it was
//! strong in the source, or begins a loop of compare-and-swap. A warp that has stored that value
//! may also read it without order with the other warps that stored it. Any other race is harmful:
//! a store of a different value, or a store of the same value against a read by a warp that did
//! not store it.

use crate::sorted::SortedMap;

/// Most warps in a block.
const WARPS: usize = 32;

/// Accesses of the same eight bytes hand over: a part of a number tells that an atomic changed it.
const GRANULE: u64 = 7;

/// A warp's vector clock: the latest known clock of every warp.
pub type Clock = [u32; WARPS];

/// The thread, instruction and time of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The warp's own clock at the access; 0 means that there was none.
    clock: u32,
    /// The warp's instruction count, which orders its lanes.
    step: u32,
    /// The instruction, in the caller's numbering.
    pub pc: u32,
    /// The warp.
    pub warp: u8,
    /// The lane.
    pub lane: u8,
    atomic: bool,
    loose: bool,
}

impl Epoch {
    /// Whether this access was made by another lane of the same instruction.
    pub fn is_beside(&self, now: &Access) -> bool {
        usize::from(self.warp) == now.warp && self.step == now.step && usize::from(self.lane) != now.lane
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Byte {
    write: Epoch,
    /// The previous store of the same value, unordered with the last one.
    twin: Epoch,
    /// Mask of the warps that stored this value without order, including the last one.
    storers: u32,
    reads: [Epoch; 2],
}

/// An earlier access that is unordered with the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The byte's address.
    pub at: u64,
    /// The earlier access.
    pub other: Epoch,
    /// Whether both store the same value, or one is an atomic and the other may be strong.
    pub benign: bool,
    /// Whether it is benign for the second of these reasons.
    pub atomic: bool,
}

/// One access to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Address of the first byte.
    pub at: u64,
    /// Number of bytes.
    pub bytes: u8,
    /// Whether it is a store.
    pub store: bool,
    /// Whether it is an atomic, or a strong load or store.
    pub atomic: bool,
    /// Whether it is a load that may be strong, although nothing says so.
    pub loose: bool,
    /// For a store: a mask of the bytes that already hold the stored value.
    pub same: u32,
    /// The warp.
    pub warp: usize,
    /// The lane.
    pub lane: usize,
    /// Mask of the lanes that execute the instruction together.
    pub group: u32,
    /// The warp's instruction count.
    pub step: u32,
    /// The instruction, in the caller's numbering.
    pub pc: u32,
}

/// The race detector's state for one block.
#[derive(Clone, Debug)]
pub struct Races {
    bytes: Vec<Byte>,
    clocks: Vec<Clock>,
    locks: SortedMap<u64, Clock>,
    /// For each warp: when each two lanes last executed together, by instruction count; allocated
    /// when lanes diverge.
    together: Vec<Vec<[u32; 32]>>,
    /// For each warp: its last atomic, by instruction count.
    atomics: Vec<u32>,
}

fn join(into: &mut Clock, other: &Clock) {
    into.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
}

impl Race {
    /// The message; `place` names the instruction of the other access.
    pub fn text(&self, place: &str) -> String {
        let Race { at, other: Epoch { warp, lane, .. }, benign, atomic } = self;
        let what = format!("shared address {at:#x} was accessed at {place} by warp {warp}, lane {lane}");
        match benign {
            true if *atomic => format!("{what}, and nothing puts the two in order; one is an atomic"),
            true => format!("{what}, and nothing puts the two in order; the value is the same"),
            false => format!("{what}, and nothing puts the two in order"),
        }
    }
}

impl Races {
    /// The state of a block that has not run yet.
    pub fn new(warps: usize) -> Races {
        let mut clocks = vec![[0; WARPS]; warps.min(WARPS)];
        clocks.iter_mut().enumerate().for_each(|(warp, clock)| clock[warp] = 1);
        Races {
            bytes: Vec::new(),
            clocks,
            locks: SortedMap::new(),
            together: vec![Vec::new(); warps],
            atomics: vec![0; warps],
        }
    }

    /// Records that a group of lanes executed together until this instruction of its warp.
    pub fn were_together(&mut self, warp: usize, group: u32, step: u32) {
        let rows = &mut self.together[warp];
        rows.resize(32, [0; 32]);
        for (lane, row) in rows.iter_mut().enumerate().filter(|(lane, _)| group >> lane & 1 != 0) {
            let _ = lane;
            row.iter_mut().enumerate().filter(|(l, _)| group >> l & 1 != 0).for_each(|(_, last)| *last = step);
        }
    }

    /// Joins a warp's clock into a barrier's at its arrival and starts a new interval of the warp.
    pub fn arrive(&mut self, warp: usize, known: &mut Clock) {
        join(known, &self.clocks[warp]);
        self.clocks[warp][warp] += 1;
    }

    /// Joins a completed barrier's clock into that of a warp that passes it.
    pub fn pass(&mut self, warp: usize, known: &Clock) {
        join(&mut self.clocks[warp], known);
    }

    /// Records a warp's atomic on an address of any state space: it is ordered after earlier
    /// atomics on the same address.
    pub fn synchronise(&mut self, warp: usize, address: u64, step: u32) {
        let lock = self.locks.entry(address & !GRANULE).or_default();
        join(&mut self.clocks[warp], lock);
        lock.copy_from_slice(&self.clocks[warp]);
        self.clocks[warp][warp] += 1;
        self.atomics[warp] = step;
    }

    /// Records a warp's strong store: what is before it is before later strong loads and atomics.
    pub fn release(&mut self, warp: usize, address: u64) {
        join(self.locks.entry(address & !GRANULE).or_default(), &self.clocks[warp]);
        self.clocks[warp][warp] += 1;
    }

    /// Records a warp's strong load: it is behind earlier strong stores and atomics.
    pub fn acquire(&mut self, warp: usize, address: u64) {
        if let Some(lock) = self.locks.get(&(address & !GRANULE)) {
            join(&mut self.clocks[warp], lock);
        }
    }

    /// Whether synchronization orders the earlier access before the current one.
    fn ordered(&self, before: &Epoch, now: &Access) -> bool {
        if before.clock == 0 || before.atomic && now.atomic {
            return true;
        }
        let warp = usize::from(before.warp);
        if warp != now.warp {
            return self.clocks[now.warp][warp] >= before.clock;
        }
        let lane = usize::from(before.lane);
        lane == now.lane
            || before.step != now.step && now.group >> lane & 1 != 0
            || self.atomics[warp] > before.step
            || self.together[warp].get(now.lane).is_some_and(|row| row[lane] > before.step)
    }

    /// The earlier access of a byte that the current one races with.
    fn race(&self, byte: &Byte, a: &Access, at: u64) -> Option<Race> {
        let open = |before: &&Epoch| !self.ordered(before, a);
        if !a.store {
            let knows = usize::from(byte.write.warp) != a.warp && byte.storers >> a.warp & 1 != 0;
            return Some(&byte.write).filter(open).filter(|_| !knows).map(|other| Race {
                at,
                other: *other,
                benign: a.loose && other.atomic,
                atomic: true,
            });
        }
        let same = a.same >> (at - a.at) & 1 != 0 && !a.atomic && byte.write.clock != 0 && !byte.write.atomic;
        let of = |other: &Epoch, benign| Race { at, other: *other, benign, atomic: a.atomic };
        let reads = || byte.reads.iter().filter(open);
        let fine = |read: &Epoch| a.atomic && read.loose || same && byte.storers >> read.warp & 1 != 0;
        let harmful = reads().find(|read| !fine(read)).map(|read| of(read, false));
        let store = [&byte.write, &byte.twin].into_iter().find(open).map(|store| of(store, same));
        let read = || reads().next().map(|read| of(read, true));
        match store {
            Some(store) if !store.benign => Some(store),
            _ => harmful.or(store).or_else(read),
        }
    }

    /// Records an access and returns the earlier one that it races with; a benign race is returned
    /// only if there is no harmful one. `size` is the size of shared memory in bytes.
    pub fn access(&mut self, a: Access, size: usize) -> Option<Race> {
        if self.bytes.is_empty() {
            self.bytes.resize(size, Byte::default());
        }
        let me = Epoch {
            clock: self.clocks[a.warp][a.warp],
            step: a.step,
            pc: a.pc,
            warp: a.warp as u8,
            lane: a.lane as u8,
            atomic: a.atomic,
            loose: a.loose,
        };
        let mut found: Option<Race> = None;
        for at in a.at..a.at + u64::from(a.bytes) {
            let Some(byte) = self.bytes.get(at as usize).copied() else { break };
            let raced = self.race(&byte, &a, at);
            if found.is_none_or(|found| found.benign) {
                found = raced.filter(|raced| found.is_none() || !raced.benign).or(found);
            }
            let byte = &mut self.bytes[at as usize];
            if a.store {
                let own = 1 << me.warp;
                *byte = match raced {
                    Some(Race { benign: true, other, .. }) if !a.atomic => {
                        let twin = if other.is_beside(&a) { byte.twin } else { byte.write };
                        Byte { write: me, twin, storers: byte.storers | own, ..Byte::default() }
                    }
                    _ => Byte { write: me, storers: own, ..Byte::default() },
                };
            } else if byte.reads[0].clock != 0 && byte.reads[0].warp != me.warp {
                byte.reads = [me, byte.reads[0]];
            } else {
                byte.reads[0] = me;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(warp: usize, store: bool) -> Access {
        Access { at: 4, bytes: 4, store, atomic: false, loose: false, same: 0, warp, lane: 0, group: 1, step: 1, pc: 0 }
    }

    #[test]
    fn warps_without_a_barrier_race() {
        let mut r = Races::new(3);
        assert!(r.access(access(0, true), 64).is_none());
        assert!(r.access(access(1, false), 64).is_some());
        let mut r = Races::new(3);
        assert!(r.access(access(0, false), 64).is_none() && r.access(access(1, false), 64).is_none());
        assert_eq!(r.access(access(2, true), 64).map(|found| found.at), Some(4));
    }

    #[test]
    fn a_barrier_puts_them_in_order() {
        let mut r = Races::new(3);
        r.access(access(0, true), 64);
        let mut known = Clock::default();
        r.arrive(0, &mut known);
        r.arrive(1, &mut known);
        r.pass(0, &known);
        r.pass(1, &known);
        assert!(r.access(access(1, false), 64).is_none());
        // The third warp did not take part, and an access after the barrier is not ordered by it.
        assert!(r.access(access(2, false), 64).is_some());
        r.access(access(0, true), 64);
        assert!(r.access(access(1, true), 64).is_some());
    }

    #[test]
    fn stores_of_the_same_value_are_benign() {
        let same = |warp| Access { same: 0xf, ..access(warp, true) };
        let mut r = Races::new(4);
        assert!(r.access(access(0, true), 64).is_none());
        assert!(r.access(same(1), 64).is_some_and(|race| race.benign));
        // Both know the value; a third warp does not, and another value is harmful.
        assert!(r.access(access(0, false), 64).is_none() && r.access(access(1, false), 64).is_none());
        assert!(r.access(access(2, false), 64).is_some_and(|race| !race.benign));
        assert!(r.access(access(3, true), 64).is_some_and(|race| !race.benign));
        // A read by a warp that did not store it.
        let mut r = Races::new(3);
        r.access(access(0, true), 64);
        r.access(access(2, false), 64);
        assert!(r.access(same(1), 64).is_some_and(|race| !race.benign));
        // Some bytes differ.
        let mut r = Races::new(2);
        r.access(access(0, true), 64);
        assert!(
            r.access(Access { same: 0b1011, ..access(1, true) }, 64).is_some_and(|race| !race.benign && race.at == 6)
        );
    }

    #[test]
    fn atomics_hand_over() {
        let mut r = Races::new(2);
        r.access(access(0, true), 64);
        r.synchronise(0, 32, 2);
        r.synchronise(1, 32, 2);
        assert!(r.access(access(1, true), 64).is_none());
        let atomic = |warp| Access { atomic: true, at: 32, ..access(warp, true) };
        let mut r = Races::new(2);
        assert!(r.access(atomic(0), 64).is_none() && r.access(atomic(1), 64).is_none());
        assert!(r.access(Access { at: 32, ..access(0, false) }, 64).is_some());
    }

    #[test]
    fn loads_that_may_be_strong_and_atomics_are_benign() {
        let loose = |warp| Access { loose: true, ..access(warp, false) };
        let atomic = |warp| Access { atomic: true, ..access(warp, true) };
        let mut r = Races::new(2);
        r.access(loose(0), 64);
        assert!(r.access(atomic(1), 64).is_some_and(|race| race.benign && race.atomic));
        assert!(r.access(loose(0), 64).is_some_and(|race| race.benign));
        // A plain store is not.
        assert!(r.access(access(1, true), 64).is_some_and(|race| !race.benign));
    }

    #[test]
    fn strong_accesses_hand_over_in_one_direction() {
        let strong = |warp, store| Access { atomic: true, at: 32, ..access(warp, store) };
        let mut r = Races::new(2);
        r.access(access(0, true), 64);
        r.release(0, 32);
        assert!(r.access(strong(0, true), 64).is_none());
        r.acquire(1, 32);
        assert!(r.access(strong(1, false), 64).is_none() && r.access(access(1, false), 64).is_none());
        // What the reader does later is not before what the writer does then.
        r.access(Access { at: 16, ..access(1, true) }, 64);
        r.acquire(0, 32);
        assert!(r.access(Access { at: 16, ..access(0, false) }, 64).is_some());
        // A plain store beside a strong load is a race.
        r.access(Access { at: 40, ..access(0, true) }, 64);
        assert!(r.access(Access { at: 40, ..strong(1, false) }, 64).is_some());
    }

    #[test]
    fn stores_of_one_instruction_race() {
        let lane = |lane: usize, store| Access { lane, store, group: 0b11, ..access(0, true) };
        let mut r = Races::new(1);
        assert!(r.access(lane(0, true), 64).is_none());
        assert!(r.access(lane(1, true), 64).is_some_and(|race| race.other.is_beside(&lane(1, true))));
        let mut r = Races::new(1);
        assert!(r.access(lane(0, false), 64).is_none() && r.access(lane(1, false), 64).is_none());
    }

    #[test]
    fn lanes_that_have_met_are_in_order() {
        let lane = |lane: usize, group, step| Access { lane, group, step, ..access(0, true) };
        let mut r = Races::new(1);
        r.access(lane(0, 0b11, 1), 64);
        assert!(r.access(lane(1, 0b11, 2), 64).is_none());
        assert!(r.access(lane(0, 0b01, 3), 64).is_some());
        r.were_together(0, 0b11, 5);
        assert!(r.access(lane(1, 0b10, 6), 64).is_none());
    }
}
