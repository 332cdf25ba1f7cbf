//! Classes (bundles): registers with fixed relative positions, from register tuples and from
//! coalesced copies.
//!
//! A class is a row of columns. The registers of one column share a physical register, so their
//! live ranges are disjoint, or they hold the same value (`same_values`); neighbouring columns get
//! adjacent registers. The physical number of slot 0 is `residue` modulo `modulus` (powers of two).
//! A class with a `base` fits there together with all other such classes. Merging relabels the
//! smaller class, so all merges together are near-linear.

use super::FILES;
use super::interference::{Mask, Occupied};
use super::ranges::{Gone, Range, RangeList, Ranges, crosses, merge};
use super::same_values::Same;
use super::zones::Zone;
use crate::analysis::Loops;
use crate::arrays::Each;
use crate::ori::{File, Function, VReg, table_of};
use crate::sorted::SortedMap;
use crate::tables::registers::Callee;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};
use std::cmp::Reverse;

/// Registers that share one physical register.
#[derive(Clone, Debug)]
pub struct Column {
    /// Position relative to the other columns of the class, in registers.
    pub slot: i32,
    /// The registers.
    pub members: SmallVec<[VReg; 4]>,
    /// Union of the live ranges of the members, sorted and disjoint.
    pub ranges: RangeList,
}

/// A row of columns, by slot.
#[derive(Clone, Debug)]
pub struct Class {
    /// Register file of all members.
    pub file: File,
    /// The columns, by ascending slot.
    pub columns: SmallVec<[Column; 1]>,
    /// Alignment of the class: a power of two.
    pub modulus: i32,
    /// Physical number of slot 0 modulo `modulus`.
    pub residue: i32,
    /// Physical number of slot 0, if a member is a fixed register.
    pub base: Option<i32>,
    /// The least physical number of slot 0.
    pub least: i32,
}

impl Class {
    /// First point at which one of its registers is live.
    #[inline]
    pub fn start(&self) -> Option<u32> {
        self.columns.iter().filter_map(|c| c.ranges.first()).map(|r| r.0).min()
    }

    /// Number of adjacent registers that it spans.
    #[inline]
    pub fn width(&self) -> i32 {
        self.columns.last().map_or(0, |l| l.slot - self.columns[0].slot + 1)
    }
}

/// Registers of each file that must not be assigned.
#[derive(Clone, Debug)]
pub struct Barred {
    /// Per file, registers that must never be assigned.
    pub always: [Mask; 6],
    /// Where fewer general registers may be used, in order.
    pub zones: Vec<Zone>,
}

impl Barred {
    /// Registers that a value with these live ranges must not use.
    pub fn to(&self, file: File, ranges: &[Range], calls: &[Calls]) -> Mask {
        let mut closed = self.always[file as usize];
        for calls in calls {
            let uniform = matches!(file, File::UR | File::UP);
            if crosses(ranges, &calls.points) || uniform && crosses(ranges, &calls.beside) {
                closed = closed.or(calls.changed[file as usize]);
            }
        }
        if file == File::R {
            let touched = ranges.iter().flat_map(|range| {
                let from = self.zones.partition_point(|zone| zone.points.1 <= range.0);
                self.zones[from..].iter().take_while(|zone| zone.points.0 < range.1)
            });
            let least = touched.map(|zone| zone.registers).min();
            closed = least.map_or(closed, |least| closed.or(Mask::below(256).minus(Mask::below(least as i32))));
        }
        closed
    }
}

/// Calls that may change the same registers.
#[derive(Clone, Debug)]
pub struct Calls {
    /// Points just after which the registers lose their values, in order.
    pub points: Vec<u32>,
    /// Points behind which they may lose them while other lanes call, if all lanes share them.
    pub beside: Vec<u32>,
    /// The registers, by file.
    pub changed: [Mask; 6],
}

/// The calls of a function, in order, by what they may change.
pub fn calls(all: &[(u32, Callee)], beside: &[(u32, Callee)]) -> Vec<Calls> {
    let mut groups: SortedMap<Callee, (Vec<u32>, Vec<u32>)> = SortedMap::new();
    for (point, callee) in all {
        groups.entry(*callee).or_default().0.push(*point);
    }
    for (point, callee) in beside {
        groups.entry(*callee).or_default().1.push(*point);
    }
    let made = |(callee, (points, beside))| Calls { points, beside, changed: changed(callee) };
    groups.into_iter().map(made).collect()
}

