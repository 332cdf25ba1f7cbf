//! Address code: 64-bit address sums, bases of the windows of generic addresses, and window tests.
//!
//! Used by lowering and by legalization. Offsets are in bytes.

use crate::arrays::Each;
use crate::ori::Operand;
use crate::ori::code::Code;
use crate::ori::mods::*;
use crate::tables::{Op, Role};

impl Code {
    /// A 64-bit sum of an address and a constant, in a fresh pair.
    pub fn add_offset(&mut self, base: Operand, offset: i64) -> Operand {
        let sum = self.temp_pair();
        let a = self.words(base);
        let b = [self.imm(offset as u32), self.imm((offset >> 32) as u32)];
        let d = self.words(sum);
        self.add_long(d, a, b, false);
        sum
    }

    /// The 64-bit base of a window, loaded from bank 0 in two words, because it is not aligned to 8
    /// bytes on every generation.
    pub fn window_base(&mut self, offset: u32) -> [Operand; 2] {
        [offset, offset + 4].each(|at| {
            let word = self.temp();
            self.put(Op::LDC, &[], &[(Role::D, word), (Role::C, Operand::constant(0, at as u16))]);
            word
        })
    }

    /// Sets `p` to whether a generic address is in a window.
    pub fn query_space(&mut self, p: Operand, space: M, a: Operand) {
        let none = self.literal(0);
        self.put(Op::QSPC, &[E, space], &[(Role::Pu, p), (Role::D, Operand::zero()), (Role::A, a), (Role::Off, none)]);
    }
}
