//! Classes of registers with fixed relative places: vectors, and copies whose two sides become one register.
//!
//! Input: a function and its live ranges. Output: a partition of the registers into classes, each a row of columns; the registers
//! of one column share a physical register, those of neighbouring columns get adjacent ones. Invariants: the ranges of a
//! column are disjoint; physical number of slot 0 is `residue` modulo `modulus` (powers of two); a class with a `base` fits there beside all
//! other such classes. Merging relabels the smaller side, so that all merges together are near-linear.

use super::occupied::{Mask, Occupied};
use super::ranges::{Gone, Range, Ranges, crosses, merge, overlaps};
use super::vectors::alignment;
use crate::analysis::Loops;
use crate::ori::{File, Function, VReg};
use crate::tables::{Op, Role};
use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

/// Registers that share one physical register.
#[derive(Clone, Debug)]
pub struct Column {
    pub slot: i32,
    pub members: SmallVec<[VReg; 1]>,
    pub ranges: Vec<Range>,
}

/// Columns with fixed relative places, by slot.
#[derive(Clone, Debug)]
pub struct Class {
    pub file: File,
    pub columns: SmallVec<[Column; 1]>,
    pub modulus: i32,
    pub residue: i32,
    /// Physical number of slot 0, where a fixed register is among the members.
    pub base: Option<i32>,
}

impl Class {
    /// First point at which one of its registers is live.
    pub fn start(&self) -> Option<u32> {
        self.columns.iter().filter_map(|c| c.ranges.first()).map(|r| r.0).min()
    }

    /// Number of registers that it spans.
    pub fn width(&self) -> i32 {
        self.columns.last().map_or(0, |l| l.slot - self.columns[0].slot + 1)
    }
}

/// What no register of a file may be given, ever and across calls.
#[derive(Clone, Debug)]
pub struct Barred {
    pub always: [Mask; 6],
    pub across_calls: [Mask; 6],
}

impl Barred {
    /// Numbers closed to a value with these ranges.
    pub fn to(&self, file: File, ranges: &[Range], clobbers: &[u32]) -> Mask {
        let always = self.always[file as usize];
        if crosses(ranges, clobbers) { always.or(self.across_calls[file as usize]) } else { always }
    }
}

