//! Phase AllocateRegisters: physical numbers for all virtual registers, with spilling.
//!
//! Input: a function out of SSA. Output: every register that an instruction names has a physical number; COPY, UNDEF and ENTRY
//! are gone; the frame is laid out and the stack pointer set. Steps, in rounds: `ranges` says where each register is live; `vectors` gives
//! every register vector a place in a class, or copies where a register is asked for in two places; `classes` coalesces copies;
//! `pressure` and `assign` give each class the lowest free place or choose what goes to memory; `spill` rewrites the
//! function for what was chosen, and the next round begins. `frame` ends the work. `check` follows it all and trusts none of it.
//!
//! What is guaranteed:
//!  * two registers that are live at once never share a physical register; a vector gets adjacent registers, the first at a
//!    multiple of its length (rounded up to a power of two, at most [`vectors::WIDEST`]);
//!  * `RegData::phys` is reserved in the whole function, and given to nothing else;
//!  * `RegData::fixed` is kept over the register's own live range; values get in and out by the copies that lowering wrote,
//!    which vanish where nothing stands against it;
//!  * over an instruction with the property `clobbers` nothing lives in a register that `registers.ron` does not list;
//!  * no general register above the limit: the target's, or `Function::max_registers`, less the two that the count adds;
//!  * a device function ([`Convention::Device`](crate::ori::Convention)) saves the listed registers that it uses behind ENTRY and restores them before each RET;
//!  * a function is refused only if one instruction alone names more registers than there are.
//!
//! Why it ends: a round that does not finish moves at least one register out of the set of those that may be spilled. Predicates, uniform
//! registers and barriers are spilled to general registers (new ones that may be spilled), general registers to memory; what spill
//! code itself makes lives around one instruction and is never spilled. So (spillable of the other files, spillable of the general
//! file) falls lexicographically.
//!
//! How lowering writes a call:
//! ```text
//! COPY d=r10 a=r1                      r10 = Function::new_fixed(File::R, 4), fresh for every call
//! COPY d=r11 a=r2                      r11 = new_fixed(File::R, 5)
//! CALL target=... in(r10 r11) out(r12) Function::set_extras(call, uses, defs); r12 = new_fixed(File::R, 4)
//! COPY d=r3 a=r12
//! ```
//! A vector of fixed registers needs the first one fixed only. A device function begins with `ENTRY out(r4 r5 …)` of fixed registers
//! and copies them away; RET reads its results as extras. `Function::stack_register` is R1 (no instruction sets it before
//! this phase); offsets below `local_bytes` are lowering's; incoming stack arguments are addressed from R1 + 0 and listed in
//! `Function::above_frame`. Bytes of the finished frame: `Function::frame_bytes`.

pub mod assign;
pub mod check;
pub mod classes;
pub mod frame;
pub mod ranges;
pub mod vectors;

use crate::ori::{File, Function, InstId, Operand};
use crate::tables::{Op, Role};

/// Allocates. The error says which file ran out of registers.
pub fn run(function: &mut Function) -> Result<(), String> {
    vectors::make_placeable(function);
    let ranges = ranges::Ranges::new(function);
    let mut classes = classes::Classes::new(function);
    classes.coalesce(function, &ranges);
    assign::assign(function, &mut classes, &ranges)?;
    if cfg!(debug_assertions) {
        let wrong = check::check(function);
        assert!(wrong.is_empty(), "AllocateRegisters: {}", wrong.join("; "));
    }
    for block in function.layout.clone() {
        let insts = std::mem::take(&mut function.blocks[block]);
        function.blocks[block] = insts.into_iter().filter_map(|inst| final_form(function, inst)).collect();
    }
    frame::finish(function, function.local_bytes);
    Ok(())
}

/// Whether a call leaves a register as it is.
pub fn is_kept(file: File, number: u16) -> bool {
    crate::tables::registers::kept_across_calls(file.name(), number)
}

/// Numbers of the general registers that instructions name.
pub fn general_registers(function: &Function) -> std::collections::BTreeSet<u16> {
    let mut used = std::collections::BTreeSet::new();
    let mut note = |reg: crate::ori::VReg| {
        if let Some(n) = function.regs[reg].phys.filter(|_| function.regs[reg].file == File::R) {
            used.insert(n);
        }
    };
    for inst in function.layout.iter().flat_map(|b| &function.blocks[*b]) {
        function.for_each_def(*inst, &mut note);
        function.for_each_use(*inst, &mut note);
    }
    used
}

/// COPY as MOV or PLOP3, or nothing where both sides ended in one place; UNDEF as nothing.
fn final_form(function: &mut Function, inst: InstId) -> Option<InstId> {
    match function.insts[inst].op {
        Op::UNDEF | Op::ENTRY => None,
        Op::COPY => {
            let (dst, src) = (function.arg(inst, Role::D), function.arg(inst, Role::A));
            let place = |f: &Function, o: Operand| o.as_reg().and_then(|r| f.regs[r].phys);
            if place(function, dst) == place(function, src) && !dst.not() && !src.not() {
                return None;
            }
            Some(copy(function, inst, dst, src))
        }
        _ => Some(inst),
    }
}

/// Truth table of `a` in a three-input predicate operation whose other inputs are true.
const LUT_FIRST: u64 = 0x80;

fn copy(function: &mut Function, inst: InstId, dst: Operand, src: Operand) -> InstId {
    let predicate = dst.as_reg().is_some_and(|r| function.regs[r].file == File::P);
    let new = if predicate {
        let new = function.make(Op::PLOP3);
        let (lut, lut2) = (function.imm(LUT_FIRST), function.imm(0));
        let always = Operand::always();
        for (role, operand) in [
            (Role::Pu, dst),
            (Role::Pv, always),
            (Role::Pa, src),
            (Role::Pb, always),
            (Role::Pc, always),
            (Role::Lut, lut),
            (Role::Lut2, lut2),
        ] {
            function.set_arg(new, role, operand);
        }
        new
    } else {
        let new = function.make(Op::MOV);
        function.set_arg(new, Role::D, dst);
        function.set_arg(new, Role::A, src);
        new
    };
    function.insts[new].guard = function.insts[inst].guard;
    function.insts[new].line = function.insts[inst].line;
    new
}
