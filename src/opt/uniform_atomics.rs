//! Pass `uniform_atomics` (phase OptimizeUniformAtomic): one lane does for all what each would do
//! at the same address.
//!
//! Where the lanes that execute an atomic operation together have one address, the highest of them
//! does one operation with what all bring: a uniform addend times their number (VOTE, POPC), a
//! uniform operand of AND, OR, MIN and MAX as it is, any other by REDUX where the target has it and
//! no other lane of the warp runs elsewhere. Answers are made only for addends that are uniform:
//! what was in memory (SHFL from the lane that asked) plus one for each lower lane. Nothing changes
//! where a comparison with the number of a thread or lane, or an election, leaves one lane anyway.
//!
//! Guarantees: each word of memory gets what all operations together make of it, and the answers
//! are those of some order of them. Fences before and behind are each lane's own.

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, Fits};
use crate::analysis::divergence::{Varying, apart_behind};
use crate::ori::cfg::Cfg;
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg};
use crate::tables::ori::Direction;
use crate::tables::{Feature, Mod, Op, Prop, Role, sr, value};
use smallvec::SmallVec;

/// The last lane, which a shuffle by index without segments names as its limit.
const LAST_LANE: u64 = 31;
/// The table of LOP3 for both of its first sources.
const AND: u64 = 0xc0;
/// Definitions that are followed from a predicate to the number of a lane.
const MOST_STEPS: usize = 8;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let insts = || cx.function.layout().iter().flat_map(|block| &cx.function[*block]);
    if !insts().any(|inst| combines(cx.function, *inst).is_some()) {
        cx.unchanged = true;
        return;
    }
    let (cfg, lanes, def_use) = (cx.cfg(), cx.divergence(), cx.def_use());
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    let mut joiner = Joiner { cfg: &cfg, lanes: &lanes, def_use: &def_use, fits, asked: Vec::new() };
    for block in &cfg.rpo {
        joiner.block(function, *block);
    }
    cx.asked = joiner.asked;
    cx.unchanged = cx.asked.is_empty();
}

/// The operation of an instruction that lanes may do together: on words of integers.
fn combines(function: &Function, inst: InstId) -> Option<u8> {
    let data = &function[inst];
    let words = [value::size::NONE, value::size::S32].contains(&data.mods.get(Mod::Size));
    let op = data.mods.get(Mod::Aop);
    (data.op.has(Prop::Joins) && words && JOINED.iter().any(|joined| joined.op == op)).then_some(op)
}

/// How operands of several lanes become one.
struct Joined {
    op: u8,
    /// The reduction over lanes.
    redux: u8,
    /// Whether one operand of all lanes is the operand of all.
    idempotent: bool,
    extreme: bool,
}

const fn joined(op: u8, redux: u8, idempotent: bool, extreme: bool) -> Joined {
    Joined { op, redux, idempotent, extreme }
}

const JOINED: [Joined; 6] = [
    joined(value::aop::ADD, value::redux::SUM, false, false),
    joined(value::aop::AND, value::redux::NONE, true, false),
    joined(value::aop::OR, value::redux::OR, true, false),
    joined(value::aop::XOR, value::redux::XOR, false, false),
    joined(value::aop::MIN, value::redux::MIN, true, true),
    joined(value::aop::MAX, value::redux::MAX, true, true),
];

/// How an operation becomes one for all lanes.
#[derive(Clone, Copy)]
enum Way {
    /// The operand times the number of lanes.
    Count,
    /// The operand as it is.
    Same,
    /// The reduction of all operands: the instruction and its result.
    Reduce(InstId, VReg),
}

struct Joiner<'a> {
    cfg: &'a Cfg,
    lanes: &'a Varying,
    def_use: &'a DefUse,
    fits: Fits<'a>,
    /// The convergent operations that it wrote.
    asked: Vec<InstId>,
}

