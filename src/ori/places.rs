//! Addresses and windows, as lowering and legalization compute them.
//!
//! Input: operands of [`Code`]. Output: sums of addresses, bases of the windows of generic addresses, where a generic address points. Units: bytes.

use super::Operand;
use super::code::Code;
use super::mods::*;
use crate::tables::{Op, Role};

impl Code {
    /// A 64-bit sum in a fresh pair.
    pub fn add_offset(&mut self, base: Operand, offset: i64) -> Operand {
        let sum = self.temp_pair();
        let a = self.words(base);
        let b = [self.imm(offset as u32), self.imm((offset >> 32) as u32)];
        let d = self.words(sum);
        self.add_long(d, a, b, false);
        sum
    }

    /// The 64-bit base of a window, from bank 0. Two loads: it is not aligned to 8 bytes on every generation.
    pub fn window_base(&mut self, offset: u32) -> [Operand; 2] {
        [offset, offset + 4].map(|at| {
            let word = self.temp();
            self.put(Op::LDC, &[], &[(Role::D, word), (Role::C, Operand::constant(0, at as u16))]);
            word
        })
    }

    /// Whether a generic address lies in a window.
    pub fn query_space(&mut self, p: Operand, space: M, a: Operand) {
        let none = self.literal(0);
        self.put(Op::QSPC, &[E, space], &[(Role::Pu, p), (Role::D, Operand::zero()), (Role::A, a), (Role::Off, none)]);
    }
}
