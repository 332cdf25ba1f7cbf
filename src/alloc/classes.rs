//! Classes of registers with fixed relative places, and coalescing of copies.
//!
//! Input: a function with placeable vectors and the live ranges. Output: a partition of the registers into classes, each a
//! list of (register, slot). Invariant: two registers in one slot of a class are never live at once; a class that holds
//! a register with a reserved physical number has no other slots than that register's vector.

use super::ranges::Ranges;
use crate::ori::{Function, VReg};
use crate::tables::{Op, Role};
use cranelift_entity::EntityRef;

/// Union-find in which every register knows its slot relative to the root of its class.
pub struct Offsets {
    parent: Vec<u32>,
    offset: Vec<i32>,
    members: Vec<Vec<(u32, i32)>>,
    align: Vec<u32>,
}

impl Offsets {
    pub fn new(count: usize) -> Offsets {
        let mut offsets = Offsets { parent: Vec::new(), offset: Vec::new(), members: Vec::new(), align: Vec::new() };
        offsets.grow(count);
        offsets
    }

    /// Makes room for registers made since.
    pub fn grow(&mut self, count: usize) {
        for i in self.parent.len()..count {
            self.parent.push(i as u32);
            self.offset.push(0);
            self.members.push(vec![(i as u32, 0)]);
            self.align.push(1);
        }
    }

    /// Class and slot of a register.
    pub fn find(&self, reg: VReg) -> (u32, i32) {
        (self.parent[reg.index()], self.offset[reg.index()])
    }

    pub fn members(&self, class: u32) -> &[(u32, i32)] {
        &self.members[class as usize]
    }

    pub fn align(&self, class: u32) -> u32 {
        self.align[class as usize]
    }

    /// Puts registers side by side; the first is aligned. False, and nothing done, if one of them has another place already, or
    /// two registers would come to stand in one slot.
    pub fn join(&mut self, regs: &[VReg], align: usize) -> bool {
        let (root, base) = self.find(regs[0]);
        let mut planned: Vec<(u32, i32)> = self.members[root as usize].clone();
        let mut merge: Vec<(u32, i32)> = Vec::new();
        for (i, reg) in regs.iter().enumerate() {
            let (class, slot) = self.find(*reg);
            let want = base + i as i32;
            if class == root {
                if slot != want {
                    return false;
                }
                continue;
            }
            let shift = want - slot;
            match merge.iter().find(|m| m.0 == class) {
                Some(m) if m.1 == shift => continue,
                Some(_) => return false,
                None => {}
            }
            for (member, slot) in &self.members[class as usize] {
                if planned.iter().any(|p| p.1 == slot + shift) {
                    return false;
                }
                planned.push((*member, slot + shift));
            }
            merge.push((class, shift));
        }
        let biggest = merge.iter().map(|m| self.align[m.0 as usize]).max().unwrap_or(1).max(self.align[root as usize]);
        let all = biggest.max(align as u32);
        // Slot 0 of a class falls on a multiple of the class's alignment; so must, after the merge, every old slot 0 on a
        // multiple of its own.
        let origin = if self.align[root as usize] >= all { 0 } else { base };
        let aligned = |slot: i32, own: u32| (slot - origin).rem_euclid(own as i32) == 0;
        let others = merge.iter().all(|(class, shift)| aligned(*shift, self.align[*class as usize]));
        if !aligned(base, align as u32) || !aligned(0, self.align[root as usize]) || !others {
            return false;
        }
        for (class, shift) in merge {
            self.absorb(root, class, shift);
        }
        self.rebase(root, origin, all);
        true
    }

    fn absorb(&mut self, root: u32, class: u32, shift: i32) {
        let moved = std::mem::take(&mut self.members[class as usize]);
        for (member, slot) in moved {
            self.parent[member as usize] = root;
            self.offset[member as usize] = slot + shift;
            self.members[root as usize].push((member, slot + shift));
        }
    }

    fn rebase(&mut self, root: u32, origin: i32, align: u32) {
        self.align[root as usize] = align;
        if origin != 0 {
            for entry in &mut self.members[root as usize] {
                entry.1 -= origin;
                self.offset[entry.0 as usize] = entry.1;
            }
        }
    }
}

/// The classes of a function.
pub struct Classes {
    pub offsets: Offsets,
}

impl Classes {
    /// Classes by the vectors that instructions name.
    pub fn new(function: &Function) -> Classes {
        let mut offsets = Offsets::new(function.regs.len());
        for block in &function.layout {
            for inst in &function.blocks[*block] {
                for operand in function.args(*inst) {
                    if let Some(vector) = operand.as_vector() {
                        let regs = function.vector_regs(vector);
                        let placed = offsets.join(regs, regs.len().next_power_of_two());
                        debug_assert!(placed, "a vector that cannot be placed");
                    }
                }
            }
        }
        Classes { offsets }
    }

    /// Merges the classes of both sides of a copy wherever their registers are never live at once.
    pub fn coalesce(&mut self, function: &Function, ranges: &Ranges) {
        for block in &function.layout {
            for inst in &function.blocks[*block] {
                if function.insts[*inst].op != Op::COPY {
                    continue;
                }
                let regs = (function.arg(*inst, Role::D).as_reg(), function.arg(*inst, Role::A).as_reg());
                let (Some(dst), Some(src)) = regs else { continue };
                self.merge(function, ranges, dst, src);
            }
        }
    }

    fn merge(&mut self, function: &Function, ranges: &Ranges, dst: VReg, src: VReg) {
        let ((to, to_slot), (from, from_slot)) = (self.offsets.find(dst), self.offsets.find(src));
        if to == from || function.regs[dst].file != function.regs[src].file {
            return;
        }
        let reserved =
            |class: u32| self.offsets.members(class).iter().any(|m| function.regs[VReg::from_u32(m.0)].phys.is_some());
        if reserved(to) || reserved(from) {
            return;
        }
        let shift = to_slot - from_slot;
        let (a, b) = (self.offsets.align(to) as i32, self.offsets.align(from) as i32);
        // The origin of the class with the larger alignment stays; the other's must fall on a multiple of its own.
        if shift.rem_euclid(a.min(b)) != 0 {
            return;
        }
        for (member, slot) in self.offsets.members(from) {
            for (other, _) in self.offsets.members(to).iter().filter(|o| o.1 == slot + shift) {
                if ranges.overlap(VReg::from_u32(*member), VReg::from_u32(*other)) {
                    return;
                }
            }
        }
        let origin = if b > a { shift } else { 0 };
        self.offsets.absorb(to, from, shift);
        self.offsets.rebase(to, origin, a.max(b) as u32);
    }
}
