//! Pass `uniform_registers`: moves values that are equal in all lanes to the uniform register file.
//!
//! The column `uniform` of `tables/ori` gives the uniform form of an opcode. What is guaranteed:
//! - a uniform register is written only where the warp is converged or all its lanes that are not
//!   there wait, as `insert_reconvergence` checks;
//! - a move between the files is added only where it saves more of them, or where much is computed
//!   for the value in the uniform file: otherwise a value that one reader needs in a general
//!   register stays there, unless it has no register source and is cheap to define twice;
//! - nowhere are more uniform registers live than the file has, minus a reserve, nor across a call
//!   more than calls preserve.
//!
//! No value of a device function moves: its callers may be diverged. Constants that are still
//! handed over, where lanes may be apart, are made in the uniform file in every function.

use super::candidates::Candidates;
use super::constants::kept_at_ends;
use super::twins::Places;
use super::{comparisons, pressure, rewrite};
use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, rewrite};
use crate::ori::{Convention, InstId};
use crate::sorted::SortedSet;
use crate::tables::{Feature, Op, Role};

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    if !cx.function.target().has(Feature::UniformDatapath) {
        return;
    }
    if cx.function.attributes().convention == Convention::Kernel {
        values(cx);
    }
    hand_constants_over(cx);
}

/// Moves values.
fn values(cx: &mut PassCx) {
    let (cfg, loops, dominators, lanes) = (cx.cfg(), cx.loops(), cx.dominators(), cx.divergence());
    let liveness = cx.liveness();
    let crowded = pressure::crowded(cx.function, &cfg, &loops, &liveness);
    let places = Places { cfg: &cfg, loops: &loops, dominators: &dominators, lanes: &lanes, crowded: &crowded };
    comparisons::exchange(cx.function, &lanes);
    let mut candidates = Candidates::new(cx.function, &places, cx.encoder.encodes);
    let ends = kept_at_ends(cx.function, &cfg, &lanes);
    for _ in 0..ROUNDS {
        candidates.settle(cx.function, &places);
        if candidates.is_empty() {
            return;
        }
        let liveness = cx.liveness();
        let some = pressure::relieve(cx.function, (&places, &ends), &liveness, &mut candidates);
        if !some || rewrite::run(cx.function, &places, &mut candidates) {
            return;
        }
    }
}

/// Attempts at a set in which everything fits together.
const ROUNDS: usize = 8;

/// Makes constants where they are handed over, and nowhere else.
fn hand_constants_over(cx: &mut PassCx) {
    let mut handed: Vec<InstId> = Vec::new();
    for inst in cx.function.layout().iter().flat_map(|block| &cx.function[*block]) {
        let data = &cx.function[*inst];
        let plain = data.op == Op::R2UR && data.guard.is_null() && cx.function.arg(*inst, Role::Pu).is_null();
        handed.extend(plain.then_some(*inst));
    }
    if handed.is_empty() {
        return;
    }
    let (mut def_use, encodes) = (DefUse::new(cx.function), cx.encoder.encodes);
    let function = &mut *cx.function;
    let mut unread: SortedSet<InstId> = SortedSet::new();
    for inst in handed {
        let (data, a) = (function[inst], function.arg(inst, Role::A));
        let Some(word) = def_use.known(function, a) else { continue };
        let maker = a.as_reg().and_then(|reg| def_use.definition(reg));
        let (before, d, word) = (DefUse::reads(function, inst), function.arg(inst, Role::D), function.imm(word.into()));
        rewrite(function, inst, Op::UMOV, &[(Role::D, d), (Role::A, word)]);
        if !encodes(function, inst) {
            function[inst] = data;
            continue;
        }
        def_use.update(function, inst, &before);
        unread.extend(maker.filter(|_| before.iter().all(|reg| def_use.uses(*reg) == 0)));
    }
    for block in function.layout().to_vec() {
        function[block].retain(|inst| !unread.contains(inst));
    }
}
