//! Orders wgmma products against the instructions around them, after allocation.
//!
//! A commit is folded into the product before it. WARPGROUP.DEPBAR is inserted before an access to
//! an accumulator in flight or a write of its operands, and WARPGROUP.ARRIVE before a product whose
//! registers were written since the last one. No path accesses a register too early, whatever the
//! program or the allocator did; correct code gains nothing.

use super::flight::{Flight, Set};
use super::{closes, has_products, is_commit};
use crate::analysis::PassCx;
use crate::ori::cfg::Cfg;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::sorted::SortedSet;
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

/// Waits and says that registers are ready where that is missing.
pub fn run(cx: &mut PassCx) {
    if !has_products(cx.function) {
        return;
    }
    fold_commits(cx.function);
    let cfg = Cfg::new(cx.function);
    order(cx.function, &cfg);
}

/// A commit behind a product of the same block, with nothing of a group between them, is part of
/// the product.
fn fold_commits(function: &mut Function) {
    for block in function.layout().to_vec() {
        let (mut last, mut dead) = (None, SortedSet::new());
        for inst in function[block].clone() {
            match function[inst].op {
                Op::GMMA if is_commit(function, inst) && function[inst].guard.is_null() => {
                    if let Some(product) = last.take() {
                        let product: InstId = product;
                        function[product].mods.set(Mod::Gsb, value::gsb::GSB0);
                        dead.insert(inst);
                    }
                }
                Op::GMMA => last = (!closes(function, inst)).then_some(inst),
                Op::WARPGROUP | Op::CALL => last = None,
                _ => {}
            }
        }
        function[block].retain(|inst| !dead.contains(inst));
    }
}

fn order(function: &mut Function, cfg: &Cfg) {
    let mut starts: SecondaryMap<Block, Option<Flight>> = SecondaryMap::new();
    if let Some(entry) = cfg.rpo.first() {
        starts[*entry] = Some(Flight::entry());
    }
    let mut work: SortedSet<usize> = (0..cfg.rpo.len()).collect();
    while let Some(number) = work.pop_first() {
        let block = cfg.rpo[number];
        let mut state = starts[block].clone().unwrap_or_else(Flight::nowhere);
        for inst in function[block].clone() {
            needs(function, inst, &mut state);
        }
        for succ in &cfg.succs[block] {
            if starts[*succ].get_or_insert_with(Flight::nowhere).join(&state) {
                work.insert(cfg.number[*succ]);
            }
        }
    }
    let registers = all_registers(function);
    for block in &cfg.rpo {
        let mut state = starts[*block].clone().unwrap_or_else(Flight::nowhere);
        let mut out = Vec::with_capacity(function[*block].len());
        for inst in std::mem::take(&mut function[*block]) {
            let need = needs(function, inst, &mut state);
            let line = function[inst].line;
            let mut add = |function: &mut Function, new: InstId| {
                function[new].line = line;
                out.push(new);
            };
            if need.commit {
                let new = commit(function);
                add(function, new);
            }
            if let Some(left) = need.wait {
                let new = wait(function, left);
                add(function, new);
            }
            if need.arrive {
                let new = function.make(Op::WARPGROUP);
                add(function, new);
            }
            out.push(inst);
        }
        for inst in &out {
            let data = &function[*inst];
            if data.op == Op::WARPGROUP && function.arg(*inst, Role::A).is_null() {
                function.set_extras(*inst, &registers, &[]);
            }
        }
        function[*block] = out;
    }
}

/// Registers that products read or write, one for each number: what is to be there when they are
/// said to be ready.
fn all_registers(function: &Function) -> Vec<Operand> {
    let mut found = crate::sorted::SortedMap::new();
    for inst in function.layout().iter().flat_map(|block| &function[*block]) {
        if function[*inst].op == Op::GMMA {
            let data = |reg| &function[reg];
            for role in [Role::A, Role::C, Role::E] {
                function.for_each_reg(function.arg(*inst, role), |reg| {
                    found.insert((data(reg).file == File::R, data(reg).phys), reg);
                });
            }
        }
    }
    found.into_values().map(Operand::reg).collect()
}

/// What must stand before an instruction.
#[derive(Default)]
struct Need {
    commit: bool,
    wait: Option<usize>,
    arrive: bool,
}

/// General registers of operands, by physical number.
fn numbers(function: &Function, operand: Operand, set: &mut Set) {
    function.for_each_reg(operand, |reg| {
        let data = &function[reg];
        if data.file == File::R {
            set.extend(data.phys.map(u32::from));
        }
    });
}

/// What an instruction needs, and the state behind it.
fn needs(function: &Function, inst: InstId, state: &mut Flight) -> Need {
    let op = function[inst].op;
    let mut need = Need::default();
    let until = |state: &mut Flight, newest: usize, need: &mut Need| {
        need.commit = newest == 0;
        if newest == 0 {
            state.commit();
        }
        let left = newest.max(1) - 1;
        need.wait = Some(left);
        state.wait(left);
    };
    match op {
        Op::WARPGROUP => match function.imm_value(function.arg(inst, Role::A)) {
            Some(left) => drop(state.wait(left as usize)),
            None => state.written = Some(Set::new()),
        },
        Op::GMMA => {
            let (mut sum, mut factors) = (Set::new(), Set::new());
            numbers(function, function.arg(inst, Role::D), &mut sum);
            [Role::A, Role::E].into_iter().for_each(|role| numbers(function, function.arg(inst, role), &mut factors));
            let none = Set::new();
            let read = state.too_early(&factors, &none);
            let over = state.groups.iter().position(|group| !group.factors.is_disjoint(&sum));
            let apart = state.overlaps(&sum).then_some(0);
            if let Some(newest) = [read, over, apart].into_iter().flatten().min() {
                until(state, newest, &mut need);
            }
            let all: Set = sum.iter().chain(factors.iter()).copied().collect();
            if !all.is_empty() && state.is_unready(&all) {
                need.arrive = true;
                state.written = Some(Set::new());
            }
            if !is_commit(function, inst) {
                state.product(&sum, &factors);
            }
            if closes(function, inst) {
                state.commit();
            }
        }
        op if op.has(Prop::ChangesFunction) && state.groups.iter().any(|group| group.any) => {
            let newest = state.groups.iter().position(|group| group.any).unwrap_or(0);
            until(state, newest, &mut need);
            state.written = None;
        }
        _ => {
            let (mut reads, mut writes) = (Set::new(), Set::new());
            let physical = |reg: VReg| (function[reg].file == File::R).then_some(function[reg].phys).flatten();
            function.for_each_use(inst, |reg| reads.extend(physical(reg).map(u32::from)));
            function.for_each_def(inst, |reg| writes.extend(physical(reg).map(u32::from)));
            if let Some(newest) = state.too_early(&reads, &writes) {
                until(state, newest, &mut need);
            }
            if let Some(written) = &mut state.written {
                written.extend(writes);
            }
            if op == Op::CALL {
                state.written = None;
            }
        }
    }
    need
}

fn commit(function: &mut Function) -> InstId {
    let inst = function.make(Op::GMMA);
    function[inst].mods.set(Mod::Gsb, value::gsb::GSB0);
    [Role::D, Role::Ub, Role::C].into_iter().for_each(|role| function.set_arg(inst, role, Operand::zero()));
    function.set_arg(inst, Role::Pp, Operand::never());
    inst
}

fn wait(function: &mut Function, left: usize) -> InstId {
    let inst = function.make(Op::WARPGROUP);
    let left = function.imm(left as u64);
    function.set_arg(inst, Role::A, left);
    inst
}
