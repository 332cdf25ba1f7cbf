//! Live ranges over the linear order of the layout, outside SSA form.
//!
//! For each register, sorted and disjoint half-open ranges of points; and the points of
//! instructions that clobber registers. Instruction number i reads at point 2i and writes at point
//! 2i + 1, so a result may take the register of a source that ends there. A definition covers at
//! least its own point, even if nothing reads it. Spilled registers ([`Gone`]) have no ranges, and
//! markers that still name them are ignored. Time is linear in the size of the code and of the
//! ranges.

use crate::ori::cfg::Cfg;
use crate::ori::liveness::Liveness;
use crate::ori::{Function, InstId, VReg};
use crate::tables::Op;
use crate::tables::registers::Callee;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;
use std::ops::{Index, IndexMut};

/// A half-open range of points.
pub type Range = (u32, u32);

/// Ranges of one register: mostly one or two.
pub type RangeList = SmallVec<[Range; 2]>;

/// Spilled registers, and the instructions that still name them, for the checker only: COPY, UNDEF
/// and rematerialized definitions.
#[derive(Default)]
pub struct Gone {
    regs: SecondaryMap<VReg, bool>,
    markers: Vec<bool>,
}

impl Index<VReg> for Gone {
    type Output = bool;

    fn index(&self, reg: VReg) -> &bool {
        &self.regs[reg]
    }
}

impl Gone {
    /// Adds registers, which only markers name now.
    pub fn add(&mut self, function: &Function, regs: &[VReg]) {
        regs.iter().for_each(|reg| self.regs[*reg] = true);
        self.markers.resize(function.insts().len(), false);
        for inst in function.layout().iter().flat_map(|block| &function[*block]) {
            self.markers[inst.index()] = self.names_one(function, *inst);
        }
    }

    fn names_one(&self, function: &Function, inst: InstId) -> bool {
        let mut names = false;
        function.for_each_def(inst, |reg| names |= self[reg]);
        if function[inst].op == Op::COPY {
            function.for_each_use(inst, |reg| names |= self[reg]);
        }
        names
    }

    /// Whether an instruction is only a marker, replaced by spill code.
    #[inline]
    pub fn is_marker(&self, inst: InstId) -> bool {
        self.markers.get(inst.index()).is_some_and(|marker| *marker)
    }
}

/// A list for each register.
#[derive(Default)]
pub struct RangeTable {
    lists: Vec<RangeList>,
    /// That of a register which is newer than the table.
    none: RangeList,
}

impl Index<VReg> for RangeTable {
    type Output = RangeList;

    #[inline]
    fn index(&self, reg: VReg) -> &RangeList {
        self.lists.get(reg.index()).unwrap_or(&self.none)
    }
}

impl IndexMut<VReg> for RangeTable {
    #[inline]
    fn index_mut(&mut self, reg: VReg) -> &mut RangeList {
        &mut self.lists[reg.index()]
    }
}

/// Ranges of every register.
pub struct Ranges {
    /// Sorted, disjoint live ranges of each register.
    pub of: RangeTable,
    /// Points just after which the registers that a callee may change lose their values, and the
    /// callee.
    pub clobbers: Vec<(u32, Callee)>,
    /// Points behind which other lanes may call, in order for each callee.
    pub beside: Vec<(u32, Callee)>,
    /// First point after the last instruction.
    pub end: u32,
}

const CLOSED: u32 = u32::MAX;

/// Points for each item up to which counting is faster than comparing.
const POINTS_A_COUNT: usize = 16;

impl Ranges {
    /// Computes the live ranges of a function out of SSA form.
    pub fn new(function: &Function, cfg: &Cfg, gone: &Gone) -> Ranges {
        let live = Liveness::at_end(function, cfg, |inst| gone.is_marker(inst));
        Ranges::from(function, cfg, gone, &live)
    }

