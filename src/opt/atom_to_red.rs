//! Replaces ATOMG by RED (in GeneralOptimize) if its result has no use and the target encodes the
//! RED.
//!
//! The effect on memory is the same. An atomic that a cache invalidation (CCTL) follows keeps its
//! result, because the invalidation must wait until the atomic has completed, and only a result
//! tells.

use crate::analysis::PassCx;
use crate::analysis::def_use::Fits;
use crate::ori::liveness::RegSet;
use crate::ori::{Function, InstId};
use crate::tables::{Op, Role};

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    let atomic = |function: &Function, inst: &InstId| function[*inst].op == Op::ATOMG;
    let all = || function.layout().iter().flat_map(|b| &function[*b]);
    if !all().any(|inst| atomic(function, inst)) {
        cx.unchanged = true;
        return;
    }
    let mut read = RegSet::new(function.regs().len());
    for inst in all() {
        function.for_each_use(*inst, |reg| {
            read.insert(reg);
        });
    }
    for block in function.layout().to_vec() {
        for at in 0..function[block].len() {
            let inst = function[block][at];
            let next = function[block].get(at + 1).map(|next| function[*next].op);
            if atomic(function, &inst)
                && next != Some(Op::CCTL)
                && let Some(new) = without_result(function, inst, &read, fits)
            {
                function[block][at] = new;
            }
        }
    }
}

/// The instruction without a result, if the result is unused and the target encodes it.
fn without_result(function: &mut Function, inst: InstId, read: &RegSet, fits: Fits) -> Option<InstId> {
    let mut wanted = false;
    function.for_each_def(inst, |reg| wanted |= read.contains(reg) || function[reg].phys.is_some());
    if wanted || !function.arg(inst, Role::C).is_null() {
        return None;
    }
    let new = function.make(Op::RED);
    for role in [Role::A, Role::Ub, Role::Desc, Role::Off, Role::B] {
        let operand = function.arg(inst, role);
        function.set_arg(new, role, operand);
    }
    let old = &function[inst];
    let (mods, guard, line, ordered) = (old.mods, old.guard, old.line, old.ordered);
    let data = &mut function[new];
    (data.mods, data.guard, data.line, data.ordered) = (mods, guard, line, ordered);
    fits(function, new).then_some(new)
}
