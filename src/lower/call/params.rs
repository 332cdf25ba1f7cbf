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
            Some(Home::Frame(start)) => {
                let base = self.stack_pointer();
                let load = |n: usize| {
                    let word = self.temp();
                    let offset = self.literal((start + 4 * n as u64) as i64);
                    self.put(Op::LDL, &[], &[(Role::D, word), (Role::A, base), (Role::Off, offset)]);
                    word
                };
                Ok((0..passed.words()).map(load).collect())
            }
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

    /// `ld.param` of a variable in registers.
    pub fn load_words(&mut self, inst: &ast::Instruction, words: &[Operand], offset: i64) -> Lowered {
        let ty = inst.types[0];
        let bytes = i64::from(ty.bits() / 8);
        for (i, part) in elements(&inst.operands[0]).iter().enumerate() {
            let d = self.dest(part)?;
            let (first, within) = place_of(words, offset + i as i64 * bytes, ty)?;
            if d == Operand::zero() {
                continue;
            }
            if ty.bits() > 32 {
                let own = self.words_of(d);
                own.into_iter().zip(&words[first..]).for_each(|(d, a)| self.copy(d, *a));
                continue;
            }
            let mut value = words[first];
            if within > 0 {
                let (shifted, places) = (self.temp(), self.imm(8 * within as u32));
                self.shf(&SHF_R_U32_HI, shifted, Operand::zero(), places, value);
                value = shifted;
            }
            let value = self.extend(value, ty);
            self.widen_into(d, value, ty);
        }
        Ok(())
    }

    /// `st.param` of a variable in registers.
    pub fn store_words(&mut self, inst: &ast::Instruction, words: &[Operand], offset: i64) -> Lowered {
        let ty = inst.types[0];
        let bytes = i64::from(ty.bits() / 8);
        for (i, part) in elements(&inst.operands[1]).iter().enumerate() {
            let (first, within) = place_of(words, offset + i as i64 * bytes, ty)?;
            let value = self.source(part, ty)?;
            let values = self.words_of(value);
            if ty.bits() >= 32 {
                let count = ty.bits() as usize / 32;
                let all = values.into_iter().chain([Operand::zero(); 3]).take(count);
                words[first..].iter().zip(all).for_each(|(d, a)| self.copy(*d, a));
                continue;
            }
            // PRMT selector: the bytes of the old word, with the bytes of the value in their place.
            let mut selector = 0x3210;
            for byte in 0..bytes as u32 {
                let at = 4 * (within as u32 + byte);
                selector = selector & !(0xf << at) | (4 + byte) << at;
            }
            let (value, selector) = (values[0], self.imm(selector));
            let word = words[first];
            self.put(Op::PRMT, &[], &[(Role::D, word), (Role::A, word), (Role::B, selector), (Role::C, value)]);
        }
        Ok(())
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

/// Index of the word and of the byte in it at which a value of this type is; the value must be
/// within one word or consist of whole words.
fn place_of(words: &[Operand], offset: i64, ty: ScalarType) -> Lowered<(usize, usize)> {
    let bytes = (ty.bits() / 8) as usize;
    let at = usize::try_from(offset).map_err(|_| Refusal::NotBuilt)?;
    let fits = bytes > 0 && at + bytes <= 4 * words.len() && at.is_multiple_of(bytes.min(4));
    if fits { Ok((at / 4, at % 4)) } else { Err(Refusal::NotBuilt) }
}
