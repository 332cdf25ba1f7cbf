//! Control flow and block barriers: labels, `bra brx.idx ret exit trap bar.*`.
//!
//! Each block ends with an unguarded BRA or EXIT and has at most one guarded BRA before it. In a
//! kernel, a branch to a label that is followed only by a return becomes EXIT, so that threads
//! leave a loop instead of waiting at its reconvergence point.

use super::builder::{Builder, Lowered, Refusal};
use crate::ori::mods::*;
use crate::ori::{Block, Operand, Symbol};
use crate::ptx::ast::{self, LabelId, OperandKind, Statement};
use crate::sorted::SortedSet;
use crate::tables::ptx::{BarrierOp, Op as PtxOp, ScalarType};
use crate::tables::{Feature, Op, Role};
use cranelift_entity::SecondaryMap;

/// The block of each label, and the labels that are followed only by a return.
#[derive(Default)]
pub(super) struct Labels {
    blocks: SecondaryMap<LabelId, Option<Block>>,
    returns: SortedSet<LabelId>,
    /// The block of the label before, if nothing stands between.
    open: Option<Block>,
}

impl Labels {
    /// Finds the labels of a kernel that only end the thread. A device function returns from one
    /// place, where its lanes are converged, and has none.
    pub fn new(function: &ast::Function, body: &[Statement]) -> Labels {
        let mut labels = Labels::default();
        if !function.is_entry {
            return labels;
        }
        let mut waiting = Vec::new();
        for statement in body {
            match statement {
                Statement::Label(id) => waiting.push(*id),
                Statement::Instruction(inst) => {
                    let leaves = inst.guard.is_none() && matches!(inst.op, PtxOp::Ret | PtxOp::Exit);
                    let group = waiting.drain(..);
                    if leaves {
                        labels.returns.extend(group);
                    }
                }
                _ => {}
            }
        }
        labels.returns.extend(waiting);
        labels
    }

    /// Starts the block of a label here. Labels in one place share a block, unless something before
    /// has named the second one.
    pub fn place(&mut self, builder: &mut Builder, id: LabelId) {
        if let (Some(open), None) = (self.open, self.blocks[id]) {
            self.blocks[id] = Some(open);
            return;
        }
        let block = self.block(builder, id);
        builder.enter(block);
        self.open = Some(block);
    }

    /// Says that an instruction stands behind the last label.
    pub fn pass(&mut self) {
        self.open = None;
    }

    /// The block of a label.
    pub fn block(&mut self, builder: &mut Builder, id: LabelId) -> Block {
        *self.blocks[id].get_or_insert_with(|| builder.f.new_block())
    }
}

/// Number of barriers to reserve when a barrier number is not constant: all of them.
const ALL_BARRIERS: u8 = 16;

/// Mask of the thread count in a barrier operand.
const THREADS: u64 = 0xfff;

