//! Conservative control words (phase ProcessO0WaitsAndSBs): correct for any program, with hardly
//! any use of latency tables.
//!
//! Each instruction has the longest stall and waits for both scoreboards. Variable-latency
//! instructions set scoreboard 1 for their results and scoreboard 2 for the sources they read after
//! issue, so each instruction starts after everything before it has finished. Source: what ptxas
//! does at -O0.

use super::written_as_nop;
use crate::analysis::PassCx;
use crate::ori::function::ControlWord;
use crate::ori::{Function, InstId};
use crate::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use crate::tables::ori::{Class, Direction, RoleInfo};
use crate::tables::{Feature, Mod, Op, Prop, value};

/// Maximum of the stall field, in cycles.
const LONGEST: u8 = 15;
/// Scoreboard 0 counts groups of asynchronous copies; only DEPBAR waits for it.
const COPIES: u8 = 0;
const RESULT: u8 = 1;
const READ: u8 = 2;
const NONE: u8 = 7;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    write(cx.function);
}

/// Sets the control word of every instruction.
pub fn write(function: &mut Function) {
    for block in function.layout().to_vec() {
        for inst in function[block].clone() {
            let ctrl = control_word(function, inst);
            function[inst].ctrl = ctrl;
            written_as_nop(function, inst);
        }
    }
}

fn control_word(function: &Function, inst: InstId) -> ControlWord {
    let op = function[inst].op;
    let target = function.target();
    let tensor = op.has(Prop::TensorPipe) && target.has(Feature::TensorFixedLatency)
        || op.has(Prop::IntegerTensorPipe) && target.has(Feature::IntegerTensorFixedLatency);
    let class = Latency::of(target).map(|l| l.class_of(op, &function[inst].mods).info());
    let announced = class.is_some_and(|c| c.announced);
    let fixed = tensor
        || op.has(Prop::Fp64Pipe) && target.has(Feature::Fp64FixedLatency) && !announced
        || op.has(Prop::UniformBridge) && target.has(Feature::UniformBridgeFixedLatency);
    let variable = op.has(Prop::VariableLatency) && !fixed;
    let roles = op.info().roles;
    // Scoreboards do not guard convergence barriers.
    let counts = |r: &RoleInfo| r.class != Class::Barrier;
    let args = || roles.iter().zip(function.args(inst)).filter(|(r, a)| counts(r) && !a.is_null());
    let some = |d: Direction| args().any(|(r, _)| r.direction == d);
    // A variable-latency instruction without results and sources signals completion on the
    // scoreboard for results.
    let memory = op.has(Prop::ReadsMemory) || op.has(Prop::WritesMemory);
    let result = variable && (some(Direction::Def) || !some(Direction::Use) && !memory);
    let late = class.is_some_and(|c| c.late) && !op.has(Prop::Control);
    let read = (variable || late) && some(Direction::Use) || op.has(Prop::ReadsLate);
    let group = op.has(Prop::CopyGroup);
    // WARPGROUP.DEPBAR waits for products of warp groups.
    let product = Latency::of(target).is_some_and(|l| l.class_of(op, &function[inst].mods) == LatencyClass::Group);
    let (result, read) = (result && !product, read && !product && !op.has(Prop::NoReadBarrier));
    ControlWord {
        stall: if product {
            LONGEST
        } else if op.has(Prop::StallZero) || tensor && !is_short(function, inst) || outlasts(function, inst) {
            0
        } else {
            LONGEST
        },
        stay: false,
        write_bar: if group {
            COPIES
        } else if result {
            RESULT
        } else {
            NONE
        },
        read_bar: if op.has(Prop::BulkGroup) {
            COPIES
        } else if read {
            READ
        } else {
            NONE
        },
        // WARPGROUP.DEPBAR has no place for what it waits for besides.
        wait: if op == Op::WARPGROUP && some(Direction::None) { 0 } else { 1 << RESULT | 1 << READ },
    }
}

/// Whether a guard must wait for the predicate that an instruction writes, or a reader for its
/// register, longer than the longest stall lasts.
fn outlasts(function: &Function, inst: InstId) -> bool {
    let Some(latency) = Latency::of(function.target()) else { return false };
    let data = &function[inst];
    let roles = data.op.info().roles.iter().zip(function.args(inst)).enumerate();
    let mut written = roles.filter(|(_, (role, arg))| role.direction == Direction::Def && !arg.is_null());
    written.any(|(slot, (role, _))| {
        let (file, class, reader) = match role.class {
            Class::Pred => (RegFile::P, latency.class_of(data.op, &data.mods), LatencyClass::Guard),
            Class::Reg => (RegFile::R, latency.class(data.op, &data.mods, slot, 0), LatencyClass::Agu),
            _ => return false,
        };
        matches!(latency.read_after_write(file, class, reader), Needed::Cycles(n) if n > LONGEST)
    })
}

/// Whether an mma has eight rows, so that its result is ready after the longest stall. Larger ones
/// have stall 0, which waits for all fixed-latency results. Source: ptxas -O0 on sm_80 and later.
fn is_short(function: &Function, inst: InstId) -> bool {
    let shape = function[inst].mods.get(Mod::Mshape);
    [value::mshape::_8816, value::mshape::_8832, value::mshape::_88128].contains(&shape)
}
