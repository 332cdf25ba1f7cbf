//! Products of warp groups, which run beside the program: what keeps their registers in place and
//! in order.
//!
//! `sums` makes a product read and write one vector of registers; `factors` keeps its factors alive
//! until somebody has waited; `stages` looks at the registers that came of it and waits, or says
//! that registers are ready, wherever the program does not; `flight` is what all know of products
//! under way.

mod factors;
mod flight;
pub mod stages;
pub mod sums;

use crate::ori::{Function, InstId};
use crate::tables::{Mod, Op, Prop, Role, value};

/// Whether an instruction closes a group without a product of its own.
fn is_commit(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    data.op == Op::GMMA && closes(function, inst) && function.arg(inst, Role::D).as_vector().is_none()
}

fn closes(function: &Function, inst: InstId) -> bool {
    function[inst].mods.get(Mod::Gsb) == value::gsb::GSB0
}

/// Whether a function has products of warp groups.
fn has_products(function: &Function) -> bool {
    let product = |inst: &InstId| function[*inst].op.has(Prop::GroupStage);
    function.layout().iter().any(|block| function[*block].iter().any(product))
}
