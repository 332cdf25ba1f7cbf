//! Phase GeneralOptimize: a known number that is added to an address goes into the access's own offset.
//!
//! Input: a function in SSA form, and whether the target encodes an instruction. Output: accesses to memory at the address before the
//! addition, with a greater offset; the addition is left for dead-code removal. Invariant: the same byte is accessed, because addresses and offsets
//! are added modulo the width of the address.

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, Fits, is_free};
use crate::opt::combine::fuse::{high_sum, is_plain_sum, low_sum, terms};
use crate::ori::{Function, InstId, Operand, VReg};
use crate::tables::ori::{Class, Width};
use crate::tables::{Op, Role};

pub fn run(cx: &mut PassCx) {
    let def_use = cx.def_use();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    for block in function.layout.clone() {
        for i in 0..function.blocks[block].len() {
            let inst = function.blocks[block][i];
            while access(function, &def_use, inst, fits) {}
        }
    }
}

/// Takes one addition in, if that can be.
fn access(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    let op = function.insts[inst].op;
    let (Some(at), Some(off)) = (op.role_index(Role::A), op.role_index(Role::Off)) else { return false };
    let role = &op.info().roles[at];
    if role.class != Class::Reg || op.info().roles[off].class != Class::Imm {
        return false;
    }
    let (address, offset) = (function.args(inst)[at], function.args(inst)[off]);
    let Some(old) = (if offset.is_null() { Some(0) } else { function.imm_value(offset) }) else { return false };
    let found = match (address.as_vector(), address.as_reg()) {
        _ if address != address.plain() => None,
        (Some(vector), _) if role.width == Width::Addr => {
            let regs = function.vector_regs(vector).to_vec();
            long(function, def_use, &regs)
        }
        (_, Some(reg)) if is_window(op) => short(function, def_use, reg),
        _ => None,
    };
    let Some((base, bytes)) = found else { return false };
    let new = function.imm((old as i64).wrapping_add(bytes) as u64);
    (function.args_mut(inst)[at], function.args_mut(inst)[off]) = (base, new);
    let fitting = fits(function, inst);
    if !fitting {
        (function.args_mut(inst)[at], function.args_mut(inst)[off]) = (address, offset);
    }
    fitting
}

/// Accesses whose addresses are 32 bits wide, whatever the modifiers.
fn is_window(op: Op) -> bool {
    matches!(op, Op::LDS | Op::STS | Op::LDL | Op::STL)
}

/// The address of 64 bits before a known number of bytes was added.
fn long(function: &mut Function, def_use: &DefUse, regs: &[VReg]) -> Option<(Operand, i64)> {
    let [low, high] = regs else { return None };
    let (low_sum_at, high_sum_at) = (def_use.def_of(function, *low)?, def_use.def_of(function, *high)?);
    let carry = high_sum(function, high_sum_at)?;
    if def_use.def_of(function, carry) != Some(low_sum_at) || !low_sum(function, low_sum_at) {
        return None;
    }
    let result = |inst, reg: VReg| function.arg(inst, Role::D) == Operand::reg(reg);
    let made = result(low_sum_at, *low) && result(high_sum_at, *high);
    let carries = function.arg(low_sum_at, Role::Pu) == Operand::reg(carry);
    let word = |inst| def_use.known(function, function.arg(inst, Role::B)).map(u64::from);
    let bytes = word(high_sum_at)? << 32 | word(low_sum_at)?;
    let base = |inst| {
        let operand = function.arg(inst, Role::A);
        operand.as_reg().filter(|r| operand == operand.plain() && is_free(function, *r))
    };
    let base = [base(low_sum_at)?, base(high_sum_at)?];
    if !made || !carries {
        return None;
    }
    let vector = function.vector(&base);
    Some((Operand::vector(vector), bytes as i64))
}

/// The address of 32 bits before a known number of bytes was added.
fn short(function: &Function, def_use: &DefUse, reg: VReg) -> Option<(Operand, i64)> {
    let inst = def_use.def_of(function, reg).filter(|i| is_plain_sum(function, *i))?;
    let (terms, bytes) = terms(function, def_use, inst)?;
    let [base] = terms.as_slice() else { return None };
    let free = *base == base.plain() && base.as_reg().is_some_and(|r| is_free(function, r));
    free.then_some((*base, i64::from(bytes as i32)))
}
