//! The stack frame: sets the stack pointer, and saves and restores callee-saved registers.
//!
//! Runs on physical registers and completes the entry and the returns; sets `frame_bytes`. Layout
//! from R1 up: what lowering laid out (`local_bytes`), spill slots, saved registers. The frame is a
//! multiple of 16 bytes. A kernel without a frame gets no instruction. Registers that a RET names
//! itself (the return address) are restored by code from lowering.

use super::interference::Mask;
use super::{bundles, general_registers, is_kept};
use crate::ori::{Convention, File, Function, InstId, Operand, VReg};
use crate::sorted::SortedSet;
use crate::tables::encoding::sr;
use crate::tables::registers::Callee;
use crate::tables::{Mod, Op, Role, value};

/// Alignment of the frame in bytes, so that variables with this alignment keep it.
const ALIGN: u32 = 16;

/// Completes the function. `spilled` is the offset of the first byte above the spill slots
/// (`local_bytes` if there are none).
pub fn finish(function: &mut Function, spilled: u32) {
    let saved = saved_registers(function);
    let first_saved = spilled.next_multiple_of(4);
    let frame = (first_saved + 4 * saved.len() as u32).next_multiple_of(ALIGN);
    function.attributes_mut().frame_bytes = frame;
    for inst in std::mem::take(function.above_frame_mut()) {
        add_to_offset(function, inst, frame);
    }
    if frame == 0 && function.stack_pointer().is_none() {
        return;
    }
    let sp = function.stack_register();
    let places: Vec<(VReg, u32)> =
        saved.iter().enumerate().map(|(i, n)| (physical(function, *n), first_saved + 4 * i as u32)).collect();
    enter(function, sp, frame, &places);
    if function.attributes().convention == Convention::Device {
        returns(function, sp, frame, &places);
    }
}

/// Callee-saved registers that a device function uses, in ascending order.
fn saved_registers(function: &Function) -> SortedSet<u16> {
    if function.attributes().convention != Convention::Device || function.attributes().private {
        return SortedSet::new();
    }
    let mut saved: SortedSet<u16> = general_registers(function)
        .into_iter()
        .chain(known_callees(function))
        .filter(|n| is_kept(File::R, *n) && *n != crate::ori::STACK_POINTER)
        .collect();
    for inst in function.layout().iter().flat_map(|b| &function[*b]) {
        if function[*inst].op == Op::RET {
            function.for_each_use(*inst, |reg| {
                if let Some(n) = function[reg].phys.filter(|_| function[reg].file == File::R) {
                    saved.remove(&n);
                }
            });
        }
    }
    saved
}

/// The general registers that callees may change which do not follow the calling convention.
fn known_callees(function: &Function) -> SortedSet<u16> {
    let insts = function.layout().iter().flat_map(|b| &function[*b]);
    let callees = insts.filter_map(|inst| function.callee(*inst));
    let known: SortedSet<Callee> = callees.filter(|c| matches!(c, Callee::SlowPath(_) | Callee::Private(_))).collect();
    let changed = known.into_iter().map(|callee| bundles::changed(callee)[File::R as usize]);
    let changed = changed.fold(Mask::default(), Mask::or);
    (0..255).filter(|number| changed.contains(i32::from(*number))).collect()
}

fn physical(function: &mut Function, number: u16) -> VReg {
    let reg = function.new_reg(File::R);
    function[reg].phys = Some(number);
    reg
}

fn add_to_offset(function: &mut Function, inst: InstId, frame: u32) {
    let role = if function[inst].op.role_index(Role::Off).is_some() { Role::Off } else { Role::B };
    let old = function.imm_value(function.arg(inst, role)).unwrap_or(0);
    let new = function.imm(old.wrapping_add(u64::from(frame)));
    function.set_arg(inst, role, new);
}

