//! Atomic operations with and without a result.
//!
//! Input: `atom` and `red`. Output: ATOMG, ATOM, ATOMS and RED. Shared memory has no 64-bit or floating-point addition of its own: those are loops in which a
//! compare-and-swap is tried until it takes.

use super::address::Window;
use super::builder::{Builder, Lowered, Refusal};
use super::memory::AccessMods;
use super::mods::*;
use super::order::Order;
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{AtomOp, Op as PtxOp, ScalarType};
use crate::tables::{Op, Role};
use smallvec::SmallVec;

/// The operation of a memory unit.
fn operation(op: AtomOp) -> M {
    match op {
        AtomOp::Add => AOP_ADD,
        AtomOp::Min => AOP_MIN,
        AtomOp::Max => AOP_MAX,
        AtomOp::Inc => AOP_INC,
        AtomOp::Dec => AOP_DEC,
        AtomOp::And => AOP_AND,
        AtomOp::Or => AOP_OR,
        AtomOp::Xor => AOP_XOR,
        AtomOp::Exch => AOP_EXCH,
        AtomOp::Cas => AOP_CAS,
    }
}

/// Width and type as the units of global memory know them. A sign matters for minimum and maximum only.
fn size(op: AtomOp, ty: ScalarType) -> Lowered<M> {
    let signed = matches!(op, AtomOp::Min | AtomOp::Max) && super::operand::is_signed(ty);
    Ok(match (ty, ty.bits(), signed) {
        (ScalarType::F32, ..) if op == AtomOp::Add => ATOM_F32,
        (ScalarType::F64, ..) if op == AtomOp::Add => ATOM_F64,
        (ScalarType::F16 | ScalarType::Bf16 | ScalarType::F16x2 | ScalarType::Bf16x2, ..) => {
            return Err(Refusal::NotBuilt);
        }
        (_, 32, true) => ATOM_S32,
        (_, 32, false) => SIZE_32,
        (_, 64, true) => ATOM_S64,
        (_, 64, false) => SIZE_64,
        _ => return Err(Refusal::NotBuilt),
    })
}

impl Builder<'_> {
    /// `atom` and `red`
    pub fn atomic(&mut self, inst: &ast::Instruction) -> Lowered {
        let (op, ty) = (inst.mods.atom_op.ok_or(Refusal::NotBuilt)?, inst.types[0]);
        if inst.mods.vector.is_some() || inst.mods.cache_hint {
            return Err(Refusal::NotBuilt);
        }
        let reduce = inst.op == PtxOp::Red;
        let at = usize::from(!reduce);
        let order = Order::of_atomic(&inst.mods);
        let place = self.place(&inst.operands[at], inst.mods.space)?;
        let value = |s: &mut Self, i: usize| {
            if ty.bits() == 64 { s.source_pair(&inst.operands[i], ty) } else { s.source_reg(&inst.operands[i], ty) }
        };
        let b = value(self, at + 1)?;
        let c = if op == AtomOp::Cas { value(self, at + 2)? } else { Operand::NULL };
        let d = if reduce { Operand::zero() } else { self.dest(&inst.operands[0])? };
        self.before(&order, place.window);
        let size = size(op, ty)?;
        let which = operation(op);
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, &mut args);
        args.extend([(Role::B, b), (Role::C, c)]);
        match place.window {
            Window::Shared if shared_unit_has(op, ty) => {
                args.push((Role::D, d));
                self.put(Op::ATOMS, &[which, size], &args);
            }
            Window::Global | Window::Generic => {
                let mut mods: AccessMods = self.access_mods(size, place.window, &order);
                mods.push(which);
                let has_result = op == AtomOp::Cas || op == AtomOp::Exch || !reduce;
                match (has_result, place.window) {
                    (false, Window::Global) => {
                        args.pop();
                        self.put(Op::RED, &mods, &args);
                    }
                    (_, Window::Global) => {
                        args.push((Role::D, d));
                        self.put(Op::ATOMG, &mods, &args);
                    }
                    _ => {
                        args.push((Role::D, d));
                        self.put(Op::ATOM, &mods, &args);
                    }
                }
            }
            _ => return Err(Refusal::NotBuilt),
        }
        self.after(&order, place.window);
        Ok(())
    }
}

/// What the unit of shared memory does by itself.
fn shared_unit_has(op: AtomOp, ty: ScalarType) -> bool {
    match ty.bits() {
        32 => ty != ScalarType::F32 || matches!(op, AtomOp::Exch | AtomOp::Cas),
        _ => matches!(op, AtomOp::Exch | AtomOp::Cas),
    }
}
