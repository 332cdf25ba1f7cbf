//! Lowers `cp.async.bulk`, `cp.reduce.async.bulk` and their groups, and `st.bulk`.
//!
//! The copy unit takes its operands from uniform registers and acts once, however many lanes
//! execute the instruction: so each lane issues its own copy alone, one after the other. The last
//! operand has the size in units of 16 bytes in its low half, and a mask of blocks or of bytes in
//! its high half; a mask of 32 blocks is a word of its own. Groups are counted by scoreboard 0.
//! Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use crate::arrays::Each;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{
    AtomOp, BulkFrom, BulkTo, Multicast, Op as PtxOp, ScalarType, Scope, Space, SpecialRegister, TensorMode,
};
use crate::tables::{Feature, Mod, Op, Role, value};

/// Uniform registers of the operands, besides those of a cache policy: written right before each
/// use, whichever lanes run.
const TO: [u16; 2] = [8, 9];
const FROM: [u16; 2] = [10, 11];
const SIZE: [u16; 2] = [12, 13];
/// The size counts units of this many bytes, as a power of two.
const UNIT: u32 = 4;
/// The same of what `st.bulk` clears.
const CLEARED: u32 = 3;
/// Bits of a mask of blocks.
const BLOCKS: u32 = 0xffff;
/// Selects the low halves of the two sources of PRMT.
const LOW_HALVES: u32 = 0x5410;

/// What says whether a copy in the cluster is one in the own block.
#[derive(Clone, Copy)]
pub enum Alone {
    /// Its address.
    At(Operand),
    /// The mask of blocks that it goes to: the first one alone, where blocks form no clusters.
    Blocks(Operand),
}

impl Alone {
    /// For a copy to an address or, if the instruction has one, a mask.
    pub fn of(inst: &ast::Instruction, to: Operand, mask: Operand) -> Alone {
        if inst.mods.multicast.is_some() { Alone::Blocks(mask) } else { Alone::At(to) }
    }

    /// The last word of the name of the driver's function for it.
    pub fn name(self) -> &'static str {
        match self {
            Alone::At(_) => "unicast",
            Alone::Blocks(_) => "multicast",
        }
    }
}

/// The operands of a copy, in registers or constants.
struct Copy {
    op: Op,
    mods: Vec<M>,
    to: [Operand; 2],
    /// One word in shared memory, two in global.
    from: Option<([Operand; 2], usize)>,
    size: Vec<Operand>,
    policy: Option<ast::Operand>,
}

