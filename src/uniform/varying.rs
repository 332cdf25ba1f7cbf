//! The pass `divergence`: sets the varying flag of every register.
//!
//! A register without the flag has the same value in all lanes of a warp that are alive at its
//! definition. The analysis assumes the reconvergence points that `insert_reconvergence` will
//! create.

use crate::analysis::PassCx;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let lanes = cx.divergence();
    for reg in cx.function.regs().keys() {
        cx.function[reg].varying = lanes.regs.contains(reg) || lanes.numbered.contains(reg);
    }
}
