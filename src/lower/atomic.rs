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
        let b = if op == AtomOp::Cas { self.never_zero(b, ty) } else { b };
        let c = if op == AtomOp::Cas { value(self, at + 2)? } else { Operand::NULL };
        let d = if reduce { Operand::zero() } else { self.dest(&inst.operands[0])? };
        self.before(&order, place.window);
        let size = size(op, ty)?;
        let which = operation(op);
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        if place.window == Window::Shared && !shared_unit_has(op, ty) {
            self.swap_loop(op, ty, place, d, b)?;
            self.after(&order, place.window);
            return Ok(());
        }
        self.address_args(place, &mut args);
        if op == AtomOp::Cas {
            // Compare-and-swap has no form with a descriptor.
            args.retain(|(role, _)| *role != Role::Desc);
        }
        args.extend([(Role::B, b), (Role::C, c)]);
        match place.window {
            // Of 64 bits and of floats, a generic address may point where the unit cannot do it, which takes a second way.
            Window::Generic if !shared_unit_has(op, ty) || ty.bits() == 64 => return Err(Refusal::NotBuilt),
            Window::Shared => {
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

impl Builder<'_> {
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
    /// the loop stands behind a branch, so that nothing in it is guarded.
    fn swap_loop(&mut self, op: AtomOp, ty: ScalarType, place: Place, d: Operand, b: Operand) -> Lowered {
        let wide = ty.bits() == 64;
        let size = if wide { SIZE_64 } else { SIZE_32 };
        let (again, done) = (self.f.new_block(), self.f.new_block());
        let guard = self.skip_unless_guarded(done);
        let [old, got] = [(); 2].map(|()| if wide { self.temp_pair() } else { self.temp() });
        self.load_word(old, size, place, &Order::default())?;
        self.enter(again);
        let new = self.combined(op, ty, old, b)?;
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
        if d != Operand::zero() {
            self.copy_value(d, old);
        }
        self.branch_if(p, again, done);
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
