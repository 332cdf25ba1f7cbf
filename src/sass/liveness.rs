//! Which registers of finished code hold a value that is still needed.
//!
//! A register is live where an instruction may read what an earlier one wrote. Guards count: a
//! value that only lanes with `@P0` read is not live where a write under `@P0` has replaced it, or
//! behind `@P0 EXIT`. The stack pointer R1 is needed wherever control leaves. A call into the
//! section leads to its callee; one out of it reads the argument registers that have been written,
//! and overwrites what the calling convention does not preserve. Lanes of a warp are judged one by
//! one, also for uniform registers.

use super::effects::{Access, Effects, Slot};
use super::flow::{Block, Flow, leaves_under_guard};
use super::inst::{Inst, PT, RZ, URZ};
use crate::cubin::Function;
use crate::sorted::SortedSet;
use crate::tables::latency::RegFile;
use crate::tables::registers::kept_across_calls;
use crate::tables::{Op, Prop};

/// A register: file and number.
pub type Register = (RegFile, u8);

/// The stack pointer.
pub const STACK_POINTER: Register = (RegFile::R, 1);

/// Argument and result registers of functions, and the return address. Source: objects that ptxas
/// 13.0.88 makes for functions of one to fourteen parameters.
const ARGUMENTS: std::ops::RangeInclusive<u8> = 4..=15;
const RETURN_ADDRESS: [u8; 2] = [20, 21];

/// Files in the order of a set, each with its first place.
const FILES: [(RegFile, usize); 5] =
    [(RegFile::R, 0), (RegFile::UR, 256), (RegFile::P, 512), (RegFile::UP, 520), (RegFile::B, 528)];
/// Places of the predicates of both files, which are adjacent.
const PREDICATES: usize = 16;
/// Words of a set.
const WORDS: usize = 9;
/// Registers of all files.
const REGISTERS: usize = 544;

/// A set of registers of all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet([u64; WORDS]);

/// The place of a register in a set; `None` for one beyond its file.
fn place((file, number): Register) -> Option<usize> {
    let at = FILES.iter().position(|(f, _)| *f == file)?;
    let end = FILES.get(at + 1).map_or(REGISTERS, |next| next.1);
    let place = FILES[at].1 + usize::from(number);
    (place < end).then_some(place)
}

impl RegisterSet {
    fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    /// Whether a register is among them.
    pub fn contains(&self, register: Register) -> bool {
        place(register).is_some_and(|place| self.0[place / 64] >> (place % 64) & 1 != 0)
    }

