//! Copy propagation: uses of a register-to-register MOV or COPY read its source instead, and those
//! of a PLOP3 that is one predicate, or its opposite, read that.
//!
//! Guarded copies are propagated where the old value of the result is undefined: the source is then
//! as good where the guard is false.
//!
//! Only unmodified 32-bit copies within one register file are propagated, and never registers that
//! are reserved or have a fixed number. The copies are left for dead-code elimination.

use crate::analysis::PassCx;
use crate::opt::combine::as_input;
use crate::ori::{Function, InstId, Operand, VReg, table};
use crate::sorted::SortedMap;
use crate::tables::ori::Direction;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let opposites = predicates(cx.function, cx.encoder.encodes);
    let function = &mut *cx.function;
    let mut source: SecondaryMap<VReg, Option<VReg>> = table(function.regs().len());
    let mut any = false;
    let mut guarded = Vec::new();
    for block in function.layout() {
        for inst in &function[*block] {
            if let Some((dst, src)) = plain_copy(function, *inst) {
                if function[*inst].guard.is_null() {
                    source[dst] = Some(src);
                    any = true;
                } else {
                    guarded.push((*inst, dst, src));
                }
            }
        }
    }
    if !guarded.is_empty() {
        let undefined = undefined(function);
        for (inst, dst, src) in guarded {
            if matches!(function.olds(inst), [old] if old.as_reg().is_some_and(|old| undefined[old])) {
                source[dst] = Some(src);
                any = true;
            }
        }
    }
    if !any {
        cx.unchanged = !opposites;
        return;
    }
    for block in function.layout().to_vec() {
        for at in 0..function[block].len() {
            rename(function, &source, function[block][at]);
        }
    }
}

/// Makes readers of predicates that are others, or their opposites, read these where they can;
/// whether any does.
fn predicates(function: &mut Function, encodes: fn(&Function, InstId) -> bool) -> bool {
    let watched = |reg| function.watched().is_some_and(|watched| watched.parts[reg].is_some());
    let insts = function.layout().iter().flat_map(|block| &function[*block]);
    let found = insts.filter_map(|inst| as_input(function, *inst)).filter(|(d, _)| !watched(*d));
    let known: SortedMap<VReg, Operand> = found.collect();
    if known.is_empty() {
        return false;
    }
    let input = |operand: Operand| {
        let mut now = operand;
        // Chains end, because in SSA form an input is defined before the result.
        while let Some(input) = now.as_reg().and_then(|reg| known.get(&reg)) {
            now = if now.not() { input.inverted() } else { *input };
        }
        (now != operand).then_some(now)
    };
    let mut any = false;
    for block in function.layout().to_vec() {
        for at in 0..function[block].len() {
            let inst = function[block][at];
            if let Some(guard) = input(function[inst].guard) {
                function[inst].guard = guard;
                any = true;
            }
            let op = function[inst].op;
            for at in 0..function.args(inst).len() {
                let operand = function.args(inst)[at];
                let Some(input) = input(operand).filter(|_| function.direction(inst, at) == Direction::Use) else {
                    continue;
                };
                let plain = op == Op::PHI || op == Op::COPY;
                function.args_mut(inst)[at] = input;
                if plain && input.not() || !plain && !encodes(function, inst) {
                    function.args_mut(inst)[at] = operand;
                } else {
                    any = true;
                }
            }
        }
    }
    any
}

/// The registers without a value.
fn undefined(function: &Function) -> SecondaryMap<VReg, bool> {
    let mut undefined = table(function.regs().len());
    for inst in function.layout().iter().flat_map(|block| &function[*block]) {
        if function[*inst].op == Op::UNDEF {
            function.for_each_def(*inst, |reg| undefined[reg] = true);
        }
    }
    undefined
}

fn plain_copy(function: &Function, inst: InstId) -> Option<(VReg, VReg)> {
    let data = &function[inst];
    if !data.op.has(Prop::Copies) || !function.arg(inst, Role::Lanes).is_null() {
        return None;
    }
    let (dst, src) = (function.arg(inst, Role::D), function.arg(inst, Role::A));
    let (d, s) = (dst.as_reg()?, src.as_reg()?);
    // A register of the text that a debugger reads stays in use where the text uses it.
    let watched = function.watched().is_some_and(|watched| watched.parts[d].is_some());
    (src == Operand::reg(s) && !watched && free_pair(function, d, s)).then_some((d, s))
}

/// Whether uses of one register may read the other one.
pub fn free_pair(function: &Function, d: VReg, s: VReg) -> bool {
    let data = |r: VReg| function[r];
    let free = [d, s].iter().all(|r| data(*r).phys.is_none() && data(*r).fixed.is_none());
    free && data(d).file == data(s).file
}

fn root(source: &SecondaryMap<VReg, Option<VReg>>, mut reg: VReg) -> VReg {
    // Chains end, because in SSA form the source of a copy is defined before it.
    while let Some(next) = source[reg] {
        reg = next;
    }
    reg
}

/// Makes an instruction read the sources of copies.
pub fn rename(function: &mut Function, source: &SecondaryMap<VReg, Option<VReg>>, inst: InstId) {
    let mut reads = false;
    function.for_each_use(inst, |reg| reads |= source[reg].is_some());
    if !reads {
        return;
    }
    for i in 0..function.args(inst).len() {
        if function.direction(inst, i) == Direction::Use {
            let operand = function.args(inst)[i];
            function.args_mut(inst)[i] = renamed(function, source, operand);
        }
    }
    let guard = function[inst].guard;
    function[inst].guard = renamed(function, source, guard);
    for i in 0..function.olds(inst).len() {
        let operand = function.olds(inst)[i];
        function.olds_mut(inst)[i] = renamed(function, source, operand);
    }
}

fn renamed(function: &mut Function, source: &SecondaryMap<VReg, Option<VReg>>, operand: Operand) -> Operand {
    if let Some(reg) = operand.as_reg() {
        return operand.with_reg(root(source, reg));
    }
    if let Some(vector) = operand.as_vector() {
        let given = function.vector_regs(vector);
        if given.iter().all(|reg| source[*reg].is_none()) {
            return operand;
        }
        let regs: SmallVec<[VReg; 8]> = given.iter().map(|r| root(source, *r)).collect();
        let vector = function.vector(&regs);
        return operand.with_vector(vector);
    }
    operand
}
