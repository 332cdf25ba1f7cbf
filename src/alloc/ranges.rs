//! Live ranges over the linear order of the layout.
//!
//! Input: a function out of SSA. Output: for each register the sorted, disjoint half-open ranges of points at which it is
//! live. Instruction number i reads at point 2i and writes at point 2i + 1, so that a result may take the place of a
//! source that ends there. Invariant: a definition covers at least its own point, even if nothing reads it.

use crate::ori::cfg::Cfg;
use crate::ori::liveness::Liveness;
use crate::ori::{Function, VReg};
use cranelift_entity::SecondaryMap;

/// A half-open range of points.
pub type Range = (u32, u32);

/// Ranges of every register.
pub struct Ranges {
    pub of: SecondaryMap<VReg, Vec<Range>>,
}

impl Ranges {
    pub fn new(function: &Function) -> Ranges {
        let cfg = Cfg::new(function);
        let live = Liveness::new(function, &cfg);
        let mut of: SecondaryMap<VReg, Vec<Range>> = SecondaryMap::new();
        let mut first = 0u32;
        for block in &function.layout {
            let insts = &function.blocks[*block];
            let end = first + insts.len() as u32;
            if cfg.reachable(*block) {
                block_ranges(function, insts, &live.live_out[*block], first, &mut of);
            }
            first = end;
        }
        for reg in function.regs.keys() {
            let mut list = std::mem::take(&mut of[reg]);
            list.sort_unstable();
            let mut merged: Vec<Range> = Vec::with_capacity(list.len());
            for range in list {
                match merged.last_mut() {
                    Some(last) if range.0 <= last.1 => last.1 = last.1.max(range.1),
                    _ => merged.push(range),
                }
            }
            of[reg] = merged;
        }
        Ranges { of }
    }

    /// Whether two registers are ever live at once.
    pub fn overlap(&self, a: VReg, b: VReg) -> bool {
        overlaps(&self.of[a], &self.of[b])
    }
}

/// Whether two sorted lists of ranges meet.
pub fn overlaps(mut a: &[Range], mut b: &[Range]) -> bool {
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        if x.0 < y.1 && y.0 < x.1 {
            return true;
        }
        if x.1 <= y.1 { a = &a[1..] } else { b = &b[1..] }
    }
    false
}

fn block_ranges(
    function: &Function,
    insts: &[crate::ori::InstId],
    live_out: &crate::ori::liveness::RegSet,
    first: u32,
    of: &mut SecondaryMap<VReg, Vec<Range>>,
) {
    let start = 2 * first;
    // End of the range that is open for a register when walking backwards.
    let mut open: std::collections::BTreeMap<VReg, u32> =
        live_out.iter().map(|r| (r, 2 * (first + insts.len() as u32))).collect();
    for (i, inst) in insts.iter().enumerate().rev() {
        let point = 2 * (first + i as u32);
        let kills = function.insts[*inst].guard.is_null();
        function.for_each_def(*inst, |reg| {
            let end = open.get(&reg).copied().unwrap_or(point + 2);
            if kills {
                open.remove(&reg);
                of[reg].push((point + 1, end));
            } else {
                open.entry(reg).or_insert(end);
            }
        });
        function.for_each_use(*inst, |reg| {
            open.entry(reg).or_insert(point + 1);
        });
    }
    for (reg, end) in open {
        of[reg].push((start, end));
    }
}
