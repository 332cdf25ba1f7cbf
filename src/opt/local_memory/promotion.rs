//! Promotion: words of the frame become registers.

use super::addresses::{Addresses, Part};
use crate::analysis::memory_dependence::{is_weak, size};
use crate::ori::operand::Kind;
use crate::ori::{Block, File, Function, InstId, Operand, VReg, ssa};
use crate::sorted::SortedMap;
use crate::tables::ori::Direction;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::EntityRef;

/// Bytes of a word of memory.
const WORD: i64 = 4;
/// Most words of a frame that become registers. More would be spilled again.
const MOST: usize = 256;

/// An access of whole words at a known place: its first word, and how many.
#[derive(Clone, Copy)]
struct Words {
    inst: InstId,
    first: i64,
    count: i64,
}

/// Promotes what can be.
pub fn run(function: &mut Function, addresses: &Addresses, insts: &[InstId], blocks: &[Block]) {
    if !function.above_frame().is_empty() || insts.iter().any(|inst| escapes(function, addresses, *inst)) {
        return;
    }
    let mut accesses = Vec::new();
    // Whether each word that is accessed can be a register.
    let mut words: SortedMap<i64, bool> = SortedMap::new();
    for inst in insts {
        let Some((_, Some(at))) = addresses.of_access(function, *inst) else { continue };
        let Some(bytes) = size(function, *inst) else { return };
        let (first, last) = (at.div_euclid(WORD), (at + bytes - 1).div_euclid(WORD));
        // What is beyond the frame is an error of the program, which the access shows.
        let inside = at >= 0 && at + bytes <= i64::from(function.attributes().local_bytes);
        let whole = inside && at % WORD == 0 && bytes % WORD == 0 && is_simple(function, *inst);
        (first..=last).for_each(|word| *words.entry(word).or_insert(true) &= whole);
        accesses.push(Words { inst: *inst, first, count: last - first + 1 });
    }
    // All words of an access, or none.
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for access in &accesses {
            let range = || access.first..access.first + access.count;
            if range().any(|word| !words[&word]) {
                range().for_each(|word| changed |= words.insert(word, false) == Some(true));
            }
        }
    }
    words.retain(|_, can| *can);
    if words.is_empty() || words.len() > MOST {
        return;
    }
    let first_new = function.regs().len();
    let registers: SortedMap<i64, VReg> = words.keys().map(|word| (*word, function.new_reg(File::R))).collect();
    let last_new = function.regs().len();
    let chosen: SortedMap<InstId, Words> =
        accesses.iter().filter(|a| registers.contains_key(&a.first)).map(|a| (a.inst, *a)).collect();
    for block in blocks {
        let insts = std::mem::take(&mut function[*block]);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            match chosen.get(&inst) {
                Some(access) => copies(function, *access, &registers, &mut out),
                None => out.push(inst),
            }
        }
        function[*block] = out;
    }
    ssa::repair(function, |reg| (first_new..last_new).contains(&reg.index()));
}

/// Whether something may keep or follow an address in the frame that is not an access at a known
/// place, nor a sum that is followed itself.
fn escapes(function: &Function, addresses: &Addresses, inst: InstId) -> bool {
    let op = function[inst].op;
    if op.has(Prop::Clobbers) {
        return true;
    }
    let mut reads = false;
    function.for_each_use(inst, |reg| {
        reads |= matches!(addresses.parts[reg], Some(Part::Low { .. } | Part::High | Part::Carry));
    });
    if !reads || op == Op::ISETP {
        return false;
    }
    if let Some((_, at)) = addresses.of_access(function, inst) {
        // The value that it stores may be an address too.
        let mut stores = false;
        function.for_each_reg(function.arg(inst, Role::B), |reg| stores |= addresses.parts[reg].is_some());
        return at.is_none() || stores;
    }
    // What defines nothing, as a store of the address elsewhere, is not followed.
    let (mut any, mut followed) = (false, true);
    for (i, operand) in function.args(inst).iter().enumerate() {
        if function.direction(inst, i) == Direction::Def {
            function.for_each_reg(*operand, |reg| {
                let part = addresses.parts.get(reg).copied().flatten();
                any = true;
                followed &= matches!(part, Some(Part::Low { at: Some(_), .. } | Part::High | Part::Carry));
            });
        }
    }
    !any || !followed
}

/// Whether an access of registers or zeros is weak.
fn is_simple(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let operand = function.arg(inst, if data.op == Op::LDL { Role::D } else { Role::B });
    let named = operand == operand.plain() && matches!(operand.kind(), Kind::Reg(_) | Kind::Vector(_) | Kind::Zero);
    named && is_weak(function, inst) && data.op.has(Prop::LocalMemory)
}

/// Copies between the registers of words and those of an access in their place.
fn copies(function: &mut Function, access: Words, registers: &SortedMap<i64, VReg>, out: &mut Vec<InstId>) {
    let load = function[access.inst].op == Op::LDL;
    let operand = function.arg(access.inst, if load { Role::D } else { Role::B });
    let (mut regs, mut olds) = (Vec::new(), Vec::new());
    function.for_each_reg(operand, |reg| regs.push(Operand::reg(reg)));
    function.olds(access.inst).iter().for_each(|old| function.for_each_reg(*old, |reg| olds.push(Operand::reg(reg))));
    let data = function[access.inst];
    for n in 0..access.count {
        let word = Operand::reg(registers[&(access.first + n)]);
        // A store of zeros names no registers.
        let other = regs.get(n as usize).copied().unwrap_or(Operand::zero());
        let (d, a) = if load { (other, word) } else { (word, other) };
        let copy = function.make(Op::MOV);
        function.set_arg(copy, Role::D, d);
        function.set_arg(copy, Role::A, a);
        function[copy].line = data.line;
        function[copy].guard = data.guard;
        if let Some(old) = olds.get(n as usize) {
            function.set_olds(copy, &[*old]);
        }
        out.push(copy);
    }
}