/// The registers of each file that a callee may change.
pub fn changed(callee: Callee) -> [Mask; 6] {
    FILES.each(|file| {
        let mut kept = Mask::default();
        callee.keeps(file.name()).flatten().for_each(|n| kept.insert(i32::from(n)));
        Mask::below(256).minus(kept)
    })
}

/// All classes of a function.
pub struct Classes {
    place: SecondaryMap<VReg, (u32, i32)>,
    /// All classes; merged ones are empty.
    pub classes: Vec<Class>,
    /// First point after the last instruction.
    pub end: u32,
    /// Registers taken by placed classes.
    pub occupied: Occupied,
    /// Registers that must not be assigned.
    pub barred: Barred,
    /// The calls, by what they may change.
    pub clobbers: Vec<Calls>,
    /// Registers that hold the same value while they live.
    same: Same,
}

const NOWHERE: u32 = u32::MAX;

impl Classes {
    /// Notes afresh which registers of these files the classes with a base take: of all files, or
    /// of general registers.
    pub fn note_again(&mut self, files: &[File]) {
        self.occupied.clear(files);
        for class in self.classes.iter().filter(|class| files.contains(&class.file)) {
            let Some(base) = class.base else { continue };
            for column in &class.columns {
                self.occupied.take(class.file, base + column.slot, &column.ranges);
            }
        }
    }

    /// Makes one class per register that is live anywhere.
    ///
    /// # Errors
    ///
    /// A fixed register that cannot have its number.
    pub fn new(function: &Function, ranges: &mut Ranges, barred: Barred, same: Same) -> Result<Classes, String> {
        let count = function.regs().keys().filter(|reg| !ranges.of[*reg].is_empty()).count();
        let lists = function.regs().iter().filter(|(_, data)| data.phys.is_none());
        let starts = lists.flat_map(|(reg, data)| ranges.of[reg].iter().map(|range| (data.file, range.0)));
        let occupied = Occupied::new(ranges.end, starts);
        let mut classes = Classes {
            place: table_of(function.regs().len(), (NOWHERE, 0)),
            classes: Vec::with_capacity(count),
            end: ranges.end,
            occupied,
            barred,
            clobbers: calls(&std::mem::take(&mut ranges.clobbers), &std::mem::take(&mut ranges.beside)),
            same,
        };
        for (reg, data) in function.regs().iter() {
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
            classes.classes.push(Class { file: data.file, columns, modulus: 1, residue: 0, base, least: 0 });
        }
        Ok(classes)
    }

    /// Class and slot of a register; `None` if it is never live.
    pub fn find(&self, reg: VReg) -> Option<(u32, i32)> {
        Some(self.place[reg]).filter(|p| p.0 != NOWHERE)
    }

    /// Makes registers adjacent, the first one a multiple of `alignment`. Returns false if that is
    /// impossible; merges done until then remain, harmlessly.
    pub fn join(&mut self, function: &Function, regs: &[VReg], alignment: i32) -> bool {
        let reserved = regs.iter().filter_map(|r| function[*r].phys).collect::<Vec<u16>>();
        if !reserved.is_empty() {
            return reserved.len() == regs.len() && reserved.windows(2).all(|w| w[1] == w[0] + 1);
        }
        let Some((first, base)) = self.find(regs[0]) else { return false };
        if !self.align(first, base, alignment) {
            return false;
        }
        // One register at a time: if a merge fails, the earlier ones remain, which only fixes
        // positions that are good anyway.
        (1..regs.len()).all(|i| {
            let (Some((root, base)), Some((class, slot))) = (self.find(regs[0]), self.find(regs[i])) else {
                return false;
            };
            !regs[..i].contains(&regs[i]) && self.merge(root, class, base + i as i32 - slot)
        })
    }

    /// Asks that a register get this number or a higher one.
    pub fn at_least(&mut self, reg: VReg, number: i32) {
        if let Some((class, slot)) = self.find(reg) {
            let class = &mut self.classes[class as usize];
            class.least = class.least.max(number - slot);
        }
    }

