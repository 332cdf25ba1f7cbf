//! Adds offsets that do not fit their field to the address.
//!
//! Applies to memory accesses whose recipe has an `arch` step for the immediate. The sum of address
//! and offset goes to fresh registers and the offset becomes zero; nothing changes if that does not
//! help. The same byte is accessed, because addresses are added modulo their width.

use super::{Legalizer, fresh};
use crate::ori::mods::X;
use crate::ori::{File, Function, InstId, Kind, Operand};
use crate::tables::operands::{Material, RecipeInfo};
use crate::tables::{Op, Role};

/// Offset roles, each with the role of the address it is added to.
const ADDED_TO: [(Role, Role); 2] = [(Role::Off, Role::A), (Role::Soff, Role::S)];

impl Legalizer<'_> {
    /// Adds offsets that do not fit; returns the additions.
    pub(super) fn split_offsets(&mut self, function: &mut Function, inst: InstId, recipe: &RecipeInfo) -> Vec<InstId> {
        let mut before = Vec::new();
        for step in recipe.steps.iter().filter(|step| step.by == Material::Arch) {
            let Some((_, base)) = ADDED_TO.into_iter().find(|(offset, _)| *offset == step.role) else { continue };
            let (offset, address) = (function.arg(inst, step.role), function.arg(inst, base));
            let Some(bytes) = function.imm_value(offset).filter(|_| address == address.plain()) else { continue };
            let none = function.imm(0);
            function.set_arg(inst, step.role, none);
            let fits = (self.encodes)(function, inst);
            let sum = if fits { self.sum(function, inst, address, bytes, &mut before) } else { None };
            match sum {
                Some(sum) => function.set_arg(inst, base, sum),
                None => function.set_arg(inst, step.role, offset),
            }
        }
        before
    }

    /// `address + bytes` in fresh registers.
    fn sum(
        &self,
        function: &mut Function,
        inst: InstId,
        address: Operand,
        bytes: u64,
        out: &mut Vec<InstId>,
    ) -> Option<Operand> {
        let words: Vec<Operand> = match address.kind() {
            Kind::Reg(_) => vec![address],
            Kind::Vector(vector) => function.vector_regs(vector).iter().map(|reg| Operand::reg(*reg)).collect(),
            _ => return None,
        };
        if words.len() > 2 {
            return None;
        }
        let sum = fresh(function, File::R, words.len());
        let carry = Operand::reg(function.new_reg(File::P));
        for (at, word) in words.iter().enumerate() {
            let to = sum.as_vector().map_or(sum, |vector| Operand::reg(function.vector_regs(vector)[at]));
            let amount = bytes >> (32 * at) & 0xffff_ffff;
            let amount = if amount == 0 { Operand::zero() } else { function.imm(amount) };
            let add = function.make(Op::IADD3);
            for (role, operand) in [(Role::D, to), (Role::A, *word), (Role::B, amount), (Role::C, Operand::zero())] {
                function.set_arg(add, role, operand);
            }
            if at == 1 {
                function[add].mods.set(X.0, X.1);
                function.set_arg(add, Role::Pp, carry);
                function.set_arg(add, Role::Pq, Operand::never());
            } else if words.len() == 2 {
                function.set_arg(add, Role::Pu, carry);
            }
            function[add].line = function[inst].line;
            out.push(add);
        }
        Some(sum)
    }
}
