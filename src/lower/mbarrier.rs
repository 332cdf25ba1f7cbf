//! Lowers `mbarrier.*` and `cp.async.mbarrier.arrive`.
//!
//! Targets with a barrier unit get SYNCS and ARRIVES, the others atomics on the two words in shared
//! memory, as ptxas does. Each instruction that the cubin lists carries its kind. Without the unit,
//! the low word is 2^30 minus the arrivals expected per phase, and the high one has the phase in
//! bit 31 and below it 2^31 minus the pending arrivals. With the unit, 2^20 minus these numbers are
//! in bits 1 to 20 and 43 to 62, and the phase is bit 63. Source: ptxas 13.0.88 output for each
//! form. The time hint of `try_wait` is ignored, which is always correct.

use super::builder::{Builder, Lowered, Refusal};
use super::memory::address::{Place, Window};
use super::memory::memory_model::Order;
use crate::arrays::Each;
use crate::ori::build::int::LUT_AND_3;
use crate::ori::mods::*;
use crate::ori::{Block, File, InstId, Listed, Operand};
use crate::ptx::ast::{self, AddressBase, OperandKind};
use crate::tables::memory::Access;
use crate::tables::ptx::{BarrierLayout, Op as PtxOp, ScalarType, Scope, Semantics, Space};
use crate::tables::{Feature, Mod, Op, Role, value};

/// What the arrivals that a barrier expects are subtracted from: before the unit in its low and
/// high word, with it in both.
const LOW_FULL: u32 = 1 << 30;
const HIGH_FULL: u32 = 1 << 31;
const FULL: u32 = 1 << 20;
/// Where the unit has both numbers, in the low and in the high word.
const LOW_SHIFT: u32 = 1;
const HIGH_SHIFT: u32 = 11;
/// The bit of the high word that is the phase.
const PHASE: u32 = 1 << 31;
/// Truth table of (a ^ c) & b.
const DIFFERS_IN: u8 = 0x48;
/// Uniform registers that hold the address and the words of a new barrier: written right before
/// each use, whichever lanes run.
const MADE_AT: u16 = 8;
const MADE_OF: [u16; 2] = [10, 11];
/// The same of what is done in several blocks: address and number, and the mask of the blocks.
const AT_AND_NUMBER: [u16; 2] = [8, 9];
const BLOCKS: u16 = 10;

/// Kinds of instructions in the list of the cubin, from 1.
#[derive(Clone, Copy)]
enum Kind {
    No = 0,
    Init = 1,
    Arrive = 2,
    ArriveNoComplete = 3,
    Drop = 4,
    DropNoComplete = 5,
    Test = 6,
    TestParity = 7,
    Copies = 8,
    Inval = 9,
    Try = 10,
    TryParity = 11,
    Expect = 12,
    Complete = 13,
}

