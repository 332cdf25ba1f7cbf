//! Phases EarlyOriSimpleLiveDead and OriPerformLiveDead…: removes what nothing needs.
//!
//! Input: any function. Output: the same without instructions that have no side effect and whose results nothing reads.
//! Invariant: what has a side effect, moves control or is convergent stays.

use crate::ori::cfg::Cfg;
use crate::ori::liveness::{Liveness, step_back};
use crate::ori::{Function, InstId, Operand};
use crate::tables::{Op, Prop};

pub fn run(function: &mut Function) {
    // In SSA form one sweep leaves the sources of what it removed behind; repeat until nothing changes.
    while sweep(function) {}
}

fn sweep(function: &mut Function) -> bool {
    let cfg = Cfg::new(function);
    let live = Liveness::new(function, &cfg);
    let mut removed = false;
    for block in &cfg.rpo {
        let mut alive = live.live_out[*block].clone();
        let mut kept: Vec<InstId> = Vec::with_capacity(function.blocks[*block].len());
        for inst in function.blocks[*block].iter().rev() {
            let mut needed = is_rooted(function, *inst);
            function.for_each_def(*inst, |reg| needed |= alive.contains(reg));
            if needed {
                step_back(function, *inst, &mut alive);
                kept.push(*inst);
            } else {
                removed = true;
            }
        }
        kept.reverse();
        function.blocks[*block] = kept;
    }
    removed
}

fn is_rooted(function: &Function, inst: InstId) -> bool {
    let op = function.insts[inst].op;
    // A register that is reserved for the whole function is read where no operand shows it.
    let mut reserved = false;
    function.for_each_def(inst, |reg| reserved |= function.regs[reg].phys.is_some());
    // What nothing executes stands there for its own sake.
    let ghost = function.insts[inst].guard == Operand::never();
    ghost || op.has(Prop::SideEffect) || op.has(Prop::Convergent) || op.has(Prop::Control) || reserved || op == Op::NOP
}
