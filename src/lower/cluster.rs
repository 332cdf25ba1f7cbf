//! Lowers the barrier of a cluster, `st.async` and `red.async`.
//!
//! In a launch without clusters, the barrier of a cluster is that of the block: nobody arrives
//! there, and to wait is to synchronize. An entry with `.explicitcluster` has no such launch. A
//! store in another block takes the address and that of the barrier, both of the cluster, in one
//! pair. Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::bulk::later;
use super::memory::load_store::elements;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{ScalarType, Scope, Semantics, SpecialRegister};
use crate::tables::{Feature, Mod, Op, Role, value};

impl Builder<'_> {
    /// `barrier.cluster.arrive`
    pub fn arrive_in_cluster(&mut self, inst: &ast::Instruction) -> Lowered {
        let [arrive, end] = [(); 2].map(|()| self.f.new_block());
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
        self.f.insts[barrier].ordered = true;
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
            let [wait, alone] = [(); 2].map(|()| self.f.new_block());
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
        self.f.insts[barrier].ordered = true;
        self.put(Op::CCTL, &[CCTL_IVALL], &[]);
    }

    /// `st.async` and `red.async`
    pub fn store_in_cluster(&mut self, inst: &ast::Instruction) -> Lowered {
        let m = &inst.mods;
        if m.mmio {
            return Err(later(inst, "mmio"));
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
        self.f.insts[inst].ordered = true;
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
