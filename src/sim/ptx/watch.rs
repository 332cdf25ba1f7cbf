//! Detects uses of undefined values and races in shared memory while the interpreter runs.
//!
//! Findings are reports or notes, one per kind and instruction, worded as by the SASS sanitizer
//! (`sim::sass::sanitizer`). A report does not stop the run, and detection never changes a result.
//!
//! * **Undefined values.** Each bit of registers, shared and local memory is defined or undefined.
//!   An undefined bit may be moved, computed with and masked away. It is reported if it is stored
//!   to global memory, is part of an address, or decides a branch, a store, an atomic, a copy, a
//!   barrier, convergence, or the end of a thread. Which result bits depend on it is found by
//!   trying other values in its place. Global memory counts as defined.
//! * **Races in shared memory.** Two accesses of different warps that no barrier or atomic orders
//!   are reported, or noted if both store the same value (`sim::race`). The order of lanes within
//!   one warp, which is the compiler's affair, and the completion of asynchronous copies are not
//!   checked. In a cluster of several blocks, neither races nor undefined values in shared memory
//!   are.

use super::program::{Act, Dst, Sink, Sources, Src};
use super::state::{LANES, Scene, Thread};
use super::values::{mask, sign_extend};
use crate::sim::fault::{Fault, Kind};
use crate::sim::memory::{load, store};
use crate::sim::race::{Access, Clock, Races};
use crate::sim::report::Report;
use crate::sorted::SortedMap;
use crate::tables::ptx::Space;
use smallvec::SmallVec;

/// Most reports that are kept; further ones increment the count of the last.
const MOST: usize = 100;

/// The patterns that are tried in place of undefined bits.
pub const PATTERNS: [u64; 4] = [0, u64::MAX, 0x5ac3_96d1_3b1e_87c5, 0xa73c_1e58_c4d2_690f];

/// The pattern for one of several words, rotated so that two undefined words seldom agree.
pub fn pattern_for(pattern: u64, index: usize) -> u64 {
    if pattern == 0 || pattern == u64::MAX { pattern } else { pattern.rotate_left(7 * index as u32) }
}

/// The findings of a launch.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Errors.
    pub reports: Vec<Report>,
    /// Findings that are not errors.
    pub notes: Vec<Report>,
    /// The index of each finding by note, kind and instruction.
    places: SortedMap<(bool, Kind, usize, usize), usize>,
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

/// The shadow state of a block.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The undefined bits of shared memory; allocated at the first access.
    shared: Vec<u8>,
    races: Races,
    /// For each barrier the clock of the arrived warps, and the warps that wait there.
    barriers: Vec<(Clock, u32)>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen::new(0)
    }
}

impl Seen {
    /// The shadow state of a block that is about to start.
    pub fn new(warps: usize) -> Seen {
        let barriers = vec![(Clock::default(), 0); super::barrier::BARRIERS];
        Seen { shared: Vec::new(), races: Races::new(warps), barriers }
    }

    /// Records that a warp arrives at a barrier.
    pub fn arrive(&mut self, warp: usize, number: u8, waits: bool) {
        let (known, waiting) = &mut self.barriers[usize::from(number)];
        self.races.arrive(warp, known);
        *waiting |= u32::from(waits) << warp;
    }

    /// Records that a barrier is complete.
    pub fn open(&mut self, number: usize) {
        let (known, waiting) = std::mem::take(&mut self.barriers[number]);
        (0..LANES).filter(|warp| waiting >> warp & 1 != 0).for_each(|warp| self.races.pass(warp, &known));
    }
}

