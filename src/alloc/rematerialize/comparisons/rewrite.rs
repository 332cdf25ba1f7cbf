//! Inserts the copies of the chosen comparisons, and removes what nobody reads any more.

use super::{Comparison, DEAREST, Group};
use crate::analysis::def_use::sets_stack_pointer;
use crate::ori::{Block, Function, InstId, Operand, VReg, table};
use crate::tables::Prop;
use crate::tables::ori::Direction;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Rewrites a function whose blocks have these first points.
pub fn run(function: &mut Function, first: &SecondaryMap<Block, u32>, all: &[Comparison]) {
    repeat(function, first, all);
    sweep_up(function, all);
}

/// Puts the copies in front of their readers, which name them then.
fn repeat(function: &mut Function, first: &SecondaryMap<Block, u32>, all: &[Comparison]) {
    let mut of: SecondaryMap<Block, Vec<(u32, VReg, &Group)>> = SecondaryMap::new();
    for comparison in all {
        for group in comparison.groups.iter().filter(|group| !group.chain.is_empty()) {
            of[group.block].push((group.first, comparison.reg, group));
        }
    }
    for block in function.layout().to_vec() {
        if of[block].is_empty() {
            continue;
        }
        crate::sorted::by_key(&mut of[block], |(at, reg, _)| (*at, *reg));
        let end = first[block] + 2 * function.first_terminator(block) as u32;
        let insts = std::mem::take(&mut function[block]);
        let (mut out, mut next) = (Vec::with_capacity(insts.len() + 8), 0);
        let mut held: Vec<(VReg, VReg, u32)> = Vec::new();
        for (at, inst) in insts.into_iter().enumerate() {
            let point = first[block] + 2 * at as u32;
            held.retain(|(.., last)| point <= *last);
            // Between the move of the stack pointer and its call nothing may reach for the frame.
            let calls = function[inst].op.has(Prop::Clobbers);
            let moved = out.pop_if(|last| calls && sets_stack_pointer(function, *last));
            // What terminators read stands in front of the first of them.
            while let Some((_, reg, group)) = of[block].get(next).filter(|(at, ..)| (*at).min(end) <= point) {
                let line = function[inst].line;
                held.push((*reg, again(function, *reg, &group.chain, line, &mut out), group.last));
                next += 1;
            }
            for i in 0..function.args(inst).len() {
                if function.direction(inst, i) == Direction::Use {
                    let operand = function.args(inst)[i];
                    function.args_mut(inst)[i] = renamed(operand, &held);
                }
            }
            function[inst].guard = renamed(function[inst].guard, &held);
            out.extend(moved);
            out.push(inst);
        }
        function[block] = out;
    }
}

/// Removes comparisons, and what they alone read, that no reader is left of.
fn sweep_up(function: &mut Function, all: &[Comparison]) {
    let mut uses: SecondaryMap<VReg, u32> = table(function.regs().len());
    let insts = function.layout().iter().flat_map(|block| &function[*block]);
    insts.for_each(|inst| function.for_each_use(*inst, |reg| uses[reg] += 1));
    let mut dead: SecondaryMap<InstId, bool> = table(function.insts().len());
    // The comparison stands behind what is repeated for it.
    for inst in all.iter().flat_map(|comparison| &comparison.groups).flat_map(|group| group.chain.iter().rev()) {
        let mut read = dead[*inst];
        function.for_each_def(*inst, |reg| read |= uses[reg] > 0);
        if !read {
            function.for_each_use(*inst, |reg| uses[reg] -= 1);
            dead[*inst] = true;
        }
    }
    for block in function.layout().to_vec() {
        function[block].retain(|inst| !dead[*inst]);
    }
}

fn renamed(operand: Operand, held: &[(VReg, VReg, u32)]) -> Operand {
    let copy = operand.as_reg().and_then(|reg| held.iter().find(|(old, ..)| *old == reg));
    copy.map_or(operand, |(_, new, _)| operand.with_reg(*new))
}

/// Repeats a chain; the predicate that it makes.
fn again(function: &mut Function, reg: VReg, chain: &[InstId], line: u32, out: &mut Vec<InstId>) -> VReg {
    let mut made: SmallVec<[(VReg, VReg); DEAREST]> = SmallVec::new();
    for inst in chain {
        let data = function[*inst];
        let mut args: SmallVec<[Operand; 8]> = function.args(*inst).into();
        for (i, operand) in args.iter_mut().enumerate() {
            let Some(old) = operand.as_reg() else { continue };
            match function.direction(*inst, i) {
                Direction::Use => {
                    let new = made.iter().find(|(from, _)| *from == old);
                    *operand = new.map_or(*operand, |(_, to)| operand.with_reg(*to));
                }
                Direction::Def => {
                    let fresh = function.another_register(old);
                    made.push((old, fresh));
                    *operand = operand.with_reg(fresh);
                }
                Direction::None => {}
            }
        }
        let new = function.make_with(data.op, &args);
        let copy = &mut function[new];
        (copy.mods, copy.contract, copy.line) = (data.mods, data.contract, line);
        out.push(new);
    }
    made.iter().find(|(from, _)| *from == reg).map_or(reg, |(_, to)| *to)
}
