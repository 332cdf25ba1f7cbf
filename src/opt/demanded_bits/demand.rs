//! Bits of words that are read, from the constants and the widths of their readers.

use super::{CHOICE, bytes, lut};
use crate::analysis::def_use::{is_free, is_pure};
use crate::ori::{File, Function, InstId, Operand, VReg, table};
use crate::tables::ori::Direction;
use crate::tables::{Mod, Op, Role, value};
use cranelift_entity::SecondaryMap;

const LOW_HALF: u32 = 0xffff;

/// The bits of each register that are read. Loops are walked again until nothing is added.
pub fn run(function: &Function, insts: &[InstId]) -> SecondaryMap<VReg, u32> {
    let mut demand: SecondaryMap<VReg, u32> = table(function.regs.len());
    loop {
        let mut again = false;
        let mut before: SecondaryMap<VReg, bool> = table(function.regs.len());
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
    let data = &function.insts[inst];
    let d = function.arg(inst, Role::D).as_reg().filter(|reg| function.regs[*reg].file == File::R);
    let narrow = narrow_store(function, inst);
    if narrow.is_none() && (d.is_none() || !is_pure(function, inst) || has_other_results(function, inst)) {
        function.for_each_use(inst, |reg| note(reg, u32::MAX, demand));
        return;
    }
    let seen = |reg: VReg| function.watched.as_ref().is_some_and(|watched| watched.parts[reg].is_some());
    let result = d.filter(|reg| is_free(function, *reg) && !seen(*reg)).map_or(u32::MAX, |reg| demand[reg]);
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
    let data = &function.insts[inst];
    if !matches!(data.op, Op::STG | Op::STS | Op::STL | Op::ST) || function.arg(inst, Role::B).as_reg().is_none() {
        return None;
    }
    match data.mods.get(Mod::Size) {
        value::size::U8 | value::size::S8 => Some(u8::MAX.into()),
        value::size::U16 | value::size::S16 => Some(LOW_HALF),
        _ => None,
    }
}

/// The bits of an operand that some bits of the result depend on.
fn of(function: &Function, inst: InstId, role: Role, result: u32) -> u32 {
    let data = &function.insts[inst];
    let operand = function.arg(inst, role);
    let whole = || if result == 0 { 0 } else { u32::MAX };
    // Modifiers work on whole words; of those of halves each half has its own.
    match data.op {
        Op::HADD2 | Op::HMUL2 | Op::HFMA2 => return halves(function, inst, role, result),
        // Carries go up, those of a negation too.
        Op::IADD3 | Op::IMAD if data.mods.get(Mod::X) != value::x::X => return below(result),
        _ if operand != operand.plain() => return whole(),
        _ => {}
    }
    match data.op {
        Op::MOV | Op::COPY if function.arg(inst, Role::Lanes).is_null() => result,
        Op::SEL if matches!(role, Role::A | Role::B) => result,
        Op::LOP3 => logic(function, inst, role, result).unwrap_or_else(whole),
        Op::PRMT if role != Role::B => permuted(function, inst, role, result).unwrap_or_else(whole),
        Op::SHF => shifted(function, inst, role, result).unwrap_or_else(whole),
        Op::SGXT if role == Role::A => {
            let width = function.word_value(function.arg(inst, Role::B)).filter(|width| (1..=31).contains(width));
            let Some(width) = width else { return whole() };
            let copied = result >> width != 0 && data.mods.get(Mod::Sign) != value::sign::U32;
            result & !(u32::MAX << width) | if copied { 1 << (width - 1) } else { 0 }
        }
        _ => whole(),
    }
}

/// All bits up to the highest one that is set.
fn below(bits: u32) -> u32 {
    u32::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0)
}

fn logic(function: &Function, inst: InstId, role: Role, result: u32) -> Option<u32> {
    let table = lut(function, inst)?;
    let roles = [Role::A, Role::B, Role::C];
    let own = roles.iter().position(|r| *r == role)?;
    let values = roles.map(|role| function.word_value(function.arg(inst, role)));
    let mut matters = 0;
    for row in (0..8u32).filter(|row| row >> (2 - own) & 1 == 0) {
        if table >> row & 1 != table >> (row | 4 >> own) & 1 {
            let others = values.iter().enumerate().filter(|(at, _)| *at != own);
            matters |= others.fold(u32::MAX, |possible, (at, value)| match value {
                Some(value) if row >> (2 - at) & 1 == 1 => possible & value,
                Some(value) => possible & !value,
                None => possible,
            });
        }
    }
    Some(result & matters)
}

fn permuted(function: &Function, inst: InstId, role: Role, result: u32) -> Option<u32> {
    let mut read = 0;
    for (at, choice) in bytes(function, inst)?.into_iter().enumerate() {
        let byte = result >> (8 * at) & 0xff;
        let own = (choice % CHOICE < CHOICE / 2) == (role == Role::A);
        if own {
            let bits = if choice < CHOICE { byte } else { u32::from(byte != 0) << 7 };
            read |= bits << (8 * (choice % 4));
        }
    }
    Some(read)
}

/// Shifts of words by a constant.
fn shifted(function: &Function, inst: InstId, role: Role, result: u32) -> Option<u32> {
    let data = &function.insts[inst];
    let count = function.word_value(function.arg(inst, Role::B)).filter(|count| *count < u32::BITS)?;
    let (left, high) = (data.mods.get(Mod::Dir) == value::dir::L, data.mods.get(Mod::Hi) != 0);
    match (left, high, data.mods.get(Mod::Itype), role) {
        (true, false, value::itype::U32, Role::A) => Some(result >> count),
        (false, true, value::itype::U32, Role::C) => Some(result << count),
        (false, true, value::itype::S32, Role::C) => {
            let sign = result.leading_zeros() < count;
            Some(result << count | u32::from(sign) << 31)
        }
        _ => None,
    }
}

/// Operations on two halves.
fn halves(function: &Function, inst: InstId, role: Role, result: u32) -> u32 {
    let mods = &function.insts[inst].mods;
    let lanes = [result & LOW_HALF != 0, result & !LOW_HALF != 0];
    let of = |lane: bool, half: u32| if lane { half } else { 0 };
    let (low, high) = match role {
        Role::A if mods.get(Mod::SwzA) == value::swz_a::NONE => (LOW_HALF, !LOW_HALF),
        Role::B if mods.get(Mod::SwzB) == value::swz_b::NONE => (LOW_HALF, !LOW_HALF),
        Role::C if mods.get(Mod::SwzC) == value::swz_c::NONE => (LOW_HALF, !LOW_HALF),
        _ => (u32::MAX, u32::MAX),
    };
    of(lanes[0], low) | of(lanes[1], high)
}
