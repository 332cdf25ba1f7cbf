//! Expands the atomic operations that no memory unit executes (the pseudo-operations of the family
//! `atomics`).
//!
//! An operation becomes a compare-and-swap loop, or a branch on whether a generic address is in
//! shared memory. No instruction in a loop is guarded. The result is written after the loop,
//! because its register may be one that the loop reads. An operation whose combination is not
//! implemented is left unchanged, and SetAfterLegalization refuses it.

use crate::arrays::Each;
use crate::ori::build::int::{LUT_AND, LUT_OR, LUT_XOR};
use crate::ori::mods::*;
use crate::ori::{Code, InstId, Operand};
use crate::tables::memory::{AtomicHow, AtomicRow};
use crate::tables::ori::Width;
use crate::tables::{Mod, Mods, Op, Role, value};

/// An atomic operation with its operands.
#[derive(Clone, Copy)]
struct Atomic {
    mods: Mods,
    /// ATOMS, ATOMG or ATOM.
    unit: Op,
    /// Address (in shared memory, or global or generic in a pair), and byte offset.
    base: Operand,
    offset: i64,
    /// Descriptor of global memory, or null.
    desc: Operand,
    b: Operand,
    /// The new value of a compare-and-swap, else null.
    c: Operand,
}

impl Atomic {
    fn of(code: &Code, inst: InstId) -> Atomic {
        let data = &code.f[inst];
        let arg = |role| code.f.arg(inst, role);
        let unit = match data.op {
            Op::ATOMS_LOOP | Op::ATOMS_HALF => Op::ATOMS,
            Op::ATOMG_HALF => Op::ATOMG,
            _ => Op::ATOM,
        };
        let offset = code.f.imm_value(arg(Role::Off)).unwrap_or(0) as i64;
        Atomic {
            mods: data.mods,
            unit,
            base: arg(Role::A),
            offset,
            desc: arg(Role::Desc),
            b: arg(Role::B),
            c: arg(Role::C),
        }
    }

    fn is_shared(&self) -> bool {
        self.unit == Op::ATOMS
    }

    fn is_wide(&self) -> bool {
        Width::Size.words(&self.mods) == 2
    }

    fn op(&self) -> u8 {
        self.mods.get(Mod::Aop)
    }
}

impl Code {
    /// Expands an operation of the family with its result in `d`; returns whether it did.
    pub(super) fn atomic(&mut self, inst: InstId, d: Operand) -> bool {
        let atomic = Atomic::of(self, inst);
        match self.f[inst].op {
            Op::ATOMS_LOOP => self.swap_loop(&atomic, d),
            Op::ATOM_SPLIT => self.either_memory(&atomic, d),
            _ => self.half_loop(&atomic, d),
        }
        .is_some()
    }

    /// Emits one atomic instruction.
    fn unit(&mut self, atomic: &Atomic, d: Operand) {
        let offset = self.literal(atomic.offset);
        let mut args = vec![(Role::D, d), (Role::A, atomic.base), (Role::Off, offset), (Role::B, atomic.b)];
        args.extend((!atomic.desc.is_null()).then_some((Role::Desc, atomic.desc)));
        args.extend((!atomic.c.is_null()).then_some((Role::C, atomic.c)));
        let inst = self.put(atomic.unit, &[], &args);
        self.f[inst].mods = atomic.mods;
    }

    /// Emits a compare-and-swap of one word, or of two with `size` 64, at the operation's address.
    fn swap(&mut self, atomic: &Atomic, size: M, d: Operand, [expected, new]: [Operand; 2]) {
        let mut mods = atomic.mods;
        for (kind, value) in [AOP_CAS, size] {
            mods.set(kind, value);
        }
        // Compare-and-swap has no form with a descriptor.
        self.unit(&Atomic { mods, desc: Operand::NULL, b: expected, c: new, ..*atomic }, d);
    }

