//! The context of a pass: the function, what the target can encode, and cached analyses.
//!
//! An analysis that the context returns describes the function at the time of the call, provided
//! that the pass has not changed the function since it was entered, or has called
//! [`PassCx::invalidate`] after the change.

use super::def_use::DefUse;
use super::divergence::Varying;
use super::loops::Loops;
use super::reconvergence::{Plan, plan};
use crate::ori::cfg::{Cfg, Dominators};
use crate::ori::liveness::Liveness;
use crate::ori::{Function, InstId};
use crate::tables::passes::Analysis;
use std::rc::Rc;

/// What the target can encode, as predicates on one instruction.
#[derive(Clone, Copy)]
pub struct Encoder {
    /// Whether an optimization may leave the instruction in this form: an immediate store value
    /// counts as a register, and symbols count as unencodable, so that passes do not touch them.
    pub encodes: fn(&Function, InstId) -> bool,
    /// Whether the target encodes the instruction exactly as it is.
    pub is_legal: fn(&Function, InstId) -> bool,
}

/// Cached analyses of one function.
#[derive(Default)]
struct Cache {
    cfg: Option<Rc<Cfg>>,
    dominators: Option<Rc<Dominators>>,
    post_dominators: Option<Rc<Dominators>>,
    loops: Option<Rc<Loops>>,
    liveness: Option<Rc<Liveness>>,
    def_use: Option<Rc<DefUse>>,
    regions: Option<Rc<Plan>>,
}

/// The argument of every pass.
pub struct PassCx<'a> {
    /// The function that the pass changes.
    pub function: &'a mut Function,
    /// What the target can encode.
    pub encoder: Encoder,
    /// Conditional branches that the pass found always or never taken; for the verifier.
    pub decided: Vec<InstId>,
    /// Convergent operations that the pass moved out of loops whose lanes stay together; for the
    /// verifier.
    pub hoisted: Vec<InstId>,
    /// Convergent operations that the last pass wrote for the lanes that are together there.
    pub asked: Vec<InstId>,
    /// Whether the pass found nothing to do, so that all cached analyses remain valid.
    pub unchanged: bool,
    /// Whether nothing has changed since dead code was eliminated.
    pub swept: bool,
    /// Whether the pass eliminated all dead code.
    pub sweeps: bool,
    /// Number of instructions behind which [`PassCx::compact`] looks for those that are gone, and
    /// whether the function was in SSA form then.
    enough: usize,
    was_ssa: bool,
    cache: Cache,
}

/// Instructions from which on those that are gone are worth their memory.
const MANY: usize = 1 << 16;

