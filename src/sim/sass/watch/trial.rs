//! Which bits of a result depend on bits without a value: found by trying.
//!
//! Input: an instruction that touches registers alone, and the shadow of its sources. Output: for each result register and lane the bits
//! that change when bits without a value change. Invariant: the warp is as it was; a bit that several patterns leave alone counts as
//! having a value, so that what an instruction discards (`LOP3` with zeros, `SEL` of the other side) is no finding. Where something is
//! compared the patterns are not enough: what is compared with a number changes its outcome at that number alone, so that the numbers
//! of the other operands and those beside them are tried, too.

use super::super::super::fault::Fault;
use super::super::super::ops::half;
use super::super::alu::Alu;
use super::super::block::Block;
use super::super::code::{Code, Dst, Exec, Pred, Src};
use super::super::exec::{Machine, Step};
use super::super::warp::{LANES, Warp, lanes_of};
use super::shadow::Shadow;
use super::touch::{File, Run, Slot};
use smallvec::SmallVec;

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

/// A source that lacks bits: its cell, what lies in it, the bits without a value, and where it stands in its operand.
struct Source {
    cell: Cell,
    value: u32,
    bits: u32,
    /// 0 or 1: the low or the high word of a number of two words.
    word: usize,
    slot: Slot,
}

/// The operand that a slot names.
fn operand(code: &Code, slot: Slot) -> Option<&Src> {
    match slot {
        Slot::A => Some(&code.a),
        Slot::B => Some(&code.b),
        Slot::C => Some(&code.c),
        _ => None,
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
        // Each cell gets bits of its own: two unknown words are seldom the same.
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

/// What several trials of one instruction have shown.
struct Trial {
    /// The results' cells, and what lies in them before.
    results: Vec<(Cell, u32)>,
    /// What the first trial gave.
    first: Vec<u32>,
    /// Bits that were not the same each time.
    found: Vec<(Cell, u32)>,
}

impl Trial {
    /// Executes with these bits where there is no value, and puts all back.
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

/// Whether an outcome can hang on one number among all.
fn compares(code: &Code) -> bool {
    match code.exec {
        Exec::Alu(Alu::SetHalf { .. }) | Exec::Match { .. } => true,
        Exec::Alu(_) => [code.pu, code.pv].iter().any(|p| p.index & 7 != 7),
        _ => false,
    }
}

/// How a number beside another one is made, in a word and in each half of it.
const BESIDE: [(u64, u64); 3] = [(0, 0), (1, 0x1_0001), (u64::MAX, 0xffff_ffff_fffe_ffff)];

/// The numbers that an operand brings to a comparison, those beside them, and its halves in other places.
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

/// Tries the numbers of the other operands, and those beside them, in the operands that have none; predicates without a
/// value hold, and do not.
fn near(m: &mut Machine, block: &mut Block, s: &Step, sources: &[Source], trial: &mut Trial) -> Result<(), Fault> {
    // One register for all lanes, and one that is compared with those of other lanes: each lane's number is tried.
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
                    // What the operand's modifiers make that number of.
                    let number = if own.negate { number.wrapping_neg() } else { number } ^ own.xor;
                    (number >> (32 * source.word)) as u32
                };
                trial.with(m, block, s, sources, fill)?;
            }
        }
    }
    Ok(())
}
