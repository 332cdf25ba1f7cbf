//! Finds by trial execution which result bits depend on undefined source bits.
//!
//! An instruction that touches only registers is executed several times with different patterns in
//! the undefined bits, and the warp is restored. A result bit that no pattern changes counts as
//! defined, so what an instruction discards (`LOP3` with zeros, the other side of `SEL`) is no
//! finding. A comparison with a constant changes its result only next to that constant; therefore
//! the values of the other operands and their neighbours are tried too.

use super::super::super::fault::Fault;
use super::super::super::ops::half;
use super::super::alu::Alu;
use super::super::block::Block;
use super::super::code::{Code, Dst, Exec, Pred, Src};
use super::super::exec::{Machine, Step};
use super::super::warp::{LANES, Warp, lanes_of};
use super::accesses::{File, Run, Slot};
use super::shadow::Shadow;
use smallvec::SmallVec;

/// A register of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The register file.
    pub file: File,
    /// The register's number.
    pub register: usize,
    /// The lane.
    pub lane: usize,
}

/// The patterns that are tried in place of undefined bits.
const PATTERNS: [u32; 4] = [0, u32::MAX, 0x5ac3_96d1, 0xa73c_1e58];

/// The cells of a register range on some lanes; a uniform register has only one.
pub fn cells(run: Run, lanes: u32) -> impl Iterator<Item = Cell> {
    let uniform = matches!(run.file, File::UReg | File::UPred);
    let lanes = if uniform { lanes & lanes.wrapping_neg() } else { lanes };
    run.registers().flat_map(move |register| lanes_of(lanes).map(move |lane| Cell { file: run.file, register, lane }))
}

/// Reads a cell.
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

/// Writes a cell.
pub fn set(w: &mut Warp, cell: Cell, value: u32) {
    let index = cell.register as u8;
    match cell.file {
        File::Reg => w.set_reg(cell.register, cell.lane, value),
        File::UReg => w.set(Dst::UReg(index), 0, cell.lane, value),
        File::Pred => w.set_pred(Pred { uniform: false, index, not: false }, 1 << cell.lane, value << cell.lane),
        File::UPred => w.set_pred(Pred { uniform: true, index, not: false }, 1, value & 1),
    }
}

/// A source cell with undefined bits: its contents, these bits, and its position in the operand.
struct Source {
    cell: Cell,
    value: u32,
    bits: u32,
    /// 0 or 1: the low or high word of a two-word operand.
    word: usize,
    slot: Slot,
}

/// The operand in a slot.
fn operand(code: &Code, slot: Slot) -> Option<&Src> {
    match slot {
        Slot::A => Some(&code.a),
        Slot::B => Some(&code.b),
        Slot::C => Some(&code.c),
        _ => None,
    }
}

/// The results with bits that depend on undefined source bits.
///
/// # Errors
///
/// A fault of the instruction itself.
pub(super) fn depending(
    m: &mut Machine,
    block: &mut Block,
    s: &Step,
    shadow: &Shadow,
    (reads, writes): (&[Run], &[Run]),
) -> Result<Vec<(Cell, u32)>, Fault> {
    let w = &block.warps[s.warp];
    let mut sources = Vec::new();
    for run in reads {
        for cell in cells(*run, s.active) {
            let bits = shadow.get(cell.file, cell.register, cell.lane);
            if bits != 0 {
                let word = cell.register - usize::from(run.first);
                sources.push(Source { cell, value: get(w, cell), bits, word: word & 1, slot: run.slot });
            }
        }
    }
    let results: Vec<(Cell, u32)> =
        writes.iter().flat_map(|run| cells(*run, s.active)).map(|cell| (cell, get(w, cell))).collect();
    let mut trial = Trial { found: results.iter().map(|(cell, _)| (*cell, 0)).collect(), results, first: Vec::new() };
    for pattern in PATTERNS {
        // Each cell gets its own bits, because two undefined words seldom agree.
        let plain = pattern == 0 || pattern == u32::MAX;
        let fill = |i: usize, _: &Source| if plain { pattern } else { pattern.rotate_left(5 * i as u32) };
        trial.with(m, block, s, &sources, fill)?;
    }
    if compares(s.code) {
        near(m, block, s, &sources, &mut trial)?;
    }
    let mut found = trial.found;
    found.retain(|(_, bits)| *bits != 0);
    Ok(found)
}

