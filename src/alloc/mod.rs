//! Phase AllocateRegisters: physical numbers for all virtual registers.
//!
//! Input: a function out of SSA. Output: every register has a physical number; COPY and UNDEF are gone. Steps: `vectors` makes
//! every register vector one that can be placed (a register has one place relative to its neighbours, copies stand
//! where a second place is asked for); `ranges` says where each register is live; `classes` coalesces copies; `assign` gives
//! each class the lowest free place. Invariant: two registers that are live at once never share a physical register,
//! and the registers of a vector are adjacent and aligned to its length. No spilling yet: a function that needs more
//! registers than there are is refused.

pub mod assign;
pub mod check;
pub mod classes;
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
    Ok(())
}

/// COPY as MOV or PLOP3, or nothing where both sides ended in one place; UNDEF as nothing.
fn final_form(function: &mut Function, inst: InstId) -> Option<InstId> {
    match function.insts[inst].op {
        Op::UNDEF => None,
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
