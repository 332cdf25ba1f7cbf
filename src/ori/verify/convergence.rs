//! Whether a pass preserves convergence: the control conditions of convergent operations, before
//! and after it.

use crate::ori::cfg::Cfg;
use crate::ori::function::{Block, Function, InstId};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::{Op, Prop};
use cranelift_entity::SecondaryMap;

/// For each convergent operation, the conditional branches it is control dependent on.
pub type Conditions = SortedMap<InstId, SortedSet<InstId>>;

/// The conditions of the convergent operations of a function.
pub fn convergent_conditions(function: &Function) -> Conditions {
    let cfg = Cfg::new(function);
    let operations = |block: Block| function[block].iter().filter(|inst| is_program_convergent(function, **inst));
    let asking: Vec<Block> = cfg.rpo.iter().copied().filter(|block| operations(*block).next().is_some()).collect();
    if asking.is_empty() {
        return SortedMap::new();
    }
    let trees = cfg.post_dominators_by_exit(function, usize::MAX);
    let after = |block: Block| trees.iter().find(|tree| tree.covers(block)).and_then(|tree| tree.parent(block));
    let mut direct: SecondaryMap<Block, SortedSet<Block>> = SecondaryMap::new();
    for block in cfg.rpo.iter().filter(|b| cfg.succs[**b].len() > 1) {
        for succ in &cfg.succs[*block] {
            let mut runner = Some(*succ);
            while let Some(at) = runner.filter(|r| Some(*r) != after(*block)) {
                direct[at].insert(*block);
                runner = after(at);
            }
        }
    }
    let branch = |block: Block| {
        let guarded = |i: &&InstId| function[**i].op == Op::BRA && !function[**i].guard.is_null();
        function[block].iter().find(guarded).copied()
    };
    let mut out = SortedMap::new();
    for block in asking {
        let mut closure: SortedSet<Block> = SortedSet::new();
        let mut work = vec![block];
        while let Some(at) = work.pop() {
            work.extend(direct[at].iter().filter(|b| closure.insert(**b)));
        }
        let conditions: SortedSet<InstId> = closure.iter().filter_map(|b| branch(*b)).collect();
        operations(block).for_each(|inst| {
            out.insert(*inst, conditions.clone());
        });
    }
    out
}

/// Convergent operations of the program, without those that only manage convergence.
fn is_program_convergent(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    op.has(Prop::Convergent)
        && !op.has(Prop::Control)
        && !op.has(Prop::ManagesConvergence)
        // What hands a value over to the uniform file may stand wherever the warp is converged, as
        // `insert_reconvergence` checks, and is gone where the value is there already.
        && !op.has(Prop::HandsOver)
        // A commit may become part of the product before it, or be added with a wait.
        && (op != Op::GMMA || function.arg(inst, crate::tables::Role::D).as_vector().is_some())
}

/// What a pass says of the convergent operations that it changed.
#[derive(Clone, Copy)]
pub struct Changes<'a> {
    /// Branches that constants decided: they are conditions no longer, and what only they led to
    /// may be gone.
    pub decided: &'a [InstId],
    /// What it hoisted out of loops: it has lost conditions, and got none.
    pub hoisted: &'a [InstId],
    /// What it wrote for the lanes that are together there.
    pub asked: &'a [InstId],
}

/// Convergent operations that were added or removed, or whose control conditions changed, but for
/// what the pass says. What is `droppable` may be gone, and a read by squares of lanes is, where it
/// is written in full.
pub fn compare_conditions(
    function: &Function,
    before: &Conditions,
    after: &Conditions,
    Changes { decided, hoisted, asked }: Changes,
) -> Vec<String> {
    let mut errors = Vec::new();
    let written = |inst: &InstId| function[*inst].op == Op::TEX_QUADS && !after.contains_key(inst);
    let squares = before.keys().any(written);
    for (inst, conditions) in before {
        let mut conditions = conditions.clone();
        conditions.retain(|branch| !decided.contains(branch));
        match after.get(inst) {
            None if function[*inst].op.has(Prop::Droppable) || written(inst) => {}
            None if decided.is_empty() => errors.push(format!("{inst}: a convergent operation is gone")),
            Some(now) if hoisted.contains(inst) && now.is_subset(&conditions) => {}
            Some(now) if *now != conditions => errors
                .push(format!("{inst}: the conditions of a convergent operation changed: {conditions:?} to {now:?}")),
            _ => {}
        }
    }
    let part = |inst: &InstId| squares && function[*inst].op.has(Prop::ReadsSquares);
    let new = after.keys().filter(|i| !before.contains_key(i) && !part(i) && !asked.contains(i));
    errors.extend(new.map(|i| format!("{i}: a new convergent operation")));
    errors
}

/// Whether control can leave the function. If it cannot, nothing post-dominates anything, and
/// control conditions say nothing.
pub fn ends(function: &Function) -> bool {
    let last = |block: &Block| function[*block].last().map(|inst| function[*inst].op);
    Cfg::new(function).rpo.iter().any(|block| last(block).is_some_and(|op| op.has(Prop::Leaves)))
}
