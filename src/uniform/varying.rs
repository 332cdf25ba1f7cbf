//! Phases OriPropagateVaryingFirst and OriPropagateVaryingSecond: the varying flag of every register.
//!
//! Input: a function in SSA form. Output: `RegData::varying` recomputed from scratch. Invariant: a register without the flag has
//! the same value in all lanes of a warp that are alive where it is defined. The analysis assumes that lanes meet where
//! OriDoSyncronization will make them meet.

use crate::ori::Function;
use crate::ori::cfg::Cfg;
use crate::sched::regions::plan;

pub fn run(function: &mut Function) {
    let cfg = Cfg::new(function);
    let varying = plan(function, &cfg).varying;
    for (reg, data) in function.regs.iter_mut() {
        data.varying = varying.regs.contains(reg);
    }
}
