//! The list of distances: pairs of instructions that are too close to each other and certainly both
//! executed.
//!
//! From the words of a kernel and the set that a launch executes, it finds the pairs that violate a
//! row of tables/latency. It considers only words without a branch between them and without a guard
//! (the read of a guard itself is unguarded): such a pair is executed whenever its first word is.
//! It knows nothing of paths, lanes, values or runs; it shares the rows with the simulator and the
//! checker, but no code.

use sassafras::sass::{Access, Effects, Inst, Slot};
use sassafras::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use sassafras::tables::{Mod, Op, Prop, Role};
use std::collections::BTreeSet;

/// Number of words that are searched backwards.
const WINDOW: usize = 96;
/// Cycles until a scoreboard that was set takes effect.
const COUNTED: u32 = 2;
/// A distance beyond all rows.
const FAR: u32 = 1 << 16;

/// A violation: its kind, the register (or scoreboard), the positions of the two instructions.
pub type Broken = (&'static str, RegFile, u8, usize, usize);

/// One access to one register.
struct Touch {
    register: (RegFile, u8),
    class: LatencyClass,
    guard: bool,
}

/// A word with its requirements by the rows.
struct Word {
    reads: Vec<Touch>,
    writes: Vec<Touch>,
    guarded: bool,
    /// A branch or an undecodable word: nothing is certain after it.
    ends: bool,
    meets: bool,
    stall: u32,
    write_bar: u8,
    read_bar: u8,
    waits: u8,
    /// Those of them that its control word names. What a DEPBAR lists besides it looks at later:
    /// ptxas 13.0.88 has it one cycle behind the SHFL that sets one (textures_gradients, sm_80).
    issue_waits: u8,
    /// Waits for all but a few settings of a scoreboard; treated as a wait for all.
    part: u8,
    /// Waits for products of warp groups, all but a few; treated as a wait for all.
    group: bool,
}

pub struct List {
    latency: &'static Latency,
    words: Vec<Word>,
}

fn bit(board: u8) -> u8 {
    1u8.checked_shl(board.into()).filter(|_| board < 6).unwrap_or(0)
}

impl Word {
    fn of(latency: &Latency, inst: &Inst) -> Word {
        let effects = Effects::of(inst);
        let touches = |list: &[Access]| {
            let one = |a: &Access| {
                let a = *a;
                let guard = a.slot == Slot::Guard;
                let touch = move |(n, i)| Touch { register: (a.file, n), class: a.class(latency, inst, i), guard };
                a.registers().map(touch)
            };
            list.iter().flat_map(one).collect::<Vec<_>>()
        };
        let (mut waits, mut part) = (inst.ctrl.wait, 0);
        if inst.op == Op::DEPBAR {
            waits |= inst.arg(Role::Mask).val as u8 & 63;
            part = if inst.modifier(Mod::Le) != 0 { bit(inst.arg(Role::Sb).val as u8) } else { 0 };
        }
        Word {
            reads: touches(&effects.reads),
            writes: touches(&effects.writes),
            guarded: effects.reads.iter().any(|a| a.slot == Slot::Guard) || inst.guard.not,
            ends: inst.op.has(Prop::Control),
            meets: matches!(inst.op, Op::BAR | Op::BAR_INDEXED),
            stall: inst.ctrl.stall.into(),
            write_bar: bit(inst.ctrl.write_bar),
            read_bar: bit(inst.ctrl.read_bar),
            waits,
            issue_waits: inst.ctrl.wait,
            part,
            group: inst.op == Op::WARPGROUP && !inst.arg(Role::A).is_none(),
        }
    }

    fn writes(&self, register: (RegFile, u8)) -> Option<&Touch> {
        self.writes.iter().find(|t| t.register == register)
    }

    fn queue(&self) -> u8 {
        self.reads.iter().map(|t| t.class.info().queue).find(|q| *q != 0).unwrap_or(0)
    }
}

/// The state of a backward search from a word to an earlier one.
#[derive(Default)]
struct Between {
    cycles: u32,
    waited: u8,
    met: bool,
    /// Classes whose results, and queues whose reads, are complete up to here.
    results: BTreeSet<u8>,
    queues: BTreeSet<u8>,
}

impl Between {
    /// Steps back over a word.
    fn pass(&mut self, word: &Word) {
        let class = word.writes.first().map(|t| t.class);
        if let Some(class) = class.filter(|c| c.info().in_order && word.write_bar & self.waited != 0) {
            self.results.insert(class as u8);
        }
        if (word.read_bar | word.write_bar) & self.waited != 0 {
            self.queues.insert(word.queue());
        }
        if word.group {
            self.results.insert(LatencyClass::Group as u8);
        }
        self.met |= word.meets;
        self.waited |= word.waits | word.part;
    }

    /// The stall of a word in cycles; a stall of zero covers every fixed latency.
    fn stall(&mut self, word: &Word) {
        self.cycles += if word.stall == 0 { FAR } else { word.stall };
    }
}

impl List {
    /// Prepares the words of a kernel; words that the launch does not execute and undecodable words
    /// end a run.
    pub fn new(latency: &'static Latency, insts: impl Iterator<Item = Option<Inst>>) -> List {
        let ends = || Word {
            reads: Vec::new(),
            writes: Vec::new(),
            guarded: true,
            ends: true,
            meets: false,
            stall: 0,
            write_bar: 0,
            read_bar: 0,
            waits: 0,
            issue_waits: 0,
            part: 0,
            group: false,
        };
        List { latency, words: insts.map(|i| i.map_or_else(ends, |i| Word::of(latency, &i))).collect() }
    }

    /// The run of words around a position that a change there can affect.
    fn run(&self, at: usize) -> std::ops::Range<usize> {
        let start = (0..at).rev().find(|i| self.words[*i].ends).map_or(0, |i| i + 1);
        let end = (at..self.words.len()).find(|i| self.words[*i].ends).map_or(self.words.len(), |i| i + 1);
        start.max(at.saturating_sub(WINDOW))..end.min(at + WINDOW)
    }

    /// The violations around a position.
    pub fn around(&self, at: usize) -> BTreeSet<Broken> {
        let run = self.run(at);
        let mut found = BTreeSet::new();
        for second in run.clone() {
            self.judge(&run, second, &mut found);
        }
        found
    }

    /// All violations.
    pub fn all(&self) -> BTreeSet<Broken> {
        (0..self.words.len()).step_by(WINDOW / 2).flat_map(|at| self.around(at)).collect()
    }

    fn judge(&self, run: &std::ops::Range<usize>, second: usize, found: &mut BTreeSet<Broken>) {
        let word = &self.words[second];
        if let Some(before) = second.checked_sub(1).filter(|b| *b >= run.start) {
            let first = &self.words[before];
            let early = (first.write_bar | first.read_bar) & word.issue_waits;
            if !first.guarded && (1..COUNTED).contains(&first.stall) && early != 0 {
                found.insert(("set", RegFile::B, early, before, second));
            }
        }
        for read in word.reads.iter().filter(|r| !word.guarded || r.guard) {
            self.back(run, second, |first, between| {
                let write = first.writes(read.register)?;
                let needed = self.latency.read_after_write(read.register.0, write.class, read.class);
                let broken = self.too_early(needed, between, bits(first, write), write.class);
                Some(broken.then_some("read after write"))
            })
            .map(|(what, first)| found.insert((what, read.register.0, read.register.1, first, second)));
        }
        for write in word.writes.iter().filter(|_| !word.guarded) {
            let (file, number) = write.register;
            self.back(run, second, |first, between| {
                let queue = write.class.info().queue;
                for read in first.reads.iter().filter(|r| r.register == write.register && !r.guard) {
                    let info = read.class.info();
                    let needed = self.latency.write_after_read(file, read.class, write.class);
                    let group = read.class == LatencyClass::Group && between.results.contains(&(read.class as u8));
                    let queued = info.queue == queue || between.queues.contains(&info.queue);
                    let over = between.met || group || info.queue != 0 && queued;
                    let boards = first.read_bar | first.write_bar;
                    if !over && self.too_early_by_boards(needed, between, boards) {
                        return Some(Some("write after read"));
                    }
                }
                let earlier = first.writes(write.register)?;
                let needed = self.latency.write_after_write(file, earlier.class, write.class);
                let broken = self.too_early(needed, between, bits(first, earlier), earlier.class);
                // The order of two writes matters only if a later instruction reads the register.
                Some((broken && self.is_read(run, second, write.register)).then_some("write after write"))
            })
            .map(|(what, first)| found.insert((what, file, number, first, second)));
        }
    }

    /// Searches backwards until the state of a register is certain. Returns the first violation.
    fn back(
        &self,
        run: &std::ops::Range<usize>,
        second: usize,
        mut judge: impl FnMut(&Word, &Between) -> Option<Option<&'static str>>,
    ) -> Option<(&'static str, usize)> {
        let mut between = Between { waited: self.words[second].waits | self.words[second].part, ..Between::default() };
        for first in (run.start..second).rev() {
            let word = &self.words[first];
            between.stall(word);
            if !word.guarded
                && let Some(known) = judge(word, &between)
            {
                return known.map(|what| (what, first));
            }
            between.pass(word);
        }
        None
    }

    fn too_early(&self, needed: Needed, between: &Between, boards: u8, class: LatencyClass) -> bool {
        !between.results.contains(&(class as u8)) && self.too_early_by_boards(needed, between, boards)
    }

    fn too_early_by_boards(&self, needed: Needed, between: &Between, boards: u8) -> bool {
        boards & between.waited == 0
            && match needed {
                Needed::Scoreboard => true,
                Needed::Cycles(n) => between.cycles < n.into(),
            }
    }

    /// Whether a register is certainly read after a word before it is written again.
    fn is_read(&self, run: &std::ops::Range<usize>, at: usize, register: (RegFile, u8)) -> bool {
        for word in &self.words[at + 1..run.end] {
            if word.reads.iter().any(|r| r.register == register && (!word.guarded || r.guard)) {
                return true;
            }
            if word.writes(register).is_some() {
                return false;
            }
        }
        false
    }
}

/// Scoreboards that signal a result; for a predicate also that of the late reads.
fn bits(word: &Word, write: &Touch) -> u8 {
    let predicate = matches!(write.register.0, RegFile::P | RegFile::UP);
    word.write_bar | if predicate { word.read_bar } else { 0 }
}
