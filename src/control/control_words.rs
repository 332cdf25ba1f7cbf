//! Control words by the latency tables (phase AdvancedScoreboardsAndOpexes): stalls, scoreboards
//! and waits of every instruction.
//!
//! Runs on physical registers and final block order. What is in flight is a forward dataflow over
//! the CFG, back edges included; where paths join, the union. Variable-latency results and late
//! source reads get scoreboards (`scoreboard_alloc`). A call and a return wait for every scoreboard
//! in flight and for every fixed latency. NOPs bridge distances that no stall can. Along every path
//! each instruction issues late enough for what it reads and overwrites; `sass::hazards` checks
//! this again on the encoded words. The work is one pass over the instructions of a block for each
//! time that the state at its start changes.

use super::in_flight::{Entry, State};
use super::late_reads::LateReads;
use super::scoreboard_alloc::Boards;
use super::written_as_nop;
use crate::analysis::PassCx;
use crate::ori::cfg::{Cfg, Edges};
use crate::ori::function::ControlWord;
use crate::ori::{Block, Function, InstId};
use crate::sched::effects::{Access, Effects, FENCE, Reg, arrivals};
use crate::sorted::SortedSet;
use crate::tables::latency::{Latency, LatencyClass, MOST_PAIRS, Needed, RegFile};
use crate::tables::throughput::{Pace, Throughput};
use crate::tables::{Mod, Op, Prop, value};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::cell::Cell;

/// Encodes "no scoreboard".
pub const NONE: u8 = 7;
/// All scoreboards.
const ALL_BOARDS: u8 = 0x3f;
/// Maximum of the stall field in cycles, and the longest stall without yielding to another warp.
const LONGEST: u16 = 15;
const LONGEST_STAY: u16 = 11;
/// The scoreboard that counts groups of asynchronous copies, in bulk or not; only DEPBAR waits for
/// it.
pub(super) const COPIES: u8 = 0;
/// Rounds after which block ends that still need more cycles get the longest stall.
const ROUNDS: usize = 8;
/// Rounds after which the function gets conservative control words.
const MOST_ROUNDS: usize = 64;

/// Visits per block, and visits of all blocks together in a small function, after which the
/// function gets conservative control words: in loops nested hundreds deep, a block is visited once
/// per level.
const MOST_VISITS: usize = 64;
const LEAST_VISITS: usize = 1 << 16;

/// Blocks up to which the states of the last round are kept: they may be as many bytes again as the
/// code.
const MOST_KNOWN: usize = 1 << 11;

/// An instruction with its future control word.
#[derive(Clone)]
pub struct Item {
    /// The instruction.
    pub inst: InstId,
    /// Its register reads and writes.
    pub effects: Effects,
    pub class: LatencyClass,
    /// Whether it transfers control, and so cannot set a scoreboard.
    pub control: bool,
    /// Whether it may leave the block, whatever follows it.
    leaves: bool,
    /// Whether it must wait for everything in flight.
    pub drains: bool,
    /// Whether lanes go on that have come from elsewhere.
    wakes: bool,
    /// Whether it must wait for every result in flight: what is loaded behind it must not be older
    /// than what was loaded before it.
    pub acquires: bool,
    /// Whether it signals completion by its read barrier, although it reads no register.
    pub announces_by_read: bool,
    /// Scoreboard for its result, or [`NONE`].
    pub write_bar: u8,
    /// Scoreboard for its late reads, or [`NONE`].
    pub read_bar: u8,
    /// Typical cycles until its late reads and its result are over.
    pub pace: Pace,
    /// The pairs of instructions of which it is the first, and of which it is the second.
    pairs: [u8; 2],
    wait: u8,
    stall: u16,
    least: u16,
}

