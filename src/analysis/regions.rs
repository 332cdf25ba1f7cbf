//! Regions of divergent branches: where one group of lanes runs while all others wait.
//!
//! A region is what is reachable from a branch before its reconvergence point. If at most one way
//! out of the branch does anything there, and the lanes that take the others come to that point and
//! wait, then one group of lanes runs in the region, whichever divergent branches it comes to, as
//! long as their regions are such too: a loop that lanes leave one by one, an arm that some skip.
//! There, a uniform register may be written. Two kinds of blocks are interleaved nevertheless:
//! - blocks that lanes cross on a quiet way: while they do, the others may run on, and write
//!   registers that do not live there;
//! - blocks from which no lane comes to the reconvergence point: they end, and what only the lanes
//!   that wait will read does not live there.
//!
//! A way is quiet if no block that it comes to before the reconvergence point names a uniform
//! register that the allocator will choose; in SSA form, if these make nothing but values, as PHIs
//! behind it need them. If one way out of a branch is not quiet, it is held. If all are, in SSA
//! form, the longest is, the first of several: as soon as it names a uniform register it is quiet
//! no more. That is done only beside ways that are straight, or that read nothing from outside
//! which could be in a uniform register: held up by others they may not read it there.

use crate::ori::cfg::{BlockSet, Cfg};
use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::tables::registers::Callee;
use crate::tables::{Op, Prop};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// The longest quiet way in SSA form, in blocks. What is decided there stays true when edges get
/// blocks of their own, so any length will do out of SSA form.
const LONGEST: usize = 16;

/// The blocks that lanes may come to from a branch before its reconvergence point.
pub struct Region {
    branch: Block,
    meet: Block,
    set: BlockSet,
    blocks: Vec<Block>,
}

/// The interleaved blocks of a region.
#[derive(Default)]
pub struct Sides {
    /// Interleaved, but for those of `aside`.
    pub interleaved: Vec<Block>,
    /// Blocks of quiet ways beside what is held.
    pub aside: Vec<Block>,
}

impl Region {
    /// An empty one of a function with blocks below `limit`.
    pub fn new(limit: usize, branch: Block, meet: Block) -> Region {
        Region { branch, meet, set: BlockSet::new(limit), blocks: Vec::new() }
    }

    /// Adds a block; returns whether it is new.
    #[inline]
    pub fn insert(&mut self, block: Block) -> bool {
        let new = self.set.insert(block);
        self.blocks.extend(new.then_some(block));
        new
    }

    /// The interleaved blocks. Lanes that are not `apart` at the end of a block came together in
    /// it; what does not vary may be in a uniform register.
    pub fn sides(
        &self,
        function: &Function,
        cfg: &Cfg,
        apart: impl Fn(Block) -> bool,
        varies: impl Fn(VReg) -> bool,
    ) -> Sides {
        let mut ways: SmallVec<[Block; 4]> = SmallVec::new();
        for way in cfg.succs[self.branch].iter().filter(|way| **way != self.meet) {
            if !ways.contains(way) {
                ways.push(*way);
            }
        }
        let mut sides = Sides::default();
        if ways.len() > 1 {
            match self.aside(function, cfg, &ways, varies) {
                Some(aside) => sides.aside = aside,
                None => {
                    sides.interleaved.clone_from(&self.blocks);
                    return sides;
                }
            }
        }
        sides.interleaved = self.ending(function, cfg, apart);
        sides
    }

    /// The blocks of all ways but one that is held; `None` where several need to be.
    fn aside(
        &self,
        function: &Function,
        cfg: &Cfg,
        ways: &[Block],
        varies: impl Fn(VReg) -> bool,
    ) -> Option<Vec<Block>> {
        let straight = ways.iter().map(|way| self.straight(function, cfg, *way));
        let (straight, others): (Vec<_>, Vec<_>) = straight.partition(Option::is_some);
        // In SSA form, what such a way computes for PHIs must need no uniform register later.
        let calm = |way: &Vec<Block>| !function.is_ssa() || way.iter().all(|block| makes_values(function, *block));
        if others.len() == 1 && straight.iter().flatten().all(calm) {
            return Some(straight.into_iter().flatten().flatten().collect());
        }
        let quiet = |way: &Block| self.quiet(function, cfg, *way).filter(|way| is_closed(function, way, &varies));
        let mut quiet: Vec<Vec<Block>> = ways.iter().filter_map(quiet).filter(calm).collect();
        let held = ways.len() - quiet.len();
        if held == 0 && function.is_ssa() {
            let size = |way: &Vec<Block>| way.iter().map(|block| function[*block].len()).sum::<usize>();
            let longest = (0..quiet.len()).rev().max_by_key(|at| size(&quiet[*at]))?;
            quiet.remove(longest);
        } else if held != 1 {
            return None;
        }
        Some(quiet.into_iter().flatten().collect())
    }

    /// The blocks from a way out of the branch to the reconvergence point, if that is straight.
    fn straight(&self, function: &Function, cfg: &Cfg, from: Block) -> Option<Vec<Block>> {
        let way = self.quiet(function, cfg, from)?;
        way.iter().all(|block| cfg.succs[*block].len() == 1).then_some(way)
    }

