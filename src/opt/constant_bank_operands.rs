//! Constant-bank operands (in GeneralOptimizeLate): instructions read a fixed address of a constant
//! bank directly instead of through a load.
//!
//! One-word loads become moves, and pure instructions name the bank address if the target encodes
//! it, if necessary with commuted factors or with an immediate factor moved to a register. 64-bit
//! values that are known at compile time, which no immediate has room for, go into the compiler's
//! own bank and are read there. The loads and moves are left for dead-code elimination. The same
//! bits are read, because constant banks do not change while a kernel runs. Runs only on
//! generations whose features prefer this.

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, Fits, is_free, rewrite};
use crate::opt::combine::{swap, swaps};
use crate::ori::operand::Kind;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::ori::{Class, Direction, Width};
use crate::tables::{Feature, Mod, Op, Prop, Role, value};

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    if !cx.function.target().has(Feature::ConstantOperandsPreferred) {
        cx.unchanged = true;
        return;
    }
    let def_use = cx.def_use();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    for block in function.layout().to_vec() {
        let mut factors = Vec::new();
        let mut at = 0;
        while at < function[block].len() {
            let inst = function[block][at];
            if function[inst].op == Op::LDC {
                load(function, inst);
            } else if function[inst].op.has(Prop::Pure) {
                operands(function, &def_use, inst, fits);
                if address(function, &def_use, (block, at), &mut factors, fits) {
                    at += 1;
                }
            }
            at += 1;
        }
    }
}

/// Bank, offset of the first byte, and size of a load of 4 or 8 bytes at a fixed address.
fn place(function: &Function, inst: InstId) -> Option<(u8, u16, u16)> {
    let data = &function[inst];
    let index = function.arg(inst, Role::A);
    if data.op != Op::LDC || !data.guard.is_null() || !matches!(index.kind(), Kind::Null | Kind::Zero) {
        return None;
    }
    let Kind::Const { bank, offset } = function.arg(inst, Role::C).kind() else { return None };
    match data.mods.get(Mod::Size) {
        value::size::NONE => Some((bank, offset, 4)),
        value::size::_64 => Some((bank, offset, 8)),
        _ => None,
    }
}

/// Turns a one-word load into a move.
fn load(function: &mut Function, inst: InstId) {
    let Some((bank, offset, 4)) = place(function, inst) else { return };
    let d = function.arg(inst, Role::D);
    rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, Operand::constant(bank, offset))]);
}

/// The 64-bit value of two registers that are known at compile time.
fn value(function: &Function, def_use: &DefUse, operand: Operand) -> Option<u64> {
    let [low, high] = *function.vector_regs(operand.as_vector()?) else { return None };
    let word = |reg: VReg| def_use.known(function, Operand::reg(reg)).map(u64::from);
    Some(word(high)? << 32 | word(low)?)
}

/// The bank address of a register's value.
fn source(function: &Function, def_use: &DefUse, reg: VReg) -> Option<(u8, u16)> {
    let inst = def_use.def_of(function, reg)?;
    let d = function.arg(inst, Role::D);
    if function[inst].op == Op::MOV {
        let from = function.arg(inst, Role::A);
        return match from.kind() {
            Kind::Const { bank, offset } if from == from.plain() && function.arg(inst, Role::Lanes).is_null() => {
                Some((bank, offset))
            }
            _ => None,
        };
    }
    let (bank, offset, _) = place(function, inst)?;
    let word = match d.as_vector() {
        Some(vector) => function.vector_regs(vector).iter().position(|r| *r == reg)?,
        None => 0,
    };
    Some((bank, offset.checked_add(4 * word as u16)?))
}

