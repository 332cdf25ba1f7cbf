//! Makes the registers of every tuple operand adjacent, and inserts copies if a register is needed
//! at two positions.
//!
//! `place` joins the registers in classes and returns the tuple operands that no class can satisfy.
//! `copy_out` gives these fresh registers, with copies before a use and after a definition. A tuple
//! of fresh registers can always be placed, so a second call of `place` satisfies every tuple.

use super::bundles::Classes;
use super::ranges::Gone;
use crate::analysis::Loops;
use crate::ori::destruct::copy;
use crate::ori::{Function, InstId, VReg, VecId};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::ori::Direction;
use crate::tables::{Op, Prop};
use std::cmp::Reverse;

/// Maximum alignment of a tuple, in registers, but for instructions that are `wholly_aligned`.
/// Source: ptxas starts the accumulators of warp-group products at multiples of 8.
pub const WIDEST: usize = 8;

/// The lowest register of a sum of a warp group. Source: in all probes ptxas gives sums R24 and
/// later ones, whatever is free.
const FIRST_SUM: i32 = 24;

/// Alignment of the first register of a tuple of this length in an instruction of this opcode.
pub fn alignment(op: Op, len: usize) -> i32 {
    let whole = len.next_power_of_two();
    (if op.has(Prop::WhollyAligned) { whole } else { whole.min(WIDEST) }) as i32
}

/// Joins the tuples of all operands, most executed first, of these the most frequent. Returns the
/// operands (instruction, position) that are left.
pub fn place(function: &Function, classes: &mut Classes, gone: &Gone, loops: &Loops) -> SortedSet<(InstId, usize)> {
    let mut operands: Vec<(Reverse<u32>, InstId, usize)> = Vec::new();
    let mut counts: SortedMap<(Reverse<u32>, VecId), u32> = SortedMap::new();
    for block in function.layout() {
        for inst in &function[*block] {
            for (i, operand) in function.args(*inst).iter().enumerate() {
                if let Some(vector) = operand.as_vector().filter(|_| !gone.is_marker(*inst)) {
                    let depth = Reverse(loops.depth(*block));
                    operands.push((depth, *inst, i));
                    *counts.entry((depth, vector)).or_default() += 1;
                }
            }
        }
    }
    let frequent = |(depth, inst, i): &(Reverse<u32>, InstId, usize)| {
        let vector = function.args(*inst)[*i].as_vector();
        (*depth, Reverse(vector.and_then(|vector| counts.get(&(*depth, vector)).copied())))
    };
    crate::sorted::by_cached_key(&mut operands, frequent);
    let mut left = SortedSet::new();
    for (_, inst, i) in operands {
        let Some(vector) = function.args(inst)[i].as_vector() else { continue };
        let regs = function.vector_regs(vector);
        if !classes.join(function, regs, alignment(function[inst].op, regs.len())) {
            left.insert((inst, i));
        } else if function[inst].op == Op::GMMA && function.direction(inst, i) == Direction::Def {
            classes.at_least(regs[0], FIRST_SUM);
        }
    }
    left
}

/// Replaces the registers of these operands by fresh ones with copies; returns the fresh registers.
pub fn copy_out(function: &mut Function, operands: &SortedSet<(InstId, usize)>) -> Vec<VReg> {
    let mut all = Vec::new();
    for block in function.layout().to_vec() {
        let mut out = Vec::with_capacity(function[block].len());
        let mut made = Vec::new();
        for (at, inst) in std::mem::take(&mut function[block]).into_iter().enumerate() {
            let mut after = Vec::new();
            for (_, i) in operands.range((inst, 0)..=(inst, usize::MAX)) {
                if !again(function, (inst, *i, at), &mut made) {
                    one(function, (inst, *i, at), (&mut out, &mut after), &mut made, &mut all);
                }
            }
            function.for_each_def(inst, |reg| {
                made.retain(|made: &Made| !made.of.contains(&reg) && !made.copies.contains(&reg))
            });
            out.push(inst);
            out.append(&mut after);
        }
        function[block] = out;
    }
    all
}

/// Copies of the registers of a tuple, which are used there, and by what.
struct Made {
    of: Vec<VReg>,
    copies: Vec<VReg>,
    at: usize,
}

/// Instructions behind copies of a tuple that use them again.
const NEAR: usize = 8;

/// Whether an operand that is read takes copies that were made shortly before.
fn again(function: &mut Function, (inst, i, at): (InstId, usize, usize), made: &mut Vec<Made>) -> bool {
    let operand = function.args(inst)[i];
    if function.direction(inst, i) == Direction::Def {
        return false;
    }
    let Some(vector) = operand.as_vector() else { return false };
    made.retain(|made| at - made.at <= NEAR);
    let Some(known) = made.iter_mut().find(|made| made.of == function.vector_regs(vector)) else { return false };
    known.at = at;
    let copies = function.vector(&known.copies);
    function.args_mut(inst)[i] = operand.with_vector(copies);
    true
}

fn one(
    function: &mut Function,
    (inst, i, at): (InstId, usize, usize),
    (before, after): (&mut Vec<InstId>, &mut Vec<InstId>),
    made: &mut Vec<Made>,
    all: &mut Vec<VReg>,
) {
    let operand = function.args(inst)[i];
    let Some(vector) = operand.as_vector().filter(|_| function[inst].op != Op::PHI) else { return };
    let regs: Vec<VReg> = function.vector_regs(vector).to_vec();
    let file = function[regs[0]].file;
    let fresh: Vec<VReg> = regs.iter().map(|_| function.new_reg(file)).collect();
    all.extend(&fresh);
    let new = function.vector(&fresh);
    function.args_mut(inst)[i] = operand.with_vector(new);
    let guarded = !function[inst].guard.is_null();
    let definition = function.direction(inst, i) == Direction::Def;
    for (old, new) in regs.iter().zip(&fresh) {
        // If the guard is false, a definition keeps the old value.
        if !definition || guarded {
            let copy = copy(function, *new, *old);
            before.push(copy);
        }
        if definition {
            let copy = copy(function, *old, *new);
            after.push(copy);
        }
    }
    if function.direction(inst, i) == Direction::Use {
        made.push(Made { of: regs, copies: fresh, at });
    }
}
