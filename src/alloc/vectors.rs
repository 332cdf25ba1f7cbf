//! Puts the registers of every vector side by side, with copies where a register is asked for in two places.
//!
//! Input: a function, its live ranges in classes. Output: the vector operands that no class could satisfy; `copy_out` makes
//! them of fresh registers, with copies before a use and after a definition. Invariant: a vector of fresh registers can always be placed, so
//! that a second look finds every vector in place.

use super::classes::Classes;
use super::ranges::{Gone, is_marker};
use crate::analysis::Loops;
use crate::ori::ssa::copy;
use crate::ori::{Function, InstId, VReg};
use crate::tables::Op;
use crate::tables::ori::Direction;
use std::collections::BTreeSet;

/// Greatest alignment of a vector, in registers. Source: ptxas starts the accumulators of warp-group products at multiples of 8.
pub const WIDEST: usize = 8;

/// Alignment of the first register of a vector of this length.
pub fn alignment(len: usize) -> i32 {
    len.next_power_of_two().min(WIDEST) as i32
}

/// Joins the vectors of all operands, most executed first. The result are the operands (instruction, position) left over.
pub fn place(function: &Function, classes: &mut Classes, gone: &Gone, loops: &Loops) -> BTreeSet<(InstId, usize)> {
    let mut operands: Vec<(std::cmp::Reverse<u32>, InstId, usize)> = Vec::new();
    for block in &function.layout {
        for inst in &function.blocks[*block] {
            for (i, operand) in function.args(*inst).iter().enumerate() {
                if operand.as_vector().is_some() && !is_marker(function, *inst, gone) {
                    operands.push((std::cmp::Reverse(loops.depth(*block)), *inst, i));
                }
            }
        }
    }
    operands.sort_by_key(|o| o.0);
    let mut left = BTreeSet::new();
    for (_, inst, i) in operands {
        if let Some(vector) = function.args(inst)[i].as_vector()
            && !classes.join(function, function.vector_regs(vector))
        {
            left.insert((inst, i));
        }
    }
    left
}

/// Makes these operands of fresh registers. The result are the fresh ones.
pub fn copy_out(function: &mut Function, operands: &BTreeSet<(InstId, usize)>) -> Vec<VReg> {
    let mut all = Vec::new();
    for block in function.layout.clone() {
        let mut out = Vec::with_capacity(function.blocks[block].len());
        for inst in std::mem::take(&mut function.blocks[block]) {
            let mut after = Vec::new();
            for (_, i) in operands.range((inst, 0)..=(inst, usize::MAX)) {
                one(function, inst, *i, &mut out, &mut after, &mut all);
            }
            out.push(inst);
            out.append(&mut after);
        }
        function.blocks[block] = out;
    }
    all
}

fn one(
    function: &mut Function,
    inst: InstId,
    i: usize,
    before: &mut Vec<InstId>,
    after: &mut Vec<InstId>,
    all: &mut Vec<VReg>,
) {
    let operand = function.args(inst)[i];
    let Some(vector) = operand.as_vector().filter(|_| function.insts[inst].op != Op::PHI) else { return };
    let regs: Vec<VReg> = function.vector_regs(vector).to_vec();
    let file = function.regs[regs[0]].file;
    let fresh: Vec<VReg> = regs.iter().map(|_| function.new_reg(file)).collect();
    all.extend(&fresh);
    let new = function.vector(&fresh);
    function.args_mut(inst)[i] = operand.with_vector(new);
    let guarded = !function.insts[inst].guard.is_null();
    let definition = function.direction(inst, i) == Direction::Def;
    for (old, new) in regs.iter().zip(&fresh) {
        // Where the guard is false a definition leaves the old value.
        if !definition || guarded {
            let copy = copy(function, *new, *old);
            before.push(copy);
        }
        if definition {
            let copy = copy(function, *old, *new);
            after.push(copy);
        }
    }
}
