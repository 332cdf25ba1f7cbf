//! Which bits of a result depend on bits without a value: found by trying.
//!
//! Input: an instruction that touches registers alone, and the shadow of its sources. Output: for each result register and lane the bits
//! that change when bits without a value change. Invariant: the warp is as it was; a bit that several patterns leave alone counts as
//! having a value, so that what an instruction discards (`LOP3` with zeros, `SEL` of the other side) is no finding.

use super::super::super::fault::Fault;
use super::super::block::Block;
use super::super::code::{Dst, Pred};
use super::super::exec::{Machine, Step};
use super::super::warp::{Warp, lanes_of};
use super::shadow::Shadow;
use super::touch::{File, Run};

/// One register of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub file: File,
    pub register: usize,
    pub lane: usize,
}

/// What is put into bits without a value, in turn.
const PATTERNS: [u32; 4] = [0, u32::MAX, 0x5ac3_96d1, 0xa73c_1e58];

/// The cells of a run on some lanes.
pub fn cells(run: Run, lanes: u32) -> impl Iterator<Item = Cell> {
    let uniform = matches!(run.file, File::UReg | File::UPred);
    let lanes = if uniform { lanes & lanes.wrapping_neg() } else { lanes };
    run.registers().flat_map(move |register| lanes_of(lanes).map(move |lane| Cell { file: run.file, register, lane }))
}

/// The contents of a cell.
pub fn get(w: &Warp, cell: Cell) -> u32 {
    let pred = |uniform| {
        let index = cell.register as u8;
        w.pred(Pred { uniform, index, not: false }) >> cell.lane & 1
    };
    match cell.file {
        File::Reg => w.reg(cell.register, cell.lane),
        File::UReg => w.ureg(cell.register),
        File::Pred => pred(false),
        File::UPred => pred(true),
    }
}

/// Changes a cell.
pub fn set(w: &mut Warp, cell: Cell, value: u32) {
    let index = cell.register as u8;
    match cell.file {
        File::Reg => w.set_reg(cell.register, cell.lane, value),
        File::UReg => w.set(Dst::UReg(index), 0, cell.lane, value),
        File::Pred => w.set_pred(Pred { uniform: false, index, not: false }, 1 << cell.lane, value << cell.lane),
        File::UPred => w.set_pred(Pred { uniform: true, index, not: false }, 1, value & 1),
    }
}

/// Tries an instruction; results with bits that depend on what has no value.
pub(super) fn depending(
    m: &mut Machine,
    block: &mut Block,
    s: &Step,
    shadow: &Shadow,
    (reads, writes): (&[Run], &[Run]),
) -> Result<Vec<(Cell, u32)>, Fault> {
    let w = &block.warps[s.warp];
    let sources: Vec<(Cell, u32, u32)> = reads
        .iter()
        .flat_map(|run| cells(*run, s.active))
        .map(|cell| (cell, get(w, cell), shadow.get(cell.file, cell.register, cell.lane)))
        .filter(|(_, _, bits)| *bits != 0)
        .collect();
    let results: Vec<(Cell, u32)> =
        writes.iter().flat_map(|run| cells(*run, s.active)).map(|cell| (cell, get(w, cell))).collect();
    let mut found: Vec<(Cell, u32)> = results.iter().map(|(cell, _)| (*cell, 0)).collect();
    let mut first: Vec<u32> = Vec::new();
    for pattern in PATTERNS {
        let w = &mut block.warps[s.warp];
        for (i, (cell, value, bits)) in sources.iter().enumerate() {
            // Each cell gets bits of its own: two unknown words are seldom the same.
            let fill = if pattern == 0 || pattern == u32::MAX { pattern } else { pattern.rotate_left(5 * i as u32) };
            set(w, *cell, value & !bits | fill & bits);
        }
        m.execute(block, s)?;
        let w = &mut block.warps[s.warp];
        let got: Vec<u32> = results.iter().map(|(cell, _)| get(w, *cell)).collect();
        if first.is_empty() {
            first.clone_from(&got);
        }
        found.iter_mut().zip(&got).zip(&first).for_each(|((found, got), first)| found.1 |= got ^ first);
        results.iter().for_each(|(cell, value)| set(w, *cell, *value));
        sources.iter().for_each(|(cell, value, _)| set(w, *cell, *value));
    }
    found.retain(|(_, bits)| *bits != 0);
    Ok(found)
}
