//! Linker-resolved operands of a relocatable object: addresses of variables, functions and branch
//! tables, and call targets.
//!
//! Every address that the module alone does not determine is a named symbol. A linker fills in only
//! the whole 32-bit constant of a MOV or the absolute target of a CALL.

use super::layout::is_shared;
use crate::arrays::Each;
use crate::lower::builder::Builder;
use crate::lower::call::abi::RETURN_ADDRESS;
use crate::lower::call::call_site::Target;
use crate::ori::mods::*;
use crate::ori::{File, Operand, Symbol};
use crate::ptx::ast::{SymbolId, SymbolKind};
use crate::tables::elf::RelocRole;
use crate::tables::ptx::Space;
use crate::tables::{Feature, Op, Role};

/// Name of the symbol of a function's branch tables.
pub fn branch_tables(function: &str) -> String {
    format!("$__tables__{function}")
}

impl Builder<'_> {
    /// A 32-bit word that a linker fills in, in a register.
    pub fn linked(&mut self, role: RelocRole, name: &str, addend: i64) -> Operand {
        let symbol = self.f.symbol(Symbol::Linked { role, name: name.to_string(), addend });
        let word = self.temp();
        self.put(Op::MOV, &[], &[(Role::D, word), (Role::A, symbol)]);
        word
    }

    /// Base and offset of a variable of the object; `None` for variables in the frame and for
    /// parameters of an entry.
    pub fn linked_place(&mut self, id: SymbolId) -> Option<(Operand, i64)> {
        let SymbolKind::Variable(variable) = &self.module.symbols[id].kind else { return None };
        let name = self.globals.link_name(self.module, id);
        match variable.space {
            Space::Global => {
                let words = [RelocRole::AddressLow, RelocRole::AddressHigh].each(|role| self.linked(role, &name, 0));
                Some((self.pair_of(words), 0))
            }
            Space::Const => Some((self.linked(RelocRole::Constant, &name, 0), 0)),
            space if is_shared(space) => {
                let own = self.linked(RelocRole::Shared, &name, 0);
                if !self.has(Feature::SharedClusterWindow) {
                    return Some((own, self.info.shared_base.into()));
                }
                let (base, window) = (self.temp(), self.shared_window());
                self.add(base, window, own);
                Some((base, self.info.shared_base.into()))
            }
            _ => None,
        }
    }

    /// Adds the base of the function's branch tables to an offset in them.
    pub fn in_table(&mut self, offset: Operand) -> Operand {
        let name = branch_tables(&self.source.name);
        let (table, sum) = (self.linked(RelocRole::Constant, &name, 0), self.temp());
        self.add(sum, table, offset);
        sum
    }

    /// Emits the CALL and computes its return address.
    pub fn transfer_linked(
        &mut self,
        target: Target,
        uses: &mut Vec<Operand>,
        defs: &[Operand],
        frame: Option<(Operand, u64)>,
    ) {
        let [low, high] = RETURN_ADDRESS.each(|n| self.f.new_fixed(File::R, n));
        for (reg, high) in [(low, false), (high, true)] {
            let address = self.f.symbol(Symbol::Return { high });
            self.put(Op::MOV, &[], &[(Role::D, Operand::reg(reg)), (Role::A, address)]);
        }
        uses.extend([Operand::reg(low), Operand::reg(high)]);
        if let Target::System(name) = &target
            && !self.externs.contains(name)
        {
            self.externs.push(name.clone());
        }
        let (address, place) = match target {
            Target::Function(name) | Target::System(name) => {
                let symbol = Symbol::Linked { role: RelocRole::Call, name, addend: 0 };
                (Operand::NULL, self.f.symbol(symbol))
            }
            Target::Pointer(pointer) => (pointer, Operand::NULL),
        };
        self.lower_stack(frame);
        let call = self.put(Op::CALL, &[MODE_ABS, NOINC], &[(Role::A, address), (Role::Target, place)]);
        self.f.set_extras(call, uses, defs);
        self.raise_stack(frame);
    }
}
