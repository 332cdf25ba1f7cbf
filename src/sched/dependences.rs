//! Dependences between instructions before allocation: what must stay in order.
//!
//! An instruction stays behind the definitions of what it reads, behind the accesses to what it
//! defines, and behind memory accesses that may alias. Two registers with one number count as one.
//! The definition of a value that a later copy moves to another register stays behind the readers
//! of that register, because only then can the copy be coalesced.

use super::accesses::Accesses;
use super::touches::Groups;
use crate::analysis::def_use::{is_free, is_pure};
use crate::analysis::memory_dependence::Memory;
use crate::ori::hash::QuickMap;
use crate::ori::{File, Function, InstId, VReg};
use crate::sorted::SortedMap;
use crate::tables::{Op, Prop};
use cranelift_entity::EntityRef;
use smallvec::SmallVec;

/// Earlier memory accesses of a kind that one is compared with.
const COMPARED: usize = 128;

/// The graph of a sequence of instructions, by position.
pub struct Dependences {
    /// What each one must stay behind.
    pub before: Vec<SmallVec<[Before; 4]>>,
    /// How many must stay behind it.
    pub after: Vec<u32>,
    /// The last instruction that got each one as what it must stay behind, and the place among
    /// what that must stay behind.
    last: Vec<(u32, u32)>,
}

/// An instruction that another must stay behind.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// Its position.
    pub at: u32,
    /// Whether the other reads its result.
    pub read: bool,
}

/// The last writer of a register, and its readers since.
#[derive(Default)]
struct Uses {
    writers: SmallVec<[u32; 4]>,
    readers: SmallVec<[u32; 4]>,
}

/// The uses of registers, by numbers in a table that is otherwise empty.
struct UsesOf<'a> {
    groups: &'a mut Groups,
    all: Vec<(VReg, Uses)>,
}

impl UsesOf<'_> {
    fn get(&self, reg: VReg) -> Option<&Uses> {
        let number = self.groups.0[reg.index()].checked_sub(1)?;
        Some(&self.all[number as usize].1)
    }

    fn entry(&mut self, reg: VReg) -> &mut Uses {
        let number = &mut self.groups.0[reg.index()];
        if *number == 0 {
            self.all.push((reg, Uses::default()));
            *number = self.all.len() as u32;
        }
        &mut self.all[*number as usize - 1].1
    }

    /// Empties the table.
    fn finish(self) {
        self.all.iter().for_each(|(reg, _)| self.groups.0[reg.index()] = 0);
    }
}

impl Dependences {
    /// The graph of instructions, none of which is fixed.
    pub fn new(function: &Function, insts: &[InstId], groups: &mut Groups) -> Dependences {
        Dependences::across(function, insts, groups, |_| false, false)
    }

