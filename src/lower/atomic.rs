//! Atomic operations with and without a result.
//!
//! Input: `atom` and `red`. Output: ATOMG, ATOM, ATOMS and RED. What the units of global and shared memory do by themselves, and which operations
//! are loops in which a compare-and-swap is tried until it takes, stands in `tables/lowering/atomic.ron`; what has no row is refused.

use super::address::{Place, Window};
use super::builder::{Builder, Lowered, Refusal};
use super::memory::{AccessMods, elements};
use super::order::Order;
use crate::ori::mods::*;
use crate::ori::words::{LUT_AND, LUT_OR, LUT_XOR};
use crate::ori::{Kind, Operand};
use crate::ptx::ast;
use crate::tables::memory::{Access, AtomicHow, AtomicRow, AtomicSpace};
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

/// One atomic operation, its operands read.
struct Atomic {
    op: AtomOp,
    ty: ScalarType,
    /// Of the one instruction that does it.
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
        let reduce = inst.op == PtxOp::Red;
        let at = usize::from(!reduce);
        let place = self.place(&inst.operands[at], inst.mods.space)?;
        let count = inst.mods.vector.map_or(1, |v| v.elements());
        let row = row_of(op, ty, count, place.window)?;
        let order = self.order(Access::Atom, inst, place.window)?;
        let size = row.size.unwrap_or(if ty.bits() == 64 { SIZE_64 } else { SIZE_32 });
        if count > 1 {
            return self.vector_atomic(inst, at, (op, ty, size), order, place);
        }
        let b = self.atomic_value(&inst.operands[at + 1], ty)?;
        let b = if op == AtomOp::Cas { self.never_zero(b, ty) } else { b };
        let c = if op == AtomOp::Cas { self.atomic_value(&inst.operands[at + 2], ty)? } else { Operand::NULL };
        let d = if reduce { Operand::zero() } else { self.dest(&inst.operands[0])? };
        let atomic = Atomic { op, ty, size, order, d, b, c };
        self.before(&atomic.order);
        match (row.how, place.window) {
            (AtomicHow::Unit, Window::Shared) => self.shared_unit(&atomic, place),
            (AtomicHow::Unit, _) => self.unit_atomic(&atomic, place),
            (AtomicHow::Loop, _) => self.swap_loop(&atomic, place)?,
            (AtomicHow::Half, _) => self.half_loop(&atomic, place)?,
            (AtomicHow::Split, _) => self.generic_atomic(&atomic, place)?,
        }
        self.after(&atomic.order);
        Ok(())
    }

    fn atomic_value(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        match ty.bits() {
            128 => self.source(operand, ty),
            64 => self.source_pair(operand, ty),
            _ => self.source_reg(operand, ty),
        }
    }

    /// Several elements at once.
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
        let atomic = Atomic { op, ty, size, order, d, b, c: Operand::NULL };
        self.before(&atomic.order);
        self.unit_atomic(&atomic, place);
        if at == 1 {
            self.scatter_parts(elements(&inst.operands[0]), ty, &regs)?;
        }
        self.after(&atomic.order);
        Ok(())
    }

    fn shared_atomic(&mut self, atomic: &Atomic, place: Place) -> Lowered {
        let row = row_of(atomic.op, atomic.ty, 1, Window::Shared)?;
        if row.how == AtomicHow::Loop {
            return self.swap_loop(atomic, place);
        }
        self.shared_unit(atomic, place);
        Ok(())
    }

    fn shared_unit(&mut self, atomic: &Atomic, place: Place) {
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, &atomic.order, &mut args);
        args.extend([(Role::D, atomic.d), (Role::B, atomic.b), (Role::C, atomic.c)]);
        self.put(Op::ATOMS, &[operation(atomic.op), atomic.size], &args);
    }

    /// One instruction for the units of global memory.
    fn unit_atomic(&mut self, atomic: &Atomic, place: Place) {
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        let mut order = atomic.order.clone();
        if atomic.op == AtomOp::Cas {
            // Compare-and-swap has no form with a policy, which is only advice.
            order.policy = Operand::NULL;
        }
        self.address_args(place, &order, &mut args);
        args.push((Role::B, atomic.b));
        let mut mods: AccessMods = self.access_mods(atomic.size, place.window, &order);
        mods.push(operation(atomic.op));
        let swaps = matches!(atomic.op, AtomOp::Cas | AtomOp::Exch);
        if atomic.d == Operand::zero() && place.window == Window::Global && !swaps {
            self.put(Op::RED, &mods, &args);
            return;
        }
        if atomic.op == AtomOp::Cas {
            // Nor one with another descriptor.
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
        if value != Operand::zero() || matches!(value.kind(), Kind::Vector(_)) {
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
        self.address_args(place, &atomic.order, &mut args);
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

    /// An operation on 16 bits as a loop on the aligned word around them.
    fn half_loop(&mut self, atomic: &Atomic, place: Place) -> Lowered {
        let [again, took, done] = [(); 3].map(|()| self.f.new_block());
        let guard = self.skip_unless_guarded(done);
        let (place, upper) = self.word_around(place);
        let [old, got, half] = [(); 3].map(|()| self.temp());
        // Nibble by nibble: the half of the old word, or of RZ; the other half beside a new one.
        let (read, write) = (self.chosen(upper, 0x7732, 0x7710), self.chosen(upper, 0x5410, 0x3254));
        let (want, b) = (self.temp(), self.temp());
        let mask = self.imm(0xffff);
        self.and(want, atomic.b, mask);
        self.copy(b, atomic.b);
        self.load_word(old, SIZE_32, place, &Order::default())?;
        self.enter(again);
        let (expected, new) = (self.temp(), self.temp());
        if atomic.op == AtomOp::Cas {
            self.permute(expected, old, write, want);
            self.permute(new, old, write, atomic.c);
        } else {
            let before = self.temp();
            self.permute(before, old, read, Operand::zero());
            let sum = self.combined(atomic.op, atomic.ty, before, b)?;
            self.copy(expected, old);
            self.permute(new, old, write, sum);
        }
        self.word_swap(atomic, place, got, expected, new);
        let p = self.temp_pred();
        self.permute(half, got, read, Operand::zero());
        self.isetp(p, &[NE, AND, U32], got, expected);
        self.copy(old, got);
        if atomic.op == AtomOp::Cas {
            // Another half that changed is no reason to give up.
            let q = self.temp_pred();
            self.put(Op::ISETP, &[EQ, AND, U32], &[(Role::Pu, q), (Role::A, half), (Role::B, want), (Role::Pp, p)]);
            self.branch_if(q, again, took);
        } else {
            self.branch_if(p, again, took);
        }
        if atomic.d != Operand::zero() {
            self.copy(atomic.d, half);
        }
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    /// The aligned word around 16 bits, and whether they are its upper half.
    fn word_around(&mut self, place: Place) -> (Place, Operand) {
        let (low_mask, bit) = (self.imm(!3), self.imm(2));
        let [low, half] = [(); 2].map(|()| self.temp());
        let upper = self.temp_pred();
        let base = if place.window == Window::Shared {
            let (sum, amount) = (self.temp(), self.imm(place.offset as u32));
            self.add(sum, place.base, amount);
            self.and(low, sum, low_mask);
            self.and(half, sum, bit);
            low
        } else {
            let sum = self.add_offset(place.base, place.offset);
            let words = self.words(sum);
            self.and(low, words[0], low_mask);
            self.and(half, words[0], bit);
            self.pair_of([low, words[1]])
        };
        self.isetp(upper, &[NE, AND, U32], half, Operand::zero());
        (Place { base, offset: 0, ..place }, upper)
    }

    fn chosen(&mut self, p: Operand, yes: u32, no: u32) -> Operand {
        let (d, yes, no) = (self.temp(), self.imm(yes), self.imm(no));
        let yes = self.in_reg(yes);
        self.select(d, yes, no, p);
        d
    }

    fn permute(&mut self, d: Operand, a: Operand, selector: Operand, c: Operand) {
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, a), (Role::B, selector), (Role::C, c)]);
    }

    /// Compare-and-swap of a word.
    fn word_swap(&mut self, atomic: &Atomic, place: Place, d: Operand, expected: Operand, new: Operand) {
        let order = atomic.order.clone();
        let swap = Atomic { op: AtomOp::Cas, ty: ScalarType::B32, size: SIZE_32, order, d, b: expected, c: new };
        match place.window {
            Window::Shared => self.shared_unit(&swap, place),
            _ => self.unit_atomic(&swap, place),
        }
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
            (AtomOp::Add, ScalarType::F16 | ScalarType::F16x2) => {
                self.put(Op::HADD2, &[], &[(Role::D, new), (Role::A, old), (Role::B, b)]);
            }
            (AtomOp::Add, ScalarType::Bf16 | ScalarType::Bf16x2) => {
                self.put(Op::HADD2, &[PACKED_BF16], &[(Role::D, new), (Role::A, old), (Role::B, b)]);
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

/// How an operation is done where an address points.
fn row_of(op: AtomOp, ty: ScalarType, count: u32, window: Window) -> Lowered<&'static AtomicRow> {
    let space = match window {
        Window::Global => AtomicSpace::Global,
        Window::Shared => AtomicSpace::Shared,
        Window::Generic => AtomicSpace::Generic,
        Window::Local | Window::Bank(_) => return Err(Refusal::NotBuilt),
    };
    AtomicRow::of(op, ty, count, space).ok_or(Refusal::NotBuilt)
}
