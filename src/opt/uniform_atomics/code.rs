//! The instructions that elect a lane, count or reduce, and tell the answers.

use crate::ori::{File, Function, InstId, Operand, VReg};
use crate::tables::ori::Direction;
use crate::tables::{Mod, Op, Prop, Role, sr, value};
use smallvec::SmallVec;

/// The last lane, which a shuffle by index without segments names as its limit.
const LAST_LANE: u64 = 31;
/// The table of LOP3 for both of its first sources.
pub const AND: u64 = 0xc0;

/// Instructions in front of the operation.
pub struct Code<'a> {
    pub function: &'a mut Function,
    pub out: &'a mut Vec<InstId>,
    /// The convergent ones of them.
    pub asked: &'a mut Vec<InstId>,
    pub line: u32,
}

impl Code<'_> {
    fn put(&mut self, op: Op, args: &[(Role, Operand)]) {
        let inst = self.function.make(op);
        self.function[inst].line = self.line;
        args.iter().for_each(|(role, operand)| self.function.set_arg(inst, *role, *operand));
        self.push(inst);
    }

    /// Appends an instruction.
    pub fn push(&mut self, inst: InstId) {
        if self.function[inst].op.has(Prop::Convergent) {
            self.asked.push(inst);
        }
        self.out.push(inst);
    }

    /// Modifiers of the last instruction.
    pub fn last_mods(&mut self, mods: &[(Mod, u8)]) {
        if let Some(last) = self.out.last() {
            mods.iter().for_each(|(kind, value)| self.function[*last].mods.set(*kind, *value));
        }
    }

    fn word(&mut self) -> Operand {
        Operand::reg(self.function.new_reg(File::R))
    }

    pub fn unary(&mut self, op: Op, a: Operand) -> Operand {
        let d = self.word();
        self.put(op, &[(Role::D, d), (Role::A, a)]);
        d
    }

    pub fn special(&mut self, number: u32) -> Operand {
        let d = self.word();
        self.put(Op::S2R, &[(Role::D, d), (Role::S, Operand::special(number))]);
        d
    }

    /// The lanes that execute the operation.
    pub fn vote(&mut self, guard: Operand) -> Operand {
        let (d, holds) = (self.word(), if guard.is_null() { Operand::always() } else { guard });
        self.put(Op::VOTE, &[(Role::D, d), (Role::Pp, holds)]);
        self.last_mods(&[(Mod::Vote, value::vote::ANY)]);
        d
    }

    /// Whether a lane is the one that does it.
    pub fn leads(&mut self, lane: Operand, leader: Operand) -> Operand {
        let leads = Operand::reg(self.function.new_reg(File::P));
        self.put(Op::ISETP, &[(Role::Pu, leads), (Role::A, lane), (Role::B, leader)]);
        self.last_mods(&[(Mod::Sign, value::sign::U32), (Mod::Cmp, value::cmp::EQ)]);
        leads
    }

    /// A product plus a sum.
    pub fn times(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        if self.function.imm_value(b) == Some(1) && c == Operand::zero() {
            return a;
        }
        let d = self.word();
        self.put(Op::IMAD, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
        d
    }

    /// Where an instruction does nothing, its result is undefined.
    pub fn forget_old(&mut self, inst: InstId, result: VReg) {
        let undefined = Operand::reg(self.function.new_like(result));
        self.put(Op::UNDEF, &[(Role::D, undefined)]);
        let function = &*self.function;
        let defs = (0..function.args(inst).len()).filter(|at| function.direction(inst, *at) == Direction::Def);
        let old = |at: usize| if function.args(inst)[at].is_null() { Operand::NULL } else { undefined };
        let olds: SmallVec<[Operand; 4]> = defs.map(old).collect();
        self.function.set_olds(inst, &olds);
    }

    /// What each lane would have been told: what the leader was told, and the addends of the lower
    /// lanes.
    pub fn answer(&mut self, answer: VReg, (asked, leader): (Operand, Operand), (all, addend): (Operand, Operand)) {
        let told = self.word();
        let last = self.function.imm(LAST_LANE);
        let args = [(Role::D, told), (Role::A, asked), (Role::B, leader), (Role::C, last)];
        self.put(Op::SHFL, &args);
        self.last_mods(&[(Mod::Shfl, value::shfl::IDX)]);
        let (below, lower) = (self.special(sr::LTMASK), self.word());
        let lut = self.function.imm(AND);
        let args = [(Role::D, lower), (Role::A, below), (Role::B, all), (Role::C, Operand::zero()), (Role::Lut, lut)];
        self.put(Op::LOP3, &args);
        let count = self.unary(Op::POPC, lower);
        let args = [(Role::D, Operand::reg(answer)), (Role::A, count), (Role::B, addend), (Role::C, told)];
        self.put(Op::IMAD, &args);
    }
}