/// The accumulated outcome of several trials.
struct Trial {
    /// The result cells with their original contents.
    results: Vec<(Cell, u32)>,
    /// The results of the first trial.
    first: Vec<u32>,
    /// The bits that differed between trials.
    found: Vec<(Cell, u32)>,
}

impl Trial {
    /// Executes with this filling of the undefined bits and restores the cells.
    fn with(
        &mut self,
        m: &mut Machine,
        block: &mut Block,
        s: &Step,
        sources: &[Source],
        fill: impl Fn(usize, &Source) -> u32,
    ) -> Result<(), Fault> {
        let w = &mut block.warps[s.warp];
        for (i, source) in sources.iter().enumerate() {
            set(w, source.cell, source.value & !source.bits | fill(i, source) & source.bits);
        }
        m.execute(block, s)?;
        let w = &mut block.warps[s.warp];
        let got: Vec<u32> = self.results.iter().map(|(cell, _)| get(w, *cell)).collect();
        if self.first.is_empty() {
            self.first.clone_from(&got);
        }
        let pairs = got.iter().zip(&self.first);
        self.found.iter_mut().zip(pairs).for_each(|((_, bits), (got, first))| *bits |= got ^ first);
        self.results.iter().for_each(|(cell, value)| set(w, *cell, *value));
        sources.iter().for_each(|source| set(w, source.cell, source.value));
        Ok(())
    }
}

/// Whether the result can depend on a single value of an operand, as for comparisons.
fn compares(code: &Code) -> bool {
    match code.exec {
        Exec::Alu(Alu::SetHalf { .. }) | Exec::Match { .. } => true,
        Exec::Alu(_) => [code.pu, code.pv].iter().any(|p| p.index & 7 != 7),
        _ => false,
    }
}

/// Offsets of the values to try next to a number: in a word, and in each half of it.
const BESIDE: [(u64, u64); 3] = [(0, 0), (1, 0x1_0001), (u64::MAX, 0xffff_ffff_fffe_ffff)];

/// The values of an operand to try in a comparison: its own, their neighbours, and for halves other
/// placements.
fn numbers_of(code: &Code, slot: Slot, number: u64) -> SmallVec<[u64; 6]> {
    let how = match code.exec {
        Exec::Alu(Alu::CompareHalf { how, .. } | Alu::SetHalf { how, .. }) => how,
        _ => return BESIDE.iter().map(|(word, _)| number.wrapping_add(*word)).collect(),
    };
    let [low, high] = half::halves(how.pick[usize::from(slot == Slot::B)], number as u32, how.format);
    let halves = |low, high| u64::from(half::join(low, high));
    let beside = BESIDE.iter().map(|(_, half)| halves(low, high).wrapping_add(*half));
    beside.chain([halves(high, low), halves(low, low), halves(high, high)]).collect()
}

/// Tries the values of the other operands and their neighbours in the undefined operands; undefined
/// predicates are tried both ways.
fn near(m: &mut Machine, block: &mut Block, s: &Step, sources: &[Source], trial: &mut Trial) -> Result<(), Fault> {
    // A uniform register, or a comparison with other lanes: the value of each lane is tried.
    let matches = matches!(s.code.exec, Exec::Match { .. });
    let across = matches || sources.iter().any(|source| source.cell.file == File::UReg);
    let lanes: SmallVec<[Option<usize>; 32]> =
        if across { lanes_of(s.active).map(Some).collect() } else { SmallVec::from_slice(&[None]) };
    for from in [Slot::A, Slot::B, Slot::C] {
        let alone = !matches && sources.iter().all(|source| source.slot == from);
        let Some(given) = operand(s.code, from).filter(|_| !alone) else { continue };
        for lane in &lanes {
            let w = &block.warps[s.warp];
            let given = |l: usize| numbers_of(s.code, from, w.get(given, lane.unwrap_or(l)));
            let numbers: Vec<SmallVec<[u64; 6]>> = (0..LANES).map(given).collect();
            for (which, holds) in (0..numbers[0].len()).flat_map(|which| [(which, 0), (which, u32::MAX)]) {
                let fill = |_: usize, source: &Source| {
                    let number = numbers[source.cell.lane][which];
                    let Some(own) = operand(s.code, source.slot) else { return holds };
                    // Undoes the operand's modifiers, so that the operand takes that value.
                    let number = if own.negate { number.wrapping_neg() } else { number } ^ own.xor;
                    (number >> (32 * source.word)) as u32
                };
                trial.with(m, block, s, sources, fill)?;
            }
        }
    }
    Ok(())
}