/// The irreversible effect that an instruction has, in words; `None` if it only produces results.
fn decides(thread: &Thread, act: &Act) -> Option<&'static str> {
    Some(match act {
        Act::Branch(_) | Act::Table(..) | Act::Call(_) => "a branch",
        Act::Return if !thread.frames.is_empty() => "a branch",
        Act::Return | Act::Exit | Act::Trap(_) => "the end of a thread",
        Act::Atomic(_) => "an atomic",
        Act::Mbarrier(_) => "an operation on an mbarrier",
        Act::Copy(_) => "a copy",
        Act::Bulk(_) => "a copy in bulk",
        Act::Remote(_) | Act::Cancel(_) => "whether something is stored",
        Act::Surface(_) => "an access to a surface",
        Act::Tensor(_) => "a copy of a tensor",
        Act::Replace(_) | Act::Publish(..) => "whether something is stored",
        Act::TensorUnit(_) => "what is done in tensor memory",
        Act::Clear(..) => "whether something is stored",
        Act::Collective(_) => "convergence",
        Act::Barrier(_) | Act::ClusterArrive | Act::ClusterWait(_) => "a barrier",
        Act::Transfer(t) if t.is_store() => "whether something is stored",
        _ => return None,
    })
}

/// The destinations of an instruction that only produces results.
fn results(act: &Act) -> SmallVec<[Dst; 4]> {
    match act {
        Act::Compute { dst, .. } => dst.iter().flatten().copied().collect(),
        Act::Move { to, .. } => to.iter().filter_map(|(sink, _)| *sink).collect(),
        Act::Address { dst, .. } => SmallVec::from_slice(&[*dst]),
        Act::Transfer(t) => t.sinks(),
        Act::Sample(s) => s.results.iter().flatten().copied().collect(),
        _ => SmallVec::new(),
    }
}

/// The undefined bits of a source.
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
    /// The cell that the source reads.
    fn cell(&self) -> Option<u32> {
        match *self {
            Src::Cell { cell, .. } | Src::Not(cell) | Src::Part { cell, .. } => Some(cell),
            Src::Imm(_) | Src::Special(..) | Src::Local(_) => None,
        }
    }
}

