//! Packed 8- and 16-bit lanes in one instruction: PTX 9.2.
//!
//! Lowers `add sub neg min max` of `u8x4` and `s8x4`, and `add.sat` of packed types and `u32`, to
//! one VIADD or VIMNMX, and `set` of packed integers to one VISET. The front end accepts these
//! forms only for targets that have the opcodes.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{Compare, MulMode, Op as Ptx, ScalarType};
use crate::tables::{Op, Role};

/// Whether an instruction is of these.
pub fn is_one_instruction(inst: &ast::Instruction) -> bool {
    let packed = match inst.types.first() {
        Some(ScalarType::U8x4 | ScalarType::S8x4) => {
            matches!(inst.op, Ptx::Add | Ptx::Sub | Ptx::Neg | Ptx::Min | Ptx::Max)
        }
        _ => false,
    };
    let pairs = matches!(inst.types.first(), Some(ScalarType::U16x2 | ScalarType::S16x2 | ScalarType::U32));
    packed || pairs && inst.op == Ptx::Add && inst.mods.saturate
}

impl Builder<'_> {
    /// `add sub neg min max` of packed lanes.
    pub fn lanes(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let first = self.source_reg(&inst.operands[1], ty)?;
        let second = match inst.operands.get(2) {
            Some(operand) => Some(self.source_reg(operand, ty)?),
            None => None,
        };
        let d = self.dest(&inst.operands[0])?;
        if let (Ptx::Min | Ptx::Max, Some(b)) = (inst.op, second) {
            let which = if inst.op == Ptx::Max { Operand::never() } else { Operand::always() };
            let kind = if ty == ScalarType::S8x4 { VTYPE_S8X4 } else { VTYPE_U8X4 };
            self.put(Op::VIMNMX, &[kind], &[(Role::D, d), (Role::A, first), (Role::B, b), (Role::Pp, which)]);
            return Ok(());
        }
        let kind = match ty {
            ScalarType::U8x4 => Some(U8X4_LANES),
            ScalarType::S8x4 => Some(S8X4_LANES),
            ScalarType::S16x2 => Some(S16X2_LANES),
            ScalarType::U16x2 => Some(X16X2),
            _ => None,
        };
        let clamped = inst.mods.saturate.then_some(CLAMPED);
        let mods: Vec<M> = kind.into_iter().chain(clamped).collect();
        let (a, b) = match second {
            Some(b) if inst.op == Ptx::Sub => (first, self.negative(b)),
            Some(b) => (first, b),
            None => (Operand::zero(), self.negative(first)),
        };
        self.put(Op::VIADD, &mods, &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        Ok(())
    }

    /// `set` of packed integers: all ones in each element for which the comparison holds.
    pub fn set_lanes(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let kind = match ty {
            ScalarType::U8x4 => VTYPE_U8X4,
            ScalarType::S8x4 => VTYPE_S8X4,
            ScalarType::U16x2 => VTYPE_U16X2,
            ScalarType::S16x2 => VTYPE_S16X2,
            _ => return Err(Refusal::NotBuilt),
        };
        let compare = match inst.mods.compare.ok_or(Refusal::NotBuilt)? {
            Compare::Eq => EQ,
            Compare::Ne => NE,
            Compare::Lt | Compare::Lo => LT,
            Compare::Le | Compare::Ls => LE,
            Compare::Gt | Compare::Hi => GT,
            Compare::Ge | Compare::Hs => GE,
            _ => return Err(Refusal::NotBuilt),
        };
        let [a, b] = [1, 2].each(|at| self.source_reg(&inst.operands[at], ty));
        let (a, b, d) = (a?, b?, self.dest(&inst.operands[0])?);
        self.put(Op::VISET, &[compare, kind], &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        Ok(())
    }

    /// `clmad`: one half of a product without carries, and a sum without them.
    pub fn carryless_product(&mut self, inst: &ast::Instruction) -> Lowered {
        let [a, b, c] = [1, 2, 3].each(|at| self.source_pair(&inst.operands[at], inst.types[0]));
        let (a, b, c, d) = (a?, b?, c?, self.dest(&inst.operands[0])?);
        let part: &[M] = if inst.mods.mul_mode == Some(MulMode::Hi) { &[PRODUCT_HI] } else { &[] };
        self.put(Op::CLMAD, part, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
        Ok(())
    }
}
