//! Phases OriRemoveNopCode and PlaceBlocksInSourceOrder: the order of the blocks and the branches it makes needless.
//!
//! Input: an allocated function. Output: unreachable blocks gone, branches to the next block gone. Invariant: the order of
//! the remaining blocks is that of the source; a block that ends without a terminator falls into the next one.

use crate::ori::cfg::Cfg;
use crate::ori::{Function, Kind};
use crate::tables::{Op, Role};

/// Drops blocks that no path reaches.
pub fn drop_unreachable(function: &mut Function) {
    let cfg = Cfg::new(function);
    function.layout.retain(|b| cfg.reachable(*b));
}

/// Removes NOPs that lowering left. Branches to the next block are removed when the words are laid out, so that every
/// block still ends with its terminator here.
pub fn remove_needless(function: &mut Function) {
    for block in function.layout.clone() {
        let insts = std::mem::take(&mut function.blocks[block]);
        function.blocks[block] = insts.into_iter().filter(|i| function.insts[*i].op != Op::NOP).collect();
    }
}

/// Whether the last instruction of the block at this place in the layout is a branch to the block that follows.
pub fn falls_through(function: &Function, place: usize) -> bool {
    let last = function.blocks[function.layout[place]].last().copied();
    let next = function.layout.get(place + 1);
    match (last, next) {
        (Some(inst), Some(next)) => {
            let data = &function.insts[inst];
            let target = function.arg(inst, Role::Target).kind();
            data.op == Op::BRA && data.guard.is_null() && target == Kind::Label(*next)
        }
        _ => false,
    }
}