    /// The graph of instructions among which are fixed ones: nothing passes these, except that a
    /// pure one before them may follow them, and one behind them may precede them if it `rises`.
    pub fn across(
        function: &Function,
        insts: &[InstId],
        groups: &mut Groups,
        fixed: impl Fn(InstId) -> bool,
        rises: bool,
    ) -> Dependences {
        let before = insts.iter().map(|_| SmallVec::new()).collect();
        let mut graph = Dependences { before, after: vec![0; insts.len()], last: vec![(0, 0); insts.len()] };
        // The last fixed instruction, and those since that must not follow the next.
        let (mut last, mut since) = (None, Vec::new());
        let together = !insts.iter().any(|inst| function[*inst].op.has(Prop::NamesLanes));
        let partners = partners(function, insts);
        let mut uses = UsesOf { groups, all: Vec::with_capacity(insts.len()) };
        // Registers that have or must get the same number are one.
        let mut numbered: SortedMap<(File, u16), VReg> = SortedMap::new();
        let mut one = |reg: VReg| {
            let data = &function[reg];
            data.phys.or(data.fixed).map_or(reg, |number| *numbered.entry((data.file, number)).or_insert(reg))
        };
        let mut memory = Accesses::new(COMPARED);
        for (at, inst) in insts.iter().enumerate() {
            let now = at as u32;
            let product = rises && together && is_fragment_product(function, *inst);
            let (stays, free) = (fixed(*inst), product || sinks(function, *inst));
            if stays || !free || !rises {
                last.iter().for_each(|fixed| graph.edge(*fixed, now, false));
            }
            if stays {
                since.drain(..).for_each(|other| graph.edge(other, now, false));
                memory.clear();
                last = Some(now);
            } else if !free {
                since.push(now);
            }
            // By the registers as they are before the instruction's own results.
            let access = Memory::of(function, *inst, |reg| {
                let last = |uses: &Uses| uses.writers.last().copied();
                uses.get(one(reg)).and_then(last).map_or(usize::MAX, |writer| writer as usize)
            });
            function.for_each_use(*inst, |reg| {
                let uses = uses.entry(one(reg));
                uses.writers.iter().for_each(|writer| graph.edge(*writer, now, true));
                uses.readers.push(now);
            });
            let guarded = !function[*inst].guard.is_null();
            let mut write = |reg: VReg, whole: bool| {
                let uses = uses.entry(one(reg));
                uses.writers.iter().chain(&uses.readers).for_each(|other| graph.edge(*other, now, false));
                if whole {
                    uses.readers.clear();
                    uses.writers.clear();
                }
                uses.writers.push(now);
            };
            function.for_each_def(*inst, |reg| write(reg, !guarded));
            partners.get(at).into_iter().flatten().for_each(|reg| write(*reg, false));
            if let Some(access) = access.filter(|_| last != Some(now)) {
                memory.add(now, access, |earlier| graph.edge(earlier, now, false));
            }
        }
        uses.finish();
        graph.last = Vec::new();
        graph
    }

    fn edge(&mut self, from: u32, to: u32, read: bool) {
        let before = &mut self.before[to as usize];
        if from == to {
            return;
        }
        let place = self.last[from as usize];
        match before.get_mut(place.1 as usize) {
            Some(known) if place.0 == to => known.read |= read,
            _ => {
                self.last[from as usize] = (to, before.len() as u32);
                before.push(Before { at: from, read });
                self.after[from as usize] += 1;
            }
        }
    }
}

/// Whether an instruction is a product of a warp's fragments: where its lanes are together all the
/// time, it only writes registers.
fn is_fragment_product(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    data.op.has(Prop::FragmentProduct) && data.guard.is_null()
}

/// Whether an instruction may change places with a fixed one: it only writes registers,
/// none of which all lanes share.
fn sinks(function: &Function, inst: InstId) -> bool {
    let mut sinks = is_pure(function, inst);
    function.for_each_def(inst, |reg| {
        sinks &= is_free(function, reg) && matches!(function[reg].file, File::R | File::P);
    });
    sinks
}

/// Registers that later copies move the results of each instruction to; nothing where there are
/// no copies.
fn partners(function: &Function, insts: &[InstId]) -> Vec<SmallVec<[VReg; 4]>> {
    if insts.iter().all(|inst| function[*inst].op != Op::COPY) {
        return Vec::new();
    }
    let mut copied: QuickMap<VReg, VReg> = QuickMap::default();
    let mut partners: Vec<SmallVec<[VReg; 4]>> = insts.iter().map(|_| SmallVec::new()).collect();
    for (at, inst) in insts.iter().enumerate().rev() {
        if function[*inst].op == Op::COPY {
            let (mut from, mut to) = (None, None);
            function.for_each_use(*inst, |reg| from = from.or(Some(reg)));
            function.for_each_def(*inst, |reg| to = Some(reg));
            if let (Some(from), Some(to)) = (from, to) {
                copied.insert(from, to);
            }
            continue;
        }
        if !copied.is_empty() {
            function.for_each_def(*inst, |reg| partners[at].extend(copied.get(&reg).copied()));
        }
    }
    partners
}
