//! Memory ordering: scopes of strong accesses, fences before releases and after acquires.
//!
//! Input: `.volatile`, `.relaxed`, `.acquire`, `.release`, scopes and cache operators of an access; `membar` and `fence`.
//! Output: modifiers of the access, MEMBAR, ERRBAR, CGAERRBAR and CCTL.IVALL around it. Source: ptxas 13.0.88 output for each form.

use super::address::Window;
use super::builder::{Builder, Lowered};
use super::memory::AccessMods;
use super::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{CacheOp, MembarLevel, Modifiers, Scope, Semantics};
use crate::tables::{Feature, Op};

/// How one access is ordered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// The scope in which the access is strong; weak without one.
    pub scope: Option<Scope>,
    /// Earlier accesses come first.
    pub release: bool,
    /// Later accesses come after.
    pub acquire: bool,
}

impl Order {
    /// Of a load: `.cg` reads past the first cache, `.cv` past all of them.
    pub fn of_load(mods: &Modifiers) -> Order {
        let cached = match mods.cache_op {
            Some(CacheOp::Cg) => Some(Scope::Gpu),
            Some(CacheOp::Cv) => Some(Scope::Sys),
            _ => None,
        };
        Order { scope: cached, ..Order::default() }.with(mods)
    }

    /// Of a store: `.cg` writes to the second cache, `.wt` through it.
    pub fn of_store(mods: &Modifiers) -> Order {
        let cached = match mods.cache_op {
            Some(CacheOp::Cg) => Some(Scope::Gpu),
            Some(CacheOp::Wt) => Some(Scope::Sys),
            _ => None,
        };
        Order { scope: cached, ..Order::default() }.with(mods)
    }

    /// Of an atomic operation: relaxed and of the GPU's scope where nothing is written.
    pub fn of_atomic(mods: &Modifiers) -> Order {
        Order { scope: Some(mods.scope.unwrap_or(Scope::Gpu)), ..Order::default() }.with(mods)
    }

    fn with(mut self, mods: &Modifiers) -> Order {
        let written = Some(mods.scope.unwrap_or(Scope::Gpu));
        match mods.semantics {
            Some(Semantics::Volatile) => self.scope = Some(Scope::Sys),
            Some(Semantics::Relaxed) => self.scope = written,
            Some(Semantics::Acquire) => (self.scope, self.acquire) = (written, true),
            Some(Semantics::Release) => (self.scope, self.release) = (written, true),
            Some(Semantics::AcqRel | Semantics::Sc) => (self.scope, self.release, self.acquire) = (written, true, true),
            Some(Semantics::Weak) | None => {}
        }
        if mods.mmio {
            self.scope = Some(Scope::Sys);
        }
        self
    }
}

impl Builder<'_> {
    /// Modifiers of a load, a store or an atomic.
    pub fn access_mods(&self, size: M, window: Window, order: &Order) -> AccessMods {
        let mut mods = AccessMods::new();
        mods.push(size);
        if matches!(window, Window::Global | Window::Generic) {
            mods.push(E);
            mods.extend(self.scope_mods(order.scope));
        }
        mods
    }

    /// The scope of a strong access; nothing for a weak one.
    fn scope_mods(&self, scope: Option<Scope>) -> Option<M> {
        scope.map(|scope| match scope {
            Scope::Cta => STRONG_CTA,
            Scope::Cluster | Scope::Gpu => STRONG_GPU,
            Scope::Sys => STRONG_SYS,
        })
    }

    /// What stands before a release.
    pub fn before(&mut self, order: &Order, window: Window) {
        if order.release {
            let scope = fence_scope(order, window);
            self.barrier_and_errors(MEMBAR_ALL, scope);
        }
    }

    /// What stands after an acquire.
    pub fn after(&mut self, order: &Order, window: Window) {
        if order.acquire && fence_scope(order, window) != Scope::Cta {
            self.put(Op::CCTL, &[CCTL_IVALL], &[]);
        }
    }

    fn barrier_and_errors(&mut self, kind: M, scope: Scope) {
        self.put(Op::MEMBAR, &[kind, membar_scope(scope)], &[]);
        if scope == Scope::Cta {
            return;
        }
        self.put(Op::ERRBAR, &[], &[]);
        if self.has(Feature::CgaErrorBarrier) {
            self.put(Op::CGAERRBAR, &[], &[]);
        }
    }

    fn full_fence(&mut self, kind: M, scope: Scope) {
        self.barrier_and_errors(kind, scope);
        if scope != Scope::Cta {
            self.put(Op::CCTL, &[CCTL_IVALL], &[]);
        }
    }

    /// `membar`
    pub fn membar(&mut self, inst: &ast::Instruction) -> Lowered {
        let scope = match inst.mods.membar_level {
            Some(MembarLevel::Cta) => Scope::Cta,
            Some(MembarLevel::Gl) => Scope::Gpu,
            _ => Scope::Sys,
        };
        self.full_fence(MEMBAR_SC, scope);
        Ok(())
    }

    /// `fence`
    pub fn fence(&mut self, inst: &ast::Instruction) -> Lowered {
        let kind = if inst.mods.semantics == Some(Semantics::Sc) { MEMBAR_SC } else { MEMBAR_ALL };
        self.full_fence(kind, inst.mods.scope.unwrap_or(Scope::Sys));
        Ok(())
    }
}

fn membar_scope(scope: Scope) -> M {
    match scope {
        Scope::Cta => SCOPE_CTA,
        Scope::Cluster | Scope::Gpu => SCOPE_GPU,
        Scope::Sys => SCOPE_SYS,
    }
}

fn fence_scope(order: &Order, window: Window) -> Scope {
    // Shared memory is seen by the block alone.
    if window == Window::Shared { Scope::Cta } else { order.scope.unwrap_or(Scope::Gpu) }
}