    /// Loads the current value, one word or two.
    fn load_old(&mut self, atomic: &Atomic, size: M, d: Operand) {
        let (op, mods): (Op, &[M]) = match atomic.unit {
            Op::ATOMS => (Op::LDS, &[size]),
            Op::ATOMG => (Op::LDG, &[size, E]),
            _ => (Op::LD, &[size, E]),
        };
        let offset = self.literal(atomic.offset);
        let mut args = vec![(Role::D, d), (Role::A, atomic.base), (Role::Off, offset)];
        args.extend((!atomic.desc.is_null()).then_some((Role::Desc, atomic.desc)));
        self.put(op, mods, &args);
    }

    /// A compare-and-swap loop on shared memory: load, compute, swap, and retry if another lane has
    /// changed the value.
    fn swap_loop(&mut self, atomic: &Atomic, d: Operand) -> Option<()> {
        let wide = atomic.is_wide();
        let size = if wide { SIZE_64 } else { SIZE_32 };
        let [again, took] = [(); 2].each(|()| self.f.new_block());
        let [old, got] = [(); 2].each(|()| if wide { self.temp_pair() } else { self.temp() });
        self.load_old(atomic, size, old);
        self.enter(again);
        let new = self.combined(atomic, old)?;
        self.swap(atomic, size, got, [old, new]);
        let (p, got_words, old_words) = (self.temp_pred(), self.words(got), self.words(old));
        if wide {
            self.compare_words(p, NE, U32, got_words, old_words);
        } else {
            self.isetp(p, &[NE, AND, U32], got, old);
        }
        self.copy_value(old, got);
        self.branch_if(p, again, took);
        if d != Operand::zero() {
            self.copy_value(d, old);
        }
        Some(())
    }

    /// A compare-and-swap loop for 16 bits on the aligned word that contains them. A comparison
    /// that fails swaps the word for itself: the loop goes on only where another lane has changed
    /// the word, so no lane waits for another in it.
    fn half_loop(&mut self, atomic: &Atomic, d: Operand) -> Option<()> {
        let compares = atomic.op() == value::aop::CAS;
        let [again, took] = [(); 2].each(|()| self.f.new_block());
        let (atomic, upper) = self.word_around(atomic);
        let [old, got, half] = [(); 3].each(|()| self.temp());
        // PRMT selectors: extract the half from the old word (upper half zero); insert a new half
        // beside the other one.
        let (read, write) = (self.chosen(upper, 0x7732, 0x7710), self.chosen(upper, 0x5410, 0x3254));
        let (want, mask) = (self.temp(), self.imm(0xffff));
        self.and(want, atomic.b, mask);
        self.load_old(&atomic, SIZE_32, old);
        self.enter(again);
        let [before, expected, new] = [(); 3].each(|()| self.temp());
        self.permute(before, old, read, Operand::zero());
        self.copy(expected, old);
        if compares {
            let (changed, same) = (self.temp(), self.temp_pred());
            self.permute(changed, old, write, atomic.c);
            self.isetp(same, &[EQ, AND, U32], before, want);
            self.select(new, changed, old, same);
        } else {
            let sum = self.combined(&atomic, before)?;
            self.permute(new, old, write, sum);
        }
        self.swap(&atomic, SIZE_32, got, [expected, new]);
        let p = self.temp_pred();
        self.permute(half, got, read, Operand::zero());
        self.isetp(p, &[NE, AND, U32], got, expected);
        self.copy(old, got);
        self.branch_if(p, again, took);
        if d != Operand::zero() {
            self.copy(d, half);
        }
        Some(())
    }

    /// The operation on the aligned word that contains 16 bits, and whether they are its upper
    /// half.
    fn word_around(&mut self, atomic: &Atomic) -> (Atomic, Operand) {
        let (low_mask, bit) = (self.imm(!3), self.imm(2));
        let [low, half] = [(); 2].each(|()| self.temp());
        let upper = self.temp_pred();
        let base = if atomic.is_shared() {
            let (sum, amount) = (self.temp(), self.imm(atomic.offset as u32));
            self.add(sum, atomic.base, amount);
            self.and(low, sum, low_mask);
            self.and(half, sum, bit);
            low
        } else {
            let sum = self.add_offset(atomic.base, atomic.offset);
            let words = self.words(sum);
            self.and(low, words[0], low_mask);
            self.and(half, words[0], bit);
            self.pair_of([low, words[1]])
        };
        self.isetp(upper, &[NE, AND, U32], half, Operand::zero());
        (Atomic { base, offset: 0, ..*atomic }, upper)
    }

