//! Makes every register vector placeable.
//!
//! Input: a function whose vectors may ask for a register in several places. Output: one where each register has one
//! place relative to the other registers it must stand beside; where a vector asks for a second place it is made of fresh
//! registers, with copies before a use and after a definition. Invariant: all vectors of the result can be placed at once.

use super::classes::Offsets;
use crate::ori::ssa::copy;
use crate::ori::{Function, InstId, VReg};
use crate::tables::Op;
use crate::tables::ori::Direction;

pub fn make_placeable(function: &mut Function) {
    let mut offsets = Offsets::new(function.regs.len());
    for block in function.layout.clone() {
        let mut out = Vec::with_capacity(function.blocks[block].len());
        for inst in function.blocks[block].clone() {
            let (before, after) = instruction(function, &mut offsets, inst);
            out.extend(before);
            out.push(inst);
            out.extend(after);
        }
        function.blocks[block] = out;
    }
}

fn instruction(function: &mut Function, offsets: &mut Offsets, inst: InstId) -> (Vec<InstId>, Vec<InstId>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    if function.insts[inst].op == Op::PHI {
        return (before, after);
    }
    for i in 0..function.args(inst).len() {
        let operand = function.args(inst)[i];
        let Some(vector) = operand.as_vector() else { continue };
        let regs: Vec<VReg> = function.vector_regs(vector).to_vec();
        if offsets.join(&regs, regs.len().next_power_of_two()) {
            continue;
        }
        let file = function.regs[regs[0]].file;
        let fresh: Vec<VReg> = regs.iter().map(|_| function.new_reg(file)).collect();
        offsets.grow(function.regs.len());
        offsets.join(&fresh, fresh.len().next_power_of_two());
        let new = function.vector(&fresh);
        function.args_mut(inst)[i] = operand.with_vector(new);
        let guard = function.insts[inst].guard;
        let definition = function.direction(inst, i) == Direction::Def;
        for (old, new) in regs.iter().zip(&fresh) {
            if definition {
                let back = copy(function, *old, *new);
                function.insts[back].guard = guard;
                after.push(back);
            } else {
                before.push(copy(function, *new, *old));
            }
        }
    }
    (before, after)
}