/// The classes of a function.
pub struct Classes {
    place: SecondaryMap<VReg, (u32, i32)>,
    pub classes: Vec<Class>,
    pub occupied: Occupied,
    pub barred: Barred,
    pub clobbers: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Classes {
    /// One class per register that is live somewhere; the error names a fixed register that cannot be where it must.
    pub fn new(function: &Function, ranges: &mut Ranges, barred: Barred) -> Result<Classes, String> {
        let mut classes = Classes {
            place: SecondaryMap::with_default((NOWHERE, 0)),
            classes: Vec::with_capacity(function.regs.len()),
            occupied: Occupied::new(ranges.end),
            barred,
            clobbers: std::mem::take(&mut ranges.clobbers),
        };
        for (reg, data) in function.regs.iter() {
            let list = std::mem::take(&mut ranges.of[reg]);
            if list.is_empty() || data.phys.is_some() {
                continue;
            }
            classes.place[reg] = (classes.classes.len() as u32, 0);
            let base = data.fixed.map(i32::from);
            if let Some(base) = base {
                let closed = classes.barred.to(data.file, &list, &classes.clobbers);
                if closed.or(classes.occupied.taken(data.file, &list)).contains(base) {
                    return Err(format!("{reg} cannot be {}{base}: it is taken there", data.file.name()));
                }
                classes.occupied.take(data.file, base, &list);
            }
            let columns = smallvec![Column { slot: 0, members: smallvec![reg], ranges: list }];
            classes.classes.push(Class { file: data.file, columns, modulus: 1, residue: 0, base });
        }
        Ok(classes)
    }

    /// Class and slot of a register that is live somewhere.
    pub fn find(&self, reg: VReg) -> Option<(u32, i32)> {
        Some(self.place[reg]).filter(|p| p.0 != NOWHERE)
    }

    /// Puts registers side by side, the first aligned to their number. False, and nothing is lost but time, where that cannot be.
    pub fn join(&mut self, function: &Function, regs: &[VReg]) -> bool {
        let reserved = regs.iter().filter_map(|r| function.regs[*r].phys).collect::<Vec<u16>>();
        if !reserved.is_empty() {
            return reserved.len() == regs.len() && reserved.windows(2).all(|w| w[1] == w[0] + 1);
        }
        let Some((first, base)) = self.find(regs[0]) else { return false };
        if !self.align(first, base, alignment(regs.len())) {
            return false;
        }
        // One at a time: a merge that fails leaves earlier ones, which only say that registers stand where they stand well.
        (1..regs.len()).all(|i| {
            let (Some((root, base)), Some((class, slot))) = (self.find(regs[0]), self.find(regs[i])) else {
                return false;
            };
            !regs[..i].contains(&regs[i]) && self.merge(root, class, base + i as i32 - slot)
        })
    }

    /// Asks that the slot of a class fall on a multiple.
    fn align(&mut self, class: u32, slot: i32, modulus: i32) -> bool {
        let class = &mut self.classes[class as usize];
        let Some((modulus, residue)) = agree((class.modulus, class.residue), (modulus, -slot)) else { return false };
        if class.base.is_some_and(|b| (b - residue).rem_euclid(modulus) != 0) {
            return false;
        }
        (class.modulus, class.residue) = (modulus, residue);
        true
    }

    /// Merges class `b` into `a` so that its slot 0 stands at slot `shift`. False, and nothing done, where they cannot be together.
    fn merge(&mut self, a: u32, b: u32, shift: i32) -> bool {
        if a == b {
            return shift == 0;
        }
        let (one, two) = (&self.classes[a as usize], &self.classes[b as usize]);
        let align = agree((one.modulus, one.residue), (two.modulus, two.residue - shift));
        let Some((modulus, residue)) = align.filter(|_| one.file == two.file) else { return false };
        let base = one.base.or(two.base.map(|t| t - shift));
        if two.base.is_some_and(|t| base != Some(t - shift))
            || base.is_some_and(|b| (b - residue).rem_euclid(modulus) != 0)
            || one
                .columns
                .iter()
                .any(|c| two.columns.iter().any(|d| d.slot + shift == c.slot && overlaps(&c.ranges, &d.ranges)))
        {
            return false;
        }
        if let Some(base) = base
            && !(self.fixes(a, base) && self.fixes(b, base + shift))
        {
            return false;
        }
        self.unite(a, b, shift, (modulus, residue), base);
        true
    }

    /// Whether a class that is not fixed yet may be at a place among the fixed ones; takes the place if so.
    fn fixes(&mut self, class: u32, base: i32) -> bool {
        let class = &self.classes[class as usize];
        if class.base.is_some() {
            return true;
        }
        let free = class.columns.iter().all(|c| {
            let closed = self.barred.to(class.file, &c.ranges, &self.clobbers);
            let closed = closed.or(self.occupied.taken(class.file, &c.ranges));
            (0..256).contains(&(base + c.slot)) && !closed.contains(base + c.slot)
        });
        if free {
            class.columns.iter().for_each(|c| self.occupied.take(class.file, base + c.slot, &c.ranges));
        }
        free
    }

    fn unite(&mut self, mut a: u32, mut b: u32, mut shift: i32, align: (i32, i32), mut base: Option<i32>) {
        let size = |c: &Class| c.columns.iter().map(|c| c.members.len()).sum::<usize>();
        let (modulus, mut residue) = align;
        if size(&self.classes[a as usize]) < size(&self.classes[b as usize]) {
            (a, b) = (b, a);
            residue = (residue + shift).rem_euclid(modulus);
            base = base.map(|n| n + shift);
            shift = -shift;
        }
        let moved = std::mem::take(&mut self.classes[b as usize].columns);
        for mut column in moved {
            column.slot += shift;
            for member in &column.members {
                self.place[*member] = (a, column.slot);
            }
            let columns = &mut self.classes[a as usize].columns;
            match columns.binary_search_by_key(&column.slot, |c| c.slot) {
                Ok(at) => {
                    columns[at].members.append(&mut column.members);
                    merge(&mut columns[at].ranges, column.ranges);
                }
                Err(at) => columns.insert(at, column),
            }
        }
        let class = &mut self.classes[a as usize];
        (class.modulus, class.residue, class.base) = (modulus, residue, base);
    }

    /// Merges the classes of both sides of each copy, the most executed copies first, where their registers are never live at once.
    pub fn coalesce(&mut self, function: &Function, gone: &Gone, loops: &Loops) {
        let mut copies: Vec<(std::cmp::Reverse<u32>, VReg, VReg)> = Vec::new();
        for block in &function.layout {
            for inst in &function.blocks[*block] {
                if function.insts[*inst].op != Op::COPY {
                    continue;
                }
                let source = function.arg(*inst, Role::A);
                let regs =
                    (function.arg(*inst, Role::D).as_reg(), source.as_reg().filter(|_| source == source.plain()));
                if let (Some(dst), Some(src)) = regs
                    && !gone[dst]
                    && !gone[src]
                {
                    copies.push((std::cmp::Reverse(loops.depth(*block)), dst, src));
                }
            }
        }
        copies.sort_by_key(|c| c.0);
        for (_, dst, src) in copies {
            if let (Some((to, to_slot)), Some((from, from_slot))) = (self.find(dst), self.find(src)) {
                self.merge(to, from, to_slot - from_slot);
            }
        }
    }
}

/// What satisfies both x = r (mod m) and x = s (mod n), for powers of two.
fn agree((m, r): (i32, i32), (n, s): (i32, i32)) -> Option<(i32, i32)> {
    let ((m, r), (n, s)) = if m >= n { ((m, r), (n, s)) } else { ((n, s), (m, r)) };
    ((r - s).rem_euclid(n) == 0).then(|| (m, r.rem_euclid(m)))
}
