//! Dead-code elimination: removes instructions without side effects whose results are not needed,
//! in or out of SSA form.
//!
//! Instructions with side effects, control flow and convergent instructions that are not droppable
//! stay, and so does every definition that may reach an instruction that stays. Linear: follows
//! needed registers to their definitions. Of what is droppable, single results that nobody needs go
//! too, where the operand may be absent.

use crate::analysis::PassCx;
use crate::ori::liveness::RegSet;
use crate::ori::{Function, InstId, Operand, VReg, table};
use crate::tables::ori::{Absent, Direction, RoleInfo};
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    if cx.swept {
        cx.unchanged = true;
        return;
    }
    let cfg = cx.cfg();
    let function = &mut *cx.function;
    let mut definitions = Definitions::new(function);
    let mut needed = RegSet::new(function.regs().len());
    let mut stays: SecondaryMap<InstId, bool> = table(function.insts().len());
    let (mut work, mut droppable): (Vec<InstId>, Vec<InstId>) = (Vec::new(), Vec::new());
    for inst in cfg.rpo.iter().flat_map(|b| &function[*b]) {
        let defines_root = definitions.add(function, *inst);
        if defines_root || is_rooted(function, *inst) {
            stays[*inst] = true;
            work.push(*inst);
        }
        if function[*inst].op.has(Prop::Droppable) {
            droppable.push(*inst);
        }
    }
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
    let mut unchanged = true;
    for block in &cfg.rpo {
        let insts = &mut function[*block];
        let before = insts.len();
        insts.retain(|inst| stays[*inst]);
        unchanged &= insts.len() == before;
    }
    for inst in droppable.into_iter().filter(|inst| stays[*inst]) {
        unchanged &= !leave_out(function, inst, &needed);
    }
    (cx.unchanged, cx.sweeps) = (unchanged, true);
}

/// The definitions of each register, as chains.
struct Definitions {
    last: SecondaryMap<VReg, Option<u32>>,
    entries: Vec<(InstId, Option<u32>)>,
}

impl Definitions {
    fn new(function: &Function) -> Definitions {
        Definitions { last: table(function.regs().len()), entries: Vec::with_capacity(function.regs().len()) }
    }

    /// Adds those of an instruction; whether it must stay for one of them. A register that is
    /// reserved in the whole function has uses that no operand shows, but not if it only hands over
    /// what an operation across lanes gives; and a debugger may read any register of the text.
    fn add(&mut self, function: &Function, inst: InstId) -> bool {
        let watched = function.watched().filter(|_| function[inst].op != Op::PHI);
        let mut reserved = false;
        function.for_each_def(inst, |reg| {
            self.entries.push((inst, self.last[reg]));
            self.last[reg] = Some(self.entries.len() as u32 - 1);
            reserved |= function[reg].phys.is_some() && !function[inst].op.has(Prop::Droppable);
            reserved |= watched.is_some_and(|w| w.parts[reg].is_some());
        });
        reserved
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

/// Whether an instruction must stay whatever it defines.
fn is_rooted(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    // An instruction that never executes is there on purpose, and so is a volatile access.
    let kept = function[inst].guard == Operand::never() || function[inst].ordered;
    let convergent = op.has(Prop::Convergent) && !op.has(Prop::Droppable);
    kept || op.has(Prop::SideEffect) || convergent || op.has(Prop::Control) || op == Op::NOP
}

/// Leaves out results of a droppable instruction that nobody needs; whether there are any.
fn leave_out(function: &mut Function, inst: InstId, needed: &RegSet) -> bool {
    let data = &function[inst];
    if !function.olds(inst).is_empty() || function.watched().is_some() {
        return false;
    }
    let unread = |role: &&RoleInfo| {
        let reg = function.arg(inst, role.role).as_reg();
        role.direction == Direction::Def
            && role.absent != Absent::Required
            && reg.is_some_and(|reg| !needed.contains(reg))
    };
    let roles: SmallVec<[Role; 2]> = data.op.info().roles.iter().filter(unread).map(|role| role.role).collect();
    roles.iter().for_each(|role| function.set_arg(inst, *role, Operand::NULL));
    !roles.is_empty()
}
