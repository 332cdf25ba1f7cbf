//! Which physical registers hold the registers of the PTX text, at every instruction.
//!
//! A forward dataflow over the finished code: a register holds a part of a PTX register from the
//! instruction after the one that writes it up to the one that overwrites it, or that gives the
//! PTX register another value. Where paths join, only what holds on all of them does. So a debugger
//! that stops before an instruction reads the value that the PTX register has there, or is told
//! that there is none.

use super::emit::WORD;
use crate::ori::cfg::Cfg;
use crate::ori::watched::{Part, Watched};
use crate::ori::{Block, File, Function, InstId, Operand};
use crate::sorted::SortedMap;
use crate::tables::registers::kept_across_calls;
use crate::tables::{Op, Role};
use cranelift_entity::SecondaryMap;

/// One register of the text, or a part of it, in a physical register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Name in the text.
    pub name: String,
    /// Its type, as `.nv_debug_info_reg_type` numbers them.
    pub kind: u8,
    /// Which 32-bit part, from the low one up.
    pub word: u32,
    /// Whether the physical register is a predicate.
    pub predicate: bool,
    pub number: u16,
    /// Byte offsets of the first instruction before which it is there, and of the first one before
    /// which it is not.
    pub range: (u64, u64),
}

/// A physical register: predicate or general, and its number.
type Place = (bool, u16);
/// The parts that each physical register holds; no list is empty.
type State = SortedMap<Place, Vec<Part>>;

/// The values of a function with marks, by place and then by address.
pub fn values(function: &Function, starts: &SecondaryMap<Block, u64>, end: u64, insts: &[(u64, InstId)]) -> Vec<Value> {
    let Some(watched) = function.watched() else { return Vec::new() };
    let entered = entered(function, watched);
    // Of blocks at one offset, all but the last are empty.
    let first: SortedMap<u64, Block> = function.layout().iter().map(|block| (starts[*block], *block)).collect();
    let mut open: SortedMap<(Place, Part), u64> = SortedMap::new();
    let mut found = Vec::new();
    let mut state = State::new();
    let mut note = |state: &State, at: u64, open: &mut SortedMap<(Place, Part), u64>| {
        let here = |(place, part): &(Place, Part)| state.get(place).is_some_and(|parts| parts.contains(part));
        let over: Vec<_> = open.keys().filter(|key| !here(key)).copied().collect();
        for key in over {
            let from = open.remove(&key).unwrap_or(at);
            found.extend((from < at).then(|| value(watched, key, (from, at))));
        }
        for (place, parts) in state {
            parts.iter().for_each(|part| {
                open.entry((*place, *part)).or_insert(at);
            });
        }
    };
    for (at, inst) in insts {
        if let Some(block) = first.get(at) {
            state = entered[*block].clone().unwrap_or_default();
            note(&state, *at, &mut open);
        }
        if step(function, watched, *inst, &mut state) {
            note(&state, at + WORD, &mut open);
        }
    }
    note(&State::new(), end, &mut open);
    crate::sorted::by(&mut found, |a, b| key(a).cmp(&key(b)));
    found
}

fn key(value: &Value) -> (bool, u16, u64, u32, &str) {
    (!value.predicate, value.number, value.range.0, value.word, &value.name)
}

fn value(watched: &Watched, ((predicate, number), part): (Place, Part), range: (u64, u64)) -> Value {
    let register = &watched.registers[part.register()];
    Value { name: register.name.clone(), kind: register.kind, word: part.word(), predicate, number, range }
}

/// The state at the start of each block; `None` for a block that nothing reaches.
fn entered(function: &Function, watched: &Watched) -> SecondaryMap<Block, Option<State>> {
    let cfg = Cfg::new(function);
    let mut entered: SecondaryMap<Block, Option<State>> = SecondaryMap::new();
    entered[function.entry()] = Some(State::new());
    let mut changed = true;
    while changed {
        changed = false;
        for block in &cfg.rpo {
            let Some(mut state) = entered[*block].clone() else { continue };
            for inst in &function[*block] {
                step(function, watched, *inst, &mut state);
            }
            for next in &cfg.succs[*block] {
                let met = match &entered[*next] {
                    None => state.clone(),
                    Some(old) => meet(old, &state),
                };
                if entered[*next].as_ref() != Some(&met) {
                    entered[*next] = Some(met);
                    changed = true;
                }
            }
        }
    }
    entered
}

/// What two states have in common.
fn meet(a: &State, b: &State) -> State {
    let common = |(place, parts): (&Place, &Vec<Part>)| {
        let other = b.get(place)?;
        let both: Vec<Part> = parts.iter().filter(|part| other.contains(part)).copied().collect();
        (!both.is_empty()).then_some((*place, both))
    };
    a.iter().filter_map(common).collect()
}

/// Applies an instruction; returns whether the state may have changed.
fn step(function: &Function, watched: &Watched, inst: InstId, state: &mut State) -> bool {
    let data = &function[inst];
    if data.op == Op::CALL {
        let name = |predicate: bool| if predicate { File::P.name() } else { File::R.name() };
        state.retain(|(predicate, number), _| kept_across_calls(name(*predicate), *number));
    }
    let guarded = !data.guard.is_null();
    let source = (data.op == Op::MOV).then(|| place_of(function, function.arg(inst, Role::A))).flatten();
    let mut written = data.op == Op::CALL;
    function.for_each_def(inst, |reg| {
        let (Some(number), file) = (function[reg].phys, function[reg].file) else { return };
        if !matches!(file, File::R | File::P) {
            return;
        }
        written = true;
        let (place, part) = ((file == File::P, number), watched.parts[reg]);
        let mut held = state.remove(&place).unwrap_or_default();
        match (guarded, part) {
            (false, _) if source == Some(place) => {}
            (false, _) => held.clear(),
            // Lanes that do not execute it keep what was there.
            (true, part) => held.retain(|other| Some(*other) == part),
        }
        if let Some(part) = part {
            state.values_mut().for_each(|parts| parts.retain(|other| *other != part));
            state.retain(|_, parts| !parts.is_empty());
            if !guarded && !held.contains(&part) {
                held.push(part);
                crate::sorted::sort(&mut held);
            }
        }
        if !held.is_empty() {
            state.insert(place, held);
        }
    });
    written
}

fn place_of(function: &Function, operand: Operand) -> Option<Place> {
    let reg = operand.as_reg().filter(|_| !operand.not())?;
    let (file, number) = (function[reg].file, function[reg].phys?);
    matches!(file, File::R | File::P).then_some((file == File::P, number))
}
