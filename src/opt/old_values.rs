//! Frees guarded definitions from old values that nobody reads.
//!
//! In SSA form a guarded instruction reads the old value of what it defines, which stays where the
//! guard is false. Where the result is needed only while the guard is true, the old value is
//! undefined from now on. In a loop it would be the result of the iteration before, and hold a
//! register all the way round.
//!
//! A guarded instruction needs its sources where its guard is true, and its old values where the
//! guard is false, if its result is needed there. A pure one without a guard needs its sources
//! where its result is needed, a PHI everywhere, if its result is needed anywhere. Guards and all
//! else are needed everywhere.

use crate::analysis::PassCx;
use crate::analysis::def_use::is_pure;
use crate::ori::{Block, Function, InstId, Kind, Operand, VReg, table};
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    cx.unchanged = true;
    if insts(cx.function).all(|inst| cx.function.olds(inst).is_empty()) {
        return;
    }
    let mut search = Search { needed: table(cx.function.regs().len()), changed: true };
    let cfg = cx.cfg();
    // Most readers stand behind definitions.
    let mut open: Vec<InstId> = cfg.rpo.iter().flat_map(|block| &cx.function[*block]).copied().collect();
    open.reverse();
    while std::mem::take(&mut search.changed) {
        open.retain(|inst| search.note(cx.function, *inst));
    }
    let mut undefined: SecondaryMap<VReg, bool> = table(cx.function.regs().len());
    for inst in insts(cx.function).filter(|inst| cx.function[*inst].op == Op::UNDEF) {
        cx.function.for_each_def(inst, |reg| undefined[reg] = true);
    }
    for block in &cfg.rpo {
        cx.unchanged &= !replace(cx.function, *block, &search.needed, &undefined);
    }
}

fn insts(function: &Function) -> impl Iterator<Item = InstId> {
    function.layout().iter().flat_map(|block| &function[*block]).copied()
}

/// Where a value is needed.
#[derive(Clone, Copy, Default, PartialEq)]
enum Needed {
    #[default]
    Nowhere,
    /// Where a guard is true.
    Under(Operand),
    Everywhere,
}

impl Needed {
    fn or(self, other: Needed) -> Needed {
        match (self, other) {
            (Needed::Nowhere, one) | (one, Needed::Nowhere) => one,
            (one, two) if one == two => one,
            _ => Needed::Everywhere,
        }
    }
}

struct Search {
    needed: SecondaryMap<VReg, Needed>,
    changed: bool,
}

impl Search {
    #[inline]
    fn need(&mut self, function: &Function, operand: Operand, needed: Needed) {
        function.for_each_reg(operand, |reg| {
            let now = self.needed[reg].or(needed);
            self.changed |= now != self.needed[reg];
            self.needed[reg] = now;
        });
    }

    /// Notes what an instruction needs; whether it may need more later.
    fn note(&mut self, function: &Function, inst: InstId) -> bool {
        let data = &function[inst];
        let mut result = Needed::Nowhere;
        function.for_each_def(inst, |reg| result = result.or(self.needed[reg]));
        let lanewise = || !data.op.has(Prop::Convergent) && !data.op.has(Prop::HandsOver);
        let needed = match data.op {
            Op::PHI if result == Needed::Nowhere => Needed::Nowhere,
            Op::PHI => Needed::Everywhere,
            _ if !data.guard.is_null() => Needed::Under(data.guard),
            _ if is_pure(function, inst) && lanewise() => result,
            _ => Needed::Everywhere,
        };
        if needed != Needed::Nowhere {
            function.for_each_source(inst, |operand| self.need(function, operand, needed));
        }
        self.need(function, data.guard, Needed::Everywhere);
        let mut defs = results(function, inst).into_iter();
        for old in function.olds(inst) {
            function.for_each_reg(*old, |reg| {
                if !defs.next().is_some_and(|d| is_free_of_old(self.needed[d], data.guard)) {
                    self.need(function, Operand::reg(reg), Needed::Under(data.guard.inverted()));
                }
            });
        }
        needed != Needed::Everywhere || !function.olds(inst).is_empty()
    }
}

fn results(function: &Function, inst: InstId) -> SmallVec<[VReg; 4]> {
    let mut results = SmallVec::new();
    if !function.olds(inst).is_empty() {
        function.for_each_def(inst, |reg| results.push(reg));
    }
    results
}

/// Whether a result that is needed there has no need of its old value.
fn is_free_of_old(needed: Needed, guard: Operand) -> bool {
    needed == Needed::Nowhere || needed == Needed::Under(guard)
}

/// Makes the old values in a block that nobody needs undefined; whether there are any.
fn replace(
    function: &mut Function,
    block: Block,
    needed: &SecondaryMap<VReg, Needed>,
    undefined: &SecondaryMap<VReg, bool>,
) -> bool {
    let mut out = Vec::with_capacity(function[block].len());
    let insts = std::mem::take(&mut function[block]);
    let before = insts.len();
    for inst in insts {
        let guard = function[inst].guard;
        let mut defs = results(function, inst).into_iter();
        for at in 0..function.olds(inst).len() {
            let old = function.olds(inst)[at];
            let mut fresh = |function: &mut Function, reg: VReg| {
                let free = defs.next().is_some_and(|d| is_free_of_old(needed[d], guard));
                if !free || undefined[reg] || function[reg].phys.is_some() {
                    return reg;
                }
                let (new, undefined) = (function.new_like(reg), function.make(Op::UNDEF));
                function.set_arg(undefined, Role::D, Operand::reg(new));
                out.push(undefined);
                new
            };
            let new = match old.kind() {
                Kind::Reg(reg) => old.with_reg(fresh(function, reg)),
                Kind::Vector(vector) => {
                    let regs: SmallVec<[VReg; 8]> = function.vector_regs(vector).into();
                    let regs: SmallVec<[VReg; 8]> = regs.into_iter().map(|reg| fresh(function, reg)).collect();
                    let vector = function.vector(&regs);
                    old.with_vector(vector)
                }
                _ => old,
            };
            function.olds_mut(inst)[at] = new;
        }
        out.push(inst);
    }
    let any = out.len() > before;
    function[block] = out;
    any
}
