//! Where one lane of a warp at most does something: the number of a thread or lane is another one,
//! no lane is lower, or it is elected. A guess, which decides what pays alone.

use super::Joiner;
use super::code::AND;
use crate::arrays::Each;
use crate::ori::{Block, Function, InstId, Kind, Operand};
use crate::tables::{Mod, Op, Prop, Role, sr, value};

/// Definitions that are followed from a predicate to the number of a lane, and blocks before one.
const MOST_STEPS: usize = 8;
/// The bits of a thread's number that are its lane's.
const LANE: u32 = 31;

impl Joiner<'_> {
    /// Whether one lane at most reaches a block: by the branches before it, as long as nothing else
    /// leads there.
    pub(super) fn is_reached_by_one(&self, function: &Function, block: Block) -> bool {
        let mut at = block;
        for _ in 0..MOST_STEPS {
            let [before] = self.cfg.preds[at][..] else { return false };
            if self.leaves_one(function, &function[before]) || self.leads_one(function, before, at) {
                return true;
            }
            at = before;
        }
        false
    }

    /// Whether all lanes but one leave the function in these instructions.
    pub(super) fn leaves_one(&self, function: &Function, insts: &[InstId]) -> bool {
        let leaves = |inst: &&InstId| function[**inst].op.has(Prop::Leaves) && !function[**inst].guard.is_null();
        insts.iter().filter(leaves).any(|inst| self.names_lane(function, function[*inst].guard.inverted()))
    }

    /// Whether the branch at the end of a block leads one lane to another block.
    fn leads_one(&self, function: &Function, from: Block, to: Block) -> bool {
        let branch = function[from].get(function.first_terminator(from)).copied();
        let branch = branch.filter(|inst| function[*inst].op == Op::BRA && !function[*inst].guard.is_null());
        let Some(branch) = branch.filter(|_| self.cfg.succs[from].len() > 1) else { return false };
        let guard = function[branch].guard;
        let taken = function.arg(branch, Role::Target).kind() == Kind::Label(to);
        self.names_lane(function, if taken { guard } else { guard.inverted() })
    }

    /// Whether a predicate holds in one lane at most: it is an election, or says that the number of
    /// a thread or lane is another one.
    pub(super) fn names_lane(&self, function: &Function, holds: Operand) -> bool {
        let Some(test) = holds.as_reg().and_then(|reg| self.def_use.definition(reg)) else { return false };
        let data = &function[test];
        if data.op == Op::ELECT {
            return !holds.not();
        }
        let other = function.arg(test, Role::Pp);
        let wanted = if holds.not() { value::cmp::NE } else { value::cmp::EQ };
        data.op == Op::ISETP
            && data.mods.get(Mod::Cmp) == wanted
            && data.guard.is_null()
            && (other.is_null() || !holds.not() && data.mods.get(Mod::Bool) == value::bool::AND)
            && self.tells_apart(function, function.arg(test, Role::A), function.arg(test, Role::B))
    }

    /// Whether one lane at most has these two the same: one is its number, or which lanes are lower
    /// and the other none.
    fn tells_apart(&self, function: &Function, a: Operand, b: Operand) -> bool {
        let none = self.def_use.known(function, b) == Some(0);
        self.is_number(function, a) || self.is_number(function, b) || none && self.is_lower(function, a)
    }

    /// Whether an operand has the lower ones of some lanes, or their number.
    fn is_lower(&self, function: &Function, mut operand: Operand) -> bool {
        let made = |operand: Operand| operand.as_reg().and_then(|reg| self.def_use.definition(reg));
        for _ in 0..MOST_STEPS {
            let Some(inst) = made(operand) else { return false };
            let both = [Role::A, Role::B].each(|role| function.arg(inst, role));
            let lower = |operand: Operand| {
                let special = made(operand).map(|inst| function.arg(inst, Role::S).kind());
                special == Some(Kind::Special(sr::LTMASK))
            };
            match function[inst].op {
                Op::LOP3 => return is_and(function, inst) && both.into_iter().any(lower),
                op if op.has(Prop::Copies) || op == Op::POPC => operand = both[0],
                _ => return false,
            }
        }
        false
    }

    /// Whether an operand is the number of a thread or a lane, or the low bits of one.
    fn is_number(&self, function: &Function, mut operand: Operand) -> bool {
        for _ in 0..MOST_STEPS {
            let Some(inst) = operand.as_reg().and_then(|reg| self.def_use.definition(reg)) else { return false };
            match function.arg(inst, Role::S).kind() {
                Kind::Special(number) => return [sr::TID_X, sr::LANEID].contains(&number),
                _ if function[inst].op.has(Prop::Copies) => operand = function.arg(inst, Role::A),
                _ if self.keeps_lane(function, inst) => operand = function.arg(inst, Role::A),
                // A thread's number in its block or grid.
                _ if function[inst].op == Op::IMAD => operand = function.arg(inst, Role::C),
                _ => return false,
            }
        }
        false
    }

    /// Whether an instruction keeps the low bits of its first source, where a lane's number is.
    fn keeps_lane(&self, function: &Function, inst: InstId) -> bool {
        let kept = self.def_use.known(function, function.arg(inst, Role::B));
        is_and(function, inst) && kept.is_some_and(|mask| mask & LANE == LANE)
    }
}

fn is_and(function: &Function, inst: InstId) -> bool {
    function[inst].op == Op::LOP3 && function.imm_value(function.arg(inst, Role::Lut)) == Some(AND)
}
