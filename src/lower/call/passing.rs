//! Conversion between PTX registers and the 32-bit words in which they are passed.
//!
//! Source: objects that ptxas 13.0.88 makes of functions with vectors of 8 to 64 bits. The elements
//! of a vector are adjacent. A predicate, which only functions without the calling convention pass,
//! is a word that is zero or nonzero.

use crate::lower::builder::Builder;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast::RegId;
use crate::tables::ptx::TypeClass;
use crate::tables::{Op, Role};

impl Builder<'_> {
    /// Bits of an element if the register is passed in words other than its own: a vector whose
    /// elements share words, or a predicate.
    fn packed_bits(&self, id: RegId) -> Option<u32> {
        let register = &self.source.registers[id];
        let (bits, predicate) = (register.ty.bits(), register.ty.class() == TypeClass::Predicate);
        (predicate || register.vector > 1 && bits < 32).then_some(bits)
    }

    /// The words in which a register is passed.
    pub fn register_words(&mut self, id: RegId) -> Vec<Operand> {
        let elements = self.register(id).to_vec();
        match self.packed_bits(id) {
            None => elements.into_iter().flat_map(|e| self.words_of(e)).collect(),
            Some(1) => {
                let (word, one) = (self.temp(), self.imm(1));
                let one = self.in_reg(one);
                self.select(word, one, Operand::zero(), elements[0]);
                vec![word]
            }
            Some(bits) => elements.chunks((32 / bits) as usize).map(|part| self.packed_word(part, bits)).collect(),
        }
    }

    /// Packs the low `bits` of each element into one word.
    fn packed_word(&mut self, elements: &[Operand], bits: u32) -> Operand {
        let bytes = bits / 8;
        let mut word = elements[0];
        for (n, element) in (1..).zip(&elements[1..]) {
            // Below the element the bytes already packed, then its own, then any.
            let mut selector = 0x3210;
            for byte in 0..bytes {
                let at = 4 * (n * bytes + byte);
                selector = selector & !(0xf << at) | (4 + byte) << at;
            }
            let (d, selector) = (self.temp(), self.imm(selector));
            self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, word), (Role::B, selector), (Role::C, *element)]);
            word = d;
        }
        word
    }

    /// The registers that receive the words of a passed register: its own, or temporaries that
    /// [`Self::take_register`] converts.
    pub fn homes_of_register(&mut self, id: RegId) -> Vec<Operand> {
        let elements = self.register(id).to_vec();
        match self.packed_bits(id) {
            None => elements.into_iter().flat_map(|e| self.words_of(e)).collect(),
            Some(bits) => {
                let words = (bits as usize * elements.len()).div_ceil(32);
                (0..words).map(|_| self.temp()).collect()
            }
        }
    }

    /// Writes a register from the words in which it was passed.
    pub fn take_register(&mut self, id: RegId, words: &[Operand]) {
        let elements = self.register(id).to_vec();
        match self.packed_bits(id) {
            None => {
                let own: Vec<Operand> = elements.into_iter().flat_map(|e| self.words_of(e)).collect();
                let apart = own.iter().zip(words).filter(|(d, a)| d != a);
                apart.for_each(|(d, a)| self.copy(*d, *a));
            }
            Some(1) => self.isetp(elements[0], &[NE, AND, U32], words[0], Operand::zero()),
            Some(bits) => {
                let each = (32 / bits) as usize;
                for (n, element) in elements.into_iter().enumerate() {
                    let (word, shift) = (words[n / each], bits * (n % each) as u32);
                    if shift == 0 {
                        self.copy(element, word);
                    } else {
                        let amount = self.imm(shift);
                        self.shf(&SHF_R_U32_HI, element, Operand::zero(), amount, word);
                    }
                }
            }
        }
    }
}
