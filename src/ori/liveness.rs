//! Live registers at block boundaries, in or out of SSA form.
//!
//! A guarded definition does not end a live range, because the old value survives if the guard is
//! false. The inputs of a PHI are live at the end of the predecessors they come from, not at the
//! start of the PHI's block. Only registers that live at the end of some block are looked at: as
//! sets, where these are few words for what the code does with the registers, else one by one, so
//! that memory is linear in the size of the code and of the result.

use super::cfg::Cfg;
use super::function::{Block, Function, InstId, VReg};
use super::live_blocks::{by_register, by_sets};
use super::operand::Kind;
use crate::tables::Op;
use cranelift_entity::EntityRef;
use std::ops::Index;

/// A set of registers.
#[derive(Clone, Debug, Default)]
pub struct RegSet(Vec<u64>);

impl PartialEq for RegSet {
    /// Sets are equal if they have the same registers, whatever they can hold.
    fn eq(&self, other: &RegSet) -> bool {
        let common = self.0.len().min(other.0.len());
        let none = |set: &RegSet| set.0[common..].iter().all(|word| *word == 0);
        self.0[..common] == other.0[..common] && none(self) && none(other)
    }
}

impl Eq for RegSet {}

impl RegSet {
    /// An empty set for registers with numbers below `limit`.
    pub fn new(limit: usize) -> RegSet {
        RegSet(vec![0; limit.div_ceil(64)])
    }
    /// A number above those of all registers that it can hold.
    pub fn limit(&self) -> usize {
        64 * self.0.len()
    }
    /// Adds a register; returns whether it is new.
    pub fn insert(&mut self, reg: VReg) -> bool {
        let (word, bit) = (reg.index() / 64, 1u64 << (reg.index() % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
    /// Removes a register; returns whether it was in the set.
    pub fn remove(&mut self, reg: VReg) -> bool {
        let (word, bit) = (reg.index() / 64, 1u64 << (reg.index() % 64));
        let there = self.0[word] & bit != 0;
        self.0[word] &= !bit;
        there
    }
    /// The registers in the set, in ascending order.
    fn iter(&self) -> impl Iterator<Item = VReg> {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(VReg::from_u32(64 * word as u32 + bit))
            })
        })
    }
    /// Whether a register is in the set.
    pub fn contains(&self, reg: VReg) -> bool {
        self.0.get(reg.index() / 64).is_some_and(|w| w >> (reg.index() % 64) & 1 != 0)
    }
}

/// Live registers at the start or end of every block, in ascending order.
#[derive(Clone, PartialEq, Eq)]
pub struct Liveness {
    /// Live registers of each block, ascending.
    pub live: LiveLists,
    at_start: bool,
}

/// The registers of each block.
#[derive(Clone, PartialEq, Eq)]
pub struct LiveLists(Lists<VReg>);

impl Index<Block> for LiveLists {
    type Output = [VReg];

    #[inline]
    fn index(&self, block: Block) -> &[VReg] {
        self.0.of(block.index())
    }
}

impl Liveness {
    /// At the start of each block.
    pub fn at_start(function: &Function, cfg: &Cfg) -> Liveness {
        let events = Events::new(function, cfg, |_| false, false);
        solve(function, cfg, &events, true)
    }

    /// Live registers at the end of each block, outside SSA form, ignoring the instructions that
    /// `skip` names. A guarded definition also reads the old value, so its register is live before
    /// it.
    pub fn at_end(function: &Function, cfg: &Cfg, skip: impl Fn(InstId) -> bool) -> Liveness {
        let events = Events::new(function, cfg, skip, true);
        solve(function, cfg, &events, false)
    }

    /// Whether a register is live at the computed end of a block.
    #[inline]
    pub fn contains(&self, block: Block, reg: VReg) -> bool {
        self.live[block].binary_search(&reg).is_ok()
    }
}

/// Lists by number, concatenated.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Lists<T> {
    /// Start of each list, and the end of the last that is not empty.
    first: Vec<u32>,
    all: Vec<T>,
}

impl<T: Copy> Lists<T> {
    /// The lists of these pairs of a number below `count` and an element, in their order.
    pub(super) fn new(count: usize, pairs: impl Iterator<Item = (usize, T)> + Clone) -> Lists<T> {
        // The end of a list is where the next begins; until all are filled, each stands one later.
        let mut first = vec![0u32; count + 2];
        pairs.clone().for_each(|(number, _)| first[number + 2] += 1);
        for number in 2..first.len() {
            first[number] += first[number - 1];
        }
        let Some((_, some)) = pairs.clone().next() else { return Lists::finished(Vec::new(), Vec::new()) };
        let mut all = vec![some; first[count + 1] as usize];
        for (number, element) in pairs {
            let at = &mut first[number + 1];
            all[*at as usize] = element;
            *at += 1;
        }
        Lists::finished(first, all)
    }

