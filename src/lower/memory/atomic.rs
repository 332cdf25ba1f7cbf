//! Atomic operations: `atom` and `red`, scalar and vector.
//!
//! Emits ATOMG, ATOM, ATOMS and RED. Operations that no unit executes become a pseudo-operation,
//! which ConvertUnsupportedOps expands to a compare-and-swap loop (`src/legal/atomic.rs`).
//! `tables/lowering/atomic.ron` says which is which; an operation without a row is refused.

use super::address::{Place, Window};
use super::load_store::{AccessMods, elements};
use super::memory_model::Order;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::mods::*;
use crate::ori::{Kind, Operand};
use crate::ptx::ast;
use crate::tables::memory::{Access, AtomicHow, AtomicRow, AtomicSpace};
use crate::tables::ptx::{AtomOp, Op as PtxOp, ScalarType};
use crate::tables::{Op, Role};
use smallvec::SmallVec;

/// An atomic operation with its operands.
#[derive(Clone)]
struct Atomic {
    op: AtomOp,
    /// Type modifier of the instruction.
    size: M,
    order: Order,
    /// RZ if the result is not used.
    d: Operand,
    b: Operand,
    c: Operand,
}

impl Builder<'_> {
    /// `atom` and `red`
    pub fn atomic(&mut self, inst: &ast::Instruction) -> Lowered {
        let (op, ty) = (inst.mods.atom_op.ok_or(Refusal::NotBuilt)?, inst.types[0]);
        let reduce = matches!(inst.op, PtxOp::Red | PtxOp::RedAsync);
        let at = usize::from(!reduce);
        let place = self.place(&inst.operands[at], inst.mods.space)?;
        let count = inst.mods.vector.map_or(1, |v| v.elements());
        let row = row_of(op, ty, count, place.window, inst.mods.noftz)?;
        let order = self.order(Access::Atom, inst, place.window)?;
        let size = row.size.ok_or(Refusal::NotBuilt)?;
        if count > 1 {
            return self.vector_atomic(inst, at, (op, ty, size), order, place);
        }
        let b = self.atomic_value(&inst.operands[at + 1], ty)?;
        let b = if op == AtomOp::Cas { self.never_zero(b, ty) } else { b };
        let c = if op == AtomOp::Cas { self.atomic_value(&inst.operands[at + 2], ty)? } else { Operand::NULL };
        let d = if reduce { Operand::zero() } else { self.dest(&inst.operands[0])? };
        let atomic = Atomic { op, size, order, d, b, c };
        self.before(&atomic.order);
        match (row.how, place.window) {
            (AtomicHow::Unit, Window::Shared) => self.on_shared(Op::ATOMS, &atomic, place),
            (AtomicHow::Unit, _) => self.unit_atomic(Op::ATOM, &atomic, place),
            (AtomicHow::Loop, _) => self.on_shared(Op::ATOMS_LOOP, &atomic, place),
            (AtomicHow::Half, _) => self.on_half(atomic.clone(), place),
            (AtomicHow::Split, _) => self.unit_atomic(Op::ATOM_SPLIT, &atomic, place),
        }
        self.after(&atomic.order);
        Ok(())
    }

    /// Exchanges a word of global memory, and drops the old one.
    pub fn swap_word(&mut self, word: Operand, place: Place, order: Order) {
        let atomic = Atomic { op: AtomOp::Exch, size: SIZE_32, order, d: Operand::zero(), b: word, c: Operand::NULL };
        self.unit_atomic(Op::ATOM, &atomic, place);
    }

    fn atomic_value(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        match ty.bits() {
            128 => self.source(operand, ty),
            64 => self.source_pair(operand, ty),
            _ => self.source_reg(operand, ty),
        }
    }

    /// An atomic operation on several elements.
    fn vector_atomic(
        &mut self,
        inst: &ast::Instruction,
        at: usize,
        (op, ty, size): (AtomOp, ScalarType, M),
        order: Order,
        place: Place,
    ) -> Lowered {
        let words = self.gather(elements(&inst.operands[at + 1]), ty)?;
        let count = words.len();
        let b = self.side_by_side(words);
        let (vector, regs) = self.temp_vector(count);
        let whole = if count == 1 { regs[0] } else { vector };
        let d = if at == 0 { Operand::zero() } else { whole };
        let atomic = Atomic { op, size, order, d, b, c: Operand::NULL };
        self.before(&atomic.order);
        self.unit_atomic(Op::ATOM, &atomic, place);
        if at == 1 {
            self.scatter_parts(elements(&inst.operands[0]), ty, &regs)?;
        }
        self.after(&atomic.order);
        Ok(())
    }

    /// An operation on shared memory: native, or a pseudo-operation that legalization expands to a
    /// loop.
    fn on_shared(&mut self, op: Op, atomic: &Atomic, place: Place) {
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, &atomic.order, &mut args);
        args.extend([(Role::D, atomic.d), (Role::B, atomic.b), (Role::C, atomic.c)]);
        args.retain(|(role, operand)| *role != Role::C || !operand.is_null());
        self.put(op, &[atomic.op.modifier(), atomic.size], &args);
    }

    /// A 16-bit operation, which legalization expands to a loop. Its loads need the descriptor of
    /// global memory; the cache policy, which is only a hint, is dropped.
    fn on_half(&mut self, atomic: Atomic, place: Place) {
        let op = match place.window {
            Window::Shared => return self.on_shared(Op::ATOMS_HALF, &atomic, place),
            Window::Global => Op::ATOMG_HALF,
            _ => Op::ATOM_HALF,
        };
        let order = Order { policy: Operand::NULL, ..atomic.order.clone() };
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, &order, &mut args);
        args.extend([(Role::D, atomic.d), (Role::B, atomic.b), (Role::C, atomic.c)]);
        let mut mods = self.access_mods(atomic.size, place.window, &order);
        mods.push(atomic.op.modifier());
        self.put(op, &mods, &args);
    }

    /// A native operation on global memory; `op` is the opcode for a generic address.
    fn unit_atomic(&mut self, op: Op, atomic: &Atomic, place: Place) {
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        let mut order = atomic.order.clone();
        if atomic.op == AtomOp::Cas {
            // Compare-and-swap has no form with a cache policy, which is only a hint.
            order.policy = Operand::NULL;
        }
        self.address_args(place, &order, &mut args);
        args.push((Role::B, atomic.b));
        let mut mods: AccessMods = self.access_mods(atomic.size, place.window, &order);
        mods.push(atomic.op.modifier());
        let swaps = matches!(atomic.op, AtomOp::Cas | AtomOp::Exch);
        if atomic.d == Operand::zero() && place.window == Window::Global && !swaps {
            self.put(Op::RED, &mods, &args);
            return;
        }
        if atomic.op == AtomOp::Cas {
            // It has no form with a descriptor either.
            args.retain(|(role, _)| *role != Role::Desc);
            args.push((Role::C, atomic.c));
        }
        args.push((Role::D, atomic.d));
        self.put(if place.window == Window::Global { Op::ATOMG } else { op }, &mods, &args);
    }

    /// A compare value in registers: not every generation takes RZ there.
    fn never_zero(&mut self, value: Operand, ty: ScalarType) -> Operand {
        if value != Operand::zero() || matches!(value.kind(), Kind::Vector(_)) {
            return value;
        }
        let fresh = if ty.bits() == 64 { self.temp_pair() } else { self.temp() };
        self.copy_value(fresh, value);
        fresh
    }
}

/// The row for this operation, type and address space.
fn row_of(op: AtomOp, ty: ScalarType, count: u32, window: Window, noftz: bool) -> Lowered<&'static AtomicRow> {
    let space = match window {
        Window::Global => AtomicSpace::Global,
        Window::Shared => AtomicSpace::Shared,
        Window::Generic => AtomicSpace::Generic,
        Window::Local | Window::Bank(_) => return Err(Refusal::NotBuilt),
    };
    AtomicRow::of(op, ty, count, space, noftz).ok_or(Refusal::NotBuilt)
}
