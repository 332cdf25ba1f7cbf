//! The memory model: strong accesses, fences, and the fences around acquire and release accesses.
//!
//! Maps semantics, scope, cache operator and hints of an access to instruction modifiers and to the
//! fences before and after it. All of this is in `tables/lowering/order.ron` and `cache.ron`; this
//! module only looks up rows.

use super::address::Window;
use super::load_store::AccessMods;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::mods::*;
use crate::ori::{File, Operand};
use crate::ptx::ast;
use crate::tables::memory::{Access, CacheRow, OrderRow, Step};
use crate::tables::ptx::{MembarLevel, Modifiers, Proxy, Restricted, ScalarType, Scope, Semantics, Space};
use crate::tables::{Feature, Op, Role};

/// Numbers of the uniform registers that hold a cache policy. They are written before each access
/// with a policy. If lanes diverge, the last one to write wins, so the registers always hold some
/// policy of the program.
const POLICY: [u16; 2] = [6, 7];

/// Ordering and caching of one access.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// `None` for a weak access without fences.
    pub row: Option<&'static OrderRow>,
    /// Modifiers for the cache operator and the hints.
    pub cache: AccessMods,
    /// A descriptor with a cache policy, or null.
    pub policy: Operand,
    /// Whether the access has no descriptor, as accesses to memory-mapped devices have none.
    pub plain: bool,
    /// Whether the order of the access matters to the program although no modifier says so (shared
    /// memory).
    pub strong: bool,
}

impl Default for Order {
    fn default() -> Order {
        Order { row: None, cache: AccessMods::new(), policy: Operand::NULL, plain: false, strong: false }
    }
}