impl Builder<'_> {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`
    pub fn copy_in_bulk(&mut self, inst: &ast::Instruction) -> Lowered {
        let m = &inst.mods;
        let [to, from, size, rest @ ..] = inst.operands.as_slice() else { return Err(Refusal::NotBuilt) };
        // What may be missing at the ends is not told to the unit: it reads whole units.
        let rest = rest.get(if m.ignore_oob { 2 } else { 0 }..).ok_or(Refusal::NotBuilt)?;
        let by_call = self.is_by_call(inst);
        let reduces = inst.op == PtxOp::CpReduceAsyncBulk;
        let way = match (m.bulk_to, m.bulk_from) {
            (Some(BulkTo::Global), _) => value::bulk_way::G_S,
            (_, Some(BulkFrom::Global)) => value::bulk_way::S_G,
            _ => value::bulk_way::S_S,
        };
        let mut mods = vec![(Mod::BulkWay, way)];
        if reduces {
            mods.extend(reduction(inst)?);
        }
        mods.extend(m.scope.map(strength));
        let (to, rest) = match (m.bulk_to, rest) {
            (Some(BulkTo::Global), rest) => (self.global_words(to)?, rest),
            (_, [barrier, rest @ ..]) => ([self.shared_word(to)?, self.shared_word(barrier)?], rest),
            _ => return Err(Refusal::NotBuilt),
        };
        let from = match m.bulk_from {
            Some(BulkFrom::Global) => (self.global_words(from)?, 2),
            _ => ([self.shared_word(from)?, Operand::zero()], 1),
        };
        let first = usize::from(m.multicast.is_some());
        let policy = m.cache_hint.then(|| rest.get(first).cloned()).flatten();
        let mask = match (m.multicast.is_some(), rest.last()) {
            (true, _) => {
                // A block that is alone copies to itself.
                mods.extend(several(inst).filter(|_| !by_call));
                self.mask_of_blocks(inst, rest.first().ok_or(Refusal::NotBuilt)?, by_call)?
            }
            (_, Some(mask)) if m.byte_mask => {
                mods.push(BYTE_MASK);
                self.source_word(mask, ScalarType::U16)?
            }
            _ => Operand::zero(),
        };
        let bytes = self.source_word(size, ScalarType::U32)?;
        let size = if is_wide(inst) {
            vec![self.units(size, Operand::zero())?, mask]
        } else {
            vec![self.units(size, if by_call { Operand::zero() } else { mask })?]
        };
        let op = if reduces { Op::UBLKRED } else { Op::UBLKCP };
        let copy = Copy { op, mods, to, from: Some(from), size, policy };
        if !by_call {
            return self.issue(copy);
        }
        let hint = self.policy_words(copy.policy.as_ref())?;
        let ([to, barrier], zero) = (copy.to, Operand::zero());
        let words = [to, zero, from.0[0], from.0[1], bytes, mask, barrier, zero, hint[0], hint[1]];
        let alone = Alone::of(inst, to, mask);
        let unused = |n: &u16| *n == MASK && matches!(alone, Alone::At(_));
        let registers: Vec<(u16, Operand)> = (FIRST_ARGUMENT..).zip(words).filter(|(n, _)| !unused(n)).collect();
        let name = format!("__cuda_syscall_cp_async_bulk_{}", alone.name());
        self.own_or_by_call(alone, |b| b.issue(copy), |b| b.call_driver(name, &registers, &[]))
    }

    /// Whether the driver does this copy where it goes to another block.
    pub fn is_by_call(&self, inst: &ast::Instruction) -> bool {
        self.has(Feature::BulkCopiesByCall) && is_by_call(inst)
    }

    /// A mask of blocks; the driver looks at all of its word.
    pub fn mask_of_blocks(
        &mut self,
        inst: &ast::Instruction,
        operand: &ast::Operand,
        by_call: bool,
    ) -> Lowered<Operand> {
        let word = self.source_word(operand, if is_wide(inst) { ScalarType::U32 } else { ScalarType::U16 })?;
        if !by_call {
            return Ok(word);
        }
        let (mask, all) = (self.temp(), self.imm(BLOCKS));
        let word = self.in_reg_unless_zero(word);
        self.and(mask, word, all);
        Ok(mask)
    }

    /// The words of a cache policy; zeros without one.
    pub fn policy_words(&mut self, policy: Option<&ast::Operand>) -> Lowered<[Operand; 2]> {
        match policy {
            Some(policy) => self.source_words(policy, ScalarType::B64),
            None => Ok([Operand::zero(); 2]),
        }
    }

    /// A copy in the cluster: `own` where that is in the own block, `call` elsewhere.
    pub fn own_or_by_call(
        &mut self,
        alone: Alone,
        own: impl FnOnce(&mut Self) -> Lowered,
        call: impl FnOnce(&mut Self),
    ) -> Lowered {
        let [here, there, end] = [(); 3].each(|()| self.f.new_block());
        let guard = self.skip_unless_guarded(end);
        let is_own = match alone {
            Alone::At(to) => self.is_in_own_block(to),
            Alone::Blocks(mask) => {
                let test = self.f.new_block();
                let explicit = self.special_source(SpecialRegister::IsExplicitCluster)?;
                self.branch_if(explicit, there, test);
                let (is_own, first) = (self.temp_pred(), self.imm(1));
                self.isetp(is_own, &[EQ, AND, U32], mask, first);
                is_own
            }
        };
        self.branch_if(is_own.inverted(), there, here);
        own(self)?;
        self.enter_after(end, there);
        call(self);
        self.enter(end);
        self.guard = guard;
        Ok(())
    }

    /// Whether an address of the cluster is one of the own block.
    fn is_in_own_block(&mut self, to: Operand) -> Operand {
        let (rank, mine, amount) = (self.temp(), self.temp(), self.imm(RANK));
        let number = self.special_number("SR_CgaCtaId");
        self.shf(&SHF_R_U32_HI, rank, Operand::zero(), amount, to);
        self.put(Op::S2R, &[], &[(Role::D, mine), (Role::S, number)]);
        let is_own = self.temp_pred();
        self.isetp(is_own, &[EQ, AND, U32], rank, mine);
        is_own
    }

    /// `cp.async.bulk.prefetch` and `applypriority.async.bulk`
    pub fn prefetch_in_bulk(&mut self, inst: &ast::Instruction) -> Lowered {
        let [at, size, rest @ ..] = inst.operands.as_slice() else { return Err(Refusal::NotBuilt) };
        let to = self.global_words(at)?;
        let size = self.units(size, Operand::zero())?;
        let mods = l2_action(inst).into_iter().collect();
        self.issue(Copy { op: Op::UBLKPF, mods, to, from: None, size: vec![size], policy: rest.first().cloned() })
    }

    /// `cp.async.bulk.commit_group`
    pub fn close_bulk_group(&mut self) -> Lowered {
        self.one_for_all(|b| {
            b.put(Op::UTMACMDFLUSH, &[], &[]);
            Ok(())
        })
    }

    /// `cp.async.bulk.wait_group`: what the copies wrote is in memory, behind the first level
    /// cache.
    pub fn wait_bulk_groups(&mut self, inst: &ast::Instruction) -> Lowered {
        self.wait_copies(inst)?;
        // Only the asynchronous proxy is told of the copies' ends, or that their sources are free.
        if !inst.mods.read && inst.mods.restricted.is_none() {
            self.put(Op::CCTL, &[CCTL_IVALL], &[]);
        }
        Ok(())
    }

    /// `st.bulk`: the unit counts units of 8 bytes.
    pub fn clear_in_bulk(&mut self, inst: &ast::Instruction) -> Lowered {
        let at = self.shared_place(&inst.operands[0], inst.mods.space)?;
        let bytes = self.source_words(&inst.operands[1], ScalarType::B64)?;
        let units = match bytes.each(|word| self.constant(word)) {
            [Some(low), Some(high)] => self.imm(((high << 32 | low) >> CLEARED) as u32),
            _ => {
                let (units, amount) = (self.temp(), self.imm(CLEARED));
                let [low, high] = bytes.each(|word| self.in_reg_unless_zero(word));
                self.shf(&SHF_R_U64, units, low, amount, high);
                units
            }
        };
        self.lane_by_lane(|b| {
            let (to, size) = (b.uniform(&TO[..1], &[at.base]), b.uniform(&SIZE[..1], &[units]));
            let offset = b.literal(at.offset);
            b.put(Op::MEMSET, &[], &[(Role::A, to), (Role::Off, offset), (Role::B, size)]);
            Ok(())
        })
    }

    fn issue(&mut self, copy: Copy) -> Lowered {
        let Copy { op, mods, to, from, size, policy } = copy;
        self.lane_by_lane(|b| {
            let mut args = vec![(Role::A, b.uniform(&TO, &to))];
            if let Some((words, count)) = from {
                args.push((Role::B, b.uniform(&FROM[..count], &words[..count])));
            }
            args.push((Role::C, b.uniform(&SIZE[..size.len()], &size)));
            if let Some(policy) = &policy {
                args.push((Role::E, b.policy(policy)?));
            }
            b.put(op, &mods, &args);
            Ok(())
        })
    }

    /// An address in global memory.
    fn global_words(&mut self, operand: &ast::Operand) -> Lowered<[Operand; 2]> {
        let place = self.place(operand, Some(Space::Global))?;
        let base = if place.offset == 0 { place.base } else { self.add_offset(place.base, place.offset) };
        Ok(self.words(base))
    }

    /// An address in shared memory, of the cluster's window where the target has one.
    pub fn shared_word(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        let place = self.shared_place(operand, Some(Space::Shared))?;
        if place.offset == 0 {
            return Ok(place.base);
        }
        let (sum, amount) = (self.temp(), self.imm(place.offset as u32));
        self.add(sum, place.base, amount);
        Ok(sum)
    }

    /// The size of a copy, and a mask above it.
    fn units(&mut self, size: &ast::Operand, mask: Operand) -> Lowered<Operand> {
        let size = self.source_word(size, ScalarType::U32)?;
        if let (Some(size), Some(mask)) = (self.constant(size), self.constant(mask)) {
            return Ok(self.imm((size as u32 >> UNIT) & 0xffff | (mask as u32) << 16));
        }
        let (units, amount, both) = (self.temp(), self.imm(UNIT), self.temp());
        self.shf(&SHF_R_U32_HI, units, Operand::zero(), amount, size);
        let selector = self.imm(LOW_HALVES);
        let mask = self.in_reg_unless_zero(mask);
        self.put(Op::PRMT, &[], &[(Role::D, both), (Role::A, units), (Role::B, selector), (Role::C, mask)]);
        Ok(both)
    }
}

