//! Phase GeneralOptimizeLate: what lies at a fixed place of a constant bank is an operand of the instructions that read it, not a load.
//!
//! Input: a function in SSA form, and whether the target encodes an instruction. Output: loads of one word are moves, and pure instructions name
//! the place where they have an encoding for it, if need be with the factors of a product exchanged or an immediate factor in a register; the
//! loads are left for dead-code removal. Invariant: the same bits are read, as nobody writes a constant bank while a kernel runs; only where
//! the table of features says that the generation prefers this.

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, Fits, is_free, rewrite};
use crate::opt::combine::{swap, swaps};
use crate::ori::operand::Kind;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::ori::{Class, Direction, Width};
use crate::tables::{Feature, Mod, Op, Prop, Role, value};

pub fn run(cx: &mut PassCx) {
    if !cx.function.target.has(Feature::ConstantOperandsPreferred) {
        return;
    }
    let def_use = cx.def_use();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    for block in function.layout.clone() {
        let mut factors = Vec::new();
        let mut at = 0;
        while at < function.blocks[block].len() {
            let inst = function.blocks[block][at];
            if function.insts[inst].op == Op::LDC {
                load(function, inst);
            } else if function.insts[inst].op.has(Prop::Pure) {
                operands(function, &def_use, inst, fits);
                if address(function, &def_use, (block, at), &mut factors, fits) {
                    at += 1;
                }
            }
            at += 1;
        }
    }
}

/// Where a load has its value: bank and offset of the first byte, for a load at a fixed place of 4 or 8 bytes.
fn place(function: &Function, inst: InstId) -> Option<(u8, u16, u16)> {
    let data = &function.insts[inst];
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

/// A load of one word is a move.
fn load(function: &mut Function, inst: InstId) {
    let Some((bank, offset, 4)) = place(function, inst) else { return };
    let d = function.arg(inst, Role::D);
    rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, Operand::constant(bank, offset))]);
}

/// The place of a register's value.
fn source(function: &Function, def_use: &DefUse, reg: VReg) -> Option<(u8, u16)> {
    let inst = def_use.def_of(function, reg)?;
    let d = function.arg(inst, Role::D);
    if function.insts[inst].op == Op::MOV {
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

/// The constant operand that stands for a register, or for two that follow each other.
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

/// Takes places into an instruction, as many as it can name.
fn operands(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) {
    let op = function.insts[inst].op;
    for (i, role) in op.info().roles.iter().enumerate() {
        let old = function.args(inst)[i];
        if role.direction != Direction::Use || role.class != Class::Reg {
            continue;
        }
        let Some(new) = constant(function, def_use, old, role.width) else { continue };
        function.args_mut(inst)[i] = new;
        if fits(function, inst) {
            continue;
        }
        function.args_mut(inst)[i] = old;
        let other = function.arg(inst, Role::B);
        if role.role != Role::A || !swaps(function, inst) || matches!(other.kind(), Kind::Const { .. }) {
            continue;
        }
        swap(function, inst, old, other);
        function.set_arg(inst, Role::B, new);
        if !fits(function, inst) {
            swap(function, inst, other, old);
        }
    }
}

/// A product with an immediate factor and a sum of 64 bits in one instruction cannot name a place, too; the factor can be in a register, one for all
/// products of a block. Not left to the operand legalizer, as this early the same factor of another block is found, too. Whether an instruction was
/// put before it.
fn address(
    function: &mut Function,
    def_use: &DefUse,
    (block, at): (Block, usize),
    factors: &mut Vec<(u64, VReg)>,
    fits: Fits,
) -> bool {
    let inst = function.blocks[block][at];
    if function.insts[inst].op != Op::IMAD_WIDE {
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
    function.insts[mov].line = function.insts[inst].line;
    function.blocks[block].insert(at, mov);
    factors.push((known, reg));
    true
}