    /// The blocks from a way out of the branch to the reconvergence point, if they name no uniform
    /// register that the allocator will choose and are not too many.
    fn quiet(&self, function: &Function, cfg: &Cfg, from: Block) -> Option<Vec<Block>> {
        let plain = |inst: &InstId| {
            let parts = function.callee(*inst).is_some_and(Callee::parts_lanes);
            !parts && !names_uniform(function, *inst)
        };
        let most = if function.is_ssa() { LONGEST } else { usize::MAX };
        let (mut way, mut next) = (vec![from], 0);
        let mut seen = BlockSet::new(function.block_limit());
        seen.insert(from);
        while let Some(block) = way.get(next).copied() {
            next += 1;
            if way.len() > most || !self.set.contains(block) || !function[block].iter().all(plain) {
                return None;
            }
            for succ in cfg.succs[block].iter().filter(|succ| **succ != self.meet) {
                if seen.insert(*succ) {
                    way.push(*succ);
                }
            }
        }
        Some(way)
    }

    /// The blocks from which no lane comes to the reconvergence point.
    fn ending(&self, function: &Function, cfg: &Cfg, apart: impl Fn(Block) -> bool) -> Vec<Block> {
        let arrives = |block: &Block| cfg.succs[*block].contains(&self.meet) || !apart(*block);
        let mut work: Vec<Block> = self.blocks.iter().copied().filter(arrives).collect();
        if work.len() == self.blocks.len() {
            return Vec::new();
        }
        let mut arriving = BlockSet::new(function.block_limit());
        work.iter().for_each(|block| {
            arriving.insert(*block);
        });
        while let Some(block) = work.pop() {
            for pred in cfg.preds[block].iter().filter(|pred| self.set.contains(**pred)) {
                if arriving.insert(*pred) {
                    work.push(*pred);
                }
            }
        }
        self.blocks.iter().copied().filter(|block| !arriving.contains(*block)).collect()
    }

    /// Whether what is defined here may be read behind: in SSA form, only where the branch is in a
    /// cycle here, because a definition dominates what reads it.
    pub fn may_leave_values(&self, function: &Function) -> bool {
        !function.is_ssa() || self.set.contains(self.branch)
    }
}

/// Whether blocks in SSA form read nothing from outside that is the same in all lanes: beside a
/// held way they may not read it in a uniform register.
fn is_closed(function: &Function, way: &[Block], varies: impl Fn(VReg) -> bool) -> bool {
    if !function.is_ssa() {
        return true;
    }
    let insts = || way.iter().flat_map(|block| &function[*block]);
    let mut within: SmallVec<[VReg; 16]> = SmallVec::new();
    insts().for_each(|inst| function.for_each_def(*inst, |reg| within.push(reg)));
    insts().all(|inst| {
        let mut closed = !function[*inst].op.has(Prop::LoadsConstant);
        function.for_each_use(*inst, |reg| closed &= varies(reg) || within.contains(&reg));
        closed
    })
}

/// Whether a block does nothing but make values of values, of constants among them, and nothing in
/// it may become branches and calls.
fn makes_values(function: &Function, block: Block) -> bool {
    let body = &function[block][..function.first_terminator(block)];
    body.iter().all(|inst| {
        let op = function[*inst].op;
        let expands = op.has(Prop::Pseudo) && !op.has(Prop::Bookkeeping);
        op == Op::PHI || op.has(Prop::Copies) || op.has(Prop::Pure) && !expands
    })
}

/// Whether an instruction reads or writes a uniform register that the allocator will choose.
fn names_uniform(function: &Function, inst: InstId) -> bool {
    let mut names = false;
    let mut note = |reg: VReg| names |= is_chosen_uniform(function, reg);
    function.for_each_def(inst, &mut note);
    function.for_each_use(inst, &mut note);
    names
}

/// Whether a register is a uniform one that the allocator will choose.
pub fn is_chosen_uniform(function: &Function, reg: VReg) -> bool {
    is_uniform(function, reg) && function[reg].phys.is_none()
}

/// Whether a register is a uniform one whose number is given.
pub fn is_numbered_uniform(function: &Function, reg: VReg) -> bool {
    is_uniform(function, reg) && function[reg].phys.is_some()
}

fn is_uniform(function: &Function, reg: VReg) -> bool {
    matches!(function[reg].file, File::UR | File::UP)
}

/// Which registers live at the starts of blocks, and where they are defined.
pub struct Lives {
    liveness: Liveness,
    /// The last of the blocks that define a register, by its number in `homes`; 0 is none.
    last: SecondaryMap<VReg, u32>,
    /// Blocks that define a register, each with the one before; the first of all stands for none.
    homes: Vec<(Block, u32)>,
}

impl Lives {
    /// Of a function.
    pub fn new(function: &Function, cfg: &Cfg) -> Lives {
        let mut last: SecondaryMap<VReg, u32> = table(function.regs().len());
        let mut homes = vec![(function.entry(), 0)];
        for block in &cfg.rpo {
            for inst in &function[*block] {
                function.for_each_def(*inst, |reg| {
                    let before = last[reg];
                    if before == 0 || homes[before as usize].0 != *block {
                        last[reg] = homes.len() as u32;
                        homes.push((*block, before));
                    }
                });
            }
        }
        Lives { liveness: Liveness::at_start(function, cfg), last, homes }
    }

    /// Whether a block of a region defines a register.
    fn is_defined(&self, reg: VReg, region: &Region) -> bool {
        let mut at = self.last[reg];
        while at != 0 {
            let (home, before) = self.homes[at as usize];
            if region.set.contains(home) {
                return true;
            }
            at = before;
        }
        false
    }

    /// The registers that are defined in a region and live at its reconvergence point. A uniform
    /// register is the same for all lanes, whenever they read it.
    pub fn left_by(&self, function: &Function, region: &Region, mut left: impl FnMut(VReg)) {
        for reg in &self.liveness.live[region.meet] {
            if !is_uniform(function, *reg) && self.is_defined(*reg, region) {
                left(*reg);
            }
        }
    }
}