/// Whether the mask of blocks has 32 bits.
pub(super) fn is_wide(inst: &ast::Instruction) -> bool {
    inst.mods.multicast == Some(Multicast::MulticastCluster32b)
}

/// The modifier of a copy to several blocks.
pub(super) fn several(inst: &ast::Instruction) -> Option<M> {
    let wide = (Mod::Multicast32, value::multicast_32::MULTICAST32);
    inst.mods.multicast.map(|_| if is_wide(inst) { wide } else { MULTICAST })
}

/// Bytes of the offsets of pixels and a cache policy on the stack of a call.
pub(super) const STACK_BYTES: u64 = 16;
/// Lowest bit of the rank of a block in an address of the cluster.
const RANK: u32 = 24;
/// The first register of an argument, and the one that no argument of a copy takes.
const FIRST_ARGUMENT: u16 = 4;
/// Where a mask of blocks is, if there is one.
const MASK: u16 = 9;

/// Whether the driver does such a copy where it goes to another block, on targets where it does
/// any.
pub(super) fn is_by_call(inst: &ast::Instruction) -> bool {
    let m = &inst.mods;
    let copies = matches!(inst.op, PtxOp::CpAsyncBulk | PtxOp::CpAsyncBulkTensor);
    let tile = matches!(m.tensor_mode, None | Some(TensorMode::Tile | TensorMode::Im2col));
    copies && tile && m.bulk_to == Some(BulkTo::SharedCluster) && m.bulk_from == Some(BulkFrom::Global)
}

