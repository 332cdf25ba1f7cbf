//! Pass `divergence`: the varying flag of every register.
//!
//! A register without the flag has the same value in all lanes of a warp that are alive where it is
//! defined. The analysis assumes that lanes reconverge where `insert_reconvergence` will make them.

use crate::analysis::PassCx;
use crate::sched::regions::plan;

pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let varying = plan(cx.function, &cfg).varying;
    for (reg, data) in cx.function.regs.iter_mut() {
        data.varying = varying.regs.contains(reg);
    }
}