impl Scene<'_> {
    /// Records a finding of a thread at its current instruction.
    pub fn find(&mut self, thread: &Thread, fault: Fault, note: bool) {
        let fault = super::grid::placed(self.env, fault, thread, self.block);
        self.findings.add(note, fault, (thread.function, thread.pc));
    }

    /// Reports a decision (`what`) that depends on a source with undefined bits.
    pub fn decide(&mut self, thread: &Thread, what: &str, src: &Src) {
        if lacking(thread, src) != 0 {
            let function = &self.env.program.functions[thread.function];
            let cell = src.cell().unwrap_or_default();
            let name = function.names.get(cell as usize).map_or("a register", String::as_str);
            let text = format!("{what} depends on {name}, which has no value");
            self.find(thread, Fault::of(Kind::Uninitialised, text), false);
        }
    }

    /// Handles a guard with an undefined value: reports an irreversible effect, and returns the
    /// destinations whose contents depend on the guard.
    pub fn unknown_guard(&mut self, thread: &Thread, cell: u32, act: &Act) -> SmallVec<[Dst; 4]> {
        if let Some(what) = decides(thread, act) {
            self.decide(thread, what, &Src::Cell { cell, mask: 1 });
        }
        results(act)
    }

    /// The result bits that depend on undefined source bits, or `None` if all sources are defined;
    /// must be called before the results are written.
    pub fn depending(&self, thread: &mut Thread, src: &[Src], f: &dyn Fn(&Sources) -> [u64; 2]) -> Option<[u64; 2]> {
        if src.iter().all(|src| lacking(thread, src) == 0) {
            return None;
        }
        let cells = src.iter().filter_map(Src::cell).map(|cell| thread.base + cell as usize);
        let cells: SmallVec<[(usize, u64, u64); 6]> =
            cells.map(|at| (at, thread.cells[at], thread.lacks[at])).filter(|(.., lacks)| *lacks != 0).collect();
        // A comparison with a constant changes its result only next to that constant, so it and its
        // neighbours are tried too.
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

    /// The shadow bytes of an access to shared or local memory.
    fn lacks_at<'b>(
        &'b mut self,
        thread: &'b mut Thread,
        (space, address): (Space, u64),
        width: u64,
    ) -> Option<&'b mut [u8]> {
        let (list, first) = match space {
            Space::Shared | Space::SharedCta | Space::SharedCluster if !self.env.is_alone() => return None,
            Space::Shared | Space::SharedCta | Space::SharedCluster => {
                if self.seen.shared.is_empty() {
                    self.seen.shared.resize(self.shared.len(), u8::MAX);
                    // What the driver reserves is what it wrote there.
                    let reserved = self.seen.shared.len().min(self.env.reserved as usize);
                    self.seen.shared[..reserved].fill(0);
                }
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

    /// Records a read of up to 8 bytes and returns its undefined bits.
    pub fn read(&mut self, thread: &mut Thread, at: (Space, u64), width: u64) -> u64 {
        self.read_as(thread, at, width, false)
    }

    /// The same, for a load that may be strong.
    pub fn read_as(&mut self, thread: &mut Thread, at: (Space, u64), width: u64, strong: bool) -> u64 {
        self.race(thread, at, width, (false, strong), 0);
        self.open_at(thread, at, width)
    }

    /// The undefined bits of up to 8 bytes of memory.
    pub fn open_at(&mut self, thread: &mut Thread, at: (Space, u64), width: u64) -> u64 {
        self.lacks_at(thread, at, width).map_or(0, |bytes| load(bytes))
    }

    /// Records a write of up to 8 bytes; must be called before the write. `lacks` are the undefined
    /// bits.
    pub fn written(&mut self, thread: &mut Thread, at: (Space, u64), width: u64, value: u64, lacks: u64) {
        self.written_as(thread, at, width, (value, lacks), false);
    }

    /// The same, for a store that may be strong.
    pub fn written_as(
        &mut self,
        thread: &mut Thread,
        at: (Space, u64),
        width: u64,
        (value, lacks): (u64, u64),
        strong: bool,
    ) {
        let there = self.shared.get(at.1 as usize..).unwrap_or_default().iter().take(width as usize).enumerate();
        let same = there.fold(0, |same, (i, old)| same | u32::from((value >> (8 * i)) as u8 == *old) << i);
        self.race(thread, at, width, (true, strong), same);
        self.lack_at(thread, at, width, lacks);
    }

    /// Marks bits of up to 8 written bytes as undefined; in global memory that is a report.
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

    /// Records what the order of a strong load or store puts before and behind it.
    pub fn strongly(&mut self, thread: &Thread, at: (Space, u64), store: bool) {
        let (warp, key) = (thread.warp as usize, lock_of(at));
        if store { self.seen.races.release(warp, key) } else { self.seen.races.acquire(warp, key) }
    }

    /// Records an atomic access. Returns whether it found undefined bits; an exchange (`puts`)
    /// defines them.
    pub fn atomically(&mut self, thread: &mut Thread, at: (Space, u64), width: u64, puts: bool) -> bool {
        self.seen.races.synchronise(thread.warp as usize, lock_of(at), self.steps as u32);
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
        if !is_shared(space) || thread.warp as usize >= LANES || !self.env.is_alone() {
            return;
        }
        let pc = self.env.program.functions[thread.function].insts[thread.pc].pos.line;
        let (warp, lane, step) = (thread.warp as usize, thread.lane as usize, self.steps as u32);
        let access =
            Access { at, bytes: width as u8, store, atomic, loose: false, same, warp, lane, group: u32::MAX, step, pc };
        let Some(race) = self.seen.races.access(access, self.shared.len()) else { return };
        if race.other.is_beside(&access) {
            return;
        }
        let text = race.text(&format!("line {}", race.other.pc));
        self.find(thread, Fault::of(Kind::Race, text).about(race.at), race.benign);
    }
}

/// An address as the race detector knows it.
fn lock_of((space, at): (Space, u64)) -> u64 {
    at | u64::from(is_shared(space)) << 63
}

fn is_shared(space: Space) -> bool {
    matches!(space, Space::Shared | Space::SharedCta | Space::SharedCluster)
}

/// Marks bits of a result as undefined.
pub fn lack(thread: &mut Thread, sink: Sink, bits: u64) {
    if let Some(dst) = sink.filter(|_| bits != 0) {
        thread.lack(dst, bits);
    }
}