impl Joiner<'_> {
    fn block(&mut self, function: &mut Function, block: Block) {
        let insts = function[block].clone();
        let mut out: Vec<InstId> = Vec::new();
        for (at, inst) in insts.iter().enumerate() {
            let apart = apart_behind(function, &insts[..at], self.lanes.interleaved.contains(block));
            match self.way(function, block, *inst, apart) {
                Some(way) => self.join(function, *inst, way, &mut out),
                None => out.push(*inst),
            }
        }
        if out.len() > insts.len() {
            let new = out.iter().filter(|inst| function[**inst].op.has(Prop::Convergent) && !insts.contains(inst));
            self.asked.extend(new);
            function[block] = out;
        }
    }

    fn is_uniform(&self, function: &Function, operand: Operand) -> bool {
        let mut uniform = true;
        function.for_each_reg(operand, |reg| uniform &= !self.lanes.regs.contains(reg));
        uniform
    }

    /// How an instruction becomes one for all lanes; `apart` says whether others may run elsewhere.
    fn way(&self, function: &mut Function, block: Block, inst: InstId, apart: bool) -> Option<Way> {
        let op = combines(function, inst)?;
        let address = [Role::A, Role::Ub, Role::Desc].map(|role| function.arg(inst, role));
        if !address.into_iter().all(|operand| self.is_uniform(function, operand))
            || self.is_alone(function, block, inst)
        {
            return None;
        }
        let joined = JOINED.iter().find(|joined| joined.op == op)?;
        let (uniform, guarded) =
            (self.is_uniform(function, function.arg(inst, Role::B)), !function[inst].guard.is_null());
        if self.answer(function, inst).is_some() {
            return (uniform && op == value::aop::ADD && !guarded).then_some(Way::Count);
        }
        match () {
            () if uniform && op == value::aop::ADD => Some(Way::Count),
            () if uniform && joined.idempotent => Some(Way::Same),
            // Lanes whose guard is false would take part.
            () if apart || guarded => None,
            () => {
                let (redux, reduced) = reduction(function, inst, joined);
                (self.fits)(function, redux).then_some(Way::Reduce(redux, reduced))
            }
        }
    }

    /// The result that is read.
    fn answer(&self, function: &Function, inst: InstId) -> Option<VReg> {
        let result = function.arg(inst, Role::D).as_reg()?;
        (self.def_use.uses(result) > 0 || function[result].phys.is_some()).then_some(result)
    }

    /// Whether one lane at most executes an instruction: by its guard, or by the branches before a
    /// block to which nothing else leads.
    fn is_alone(&self, function: &Function, block: Block, inst: InstId) -> bool {
        let guard = function[inst].guard;
        if !guard.is_null() && self.names_lane(function, guard) {
            return true;
        }
        let mut at = block;
        let before = function[block].iter().position(|other| *other == inst).unwrap_or(0);
        if self.leaves_one(function, &function[block][..before]) {
            return true;
        }
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
    fn leaves_one(&self, function: &Function, insts: &[InstId]) -> bool {
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
    fn names_lane(&self, function: &Function, holds: Operand) -> bool {
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
            let both = [Role::A, Role::B].map(|role| function.arg(inst, role));
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
        let kept = self.def_use.known(function, function.arg(inst, Role::B)).map(u64::from);
        is_and(function, inst) && kept.is_some_and(|mask| mask & LAST_LANE == LAST_LANE)
    }

    /// Writes the operation of one lane for all, and what it needs, in place of each lane's.
    fn join(&self, function: &mut Function, inst: InstId, way: Way, out: &mut Vec<InstId>) {
        let mut code = Code { line: function[inst].line, function, out };
        let (guard, b) = (code.function[inst].guard, code.function.arg(inst, Role::B));
        let addend = match self.def_use.known(code.function, b) {
            Some(number) => code.function.imm(number.into()),
            None => b,
        };
        let all = code.vote(guard);
        let leader = code.unary(Op::FLO, all);
        code.last_mods(&[(Mod::Sign, value::sign::U32)]);
        let lane = code.special(sr::LANEID);
        let leads = code.leads(lane, leader);
        let operand = match way {
            Way::Count => {
                let count = code.unary(Op::POPC, all);
                code.times(count, addend, Operand::zero())
            }
            Way::Same => b,
            Way::Reduce(redux, reduced) => {
                code.out.push(redux);
                code.unary(Op::MOV, Operand::reg(reduced))
            }
        };
        let answer = self.answer(code.function, inst);
        let new = code.function.copy_inst(inst);
        code.function.set_arg(new, Role::B, operand);
        code.function[new].guard = leads;
        if let Some(result) = code.function.arg(new, Role::D).as_reg() {
            let told = if answer.is_some() { code.function.new_like(result) } else { result };
            code.function.set_arg(new, Role::D, Operand::reg(told));
            code.forget_old(new, told);
        }
        code.out.push(new);
        if let Some(answer) = answer {
            let told = code.function.arg(new, Role::D);
            code.answer(answer, (told, leader), (all, addend));
        }
    }
}

fn is_and(function: &Function, inst: InstId) -> bool {
    function[inst].op == Op::LOP3 && function.imm_value(function.arg(inst, Role::Lut)) == Some(AND)
}

/// The reduction of an operation's operand, and its result.
fn reduction(function: &mut Function, inst: InstId, joined: &Joined) -> (InstId, VReg) {
    let op = if joined.extreme && function.target().has(Feature::Credux) { Op::CREDUX } else { Op::REDUX };
    let (reduced, redux) = (function.new_reg(File::UR), function.make(op));
    function[redux].line = function[inst].line;
    // No lane is elsewhere.
    function[reduced].varying = false;
    function[redux].mods.set(Mod::Redux, joined.redux);
    if joined.extreme && function[inst].mods.get(Mod::Size) == value::size::S32 {
        function[redux].mods.set(Mod::Rtype, value::rtype::S32);
    }
    function.set_arg(redux, Role::D, Operand::reg(reduced));
    function.set_arg(redux, Role::A, function.arg(inst, Role::B));
    (redux, reduced)
}

/// Instructions in front of the operation.
struct Code<'a> {
    function: &'a mut Function,
    out: &'a mut Vec<InstId>,
    line: u32,
}