/// Emits the prologue at the start of the entry block (ENTRY is already removed): sets the stack
/// pointer and saves registers.
fn enter(function: &mut Function, sp: VReg, frame: u32, places: &[(VReg, u32)]) {
    let mut code = Vec::new();
    if function.attributes().convention == Convention::Kernel {
        let top = function.target().info().map_or(0, |g| g.stack_top);
        let ldc = function.make(Op::LDC);
        function.set_arg(ldc, Role::D, Operand::reg(sp));
        function.set_arg(ldc, Role::C, Operand::constant(0, top as u16));
        code.push(ldc);
    }
    if frame != 0 {
        code.push(add(function, sp, frame.wrapping_neg()));
        if function.attributes().checks_stack {
            code.extend(check_stack(function, sp));
        }
    }
    for (reg, offset) in places {
        code.push(store(function, sp, *offset, Operand::reg(*reg)));
    }
    let entry = function.entry();
    function[entry].splice(0..0, code);
}

/// Traps where the stack pointer is below the thread's local memory. Nothing holds a value in R0
/// and P0 when a function begins. Source: ptxas 13.0.88 --sp-bounds-check, -g and -O0, in functions
/// with a frame; it branches around the trap.
fn check_stack(function: &mut Function, sp: VReg) -> [InstId; 3] {
    let lowest = physical(function, 0);
    let inside = function.new_reg(File::P);
    function[inside].phys = Some(0);
    let read = function.make(Op::S2R);
    function.set_arg(read, Role::D, Operand::reg(lowest));
    // The lowest offset of a thread's local memory.
    function.set_arg(read, Role::S, Operand::special(sr::LMEMHIOFF));
    let compare = function.make(Op::ISETP);
    for (role, operand) in [
        (Role::Pu, Operand::reg(inside)),
        (Role::Pv, Operand::always()),
        (Role::A, Operand::reg(sp)),
        (Role::B, Operand::reg(lowest)),
        (Role::Pp, Operand::always()),
        (Role::Pq, Operand::always()),
    ] {
        function.set_arg(compare, role, operand);
    }
    function[compare].mods.set(Mod::Cmp, value::cmp::GE);
    function[compare].mods.set(Mod::Sign, value::sign::U32);
    let trap = function.make(Op::BPT);
    let reason = function.imm(1);
    function.set_arg(trap, Role::A, reason);
    function[trap].mods.set(Mod::Bpt, value::bpt::TRAP);
    function[trap].guard = Operand::reg(inside).inverted();
    [read, compare, trap]
}

fn returns(function: &mut Function, sp: VReg, frame: u32, places: &[(VReg, u32)]) {
    for block in function.layout().to_vec() {
        let mut out = Vec::with_capacity(function[block].len());
        for inst in std::mem::take(&mut function[block]) {
            if function[inst].op == Op::RET {
                let guard = function[inst].guard;
                let mut code: Vec<InstId> =
                    places.iter().map(|(r, o)| load(function, Operand::reg(*r), sp, *o)).collect();
                if frame != 0 {
                    code.push(add(function, sp, frame));
                }
                code.iter().for_each(|i| function[*i].guard = guard);
                out.extend(code);
            }
            out.push(inst);
        }
        function[block] = out;
    }
}

/// R1 plus a number of bytes.
fn add(function: &mut Function, sp: VReg, bytes: u32) -> InstId {
    let inst = function.make(Op::IADD3);
    let bytes = function.imm(u64::from(bytes));
    for (role, operand) in
        [(Role::D, Operand::reg(sp)), (Role::A, Operand::reg(sp)), (Role::B, bytes), (Role::C, Operand::zero())]
    {
        function.set_arg(inst, role, operand);
    }
    inst
}

/// A store to the frame.
pub fn store(function: &mut Function, sp: VReg, offset: u32, value: Operand) -> InstId {
    access(function, Op::STL, Role::B, sp, offset, value)
}

/// A load from the frame.
pub fn load(function: &mut Function, to: Operand, sp: VReg, offset: u32) -> InstId {
    access(function, Op::LDL, Role::D, sp, offset, to)
}

fn access(function: &mut Function, op: Op, role: Role, sp: VReg, offset: u32, value: Operand) -> InstId {
    let inst = function.make(op);
    let offset = function.imm(u64::from(offset));
    function.set_arg(inst, Role::A, Operand::reg(sp));
    function.set_arg(inst, Role::Off, offset);
    function.set_arg(inst, role, value);
    let words = value.as_vector().map_or(1, |v| function.vector_regs(v).len());
    if let Some(size) = crate::ori::function::access_size(words) {
        function[inst].mods.set(crate::tables::Mod::Size, size);
    }
    inst
}
