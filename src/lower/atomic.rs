//! Atomic operations with and without a result.
//!
//! Input: `atom` and `red`. Output: ATOMG, ATOM, ATOMS and RED. Shared memory has no 64-bit or floating-point addition of its own: those are loops in which a
//! compare-and-swap is tried until it takes.

use super::address::{Place, Window};
use super::builder::{Builder, Lowered, Refusal};
use super::logic::{LUT_AND, LUT_OR, LUT_XOR};
use super::memory::AccessMods;
use super::mods::*;
use super::order::Order;
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{AtomOp, Op as PtxOp, ScalarType, Space};
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

/// One atomic operation, its operands read.
struct Atomic {
    op: AtomOp,
    ty: ScalarType,
    size: M,
    order: Order,
    /// RZ where the result is not wanted.
    d: Operand,
    b: Operand,
    c: Operand,
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
        let b = if op == AtomOp::Cas { self.never_zero(b, ty) } else { b };
        let c = if op == AtomOp::Cas { value(self, at + 2)? } else { Operand::NULL };
        let d = if reduce { Operand::zero() } else { self.dest(&inst.operands[0])? };
        let atomic = Atomic { op, ty, size: size(op, ty)?, order, d, b, c };
        self.before(&order, place.window);
        match place.window {
            Window::Shared => self.shared_atomic(&atomic, place)?,
            // Of 64 bits and of floats, a generic address may point where the unit cannot do it.
            Window::Generic if ty.bits() == 64 || !shared_unit_has(op, ty) => self.generic_atomic(&atomic, place)?,
            Window::Global | Window::Generic => self.unit_atomic(&atomic, place),
            _ => return Err(Refusal::NotBuilt),
        }
        self.after(&order, place.window);
        Ok(())
    }

    fn shared_atomic(&mut self, atomic: &Atomic, place: Place) -> Lowered {
        if !shared_unit_has(atomic.op, atomic.ty) {
            return self.swap_loop(atomic, place);
        }
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, &mut args);
        args.extend([(Role::D, atomic.d), (Role::B, atomic.b), (Role::C, atomic.c)]);
        self.put(Op::ATOMS, &[operation(atomic.op), atomic.size], &args);
        Ok(())
    }

    /// One instruction for the units of global memory.
    fn unit_atomic(&mut self, atomic: &Atomic, place: Place) {
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, &mut args);
        args.push((Role::B, atomic.b));
        let mut mods: AccessMods = self.access_mods(atomic.size, place.window, &atomic.order);
        mods.push(operation(atomic.op));
        let swaps = matches!(atomic.op, AtomOp::Cas | AtomOp::Exch);
        if atomic.d == Operand::zero() && place.window == Window::Global && !swaps {
            self.put(Op::RED, &mods, &args);
            return;
        }
        if atomic.op == AtomOp::Cas {
            // Compare-and-swap has no form with a descriptor.
            args.retain(|(role, _)| *role != Role::Desc);
            args.push((Role::C, atomic.c));
        }
        args.push((Role::D, atomic.d));
        self.put(if place.window == Window::Global { Op::ATOMG } else { Op::ATOM }, &mods, &args);
    }

    /// A generic address in two ways: in shared memory, or anywhere else.
    fn generic_atomic(&mut self, atomic: &Atomic, place: Place) -> Lowered {
        let [shared, other, done] = [(); 3].map(|()| self.f.new_block());
        let guard = self.skip_unless_guarded(done);
        let address = if place.offset == 0 { place.base } else { self.add_offset(place.base, place.offset) };
        let p = self.temp_pred();
        self.query_space(p, QSPC_SHARED, address);
        self.branch_if(p, shared, other);
        self.unit_atomic(atomic, Place { base: address, offset: 0, ..place });
        self.enter_after(done, shared);
        let local = self.temp_pair();
        self.generic_to_space(local, address, Space::Shared)?;
        let base = self.words(local)[0];
        self.shared_atomic(atomic, Place { window: Window::Shared, base, offset: 0 })?;
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    /// A compare value in registers: not every generation takes RZ there.
    fn never_zero(&mut self, value: Operand, ty: ScalarType) -> Operand {
        if value != Operand::zero() {
            return value;
        }
        let fresh = if ty.bits() == 64 { self.temp_pair() } else { self.temp() };
        self.copy_value(fresh, value);
        fresh
    }

    /// An operation on shared memory as a loop: read, compute, and swap in what was computed unless another lane was faster. Under a guard
    /// the loop stands behind a branch, so that nothing in it is guarded. The result is written behind the loop: its register may
    /// be one that the loop reads.
    fn swap_loop(&mut self, atomic: &Atomic, place: Place) -> Lowered {
        let wide = atomic.ty.bits() == 64;
        let size = if wide { SIZE_64 } else { SIZE_32 };
        let [again, took, done] = [(); 3].map(|()| self.f.new_block());
        let guard = self.skip_unless_guarded(done);
        let [old, got] = [(); 2].map(|()| if wide { self.temp_pair() } else { self.temp() });
        self.load_word(old, size, place, &Order::default())?;
        self.enter(again);
        let new = self.combined(atomic.op, atomic.ty, old, atomic.b)?;
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, &mut args);
        args.extend([(Role::D, got), (Role::B, old), (Role::C, new)]);
        self.put(Op::ATOMS, &[AOP_CAS, size], &args);
        let (p, got_words, old_words) = (self.temp_pred(), self.words(got), self.words(old));
        if wide {
            self.compare_words(p, NE, U32, got_words, old_words);
        } else {
            self.isetp(p, &[NE, AND, U32], got, old);
        }
        self.copy_value(old, got);
        self.branch_if(p, again, took);
        if atomic.d != Operand::zero() {
            self.copy_value(atomic.d, old);
        }
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    /// What the operation makes of an old value and the operand.
    fn combined(&mut self, op: AtomOp, ty: ScalarType, old: Operand, b: Operand) -> Lowered<Operand> {
        let wide = ty.bits() == 64;
        let new = if wide { self.temp_pair() } else { self.temp() };
        let (n, o, w) = (self.words(new), self.words(old), self.words(b));
        match (op, ty) {
            (AtomOp::Add, ScalarType::F32) => {
                self.put(Op::FADD, &[], &[(Role::D, new), (Role::A, old), (Role::B, b)]);
            }
            (AtomOp::Add, ScalarType::F64) => {
                self.put(Op::DADD, &[], &[(Role::D, new), (Role::A, old), (Role::B, b)]);
            }
            (AtomOp::Add, _) if wide => self.add_long(n, o, w, false),
            (AtomOp::Min | AtomOp::Max, _) if wide => {
                let (cmp, p) = (if op == AtomOp::Min { LT } else { GT }, self.temp_pred());
                let sign = if super::operand::is_signed(ty) { S32 } else { U32 };
                self.compare_words(p, cmp, sign, o, w);
                (0..2).for_each(|i| self.select(n[i], o[i], w[i], p));
            }
            (AtomOp::And | AtomOp::Or | AtomOp::Xor, _) if wide => {
                let lut = match op {
                    AtomOp::And => LUT_AND,
                    AtomOp::Or => LUT_OR,
                    _ => LUT_XOR,
                };
                (0..2).for_each(|i| self.lop3(n[i], o[i], w[i], Operand::zero(), lut));
            }
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(new)
    }
}

/// What the unit of shared memory does by itself.
fn shared_unit_has(op: AtomOp, ty: ScalarType) -> bool {
    match ty.bits() {
        32 => ty != ScalarType::F32 || matches!(op, AtomOp::Exch | AtomOp::Cas),
        _ => matches!(op, AtomOp::Exch | AtomOp::Cas),
    }
}
