//! Parameters of device functions and of calls: `.param` variables that are not in a constant bank.
//!
//! Each variable gets a home, either 32-bit registers, one per word, or a location in the stack
//! frame; this module also lowers the loads and stores of variables in registers. A variable lives
//! in the frame if its address is taken, if it is larger than `MOST_IN_REGISTERS`, or if a callee
//! writes it through an address. The registers of the others are "visible in PTX", as the registers
//! of the program are.

use super::abi::Passed;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::memory::load_store::elements;
use crate::lower::operand::is_signed;
use crate::ori::mods::*;
use crate::ori::{Kind, Operand};
use crate::ptx::ast::{self, AddressBase, OperandKind, SymbolId};
use crate::tables::ptx::ScalarType;
use crate::tables::{Op, Role};

/// Largest variable that lives in registers, in bytes.
pub(crate) const MOST_IN_REGISTERS: u64 = 128;

/// Where a parameter variable lives.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// One register per word.
    Words(Vec<Operand>),
    /// In the frame, at this byte offset from the stack pointer.
    Frame(u64),
    /// In the caller's frame, at the address in this register: an array of unknown extent.
    Above(Operand),
}

impl Builder<'_> {
    /// The registers of the variable that an address names, and the byte offset; `None` if the
    /// variable is not in registers.
    pub fn words_at(&self, operand: &ast::Operand) -> Option<(Vec<Operand>, i64)> {
        let OperandKind::Address(address) = &operand.kind else { return None };
        let AddressBase::Symbol(id) = address.base else { return None };
        match self.homes.get(&id)? {
            Home::Words(words) => Some((words.clone(), address.offset)),
            Home::Frame(_) | Home::Above(_) => None,
        }
    }

    /// The words of a variable that is passed; loads them if it lives in the frame.
    pub fn passed_words(&mut self, id: SymbolId, passed: Passed) -> Lowered<Vec<Operand>> {
        match self.homes.get(&id).cloned() {
            Some(Home::Words(words)) => Ok(words),
            Some(Home::Frame(start)) => Ok(self.frame_words(start / 4..start / 4 + passed.words() as u64)),
            Some(Home::Above(_)) | None => Err(Refusal::NotBuilt),
        }
    }

    /// Writes the words that were received or returned to a variable.
    pub fn take_words(&mut self, id: SymbolId, values: &[Operand]) -> Lowered {
        match self.homes.get(&id).cloned() {
            Some(Home::Words(words)) => words.into_iter().zip(values).for_each(|(d, a)| self.copy(d, *a)),
            Some(Home::Frame(start)) => {
                for (n, value) in values.iter().enumerate() {
                    self.store_local(start + 4 * n as u64, *value);
                }
            }
            Some(Home::Above(_)) | None => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }

    /// Stores a word to the frame.
    pub fn store_local(&mut self, at: u64, value: Operand) {
        let (base, offset) = (self.stack_pointer(), self.literal(at as i64));
        self.put(Op::STL, &[], &[(Role::A, base), (Role::Off, offset), (Role::B, value)]);
    }

    /// The words in the frame that hold a value which is not aligned there, and the byte offset of
    /// the value in the first of them; `None` if it is aligned or elsewhere.
    pub fn scattered(&self, operand: &ast::Operand, bits: u32) -> Option<(std::ops::Range<u64>, i64)> {
        let OperandKind::Address(address) = &operand.kind else { return None };
        let AddressBase::Symbol(id) = address.base else { return None };
        let Home::Frame(start) = self.homes.get(&id)? else { return None };
        let (at, bytes) = (start.checked_add_signed(address.offset)?, u64::from(bits / 8));
        let aligned = bytes == 0 || at.is_multiple_of(bytes) && bytes <= self.layout.stack_align;
        (!aligned).then_some((at / 4..(at + bytes).div_ceil(4), (at % 4) as i64))
    }

    /// Loads words of the frame.
    pub fn frame_words(&mut self, words: std::ops::Range<u64>) -> Vec<Operand> {
        let base = self.stack_pointer();
        let load = |n: u64| {
            let (word, offset) = (self.temp(), self.literal((4 * n) as i64));
            self.put(Op::LDL, &[], &[(Role::D, word), (Role::A, base), (Role::Off, offset)]);
            word
        };
        words.map(load).collect()
    }

    /// `ld.param` of a variable in registers. A value need not be aligned.
    pub fn load_words(&mut self, inst: &ast::Instruction, words: &[Operand], offset: i64) -> Lowered {
        let ty = inst.types[0];
        let bytes = i64::from(ty.bits() / 8);
        for (i, part) in elements(&inst.operands[0]).iter().enumerate() {
            let d = self.dest(part)?;
            let (first, within) = place_of(words, offset + i as i64 * bytes, ty)?;
            if d == Operand::zero() {
                continue;
            }
            let count = ty.bits().div_ceil(32) as usize;
            let parts: Vec<Operand> = (first..first + count).map(|n| self.word_from(words, n, within, ty)).collect();
            if ty.bits() > 32 {
                let own = self.words_of(d);
                own.into_iter().zip(parts).for_each(|(d, a)| self.copy(d, a));
                continue;
            }
            let value = self.extend(parts[0], ty);
            self.widen_into(d, value, ty);
        }
        Ok(())
    }

    /// The word that begins at a byte of a word; what is above a value of this type is anything.
    fn word_from(&mut self, words: &[Operand], at: usize, within: usize, ty: ScalarType) -> Operand {
        if within == 0 {
            return words[at];
        }
        let (word, places) = (self.temp(), self.imm(8 * within as u32));
        let ends = 8 * within as u32 + ty.bits().min(32) <= 32;
        match words.get(at + 1).filter(|_| !ends) {
            Some(next) => self.shf(&SHF_R_U64, word, words[at], places, *next),
            None => self.shf(&SHF_R_U32_HI, word, Operand::zero(), places, words[at]),
        }
        word
    }

    /// `st.param` of a variable in registers. A value need not be aligned.
    pub fn store_words(&mut self, inst: &ast::Instruction, words: &[Operand], offset: i64) -> Lowered {
        let ty = inst.types[0];
        let bytes = (ty.bits() / 8) as usize;
        for (i, part) in elements(&inst.operands[1]).iter().enumerate() {
            let (first, within) = place_of(words, offset + (i * bytes) as i64, ty)?;
            let value = self.source(part, ty)?;
            let values = self.words_of(value).into_iter().chain([Operand::zero(); 3]);
            for (n, value) in values.take(bytes.div_ceil(4)).enumerate() {
                let own = (bytes - 4 * n).min(4);
                if own == 4 && within == 0 {
                    self.copy(words[first + n], value);
                    continue;
                }
                self.insert_bytes(words[first + n], value, within, 0..own.min(4 - within));
                if within + own > 4 {
                    self.insert_bytes(words[first + n + 1], value, 0, 4 - within..own);
                }
            }
        }
        Ok(())
    }

    /// Writes bytes of a value over those of a word from a place on.
    fn insert_bytes(&mut self, word: Operand, value: Operand, at: usize, bytes: std::ops::Range<usize>) {
        // PRMT selector: the bytes of the old word, with those of the value in their place.
        let mut selector = 0x3210;
        for (n, byte) in bytes.enumerate() {
            let place = 4 * (at + n);
            selector = selector & !(0xf << place) | (4 + byte as u32) << place;
        }
        let selector = self.imm(selector);
        self.put(Op::PRMT, &[], &[(Role::D, word), (Role::A, word), (Role::B, selector), (Role::C, value)]);
    }

    /// All 32-bit words of an operand.
    pub fn words_of(&mut self, value: Operand) -> Vec<Operand> {
        match value.kind() {
            Kind::Vector(vector) => self.f.vector_regs(vector).iter().map(|r| Operand::reg(*r)).collect(),
            Kind::Imm(_) => self.words(value).to_vec(),
            _ => vec![value],
        }
    }

    /// Writes a loaded value of up to 32 bits into a destination of any width.
    pub fn widen_into(&mut self, d: Operand, loaded: Operand, ty: ScalarType) {
        let [low, _] = self.words(loaded);
        let Kind::Vector(_) = d.kind() else { return self.copy(d, low) };
        let [d_lo, d_hi] = self.words(d);
        self.copy(d_lo, low);
        if is_signed(ty) {
            self.sign_word(d_hi, low);
        } else {
            self.copy(d_hi, Operand::zero());
        }
    }
}

/// Index of the word and of the byte in it at which a value of this type begins.
fn place_of(words: &[Operand], offset: i64, ty: ScalarType) -> Lowered<(usize, usize)> {
    let bytes = (ty.bits() / 8) as usize;
    let at = usize::try_from(offset).map_err(|_| Refusal::NotBuilt)?;
    if bytes > 0 && at + bytes <= 4 * words.len() { Ok((at / 4, at % 4)) } else { Err(Refusal::NotBuilt) }
}
