//! Address-mode folding (in GeneralOptimize): a constant that is added to an address moves to the
//! offset of the memory access.
//!
//! Only if the target encodes the new offset. The same byte is accessed, because addresses and
//! offsets are added modulo the width of the address. The addition is left for dead-code
//! elimination.

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, Fits, is_free};
use crate::opt::combine::fuse::{is_plain_sum, terms};
use crate::opt::combine::long::long_offset;
use crate::ori::{Function, InstId, Kind, Operand, VReg};
use crate::tables::ori::{Class, Width};
use crate::tables::{Op, Prop, Role};

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let def_use = cx.def_use();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    for block in function.layout().to_vec() {
        for i in 0..function[block].len() {
            let inst = function[block][i];
            while access(function, &def_use, inst, (Role::A, Role::Off), fits) {}
            while access(function, &def_use, inst, (Role::S, Role::Soff), fits) {}
            bank(function, &def_use, inst);
        }
    }
}

/// Gives a load from a constant bank the place that its index is known to be: the load then reads
/// no register, and can be an operand.
fn bank(function: &mut Function, def_use: &DefUse, inst: InstId) {
    if function[inst].op != Op::LDC {
        return;
    }
    let Kind::Const { bank, offset } = function.arg(inst, Role::C).kind() else { return };
    let index = function.arg(inst, Role::A).as_reg().and_then(|reg| number(function, def_use, reg));
    let place = index.and_then(|index| u16::try_from(index.wrapping_add(u32::from(offset))).ok());
    if let Some(place) = place.filter(|place| place % 4 == 0) {
        function.set_arg(inst, Role::A, Operand::NULL);
        function.set_arg(inst, Role::C, Operand::constant(bank, place));
    }
}

/// The number that a register is, if it is one: a constant, or one added to it.
fn number(function: &Function, def_use: &DefUse, reg: VReg) -> Option<u32> {
    if let Some(known) = def_use.constant(function, reg) {
        return Some(known);
    }
    let inst = def_use.def_of(function, reg).filter(|i| is_plain_sum(function, *i))?;
    let (terms, bytes) = terms(function, def_use, inst)?;
    terms.is_empty().then_some(bytes)
}

/// Folds one addition into an address and its offset in an access; returns whether it did.
fn access(function: &mut Function, def_use: &DefUse, inst: InstId, place: (Role, Role), fits: Fits) -> bool {
    let op = function[inst].op;
    let (Some(at), Some(off)) = (op.role_index(place.0), op.role_index(place.1)) else { return false };
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
            let found = long_offset(function, def_use, &regs);
            found.map(|(base, bytes)| (Operand::vector(function.vector(&base)), bytes as i64))
        }
        (_, Some(reg)) if place.0 == Role::S || is_window(op) => short(function, def_use, reg),
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

/// Whether an access always has a 32-bit address.
fn is_window(op: Op) -> bool {
    (op.has(Prop::SharedMemory) || op.has(Prop::LocalMemory)) && !op.has(Prop::Atomic)
}

/// A 32-bit address before a constant was added, and the constant.
fn short(function: &Function, def_use: &DefUse, reg: VReg) -> Option<(Operand, i64)> {
    let inst = def_use.def_of(function, reg).filter(|i| is_plain_sum(function, *i))?;
    let (terms, bytes) = terms(function, def_use, inst)?;
    let [base] = terms.as_slice() else { return None };
    let free = *base == base.plain() && base.as_reg().is_some_and(|r| is_free(function, r));
    free.then_some((*base, i64::from(bytes as i32)))
}
