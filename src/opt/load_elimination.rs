//! Load elimination (in GeneralOptimize): a load of what an earlier load or store of this thread
//! left in registers takes it from there.
//!
//! Facts say which register holds a word of memory. They live in a block, and go on into a block
//! that only it leads to. A write ends the facts that it may change, by space, base registers and
//! offset. Volatile, strong and atomic accesses, barriers, waits, fences and calls end all facts
//! but those about local memory, which no other thread writes; calls end these too. Only weak,
//! unguarded loads are replaced, so a loop that waits for another thread reads again each time.
//! What is in a part of a word is known only from an equal load.

use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, keeps, rewrite};
use crate::analysis::memory_dependence::{Memory, is_weak};
use crate::ori::operand::Kind;
use crate::ori::{Block, Function, InstId, Operand};
use crate::tables::{Mod, Op, Prop, Role, Says};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Most facts that are kept; the oldest go first.
const MOST: usize = 64;
/// Bytes of a word.
const WORD: i64 = 4;

/// A place in memory and the register with its value.
#[derive(Clone)]
struct Fact {
    place: Memory,
    /// The size modifier of the load that read part of a word; 0 for a whole word.
    part: u8,
    value: Operand,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let function = &mut *cx.function;
    let mut at_end: SecondaryMap<Block, Vec<Fact>> = SecondaryMap::new();
    for block in &cfg.rpo {
        let mut facts = match cfg.preds[*block][..] {
            [before] if cfg.number[before] < cfg.number[*block] => at_end[before].clone(),
            _ => Vec::new(),
        };
        for_block(function, *block, &mut facts);
        if cfg.succs[*block].iter().any(|next| cfg.preds[*next].len() == 1) {
            at_end[*block] = facts;
        }
    }
}

fn for_block(function: &mut Function, block: Block, facts: &mut Vec<Fact>) {
    let insts = std::mem::take(&mut function[block]);
    let mut out = Vec::with_capacity(insts.len());
    for inst in insts {
        out.push(inst);
        let op = function[inst].op;
        let mut moves = false;
        function.for_each_def(inst, |reg| moves |= function.stack_pointer() == Some(reg));
        if moves {
            facts.clear();
        }
        let place = Memory::of(function, inst, |_| 0);
        // What is not a plain access may wait for what other threads and engines write.
        let place = match place {
            Some(place) if is_access(op) && !place.is_ordered() => place,
            place => {
                if op.has(Prop::Clobbers) {
                    facts.clear();
                } else if op.has(Prop::SideEffect) && !op.has(Prop::Terminator) || place.is_some() {
                    let writes = place.filter(|_| op.has(Prop::WritesMemory));
                    let kept = |fact: &Fact| writes.as_ref().is_none_or(|place| place.apart_in_space(&fact.place));
                    facts.retain(|fact| fact.place.is_local() && kept(fact));
                }
                continue;
            }
        };
        if op.has(Prop::WritesMemory) {
            facts.retain(|fact| !place.follows(&fact.place));
        }
        if !is_simple(function, inst) {
            continue;
        }
        if op.has(Prop::WritesMemory) {
            store(function, inst, &place, facts);
        } else if function[inst].guard.is_null() {
            load(function, inst, &place, facts, &mut out);
        }
        let surplus = facts.len().saturating_sub(MOST);
        facts.drain(..surplus);
    }
    function[block] = out;
}

/// Whether an access is weak, at a constant distance from registers that keep their values, and
/// does nothing else.
fn is_simple(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let none = |role| data.op.role_index(role).is_none_or(|at| function.args(inst)[at].is_null());
    let plain = none(Role::Pu) && none(Role::Pp);
    let mut free = true;
    for role in [Role::A, Role::Ub] {
        function.for_each_reg(function.arg(inst, role), |reg| free &= keeps(function, reg));
    }
    plain && is_weak(function, inst) && free
}

/// Whether an operation is a load or a store of one place.
fn is_access(op: Op) -> bool {
    op.has(Prop::OnePlace)
}

/// What a store leaves in memory.
fn store(function: &Function, inst: InstId, place: &Memory, facts: &mut Vec<Fact>) {
    let source = function.arg(inst, Role::B);
    let part = part(function, inst);
    if part != 0 || source != source.plain() || !function[inst].guard.is_null() {
        return;
    }
    let mut words: SmallVec<[Operand; 4]> = SmallVec::new();
    function.for_each_reg(source, |reg| words.push(Operand::reg(reg)));
    if words.is_empty() && source == Operand::zero() {
        words.resize((place.bytes().map_or(0, |(_, count)| count) / WORD) as usize, Operand::zero());
    }
    learn(function, place, 0, &words, facts);
}

/// Adds facts about the words of an access.
fn learn(function: &Function, place: &Memory, part: u8, words: &[Operand], facts: &mut Vec<Fact>) {
    let free = words.iter().all(|word| word.as_reg().is_none_or(|reg| is_free(function, reg)));
    let Some((first, count)) = place.bytes().filter(|_| free) else { return };
    let each = if part == 0 { WORD } else { count };
    for (n, value) in words.iter().enumerate() {
        let place = place.read_at(first + WORD * n as i64, each);
        facts.push(Fact { place, part, value: *value });
    }
}

/// Replaces a load by copies where all its words are known, or else learns them.
fn load(function: &mut Function, inst: InstId, place: &Memory, facts: &mut Vec<Fact>, out: &mut Vec<InstId>) {
    let part = part(function, inst);
    let mut results: SmallVec<[Operand; 4]> = SmallVec::new();
    function.for_each_reg(function.arg(inst, Role::D), |reg| results.push(Operand::reg(reg)));
    let Some((first, count)) = place.bytes() else { return };
    let each = if part == 0 { WORD } else { count };
    let known = |n: usize| {
        let wanted = place.read_at(first + WORD * n as i64, each);
        facts.iter().rev().find(|fact| fact.part == part && fact.place.same(&wanted)).map(|fact| fact.value)
    };
    let values: Option<SmallVec<[Operand; 4]>> = (0..results.len()).map(known).collect();
    let Some(values) = values.filter(|_| !results.is_empty()) else {
        return learn(function, place, part, &results, facts);
    };
    let line = function[inst].line;
    for (n, (result, value)) in results.iter().zip(values).enumerate() {
        let op = if matches!(value.kind(), Kind::Zero) { Op::MOV } else { Op::COPY };
        let args = [(Role::D, *result), (Role::A, value)];
        if n == 0 {
            rewrite(function, inst, op, &args);
            continue;
        }
        let copy = function.make(op);
        args.iter().for_each(|(role, operand)| function.set_arg(copy, *role, *operand));
        function[copy].line = line;
        out.push(copy);
    }
}

/// The size modifier of an access of part of a word; 0 for whole words.
fn part(function: &Function, inst: InstId) -> u8 {
    let size = function[inst].mods.get(Mod::Size);
    if i64::from(Mod::Size.says(Says::Bytes, size)) < WORD { size } else { 0 }
}