impl Builder<'_> {
    /// `bra`
    pub fn branch(&mut self, inst: &ast::Instruction, labels: &mut Labels) -> Lowered {
        let OperandKind::Label(id) = inst.operands[0].kind else { return Err(Refusal::NotBuilt) };
        if labels.returns.contains(&id) && !self.guard.is_null() {
            self.leave();
            return Ok(());
        }
        let target = labels.block(self, id);
        if self.module.target.debug && self.guard.is_null() {
            // A branch to what follows has no code; its line needs an instruction to stop at.
            self.put(Op::NOP, &[], &[]);
        }
        self.branch_to(target);
        Ok(())
    }

    /// Emits a branch under the current guard.
    fn branch_to(&mut self, target: Block) {
        if self.guard.is_null() {
            self.jump(target);
            return;
        }
        self.put(Op::BRA, &[], &[(Role::Target, Operand::label(target))]);
        let next = self.f.new_block();
        self.jump(next);
        self.start(next);
    }

    /// `brx.idx`
    pub fn branch_indexed(&mut self, inst: &ast::Instruction, labels: &mut Labels) -> Lowered {
        let OperandKind::Label(list) = inst.operands[1].kind else { return Err(Refusal::NotBuilt) };
        let targets = self.source.labels[list].targets.clone();
        let next = self.f.new_block();
        let guard = self.skip_unless_guarded(next);
        let index = self.source_reg(&inst.operands[0], ScalarType::U32)?;
        let slot = self.globals.branch_table(targets.len());
        self.branch_bank = true;
        let (scaled, places, pair) = (self.temp(), self.imm(2), self.temp_pair());
        self.shf(&SHF_L, scaled, index, places, Operand::zero());
        let [low, high] = self.words(pair);
        let table = u16::try_from(slot).map_err(|_| Refusal::NotBuilt)?;
        let from = Operand::constant(2, table);
        let scaled = if self.globals.object { self.in_table(scaled) } else { scaled };
        self.put(Op::LDC, &[], &[(Role::D, low), (Role::A, scaled), (Role::C, from)]);
        self.copy(high, Operand::zero());
        let start = self.f.symbol(Symbol::Start);
        let brx = self.put(Op::BRX, &[], &[(Role::A, pair), (Role::Off, start)]);
        let mut extras = vec![self.literal(slot.into())];
        extras.extend(targets.iter().map(|id| Operand::label(labels.block(self, *id))));
        self.f.set_extras(brx, &extras, &[]);
        self.start(next);
        self.guard = guard;
        Ok(())
    }

    /// `ret`
    pub fn ret(&mut self) {
        if self.source.is_entry {
            return self.leave();
        }
        let block = match self.return_block {
            Some(block) => block,
            None => self.f.new_block(),
        };
        self.return_block = Some(block);
        self.branch_to(block);
    }

    /// `exit`, and `ret` of an entry.
    pub fn leave(&mut self) {
        if self.source.directives.errors_at_exit {
            self.wait_for_errors();
        }
        self.put(Op::EXIT, &[], &[]);
    }

    /// Waits until the faults of all accesses so far are known. Source: ptxas 13.0.88 with
    /// --make-errors-visible-at-exit, which writes this before each EXIT.
    fn wait_for_errors(&mut self) {
        self.put(Op::MEMBAR, &[MEMBAR_SC, SCOPE_VC], &[]);
        self.put(Op::ERRBAR, &[], &[]);
        if self.has(Feature::CgaErrorBarrier) {
            self.put(Op::CGAERRBAR, &[], &[]);
        }
    }

    /// `trap`, and `brkpt`, for which ptxas emits the same instruction.
    pub fn trap(&mut self) -> Lowered {
        let reason = self.literal(1);
        self.put(Op::BPT, &[BPT_TRAP], &[(Role::A, reason)]);
        Ok(())
    }

    /// `pmevent` with a number or a mask of events.
    pub fn events(&mut self, inst: &ast::Instruction) -> Lowered {
        let value = self.constant_operand(&inst.operands[0])?;
        let mask = match inst.op {
            PtxOp::Pmevent if value > 15 => {
                let pos = inst.operands[0].pos;
                return Err(Refusal::At(pos, format!("Performance event {value} is not one of 0 to 15")));
            }
            PtxOp::Pmevent => 1 << value,
            _ => value as i64,
        };
        let mask = self.literal(mask & 0xffff);
        self.put(Op::PMTRIG, &[], &[(Role::A, mask)]);
        Ok(())
    }

    /// Records that a barrier is used.
    pub fn note_barrier(&mut self, barrier: Operand) {
        let number = match self.constant(barrier) {
            Some(number) => (number as u8).saturating_add(1).min(ALL_BARRIERS),
            None => ALL_BARRIERS,
        };
        self.barriers = self.barriers.max(number);
    }

    /// The barrier number and thread count in the form that BAR takes: at most one of them in a
    /// register, or both packed into one register.
    fn barrier_operands(&mut self, inst: &ast::Instruction, first: usize, count: usize) -> Lowered<(Operand, Operand)> {
        let barrier = match inst.operands.get(first) {
            Some(operand) => self.source(operand, ScalarType::U32)?,
            None => Operand::zero(),
        };
        self.note_barrier(barrier);
        let threads = match inst.operands.get(count) {
            Some(operand) => self.source(operand, ScalarType::U32)?,
            None => Operand::zero(),
        };
        let count = self.constant(threads).map(|count| (count & THREADS) as i64);
        if let Some(number) = self.constant(barrier) {
            let threads = match count {
                Some(0) => Operand::NULL,
                Some(count) => self.literal(count),
                None => threads,
            };
            return Ok((self.literal(number as i64), threads));
        }
        if let Some(count) = count {
            return Ok((barrier, self.literal(count)));
        }
        let (shifted, packed, places) = (self.temp(), self.temp(), self.imm(16));
        self.shf(&SHF_L, shifted, threads, places, Operand::zero());
        let number = self.imm(0xf);
        // shifted | (barrier & 15)
        self.lop3(packed, barrier, number, shifted, (0xf0 & 0xcc) | 0xaa);
        Ok((packed, Operand::NULL))
    }

    /// All lanes of a warp execute `bar`, and `barrier` with `.aligned`, together.
    fn aligned_barrier(&mut self, inst: &ast::Instruction) {
        let each_lane = matches!(inst.op, PtxOp::BarrierSync | PtxOp::BarrierArrive | PtxOp::BarrierRed);
        if !each_lane || inst.mods.aligned {
            self.all_lanes();
        }
    }

    /// `bar.sync`, `barrier.sync`, `bar.arrive`, `barrier.arrive`
    pub fn barrier(&mut self, inst: &ast::Instruction, arrive: bool) -> Lowered {
        let (a, b) = self.barrier_operands(inst, 0, 1)?;
        let mods: &[M] = match arrive {
            true => &[BAR_ARV],
            false if self.has(crate::tables::Feature::BarrierDefersBlocking) => &[BAR_SYNC, BAR_DEFER],
            false => &[BAR_SYNC],
        };
        self.aligned_barrier(inst);
        self.put(Op::BAR, mods, &[(Role::A, a), (Role::B, b)]);
        Ok(())
    }

    /// `bar.red` and `barrier.red`
    pub fn barrier_reduction(&mut self, inst: &ast::Instruction) -> Lowered {
        // d, a[, b], p
        let last = inst.operands.len() - 1;
        let (a, b) = self.barrier_operands(inst, 1, if last == 3 { 2 } else { usize::MAX })?;
        let p = self.source(&inst.operands[last], ScalarType::Pred)?;
        let op = match inst.mods.barrier_op {
            Some(BarrierOp::Popc) => BAR_POPC,
            Some(BarrierOp::And) => BAR_AND,
            _ => BAR_OR,
        };
        let mut mods = vec![BAR_RED, op];
        if self.has(crate::tables::Feature::BarrierDefersBlocking) {
            mods.push(BAR_DEFER);
        }
        self.aligned_barrier(inst);
        self.put(Op::BAR, &mods, &[(Role::A, a), (Role::B, b), (Role::Pp, p)]);
        let d = self.dest(&inst.operands[0])?;
        let role = if inst.mods.barrier_op == Some(BarrierOp::Popc) { Role::D } else { Role::Pu };
        let scratch = if role == Role::D { d } else { Operand::zero() };
        let flag = if role == Role::Pu { d } else { Operand::NULL };
        self.put(Op::B2R, &[], &[(Role::D, scratch), (Role::Pu, flag)]);
        Ok(())
    }

    /// `nanosleep`
    pub fn nanosleep(&mut self, inst: &ast::Instruction) -> Lowered {
        let time = self.source(&inst.operands[0], ScalarType::U32)?;
        self.put(Op::NANOSLEEP, &[], &[(Role::A, time)]);
        Ok(())
    }
}
