//! Dead-code elimination: removes instructions without side effects whose results are not needed,
//! in or out of SSA form.
//!
//! Instructions with side effects, control flow and convergent instructions stay, and so does every
//! definition that may reach an instruction that stays. Linear: follows needed registers to their
//! definitions.

use crate::analysis::PassCx;
use crate::ori::liveness::RegSet;
use crate::ori::{Function, InstId, Operand, VReg, table};
use crate::tables::{Op, Prop};
use cranelift_entity::SecondaryMap;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let function = &mut *cx.function;
    let insts = || cfg.rpo.iter().flat_map(|b| &function.blocks[*b]).copied();
    let definitions = Definitions::new(function, insts());
    let mut needed = RegSet::new(function.regs.len());
    let mut stays: SecondaryMap<InstId, bool> = table(function.insts.len());
    let mut work: Vec<InstId> = insts().filter(|inst| is_rooted(function, *inst)).collect();
    work.iter().for_each(|inst| stays[*inst] = true);
    while let Some(inst) = work.pop() {
        function.for_each_use(inst, |reg| {
            if needed.insert(reg) {
                definitions.each(reg, |definition| {
                    if !std::mem::replace(&mut stays[definition], true) {
                        work.push(definition);
                    }
                });
            }
        });
    }
    for block in &cfg.rpo {
        function.blocks[*block].retain(|inst| stays[*inst]);
    }
}

/// The definitions of each register, as chains.
struct Definitions {
    last: SecondaryMap<VReg, Option<u32>>,
    entries: Vec<(InstId, Option<u32>)>,
}

impl Definitions {
    fn new(function: &Function, insts: impl Iterator<Item = InstId>) -> Definitions {
        let mut out =
            Definitions { last: table(function.regs.len()), entries: Vec::with_capacity(function.regs.len()) };
        for inst in insts {
            function.for_each_def(inst, |reg| {
                out.entries.push((inst, out.last[reg]));
                out.last[reg] = Some(out.entries.len() as u32 - 1);
            });
        }
        out
    }

    fn each(&self, reg: VReg, mut f: impl FnMut(InstId)) {
        let mut next = self.last[reg];
        while let Some(at) = next {
            let (inst, before) = self.entries[at as usize];
            f(inst);
            next = before;
        }
    }
}

fn is_rooted(function: &Function, inst: InstId) -> bool {
    let op = function.insts[inst].op;
    // An instruction that never executes is there on purpose, and so is a volatile access.
    let kept = function.insts[inst].guard == Operand::never() || function.insts[inst].ordered;
    if kept || op.has(Prop::SideEffect) || op.has(Prop::Convergent) || op.has(Prop::Control) || op == Op::NOP {
        return true;
    }
    // A register that is reserved in the whole function has uses that no operand shows, and a
    // debugger may read any register of the text.
    let watched = function.watched.as_ref().filter(|_| op != Op::PHI);
    let mut reserved = false;
    function.for_each_def(inst, |reg| {
        reserved |= function.regs[reg].phys.is_some() || watched.is_some_and(|w| w.parts[reg].is_some());
    });
    reserved
}
