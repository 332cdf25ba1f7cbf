//! Computes the shadow of the data that matrix loads and stores move.
//!
//! The instruction is executed with the shadow in place of shared memory (and of the registers that
//! a store reads), and everything is restored afterwards. It only moves bits, so the result is the
//! shadow of what the real instruction moves.

use super::super::block::Block;
use super::super::matrix;
use super::accesses::{File, Run, Slot, Touches};
use super::footprint::Reach;
use super::shadow::Shadow;
use super::taint_probe::{self, Cell};
use super::{Space, Step};

/// The shadow of shared memory, allocated on first use.
fn made<'s>(shared: &'s mut Vec<u8>, block: &Block) -> &'s mut Vec<u8> {
    if shared.len() < block.shared.len() {
        super::footprint::open(shared, block);
    }
    shared
}

/// Executes the instruction on the shadow; returns whether it did not fault.
fn execute(shared: &mut Vec<u8>, block: &mut Block, s: &Step) -> bool {
    std::mem::swap(&mut block.shared, shared);
    let done = matrix::execute(block, s.warp, s.code, s.active);
    std::mem::swap(&mut block.shared, shared);
    done.is_ok()
}

/// Before a load: the results that will have undefined bits.
pub(super) fn load(
    shared: &mut Vec<u8>,
    block: &mut Block,
    s: &Step,
    writes: &[Run],
    reaches: &[Reach],
) -> Vec<(Cell, u32)> {
    let shared = made(shared, block);
    let bytes = |r: &Reach| shared.get(r.at as usize..r.at as usize + usize::from(r.bytes));
    let dirty = |r: &Reach| r.space == Space::Shared && bytes(r).is_some_and(|b| b.iter().any(|byte| *byte != 0));
    let Some(run) = writes.iter().find(|run| run.file == File::Reg).filter(|_| reaches.iter().any(dirty)) else {
        return Vec::new();
    };
    let old: Vec<(Cell, u32)> =
        taint_probe::cells(*run, s.active).map(|cell| (cell, taint_probe::get(&block.warps[s.warp], cell))).collect();
    let well = execute(shared, block, s);
    let w = &mut block.warps[s.warp];
    let mut found: Vec<(Cell, u32)> = old.iter().map(|(cell, _)| (*cell, taint_probe::get(w, *cell))).collect();
    old.iter().for_each(|(cell, value)| taint_probe::set(w, *cell, *value));
    found.retain(|(_, bits)| well && *bits != 0);
    found
}

/// Before a product of a warp group: the results that depend on bits without a value.
pub(super) fn product(
    shared: &mut Vec<u8>,
    shadow: &Shadow,
    block: &Block,
    s: &Step,
    group: &super::super::group::Group,
) -> Vec<(Cell, u32)> {
    let shared = made(shared, block);
    let lacks = |register: usize, lane: usize| shadow.get(File::Reg, register, lane);
    let open = super::super::group::open(group, &block.warps[s.warp], s.code, shared, lacks);
    open.into_iter().map(|(register, lane)| (Cell { file: File::Reg, register, lane }, u32::MAX)).collect()
}

/// Before a store: writes the data's shadow to that of shared memory.
pub(super) fn store(shared: &mut Vec<u8>, shadow: &Shadow, block: &mut Block, s: &Step, touches: &Touches) {
    let shared = made(shared, block);
    let data = touches.reads.iter().filter(|run| run.slot == Slot::B && run.file == File::Reg);
    let old: Vec<(Cell, u32)> = data
        .flat_map(|run| taint_probe::cells(*run, s.active))
        .map(|cell| (cell, taint_probe::get(&block.warps[s.warp], cell)))
        .collect();
    let w = &mut block.warps[s.warp];
    old.iter().for_each(|(c, _)| taint_probe::set(w, *c, shadow.get(c.file, c.register, c.lane)));
    execute(shared, block, s);
    let w = &mut block.warps[s.warp];
    old.iter().for_each(|(cell, value)| taint_probe::set(w, *cell, *value));
}