/// The constant operand for a register, or for two words at adjacent addresses.
fn constant(function: &Function, def_use: &DefUse, operand: Operand, width: Width) -> Option<Operand> {
    let (bank, offset) = match operand.kind() {
        Kind::Reg(reg) if matches!(width, Width::Words(1)) => source(function, def_use, reg)?,
        Kind::Vector(vector) if matches!(width, Width::Words(2)) => {
            let [low, high] = *function.vector_regs(vector) else { return None };
            let (first, second) = (source(function, def_use, low)?, source(function, def_use, high)?);
            (first.1 % 8 == 0 && second == (first.0, first.1 + 4)).then_some(first)?
        }
        _ => return None,
    };
    Some(Operand::constant(bank, offset).modified_like(operand))
}

/// Replaces as many operands as the instruction can encode by constant operands.
fn operands(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) {
    let op = function[inst].op;
    for (i, role) in op.info().roles.iter().enumerate() {
        let old = function.args(inst)[i];
        if role.direction != Direction::Use || role.class != Class::Reg {
            continue;
        }
        if let Some(new) = constant(function, def_use, old, role.width) {
            operand(function, inst, (i, new), fits);
        } else if matches!(role.width, Width::Words(2))
            && let Some(value) = value(function, def_use, old)
        {
            let known = function.attributes().constants.as_ref().map_or(0, |constants| constants.values.len());
            let new = function.attributes_mut().constants.as_mut().and_then(|constants| constants.operand(value));
            if !new.is_some_and(|new| operand(function, inst, (i, new.modified_like(old)), fits))
                && let Some(constants) = &mut function.attributes_mut().constants
            {
                constants.values.truncate(known);
            }
        }
    }
}

/// Replaces an operand by a constant, as factor B where it cannot be A. Returns whether the
/// instruction can encode it.
fn operand(function: &mut Function, inst: InstId, (i, new): (usize, Operand), fits: Fits) -> bool {
    let (old, other) = (function.args(inst)[i], function.arg(inst, Role::B));
    function.args_mut(inst)[i] = new;
    if fits(function, inst) {
        return true;
    }
    function.args_mut(inst)[i] = old;
    let first = function[inst].op.info().roles[i].role == Role::A;
    if !first || !swaps(function, inst) || matches!(other.kind(), Kind::Const { .. }) {
        return false;
    }
    swap(function, inst, old, other);
    function.set_arg(inst, Role::B, new);
    let fit = fits(function, inst);
    if !fit {
        swap(function, inst, other, old);
    }
    fit
}

/// A multiply-add with an immediate factor and a 64-bit addend cannot also name a bank address. The
/// factor moves to a register, which all products of a block share. Operand legalization would do
/// this too late to find the same factor in other blocks. Returns whether an instruction was
/// inserted.
fn address(
    function: &mut Function,
    def_use: &DefUse,
    (block, at): (Block, usize),
    factors: &mut Vec<(u64, VReg)>,
    fits: Fits,
) -> bool {
    let inst = function[block][at];
    if function[inst].op != Op::IMAD_WIDE {
        return false;
    }
    let (factor, sum) = (function.arg(inst, Role::B), function.arg(inst, Role::C));
    let (Some(known), Some(vector)) = (function.imm_value(factor), sum.as_vector()) else { return false };
    let only = function.vector_regs(vector).iter().all(|reg| def_use.uses(*reg) == 1 && is_free(function, *reg));
    let Some(new) = constant(function, def_use, sum, Width::Words(2)).filter(|_| only) else { return false };
    let known_before = factors.iter().find(|(value, _)| *value == known).map(|(_, reg)| *reg);
    let reg = known_before.unwrap_or_else(|| function.new_reg(File::R));
    function.set_arg(inst, Role::B, Operand::reg(reg));
    function.set_arg(inst, Role::C, new);
    if !fits(function, inst) {
        function.set_arg(inst, Role::B, factor);
        function.set_arg(inst, Role::C, sum);
        return false;
    }
    if known_before.is_some() {
        return false;
    }
    let mov = function.make(Op::MOV);
    function.set_arg(mov, Role::D, Operand::reg(reg));
    function.set_arg(mov, Role::A, factor);
    function[mov].line = function[inst].line;
    function[block].insert(at, mov);
    factors.push((known, reg));
    true
}
