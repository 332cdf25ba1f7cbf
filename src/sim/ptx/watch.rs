//! What looks on while source text is executed: values that nobody has given, and races in shared memory.
//!
//! Input: what threads read, write and decide by. Output: reports and notes, each once for an instruction, in the words of the machine's
//! watch (`sim::sass::watch`). What is guaranteed:
//!
//! * **Values.** Each bit of a register, of shared and of local memory has a value or not. What has none may be moved, computed with
//!   and masked away; it is a report when it is stored to global memory, is an address, or decides about a branch, a store, an atomic, a
//!   copy, a barrier, who acts together, or the end of a thread. Which bits of a result depend on it is found by trying other bits in its place.
//! * **Shared memory.** Two accesses by threads of different warps that no barrier or atomic puts in order are a report, a note where
//!   both store the same value (`sim::race`). Not judged: the order of the lanes of one warp, which is the compiler's affair, and
//!   when an asynchronous copy comes.
//!
//! Global memory counts as written. A report does not end the run, and nothing here changes a result.

use super::program::{Act, Dst, Sink, Sources, Src};
use super::state::{LANES, Scene, Thread};
use super::values::{mask, sign_extend};
use crate::sim::fault::{Fault, Kind};
use crate::sim::memory::{load, store};
use crate::sim::race::{Access, Clock, Races};
use crate::sim::report::Report;
use crate::tables::ptx::Space;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Most reports that are kept; those behind them are counted with the last.
const MOST: usize = 100;

/// What is put into bits without a value, in turn.
pub const PATTERNS: [u64; 4] = [0, u64::MAX, 0x5ac3_96d1_3b1e_87c5, 0xa73c_1e58_c4d2_690f];

/// The pattern for one of several words: two unknown ones are seldom the same.
pub fn pattern_for(pattern: u64, index: usize) -> u64 {
    if pattern == 0 || pattern == u64::MAX { pattern } else { pattern.rotate_left(7 * index as u32) }
}

/// What was found in a launch.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub reports: Vec<Report>,
    pub notes: Vec<Report>,
    /// By whether it is a note, its kind, and the instruction.
    places: BTreeMap<(bool, Kind, usize, usize), usize>,
}

impl Findings {
    fn add(&mut self, note: bool, fault: Fault, (function, pc): (usize, usize)) {
        let list = if note { &mut self.notes } else { &mut self.reports };
        let key = (note, fault.kind, function, pc);
        let known = self.places.get(&key).copied();
        if let Some(index) = known.or(list.len().checked_sub(1).filter(|_| list.len() >= MOST)) {
            list[index].count += 1;
            return;
        }
        self.places.insert(key, list.len());
        list.push(Report::of(fault));
    }
}

/// What is known of a block.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Bits of shared memory without a value; made at the first access.
    shared: Vec<u8>,
    races: Races,
    /// What those know that arrived at each barrier, and the warps that wait there.
    barriers: Vec<(Clock, u32)>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen::new(0)
    }
}

impl Seen {
    /// Of a block about to start.
    pub fn new(warps: usize) -> Seen {
        let barriers = vec![(Clock::default(), 0); super::barrier::BARRIERS];
        Seen { shared: Vec::new(), races: Races::new(warps), barriers }
    }

    /// A warp arrives at a barrier.
    pub fn arrive(&mut self, warp: usize, number: u8, waits: bool) {
        let (known, waiting) = &mut self.barriers[usize::from(number)];
        self.races.arrive(warp, known);
        *waiting |= u32::from(waits) << warp;
    }

    /// A barrier is complete.
    pub fn open(&mut self, number: usize) {
        let (known, waiting) = std::mem::take(&mut self.barriers[number]);
        (0..LANES).filter(|warp| waiting >> warp & 1 != 0).for_each(|warp| self.races.pass(warp, &known));
    }
}

/// What an instruction does that cannot be undone, in words; `None` where it only gives results.
fn decides(thread: &Thread, act: &Act) -> Option<&'static str> {
    Some(match act {
        Act::Branch(_) | Act::Table(..) | Act::Call(_) => "a branch",
        Act::Return if !thread.frames.is_empty() => "a branch",
        Act::Return | Act::Exit | Act::Trap(_) => "the end of a thread",
        Act::Atomic(_) => "an atomic",
        Act::Copy(_) => "a copy",
        Act::Collective(_) => "convergence",
        Act::Barrier(_) => "a barrier",
        Act::Transfer(t) if t.is_store() => "whether something is stored",
        _ => return None,
    })
}

