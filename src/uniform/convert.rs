//! Pass `uniform_registers`: moves values that are equal in all lanes to the uniform register file.
//!
//! The column `uniform` of `tables/ori` gives the uniform form of an opcode. What is guaranteed:
//! - a uniform register is written only where the warp is converged, as `insert_reconvergence`
//!   checks;
//! - a move between the files is added only where it saves more of them: otherwise a value that one
//!   reader needs in a general register stays there, unless it has no register source and is cheap
//!   to define twice;
//! - nowhere are more uniform registers live than the file has, minus a reserve, nor across a call
//!   more than calls preserve.
//!
//! Device functions are left alone: their callers may be diverged.

use super::candidates::Candidates;
use super::twins::Places;
use super::{pressure, rewrite};
use crate::analysis::PassCx;
use crate::ori::Convention;
use crate::tables::Feature;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    if !cx.function.target.has(Feature::UniformDatapath) || cx.function.convention != Convention::Kernel {
        return;
    }
    let (cfg, loops, dominators, lanes) = (cx.cfg(), cx.loops(), cx.dominators(), cx.divergence());
    let liveness = cx.liveness();
    let crowded = pressure::crowded(cx.function, &cfg, &loops, &liveness);
    let places = Places { cfg: &cfg, loops: &loops, dominators: &dominators, lanes: &lanes, crowded: &crowded };
    let mut candidates = Candidates::new(cx.function, &places, cx.encoder.encodes);
    for _ in 0..ROUNDS {
        candidates.settle(cx.function, &places);
        if candidates.is_empty() {
            return;
        }
        let liveness = cx.liveness();
        let some = pressure::relieve(cx.function, &places, &liveness, &mut candidates);
        if !some || rewrite::run(cx.function, &places, &mut candidates) {
            return;
        }
    }
}

/// Attempts at a set in which everything fits together.
const ROUNDS: usize = 8;
