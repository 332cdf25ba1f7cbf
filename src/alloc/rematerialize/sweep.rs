//! Chooses the values to rematerialize: the cheapest for the length they live, where pressure is
//! too high.
//!
//! One sweep over the live ranges in order of their starts marks the chosen candidates and returns
//! the peak pressure that remains. Values that live across a call count against the registers that
//! calls preserve.

use super::candidates::Candidates;
use super::{MARGIN, Places, Ranges, first_points};
use crate::alloc::bundles::{Calls, calls};
use crate::alloc::interference::Mask;
use crate::alloc::ranges::sort_by_point;
use crate::alloc::zones::{Zone, zones};
use crate::ori::{Block, File, Function, VReg};
use crate::sorted::SortedSet;
use cranelift_entity::EntityRef;
use smallvec::SmallVec;

/// Registers that may live, at all and across calls.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub live: u32,
    pub calls: u32,
}

pub struct Sweep {
    /// Starts of ranges with what ends them, and points at which calls destroy registers: sorted,
    /// calls before registers and these by number.
    starts: Vec<(u64, u32)>,
    /// Ends of ranges, sorted.
    ends: Vec<u64>,
    blocks: Vec<(u32, Block)>,
    /// For each kind of call, and number of values that live across it, the registers that they
    /// take.
    across: Vec<Vec<u32>>,
    /// Where a warp has fewer registers than the function.
    zones: Vec<Zone>,
}

/// A point and a register, or none, in the order of points.
fn key(point: u32, reg: Option<VReg>) -> u64 {
    u64::from(point) << 32 | reg.map_or(0, |reg| reg.index() as u64 + 1)
}

fn register(key: u64) -> Option<VReg> {
    (key as u32).checked_sub(1).map(VReg::from_u32)
}

impl Sweep {
    pub fn new(function: &Function, ranges: &Ranges) -> Sweep {
        let calls = calls(&ranges.clobbers, &[]);
        let points = |(kind, calls): (usize, &Calls)| -> Vec<(u64, u32)> {
            calls.points.iter().map(|point| (key(*point, None), kind as u32)).collect()
        };
        let mut starts: Vec<(u64, u32)> = calls.iter().enumerate().flat_map(points).collect();
        let mut ends = Vec::new();
        for (reg, _) in function.regs().iter().filter(|(_, data)| data.file == File::R && data.phys.is_none()) {
            for (first, last) in ranges.of[reg].iter() {
                starts.push((key(*first, Some(reg)), *last));
                ends.push(key(*last, Some(reg)));
            }
        }
        sort_by_point(&mut starts, |start| (start.0 >> 32) as u32);
        sort_by_point(&mut ends, |end| (end >> 32) as u32);
        let across = |calls: &Calls| {
            let kept = Mask::below(256).minus(calls.changed[File::R as usize]);
            std::iter::once(0).chain(kept.iter().skip(1).map(|n| n as u32 + 1)).collect()
        };
        let across = calls.iter().map(across).collect();
        Sweep { starts, ends, blocks: first_points(function).0, across, zones: zones(function) }
    }

    /// The sweep; the most that live behind it.
    pub fn run(&self, candidates: &mut Candidates, (places, ranges): (&Places, &Ranges), limits: Limits) -> Limits {
        let mut most = limits;
        let mut live = Live { sweep: self, places, ranges, ended: 0, now: 0, count: 0, cheap: SortedSet::new() };
        let (mut at, mut zones) = (0, self.zones.iter().peekable());
        for (start, end) in &self.starts {
            let point = (start >> 32) as u32;
            while zones.next_if(|zone| zone.points.1 <= point).is_some() {}
            let zone = zones.peek().map_or(u32::MAX, |zone| zone.registers.saturating_sub(MARGIN));
            live.leave(point, candidates);
            live.now = *start;
            while self.blocks.get(at + 1).is_some_and(|b| b.0 <= point) {
                at += 1;
            }
            let block = self.blocks[at].1;
            let Some(reg) = register(*start) else {
                // What ends with the call does not live across it.
                let count = |live: &Live| self.across[*end as usize].get(live.count as usize).copied().unwrap_or(256);
                while count(&live) > limits.calls && live.relieve(candidates, block, point) {}
                most.calls = most.calls.max(count(&live));
                continue;
            };
            if candidates.is_gone(reg) {
                continue;
            }
            live.enter(*end, reg, candidates);
            while live.count > limits.live.min(zone) && live.relieve(candidates, block, point) {}
            most.live = most.live.max(live.count);
        }
        most
    }
}

/// What lives at the point of the sweep.
struct Live<'a> {
    sweep: &'a Sweep,
    places: &'a Places<'a>,
    ranges: &'a Ranges,
    /// Ends that are behind.
    ended: usize,
    /// The start at hand; those behind it do not count yet.
    now: u64,
    count: u32,
    /// Candidates by density, with the end of the range that they are in.
    cheap: SortedSet<(u64, u32, u32)>,
}

impl Live<'_> {
    fn leave(&mut self, point: u32, candidates: &Candidates) {
        while let Some(end) = self.sweep.ends.get(self.ended).filter(|end| (**end >> 32) as u32 <= point) {
            self.ended += 1;
            self.count -= u32::from(register(*end).is_some_and(|reg| !candidates.is_gone(reg)));
        }
    }

    fn enter(&mut self, end: u32, reg: VReg, candidates: &Candidates) {
        self.count += 1;
        if let Some(i) = candidates.of[reg] {
            self.cheap.insert((candidates.all[i as usize].density.to_bits(), i, end));
        }
    }

    /// Chooses the cheapest candidate that would not live here; whether there is one.
    fn relieve(&mut self, candidates: &mut Candidates, block: Block, point: u32) -> bool {
        let (mut found, mut gone) = (None, SmallVec::<[(u64, u32, u32); 8]>::new());
        for entry in &self.cheap {
            let candidate = &candidates.all[entry.1 as usize];
            if entry.2 <= point || candidate.chosen {
                gone.push(*entry);
            } else if !candidate.stays(self.places, block, point) {
                gone.push(*entry);
                found = Some(entry.1);
                break;
            }
        }
        gone.iter().for_each(|entry| {
            self.cheap.remove(entry);
        });
        let Some(i) = found else { return false };
        let candidate = &mut candidates.all[i as usize];
        candidate.chosen = true;
        let lives = |reg: &&VReg| {
            let ranges = &self.ranges.of[**reg];
            let at = ranges.partition_point(|r| r.1 <= point);
            ranges.get(at).is_some_and(|r| key(r.0, Some(**reg)) <= self.now)
        };
        self.count -= candidate.regs.iter().filter(lives).count() as u32;
        true
    }
}