/// The results of an instruction that only gives results.
fn results(act: &Act) -> SmallVec<[Dst; 4]> {
    match act {
        Act::Compute { dst, .. } => dst.iter().flatten().copied().collect(),
        Act::Move { to, .. } => to.iter().filter_map(|(sink, _)| *sink).collect(),
        Act::Address { dst, .. } => SmallVec::from_slice(&[*dst]),
        Act::Transfer(t) => t.sinks(),
        _ => SmallVec::new(),
    }
}

/// The bits of a source that have no value.
pub fn lacking(thread: &Thread, src: &Src) -> u64 {
    match *src {
        Src::Cell { cell, mask } => thread.lacking(cell) & mask,
        Src::Not(cell) => thread.lacking(cell) & 1,
        Src::Part { cell, shift, bits, signed, negate } => {
            let part = thread.lacking(cell) >> shift & mask(bits.into());
            let part = if signed { sign_extend(part, bits.into()) } else { part };
            if negate && part != 0 { u64::MAX << part.trailing_zeros() } else { part }
        }
        Src::Imm(_) | Src::Special(..) | Src::Local(_) => 0,
    }
}

impl Src {
    /// The cell that it reads.
    fn cell(&self) -> Option<u32> {
        match *self {
            Src::Cell { cell, .. } | Src::Not(cell) | Src::Part { cell, .. } => Some(cell),
            Src::Imm(_) | Src::Special(..) | Src::Local(_) => None,
        }
    }
}

