//! Bits of words that are read, from the constants and the widths of their readers.

use crate::analysis::bit_flow::of;
use crate::analysis::def_use::{is_free, is_pure};
use crate::ori::{File, Function, InstId, Operand, VReg, table};
use crate::tables::ori::Direction;
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

const LOW_HALF: u32 = 0xffff;

/// The bits of each register that are read. Loops are walked again until nothing is added.
pub fn run(function: &Function, insts: &[InstId]) -> SecondaryMap<VReg, u32> {
    let mut demand: SecondaryMap<VReg, u32> = table(function.regs().len());
    loop {
        let mut again = false;
        let mut before: SecondaryMap<VReg, bool> = table(function.regs().len());
        for inst in insts.iter().rev() {
            function.for_each_def(*inst, |reg| before[reg] = true);
            each_read(
                function,
                *inst,
                &mut |reg, read, demand| {
                    // What its definition passed on already is not enough any more.
                    again |= before[reg] && read & !demand[reg] != 0;
                    demand[reg] |= read;
                },
                &mut demand,
            );
        }
        if !again {
            return demand;
        }
    }
}

type Demand = SecondaryMap<VReg, u32>;

/// Tells which bits of each register an instruction reads.
fn each_read(function: &Function, inst: InstId, note: &mut dyn FnMut(VReg, u32, &mut Demand), demand: &mut Demand) {
    let data = &function[inst];
    let d = function.arg(inst, Role::D).as_reg().filter(|reg| function[*reg].file == File::R);
    let narrow = narrow_store(function, inst);
    let moves = data.op == Op::PHI || is_pure(function, inst);
    if narrow.is_none() && (d.is_none() || !moves || has_other_results(function, inst)) {
        function.for_each_use(inst, |reg| note(reg, u32::MAX, demand));
        return;
    }
    let seen = |reg: VReg| function.watched().is_some_and(|watched| watched.parts[reg].is_some());
    let result = d.filter(|reg| is_free(function, *reg) && !seen(*reg)).map_or(u32::MAX, |reg| demand[reg]);
    if data.op == Op::PHI {
        function.for_each_use(inst, |reg| note(reg, result, demand));
        return;
    }
    for at in 0..function.args(inst).len() {
        if function.direction(inst, at) != Direction::Use {
            continue;
        }
        let (role, operand) = (data.op.info().roles[at].role, function.args(inst)[at]);
        let read = match (operand.as_reg(), narrow) {
            (Some(_), Some(mask)) if role == Role::B => mask,
            (Some(_), None) => of(function, inst, role, result),
            _ => u32::MAX,
        };
        match operand.as_reg() {
            Some(reg) => note(reg, read, demand),
            None => operand_regs(function, operand, |reg| note(reg, read, demand)),
        }
    }
    if !data.guard.is_null() || !function.extras(inst).0.is_empty() {
        function.for_each_use(inst, |reg| note(reg, u32::MAX, demand));
    }
}

fn operand_regs(function: &Function, operand: Operand, f: impl FnMut(VReg)) {
    if let Some(vector) = operand.as_vector() {
        function.vector_regs(vector).iter().copied().for_each(f);
    }
}

fn has_other_results(function: &Function, inst: InstId) -> bool {
    let mut results = 0;
    function.for_each_def(inst, |_| results += 1);
    results != 1
}

/// The bits that a store of bytes or halves takes of what it stores.
fn narrow_store(function: &Function, inst: InstId) -> Option<u32> {
    let data = &function[inst];
    if !data.op.has(Prop::OnePlace)
        || !data.op.has(Prop::WritesMemory)
        || function.arg(inst, Role::B).as_reg().is_none()
    {
        return None;
    }
    match data.mods.get(Mod::Size) {
        value::size::U8 | value::size::S8 => Some(u8::MAX.into()),
        value::size::U16 | value::size::S16 => Some(LOW_HALF),
        _ => None,
    }
}
