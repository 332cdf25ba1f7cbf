//! Races in shared memory: two accesses of the same byte, one of them a store, by threads that nothing has put in order.
//!
//! Input: accesses in the order of execution, barriers, atomics. Output: the earlier access that a later one races with. Invariant: what
//! is in order is never reported. Order is kept by vector clocks over the warps of a block: a barrier orders all that take part, an
//! atomic orders what is before it with what follows one on the same address (a lock). Lanes of one warp are in order when they have
//! executed an instruction together since, but not within one instruction: of two lanes that store to the same byte in it one wins, and
//! the caller asks whether they store the same. Two atomics never race. Of the readers of a byte the last two warps are remembered, of its
//! writers the last, and of those that stored the same as another one without order the last two.
//!
//! A race is *benign* where both store the same value, as compilers let warps do that compute the same (Triton's replicated
//! layouts): whoever comes last, the byte is the same. A warp that has stored that value may read it, too, without order with the others that
//! did. Everything else is none: a store of another value, and a store of the same value beside a read by a warp that did not store it.

use std::collections::BTreeMap;

/// Warps that a block may have.
const WARPS: usize = 32;

/// A warp's knowledge of the clocks of all warps.
pub type Clock = [u32; WARPS];

/// Who accessed a byte, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The warp's own clock; 0 where there was no access.
    clock: u32,
    /// The warp's instruction count, for the order of its lanes.
    step: u32,
    pub pc: u32,
    pub warp: u8,
    pub lane: u8,
    atomic: bool,
}

impl Epoch {
    /// Whether it is one of another lane in the same instruction.
    pub fn is_beside(&self, now: &Access) -> bool {
        usize::from(self.warp) == now.warp && self.step == now.step && usize::from(self.lane) != now.lane
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Byte {
    write: Epoch,
    /// The store before it, of the same value, that nothing puts in order with it.
    twin: Epoch,
    /// Warps that have stored this value without order, the last one among them.
    storers: u32,
    reads: [Epoch; 2],
}

/// An earlier access that nothing puts in order with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The byte.
    pub at: u64,
    pub other: Epoch,
    /// Whether both store the same value.
    pub benign: bool,
}

/// One access, as the caller saw it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub at: u64,
    pub bytes: u8,
    pub store: bool,
    pub atomic: bool,
    /// Of a store: its bytes that memory holds already, one bit each.
    pub same: u32,
    pub warp: usize,
    pub lane: usize,
    /// Lanes that execute together with it.
    pub group: u32,
    pub step: u32,
    pub pc: u32,
}

/// What is known of one block.
#[derive(Clone, Debug)]
pub struct Races {
    bytes: Vec<Byte>,
    clocks: Vec<Clock>,
    locks: BTreeMap<u64, Clock>,
    /// Of each warp: when two lanes were last together, by instruction count; made where lanes part.
    together: Vec<Vec<[u32; 32]>>,
    /// Of each warp: its last atomic.
    atomics: Vec<u32>,
}

fn join(into: &mut Clock, other: &Clock) {
    into.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
}

impl Race {
    /// What is wrong, in words; `place` is where the other access stands in the program.
    pub fn text(&self, place: &str) -> String {
        let Race { at, other: Epoch { warp, lane, .. }, benign } = self;
        let what = format!("shared address {at:#x} was accessed at {place} by warp {warp}, lane {lane}");
        match benign {
            true => format!("{what}, and nothing puts the two in order; the value is the same"),
            false => format!("{what}, and nothing puts the two in order"),
        }
    }
}

impl Races {
    /// Of a block that has done nothing.
    pub fn new(warps: usize) -> Races {
        let mut clocks = vec![[0; WARPS]; warps.min(WARPS)];
        clocks.iter_mut().enumerate().for_each(|(warp, clock)| clock[warp] = 1);
        Races {
            bytes: Vec::new(),
            clocks,
            locks: BTreeMap::new(),
            together: vec![Vec::new(); warps],
            atomics: vec![0; warps],
        }
    }

    /// A group of lanes executed together until this instruction of its warp.
    pub fn were_together(&mut self, warp: usize, group: u32, step: u32) {
        let rows = &mut self.together[warp];
        rows.resize(32, [0; 32]);
        for (lane, row) in rows.iter_mut().enumerate().filter(|(lane, _)| group >> lane & 1 != 0) {
            let _ = lane;
            row.iter_mut().enumerate().filter(|(l, _)| group >> l & 1 != 0).for_each(|(_, last)| *last = step);
        }
    }

    /// What a warp knows when it arrives at a barrier; from then on it is in a new interval.
    pub fn arrive(&mut self, warp: usize, known: &mut Clock) {
        join(known, &self.clocks[warp]);
        self.clocks[warp][warp] += 1;
    }

    /// A warp goes on behind a barrier, and knows what all know that arrived.
    pub fn pass(&mut self, warp: usize, known: &Clock) {
        join(&mut self.clocks[warp], known);
    }

    /// A warp's atomic on an address, of whatever space: it comes after those before it on the same address.
    pub fn synchronise(&mut self, warp: usize, address: u64, step: u32) {
        let lock = self.locks.entry(address).or_default();
        join(&mut self.clocks[warp], lock);
        lock.copy_from_slice(&self.clocks[warp]);
        self.clocks[warp][warp] += 1;
        self.atomics[warp] = step;
    }

    /// Whether an earlier access comes before this one by more than chance.
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

    /// The access of a byte that one races with.
    fn race(&self, byte: &Byte, a: &Access, at: u64) -> Option<Race> {
        let open = |before: &&Epoch| !self.ordered(before, a);
        if !a.store {
            let knows = usize::from(byte.write.warp) != a.warp && byte.storers >> a.warp & 1 != 0;
            return Some(&byte.write).filter(open).filter(|_| !knows).map(|other| Race {
                at,
                other: *other,
                benign: false,
            });
        }
        let same = a.same >> (at - a.at) & 1 != 0 && !a.atomic && byte.write.clock != 0 && !byte.write.atomic;
        let of = |other: &Epoch, benign| Race { at, other: *other, benign };
        let reads = || byte.reads.iter().filter(open);
        let harmful = reads().find(|read| !same || byte.storers >> read.warp & 1 == 0).map(|read| of(read, false));
        let store = [&byte.write, &byte.twin].into_iter().find(open).map(|store| of(store, same));
        let read = || reads().next().map(|read| of(read, true));
        match store {
            Some(store) if !store.benign => Some(store),
            _ => harmful.or(store).or_else(read),
        }
    }

    /// Notes an access; the earlier one that it races with, a benign one only where there is no other.
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
                    Some(Race { benign: true, other, .. }) => {
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
        Access { at: 4, bytes: 4, store, atomic: false, same: 0, warp, lane: 0, group: 1, step: 1, pc: 0 }
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
        // The third warp was not there, and an access behind the barrier is not before it.
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
        // Both know what is there; a third warp does not, and another value is another matter.
        assert!(r.access(access(0, false), 64).is_none() && r.access(access(1, false), 64).is_none());
        assert!(r.access(access(2, false), 64).is_some_and(|race| !race.benign));
        assert!(r.access(access(3, true), 64).is_some_and(|race| !race.benign));
        // A read by a warp that did not store it.
        let mut r = Races::new(3);
        r.access(access(0, true), 64);
        r.access(access(2, false), 64);
        assert!(r.access(same(1), 64).is_some_and(|race| !race.benign));
        // Some bytes are others.
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
