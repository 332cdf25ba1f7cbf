//! Whether a target can encode an instruction, as passes ask before registers are assigned.
//!
//! They ask the same again and again, of one instruction and of instructions that differ only in
//! their registers, so the answers are kept. An answer depends on nothing but the question.

use super::emit::machine_arg;
use crate::ori::hash::QuickMap;
use crate::ori::{File, Function, InstId, Kind, Symbol, VReg};
use crate::sass::{self, Arg, Guard, Inst};
use crate::tables::encoding::{FORMS, forms_of};
use crate::tables::ori::Class;
use crate::tables::{Mods, Op, Prop};
use std::cell::RefCell;

/// All that an answer depends on, in words.
struct Question {
    words: [u64; Question::LONGEST],
    len: usize,
}

/// Answers that are kept at most; then all are forgotten.
const MOST: usize = 1 << 14;

thread_local! {
    static ANSWERS: RefCell<QuickMap<Box<[u64]>, bool>> = RefCell::new(QuickMap::default());
}

impl Question {
    /// A word for what the instruction is, those of its modifiers, and up to two for each operand.
    const LONGEST: usize = 1 + Mods::WORDS + 2 * u16::BITS as usize;

    fn push(&mut self, word: u64) {
        self.words[self.len] = word;
        self.len += 1;
    }

    fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }

    fn ask(&mut self, function: &Function, inst: InstId, moves: bool) {
        let data = &function[inst];
        let file = |reg: VReg| function[reg].file as u64;
        let guard = data.guard.as_reg().map_or(0, |reg| 1 | file(reg) << 2 | u64::from(data.guard.not()) << 1);
        let target = u64::from(function.target().column);
        let mods = data.mods.words();
        self.push(data.op as u64 | target << 16 | u64::from(moves) << 32 | guard << 40 | (mods.len() as u64) << 48);
        mods.into_iter().for_each(|word| self.push(word));
        for operand in function.args(inst).iter().take(data.op.info().roles.len()) {
            let marks = [operand.neg(), operand.abs(), operand.not(), operand.reuse()];
            let marks = marks.into_iter().fold(0, |bits, mark| bits << 1 | u64::from(mark));
            let (kind, value) = match operand.kind() {
                Kind::Null => (0, 0),
                Kind::Reg(reg) => (1, file(reg)),
                Kind::Vector(vector) => (1, file(function.vector_regs(vector)[0])),
                Kind::Imm(_) => (2, 0),
                Kind::Const { bank, offset } => (3, u64::from(bank) << 16 | u64::from(offset)),
                Kind::Label(_) => (4, 0),
                Kind::Symbol(_) => (5, function.symbol_of(*operand).map_or(0, sort)),
                Kind::Special(number) => (6, u64::from(number)),
                Kind::Zero => (7, 0),
            };
            self.push(kind | marks << 8 | value << 16);
            if let Some(number) = function.imm_value(*operand) {
                self.push(number);
            }
        }
    }
}

/// Whether the target can encode an instruction, whatever registers are assigned. Instructions with
/// symbol operands are never encodable, so passes do not touch them. An immediate store value that
/// no form takes counts as a register, because operand legalization will materialize it.
pub fn encodes(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    let moved = |slot: usize| op.has(Prop::WritesMemory) && !takes_immediate(op, slot);
    function.args(inst).iter().all(|operand| function.symbol_of(*operand).is_none())
        && is_legal_but_for(function, inst, true, moved)
}

/// Whether some form of an opcode takes an immediate for an operand.
fn takes_immediate(op: Op, slot: usize) -> bool {
    let mut fields = FORMS[forms_of(op)].iter().flat_map(|form| form.args);
    fields.any(|field| usize::from(field.slot) == slot && sass::field_kind(field.kind) == sass::ArgKind::Imm)
}

/// Whether the target encodes an instruction as it is, with a placeholder for each symbol.
pub fn is_legal(function: &Function, inst: InstId) -> bool {
    is_legal_but_for(function, inst, false, |_| false)
}

/// As [`is_legal`], with a register in place of each immediate for which `moved` is true; that must
/// depend on the opcode alone.
fn is_legal_but_for(function: &Function, inst: InstId, moves: bool, moved: impl Fn(usize) -> bool) -> bool {
    let mut question = Question { words: [0; Question::LONGEST], len: 0 };
    question.ask(function, inst, moves);
    ANSWERS.with_borrow_mut(|answers| {
        if let Some(answer) = answers.get(question.words()) {
            return *answer;
        }
        if answers.len() >= MOST {
            answers.clear();
        }
        let answer = find_out(function, inst, moved);
        answers.insert(question.words().into(), answer);
        answer
    })
}

fn find_out(function: &Function, inst: InstId, moved: impl Fn(usize) -> bool) -> bool {
    let data = &function[inst];
    let mut machine = Inst::new(data.op);
    machine.mods = data.mods;
    if let Some(reg) = data.guard.as_reg() {
        machine.guard = Guard { pred: STAND_IN as u8, not: data.guard.not(), upred: function[reg].file == File::UP };
    }
    for (slot, (role, operand)) in data.op.info().roles.iter().zip(function.args(inst)).enumerate() {
        let number = matches!(operand.kind(), Kind::Imm(_)) && role.class == Class::Reg;
        let arg = match function.symbol_of(*operand) {
            Some(symbol) => Ok(place_holder(symbol, role.class)),
            None if number && moved(slot) => Ok(Arg::reg(STAND_IN)),
            None => machine_arg(function, role.class, *operand, |_| Ok(STAND_IN), |_| 0),
        };
        let Ok(arg) = arg else { return false };
        machine.args[slot] = arg;
    }
    machine.settle_condition();
    sass::is_encodable(function.target(), &machine)
}

/// An operand of the kind that a symbol resolves to.
fn place_holder(symbol: &Symbol, class: Class) -> Arg {
    match symbol {
        Symbol::Zero | Symbol::Start | Symbol::Function(_) | Symbol::SlowPath(_) => Arg::label(0),
        Symbol::Driver => Arg::default(),
        Symbol::Return { .. } if class == Class::Label => Arg::label(0),
        Symbol::Return { .. } | Symbol::Distance { .. } | Symbol::FrameSize | Symbol::Linked { .. } => Arg::imm(0),
    }
}

/// Which arm of [`place_holder`] a symbol takes.
fn sort(symbol: &Symbol) -> u64 {
    match symbol {
        Symbol::Zero | Symbol::Start | Symbol::Function(_) | Symbol::SlowPath(_) => 0,
        Symbol::Return { .. } => 1,
        Symbol::Distance { .. } | Symbol::FrameSize | Symbol::Linked { .. } => 2,
        Symbol::Driver => 3,
    }
}

/// A register number valid in every file, also as the first register of a tuple.
const STAND_IN: u32 = 0;