/// How strong a copy with a scope is. Source: ptxas 13.5.37 output for each scope.
fn strength(scope: Scope) -> M {
    let strength = match scope {
        Scope::Cta => value::mem::STRONG_CTA,
        Scope::Cluster | Scope::Gpu => value::mem::STRONG_GPU,
        Scope::Sys => value::mem::STRONG_SYS,
    };
    (Mod::Mem, strength)
}

/// What is done to lines of the second level cache, if not just fetching them. Source: ptxas
/// 13.5.37 output for each form.
pub(super) fn l2_action(inst: &ast::Instruction) -> Option<M> {
    let demotes = matches!(inst.op, PtxOp::ApplypriorityAsyncBulk | PtxOp::ApplypriorityAsyncBulkTensor);
    let action = if demotes { value::l2_action::DM } else { value::l2_action::PM };
    inst.mods.evict_l2.map(|_| (Mod::L2Action, action))
}

/// The refusal of a form that is not built.
pub(super) fn later(inst: &ast::Instruction, form: &str) -> Refusal {
    Refusal::At(inst.pos, format!("Instruction '{}.{form}' is not implemented", inst.op.name()))
}

/// The refusal of a use that is not built.
pub(super) fn later_with(inst: &ast::Instruction, what: &str) -> Refusal {
    Refusal::At(inst.pos, format!("Instruction '{}' with {what} is not implemented", inst.op.name()))
}

/// The operation of a reduction.
pub(super) fn operation(op: Option<AtomOp>) -> Lowered<u8> {
    Ok(match op {
        Some(AtomOp::Add) => value::tma_op::ADD,
        Some(AtomOp::Min) => value::tma_op::MIN,
        Some(AtomOp::Max) => value::tma_op::MAX,
        Some(AtomOp::Inc) => value::tma_op::INC,
        Some(AtomOp::Dec) => value::tma_op::DEC,
        Some(AtomOp::And) => value::tma_op::AND,
        Some(AtomOp::Or) => value::tma_op::OR,
        Some(AtomOp::Xor) => value::tma_op::XOR,
        _ => return Err(Refusal::NotBuilt),
    })
}

/// Operation and type of a reduction. Bits of 64 are unsigned numbers of 64.
fn reduction(inst: &ast::Instruction) -> Lowered<[M; 2]> {
    let op = operation(inst.mods.atom_op)?;
    let ty = match inst.types[0] {
        ScalarType::U32 | ScalarType::B32 => value::bulk_type::NONE,
        ScalarType::S32 => value::bulk_type::S32,
        ScalarType::U64 | ScalarType::B64 => value::bulk_type::U64,
        ScalarType::S64 => value::bulk_type::S64,
        ScalarType::F16 => value::bulk_type::F16_RN,
        ScalarType::Bf16 => value::bulk_type::BF16_RN,
        ScalarType::F32 => value::bulk_type::F32_RN,
        ScalarType::F64 => value::bulk_type::F64_RN,
        _ => return Err(Refusal::NotBuilt),
    };
    Ok([(Mod::TmaOp, op), (Mod::BulkType, ty)])
}