    /// The same from what is known to live at the end of each block.
    pub fn from(function: &Function, cfg: &Cfg, gone: &Gone, live: &Liveness) -> Ranges {
        let mut ranges = Ranges { of: RangeTable::default(), clobbers: Vec::new(), beside: Vec::new(), end: 0 };
        ranges.of.lists.resize_with(function.regs().len(), RangeList::new);
        let mut open = Open::new(function.regs().len());
        let count = function.inst_count() as u32;
        let mut first = count;
        for block in function.layout().iter().rev() {
            let insts = &function[*block];
            let reachable = cfg.reachable(*block);
            open.bound(&mut ranges.of, 2 * first, if reachable { &live.live[*block] } else { &[] });
            first -= insts.len() as u32;
            if reachable {
                ranges.block(function, gone, insts, first, &mut open);
            }
        }
        open.bound(&mut ranges.of, 0, &[]);
        ranges.end = 2 * count + 2;
        ranges.clobbers.reverse();
        ranges.of.lists.iter_mut().filter(|list| list.len() > 1).for_each(|list| {
            list.reverse();
            normalize(list);
        });
        ranges
    }

    fn block(&mut self, function: &Function, gone: &Gone, insts: &[InstId], first: u32, open: &mut Open) {
        for (i, inst) in insts.iter().enumerate().rev() {
            if gone.is_marker(*inst) {
                continue;
            }
            let point = 2 * (first + i as u32);
            let data = &function[*inst];
            if let Some(callee) = function.callee(*inst) {
                self.clobbers.push((point + 1, callee));
            }
            function.for_each_def(*inst, |reg| {
                if data.guard.is_null() {
                    let end = open.close(reg);
                    push(&mut self.of[reg], (point + 1, if end == CLOSED { point + 2 } else { end }));
                } else {
                    open.begin(reg, point + 2);
                }
            });
            function.for_each_use(*inst, |reg| open.begin(reg, point + 1));
        }
    }
}

/// The ranges that are open while the code is read from its end.
struct Open {
    of: Vec<Ending>,
    /// The registers that may have one, each once.
    touched: Vec<VReg>,
    /// How many have one.
    count: usize,
    bounds: u32,
}

/// The range of a register that is open.
#[derive(Clone, Copy)]
struct Ending {
    /// Where it ends, or [`CLOSED`].
    end: u32,
    /// The last bound between blocks that it was open at, by number.
    bound: u32,
    /// Whether the register is in the list.
    listed: bool,
}

impl Open {
    fn new(registers: usize) -> Open {
        let closed = Ending { end: CLOSED, bound: 0, listed: false };
        Open { of: vec![closed; registers], touched: Vec::new(), count: 0, bounds: 0 }
    }

    /// The range of a register ends here, unless one is open.
    fn begin(&mut self, reg: VReg, end: u32) {
        let ending = &mut self.of[reg.index()];
        if ending.end == CLOSED {
            ending.end = end;
            self.count += 1;
            if !std::mem::replace(&mut ending.listed, true) {
                self.touched.push(reg);
            }
        }
    }

    /// The range of a register begins here; where it ends, or [`CLOSED`] if none is open.
    fn close(&mut self, reg: VReg) -> u32 {
        let end = std::mem::replace(&mut self.of[reg.index()].end, CLOSED);
        self.count -= usize::from(end != CLOSED);
        end
    }

    /// Goes over a point between blocks: ranges of what does not live at the end of the block
    /// before it begin there, and those of what lives there alone end.
    fn bound(&mut self, ranges: &mut RangeTable, point: u32, live_out: &[VReg]) {
        live_out.iter().for_each(|reg| self.begin(*reg, point));
        // Mostly control comes from the block before, where all that is open lives then.
        if self.count == live_out.len() {
            return;
        }
        self.bounds += 1;
        live_out.iter().for_each(|reg| self.of[reg.index()].bound = self.bounds);
        let mut kept = 0;
        for at in 0..self.touched.len() {
            let reg = self.touched[at];
            let ending = &mut self.of[reg.index()];
            if ending.end != CLOSED && ending.bound != self.bounds {
                let end = std::mem::replace(&mut ending.end, CLOSED);
                self.count -= 1;
                push(&mut ranges[reg], (point, end));
            }
            ending.listed = ending.end != CLOSED;
            if ending.listed {
                self.touched[kept] = reg;
                kept += 1;
            }
        }
        self.touched.truncate(kept);
    }
}

