//! Extends the live ranges of registers that copies will read.

use super::{Places, Ranges};
use crate::alloc::ranges::normalize;
use crate::ori::{Block, Function, VReg};
use crate::sorted::SortedSet;
use cranelift_entity::SecondaryMap;

/// Lets a register live up to each reader of what is computed from it; `base` says what that is,
/// and where what is computed from it is: there it lives, and every path leads through there.
pub fn extend(
    function: &Function,
    places: &Places,
    first: &SecondaryMap<Block, u32>,
    ranges: &mut Ranges,
    base: impl Fn(VReg) -> Option<(VReg, Block)>,
) {
    let mut reached: SortedSet<(VReg, Block)> = SortedSet::new();
    let mut extended: SortedSet<VReg> = SortedSet::new();
    for block in &places.cfg.rpo {
        for (at, inst) in function[*block].iter().enumerate() {
            let point = first[*block] + 2 * at as u32;
            function.for_each_use(*inst, |reg| {
                let Some((base, home)) = base(reg) else { return };
                extended.insert(base);
                let mut work = vec![(*block, point + 1)];
                while let Some((block, end)) = work.pop() {
                    ranges.of[base].push((first[block], end));
                    // Before its definition it may not live there, but that is one block of many.
                    if block == home {
                        continue;
                    }
                    for pred in places.cfg.preds[block].iter().filter(|pred| places.cfg.reachable(**pred)) {
                        if reached.insert((base, *pred)) {
                            work.push((*pred, first[*pred] + 2 * function[*pred].len() as u32));
                        }
                    }
                }
            });
        }
    }
    extended.iter().for_each(|base| normalize(&mut ranges.of[*base]));
}