    /// The registers in the order of files and numbers.
    pub fn registers(&self) -> impl Iterator<Item = Register> + '_ {
        FILES.iter().flat_map(|(file, _)| (0..=u8::MAX).map(move |n| (*file, n))).filter(|r| self.contains(*r))
    }

    /// How many registers of a file are among them.
    pub fn count(&self, file: RegFile) -> usize {
        let at = FILES.iter().position(|(f, _)| *f == file).unwrap_or(0);
        let (first, end) = (FILES[at].1, FILES.get(at + 1).map_or(REGISTERS, |next| next.1));
        // Small files share a word, in bytes.
        let word = |i: usize| {
            let low = first.saturating_sub(i * 64).min(64);
            let high = (end - (i * 64).min(end)).min(64);
            (low..high).filter(|bit| self.0[i] >> bit & 1 != 0).count()
        };
        (first / 64..end.div_ceil(64)).map(word).sum()
    }

    fn union(&self, other: &RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    fn both(&self, other: &RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
}

/// The condition under which a register is live: never, under one guard, or always.
type When = u8;
const NEVER: When = 0;
const ALWAYS: When = u8::MAX;

/// Live only where this guard holds.
fn under(inst: &Inst, holds: bool) -> When {
    let guard = inst.guard;
    if !inst.is_guarded() {
        return if holds { ALWAYS } else { NEVER };
    }
    1 + (u8::from(guard.upred) << 4 | guard.pred << 1 | u8::from(guard.not == holds))
}

/// The condition for each register, at a point of the code.
#[derive(Clone, PartialEq, Eq)]
struct Needed([When; REGISTERS]);

impl Default for Needed {
    fn default() -> Needed {
        Needed([NEVER; REGISTERS])
    }
}

impl Needed {
    fn set(&self) -> RegisterSet {
        let mut set = RegisterSet::default();
        (0..REGISTERS).filter(|at| self.0[*at] != NEVER).for_each(|at| set.insert(at));
        set
    }

    /// Adds a read under a condition.
    fn read(&mut self, at: usize, when: When) {
        let old = self.0[at];
        self.0[at] = if old == NEVER || old == when { when } else { ALWAYS };
    }

    /// The condition is known not to hold.
    fn without(&mut self, when: When) {
        if when != NEVER && when != ALWAYS {
            self.0.iter_mut().filter(|w| **w == when).for_each(|w| *w = NEVER);
        }
    }

    /// Joins another path; returns whether anything changed.
    fn join(&mut self, other: &Needed) -> bool {
        let before = self.clone();
        for at in 0..REGISTERS {
            if other.0[at] != NEVER {
                self.read(at, other.0[at]);
            }
        }
        *self != before
    }
}

/// An instruction as liveness sees it.
#[derive(Clone, Debug, Default)]
struct Known {
    reads: Vec<usize>,
    writes: Vec<usize>,
    /// Its guard is a read that always happens.
    guard: Option<usize>,
    /// Reads only what has been written: arguments of a function that is not in the section, and
    /// what a function leaves to its caller.
    weak: Vec<usize>,
    /// A call out of the section: what it overwrites is not occupied.
    out: bool,
}

/// The live registers of a section.
pub struct Liveness {
    flow: Flow,
    preds: Vec<Vec<usize>>,
    known: Vec<Known>,
    before: Vec<RegisterSet>,
    occupied: Vec<RegisterSet>,
}

impl Liveness {
    /// Analyses a section; a word that does not decode touches no register.
    pub fn new(function: &Function, insts: &[Option<Inst>]) -> Liveness {
        let flow = Flow::new(function, insts);
        let mut preds = vec![Vec::new(); flow.blocks.len()];
        for (number, block) in flow.blocks.iter().enumerate() {
            block.succs.iter().for_each(|succ| preds[*succ].push(number));
        }
        let mut known: Vec<Known> = insts.iter().map(|i| i.as_ref().map_or_else(Known::default, Known::of)).collect();
        for (number, block) in flow.blocks.iter().enumerate() {
            let last = block.end.checked_sub(1).filter(|at| *at >= block.start);
            if let Some((at, Some(inst))) = last.and_then(|at| Some((at, insts.get(at)?.as_ref()))) {
                known[at].leave(inst, block, block.succs == [number]);
            }
        }
        let starts = needed(&flow, &preds, insts, &known);
        let written = written(&flow, function.kernel, &known);
        let mut liveness = Liveness {
            flow,
            preds,
            known,
            before: vec![RegisterSet::default(); insts.len()],
            occupied: vec![RegisterSet::default(); insts.len()],
        };
        for (number, defined) in written.into_iter().enumerate() {
            liveness.fill(number, insts, &starts, defined);
        }
        liveness
    }

    /// Sets the live registers of a block.
    fn fill(&mut self, number: usize, insts: &[Option<Inst>], starts: &[Needed], mut defined: RegisterSet) {
        let block = &self.flow.blocks[number];
        let mut state = behind(block, &self.flow, insts, starts);
        let mut lives = vec![state.set()];
        for at in (block.start..block.end).rev() {
            back(&mut state, insts[at].as_ref(), &self.known[at]);
            lives.push(state.set());
        }
        lives.reverse();
        for at in block.start..block.end {
            let known = &self.known[at];
            let (before, mut touched) = (lives[at - block.start].both(&defined), RegisterSet::default());
            known.writes.iter().for_each(|w| defined.insert(*w));
            known.reads.iter().chain(&known.writes).chain(&known.guard).for_each(|r| touched.insert(*r));
            if known.out {
                touched = RegisterSet::default();
            }
            self.before[at] = before;
            self.occupied[at] = before.union(&lives[at + 1 - block.start].both(&defined)).union(&touched);
        }
    }

    /// The registers that are occupied at an instruction: live before it or behind it, read or
    /// written by it.
    pub fn occupied(&self, at: usize) -> &RegisterSet {
        &self.occupied[at]
    }

    /// The first instruction where most registers of a file are occupied, and how many; `None` if
    /// none ever is.
    pub fn peak(&self, file: RegFile) -> Option<(usize, usize)> {
        let counts = self.occupied.iter().map(|set| set.count(file)).enumerate();
        counts.fold(None, |best: Option<(usize, usize)>, (at, count)| match best {
            Some((_, most)) if most >= count => best,
            _ => (count > 0).then_some((at, count)).or(best),
        })
    }

    /// The instructions whose value a register may hold at an instruction, in the order of the
    /// code: those that reach it or, if it needs none of them, itself.
    pub fn definitions(&self, at: usize, register: Register) -> Vec<usize> {
        let Some(place) = place(register) else { return Vec::new() };
        if !self.before[at].contains(register) && self.known[at].writes.contains(&place) {
            return vec![at];
        }
        let mut found = SortedSet::new();
        let first = self.flow.blocks.partition_point(|block| block.start <= at).saturating_sub(1);
        let mut seen = vec![false; self.flow.blocks.len()];
        let mut work = vec![(first, at)];
        while let Some((number, end)) = work.pop() {
            let start = self.flow.blocks[number].start;
            let ends = (start..end).rev().find(|at| {
                let known = &self.known[*at];
                let writes = known.writes.contains(&place);
                if writes {
                    found.insert(*at);
                }
                writes && known.guard.is_none()
            });
            if ends.is_none() {
                let preds = self.preds[number].iter().filter(|p| !std::mem::replace(&mut seen[**p], true));
                work.extend(preds.map(|p| (*p, self.flow.blocks[*p].end)));
            }
        }
        found.into_iter().collect()
    }
}

impl Known {
    fn of(inst: &Inst) -> Known {
        let effects = Effects::of(inst);
        let guard = inst.is_guarded() && u32::from(inst.guard.pred) != PT;
        let file = if inst.guard.upred { RegFile::UP } else { RegFile::P };
        let guard = if guard { place((file, inst.guard.pred)) } else { None };
        let places = |list: &[Access]| {
            let one = |a: &Access| a.registers().map(|(n, _)| (a.file, n)).collect::<Vec<_>>();
            list.iter().flat_map(one).filter_map(place).collect()
        };
        let mut reads = effects.reads;
        reads.retain(|read| read.slot != Slot::Guard);
        Known { reads: places(&reads), writes: places(&effects.writes), guard, ..Known::default() }
    }

    /// Adds what the last instruction of a block touches where control leaves the section, or stays
    /// in this block for ever.
    fn leave(&mut self, inst: &Inst, block: &Block, stays: bool) {
        let all = |file, end: u8| (0..end).map(move |n| (file, n));
        let kept = |(file, number): &Register| kept_across_calls(&format!("{file:?}"), u16::from(*number));
        if stays || block.calls_out || inst.op.has(Prop::Leaves) {
            self.weak.extend(place(STACK_POINTER));
        }
        let arguments = ARGUMENTS.chain(RETURN_ADDRESS).map(|n| (RegFile::R, n)).filter_map(place);
        if block.calls_out {
            self.out = true;
            self.weak.extend(arguments);
            let files =
                [(RegFile::R, RZ as u8), (RegFile::UR, URZ as u8), (RegFile::P, PT as u8), (RegFile::UP, PT as u8)];
            let lost = files.into_iter().flat_map(|(file, end)| all(file, end)).filter(|r| !kept(r));
            self.writes.extend(lost.filter_map(place));
        } else if inst.op == Op::RET && block.succs.is_empty() {
            self.weak.extend(arguments.chain(all(RegFile::R, RZ as u8).filter(kept).filter_map(place)));
        }
    }
}

/// The needed registers at the start of each block.
fn needed(flow: &Flow, preds: &[Vec<usize>], insts: &[Option<Inst>], known: &[Known]) -> Vec<Needed> {
    let mut starts = vec![Needed::default(); flow.blocks.len()];
    let mut work: SortedSet<usize> = (0..flow.blocks.len()).collect();
    while let Some(number) = work.pop_last() {
        let block = &flow.blocks[number];
        let mut state = behind(block, flow, insts, &starts);
        for at in (block.start..block.end).rev() {
            back(&mut state, insts[at].as_ref(), &known[at]);
        }
        if starts[number].join(&state) {
            work.extend(&preds[number]);
        }
    }
    starts
}

/// The needed registers behind a block. On the way to a branch's target its guard holds; behind an
/// instruction that all lanes leave whose guard holds, it does not.
fn behind(block: &Block, flow: &Flow, insts: &[Option<Inst>], starts: &[Needed]) -> Needed {
    let last = block.end.checked_sub(1).filter(|at| *at >= block.start).and_then(|at| insts[at].as_ref());
    let mut state = Needed::default();
    for succ in &block.succs {
        let mut other = starts[*succ].clone();
        let next = flow.blocks[*succ].start == block.end;
        match last.filter(|inst| inst.is_guarded() && inst.op.has(Prop::GuardGoesOn)) {
            Some(inst) if !next => other.without(under(inst, false)),
            Some(inst) if leaves_under_guard(inst) => other.without(under(inst, true)),
            _ => {}
        }
        state.join(&other);
    }
    state
}

/// Steps back over an instruction.
fn back(state: &mut Needed, inst: Option<&Inst>, known: &Known) {
    let Some(inst) = inst else { return };
    let (held, failed) = (under(inst, true), under(inst, false));
    for at in &known.writes {
        // Conditions by a predicate say nothing of the value that it had before.
        if let Some(number) = at.checked_sub(FILES[2].1).filter(|n| *n < PREDICATES) {
            let named = |when: When| when != NEVER && when != ALWAYS && usize::from(when - 1) >> 1 == number;
            state.0.iter_mut().filter(|when| named(**when)).for_each(|when| *when = ALWAYS);
        }
    }
    for at in &known.writes {
        let when = &mut state.0[*at];
        *when = match *when {
            _ if held == ALWAYS => NEVER,
            ALWAYS => failed,
            old if old == held => NEVER,
            old => old,
        };
    }
    known.reads.iter().chain(&known.weak).for_each(|at| state.read(*at, held));
    known.guard.iter().for_each(|at| state.read(*at, ALWAYS));
}

/// The registers that have been written on some path, at the start of each block.
fn written(flow: &Flow, kernel: bool, known: &[Known]) -> Vec<RegisterSet> {
    // The stack pointer always has a value.
    let mut first = RegisterSet::default();
    first.insert(usize::from(STACK_POINTER.1));
    let mut starts = vec![first; flow.blocks.len()];
    let arguments = ARGUMENTS.chain(RETURN_ADDRESS).map(|n| (RegFile::R, n)).filter_map(place);
    for (number, start) in starts.iter_mut().enumerate().filter(|(i, _)| flow.blocks[*i].entry) {
        if number > 0 || !kernel {
            arguments.clone().for_each(|at| start.insert(at));
        }
    }
    let mut work: SortedSet<usize> = (0..flow.blocks.len()).collect();
    while let Some(number) = work.pop_first() {
        let (block, mut set) = (&flow.blocks[number], starts[number]);
        known[block.start..block.end].iter().flat_map(|k| &k.writes).for_each(|at| set.insert(*at));
        for succ in &block.succs {
            let joined = starts[*succ].union(&set);
            if joined != starts[*succ] {
                starts[*succ] = joined;
                work.insert(*succ);
            }
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass::parse;
    use crate::tables::Target;

    /// The occupied registers at each instruction, as text; a branch target is a distance in bytes.
    fn occupied(lines: &[&str]) -> Vec<String> {
        let target = Target::by_name("sm_90").unwrap();
        let read = |(at, line): (usize, &&str)| {
            let inst = parse(target, line, at as u64 * 16, None);
            Some(inst.unwrap_or_else(|e| panic!("{line}: {}", e.message)))
        };
        let insts: Vec<Option<Inst>> = lines.iter().enumerate().map(read).collect();
        let function = Function { kernel: true, ..Function::default() };
        let live = Liveness::new(&function, &insts);
        let name = |(file, n): Register| format!("{file:?}{n}");
        let at =
            |at| live.occupied(at).registers().filter(|r| *r != STACK_POINTER).map(name).collect::<Vec<_>>().join(" ");
        (0..lines.len()).map(at).collect()
    }

    #[test]
    fn a_value_lives_from_its_write_to_its_last_read() {
        let lines = ["MOV R2, 0x1", "MOV R3, 0x2", "IADD3 R4, R2, R3, RZ", "STS [R4], R3", "EXIT"];
        assert_eq!(occupied(&lines), ["R2", "R2 R3", "R2 R3 R4", "R3 R4", ""]);
        // A result that nobody reads is occupied where it is written.
        assert_eq!(occupied(&["MOV R2, 0x1", "EXIT"]), ["R2", ""]);
        // A pair, a predicate and a uniform register.
        let lines =
            ["UMOV UR4, 0x1", "ISETP.GT.AND P1, PT, RZ, UR4, PT", "@P1 LDS.64 R2, [UR4]", "STS.64 [RZ], R2", "EXIT"];
        assert_eq!(occupied(&lines), ["UR4", "UR4 P1", "R2 R3 UR4 P1", "R2 R3", ""]);
    }

    #[test]
    fn guards_say_where_a_value_is_needed() {
        let test = "ISETP.GT.AND P0, PT, R0, RZ, PT";
        // Each lane has one of the two values; the old one is not needed.
        let lines =
            ["MOV R2, 0x1", "S2R R0, SR_TID.X", test, "@P0 MOV R2, 0x2", "@!P0 MOV R2, 0x3", "STS [R0], R2", "EXIT"];
        assert_eq!(occupied(&lines)[1..4], ["R0", "R0 P0", "R0 R2 P0"]);
        // It is where one of the writes is missing, and where the predicate changes between them.
        let one = ["MOV R2, 0x1", "S2R R0, SR_TID.X", test, "@P0 MOV R2, 0x2", "STS [R0], R2", "EXIT"];
        assert_eq!(occupied(&one)[2], "R0 R2 P0");
        let changed = [
            "MOV R2, 0x1",
            "S2R R0, SR_TID.X",
            test,
            "@P0 MOV R2, 0x2",
            test,
            "@!P0 MOV R2, 0x3",
            "STS [R0], R2",
            "EXIT",
        ];
        assert_eq!(occupied(&changed)[2], "R0 R2 P0");
        // Behind an exit under the guard only the other lanes go on.
        let left = ["MOV R2, 0x1", "S2R R0, SR_TID.X", test, "@P0 EXIT", "@P0 STS [R0], R2", "EXIT"];
        assert_eq!(occupied(&left)[2], "R0 P0");
    }

    #[test]
    fn a_loop_carries_its_values() {
        let lines = [
            "MOV R2, 0x8",
            "MOV R3, RZ",
            "IADD3 R3, R3, R2, RZ",
            "IADD3 R2, R2, -0x1, RZ",
            "ISETP.NE.AND P0, PT, R2, RZ, PT",
            "@P0 BRA 0x20",
            "STS [RZ], R3",
            "EXIT",
        ];
        assert_eq!(occupied(&lines)[2..7], ["R2 R3", "R2 R3", "R2 R3 P0", "R2 R3 P0", "R3"]);
        let target = Target::by_name("sm_90").unwrap();
        let read = |(at, line): (usize, &&str)| parse(target, line, at as u64 * 16, None).ok();
        let insts: Vec<Option<Inst>> = lines.iter().enumerate().map(read).collect();
        let live = Liveness::new(&Function { kernel: true, ..Function::default() }, &insts);
        assert_eq!(live.definitions(2, (RegFile::R, 2)), [0, 3]);
        assert_eq!(live.definitions(4, (RegFile::P, 0)), [4]);
        assert_eq!(live.peak(RegFile::R), Some((1, 3)));
    }
}
