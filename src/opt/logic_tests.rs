//! Logic tests: a comparison of a logic operation's result with zero becomes the predicate that
//! the operation gives besides, as ptxas has it.
//!
//! Runs in SSA form behind the choice of uniform registers, which have no such test. The operation
//! must stand in the same block and be read by the comparison alone; then one instruction is saved.
//! LOP3 says whether its result is not zero; where the comparison asks for zero, all readers of its
//! predicate are made to read the opposite, if all of them can. Another predicate that is joined by
//! AND or OR is kept.

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, Fits, is_free, is_pure, rewrite};
use crate::arrays::Each;
use crate::ori::{Block, Convention, File, Function, InstId, Operand, VReg, table};
use crate::sorted::SortedSet;
use crate::tables::ori::Direction;
use crate::tables::{Mod, Op, Role, value};
use cranelift_entity::SecondaryMap;

/// Most instructions from the operation to its test.
const NEAR: usize = 8;

/// A comparison that can go.
struct Test {
    compare: InstId,
    logic: InstId,
    result: VReg,
    /// Whether it asks for zero.
    zero: bool,
    /// Which of the two goes.
    gone: InstId,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    // A slow path has just as many registers as it needs without this.
    if cx.function.attributes().convention == Convention::SlowPath {
        return;
    }
    let def_use = cx.take_def_use();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    let mut tests: Vec<Test> = Vec::new();
    for block in function.layout() {
        let found = (0..function[*block].len()).filter_map(|at| test(function, &def_use, *block, at));
        tests.extend(found);
    }
    // What is to be read as its opposite.
    let mut turned: SecondaryMap<VReg, bool> = table(function.regs().len());
    tests.iter().filter(|test| test.zero).for_each(|test| turned[test.result] = true);
    if tests.iter().any(|test| test.zero) {
        keep_unturnable(function, &mut turned, fits);
        turn(function, &turned);
    }
    tests.retain(|test| !test.zero || turned[test.result]);
    tests.iter().for_each(|test| join(function, test));
    let gone: SortedSet<InstId> = tests.iter().map(|test| test.gone).collect();
    if !gone.is_empty() {
        for block in function.layout().to_vec() {
            function[block].retain(|inst| !gone.contains(inst));
        }
    }
}

/// The test that an instruction is, if the operation that it tests can make it.
fn test(function: &Function, def_use: &DefUse, block: Block, at: usize) -> Option<Test> {
    let compare = function[block][at];
    let data = &function[compare];
    let arg = |role| function.arg(compare, role);
    if data.op != Op::ISETP || !is_pure(function, compare) || data.mods.get(Mod::Ex) != value::ex::NONE {
        return None;
    }
    let zero = match data.mods.get(Mod::Cmp) {
        value::cmp::EQ => true,
        value::cmp::NE => false,
        _ => return None,
    };
    let joined = !arg(Role::Pp).is_null() && arg(Role::Pp) != Operand::always();
    let and = data.mods.get(Mod::Bool) == value::bool::AND;
    let joins = and || data.mods.get(Mod::Bool) == value::bool::OR;
    let alone = arg(Role::Pv).is_null() && arg(Role::Pq).is_null() && if joined { !zero && joins } else { and };
    let tested = arg(Role::A).as_reg().filter(|reg| arg(Role::A) == Operand::reg(*reg))?;
    let result = arg(Role::Pu).as_reg().filter(|reg| is_free(function, *reg))?;
    let logic = def_use.single_use_def(function, tested)?;
    let here = function[block][at.saturating_sub(NEAR)..at].contains(&logic);
    let of_logic = |role| function.arg(logic, role);
    let plain = function[logic].op == Op::LOP3 && is_pure(function, logic);
    let untested =
        of_logic(Role::Pu).is_null() && (of_logic(Role::Pp).is_null() || of_logic(Role::Pp) == Operand::never());
    let general = function[tested].file == File::R && function[result].file == File::P;
    let mut free = is_free(function, tested);
    function.for_each_use(logic, |reg| free &= is_free(function, reg));
    let stands = alone && arg(Role::B) == Operand::zero() && here && plain && untested && general && free;
    // The predicate takes the place of the result that is tested; so no operand lives longer.
    let gone = if joined { logic } else { compare };
    stands.then_some(Test { compare, logic, result, zero, gone })
}

/// Takes back the predicates of which a reader has no place for the opposite.
fn keep_unturnable(function: &mut Function, turned: &mut SecondaryMap<VReg, bool>, fits: Fits) {
    for block in function.layout().to_vec() {
        for inst in function[block].clone() {
            for at in 0..function.args(inst).len() {
                let operand = function.args(inst)[at];
                let Some(reg) = operand.as_reg().filter(|reg| turned[*reg]) else { continue };
                if function.direction(inst, at) != Direction::Use {
                    continue;
                }
                function.args_mut(inst)[at] = operand.inverted();
                let op = function[inst].op;
                turned[reg] = op != Op::PHI && op != Op::COPY && fits(function, inst);
                function.args_mut(inst)[at] = operand;
            }
            for old in function.olds(inst) {
                if let Some(reg) = old.as_reg() {
                    turned[reg] = false;
                }
            }
        }
    }
}

/// Makes all readers of these predicates read the opposite.
fn turn(function: &mut Function, turned: &SecondaryMap<VReg, bool>) {
    let opposite = |operand: Operand| operand.as_reg().filter(|reg| turned[*reg]).map(|_| operand.inverted());
    for block in function.layout().to_vec() {
        for inst in function[block].clone() {
            if let Some(guard) = opposite(function[inst].guard) {
                function[inst].guard = guard;
            }
            for at in 0..function.args(inst).len() {
                if function.direction(inst, at) == Direction::Use
                    && let Some(operand) = opposite(function.args(inst)[at])
                {
                    function.args_mut(inst)[at] = operand;
                }
            }
        }
    }
}

/// Makes the operation with a predicate for its result, at the place of the comparison if another
/// predicate is joined.
fn join(function: &mut Function, test: &Test) {
    let of = |inst, role| function.arg(inst, role);
    let (other, all) = (of(test.compare, Role::Pp), function[test.compare].mods.get(Mod::Bool) == value::bool::AND);
    let joined = !other.is_null() && other != Operand::always();
    let mut args = vec![(Role::Pu, Operand::reg(test.result)), (Role::D, Operand::zero())];
    args.extend([Role::A, Role::B, Role::C, Role::Lut].each(|role| (role, of(test.logic, role))));
    args.push((Role::Pp, if joined { other } else { Operand::never() }));
    let stays = if test.gone == test.logic { test.compare } else { test.logic };
    rewrite(function, stays, Op::LOP3, &args);
    if joined && all {
        function[stays].mods.set(Mod::Pand, 1);
    }
}