impl Item {
    fn new(function: &Function, latency: &Latency, throughput: &Throughput, inst: InstId) -> Item {
        let op = function[inst].op;
        let effects = Effects::of(function, latency, inst);
        let fence = effects.writes.iter().any(|a| a.reg == FENCE);
        Item {
            inst,
            class: latency.class_of(op, &function[inst].mods),
            control: op.has(Prop::Control),
            leaves: op == Op::BRA,
            // Another warp may get the registers that this one gives, and lanes that are elsewhere
            // may still wait for what they have loaded.
            drains: op.has(Prop::Drains),
            wakes: op.has(Prop::Wakes),
            acquires: op == Op::ACQUIRE || op == Op::CCTL && function[inst].mods.get(Mod::Cctl) == value::cctl::IVALL,
            announces_by_read: fence && op.has(Prop::ReadsLate),
            write_bar: if op.has(Prop::CopyGroup) { COPIES } else { NONE },
            read_bar: if op.has(Prop::BulkGroup) { COPIES } else { NONE },
            pace: throughput.pace(op, &function[inst].mods),
            pairs: latency.pairs_of(op, |role| !function.arg(inst, role).is_null()),
            wait: 0,
            stall: 1,
            least: if op.has(Prop::StallZero) {
                0
            } else if op.has(Prop::CopyGroup) || op.has(Prop::BulkGroup) {
                u16::from(latency.least_stall(op)).max(2)
            } else {
                latency.least_stall(op).into()
            },
            effects,
        }
    }

    /// Whether it needs a scoreboard for its result.
    pub fn announces(&self) -> bool {
        !self.control && self.effects.announced()
    }
}

/// A block and the state in flight at its start and end.
#[derive(Clone, Default)]
pub(super) struct Room {
    pub(super) items: Vec<Item>,
    /// Index of the first item in the function.
    pub(super) first: u32,
    /// Mask of the scoreboards that it waits for because of what blocks before it left in flight.
    pub(super) outer: u8,
    start: State,
    end: State,
    /// Minimum stall of the first item that may leave the block, as successors require.
    edge: u16,
    /// The states at its start and its end in the last round, if it would be the same for that
    /// start now: no item has changed.
    known: Option<(State, State)>,
    pub(super) changed: bool,
}

impl Room {
    /// The first item after which another block may execute: a branch that is not last, or the last
    /// item.
    fn exit(&self) -> usize {
        self.items.iter().position(|item| item.leaves).unwrap_or(self.items.len().saturating_sub(1))
    }
}

pub(super) struct Scheduler<'a> {
    latency: &'static Latency,
    pub(super) cfg: &'a Cfg,
    pub(super) rooms: SecondaryMap<Block, Room>,
    /// Late reads without a scoreboard that something overwrites.
    wanted: LateReads,
    /// Late reads that something in another block overwrites, and that it waits for by the
    /// scoreboard of the result alone.
    wished: LateReads,
    /// Whether [`COPIES`] counts groups, so that nothing else is given that scoreboard.
    pub(super) reserved: bool,
    /// The most cycles that any reader waits for a result, by its file and class, once asked for.
    rests: Vec<[Cell<Option<u16>>; LatencyClass::ALL.len()]>,
}

/// Sets the control word of every instruction.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    write(cx.function, &cfg);
}

fn write(function: &mut Function, cfg: &Cfg) {
    let target = function.target();
    let (Some(latency), Some(throughput)) = (Latency::of(target), Throughput::of(target)) else { return };
    let rests = vec![[const { Cell::new(None) }; LatencyClass::ALL.len()]; RegFile::B as usize + 1];
    let mut scheduler =
        Scheduler { latency, cfg, rooms: SecondaryMap::new(), wanted: vec![], wished: vec![], reserved: false, rests };
    let mut first = 0;
    for place in 0..function.layout().len() {
        let block = function.layout()[place];
        let mut insts = function[block].as_slice();
        if function.falls_through(place) {
            insts = &insts[..insts.len() - 1];
        }
        let mut items: Vec<Item> = insts.iter().map(|i| Item::new(function, latency, throughput, *i)).collect();
        arrivals(function, insts, &mut items.iter_mut().map(|item| &mut item.effects).collect::<Vec<_>>());
        let count = items.len() as u32;
        scheduler.rooms[block] = Room { items, first, ..Room::default() };
        first += count;
    }
    scheduler.allot(function);
    if scheduler.solve(function) {
        scheduler.write(function);
    } else {
        super::conservative::write(function);
    }
}

