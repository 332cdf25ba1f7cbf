//! Immediate operands, symbols, and what calls of a symbol may change.

use super::{Function, InstId, Symbol};
use crate::ori::operand::{Kind, Operand};
use crate::ori::quads;
use crate::tables::helpers::Helper;
use crate::tables::registers::Callee;
use crate::tables::{Op, Prop, Role};

impl Function {
    /// An immediate operand with these 64 bits.
    pub fn imm(&mut self, bits: u64) -> Operand {
        let next = self.pool.len() as u32;
        let index = *self.pool_index.entry(bits).or_insert(next);
        if index == next {
            self.pool.push(bits);
        }
        Operand::pooled(index)
    }

    /// Value of an immediate operand.
    #[inline]
    pub fn imm_value(&self, operand: Operand) -> Option<u64> {
        match operand.kind() {
            Kind::Imm(index) => self.pool.get(index as usize).copied(),
            _ => None,
        }
    }

    /// The word that an immediate or RZ is, without modifiers.
    #[inline]
    pub fn word_value(&self, operand: Operand) -> Option<u32> {
        match operand.kind() {
            _ if operand != operand.plain() => None,
            Kind::Zero => Some(0),
            _ => self.imm_value(operand).map(|value| value as u32),
        }
    }

    /// A symbol operand; equal symbols are one operand.
    pub fn symbol(&mut self, symbol: Symbol) -> Operand {
        if let Some(index) = self.symbol_index.get(&symbol) {
            return Operand::symbol(*index);
        }
        let index = self.symbols.len() as u32;
        self.symbols.push(symbol.clone());
        self.symbol_index.insert(symbol, index);
        Operand::symbol(index)
    }

    /// The symbol of an operand.
    #[inline]
    pub fn symbol_of(&self, operand: Operand) -> Option<&Symbol> {
        match operand.kind() {
            Kind::Symbol(index) => self.symbols.get(index as usize),
            _ => None,
        }
    }

    /// What an instruction calls, if it may change registers that it does not name.
    #[inline]
    pub fn callee(&self, inst: InstId) -> Option<Callee> {
        self.insts[inst].op.has(Prop::Clobbers).then(|| self.called(inst))
    }

    /// The same of an instruction that may change registers. Few do: what asks of all of them has
    /// no need of this code.
    #[inline(never)]
    fn called(&self, inst: InstId) -> Callee {
        if self.insts[inst].op == Op::TEX_QUADS {
            return Callee::SlowPath(quads::KEPT);
        }
        match self.symbol_of(self.arg(inst, Role::Target)) {
            Some(Symbol::SlowPath(id)) => {
                Callee::SlowPath(Helper::by_id(*id).map_or(0, |helper| helper.family().slow_path))
            }
            Some(Symbol::Driver) => Callee::Driver,
            Some(Symbol::Function(name)) if !self.attributes.private_callees.is_empty() => {
                self.attributes.private_callees.get(name).map_or(Callee::Device, |changes| Callee::Private(*changes))
            }
            _ => Callee::Device,
        }
    }
}
