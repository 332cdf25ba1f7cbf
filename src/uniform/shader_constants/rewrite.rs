//! Puts a load of its words behind each value that was chosen. Every use reads the load; the old
//! computation gets registers that nothing reads, and is left to dead-code elimination.

use super::rank::Chosen;
use crate::ori::{Function, Operand, ShaderConstants, VReg};
use crate::tables::{Mod, Op, Role, value};

/// Runs the rewriter.
pub fn run(function: &mut Function, map: &ShaderConstants, chosen: &[Chosen]) {
    for (candidate, offset) in chosen {
        let Ok(offset) = u16::try_from(map.start + offset) else { continue };
        let Some(at) = function[candidate.block].iter().position(|inst| *inst == candidate.inst) else { continue };
        let fresh: Vec<VReg> = candidate.regs.iter().map(|reg| function.new_like(*reg)).collect();
        let (old, new) = (operand(function, &candidate.regs), operand(function, &fresh));
        function.set_arg(candidate.inst, Role::D, new);
        let load = function.make(Op::LDC);
        if candidate.regs.len() > 1 {
            function[load].mods.set(Mod::Size, value::size::_64);
        }
        function.set_arg(load, Role::D, old);
        function.set_arg(load, Role::C, Operand::constant(ShaderConstants::BANK, offset));
        function[load].line = function[candidate.inst].line;
        function[candidate.block].insert(at + 1, load);
    }
}

/// A register, or a pair.
fn operand(function: &mut Function, regs: &[VReg]) -> Operand {
    match regs {
        [reg] => Operand::reg(*reg),
        regs => Operand::vector(function.vector(regs)),
    }
}