impl Builder<'_> {
    /// One of the operations on a barrier in shared memory.
    pub fn mbarrier(&mut self, inst: &ast::Instruction) -> Lowered {
        match inst.op {
            _ if inst.mods.multicast.is_some() => self.in_blocks(inst),
            // The layout with a report: its fields are those of no public text.
            PtxOp::MbarrierInit if inst.mods.barrier_layout == Some(BarrierLayout::LayoutV1) => Err(Refusal::NotBuilt),
            PtxOp::MbarrierInit => self.make_mbarrier(inst),
            PtxOp::MbarrierInval => self.end_mbarrier(inst),
            PtxOp::MbarrierArrive | PtxOp::MbarrierArriveDrop if self.has(Feature::BarrierUnit) => {
                self.arrive_by_unit(inst)
            }
            PtxOp::MbarrierArrive | PtxOp::MbarrierArriveDrop => self.arrive_by_atomics(inst),
            PtxOp::MbarrierExpectTx | PtxOp::MbarrierCompleteTx => self.count_bytes(inst),
            PtxOp::MbarrierTestWait | PtxOp::MbarrierTryWait => self.check_phase(inst),
            PtxOp::MbarrierPendingCount => self.pending_count(inst),
            _ => self.arrive_after_copies(inst),
        }
    }

    /// Where a barrier is; of a generic address, and of one in the cluster, the low word is the
    /// address that the unit takes.
    pub fn shared_place(&mut self, operand: &ast::Operand, space: Option<Space>) -> Lowered<Place> {
        if space.is_some() {
            return self.place(operand, Some(Space::Shared));
        }
        let place = self.place(operand, None)?;
        let pair = self.temp_pair();
        self.generic_to_space(pair, place.base, Space::Shared)?;
        let base = self.words(pair)[0];
        Ok(self.fitted(Place { window: Window::Shared, base, ..place }))
    }

    /// An operation on a barrier: it changes places with no access of memory, and the cubin lists
    /// it.
    fn on_mbarrier(&mut self, op: Op, mods: &[M], at: Place, args: &[(Role, Operand)], listed: Kind) -> InstId {
        let offset = self.literal(at.offset);
        let uniform = at.base.as_reg().is_some_and(|reg| self.f[reg].file == File::UR);
        let beside = op.info().roles.iter().any(|role| role.role == Role::Ub);
        let mut all = vec![(if uniform && beside { Role::Ub } else { Role::A }, at.base), (Role::Off, offset)];
        all.extend_from_slice(args);
        let inst = self.put(op, mods, &all);
        self.f[inst].ordered = true;
        self.f[inst].listed = (listed as u8).checked_sub(1).map_or(Listed::No, Listed::Barrier);
        inst
    }

    /// `mbarrier.init`
    fn make_mbarrier(&mut self, inst: &ast::Instruction) -> Lowered {
        let at = self.shared_place(&inst.operands[0], inst.mods.space)?;
        let count = self.source_word(&inst.operands[1], ScalarType::U32)?;
        let words = self.first_words(count);
        let by_unit = self.has(Feature::BarrierUnit);
        if by_unit && is_variable(&inst.operands[0]) {
            return self.one_for_all(|b| b.exchange(at, words));
        }
        if by_unit && !self.has(Feature::BarrierByStore) {
            return self.lane_by_lane(|b| b.exchange(at, words));
        }
        let value = self.pair_of(words);
        self.on_mbarrier(Op::STS, &[SIZE_64], at, &[(Role::B, value)], Kind::Init);
        if by_unit {
            self.put(Op::FENCE_S, &[], &[]);
            self.put(Op::SYNCS_CCTL_ALL, &[], &[]);
        }
        Ok(())
    }

    /// The words of a barrier that expects so many arrivals.
    fn first_words(&mut self, count: Operand) -> [Operand; 2] {
        let by_unit = self.has(Feature::BarrierUnit);
        if let Some(count) = self.constant(count) {
            let left = |full: u32| full.wrapping_sub(count as u32);
            let words = match by_unit {
                true => [left(FULL) << LOW_SHIFT, left(FULL) << HIGH_SHIFT],
                false => [left(LOW_FULL), left(HIGH_FULL)],
            };
            return words.each(|word| self.imm(word));
        }
        let less = |b: &mut Self, full: u32| {
            let (word, full) = (b.temp(), b.imm(full));
            b.add(word, count.negated(), full);
            word
        };
        if !by_unit {
            return [less(self, LOW_FULL), less(self, HIGH_FULL)];
        }
        let left = less(self, FULL);
        [LOW_SHIFT, HIGH_SHIFT].each(|shift| {
            let (word, amount) = (self.temp(), self.imm(shift));
            self.shf(&SHF_L, word, left, amount, Operand::zero());
            word
        })
    }

    /// Puts the words of a new barrier where the unit sees them; its operands are in uniform
    /// registers.
    fn exchange(&mut self, at: Place, words: [Operand; 2]) -> Lowered {
        let address = self.uniform(&[MADE_AT], &[at.base]);
        let value = self.uniform(&MADE_OF, &words);
        let args = [(Role::D, Operand::zero()), (Role::B, value)];
        self.on_mbarrier(Op::SYNCS_EXCH, &[], Place { base: address, ..at }, &args, Kind::Init);
        Ok(())
    }

    /// Words in uniform registers of these numbers, which nothing else uses: a lane or lanes with
    /// the same values hand them over.
    pub fn uniform(&mut self, numbers: &[u16], words: &[Operand]) -> Operand {
        let vector = self.f.new_vector(File::UR, numbers.len());
        for ((reg, phys), word) in self.f.vector_regs(vector).to_vec().into_iter().zip(numbers).zip(words) {
            self.f[reg].phys = Some(*phys);
            let op = if self.constant(*word).is_some() { Op::UMOV } else { Op::R2UR };
            let word = match self.constant(*word) {
                Some(value) => self.literal(value as i64),
                None => *word,
            };
            let inst = self.put(op, &[], &[(Role::D, Operand::reg(reg)), (Role::A, word)]);
            if op == Op::R2UR && !self.turn.is_null() {
                self.f[inst].guard = self.turn;
                if self.has(Feature::UniformBroadcast) {
                    self.f[inst].mods.set(Mod::Bcast, value::bcast::BROADCAST);
                }
            }
        }
        let regs = self.f.vector_regs(vector);
        if regs.len() == 1 { Operand::reg(regs[0]) } else { Operand::vector(vector) }
    }

    /// Does once what all lanes would do alike, where a guard holds in any of them.
    pub fn one_for_all(&mut self, f: impl FnOnce(&mut Self) -> Lowered) -> Lowered {
        let end = (!self.guard.is_null()).then(|| self.f.new_block());
        let guard = self.skip_to(end);
        f(self)?;
        if let Some(end) = end {
            self.enter(end);
        }
        self.guard = guard;
        Ok(())
    }

    /// Does something once for each lane, one after the other: what acts once for the warp, with
    /// words in uniform registers that the lane whose turn it is hands over. No jump stands
    /// between: lanes that come here by other ways may join the loop at any. The lanes that are
    /// done wait behind the loop. There is no loop where only one lane comes here.
    pub fn lane_by_lane(&mut self, f: impl FnOnce(&mut Self) -> Lowered) -> Lowered {
        if self.alone {
            return self.one_for_all(f);
        }
        let chosen = self.temp_pred();
        let choose = |b: &mut Self| {
            b.put(Op::ELECT, &[], &[(Role::Pu, chosen)]);
            b.turn = chosen;
        };
        let done = self.in_turns(choose, chosen, |b, ()| f(b));
        self.turn = Operand::NULL;
        done
    }

    /// Does something once for all lanes that have the same words, with the words in uniform
    /// registers of these numbers: what has a guard, again with no jump between.
    pub fn value_by_value(
        &mut self,
        numbers: &[u16],
        words: &[Operand],
        f: impl FnOnce(&mut Self, Operand) -> Lowered,
    ) -> Lowered {
        if words.iter().all(|word| self.constant(*word).is_some()) {
            return self.one_for_all(|b| {
                let values = b.uniform(numbers, words);
                f(b, values)
            });
        }
        let chosen = self.temp_pred();
        let choose = |b: &mut Self| {
            let (values, mut places, mut before) = (b.uniform(numbers, words), Vec::new(), Operand::always());
            b.f.for_each_reg(values, |reg| places.push(Operand::reg(reg)));
            for (word, value) in words.iter().zip(places) {
                if b.constant(*word).is_none() {
                    let args = [(Role::Pu, chosen), (Role::A, *word), (Role::B, value), (Role::Pp, before)];
                    b.put(Op::ISETP, &[EQ, AND, U32], &args);
                    before = chosen;
                }
            }
            values
        };
        self.in_turns(choose, chosen, |b, values| {
            b.guard = chosen;
            let done = f(b, values);
            b.guard = Operand::NULL;
            done
        })
    }

    /// A predicate, for the lane alone whose turn it is.
    pub fn in_its_turn(&mut self, p: Operand) -> Operand {
        if self.turn.is_null() {
            return p;
        }
        let (own, turn) = (self.temp_pred(), self.turn);
        self.plop3(own, [Operand::always(), p, turn], LUT_AND_3);
        own
    }

    /// A loop in which each turn is of the lanes for which a predicate holds that `choose` sets.
    fn in_turns<T>(
        &mut self,
        choose: impl FnOnce(&mut Self) -> T,
        chosen: Operand,
        f: impl FnOnce(&mut Self, T) -> Lowered,
    ) -> Lowered {
        let [turn, end] = [(); 2].each(|()| self.f.new_block());
        let guard = self.skip_to(Some(end));
        self.enter(turn);
        let made = choose(self);
        f(self, made)?;
        self.branch_if(chosen.inverted(), turn, end);
        self.guard = guard;
        Ok(())
    }

    /// Does something once for each value that a word has, for all lanes that have it, in blocks of
    /// its own. They come back to the others before they leave the loop.
    pub fn apart_by_value(&mut self, number: u16, word: Operand, f: impl FnOnce(&mut Self) -> Lowered) -> Lowered {
        let [turn, own, next, end] = [(); 4].each(|()| self.f.new_block());
        let guard = self.skip_to(Some(end));
        self.enter(turn);
        let (chosen, value) = (self.temp_pred(), self.uniform(&[number], &[word]));
        self.isetp(chosen, &[EQ, AND, U32], word, value);
        self.branch_if(chosen.inverted(), next, own);
        f(self)?;
        self.enter(next);
        self.branch_if(chosen.inverted(), turn, end);
        self.guard = guard;
        Ok(())
    }

    fn skip_to(&mut self, end: Option<Block>) -> Operand {
        match end {
            Some(end) => self.skip_unless_guarded(end),
            None => self.guard,
        }
    }

    /// `mbarrier.inval`
    fn end_mbarrier(&mut self, inst: &ast::Instruction) -> Lowered {
        let at = self.shared_place(&inst.operands[0], inst.mods.space)?;
        if self.has(Feature::BarrierUnit) {
            self.on_mbarrier(Op::SYNCS_CCTL, &[], at, &[], Kind::Inval);
        }
        Ok(())
    }

    /// What stands before an arrival that releases to the cluster.
    fn release(&mut self, inst: &ast::Instruction) -> Lowered {
        if inst.mods.scope == Some(Scope::Cluster) && inst.mods.semantics == Some(Semantics::Release) {
            self.put(Op::MEMBAR, &[MEMBAR_ALL, SCOPE_CTA], &[]);
            let order = Order {
                row: crate::tables::memory::OrderRow::of(
                    self.target,
                    Access::Fence,
                    Semantics::Release,
                    Some(Scope::Cluster),
                    false,
                ),
                ..Order::default()
            };
            self.before(&order);
            self.after(&order);
        }
        Ok(())
    }

    /// `mbarrier.arrive` and `mbarrier.arrive_drop` by the unit. An arrival that must not complete
    /// its phase is one like any other.
    fn arrive_by_unit(&mut self, inst: &ast::Instruction) -> Lowered {
        let at = self.shared_place(&inst.operands[1], inst.mods.space)?;
        let d = self.dest(&inst.operands[0])?;
        let number = match inst.operands.get(2) {
            Some(operand) => Some(self.source_reg(operand, ScalarType::U32)?),
            None => None,
        };
        self.release(inst)?;
        let one = inst.operands.get(2).is_none_or(|o| matches!(&o.kind, OperandKind::Constant(c) if is_one(*c)));
        let mut mods: Vec<M> = Vec::new();
        mods.extend((inst.mods.space == Some(Space::SharedCluster)).then_some(ARRIVE_RED));
        let drop = inst.op == PtxOp::MbarrierArriveDrop;
        mods.extend(drop.then_some(OPTOUT));
        let (listed, b) = match (inst.mods.expect_tx, inst.mods.no_complete) {
            (true, _) => (Kind::No, number.unwrap_or(Operand::zero())),
            (_, true) if drop => (Kind::DropNoComplete, number.unwrap_or(Operand::zero())),
            (_, true) => (Kind::ArriveNoComplete, number.unwrap_or(Operand::zero())),
            _ if drop => (Kind::Drop, number.unwrap_or(Operand::zero())),
            _ => (Kind::Arrive, number.unwrap_or(Operand::zero())),
        };
        let b = if one && !inst.mods.expect_tx { Operand::zero() } else { b };
        if !inst.mods.expect_tx {
            mods.push(if one { ARRIVE_ONE } else { ARRIVE_SOME });
        }
        self.on_mbarrier(Op::SYNCS_ARRIVE, &mods, at, &[(Role::D, d), (Role::B, b)], listed);
        Ok(())
    }

    /// An operation on the barriers of the blocks of a mask of 32 bits. The unit takes its operands
    /// from uniform registers: each lane acts alone. What is expected is said before the arrival.
    fn in_blocks(&mut self, inst: &ast::Instruction) -> Lowered {
        let arrives = matches!(inst.op, PtxOp::MbarrierArrive | PtxOp::MbarrierArriveDrop);
        let [at, rest @ ..] = &inst.operands[usize::from(arrives)..] else { return Err(Refusal::NotBuilt) };
        let (mask, number) = rest.split_last().ok_or(Refusal::NotBuilt)?;
        let at = self.shared_place(at, inst.mods.space)?;
        let mask = self.source_word(mask, ScalarType::U32)?;
        let one = self.imm(1);
        let number = match number.first() {
            Some(operand) => self.source_word(operand, ScalarType::U32)?,
            None => one,
        };
        if inst.op == PtxOp::MbarrierCompleteTx {
            return self.once_in_blocks(&[COMPLETE_SOME], at, [number, mask], Kind::Complete);
        }
        if !arrives || inst.mods.expect_tx {
            let listed = if arrives { Kind::No } else { Kind::Expect };
            self.once_in_blocks(&[EXPECT_SOME], at, [number, mask], listed)?;
        }
        if !arrives {
            return Ok(());
        }
        self.release(inst)?;
        let number = if inst.mods.expect_tx { one } else { number };
        let (mods, listed): (&[M], Kind) = match (inst.op == PtxOp::MbarrierArriveDrop, inst.mods.expect_tx) {
            (true, true) => (&[OPTOUT, ARRIVE_SOME], Kind::No),
            (true, false) => (&[OPTOUT, ARRIVE_SOME], Kind::Drop),
            (false, true) => (&[ARRIVE_SOME], Kind::No),
            (false, false) => (&[ARRIVE_SOME], Kind::Arrive),
        };
        self.once_in_blocks(mods, at, [number, mask], listed)
    }

    /// One instruction of these, with a number and a mask.
    fn once_in_blocks(&mut self, mods: &[M], at: Place, [number, mask]: [Operand; 2], listed: Kind) -> Lowered {
        self.lane_by_lane(|b| {
            let base = b.uniform(&AT_AND_NUMBER, &[at.base, number]);
            let mask = b.uniform(&[BLOCKS], &[mask]);
            let mods: Vec<M> = [ARRIVE_RED, MULTICAST].iter().chain(mods).copied().collect();
            b.on_mbarrier(Op::USYNCS_ARRIVE, &mods, Place { base, ..at }, &[(Role::C, mask)], listed);
            Ok(())
        })
    }

    /// The same by atomics. One that must not complete the phase counts on both words itself; its
    /// state is the word of the arrivals, twice.
    fn arrive_by_atomics(&mut self, inst: &ast::Instruction) -> Lowered {
        let at = self.shared_place(&inst.operands[1], inst.mods.space)?;
        let d = self.dest(&inst.operands[0])?;
        let drop = inst.op == PtxOp::MbarrierArriveDrop;
        self.put(Op::MEMBAR, &[MEMBAR_ALL, SCOPE_CTA], &[]);
        if !inst.mods.no_complete {
            if drop {
                self.on_mbarrier(Op::ATOMS, &[AOP_POPC_INC], at, &[(Role::D, Operand::zero())], Kind::No);
            }
            let listed = if drop { Kind::Drop } else { Kind::Arrive };
            let d = if d == Operand::zero() { d } else { self.in_pair(d) };
            self.on_mbarrier(Op::ATOMS_ARRIVE, &[], at, &[(Role::D, d)], listed);
            return Ok(());
        }
        let count = self.source_reg(&inst.operands[2], ScalarType::U32)?;
        let high = Place { offset: at.offset + 4, ..at };
        let (before, listed) = (self.temp(), if drop { Kind::DropNoComplete } else { Kind::ArriveNoComplete });
        if drop {
            let args = [(Role::D, Operand::zero()), (Role::B, count)];
            self.on_mbarrier(Op::ATOMS, &[AOP_ADD, SIZE_32], at, &args, Kind::No);
        }
        self.on_mbarrier(Op::ATOMS, &[AOP_ADD, SIZE_32], high, &[(Role::D, before), (Role::B, count)], listed);
        if d != Operand::zero() {
            self.copy_words(d, [before, before]);
        }
        Ok(())
    }

    /// `mbarrier.expect_tx` and `mbarrier.complete_tx`
    fn count_bytes(&mut self, inst: &ast::Instruction) -> Lowered {
        let at = self.shared_place(&inst.operands[0], inst.mods.space)?;
        let bytes = self.source_reg(&inst.operands[1], ScalarType::U32)?;
        let (how, listed) = match inst.op {
            PtxOp::MbarrierExpectTx => (EXPECT_SOME, Kind::Expect),
            _ => (COMPLETE_SOME, Kind::Complete),
        };
        let args = [(Role::D, Operand::zero()), (Role::B, bytes)];
        self.on_mbarrier(Op::SYNCS_ARRIVE, &[ARRIVE_RED, how], at, &args, listed);
        Ok(())
    }

    /// `mbarrier.test_wait` and `mbarrier.try_wait`: whether the phase is another one than that of
    /// a state, or than one of this parity.
    fn check_phase(&mut self, inst: &ast::Instruction) -> Lowered {
        let p = self.dest(&inst.operands[0])?;
        let at = self.shared_place(&inst.operands[1], inst.mods.space)?;
        let phase = if inst.mods.parity {
            let parity = self.source_reg(&inst.operands[2], ScalarType::U32)?;
            let (phase, shift) = (self.temp(), self.imm(31));
            self.shf(&SHF_L, phase, parity, shift, Operand::zero());
            phase
        } else {
            let high = self.source_words(&inst.operands[2], ScalarType::B64)?[1];
            self.in_reg(high)
        };
        let waits = inst.op == PtxOp::MbarrierTryWait;
        let listed = match (waits, inst.mods.parity) {
            (false, false) => Kind::Test,
            (false, true) => Kind::TestParity,
            (true, false) => Kind::Try,
            (true, true) => Kind::TryParity,
        };
        if self.has(Feature::BarrierUnit) {
            let mods: &[M] = if waits { &[TRYWAIT] } else { &[] };
            self.on_mbarrier(Op::SYNCS_PHASECHK, mods, at, &[(Role::Pu, p), (Role::B, phase)], listed);
        } else {
            let (high, differs, bit) = (self.temp(), self.temp(), self.imm(PHASE));
            let above = Place { offset: at.offset + 4, ..at };
            self.on_mbarrier(Op::LDS, &[SIZE_32], above, &[(Role::D, high)], listed);
            self.lop3(differs, high, bit, phase, DIFFERS_IN);
            self.isetp(p, &[NE, AND, U32], differs, Operand::zero());
        }
        if inst.mods.scope == Some(Scope::Cluster) && inst.mods.semantics == Some(Semantics::Acquire) {
            self.put(Op::CCTL, &[CCTL_IVALL], &[]);
        }
        Ok(())
    }

    /// `mbarrier.pending_count`
    fn pending_count(&mut self, inst: &ast::Instruction) -> Lowered {
        let d = self.dest(&inst.operands[0])?;
        let high = self.source_words(&inst.operands[1], ScalarType::B64)?[1];
        let (high, left) = (self.in_reg(high), self.temp());
        let full = if self.has(Feature::BarrierUnit) {
            let (shifted, amount, mask) = (self.temp(), self.imm(HIGH_SHIFT), self.imm(FULL - 1));
            self.shf(&SHF_R_U32_HI, shifted, Operand::zero(), amount, high);
            self.and(left, shifted, mask);
            self.imm(FULL)
        } else {
            let mask = self.imm(HIGH_FULL - 1);
            self.and(left, high, mask);
            self.imm(HIGH_FULL)
        };
        self.add(d, left.negated(), full);
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`: what arrives is expected besides, unless it is said to be among
    /// what is expected.
    fn arrive_after_copies(&mut self, inst: &ast::Instruction) -> Lowered {
        let at = self.shared_place(&inst.operands[0], inst.mods.space)?;
        if self.has(Feature::BarrierUnit) {
            // The GPU takes the address from a uniform register alone.
            let noinc = inst.mods.noinc;
            if is_variable(&inst.operands[0]) {
                return self.one_for_all(|b| {
                    let base = b.uniform(&[MADE_AT], &[at.base]);
                    b.arrive_after_copies_at(Place { base, ..at }, noinc)
                });
            }
            let base = self.in_reg(at.base);
            return self
                .value_by_value(&[MADE_AT], &[base], |b, base| b.arrive_after_copies_at(Place { base, ..at }, noinc));
        }
        if !inst.mods.noinc {
            let minus_one = self.imm(u32::MAX);
            let (high, one_more) = (Place { offset: at.offset + 4, ..at }, self.in_reg(minus_one));
            let args = [(Role::D, Operand::zero()), (Role::B, one_more)];
            self.on_mbarrier(Op::ATOMS, &[AOP_ADD, SIZE_32], high, &args, Kind::No);
        }
        self.on_mbarrier(Op::ARRIVES, &[], at, &[], Kind::Copies);
        Ok(())
    }

    /// The same by the unit, with the address in a uniform register.
    fn arrive_after_copies_at(&mut self, at: Place, noinc: bool) -> Lowered {
        if !noinc {
            let args = [(Role::D, Operand::zero()), (Role::B, Operand::zero())];
            self.on_mbarrier(Op::SYNCS_ARRIVE, &[ARRIVE_RED, EXPECT_ONE], at, &args, Kind::No);
        }
        let mods = if noinc { COPIES_ARRIVE } else { COPIES_BYTES };
        self.on_mbarrier(Op::ARRIVES, &[mods], at, &[], Kind::Copies);
        Ok(())
    }
}

fn is_one(constant: ast::Constant) -> bool {
    matches!(constant, ast::Constant::Int { bits: 1, .. })
}

/// Whether an address is that of a variable: the same in all lanes.
fn is_variable(operand: &ast::Operand) -> bool {
    matches!(&operand.kind, OperandKind::Address(address) if matches!(address.base, AddressBase::Symbol(_)))
}