    /// Equal lists are equal, however many empty ones follow.
    pub(super) fn finished(mut first: Vec<u32>, all: Vec<T>) -> Lists<T> {
        first.truncate(if all.is_empty() { 0 } else { first.partition_point(|start| *start < all.len() as u32) + 1 });
        Lists { first, all }
    }

    #[inline]
    pub(super) fn of(&self, number: usize) -> &[T] {
        match self.first.get(number..number + 2) {
            Some(ends) => &self.all[ends[0] as usize..ends[1] as usize],
            None => &[],
        }
    }
}

/// Uses and definitions of the registers that live at an end of a block, as pairs of a register's
/// number in `regs` and a block.
pub(super) struct Events {
    /// The registers, ascending.
    pub regs: Vec<VReg>,
    /// Blocks that use a register before they define it.
    pub reads: Vec<(u32, Block)>,
    /// Blocks at whose end a PHI uses it.
    pub leaves: Vec<(u32, Block)>,
    /// Blocks that end its live range by a definition.
    pub kills: Vec<(u32, Block)>,
}

pub(super) const NEVER: u32 = u32::MAX;

/// The last blocks that wrote and read a register before it was written, by their places.
#[derive(Clone, Copy)]
struct Last {
    written: u32,
    read: u32,
}

impl Events {
    fn new(function: &Function, cfg: &Cfg, skip: impl Fn(InstId) -> bool, old_values: bool) -> Events {
        let (mut reads, mut leaves, mut kills) = (Vec::new(), Vec::new(), Vec::new());
        let limit = function.regs().len();
        // The last blocks that wrote and read each register.
        let mut last = vec![Last { written: NEVER, read: NEVER }; limit];
        for (i, block) in cfg.rpo.iter().enumerate() {
            let i = i as u32;
            for inst in function[*block].iter().copied().filter(|inst| !skip(*inst)) {
                let data = &function[inst];
                let mut note = |reg: VReg| {
                    let last = &mut last[reg.index()];
                    if last.written != i && last.read != i {
                        last.read = i;
                        reads.push((reg.as_u32(), *block));
                    }
                };
                if data.op == Op::PHI {
                    phi_inputs(function, inst, |pred, reg| leaves.push((reg.as_u32(), pred)));
                } else {
                    function.for_each_use(inst, &mut note);
                }
                if data.guard.is_null() || function.is_ssa() {
                    function.for_each_def(inst, |reg| {
                        if std::mem::replace(&mut last[reg.index()].written, i) != i {
                            kills.push((reg.as_u32(), *block));
                        }
                    });
                } else if old_values {
                    function.for_each_def(inst, &mut note);
                }
            }
        }
        // Most registers are read in the block that defines them, and nowhere else.
        let mut leaving = RegSet::new(limit);
        reads.iter().chain(&leaves).for_each(|(reg, _)| {
            leaving.insert(VReg::from_u32(*reg));
        });
        kills.retain(|(reg, _)| leaving.contains(VReg::from_u32(*reg)));
        let regs: Vec<VReg> = leaving.iter().collect();
        regs.iter().zip(0..).for_each(|(reg, n)| last[reg.index()].read = n);
        for pair in reads.iter_mut().chain(&mut leaves).chain(&mut kills) {
            pair.0 = last[pair.0 as usize].read;
        }
        Events { regs, reads, leaves, kills }
    }
}

fn phi_inputs(function: &Function, phi: InstId, mut f: impl FnMut(Block, VReg)) {
    for pair in function.args(phi)[1..].chunks_exact(2) {
        if let Kind::Label(pred) = pair[0].kind() {
            function.for_each_reg(pair[1], |reg| f(pred, reg));
        }
    }
}

/// Words of a set for each use or definition up to which sets cost less than following registers.
const WORDS: usize = 16;

fn solve(function: &Function, cfg: &Cfg, events: &Events, at_start: bool) -> Liveness {
    let words = events.regs.len().div_ceil(64) * function.block_limit();
    let sets = words <= WORDS * (events.reads.len() + events.leaves.len() + events.kills.len());
    let live =
        if sets { by_sets(function, cfg, events, at_start) } else { by_register(function, cfg, events, at_start) };
    Liveness { live: LiveLists(live), at_start }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    #[test]
    fn both_ways_agree() {
        let source = "function k sm_90\nb0:\n  MOV d=r0 a=Z\n  MOV d=r1 a=Z\n  BRA target=b1\nb1:\n  BRA target=b2\n\
                      b2:\n  MOV d=r2 a=r0\n  @p0 BRA target=b2\n  BRA target=b3\nb3:\n  MOV d=r0 a=r2\n\
                      @p0 BRA target=b1\n  BRA target=b4\nb4:\n  MOV d=r3 a=r1\n  EXIT\n";
        let function = text::parse(source).unwrap();
        let cfg = Cfg::new(&function);
        let events = Events::new(&function, &cfg, |_| false, true);
        for at_start in [false, true] {
            let [one, two] = [by_sets, by_register].map(|way| way(&function, &cfg, &events, at_start));
            assert!(one == two && (0..5).any(|block| !one.of(block).is_empty()));
        }
    }
}