/// Adds a range to a list in which the first one is the last: what ends where another one begins
/// is one with that.
#[inline]
fn push(list: &mut RangeList, range: Range) {
    match list.last_mut() {
        Some(last) if last.0 == range.1 => last.0 = range.0,
        _ => list.push(range),
    }
}

/// Sorts ranges and joins adjacent ones.
pub fn normalize(list: &mut RangeList) {
    if list.windows(2).all(|ranges| ranges[0].1 < ranges[1].0) {
        return;
    }
    list.sort_unstable();
    let (mut kept, all) = (0, list.as_mut_slice());
    for i in 1..all.len() {
        let range = all[i];
        if range.0 <= all[kept].1 {
            all[kept].1 = all[kept].1.max(range.1);
        } else {
            kept += 1;
            all[kept] = range;
        }
    }
    list.truncate(kept + 1);
}

/// Sorts by point, in time linear in their number where there are not far more of them than items;
/// what has the same point keeps its order.
pub fn sort_by_point<T: Copy>(items: &mut Vec<T>, point: impl Fn(&T) -> u32) {
    let mut end = 0;
    for item in &*items {
        end = end.max(point(item) as usize + 1);
    }
    if items.len() < end / POINTS_A_COUNT {
        return crate::sorted::by_key(items, point);
    }
    let mut next = vec![0u32; end + 1];
    for item in &*items {
        next[point(item) as usize + 1] += 1;
    }
    for at in 0..end {
        next[at + 1] += next[at];
    }
    let mut sorted = items.clone();
    for item in items.iter() {
        let at = &mut next[point(item) as usize];
        sorted[*at as usize] = *item;
        *at += 1;
    }
    *items = sorted;
}

/// Merges a sorted list of ranges into another that is disjoint from it. A short list costs its own
/// length plus what must be moved.
pub fn merge(into: &mut RangeList, mut from: RangeList) {
    if into.len() < from.len() {
        std::mem::swap(into, &mut from);
    }
    if from.len() * 8 > into.len() {
        into.append(&mut from);
        return normalize(into);
    }
    for range in from {
        let at = into.partition_point(|r| r.1 < range.0);
        let joined = into[at..].iter().take_while(|r| r.0 <= range.1).count();
        if joined == 0 {
            into.insert(at, range);
            continue;
        }
        into[at] = (into[at].0.min(range.0), into[at + joined - 1].1.max(range.1));
        into.drain(at + 1..at + joined);
    }
}

/// Whether two sorted lists of ranges intersect.
#[inline]
pub fn overlaps<'r>(mut a: &'r [Range], mut b: &'r [Range]) -> bool {
    if a.len() > b.len() {
        std::mem::swap(&mut a, &mut b);
    }
    if a.len() * 8 < b.len() {
        return a.iter().any(|x| {
            let at = b.partition_point(|y| y.1 <= x.0);
            b.get(at).is_some_and(|y| y.0 < x.1)
        });
    }
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        if x.0 < y.1 && y.0 < x.1 {
            return true;
        }
        if x.1 <= y.1 { a = &a[1..] } else { b = &b[1..] }
    }
    false
}

/// Whether a value with these ranges lives across a call.
pub fn crosses(ranges: &[Range], clobbers: &[u32]) -> bool {
    !clobbers.is_empty()
        && ranges.iter().any(|r| {
            let at = clobbers.partition_point(|p| *p <= r.0);
            clobbers.get(at).is_some_and(|p| *p < r.1)
        })
}
