//! Asynchronous copies from global to shared memory: `cp.async` and its groups.
//!
//! Emits LDGSTS, LDGDEPBAR and DEPBAR.LE. A copy of fewer bytes than its size starts at an address
//! that is higher by the number of missing bytes: the unit reads from there to the end of the
//! aligned piece and fills the rest with zeros. Source: ptxas 13.0.88 output for each form.

use super::address::{Place, Window};
use super::memory_model::{Order, cache_mods};
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast::{self, OperandKind};
use crate::tables::memory::Access;
use crate::tables::ptx::{CacheOp, ScalarType, Space};
use crate::tables::{Feature, Op, Prop, Role};
use smallvec::SmallVec;

/// Bits of the signed offsets of LDGSTS to shared and to global memory.
const SHARED_OFFSET_BITS: u32 = 20;
const GLOBAL_OFFSET_BITS: u32 = 12;
/// Maximum of pending groups that DEPBAR can wait for; larger counts wait for this many.
const MAX_GROUPS: u64 = 63;
/// Scoreboard of asynchronous copies.
const COPIES: i64 = 0;
/// Number of never-executed loads before the first copy of a run.
const DEAD_LOADS: usize = 3;

impl Builder<'_> {
    /// `cp.async`
    pub fn copy_async(&mut self, inst: &ast::Instruction) -> Lowered {
        let whole = self.constant_operand(&inst.operands[2])?;
        let only_16 = inst.mods.cache_op == Some(CacheOp::Cg);
        let size = match whole {
            16 => SIZE_128,
            8 if !only_16 => SIZE_64,
            4 if !only_16 => SIZE_32,
            _ => return Err(self.bad_copy_size(&inst.operands[2], whole)),
        };
        let to = self.place(&inst.operands[0], Some(Space::Shared))?;
        let to = self.near(to, SHARED_OFFSET_BITS);
        let mut from = self.place(&inst.operands[1], Some(Space::Global))?;
        let mut order = Order { cache: cache_mods(Access::CpAsync, &inst.mods)?, ..Order::default() };
        if inst.mods.cache_hint {
            order.policy = self.policy(&inst.operands[inst.operands.len() - 1])?;
        }
        let rest = &inst.operands[3..inst.operands.len() - usize::from(inst.mods.cache_hint)];
        let (mut copied, mut fill) = (Operand::NULL, false);
        if let Some(operand) = rest.first() {
            (from, copied, fill) = self.copied_part(operand, from, whole)?;
        }
        let from = self.near(from, GLOBAL_OFFSET_BITS);
        let mut mods = self.access_mods(size, Window::Global, &order);
        mods.extend(fill.then_some(ZFILL));
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(from, &order, &mut args);
        let offset = self.literal(to.offset);
        args.extend([(Role::S, to.base), (Role::Soff, offset), (Role::Pp, copied)]);
        self.dead_loads();
        self.put(Op::LDGSTS, &mods, &args);
        Ok(())
    }

    fn bad_copy_size(&self, operand: &ast::Operand, value: u64) -> Refusal {
        Refusal::At(operand.pos, format!("Unexpected value '{value}' of the size of instruction 'cp.async'"))
    }

    /// The part to copy, from a size or an ignore predicate: the source, the predicate under which
    /// data is copied, and whether the rest is filled with zeros.
    fn copied_part(&mut self, operand: &ast::Operand, from: Place, whole: u64) -> Lowered<(Place, Operand, bool)> {
        let is_pred = match &operand.kind {
            OperandKind::Register(r) => self.source.registers[r.register].ty == ScalarType::Pred,
            _ => false,
        };
        if is_pred {
            let ignored = self.source(operand, ScalarType::Pred)?;
            return Ok((from, ignored.inverted(), false));
        }
        let size = self.source(operand, ScalarType::U32)?;
        if let Some(bytes) = self.constant(size) {
            return Ok(match bytes {
                0 => (from, Operand::never(), false),
                _ if bytes == whole => (from, Operand::NULL, false),
                _ if bytes > whole => return Err(self.bad_copy_size(operand, bytes)),
                _ => (Place { offset: from.offset + (whole - bytes) as i64, ..from }, Operand::NULL, true),
            });
        }
        if self.all_or_nothing(operand, whole) {
            let all = self.temp_pred();
            self.isetp(all, &[NE, AND, U32], size, Operand::zero());
            return Ok((from, all, false));
        }
        let [missing, skipped] = [self.temp(), self.temp()];
        let (all, mask) = (self.imm(whole as u32), self.imm(whole as u32 - 1));
        self.add(missing, size.negated(), all);
        self.and(skipped, missing, mask);
        let base = self.temp_pair();
        let (d, a) = (self.words(base), self.words(from.base));
        self.add_long(d, a, [skipped, Operand::zero()], false);
        let some = self.temp_pred();
        self.isetp(some, &[NE, AND, U32], size, Operand::zero());
        Ok((Place { base, ..from }, some, true))
    }

    /// Whether a size is 0 or the whole size wherever it is read. No part of a piece is left to
    /// fill then: a copy under a false predicate writes zeros.
    fn all_or_nothing(&self, operand: &ast::Operand, whole: u64) -> bool {
        let OperandKind::Register(used) = &operand.kind else { return false };
        let choices = self.choices.get(&used.register);
        choices.is_some_and(|choices| choices.iter().all(|bytes| *bytes == 0 || *bytes == whole))
    }

    /// Adds the offset to the base unless it fits a field of this many bits.
    fn near(&mut self, place: Place, bits: u32) -> Place {
        let reach = 1i64 << (bits - 1);
        if (-reach..reach).contains(&place.offset) {
            return place;
        }
        let base = if place.window == Window::Global {
            self.add_offset(place.base, place.offset)
        } else {
            let (sum, amount) = (self.temp(), self.imm(place.offset as u32));
            self.add(sum, place.base, amount);
            sum
        };
        Place { base, offset: 0, ..place }
    }

    /// Emits loads under @!PT before the first copy after any other access to memory, on targets
    /// that need them.
    fn dead_loads(&mut self) {
        let touches = |op: Op| [Prop::SideEffect, Prop::ReadsMemory, Prop::WritesMemory].iter().any(|p| op.has(*p));
        let insts = &self.f[self.block];
        let last = insts.iter().rev().map(|inst| self.f[*inst].op).find(|op| touches(*op));
        if last == Some(Op::LDGSTS) || !self.has(Feature::CopiesAfterDeadLoads) {
            return;
        }
        let guard = std::mem::replace(&mut self.guard, Operand::never());
        let none = self.literal(0);
        for _ in 0..DEAD_LOADS {
            let args = [(Role::D, Operand::zero()), (Role::A, Operand::zero()), (Role::Off, none)];
            self.put(Op::LDS, &[SIZE_32], &args);
        }
        self.guard = guard;
    }

    /// `cp.async.commit_group`
    pub fn close_copies(&mut self) -> Lowered {
        self.put(Op::LDGDEPBAR, &[], &[]);
        Ok(())
    }

    /// `cp.async.wait_group`
    pub fn wait_copies(&mut self, inst: &ast::Instruction) -> Lowered {
        let groups = self.constant_operand(&inst.operands[0])?;
        self.wait_for(groups)
    }

    /// `cp.async.wait_all`
    pub fn wait_all_copies(&mut self) -> Lowered {
        self.close_copies()?;
        self.wait_for(0)
    }

    fn wait_for(&mut self, groups: u64) -> Lowered {
        let (board, left) = (self.literal(COPIES), self.literal(groups.min(MAX_GROUPS) as i64));
        self.put(Op::DEPBAR, &[LE_COUNT], &[(Role::Sb, board), (Role::N, left)]);
        Ok(())
    }
}
