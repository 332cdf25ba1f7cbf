//! Rematerialization: values that are cheaper to recompute than to spill, which are constants and
//! loads from constant banks at fixed offsets.
//!
//! The value depends only on the defining instruction itself, so it is the same wherever it is
//! recomputed.

use crate::ori::{Function, InstId, Kind, Operand, VReg};
use crate::tables::{Mod, Mods, Op, Prop, Role};

/// One word of a result as an instruction without register sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recompute {
    /// Opcode of the recomputing instruction.
    pub op: Op,
    /// Modifiers of the recomputing instruction.
    pub mods: Mods,
    /// Its only source: an immediate or a constant-bank operand.
    pub source: Operand,
}

/// How to recompute a register, if its defining instruction can be repeated.
pub fn recompute(function: &Function, inst: InstId, reg: VReg) -> Option<Recompute> {
    let data = &function[inst];
    let d = function.arg(inst, Role::D);
    if !data.guard.is_null() || d != d.plain() {
        return None;
    }
    let mut mods = data.mods;
    match data.op {
        op if op.has(Prop::Moves) => {
            let source = function.arg(inst, Role::A);
            let constant =
                matches!(source.kind(), Kind::Imm(_) | Kind::Const { .. } | Kind::Zero) && source == source.plain();
            (constant && function.arg(inst, Role::Lanes).is_null() && d.as_reg() == Some(reg)).then_some(Recompute {
                op: data.op,
                mods,
                source,
            })
        }
        op if op.has(Prop::LoadsConstant) => {
            let index = function.arg(inst, Role::A);
            let Kind::Const { bank, offset } = function.arg(inst, Role::C).kind() else { return None };
            if !matches!(index.kind(), Kind::Null | Kind::Zero) {
                return None;
            }
            let word = match d.as_vector() {
                None => 0,
                Some(vector) => {
                    mods.set(Mod::Size, crate::tables::value::size::NONE);
                    function.vector_regs(vector).iter().position(|r| *r == reg)?
                }
            };
            let offset = offset.checked_add(4 * word as u16)?;
            Some(Recompute { op: data.op, mods, source: Operand::constant(bank, offset) })
        }
        _ => None,
    }
}

impl Recompute {
    /// Creates the instruction that writes the value to a register.
    pub fn make(&self, function: &mut Function, to: VReg) -> InstId {
        let inst = function.make(self.op);
        function[inst].mods = self.mods;
        function.set_arg(inst, Role::D, Operand::reg(to));
        let role = if self.op.has(Prop::Moves) { Role::A } else { Role::C };
        function.set_arg(inst, role, self.source);
        inst
    }
}