impl Builder<'_> {
    /// The order of `ld`, `st`, `atom`, `red`. The last operand is a cache policy if the modifiers
    /// say so.
    pub fn order(&mut self, access: Access, inst: &ast::Instruction, window: Window) -> Lowered<Order> {
        let mods = &inst.mods;
        if matches!(window, Window::Local | Window::Bank(_)) {
            return Ok(Order::default());
        }
        let atomic = access == Access::Atom;
        let semantics = mods.semantics.unwrap_or(if atomic { Semantics::Relaxed } else { Semantics::Weak });
        let scope = match semantics {
            Semantics::Weak | Semantics::Volatile => None,
            _ => Some(mods.scope.unwrap_or(Scope::Gpu)),
        };
        let base = if access == Access::LdNc { Access::Ld } else { access };
        let row = OrderRow::of(self.target, base, semantics, scope, window == Window::Shared);
        let row = row.ok_or(Refusal::NotBuilt)?;
        let strong = semantics != Semantics::Weak || mods.mmio;
        let mut order = Order { row: Some(row), strong, ..Order::default() };
        if window != Window::Shared {
            order.cache = cache_mods(access, mods)?;
            if access == Access::LdNc {
                order.cache.push(CONSTANT);
            }
        }
        if mods.mmio {
            order.cache.push(MMIO_SYS);
            order.plain = true;
        }
        if mods.cache_hint {
            let policy = inst.operands.last().ok_or(Refusal::NotBuilt)?;
            order.policy = self.policy(policy)?;
        }
        Ok(order)
    }

    /// A cache policy as the descriptor of an access.
    pub fn policy(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        let words = self.source_words(operand, ScalarType::B64)?;
        let vector = self.f.new_vector(File::UR, 2);
        for ((reg, phys), word) in self.f.vector_regs(vector).to_vec().into_iter().zip(POLICY).zip(words) {
            self.f[reg].phys = Some(phys);
            self.put(Op::R2UR, &[], &[(Role::D, Operand::reg(reg)), (Role::A, word)]);
        }
        Ok(Operand::vector(vector))
    }

    /// Modifiers of a load, a store or an atomic.
    pub fn access_mods(&self, size: M, window: Window, order: &Order) -> AccessMods {
        let mut mods = AccessMods::new();
        mods.push(size);
        if matches!(window, Window::Global | Window::Generic) {
            mods.push(E);
            mods.extend(order.row.iter().flat_map(|row| row.mods.iter().copied()));
            mods.extend(order.cache.iter().copied());
            mods.extend(self.hint(order));
        }
        mods
    }

    /// The modifier that marks a descriptor with a policy, on targets that have it.
    pub fn hint(&self, order: &Order) -> Option<M> {
        (!order.policy.is_null() && self.has(Feature::PolicyBit)).then_some(HINT)
    }

    /// Emits the fences before an access.
    pub fn before(&mut self, order: &Order) {
        self.fence_steps(order.row.map_or(&[], |row| row.before));
    }

    /// Emits the fences after an access.
    pub fn after(&mut self, order: &Order) {
        self.fence_steps(order.row.map_or(&[], |row| row.after));
    }

    fn fence_steps(&mut self, steps: &[Step]) {
        for step in steps {
            if step.op != Op::CGAERRBAR || self.has(Feature::CgaErrorBarrier) {
                self.put(step.op, step.mods, &[]);
            }
        }
    }

    /// The fence of an order and a scope.
    pub fn fence_of(&mut self, semantics: Semantics, scope: Scope) -> Lowered {
        self.fence_for(Access::Fence, semantics, scope)
    }

    /// The fence of a kind of access.
    pub fn fence_for(&mut self, access: Access, semantics: Semantics, scope: Scope) -> Lowered {
        let row = OrderRow::of(self.target, access, semantics, Some(scope), false).ok_or(Refusal::NotBuilt)?;
        self.fence_steps(row.before);
        self.fence_steps(row.after);
        Ok(())
    }

    /// `membar`
    pub fn membar(&mut self, inst: &ast::Instruction) -> Lowered {
        let scope = match inst.mods.membar_level {
            Some(MembarLevel::Cta) => Scope::Cta,
            Some(MembarLevel::Gl) => Scope::Gpu,
            _ => Scope::Sys,
        };
        self.fence_of(Semantics::Sc, scope)
    }

    /// `fence`
    pub fn fence(&mut self, inst: &ast::Instruction) -> Lowered {
        if inst.mods.restricted.is_some() {
            return self.restricted_fence(inst);
        }
        let semantics = inst.mods.semantics.unwrap_or(Semantics::AcqRel);
        self.fence_of(semantics, inst.mods.scope.unwrap_or(Scope::Sys))
    }

    /// A fence of a part of the memory: a release of the own block's shared memory makes its
    /// writes seen there and by the asynchronous proxy. An acquire, and a release of reads, only
    /// waits: the barrier at which threads meet orders the rest.
    fn restricted_fence(&mut self, inst: &ast::Instruction) -> Lowered {
        if inst.mods.restricted == Some(Restricted::SyncRestrictSharedCta) {
            self.put(Op::MEMBAR, &[MEMBAR_ALL, SCOPE_CTA], &[]);
            self.put(Op::FENCE_S, &[], &[]);
        } else {
            self.put(Op::ACQUIRE, &[], &[]);
        }
        Ok(())
    }

    /// `fence.proxy`
    pub fn proxy_fence(&mut self, inst: &ast::Instruction) -> Lowered {
        match (inst.mods.proxy, inst.mods.semantics) {
            (Some(Proxy::Alias), Some(Semantics::Release)) => {
                self.put(Op::MEMBAR, &[MEMBAR_ALL, SCOPE_SYS], &[]);
            }
            (Some(Proxy::Alias), Some(_)) => {
                self.put(Op::CCTL, &[CCTL_IVALL], &[]);
            }
            (Some(Proxy::Alias), None) => {
                self.put(Op::MEMBAR, &[MEMBAR_SC, SCOPE_GPU], &[]);
                self.put(Op::MEMBAR, &[MEMBAR_SC, SCOPE_SYS], &[]);
                self.put(Op::CCTL, &[CCTL_IVALL], &[]);
            }
            (Some(Proxy::Async), _) => {
                let space = inst.mods.space;
                if space != Some(Space::Global) {
                    let scope = if space == Some(Space::SharedCta) { SCOPE_CTA } else { SCOPE_GPU };
                    self.put(Op::MEMBAR, &[MEMBAR_ALL, scope], &[]);
                    self.put(Op::FENCE_S, &[], &[]);
                }
                if space.is_none() || space == Some(Space::Global) {
                    self.put(Op::FENCE_G, &[], &[]);
                }
            }
            (Some(Proxy::AsyncGeneric), _) => return self.restricted_fence(inst),
            (Some(Proxy::TensormapGeneric), Some(Semantics::Release)) => {
                self.fence_for(Access::Map, Semantics::Release, inst.mods.scope.unwrap_or(Scope::Sys))?;
            }
            (Some(Proxy::TensormapGeneric), _) => return self.acquire_map(inst),
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }
}

/// Modifiers for the cache operator, eviction priorities and prefetch size of an access.
pub(crate) fn cache_mods(access: Access, mods: &Modifiers) -> Lowered<AccessMods> {
    let mut out = AccessMods::new();
    let texts = [
        mods.cache_op.map(|v| v.name()),
        mods.evict_l1.map(|v| v.name()),
        mods.evict_l2.map(|v| v.name()),
        mods.prefetch_size.map(|v| v.name()),
    ];
    for text in texts.into_iter().flatten() {
        out.extend_from_slice(CacheRow::of(access, text).ok_or(Refusal::NotBuilt)?.mods);
    }
    Ok(out)
}