impl Scheduler<'_> {
    fn allot(&mut self, function: &Function) {
        let groups = function.layout().iter().flat_map(|b| &self.rooms[*b].items);
        // Until scoreboards are allocated, an item has only one that its operation asks for.
        self.reserved = groups.flat_map(|i| [i.write_bar, i.read_bar]).any(|b| b == COPIES);
        let mut boards = Boards::new(self.reserved.then_some(COPIES));
        for block in function.layout() {
            let preds = self.before(*block);
            let room = &mut self.rooms[*block];
            room.outer = boards.allot(*block, &preds, &mut room.items, self.latency);
        }
    }

    /// Iterates the dataflow to a fixpoint, and repeats while a block end needs more cycles or a
    /// late read needs a scoreboard. Returns whether it converged.
    fn solve(&mut self, function: &Function) -> bool {
        let huge = function.layout().len() > MOST_KNOWN;
        for round in 0..MOST_ROUNDS {
            for block in function.layout() {
                let room = &mut self.rooms[*block];
                let states = (std::mem::take(&mut room.start), std::mem::take(&mut room.end));
                let same = round > 0 && !std::mem::take(&mut room.changed) && !huge;
                room.known = same.then_some(states);
            }
            if !self.fixpoint(huge) {
                return false;
            }
            let more = self.edges(function, round);
            let (wanted, wished) = (std::mem::take(&mut self.wanted), std::mem::take(&mut self.wished));
            let mut again = more || !wanted.is_empty();
            self.grant(function, wanted, true);
            again |= round == 0 && self.grant(function, wished, false);
            if !again {
                return true;
            }
        }
        false
    }

    /// Returns whether the fixpoint was reached within [`MOST_VISITS`]. Of the states at the ends
    /// of the blocks of a huge function only what [`Scheduler::edges`] asks for is kept.
    fn fixpoint(&mut self, huge: bool) -> bool {
        let mut work: SortedSet<usize> = (0..self.cfg.rpo.len()).collect();
        let mut visits = 0;
        while let Some(number) = work.pop_first() {
            visits += 1;
            if visits > MOST_VISITS * self.cfg.rpo.len() + LEAST_VISITS {
                return false;
            }
            let block = self.cfg.rpo[number];
            let mut end = self.visit(block);
            for succ in self.cfg.succs[block].clone() {
                if self.rooms[succ].start.join(&end) {
                    work.insert(self.cfg.number[succ]);
                }
            }
            end.trim(huge);
            self.rooms[block].end = end;
        }
        true
    }

    /// Raises the stalls at the ends of blocks whose successors start too early; returns whether
    /// any was raised.
    fn edges(&mut self, function: &Function, round: usize) -> bool {
        let mut raise: Vec<(Block, u16)> = Vec::new();
        for block in function.layout() {
            if self.rooms[*block].items.is_empty() {
                continue;
            }
            for pred in self.before(*block) {
                let lack = self.lack(&self.rooms[pred].end, &self.rooms[*block].items[0].effects);
                if lack > 0 {
                    raise.push((pred, lack));
                }
            }
        }
        let mut changed = false;
        for (block, lack) in raise {
            let room = &mut self.rooms[block];
            let last = room.items.get(room.exit()).map_or(0, |i| i.stall);
            let wanted = if round < ROUNDS { last + lack } else { 4 * LONGEST };
            if wanted > room.edge {
                (room.edge, room.changed, changed) = (wanted, true, true);
            }
        }
        changed
    }

    /// Non-empty blocks from which control reaches a block directly or through empty blocks.
    fn before(&self, block: Block) -> Edges {
        let mut work = self.cfg.preds[block].clone();
        if work.iter().all(|pred| !self.rooms[*pred].items.is_empty()) {
            work.sort_unstable();
            work.dedup();
            return work;
        }
        let (mut found, mut seen) = (Edges::new(), SortedSet::from([block]));
        while let Some(pred) = work.pop() {
            if !self.rooms[pred].items.is_empty() {
                found.push(pred);
            } else if seen.insert(pred) {
                work.extend(self.cfg.preds[pred].iter().copied());
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Cycles that are missing before an instruction so that no fixed-latency dependence is
    /// violated.
    fn lack(&self, state: &State, effects: &Effects) -> u16 {
        let mut lack = 0;
        self.each_need(state, effects, |needed, entry| {
            if let Needed::Cycles(n) = needed
                && !entry.announced
            {
                lack = lack.max(u16::from(n).saturating_sub(state.age(entry)));
            }
        });
        lack
    }

    /// Calls `f` for each access in flight that an instruction depends on.
    fn each_need(&self, state: &State, effects: &Effects, mut f: impl FnMut(Needed, &Entry)) {
        for access in effects.reads.iter() {
            let file = access.reg.file();
            for entry in state.on(access.reg).filter(|e| e.write) {
                f(self.latency.read_after_write(file, entry.class, access.class), entry);
            }
        }
        for access in effects.writes.iter() {
            let file = access.reg.file();
            for entry in state.on(access.reg) {
                let needed = if entry.write {
                    self.latency.write_after_write(file, entry.class, access.class)
                } else {
                    self.latency.write_after_read(file, entry.class, access.class)
                };
                f(needed, entry);
            }
        }
    }

    /// Computes stalls and waits of the items of a block from the state before it; returns the
    /// state after it.
    fn visit(&mut self, block: Block) -> State {
        let room = &mut self.rooms[block];
        // What it wanted then has a scoreboard now, so nothing in this state is wanted.
        match &room.known {
            Some((start, end)) if start.is(&room.start) => return end.clone(),
            _ => room.known = None,
        }
        let mut room = std::mem::take(room);
        let mut state = room.start.clone();
        let exit = room.exit();
        // The state where a branch leaves before the end of the block.
        let mut early = None;
        // Cycles since the first instruction of each pair; a block begins without any.
        let mut ages = [u16::MAX; MOST_PAIRS];
        for at in 0..room.items.len() {
            let number = room.first + at as u32;
            let (before, rest) = room.items.split_at_mut(at);
            let item = &mut rest[0];
            let (mut lack, wait) = self.needs(&state, item, number, room.first);
            for (pair, apart) in self.latency.each_pair(item.pairs[1]) {
                lack = lack.max(u16::from(apart.cycles).saturating_sub(ages[pair]));
            }
            if item.drains {
                lack = lack.max(self.residue(&state).saturating_sub(LONGEST));
            }
            if lack > 0
                && let Some(previous) = before.last_mut()
            {
                previous.stall += lack;
                state.pass(lack);
                ages.iter_mut().for_each(|age| *age = age.saturating_add(lack));
            }
            item.wait = wait;
            state.waited(item.wait);
            item.stall = item.least;
            if item.drains {
                item.stall = item.stall.max(self.residue(&state));
            }
            if at == exit {
                item.stall = item.stall.max(room.edge);
            }
            record(self.latency, &mut state, item, number);
            state.pass(item.stall);
            self.latency.each_pair(item.pairs[0]).for_each(|(pair, _)| ages[pair] = 0);
            ages.iter_mut().for_each(|age| *age = age.saturating_add(item.stall));
            if at == exit && exit + 1 < room.items.len() {
                early = Some(state.clone());
            }
        }
        if let Some(last) = room.items.last_mut() {
            let sets = last.write_bar != NONE || last.read_bar != NONE;
            if sets && last.stall < 2 {
                state.pass(2 - last.stall);
                last.stall = 2;
            }
        }
        if let Some(early) = early {
            state.join(&early);
        }
        self.rooms[block] = room;
        state
    }

    /// Cycles that are missing before an item, as [`Scheduler::lack`], and the scoreboards that it
    /// must wait for. Recorded are late reads that it overwrites and that have no scoreboard, and
    /// those for which it waits by a result's alone, if they are not before it (`number`) in its
    /// own block, which begins with `first`: there `scoreboard_alloc` has weighed it.
    fn needs(&mut self, state: &State, item: &Item, number: u32, first: u32) -> (u16, u8) {
        let (mut lack, mut wait) = (0, 0u8);
        let mut wanted: SmallVec<[u32; 8]> = SmallVec::new();
        let mut by_result: SmallVec<[(u32, u8); 4]> = SmallVec::new();
        self.each_need(state, &item.effects, |needed, entry| match needed {
            Needed::Cycles(n) if !entry.announced => {
                lack = lack.max(u16::from(n).saturating_sub(state.age(entry)));
            }
            Needed::Scoreboard if entry.announced && entry.boards & wait == 0 => match entry.first {
                0 => wanted.push(entry.item),
                board if !entry.write && board == entry.boards => by_result.push((entry.item, board)),
                board => wait |= board,
            },
            _ => {}
        });
        if item.acquires {
            let results = state.entries().filter(|(_, e)| e.announced && e.write);
            wait |= results.fold(0, |mask, (_, e)| mask | e.boards);
        }
        if item.wakes {
            wait = ALL_BOARDS;
        }
        if item.drains {
            wait |= state.entries().fold(0, |mask, (_, e)| mask | e.boards);
            // The callee may overwrite registers that are still to be read.
            let unguarded = state.entries().filter(|(_, e)| e.announced && !e.write && e.boards == 0);
            wanted.extend(unguarded.map(|(_, e)| e.item));
        }
        let wished =
            by_result.iter().filter(|(other, board)| wait & board == 0 && (*other >= number || *other < first));
        let wished: SmallVec<[u32; 4]> = wished.map(|(number, _)| *number).collect();
        wait = by_result.iter().fold(wait, |mask, (_, board)| mask | board);
        if !wanted.is_empty() || !wished.is_empty() {
            let results = state.entries().filter(|(_, e)| e.announced && e.write && e.boards & wait == 0);
            let busy = results.fold(0, |mask, (_, e)| mask | e.boards);
            self.wanted.extend(wanted.into_iter().map(|number| (number, busy)));
            self.wished.extend(wished.into_iter().map(|number| (number, busy)));
        }
        (lack, wait)
    }

    /// Cycles until every fixed-latency result in flight is ready for any reader.
    fn residue(&self, state: &State) -> u16 {
        let left = state
            .entries()
            .filter(|(_, e)| !e.announced && e.write)
            .map(|(reg, e)| self.rest(reg, e).saturating_sub(state.age(e)));
        left.max().unwrap_or(0)
    }

    /// The maximum latency of a fixed-latency result over all classes of readers.
    fn rest(&self, reg: Reg, entry: &Entry) -> u16 {
        let known = &self.rests[reg.file() as usize][entry.class as usize];
        if let Some(rest) = known.get() {
            return rest;
        }
        let most = LatencyClass::ALL.iter().filter_map(|reader| {
            match self.latency.read_after_write(reg.file(), entry.class, *reader) {
                Needed::Cycles(n) => Some(u16::from(n)),
                Needed::Scoreboard => None,
            }
        });
        let rest = most.max().unwrap_or(0);
        known.set(Some(rest));
        rest
    }

    /// Writes the control words into the function, with NOPs where a stall would be too long.
    fn write(&mut self, function: &mut Function) {
        for place in 0..function.layout().len() {
            let block = function.layout()[place];
            let mut room = std::mem::take(&mut self.rooms[block]);
            let mut out = Vec::with_capacity(room.items.len() + 1);
            let line = room.items.first().map_or(0, |i| function[i.inst].line);
            nops(function, pull(&mut room.items), line, &mut out);
            for at in 0..room.items.len() {
                let next = room.items.get(at + 1).map_or(0, |i| i.wait);
                let item = &mut room.items[at];
                let sets = [item.write_bar, item.read_bar].iter().filter(|b| **b != NONE).fold(0, |m, b| m | 1 << b);
                if sets & next != 0 {
                    item.stall = item.stall.max(2);
                }
                function[item.inst].ctrl = word(item, item.stall.min(LONGEST));
                written_as_nop(function, item.inst);
                out.push(item.inst);
                nops(function, item.stall.saturating_sub(LONGEST), function[item.inst].line, &mut out);
            }
            if function.falls_through(place) {
                out.extend(function[block].last());
            }
            function[block] = out;
        }
    }
}

/// A control word without scoreboards and waits.
const IDLE: ControlWord = ControlWord { stall: 1, stay: false, write_bar: NONE, read_bar: NONE, wait: 0 };

/// Appends NOPs that take this many cycles.
fn nops(function: &mut Function, mut cycles: u16, line: u32, out: &mut Vec<InstId>) {
    while cycles > 0 {
        let nop = function.make(Op::NOP);
        let stall = cycles.min(LONGEST);
        function[nop].ctrl = ControlWord { stall: stall as u8, stay: stays(stall), ..IDLE };
        function[nop].line = line;
        out.push(nop);
        cycles -= stall;
    }
}

fn stays(stall: u16) -> bool {
    (1..=LONGEST_STAY).contains(&stall)
}

fn word(item: &Item, stall: u16) -> ControlWord {
    let (write_bar, read_bar, wait) = (item.write_bar, item.read_bar, item.wait);
    ControlWord { stall: stall as u8, stay: stays(stall), write_bar, read_bar, wait }
}

/// NOPs cannot follow a branch, so a stall that exceeds its field moves before the branches of the
/// block. Returns the cycles that must come before the first item.
fn pull(items: &mut [Item]) -> u16 {
    let mut lead = 0;
    for at in (0..items.len()).rev() {
        let over = items[at].stall.saturating_sub(LONGEST);
        if over == 0 || !items[at].control {
            continue;
        }
        items[at].stall = LONGEST;
        match at.checked_sub(1) {
            Some(before) => items[before].stall += over,
            None => lead = over,
        }
    }
    lead
}

/// Whether all that must wait for a read of the class `older` before they write wait for a read of
/// the class `newer` as well.
fn waits_as(latency: &Latency, file: RegFile, older: LatencyClass, newer: LatencyClass) -> bool {
    let waits = |reader, writer| latency.write_after_read(file, reader, writer) == Needed::Scoreboard;
    older == newer || LatencyClass::ALL.iter().all(|writer| !waits(older, *writer) || waits(newer, *writer))
}

/// Adds the accesses that an item leaves in flight.
fn record(latency: &Latency, state: &mut State, item: &Item, number: u32) {
    let bit = |board: u8| if board == NONE { 0u8 } else { 1 << board };
    let (write, read) = (bit(item.write_bar), bit(item.read_bar));
    // What products of a warp group read and write is in order already: `group::stages`.
    let ordered = |access: &Access| access.class == LatencyClass::Group && access.reg.file() == RegFile::R;
    for access in item.effects.reads.iter() {
        if access.reg == FENCE || ordered(access) {
            continue;
        }
        let announced = access.reg < FENCE && access.class.reads_late(access.reg.file());
        let boards = if announced { write | read } else { 0 };
        let order = item.class.read_order(access.class);
        if announced && order != 0 {
            let subsumed = |class| waits_as(latency, access.reg.file(), class, access.class);
            state.read_again(access.reg, order, read != 0 && !item.effects.guarded, subsumed);
        }
        state.add(
            access.reg,
            Entry::new(false, access.class, announced, boards, number).ordered(order).first(if announced {
                read
            } else {
                0
            }),
        );
    }
    for access in item.effects.writes.iter().filter(|access| !ordered(access)) {
        let announced = access.class.info().announced;
        let boards = match (announced, item.announces_by_read) {
            (false, _) => 0,
            (true, false) => write,
            (true, true) => read,
        };
        let entry = Entry::new(true, access.class, announced, boards, number);
        if item.effects.guarded {
            state.add(access.reg, entry);
        } else {
            state.replace(access.reg, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    /// The control words of the first block of a function.
    fn controls(source: &str) -> Vec<ControlWord> {
        let mut function = text::parse(source).unwrap();
        let cfg = Cfg::new(&function);
        write(&mut function, &cfg);
        function[function.layout()[0]].iter().map(|inst| function[*inst].ctrl).collect()
    }

    /// What an acquire loads is there before the first level cache forgets: what is loaded later is
    /// not older.
    #[test]
    fn an_acquire_waits_for_its_load() {
        let source = "function k sm_80\nphys r0=2 r1=3 r2=4 r3=5\nb0:\n  LDG{e=E mem=STRONG.GPU} d=r2 a={r0,r1} off=0x0\n  \
                      CCTL{cctl=IVALL}\n  LDG{e=E} d=r3 a={r0,r1} off=0x10\n  EXIT\n";
        let ctrl = controls(source);
        assert_eq!(ctrl[1].wait >> ctrl[0].write_bar & 1, 1);
    }

    /// On an H200, R2UR four cycles after a product moved what the register had before.
    #[test]
    fn a_product_is_moved_to_the_uniform_file_after_five_cycles() {
        let source =
            "function k sm_90\nphys r0=2 r1=3 u2=4\nb0:\n  IMAD d=r0 a=r1 b=r1 c=Z\n  R2UR d=u2 a=r0\n  EXIT\n";
        assert!(controls(source)[0].stall >= 5);
    }

    /// On sm_90, the fence of a block is over when its scoreboard says so.
    #[test]
    fn a_fence_of_a_block_announces_its_end() {
        let source = |sm| {
            format!(
                "function k {sm}\nphys r0=2 r1=3 r2=4\nb0:\n  MEMBAR{{fence=ALL scope=CTA}}\n  STS a=r0 off=0x0 b=r2\n  EXIT\n"
            )
        };
        let ctrl = controls(&source("sm_90"));
        assert_eq!(ctrl[1].wait, 1 << ctrl[0].read_bar);
        assert_eq!(controls(&source("sm_80"))[0].read_bar, NONE);
    }

    /// On sm_120, F2I.F64 signals completion out of order with the reads of its source and of a
    /// store's, whichever comes first.
    #[test]
    fn what_another_unit_announces_ends_no_read_before_it() {
        let source = "function k sm_120\nphys r0=2 r1=4 r2=5 r3=6\nb0:\n  STL{size=64} a=r0 off=0x0 b={r1,r2}\n  \
                      F2I{dst=U16 src=F64} d=r3 a={r1,r2}\n  MOV d=r2 a=Z\n  EXIT\n";
        let mut function = text::parse(source).unwrap();
        let cfg = Cfg::new(&function);
        write(&mut function, &cfg);
        let block = function.layout()[0];
        let ctrl = |at: usize| function[function[block][at]].ctrl;
        assert_ne!(ctrl(0).read_bar, NONE);
        assert_eq!(ctrl(2).wait >> ctrl(0).read_bar & 1, 1);
        let source = "function k sm_120\nphys r0=2 r1=4 r2=5 r3=6 r4=7\nb0:\n  F2I{dst=U16 src=F64} d=r3 a={r1,r2}\n  \
                      F2I{dst=U16 src=F64} d=r4 a={r1,r2}\n  STL{size=64} a=r0 off=0x0 b={r1,r2}\n  MOV d=r2 a=Z\n  EXIT\n";
        let mut function = text::parse(source).unwrap();
        let cfg = Cfg::new(&function);
        write(&mut function, &cfg);
        let block = function.layout()[0];
        let ctrl = |at: usize| function[function[block][at]].ctrl;
        let told = [ctrl(1).read_bar, ctrl(1).write_bar].into_iter().filter(|board| *board != NONE);
        assert!(told.map(|board| ctrl(3).wait >> board & 1).sum::<u8>() > 0);
    }
}
