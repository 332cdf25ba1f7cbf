//! The judge of a search: cycles of finished code by the simulator's time model.
//!
//! Two cases are multiplied, so that a gain in one is worth as much as in the other: one block
//! alone on an SM, where latency counts, and as many as its registers let it hold, where each has
//! its share of the issue slots. Equal times are decided by registers, then by words.

use super::path::{self, Step};
use crate::analysis::occupancy::{Occupancy, USUAL};
use crate::ori::Function;
use crate::pipeline::emit::{Code, WORD};
use crate::sass::{Inst, decode};
use crate::sim::sass::sanitizer::cycle_model::{Cost, Course};
use crate::tables::throughput::Throughput;

/// Most warps that are replayed: eight for each scheduler. More hide little more.
const MOST_WARPS: usize = 32;
const WARP: u32 = 32;

/// What code costs; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    /// Cycles of a block alone times those of its share of a full SM, in parts of a cycle.
    pub time: u128,
    registers: u32,
    words: usize,
    /// Cycles of a block alone.
    pub block: u64,
}

/// The score of a function's code; none on a target without a time model.
pub fn score(function: &Function, code: &Code) -> Option<Score> {
    let throughput = Throughput::of(function.target())?;
    let insts: Vec<Option<Inst>> = words(code).map(|word| decode(function.target(), word).ok()).collect();
    let costs: Vec<Option<Cost>> =
        insts.iter().map(|inst| inst.as_ref().map(|inst| Cost::of(inst, throughput))).collect();
    let steps = path::of(&insts, &code.tables);
    let warps = function.attributes().threads.unwrap_or(USUAL).div_ceil(WARP).max(1) as usize;
    let registers = code.registers.max(1);
    let held = Occupancy::of(function).map_or(1, |occupancy| occupancy.blocks(registers as i32)).max(1) as usize;
    let block = cycles(&steps, warps, &costs);
    // Of a large block no second one is replayed; what it shares is in its own time.
    let blocks = held.min(MOST_WARPS / warps).max(1);
    let all = if blocks > 1 { cycles(&steps, warps * blocks, &costs) } else { block };
    // Each of the blocks takes its part of the time of all.
    let time = u128::from(block.max(1)) * u128::from(all.max(1)) * SCALE / blocks as u128;
    Some(Score { time, registers, words: insts.len(), block })
}

/// What keeps the remainders of the division.
const SCALE: u128 = 64;

/// Cycles of warps that all take the same path.
fn cycles(steps: &[Step], warps: usize, costs: &[Option<Cost>]) -> u64 {
    let mut course = Course::new(warps);
    for step in steps {
        match step {
            Step::Issue(at) => (0..warps).for_each(|warp| course.issue(warp, *at)),
            Step::Meet => course.meet(0..warps),
        }
    }
    course.cycles(costs).block
}

/// The words of code.
fn words(code: &Code) -> impl Iterator<Item = u128> {
    code.bytes
        .chunks_exact(WORD as usize)
        .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u128::from(*byte)))
}
