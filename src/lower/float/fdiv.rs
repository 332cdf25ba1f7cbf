//! Float division and roots: `div`, `rcp` and `sqrt` with a rounding mode, `div.full`, `rsqrt` of
//! f64.
//!
//! Each becomes one pseudo-operation with its rounding and `.ftz`, which LateExpansion expands
//! (`src/legal/fdiv.rs`, `src/legal/fsqrt.rs`). Approximate functions that MUFU computes alone are
//! emitted directly.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{Modifiers, Op as PtxOp, Precision, Rounding, ScalarType};
use crate::tables::{Op, Role};
use smallvec::SmallVec;

/// Modifiers for the rounding of the result and for flushing subnormals.
fn mods_of(mods: &Modifiers) -> SmallVec<[M; 6]> {
    let rounding = match mods.rounding {
        Some(Rounding::Rm) => Some(RM),
        Some(Rounding::Rp) => Some(RP),
        Some(Rounding::Rz) => Some(RZ),
        _ => None,
    };
    rounding.into_iter().chain(mods.ftz.then_some(FTZ)).collect()
}

impl Builder<'_> {
    /// `div` with a rounding mode or `.full`.
    pub fn divide(&mut self, inst: &ast::Instruction) -> Lowered {
        let (ty, mods) = (inst.types[0], mods_of(&inst.mods));
        let op = match (ty, inst.mods.precision) {
            (ScalarType::F64, None) => Op::DDIV,
            (ScalarType::F32, None) => Op::FDIV,
            (ScalarType::F32, Some(Precision::Full)) => Op::FDIV_FULL,
            (ScalarType::F32, Some(_)) => return self.divide_approximately(inst),
            _ => return Err(Refusal::NotBuilt),
        };
        let [a, b] = [1, 2].each(|i| &inst.operands[i]);
        let (a, b) = (self.float_in_register(a, ty)?, self.float_in_register(b, ty)?);
        let d = self.dest(&inst.operands[0])?;
        self.put(op, &mods, &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        Ok(())
    }

    /// `rcp` and `sqrt` with a rounding mode.
    pub fn exact_function(&mut self, inst: &ast::Instruction) -> Lowered {
        let (ty, mods) = (inst.types[0], mods_of(&inst.mods));
        let op = match (inst.op, ty) {
            (PtxOp::Rcp, ScalarType::F64) => Op::DRCP,
            (PtxOp::Rcp, _) => Op::FRCP,
            (_, ScalarType::F64) => Op::DSQRT,
            _ => Op::FSQRT,
        };
        let x = self.float_in_register(&inst.operands[1], ty)?;
        let d = self.dest(&inst.operands[0])?;
        self.put(op, &mods, &[(Role::D, d), (Role::A, x)]);
        Ok(())
    }

    /// `rcp.approx.ftz.f64` and `rsqrt.approx.f64`. MUFU reads only the high word; without `.ftz`,
    /// `rsqrt` is a pseudo-operation on the whole number.
    pub fn approximate_double(&mut self, inst: &ast::Instruction) -> Lowered {
        let x = self.pair_source(&inst.operands[1], ScalarType::F64)?;
        let d = self.dest(&inst.operands[0])?;
        let result = match inst.op {
            PtxOp::Rcp => self.mufu_high(MUFU_RCP64H, x),
            PtxOp::Rsqrt if inst.mods.ftz => self.mufu_high(MUFU_RSQ64H, x),
            PtxOp::Rsqrt => {
                self.put(Op::DRSQRT, &[], &[(Role::D, d), (Role::A, x)]);
                return Ok(());
            }
            _ => return Err(Refusal::NotBuilt),
        };
        self.copy_value(d, result);
        Ok(())
    }

    /// A source of a float operation in registers.
    fn float_in_register(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        if ty == ScalarType::F64 { self.pair_source(operand, ty) } else { self.source_reg(operand, ty) }
    }

    /// A 64-bit source in a register pair, zero included.
    pub fn pair_source(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        let value = self.source_pair(operand, ty)?;
        Ok(if value == Operand::zero() { self.pair_of([value; 2]) } else { value })
    }
}
