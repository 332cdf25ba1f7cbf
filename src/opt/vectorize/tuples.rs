//! The tuples in which registers stand, and whether they let registers be neighbours.

use crate::ori::{Function, Operand, VReg, table};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Of each register the different tuples that instructions read or write.
pub(super) struct Tuples {
    of: SecondaryMap<VReg, SmallVec<[Operand; 1]>>,
}

impl Tuples {
    pub fn new(function: &Function) -> Tuples {
        let mut tuples = Tuples { of: table(function.regs().len()) };
        for inst in function.layout().iter().flat_map(|block| &function[*block]) {
            let (uses, defs) = function.extras(*inst);
            for operand in function.args(*inst).iter().chain(uses).chain(defs) {
                tuples.add(function, operand.plain());
            }
        }
        tuples
    }

    /// Records a tuple; nothing for another operand.
    pub fn add(&mut self, function: &Function, operand: Operand) {
        let Some(vector) = operand.as_vector() else { return };
        for reg in function.vector_regs(vector).to_vec() {
            let known = &mut self.of[reg];
            if !known.contains(&operand) {
                known.push(operand);
            }
        }
    }

    /// Whether a register stands in no tuple.
    pub fn is_single(&self, reg: VReg) -> bool {
        self.of[reg].is_empty()
    }

    /// Whether registers may be neighbours: each tuple of one of them stands among them, at a
    /// multiple of its length.
    pub fn agree(&self, function: &Function, registers: &[VReg]) -> bool {
        registers.iter().enumerate().all(|(at, reg)| {
            let twice = registers[..at].contains(reg);
            !twice
                && self.of[*reg].iter().filter_map(|tuple| tuple.as_vector()).all(|vector| {
                    let tuple = function.vector_regs(vector);
                    let length = tuple.len().next_power_of_two();
                    registers.chunks(length).any(|chunk| chunk.starts_with(tuple))
                })
        })
    }
}
