//! Phase ProcessO0WaitsAndSBs: control words that need no latency table.
//!
//! Input: instructions in physical registers. Output: each with the longest stall, its results announced by scoreboard 1 and
//! its late reads by scoreboard 2 where its latency is variable, and every instruction waiting for both. Invariant:
//! whatever the program, each instruction starts after everything before it has finished. Source: what ptxas does at -O0.

use crate::analysis::PassCx;
use crate::ori::function::ControlWord;
use crate::ori::{Function, InstId};
use crate::tables::latency::Latency;
use crate::tables::ori::{Class, Direction, RoleInfo};
use crate::tables::{Feature, Mod, Prop, value};

/// Longest stall that the field holds, in cycles.
const LONGEST: u8 = 15;
/// Scoreboard 0 counts groups of asynchronous copies: DEPBAR alone waits for it.
const COPIES: u8 = 0;
const RESULT: u8 = 1;
const READ: u8 = 2;
const NONE: u8 = 7;

pub fn run(cx: &mut PassCx) {
    write(cx.function);
}

/// Writes the control word of every instruction.
pub fn write(function: &mut Function) {
    for block in function.layout.clone() {
        for inst in function.blocks[block].clone() {
            let ctrl = control_word(function, inst);
            function.insts[inst].ctrl = ctrl;
        }
    }
}

fn control_word(function: &Function, inst: InstId) -> ControlWord {
    let op = function.insts[inst].op;
    let target = function.target;
    let tensor = op.has(Prop::TensorPipe) && target.has(Feature::TensorFixedLatency)
        || op.has(Prop::IntegerTensorPipe) && target.has(Feature::IntegerTensorFixedLatency);
    let fixed = tensor
        || op.has(Prop::Fp64Pipe) && target.has(Feature::Fp64FixedLatency)
        || op.has(Prop::UniformBridge) && target.has(Feature::UniformBridgeFixedLatency);
    let variable = op.has(Prop::VariableLatency) && !fixed;
    let roles = op.info().roles;
    // A convergence barrier is no operand of the register files that a scoreboard guards.
    let counts = |r: &RoleInfo| r.class != Class::Barrier;
    let args = || roles.iter().zip(function.args(inst)).filter(|(r, a)| counts(r) && !a.is_null());
    let some = |d: Direction| args().any(|(r, _)| r.direction == d);
    // What announces its end and writes no register announces it on the result's scoreboard, if it reads none either.
    let memory = op.has(Prop::ReadsMemory) || op.has(Prop::WritesMemory);
    let result = variable && (some(Direction::Def) || !some(Direction::Use) && !memory);
    let class = Latency::of(target).map(|l| l.class_of(op, &function.insts[inst].mods).info());
    let late = class.is_some_and(|c| c.late) && !op.has(Prop::Control);
    let read = (variable || late) && some(Direction::Use) || op.has(Prop::ReadsLate);
    let group = op.has(Prop::CopyGroup);
    ControlWord {
        stall: if op.has(Prop::StallZero) || tensor && !is_short(function, inst) { 0 } else { LONGEST },
        stay: false,
        write_bar: if group {
            COPIES
        } else if result {
            RESULT
        } else {
            NONE
        },
        read_bar: if read { READ } else { NONE },
        wait: 1 << RESULT | 1 << READ,
    }
}

/// A product of eight rows, whose result is there after the longest stall. Longer ones have stall 0, which waits for all that
/// have a fixed latency. Source: ptxas -O0 on sm_80 and later.
fn is_short(function: &Function, inst: InstId) -> bool {
    let shape = function.insts[inst].mods.get(Mod::Mshape);
    [value::mshape::_8816, value::mshape::_8832, value::mshape::_88128].contains(&shape)
}
