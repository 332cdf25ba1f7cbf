//! Pass `uniform_atomics` (phase OptimizeUniformAtomic): one lane does for all what each would do
//! at the same address.
//!
//! Where the lanes that execute an atomic operation together have one address, the highest of them
//! does one operation with what all bring: a uniform addend times their number (VOTE, POPC), a
//! uniform operand of AND, OR, MIN and MAX as it is, any other by REDUX where the target has it,
//! there is no guard, and no other lane of the warp runs elsewhere. Answers are made only for
//! addends that are uniform: what was in memory (SHFL from the lane that asked) plus the addend of
//! each lower lane. Nothing changes where a comparison with the number of a thread or lane, or an
//! election, leaves one lane anyway.
//!
//! Guarantees: each word of memory gets what all operations together make of it, and the answers
//! are those of some order of them. Fences before and behind are each lane's own.

mod alone;
mod code;

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, Fits};
use crate::analysis::divergence::{Varying, apart_behind};
use crate::arrays::Each;
use crate::ori::cfg::Cfg;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::{Feature, Mod, Op, Prop, Role, sr, value};
use code::Code;

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
        if !function[block].iter().any(|inst| combines(function, *inst).is_some()) {
            return;
        }
        let mut apart = self.lanes.interleaved.contains(block);
        let mut alone = self.is_reached_by_one(function, block);
        let mut out: Vec<InstId> = Vec::new();
        for inst in std::mem::take(&mut function[block]) {
            match self.way(function, inst, apart).filter(|_| !alone) {
                Some(way) => self.join(function, inst, way, &mut out),
                None => out.push(inst),
            }
            apart = apart_behind(function, &[inst], apart);
            alone |= self.leaves_one(function, &[inst]);
        }
        function[block] = out;
    }

    fn is_uniform(&self, function: &Function, operand: Operand) -> bool {
        let mut uniform = true;
        function.for_each_reg(operand, |reg| uniform &= !self.lanes.regs.contains(reg));
        uniform
    }

    /// How an instruction becomes one for all lanes; `apart` says whether others may run elsewhere.
    fn way(&self, function: &mut Function, inst: InstId, apart: bool) -> Option<Way> {
        let op = combines(function, inst)?;
        let address = [Role::A, Role::Ub, Role::Desc].each(|role| function.arg(inst, role));
        let guard = function[inst].guard;
        let general = guard.as_reg().is_none_or(|reg| function[reg].file == File::P);
        let uniform = address.into_iter().all(|operand| self.is_uniform(function, operand));
        if !uniform || !general || self.names_lane(function, guard) {
            return None;
        }
        let joined = JOINED.iter().find(|joined| joined.op == op)?;
        let (uniform, guarded) = (self.is_uniform(function, function.arg(inst, Role::B)), !guard.is_null());
        if self.answer(function, inst).is_some() {
            return (uniform && op == value::aop::ADD && !guarded).then_some(Way::Count);
        }
        match () {
            () if uniform && op == value::aop::ADD => Some(Way::Count),
            () if uniform && joined.idempotent => Some(Way::Same),
            // Lanes whose guard is false would take part.
            () if apart || guarded => None,
            () => {
                let redux = reduction(function, inst, joined);
                if !(self.fits)(function, redux) {
                    return None;
                }
                // No lane is elsewhere.
                let reduced = function.new_reg(File::UR);
                function[reduced].varying = false;
                function.set_arg(redux, Role::D, Operand::reg(reduced));
                Some(Way::Reduce(redux, reduced))
            }
        }
    }

    /// The result that is read.
    fn answer(&self, function: &Function, inst: InstId) -> Option<VReg> {
        let result = function.arg(inst, Role::D).as_reg()?;
        (self.def_use.uses(result) > 0 || function[result].phys.is_some()).then_some(result)
    }

    /// Writes the operation of one lane for all, and what it needs, in place of each lane's.
    fn join(&mut self, function: &mut Function, inst: InstId, way: Way, out: &mut Vec<InstId>) {
        let answer = self.answer(function, inst);
        let mut code = Code { line: function[inst].line, function, out, asked: &mut self.asked };
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
                code.push(redux);
                code.unary(Op::MOV, Operand::reg(reduced))
            }
        };
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

/// The reduction of an operation's operand, without a result.
fn reduction(function: &mut Function, inst: InstId, joined: &Joined) -> InstId {
    let op = if joined.extreme && function.target().has(Feature::Credux) { Op::CREDUX } else { Op::REDUX };
    let redux = function.make(op);
    function[redux].line = function[inst].line;
    function[redux].mods.set(Mod::Redux, joined.redux);
    if joined.extreme && function[inst].mods.get(Mod::Size) == value::size::S32 {
        function[redux].mods.set(Mod::Rtype, value::rtype::S32);
    }
    function.set_arg(redux, Role::D, Operand::zero());
    function.set_arg(redux, Role::A, function.arg(inst, Role::B));
    redux
}