impl<'a> PassCx<'a> {
    /// A context with an empty cache.
    pub fn new(function: &'a mut Function, encoder: Encoder) -> PassCx<'a> {
        PassCx {
            function,
            encoder,
            decided: Vec::new(),
            hoisted: Vec::new(),
            asked: Vec::new(),
            unchanged: false,
            swept: false,
            sweeps: false,
            enough: MANY,
            was_ssa: false,
            cache: Cache::default(),
        }
    }

    /// Where many instructions were made since the last time, or PHIs are gone, drops those that
    /// are in no block. Returns whether it renumbered the instructions.
    pub fn compact(&mut self) -> bool {
        let count = self.function.insts().len();
        let left = std::mem::replace(&mut self.was_ssa, self.function.is_ssa()) && !self.function.is_ssa();
        let compacts = (count > self.enough || left && count > MANY) && self.function.watched().is_none();
        if compacts {
            self.function.compact();
            self.cache.def_use = None;
            self.enough = MANY.max(self.function.insts().len() / 8 * 9);
        }
        compacts
    }

    /// The control-flow graph.
    pub fn cfg(&mut self) -> Rc<Cfg> {
        let function = &*self.function;
        self.cache.cfg.get_or_insert_with(|| Rc::new(Cfg::new(function))).clone()
    }

    /// The dominator tree.
    pub fn dominators(&mut self) -> Rc<Dominators> {
        let cfg = self.cfg();
        self.cache.dominators.get_or_insert_with(|| Rc::new(cfg.dominators())).clone()
    }

    /// The post-dominator tree for surviving lanes; see [`Cfg::post_dominators`].
    pub fn post_dominators(&mut self) -> Rc<Dominators> {
        let cfg = self.cfg();
        let function = &*self.function;
        self.cache.post_dominators.get_or_insert_with(|| Rc::new(cfg.post_dominators(function))).clone()
    }

    /// The natural loops.
    pub fn loops(&mut self) -> Rc<Loops> {
        let (cfg, dominators) = (self.cfg(), self.dominators());
        self.cache.loops.get_or_insert_with(|| Rc::new(Loops::new(&cfg, &dominators))).clone()
    }

    /// Registers live at the end of each block.
    pub fn liveness(&mut self) -> Rc<Liveness> {
        self.function.list_registers();
        let cfg = self.cfg();
        let function = &*self.function;
        self.cache.liveness.get_or_insert_with(|| Rc::new(Liveness::at_end(function, &cfg, |_| false))).clone()
    }

    /// Definitions and use counts of a function in SSA form. The caller keeps its own copy up to
    /// date while it rewrites; the cached one describes the function as it was.
    pub fn def_use(&mut self) -> Rc<DefUse> {
        self.function.list_registers();
        let function = &*self.function;
        self.cache.def_use.get_or_insert_with(|| Rc::new(DefUse::new(function))).clone()
    }

    /// As [`PassCx::def_use`], but owned, for the caller to keep up to date while it rewrites.
    pub fn take_def_use(&mut self) -> DefUse {
        self.def_use();
        let cached = self.cache.def_use.take();
        cached.map_or_else(|| DefUse::new(self.function), Rc::unwrap_or_clone)
    }

    /// Varying registers and divergent blocks, lanes meeting where `insert_reconvergence` will make
    /// them.
    pub fn divergence(&mut self) -> Rc<Varying> {
        self.regions().varying.clone()
    }

    /// The convergence regions that `insert_reconvergence` makes of the function as it is.
    pub fn regions(&mut self) -> Rc<Plan> {
        self.function.list_registers();
        let (cfg, dominators) = (self.cfg(), self.dominators());
        let function = &*self.function;
        self.cache.regions.get_or_insert_with(|| Rc::new(plan(function, &cfg, &dominators))).clone()
    }

    /// Drops every cached analysis that is not in `kept`. Called by the pass manager, and by passes
    /// that request an analysis again after a change.
    pub fn invalidate(&mut self, kept: &[Analysis]) {
        let keeps = |analysis| kept.contains(&analysis);
        let cache = &mut self.cache;
        cache.cfg.take_if(|_| !keeps(Analysis::Cfg));
        cache.dominators.take_if(|_| !keeps(Analysis::Dominators));
        cache.post_dominators.take_if(|_| !keeps(Analysis::PostDominators));
        cache.loops.take_if(|_| !keeps(Analysis::Loops));
        cache.liveness.take_if(|_| !keeps(Analysis::Liveness));
        cache.def_use.take_if(|_| !keeps(Analysis::DefUse));
        cache.regions.take_if(|_| !keeps(Analysis::Divergence));
    }

    /// Cached analyses that differ from fresh ones, although the pass claims to preserve them.
    pub fn stale(&self) -> Vec<Analysis> {
        let function = &*self.function;
        let mut fresh = FreshAnalyses::new(function);
        let cache = &self.cache;
        let mut stale = Vec::new();
        let mut note = |differs: bool, analysis| {
            if differs {
                stale.push(analysis);
            }
        };
        note(cache.cfg.as_deref().is_some_and(|old| *old != fresh.cfg), Analysis::Cfg);
        note(cache.dominators.as_deref().is_some_and(|old| *old != fresh.cfg.dominators()), Analysis::Dominators);
        let post = |cfg: &Cfg| cfg.post_dominators(function);
        note(cache.post_dominators.as_deref().is_some_and(|old| *old != post(&fresh.cfg)), Analysis::PostDominators);
        note(cache.loops.as_deref().is_some_and(|old| *old != fresh.loops()), Analysis::Loops);
        let live = |cfg: &Cfg| Liveness::at_end(function, cfg, |_| false);
        note(cache.liveness.as_deref().is_some_and(|old| *old != live(&fresh.cfg)), Analysis::Liveness);
        note(cache.def_use.as_deref().is_some_and(|old| *old != DefUse::new(function)), Analysis::DefUse);
        let lanes = |cfg: &Cfg| plan(function, cfg, &cfg.dominators()).varying;
        note(cache.regions.as_deref().is_some_and(|old| old.varying != lanes(&fresh.cfg)), Analysis::Divergence);
        stale
    }
}

/// Freshly computed analyses, to compare with cached ones.
struct FreshAnalyses {
    cfg: Cfg,
}

impl FreshAnalyses {
    fn new(function: &Function) -> FreshAnalyses {
        FreshAnalyses { cfg: Cfg::new(function) }
    }

    fn loops(&mut self) -> Loops {
        Loops::new(&self.cfg, &self.cfg.dominators())
    }
}