    fn chosen(&mut self, p: Operand, yes: u32, no: u32) -> Operand {
        let (d, yes, no) = (self.temp(), self.imm(yes), self.imm(no));
        self.select(d, yes, no, p);
        d
    }

    fn permute(&mut self, d: Operand, a: Operand, selector: Operand, c: Operand) {
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, a), (Role::B, selector), (Role::C, c)]);
    }

    /// Branches on whether a generic address is in shared memory, with an operation for each case.
    fn either_memory(&mut self, atomic: &Atomic, d: Operand) -> Option<()> {
        let how = AtomicRow::in_shared(&atomic.mods)?.how;
        let [shared, other, done] = [(); 3].each(|()| self.f.new_block());
        let base = if atomic.offset == 0 { atomic.base } else { self.add_offset(atomic.base, atomic.offset) };
        let p = self.temp_pred();
        self.query_space(p, QSPC_SHARED, base);
        self.branch_if(p, shared, other);
        self.unit(&Atomic { base, offset: 0, ..*atomic }, d);
        self.enter_after(done, shared);
        let mut mods = Mods::default();
        [Mod::Aop, Mod::Size].into_iter().for_each(|kind| mods.set(kind, atomic.mods.get(kind)));
        let base = self.within_shared(base);
        let own = Atomic { mods, unit: Op::ATOMS, base, offset: 0, desc: Operand::NULL, ..*atomic };
        if how == AtomicHow::Unit {
            self.unit(&own, d);
        } else {
            self.swap_loop(&own, d)?;
        }
        self.enter(done);
        Some(())
    }

    /// The shared address of a generic address in shared memory.
    fn within_shared(&mut self, address: Operand) -> Operand {
        let low = self.words(address)[0];
        let Some(window) = self.f.target().generation.and_then(|g| g.info().shared_window) else { return low };
        let (base, within) = (self.window_base(window)[0], self.temp());
        self.add(within, low, base.negated());
        within
    }

    /// Combines an old value with the operand; `None` if loops do not implement the operation.
    fn combined(&mut self, atomic: &Atomic, old: Operand) -> Option<Operand> {
        let new = if atomic.is_wide() { self.temp_pair() } else { self.temp() };
        let size = Mod::Size.text(atomic.mods.get(Mod::Size));
        let args = [(Role::D, new), (Role::A, old), (Role::B, atomic.b)];
        match (atomic.op(), size) {
            (value::aop::ADD, "F32.FTZ.RN" | "F32.RN") => self.put(Op::FADD, &[], &args),
            (value::aop::ADD, "F64.RN") => self.put(Op::DADD, &[], &args),
            (value::aop::ADD, "F16x2.RN") => self.put(Op::HADD2, &[], &args),
            (value::aop::ADD, "BF16x2.RN") => self.put(Op::HADD2, &[PACKED_BF16], &args),
            (op, "64" | "S64") => return self.combined_long(op, size == "S64", new, [old, atomic.b]),
            _ => return None,
        };
        Some(new)
    }

    /// As `combined`, for 64-bit integers.
    fn combined_long(&mut self, op: u8, signed: bool, new: Operand, from: [Operand; 2]) -> Option<Operand> {
        let (n, [o, w]) = (self.words(new), from.each(|pair| self.words(pair)));
        match op {
            value::aop::ADD => self.add_long(n, o, w, false),
            value::aop::MIN | value::aop::MAX => {
                let (cmp, p) = (if op == value::aop::MIN { LT } else { GT }, self.temp_pred());
                self.compare_words(p, cmp, if signed { S32 } else { U32 }, o, w);
                (0..2).for_each(|i| self.select(n[i], o[i], w[i], p));
            }
            value::aop::AND | value::aop::OR | value::aop::XOR => {
                let lut = match op {
                    value::aop::AND => LUT_AND,
                    value::aop::OR => LUT_OR,
                    _ => LUT_XOR,
                };
                (0..2).for_each(|i| self.lop3(n[i], o[i], w[i], Operand::zero(), lut));
            }
            _ => return None,
        }
        Some(new)
    }
}
