//! Spill weights: the cost of keeping each register in memory.
//!
//! The weight of a register is the number of accesses that spill code would add, each counted
//! 10^depth times for its loop depth; registers that are always accessed together are identified
//! too. Irreducible cycles count as depth zero, which only affects quality.

use super::ranges::Gone;
use crate::analysis::Loops;
use crate::ori::{Function, InstId, Operand, VReg, table};
use crate::tables::Op;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Maximum loop depth that counts.
const DEEPEST: u32 = 8;

/// Spill weights of all registers.
pub struct Weights {
    /// Weighted number of accesses that spilling the register would add.
    pub cost: SecondaryMap<VReg, f64>,
    /// Equal for registers that the same tuple operands, and nothing else except copies, access.
    pub together: SecondaryMap<VReg, u64>,
    /// The single instruction that defines it, if there is only one.
    pub definition: SecondaryMap<VReg, Definition>,
}

/// Number of definitions of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Definition {
    #[default]
    None,
    One(InstId),
    Many,
}

impl Weights {
    /// Computes the weights of all registers.
    pub fn new(function: &Function, gone: &Gone, loops: &Loops) -> Weights {
        let mut weights = Weights {
            cost: table(function.regs().len()),
            together: table(function.regs().len()),
            definition: table(function.regs().len()),
        };
        for block in function.layout() {
            let factor = 10f64.powi(loops.depth(*block).min(DEEPEST) as i32);
            for inst in function[*block].iter().filter(|i| !gone.is_marker(**i)) {
                weights.instruction(function, *inst, factor);
            }
        }
        weights
    }

    fn instruction(&mut self, function: &Function, inst: InstId, factor: f64) {
        let copy = function[inst].op == Op::COPY;
        for (i, operand) in function.args(inst).iter().enumerate() {
            let sign = mix((inst.index() as u64) << 16 | i as u64);
            self.operand(function, *operand, factor, sign, copy);
        }
        function.for_each_def(inst, |reg| {
            let first = self.definition[reg] == Definition::None;
            self.definition[reg] = if first { Definition::One(inst) } else { Definition::Many };
        });
        let guard = function[inst].guard;
        self.operand(function, guard, factor, mix(inst.index() as u64 | 1 << 60), copy);
    }

    fn operand(&mut self, function: &Function, operand: Operand, factor: f64, sign: u64, copy: bool) {
        let vector = operand.as_vector().is_some();
        function.for_each_reg(operand, |reg| {
            self.cost[reg] += factor;
            if !copy {
                let own = if vector { sign } else { mix(sign ^ (reg.index() as u64) << 32) };
                self.together[reg] = self.together[reg].wrapping_add(own);
            }
        });
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ x >> 29
}