impl Code<'_> {
    fn put(&mut self, op: Op, args: &[(Role, Operand)]) -> InstId {
        let inst = self.function.make(op);
        self.function[inst].line = self.line;
        args.iter().for_each(|(role, operand)| self.function.set_arg(inst, *role, *operand));
        self.out.push(inst);
        inst
    }

    /// Modifiers of the last instruction.
    fn last_mods(&mut self, mods: &[(Mod, u8)]) {
        if let Some(last) = self.out.last() {
            mods.iter().for_each(|(kind, value)| self.function[*last].mods.set(*kind, *value));
        }
    }

    fn word(&mut self) -> Operand {
        Operand::reg(self.function.new_reg(File::R))
    }

    fn unary(&mut self, op: Op, a: Operand) -> Operand {
        let d = self.word();
        self.put(op, &[(Role::D, d), (Role::A, a)]);
        d
    }

    fn special(&mut self, number: u32) -> Operand {
        let d = self.word();
        self.put(Op::S2R, &[(Role::D, d), (Role::S, Operand::special(number))]);
        d
    }

    /// The lanes that execute the operation.
    fn vote(&mut self, guard: Operand) -> Operand {
        let (d, holds) = (self.word(), if guard.is_null() { Operand::always() } else { guard });
        self.put(Op::VOTE, &[(Role::D, d), (Role::Pp, holds)]);
        self.last_mods(&[(Mod::Vote, value::vote::ANY)]);
        d
    }

    /// Whether a lane is the one that does it.
    fn leads(&mut self, lane: Operand, leader: Operand) -> Operand {
        let leads = Operand::reg(self.function.new_reg(File::P));
        self.put(Op::ISETP, &[(Role::Pu, leads), (Role::A, lane), (Role::B, leader)]);
        self.last_mods(&[(Mod::Sign, value::sign::U32), (Mod::Cmp, value::cmp::EQ)]);
        leads
    }

    /// A product plus a sum.
    fn times(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        if self.function.imm_value(b) == Some(1) && c == Operand::zero() {
            return a;
        }
        let d = self.word();
        self.put(Op::IMAD, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
        d
    }

    /// Where an instruction does nothing, its result is undefined.
    fn forget_old(&mut self, inst: InstId, result: VReg) {
        let undefined = Operand::reg(self.function.new_like(result));
        self.put(Op::UNDEF, &[(Role::D, undefined)]);
        let function = &*self.function;
        let defs = (0..function.args(inst).len()).filter(|at| function.direction(inst, *at) == Direction::Def);
        let old = |at: usize| if function.args(inst)[at].is_null() { Operand::NULL } else { undefined };
        let olds: SmallVec<[Operand; 2]> = defs.map(old).collect();
        self.function.set_olds(inst, &olds);
    }

    /// What each lane would have been told: what the leader was told, and the addends of the lower
    /// lanes.
    fn answer(&mut self, answer: VReg, (asked, leader): (Operand, Operand), (all, addend): (Operand, Operand)) {
        let told = self.word();
        let last = self.function.imm(LAST_LANE);
        let args: SmallVec<[(Role, Operand); 4]> =
            [(Role::D, told), (Role::A, asked), (Role::B, leader), (Role::C, last)].into();
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
