//! Gives each class the lowest free place.
//!
//! Input: classes and live ranges. Output: physical numbers on all registers. Invariant: at each point a physical
//! register holds at most one live register. Classes are placed in the order in which they first become live, wide ones
//! before narrow ones that start at the same point.

use super::classes::Classes;
use super::ranges::{Range, Ranges};
use crate::ori::{File, Function, VReg};
use crate::tables::Target;
use std::collections::BTreeMap;

/// Highest general register that is given out. Source: ptxas never uses more (R253 and R254 are left free).
const LAST_R: i32 = 252;
/// The stack pointer, which is not given out.
const STACK_POINTER: i32 = 1;

/// Ranges taken in one physical register, start to end.
type Taken = BTreeMap<u32, u32>;

struct Files {
    taken: BTreeMap<(File, i32), Taken>,
}

impl Files {
    fn free(&self, file: File, number: i32, ranges: &[Range]) -> bool {
        let Some(taken) = self.taken.get(&(file, number)) else { return true };
        ranges.iter().all(|r| taken.range(..r.1).next_back().is_none_or(|last| *last.1 <= r.0))
    }

    fn take(&mut self, file: File, number: i32, ranges: &[Range]) {
        let taken = self.taken.entry((file, number)).or_default();
        for r in ranges {
            taken.insert(r.0, r.1);
        }
    }
}

/// Number of registers of a file that may be given out.
fn limit(file: File, target: &Target) -> i32 {
    match file {
        File::R => LAST_R + 1,
        File::UR => target.info().map_or(0, |g| g.ur_count as i32),
        File::P | File::UP => 7,
        File::B | File::UB => 16,
    }
}

pub fn assign(function: &mut Function, classes: &mut Classes, ranges: &Ranges) -> Result<(), String> {
    let mut files = Files { taken: BTreeMap::new() };
    for reg in function.regs.keys() {
        if let Some(phys) = function.regs[reg].phys {
            // Reserved for the whole function, whatever its own uses.
            files.take(function.regs[reg].file, i32::from(phys), &[(0, u32::MAX)]);
        }
    }
    let mut order: Vec<(u32, std::cmp::Reverse<usize>, u32)> = Vec::new();
    for reg in function.regs.keys() {
        let (class, _) = classes.offsets.find(reg);
        if class != reg.as_u32() {
            continue;
        }
        let members = classes.offsets.members(class);
        let start = members.iter().filter_map(|m| ranges.of[VReg::from_u32(m.0)].first().map(|r| r.0)).min();
        if let Some(start) = start {
            order.push((start, std::cmp::Reverse(members.len()), class));
        }
    }
    order.sort_unstable();
    for (_, _, class) in order {
        place(function, classes, ranges, &mut files, class)?;
    }
    Ok(())
}

fn place(
    function: &mut Function,
    classes: &Classes,
    ranges: &Ranges,
    files: &mut Files,
    class: u32,
) -> Result<(), String> {
    let members: Vec<(VReg, i32)> = classes.offsets.members(class).iter().map(|m| (VReg::from_u32(m.0), m.1)).collect();
    if members.iter().any(|m| function.regs[m.0].phys.is_some()) {
        return Ok(());
    }
    let file = function.regs[members[0].0].file;
    let (lowest, highest) = members.iter().fold((0, 0), |(l, h), m| (l.min(m.1), h.max(m.1)));
    let align = classes.offsets.align(class) as i32;
    let limit = limit(file, function.target);
    let mut base = (-lowest + align - 1) / align * align;
    while base + highest < limit {
        let fits = members.iter().all(|(reg, slot)| {
            let number = base + slot;
            let usable = file != File::R || number != STACK_POINTER;
            usable && files.free(file, number, &ranges.of[*reg])
        });
        if fits {
            for (reg, slot) in &members {
                files.take(file, base + slot, &ranges.of[*reg]);
                function.regs[*reg].phys = Some((base + slot) as u16);
            }
            return Ok(());
        }
        base += align;
    }
    let name = match file {
        File::R => "general",
        File::UR => "uniform",
        File::P | File::UP => "predicate",
        File::B | File::UB => "convergence barrier",
    };
    Err(format!("Function '{}' needs more than {limit} {name} registers; spilling is not implemented", function.name))
}
