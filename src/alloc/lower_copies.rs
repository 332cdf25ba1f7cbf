//! Lowers what allocation leaves: COPY becomes MOV, UMOV or PLOP3, or nothing if both sides are the
//! same register; UNDEF, ENTRY and rematerialized definitions disappear.
//!
//! Also counts the bytes that spill code stores and loads. If convergence barriers were spilled,
//! each barrier is cleared before lanes enter its region.

use super::ranges::Gone;
use crate::ori::{File, Function, InstId, Operand};
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::EntityRef;

/// Finishes the function; instructions from `first_new` on are the allocator's.
pub fn run(function: &mut Function, gone: &Gone, first_new: u32) {
    (function.attributes_mut().spill_stores, function.attributes_mut().spill_loads) = (0, 0);
    for block in function.layout().to_vec() {
        let insts = std::mem::take(&mut function[block]);
        for inst in insts.iter().filter(|i| i.index() >= first_new as usize) {
            if gone.is_marker(*inst) {
                continue;
            }
            let words = |role| match function.arg(*inst, role).as_vector() {
                Some(vector) => 4 * function.vector_regs(vector).len() as u32,
                None => 4,
            };
            match function[*inst].op {
                Op::STL => function.attributes_mut().spill_stores += words(Role::B),
                Op::LDL => function.attributes_mut().spill_loads += words(Role::D),
                _ => {}
            }
        }
        let kept: Vec<InstId> = insts.into_iter().filter(|inst| !gone.is_marker(*inst)).collect();
        function[block] = kept.into_iter().filter_map(|inst| final_form(function, inst)).collect();
    }
    clear_barriers(function, first_new);
}

/// Clears a barrier before its BSSY if barriers are shared between regions: other lanes may wait at
/// it with a mask that they reloaded from a register, and no published source says that BSSY does
/// not add to that mask (ptxas clears it too).
fn clear_barriers(function: &mut Function, first_new: u32) {
    let (mut used, mut moved) = (0u32, false);
    let insts = function.layout().iter().flat_map(|b| &function[*b]);
    for inst in insts.filter(|i| matches!(function[**i].op, Op::BSSY | Op::BMOV_R | Op::BMOV_B)) {
        moved |= inst.index() >= first_new as usize;
        let barrier = function.arg(*inst, Role::B).as_reg().and_then(|r| function[r].phys);
        used |= barrier.map_or(0, |number| 1 << number);
    }
    if !moved || used.count_ones() < super::limit(function, File::B) as u32 {
        return;
    }
    for block in function.layout().to_vec() {
        let mut at = 0;
        while let Some(inst) = function[block].get(at).copied() {
            if function[inst].op == Op::BSSY {
                let clear = function.make(Op::BMOV_R);
                let barrier = function.arg(inst, Role::B);
                function.set_arg(clear, Role::D, Operand::zero());
                function.set_arg(clear, Role::B, barrier);
                function[clear].mods.set(Mod::Clear, value::clear::CLEAR);
                function[clear].line = function[inst].line;
                function[block].insert(at, clear);
                at += 1;
            }
            at += 1;
        }
    }
}

/// COPY as MOV or PLOP3, or nothing if both sides are the same register; UNDEF as nothing.
fn final_form(function: &mut Function, inst: InstId) -> Option<InstId> {
    match function[inst].op {
        op if op.has(Prop::Vanishes) => None,
        Op::COPY => {
            let (dst, src) = (function.arg(inst, Role::D), function.arg(inst, Role::A));
            let place = |f: &Function, o: Operand| o.as_reg().and_then(|r| f[r].phys);
            let same = place(function, dst) == place(function, src) && !dst.not() && !src.not();
            if same && !is_watched(function, dst, src) {
                return None;
            }
            Some(copy(function, inst, dst, src))
        }
        _ => Some(inst),
    }
}

/// Whether a copy gives a register of the text a value that another has, which a debugger sees.
fn is_watched(function: &Function, dst: Operand, src: Operand) -> bool {
    let Some(watched) = function.watched() else { return false };
    let part = |operand: Operand| operand.as_reg().and_then(|reg| watched.parts[reg]);
    part(dst).is_some() && part(dst) != part(src)
}

/// Truth table of the first input of PLOP3.
const LUT_FIRST: u64 = 0x80;

fn copy(function: &mut Function, inst: InstId, dst: Operand, src: Operand) -> InstId {
    let file = dst.as_reg().map(|r| function[r].file);
    let new = if let Some(File::P | File::UP) = file {
        let new = function.make(if file == Some(File::P) { Op::PLOP3 } else { Op::UPLOP3 });
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
        let new = function.make(if file == Some(File::UR) { Op::UMOV } else { Op::MOV });
        function.set_arg(new, Role::D, dst);
        function.set_arg(new, Role::A, src);
        new
    };
    function[new].guard = function[inst].guard;
    function[new].line = function[inst].line;
    new
}