impl Scene<'_> {
    /// A finding of a thread at the instruction where it stands.
    pub fn find(&mut self, thread: &Thread, fault: Fault, note: bool) {
        let fault = super::grid::placed(self.env, fault, thread, self.block);
        self.findings.add(note, fault, (thread.function, thread.pc));
    }

    /// Something is decided by a source: a report where that lacks bits.
    pub fn decide(&mut self, thread: &Thread, what: &str, src: &Src) {
        if lacking(thread, src) != 0 {
            let function = &self.env.program.functions[thread.function];
            let cell = src.cell().unwrap_or_default();
            let name = function.names.get(cell as usize).map_or("a register", String::as_str);
            let text = format!("{what} depends on {name}, which has no value");
            self.find(thread, Fault::of(Kind::Uninitialised, text), false);
        }
    }

    /// The guard of an instruction lacks a value; the results whose contents hang on it.
    pub fn unknown_guard(&mut self, thread: &Thread, cell: u32, act: &Act) -> SmallVec<[Dst; 4]> {
        if let Some(what) = decides(thread, act) {
            self.decide(thread, what, &Src::Cell { cell, mask: 1 });
        }
        results(act)
    }

    /// Results of a computation lack the bits that depend on what its sources lack; called before they are written.
    pub fn depending(&self, thread: &mut Thread, src: &[Src], f: &dyn Fn(&Sources) -> [u64; 2]) -> Option<[u64; 2]> {
        if src.iter().all(|src| lacking(thread, src) == 0) {
            return None;
        }
        let cells = src.iter().filter_map(Src::cell).map(|cell| thread.base + cell as usize);
        let cells: SmallVec<[(usize, u64, u64); 6]> =
            cells.map(|at| (at, thread.cells[at], thread.lacks[at])).filter(|(.., lacks)| *lacks != 0).collect();
        // What is compared with a number changes its outcome at that number alone: it and those beside it are tried.
        let given = src.iter().filter(|src| lacking(thread, src) == 0).map(|src| self.value(thread, src));
        let given: SmallVec<[u64; 6]> = given.collect();
        let beside = given.iter().flat_map(|n| [*n, n.wrapping_add(1), n.wrapping_sub(1)]).map(|n| (n, true));
        let (mut first, mut found) = (None, [0; 2]);
        for (pattern, plain) in PATTERNS.into_iter().map(|pattern| (pattern, false)).chain(beside) {
            for (i, (at, value, lacks)) in cells.iter().enumerate() {
                let same = cells.iter().position(|(other, ..)| other == at).unwrap_or(i);
                let fill = if plain { pattern } else { pattern_for(pattern, same) };
                thread.cells[*at] = value & !lacks | fill & lacks;
            }
            let mut s = [0; super::program::SOURCES];
            s.iter_mut().zip(src).for_each(|(slot, src)| *slot = self.value(thread, src));
            let out = f(&s);
            let [x, y] = *first.get_or_insert(out);
            found = [found[0] | x ^ out[0], found[1] | y ^ out[1]];
        }
        cells.iter().for_each(|(at, value, _)| thread.cells[*at] = *value);
        Some(found)
    }

    /// The bits without a value of an access of shared or local memory.
    fn lacks_at<'b>(
        &'b mut self,
        thread: &'b mut Thread,
        (space, address): (Space, u64),
        width: u64,
    ) -> Option<&'b mut [u8]> {
        let (list, first) = match space {
            Space::Shared | Space::SharedCta | Space::SharedCluster => {
                let size = self.shared.len();
                self.seen.shared.resize(size, u8::MAX);
                (&mut self.seen.shared, 0)
            }
            Space::Local => {
                let first = super::call::TOP - thread.taken.len() as u64;
                if address >= first { (&mut thread.taken_lacks, first) } else { (&mut thread.memory_lacks, 0) }
            }
            _ => return None,
        };
        let start = usize::try_from(address.checked_sub(first)?).ok()?;
        list.get_mut(start..start.checked_add(width as usize)?)
    }

    /// After up to 8 bytes were read: those bits of them that have no value.
    pub fn read(&mut self, thread: &mut Thread, at: (Space, u64), width: u64) -> u64 {
        self.race(thread, at, width, (false, false), 0);
        self.open_at(thread, at, width)
    }

    /// The bits of up to 8 bytes of memory that have no value.
    pub fn open_at(&mut self, thread: &mut Thread, at: (Space, u64), width: u64) -> u64 {
        self.lacks_at(thread, at, width).map_or(0, |bytes| load(bytes))
    }

    /// Before up to 8 bytes are written, of which some bits have no value.
    pub fn written(&mut self, thread: &mut Thread, at: (Space, u64), width: u64, value: u64, lacks: u64) {
        let there = self.shared.get(at.1 as usize..).unwrap_or_default().iter().take(width as usize).enumerate();
        let same = there.fold(0, |same, (i, old)| same | u32::from((value >> (8 * i)) as u8 == *old) << i);
        self.race(thread, at, width, (true, false), same);
        self.lack_at(thread, at, width, lacks);
    }

    /// Of up to 8 bytes that are written some bits have no value.
    pub fn lack_at(&mut self, thread: &mut Thread, at: (Space, u64), width: u64, lacks: u64) {
        match self.lacks_at(thread, at, width) {
            Some(bytes) => store(bytes, lacks),
            None if at.0 == Space::Global && lacks & mask(8 * width as u32) != 0 => {
                let fault = Fault::of(Kind::Uninitialised, "what is stored to global memory has no value");
                self.find(thread, fault.about(at.1), false);
            }
            None => {}
        }
    }

    /// Whether an atomic found bits without a value; those that it has put there have one where it only puts.
    pub fn atomically(&mut self, thread: &mut Thread, at: (Space, u64), width: u64, puts: bool) -> bool {
        let shared = is_shared(at.0);
        let key = at.1 | u64::from(shared) << 63;
        self.seen.races.synchronise(thread.warp as usize, key, self.steps as u32);
        self.race(thread, at, width, (true, true), 0);
        let Some(bytes) = self.lacks_at(thread, at, width) else { return false };
        let lacks = bytes.iter().any(|byte| *byte != 0);
        if puts {
            bytes.fill(0);
        }
        lacks
    }

    fn race(
        &mut self,
        thread: &Thread,
        (space, at): (Space, u64),
        width: u64,
        (store, atomic): (bool, bool),
        same: u32,
    ) {
        if !is_shared(space) || thread.warp as usize >= LANES {
            return;
        }
        let pc = self.env.program.functions[thread.function].insts[thread.pc].pos.line;
        let (warp, lane, step) = (thread.warp as usize, thread.lane as usize, self.steps as u32);
        let access = Access { at, bytes: width as u8, store, atomic, same, warp, lane, group: u32::MAX, step, pc };
        let Some(race) = self.seen.races.access(access, self.shared.len()) else { return };
        if race.other.is_beside(&access) {
            return;
        }
        let text = race.text(&format!("line {}", race.other.pc));
        self.find(thread, Fault::of(Kind::Race, text).about(race.at), race.benign);
    }
}

fn is_shared(space: Space) -> bool {
    matches!(space, Space::Shared | Space::SharedCta | Space::SharedCluster)
}

/// Bits without a value go into a result.
pub fn lack(thread: &mut Thread, sink: Sink, bits: u64) {
    if let Some(dst) = sink.filter(|_| bits != 0) {
        thread.lack(dst, bits);
    }
}
