//! Registers that hold the same value while they live: a uniform register and its copies.
//!
//! A copy shares the value of what it copies if each has one definition and the copy does not live
//! where the other is defined again, by the next iteration of a loop. Such registers may share a
//! physical one although their live ranges overlap (value-based interference, after Boissinot et
//! al., CGO 2009). Descriptors of wgmma that a loop keeps are then copied once, in front of it.

use super::bundles::Column;
use super::ranges::{Gone, RangeList, Ranges, overlaps};
use crate::ori::{File, Function, VReg, table};
use crate::tables::{Op, Role};
use cranelift_entity::SecondaryMap;

/// What is known of the uniform registers of a function; nothing by default.
#[derive(Default)]
pub struct Same {
    /// The register whose value one holds.
    value: SecondaryMap<VReg, Option<VReg>>,
    /// The live ranges of each register with a value.
    ranges: SecondaryMap<VReg, RangeList>,
}

/// The definitions of a register that have been seen.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Defined {
    #[default]
    Never,
    /// At this point, and of which register it is a copy.
    Once(u32, Option<VReg>),
    Often,
}

impl Same {
    /// The registers of a function out of SSA form with these live ranges.
    pub fn new(function: &Function, gone: &Gone, ranges: &Ranges) -> Same {
        let mut insts = function.layout().iter().flat_map(|block| &function[*block]);
        if !insts.any(|inst| copied(function, *inst).is_some()) {
            return Same::default();
        }
        let mut defined: SecondaryMap<VReg, Defined> = table(function.regs().len());
        let (mut copies, mut point) = (Vec::new(), 1);
        for inst in function.layout().iter().flat_map(|block| &function[*block]) {
            let copied = copied(function, *inst).filter(|_| !gone.is_marker(*inst));
            let guarded = !function[*inst].guard.is_null();
            function.for_each_def(*inst, |reg| {
                if function[reg].file == File::UR {
                    let first = defined[reg] == Defined::Never && !guarded;
                    defined[reg] = if first { Defined::Once(point, copied) } else { Defined::Often };
                    copies.extend(copied.map(|_| reg));
                }
            });
            point += 2;
        }
        let mut same = Same::default();
        for copy in copies {
            let Some(root) = root(&defined, ranges, copy) else { continue };
            for reg in [copy, root] {
                same.value[reg] = Some(root);
                same.ranges[reg] = ranges.of[reg].clone();
            }
        }
        same
    }

    /// Whether the registers of two columns cannot share a physical one.
    pub fn conflict(&self, one: &Column, two: &Column) -> bool {
        let apart = |m: VReg, n: VReg| match (self.value[m], self.value[n]) {
            (Some(x), Some(y)) if x == y => true,
            _ => !overlaps(self.ranges(one, m), self.ranges(two, n)),
        };
        overlaps(&one.ranges, &two.ranges) && !one.members.iter().all(|m| two.members.iter().all(|n| apart(*m, *n)))
    }

    /// The live ranges of a member of a column, or of the column if they are not known.
    fn ranges<'a>(&'a self, column: &'a Column, reg: VReg) -> &'a RangeList {
        if self.value[reg].is_some() { &self.ranges[reg] } else { &column.ranges }
    }
}

/// The uniform register that an instruction copies as it is.
fn copied(function: &Function, inst: crate::ori::InstId) -> Option<VReg> {
    let data = &function[inst];
    if data.op != Op::COPY || !data.guard.is_null() {
        return None;
    }
    let source = function.arg(inst, Role::A);
    let reg = source.as_reg().filter(|_| source == source.plain())?;
    let free = function[reg].phys.is_none() && function[reg].fixed.is_none();
    (free && function[reg].file == File::UR).then_some(reg)
}

/// The register whose value a copy holds while it lives; `None` if that is not known.
fn root(defined: &SecondaryMap<VReg, Defined>, ranges: &Ranges, copy: VReg) -> Option<VReg> {
    let (mut root, mut chain) = (copy, Vec::new());
    loop {
        match defined[root] {
            Defined::Once(_, Some(source)) => {
                chain.push(root);
                root = source;
            }
            // Where the root is defined again, a copy that lives has the value before.
            Defined::Once(point, None) => {
                let lives = |reg: &VReg| ranges.of[*reg].iter().any(|r| r.0 <= point && point < r.1);
                return Some(root).filter(|_| !chain.is_empty() && !chain.iter().any(lives));
            }
            _ => return None,
        }
    }
}
