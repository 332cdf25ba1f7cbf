//! What code of a relocatable object leaves to a linker: addresses of variables, functions, tables, and where calls go.
//!
//! Input: the names of the module. Output: MOVs whose constant a linker fills in, one per 32-bit word, and CALLs with an absolute
//! target. Invariant: every place in code or memory that the module alone does not settle is named by a symbol here; what a linker
//! may fill in is a whole constant of a MOV or the target of a CALL, nothing else.

use super::abi::RETURN_ADDRESS;
use super::builder::Builder;
use super::call::Target;
use super::module::is_shared;
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
    /// A word that a linker fills in.
    pub fn linked(&mut self, role: RelocRole, name: &str, addend: i64) -> Operand {
        let symbol = self.f.symbol(Symbol::Linked { role, name: name.to_string(), addend });
        let word = self.temp();
        self.put(Op::MOV, &[], &[(Role::D, word), (Role::A, symbol)]);
        word
    }

    /// Base and offset of a variable of the object; `None` for what lies in the frame or among the parameters of an entry.
    pub fn linked_place(&mut self, id: SymbolId) -> Option<(Operand, i64)> {
        let SymbolKind::Variable(variable) = &self.module.symbols[id].kind else { return None };
        let name = self.globals.link_name(self.module, id);
        match variable.space {
            Space::Global => {
                let words = [RelocRole::AddressLow, RelocRole::AddressHigh].map(|role| self.linked(role, &name, 0));
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

    /// An offset in the function's branch tables as one in its bank.
    pub fn in_table(&mut self, offset: Operand) -> Operand {
        let name = branch_tables(&self.source.name);
        let (table, sum) = (self.linked(RelocRole::Constant, &name, 0), self.temp());
        self.add(sum, table, offset);
        sum
    }

    /// The CALL and its return address.
    pub fn transfer_linked(
        &mut self,
        target: Target,
        uses: &mut Vec<Operand>,
        defs: &[Operand],
        frame: Option<(Operand, u64)>,
    ) {
        let [low, high] = RETURN_ADDRESS.map(|n| self.f.new_fixed(File::R, n));
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
