//! The shadow of what matrix loads and stores move: found by moving the shadow as the data are moved.
//!
//! Input: the instruction, before it is executed. Output: of a load the bits of its results without a value, of a store the shadow of shared
//! memory. Invariant: the instruction is executed with the shadow in the place of shared memory (and of the registers that are stored), and
//! all is put back; it only moves bits, so that what arrives is the shadow of what the real one moves.

use super::super::block::Block;
use super::super::matrix;
use super::reach::Reach;
use super::shadow::Shadow;
use super::touch::{File, Run, Slot, Touches};
use super::trial::{self, Cell};
use super::{Space, Step};

/// The shadow of shared memory, made where there is none.
fn made<'s>(shared: &'s mut Vec<u8>, block: &Block) -> &'s mut Vec<u8> {
    if shared.len() < block.shared.len() {
        shared.resize(block.shared.len(), u8::MAX);
    }
    shared
}

/// Executes on the shadow; whether that went well.
fn execute(shared: &mut Vec<u8>, block: &mut Block, s: &Step) -> bool {
    std::mem::swap(&mut block.shared, shared);
    let done = matrix::execute(block, s.warp, s.code, s.active);
    std::mem::swap(&mut block.shared, shared);
    done.is_ok()
}

/// Before a load: the results with bits that have no value.
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
        trial::cells(*run, s.active).map(|cell| (cell, trial::get(&block.warps[s.warp], cell))).collect();
    let well = execute(shared, block, s);
    let w = &mut block.warps[s.warp];
    let mut found: Vec<(Cell, u32)> = old.iter().map(|(cell, _)| (*cell, trial::get(w, *cell))).collect();
    old.iter().for_each(|(cell, value)| trial::set(w, *cell, *value));
    found.retain(|(_, bits)| well && *bits != 0);
    found
}

/// Before a store: its data's shadow goes into that of shared memory.
pub(super) fn store(shared: &mut Vec<u8>, shadow: &Shadow, block: &mut Block, s: &Step, touches: &Touches) {
    let shared = made(shared, block);
    let data = touches.reads.iter().filter(|run| run.slot == Slot::B && run.file == File::Reg);
    let old: Vec<(Cell, u32)> = data
        .flat_map(|run| trial::cells(*run, s.active))
        .map(|cell| (cell, trial::get(&block.warps[s.warp], cell)))
        .collect();
    let w = &mut block.warps[s.warp];
    old.iter().for_each(|(c, _)| trial::set(w, *c, shadow.get(c.file, c.register, c.lane)));
    execute(shared, block, s);
    let w = &mut block.warps[s.warp];
    old.iter().for_each(|(cell, value)| trial::set(w, *cell, *value));
}
