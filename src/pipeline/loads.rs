//! Loads of several values of which the code reads only some, for the cubin's list of bytes that no
//! one needs.
//!
//! Runs on physical registers. A word counts as unread only where that is certain within the block:
//! it is overwritten first, or the program ends first.

use crate::ori::{File, Function, InstId, Listed, VReg};
use crate::tables::{Op, Prop, Role};

/// Numbers of general registers.
const REGISTERS: usize = 256;
/// The bits of a mask of bytes that stand for one word.
const WORD_BYTES: u32 = 0xf;

/// For each load of the block that has both read and unread values, its place among `insts` and a
/// mask of the bytes that are read, in the order of the code. Source: ptxas 13.0.88, which judges
/// the values that the program loads, but whole words, and lists no load that nobody reads.
pub fn partly_read(function: &Function, insts: &[InstId]) -> Vec<(usize, u32)> {
    let is_wide = |inst: &InstId| words(function, *inst).is_some();
    if !insts.iter().any(is_wide) {
        return Vec::new();
    }
    let mut live = [!ends(function, insts); REGISTERS];
    let mut found = Vec::new();
    for (at, inst) in insts.iter().enumerate().rev() {
        if let (Some(words), Listed::Values(each)) = (words(function, *inst), function[*inst].listed) {
            let is_read = |value: &[u16]| value.iter().any(|number| live[usize::from(*number)]);
            let bytes = WORD_BYTES * if each == 2 { 0x11 } else { 1 };
            let read = |(i, value): (usize, &[u16])| (u32::from(is_read(value)) * bytes) << (4 * i * usize::from(each));
            let mask = words.chunks(each.into()).enumerate().map(read).sum::<u32>();
            if mask != 0 && mask.count_ones() < 4 * words.len() as u32 {
                found.push((at, mask));
            }
        }
        pass(function, *inst, &mut live);
    }
    found.reverse();
    found
}

/// Whether the program ends behind the last of these instructions.
fn ends(function: &Function, insts: &[InstId]) -> bool {
    insts.last().is_some_and(|last| {
        let data = &function[*last];
        data.op == Op::EXIT && data.guard.is_null()
    })
}

/// The registers that a load of several values writes.
fn words(function: &Function, inst: InstId) -> Option<Vec<u16>> {
    if !function[inst].op.has(Prop::StatesUnread) || !matches!(function[inst].listed, Listed::Values(_)) {
        return None;
    }
    let vector = function.arg(inst, Role::D).as_vector()?;
    let numbers = function.vector_regs(vector).iter().map(|reg| function[*reg].phys);
    numbers.collect::<Option<Vec<u16>>>().filter(|words| words.len() > 1)
}

/// Steps over an instruction, from behind it to before it.
fn pass(function: &Function, inst: InstId, live: &mut [bool; REGISTERS]) {
    let data = &function[inst];
    if data.op.has(Prop::Clobbers) || data.op.has(Prop::Control) && data.op != Op::EXIT {
        live.fill(true);
        return;
    }
    let mut set = |reg: VReg, value| {
        let data = &function[reg];
        if let (File::R, Some(number)) = (data.file, data.phys) {
            live[usize::from(number)] = value;
        }
    };
    if data.guard.is_null() {
        function.for_each_def(inst, |reg| set(reg, false));
    }
    function.for_each_use(inst, |reg| set(reg, true));
}
