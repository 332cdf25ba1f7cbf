//! Lowers the barrier of a cluster, `st.async` and `red.async`.
//!
//! In a launch without clusters, the barrier of a cluster is that of the block: nobody arrives
//! there, and to wait is to synchronize. An entry with `.explicitcluster` has no such launch. A
//! store in another block takes the address and that of the barrier, both of the cluster, in one
//! pair. Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::memory::load_store::elements;
use crate::arrays::Each;
use crate::ori::mods::*;
use crate::ori::{Listed, Operand};
use crate::ptx::ast;
use crate::tables::ptx::{CancelQuery, ScalarType, Scope, Semantics, Space, SpecialRegister};
use crate::tables::{Feature, Mod, Op, Role, value};
use std::sync::Arc;

/// Uniform registers of the places of an answer.
const ANSWER: [u16; 2] = [10, 11];

impl Builder<'_> {
    /// `barrier.cluster.arrive`
    pub fn arrive_in_cluster(&mut self, inst: &ast::Instruction) -> Lowered {
        let [arrive, end] = [(); 2].each(|()| self.f.new_block());
        let guard = self.skip_unless_guarded(end);
        if self.layout.launch.explicit_cluster {
            self.enter(arrive);
        } else {
            let explicit = self.special_source(SpecialRegister::IsExplicitCluster)?;
            self.branch_if(explicit.inverted(), end, arrive);
        }
        if inst.mods.semantics != Some(Semantics::Relaxed) {
            self.fence_of(Semantics::Release, Scope::Cluster)?;
        }
        let barrier = self.put(Op::CGABAR_ARV, &[], &[]);
        (self.f[barrier].ordered, self.f[barrier].listed) = (true, Listed::Program);
        self.enter(end);
        self.guard = guard;
        Ok(())
    }

    /// `barrier.cluster.wait`
    pub fn wait_for_cluster(&mut self) -> Lowered {
        let end = self.f.new_block();
        let guard = self.skip_unless_guarded(end);
        if self.layout.launch.explicit_cluster {
            self.wait_together();
        } else {
            let [wait, alone] = [(); 2].each(|()| self.f.new_block());
            let explicit = self.special_source(SpecialRegister::IsExplicitCluster)?;
            self.branch_if(explicit.inverted(), alone, wait);
            self.wait_together();
            self.enter_after(end, alone);
            self.note_barrier(Operand::zero());
            let first = self.literal(0);
            let defers = self.has(Feature::BarrierDefersBlocking);
            let mods: &[M] = if defers { &[BAR_SYNC, BAR_DEFER] } else { &[BAR_SYNC] };
            self.put(Op::BAR, mods, &[(Role::A, first)]);
        }
        self.enter(end);
        self.guard = guard;
        Ok(())
    }

    fn wait_together(&mut self) {
        let barrier = self.put(Op::CGABAR_WAIT, &[], &[]);
        self.f[barrier].ordered = true;
        self.put(Op::CCTL, &[CCTL_IVALL], &[]);
    }

    /// `st.async` and `red.async`
    pub fn store_in_cluster(&mut self, inst: &ast::Instruction) -> Lowered {
        let m = &inst.mods;
        if m.completion.is_none() {
            return self.store_released(inst);
        }
        let [to, value, barrier] = inst.operands.as_slice() else { return Err(Refusal::NotBuilt) };
        let ty = inst.types[0];
        let words = [self.cluster_word_of(to, inst)?, self.cluster_word_of(barrier, inst)?];
        let parts = elements(value);
        let value = match (parts.len(), ty.bits()) {
            (1, 64) => self.source_pair(&parts[0], ty)?,
            (1, 128) => self.source(&parts[0], ty)?,
            (1, _) => self.source_reg(&parts[0], ty)?,
            _ => {
                let words = self.gather(parts, ty)?;
                self.side_by_side(words)
            }
        };
        let (op, mods) = match m.atom_op {
            Some(atom) => (Op::REDAS, vec![atom.modifier(), reduced(ty)]),
            None => (
                Op::STAS,
                vec![match ty.bits() * parts.len() as u32 {
                    32 => SIZE_32,
                    64 => SIZE_64,
                    _ => SIZE_128,
                }],
            ),
        };
        let (pair, none) = (self.pair_of(words), self.literal(0));
        let inst = self.put(op, &mods, &[(Role::A, pair), (Role::Off, none), (Role::B, value)]);
        self.f[inst].ordered = true;
        Ok(())
    }

    /// `st.async` and `red.async` with the order of a release, which are in global memory: a store
    /// that has begun is late enough.
    fn store_released(&mut self, inst: &ast::Instruction) -> Lowered {
        let mut plain = inst.clone();
        Arc::make_mut(&mut plain.mods).space = Some(Space::Global);
        if inst.mods.atom_op.is_none() {
            return self.store(&plain);
        }
        // A sum has no sign.
        plain.types.iter_mut().filter(|ty| **ty == ScalarType::S64).for_each(|ty| *ty = ScalarType::U64);
        self.atomic(&plain)
    }

    /// `clusterlaunchcontrol.try_cancel.async`: where the answer goes, and the barrier that learns
    /// of it, in one pair of uniform registers.
    pub fn ask_for_block(&mut self, inst: &ast::Instruction) -> Lowered {
        let [to, barrier] = inst.operands.as_slice() else { return Err(Refusal::NotBuilt) };
        let words = [self.cluster_word_of(to, inst)?, self.cluster_word_of(barrier, inst)?];
        let to_all = if inst.mods.multicast_all { value::next_to::BROADCAST } else { value::next_to::SELFCAST };
        self.lane_by_lane(|b| {
            let places = b.uniform(&ANSWER, &words);
            b.put(Op::UGETNEXTWORKID, &[(Mod::NextTo, to_all)], &[(Role::A, places)]);
            Ok(())
        })
    }

    /// `clusterlaunchcontrol.query_cancel`: the answer has the first block in its low 64 bits, and
    /// in the bit above whether there is one.
    pub fn answer_of_request(&mut self, inst: &ast::Instruction) -> Lowered {
        let answer = self.source(&inst.operands[1], ScalarType::B128)?;
        let words = self.dest_parts(answer);
        let (Some(&x), Some(&yz), Some(&there)) = (words.first(), words.get(1), words.get(2)) else {
            return Err(Refusal::NotBuilt);
        };
        let part = |b: &mut Self, which: usize, d: Operand| match which {
            0 => b.copy(d, x),
            1 => {
                let low = b.imm(0xffff);
                b.and(d, yz, low);
            }
            2 => {
                let amount = b.imm(16);
                b.shf(&SHF_R_U32_HI, d, Operand::zero(), amount, yz);
            }
            _ => b.copy(d, Operand::zero()),
        };
        let which = match inst.mods.cancel_query.ok_or(Refusal::NotBuilt)? {
            CancelQuery::IsCanceled => {
                let (d, bit, one) = (self.dest(&inst.operands[0])?, self.temp(), self.imm(1));
                self.and(bit, there, one);
                self.isetp(d, &[NE, AND, U32], bit, Operand::zero());
                return Ok(());
            }
            CancelQuery::GetFirstCtaidX => 0,
            CancelQuery::GetFirstCtaidY => 1,
            CancelQuery::GetFirstCtaidZ => 2,
            CancelQuery::GetFirstCtaid => {
                for (which, element) in elements(&inst.operands[0]).iter().enumerate() {
                    if !matches!(element.kind, ast::OperandKind::Sink) {
                        let d = self.dest(element)?;
                        part(self, which, d);
                    }
                }
                return Ok(());
            }
        };
        let d = self.dest(&inst.operands[0])?;
        part(self, which, d);
        Ok(())
    }

    /// An address in the cluster.
    fn cluster_word_of(&mut self, operand: &ast::Operand, inst: &ast::Instruction) -> Lowered<Operand> {
        let place = self.shared_place(operand, inst.mods.space)?;
        if place.offset == 0 {
            return Ok(place.base);
        }
        let (sum, amount) = (self.temp(), self.imm(place.offset as u32));
        self.add(sum, place.base, amount);
        Ok(sum)
    }
}

/// How a reduction spells its type.
fn reduced(ty: ScalarType) -> M {
    let size = match ty {
        ScalarType::S32 => value::size::S32,
        ScalarType::U64 => value::size::_64,
        _ => value::size::NONE,
    };
    (Mod::Size, size)
}