    /// Requires the slot of a class to fall on a multiple of `modulus`.
    fn align(&mut self, class: u32, slot: i32, modulus: i32) -> bool {
        let class = &mut self.classes[class as usize];
        let Some((modulus, residue)) = agree((class.modulus, class.residue), (modulus, -slot)) else { return false };
        if class.base.is_some_and(|b| (b - residue).rem_euclid(modulus) != 0) {
            return false;
        }
        (class.modulus, class.residue) = (modulus, residue);
        true
    }

    /// Merges class `b` into `a` with its slot 0 at slot `shift`. Returns false and changes nothing
    /// if they conflict.
    fn merge(&mut self, a: u32, b: u32, shift: i32) -> bool {
        if a == b {
            return shift == 0;
        }
        let (one, two) = (&self.classes[a as usize], &self.classes[b as usize]);
        let align = agree((one.modulus, one.residue), (two.modulus, two.residue - shift));
        let Some((modulus, residue)) = align.filter(|_| one.file == two.file) else { return false };
        let base = one.base.or(two.base.map(|t| t - shift));
        if two.base.is_some_and(|t| base != Some(t - shift))
            || base.is_some_and(|b| (b - residue).rem_euclid(modulus) != 0 || b < one.least.max(two.least - shift))
            || one
                .columns
                .iter()
                .any(|c| two.columns.iter().any(|d| d.slot + shift == c.slot && self.same.conflict(c, d)))
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

    /// Whether a class without a base can be placed there among the fixed ones; takes the registers
    /// if so.
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
        let mut least = self.classes[a as usize].least.max(self.classes[b as usize].least - shift);
        if size(&self.classes[a as usize]) < size(&self.classes[b as usize]) {
            (a, b) = (b, a);
            residue = (residue + shift).rem_euclid(modulus);
            base = base.map(|n| n + shift);
            least += shift;
            shift = -shift;
        }
        let moved = std::mem::take(&mut self.classes[b as usize].columns);
        for mut column in moved {
            column.slot += shift;
            for member in column.members.iter() {
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
        (class.modulus, class.residue, class.base, class.least) = (modulus, residue, base, least);
    }

    /// Coalesces copies: merges the classes of both sides if they do not interfere, the most
    /// executed copies first, of these first those that would wait for a load.
    pub fn coalesce(&mut self, function: &Function, gone: &Gone, loops: &Loops) {
        let mut copies: Vec<(Reverse<u32>, bool, VReg, VReg)> = Vec::new();
        let in_flight = in_flight(function);
        for block in function.layout() {
            for inst in &function[*block] {
                if function[*inst].op != Op::COPY {
                    continue;
                }
                let source = function.arg(*inst, Role::A);
                let regs =
                    (function.arg(*inst, Role::D).as_reg(), source.as_reg().filter(|_| source == source.plain()));
                if let (Some(dst), Some(src)) = regs
                    && !gone[dst]
                    && !gone[src]
                {
                    copies.push((Reverse(loops.depth(*block)), !in_flight[src], dst, src));
                }
            }
        }
        crate::sorted::by_key(&mut copies, |c| (c.0, c.1));
        for (.., dst, src) in copies {
            if let (Some((to, to_slot)), Some((from, from_slot))) = (self.find(dst), self.find(src)) {
                self.merge(to, from, to_slot - from_slot);
            }
        }
    }
}

/// The registers that a load of memory defines at whose end of the block nothing has read them yet.
fn in_flight(function: &Function) -> SecondaryMap<VReg, bool> {
    let mut loaded = SecondaryMap::new();
    for block in function.layout() {
        for inst in &function[*block] {
            let op = function[*inst].op;
            if op != Op::COPY {
                function.for_each_use(*inst, |reg| loaded[reg] = false);
            }
            let loads = op.has(Prop::ReadsMemory) && op.has(Prop::VariableLatency);
            function.for_each_def(*inst, |reg| loaded[reg] = loads);
        }
    }
    loaded
}

/// The x with x = r (mod m) and x = s (mod n), for powers of two, as (modulus, residue).
fn agree((m, r): (i32, i32), (n, s): (i32, i32)) -> Option<(i32, i32)> {
    let ((m, r), (n, s)) = if m >= n { ((m, r), (n, s)) } else { ((n, s), (m, r)) };
    ((r - s).rem_euclid(n) == 0).then(|| (m, r.rem_euclid(m)))
}
