//! Virtual registers and tuples of them.

use super::{File, Function, RegData, STACK_POINTER, VReg, VecId};
use smallvec::SmallVec;

impl Function {
    /// A new register of a file.
    #[inline]
    pub fn new_reg(&mut self, file: File) -> VReg {
        self.regs.push(RegData { file, varying: true, phys: None, fixed: None })
    }

    /// A new register that the allocator must assign to this number.
    pub fn new_fixed(&mut self, file: File, number: u16) -> VReg {
        self.regs.push(RegData { file, varying: true, phys: None, fixed: Some(number) })
    }

    /// A new register with the file and the fixed number of another one.
    pub fn new_like(&mut self, reg: VReg) -> VReg {
        let RegData { file, fixed, .. } = self.regs[reg];
        let new = self.regs.push(RegData { file, varying: true, phys: None, fixed });
        if let Some(watched) = &mut self.watched {
            watched.parts[new] = watched.parts[reg];
        }
        new
    }

    /// The stack pointer, reserved in the whole function. The allocator inserts the instructions
    /// that set it.
    pub fn stack_register(&mut self) -> VReg {
        if let Some(reg) = self.stack_pointer {
            return reg;
        }
        let reg = self.new_reg(File::R);
        self.regs[reg].phys = Some(STACK_POINTER);
        self.stack_pointer = Some(reg);
        reg
    }

    /// The tuple of these registers; equal lists are one tuple.
    pub fn vector(&mut self, regs: &[VReg]) -> VecId {
        if let Some(id) = self.vector_index.get(regs) {
            return *id;
        }
        let start = self.vector_regs.len() as u32;
        self.vector_regs.extend_from_slice(regs);
        let id = self.vectors.push((start, regs.len() as u16));
        self.vector_index.insert(SmallVec::from_slice(regs), id);
        id
    }

    /// A tuple of fresh registers.
    pub fn new_vector(&mut self, file: File, len: usize) -> VecId {
        let regs: Vec<VReg> = (0..len).map(|_| self.new_reg(file)).collect();
        self.vector(&regs)
    }

    /// Registers of a tuple, in order.
    #[inline]
    pub fn vector_regs(&self, vector: VecId) -> &[VReg] {
        let (start, len) = self.vectors[vector];
        &self.vector_regs[start as usize..start as usize + usize::from(len)]
    }

    /// Number of tuples ever created; ids are below it.
    pub fn vector_count(&self) -> usize {
        self.vectors.len()
    }
}
