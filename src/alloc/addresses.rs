//! Gives the addresses of a loop's memory accesses more pairs of registers.
//!
//! An access reads its address some time after it issues, and what writes the next address to the
//! same pair waits for that. Where all addresses that a block of a loop makes stand in one pair,
//! each takes one of [`PAIRS`] in turn. For the others the function takes registers that it does
//! not use, as long as an SM holds as many blocks as before. Measured on an H200: four registers
//! more make matmul_tf32 14 % faster.

use super::EXTRA_REGISTERS;
use super::assign::Assigner;
use super::interference::Mask;
use crate::analysis::Loops;
use crate::analysis::occupancy::Occupancy;
use crate::ori::{Block, File, Function};
use crate::tables::{Prop, Role};

/// Pairs that addresses take in turn.
const PAIRS: usize = 3;
/// Addresses of a block from which on they wait for each other.
const MANY: usize = 8;

/// Moves the addresses, once all classes have a place. `order` are the classes that the assigner
/// placed.
pub fn rotate(function: &Function, loops: &Loops, assigner: &mut Assigner, order: &[u32]) {
    let Some(occupancy) = Occupancy::of(function) else { return };
    let mut movable = vec![false; assigner.classes.classes.len()];
    order.iter().for_each(|id| movable[*id as usize] = true);
    // Addresses of different blocks never live at once, so the new pairs serve all of them.
    let (mut first, end) = (0, end(assigner));
    let most = occupancy.most(end + EXTRA_REGISTERS as i32) - EXTRA_REGISTERS as i32;
    for block in function.layout() {
        let points = (first, first + 2 * function[*block].len() as u32);
        first = points.1;
        if loops.depth(*block) == 0 {
            continue;
        }
        let ids = addresses(function, assigner, *block, |id| {
            std::mem::take(&mut movable[id as usize]) && is_within(assigner, id, points)
        });
        let mut bases: Vec<i32> = ids.iter().filter_map(|id| assigner.classes.classes[*id as usize].base).collect();
        bases.sort_unstable();
        bases.dedup();
        if ids.len() < MANY || bases.len() > 1 {
            continue;
        }
        bases.extend((end + end % 2..most - 1).step_by(2).take(PAIRS - bases.len()));
        take_in_turn(assigner, &ids, &bases);
    }
}

/// The pairs in which a block's accesses find their addresses, in the order of the accesses.
fn addresses(function: &Function, assigner: &Assigner, block: Block, mut fits: impl FnMut(u32) -> bool) -> Vec<u32> {
    let mut ids: Vec<u32> = Vec::new();
    for inst in &function[block] {
        let op = function[*inst].op;
        if !op.has(Prop::VariableLatency) || !(op.has(Prop::ReadsMemory) || op.has(Prop::WritesMemory)) {
            continue;
        }
        let Some(vector) = function.arg(*inst, Role::A).as_vector() else { continue };
        let id = function.vector_regs(vector).first().and_then(|reg| assigner.classes.find(*reg));
        ids.extend(id.map(|(id, _)| id).filter(|id| fits(*id)));
    }
    ids
}

/// Whether a class is a pair of general registers that lives between these points alone.
fn is_within(assigner: &Assigner, id: u32, points: (u32, u32)) -> bool {
    let class = &assigner.classes.classes[id as usize];
    let mut ranges = class.columns.iter().flat_map(|column| &column.ranges);
    class.file == File::R && class.width() == 2 && ranges.all(|range| points.0 < range.0 && range.1 < points.1)
}

/// The first general register behind those in use.
fn end(assigner: &Assigner) -> i32 {
    let general = assigner.classes.classes.iter().filter(|class| class.file == File::R);
    general.filter_map(|class| Some(class.base? + class.width())).max().unwrap_or(0)
}

fn take_in_turn(assigner: &mut Assigner, ids: &[u32], bases: &[i32]) {
    let mut next = 0;
    for id in ids {
        let Some(old) = assigner.release(*id) else { continue };
        let (open, _) = assigner.open(*id, Mask::default());
        let free = (0..bases.len()).map(|step| (next + step) % bases.len()).find(|at| open.contains(bases[*at]));
        assigner.take(*id, free.map_or(old, |at| bases[at]));
        next = free.map_or(next, |at| at + 1);
    }
}
