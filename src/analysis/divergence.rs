//! Divergence analysis: which registers may differ between the lanes of a warp, and which blocks
//! may execute with only some of its living lanes.
//!
//! Works in or out of SSA form. The caller supplies the reconvergence point of each conditional
//! branch, if there is one. The result is conservative. A block is convergent only if every path to
//! it from a divergent branch passes the reconvergence point of that branch or a meeting (an
//! operation that all lanes of the warp execute together, as `.aligned` says), and so does every
//! path to it from a call or from the entry of a device function.
//!
//! A divergent block is interleaved if lanes of the warp that came apart may run elsewhere before
//! they meet again. Otherwise it is held: the lanes that are not in it wait, or have ended, as
//! [`super::regions`] tells. A register is uniform only if each of its definitions has uniform
//! sources, gives all lanes the same result, and is not in an interleaved block; and if no lanes
//! that left a region at different times read it behind.
//!
//! Out of SSA form a pure instruction without a guard gives all lanes the same in an interleaved
//! block too, from what is the same in all of them, if no other instruction writes its result:
//! lanes that are apart have no new value of a source before they meet again, whichever of them
//! comes first. So what `rematerialize` repeats there stays uniform. In SSA form such results
//! count as different, as published.
//!
//! A load by an address that is the same in all lanes is one access for all of them, so its result
//! is the same; ptxas 13.0.88 counts such loads, volatile ones too, as uniform on every target. So
//! is what threads of a warp have in common by their numbers, where `.reqntid` puts each warp in
//! one row of its block.

use super::def_use::{is_free, is_pure, reads_kept};
use super::regions::{Lives, Region};
use super::row_bits::RowBits;
use crate::ori::cfg::{BlockSet, Cfg};
use crate::ori::liveness::RegSet;
use crate::ori::{Block, Convention, Function, InstId, Kind, table};
use crate::tables::encoding::special_is_uniform;
use crate::tables::registers::Callee;
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

/// Mask of all lanes of a warp.
pub const ALL_LANES: u64 = 0xffff_ffff;
/// The last lane, which a shuffle by index without segments names as its limit.
const LAST_LANE: u64 = 31;

/// The varying registers and the divergent blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varying {
    /// Registers that may differ between lanes.
    pub regs: RegSet,
    /// Blocks that may execute with only some of the living lanes.
    pub divergent: BlockSet,
    /// Blocks of these while which others of the warp's lanes may run elsewhere.
    pub interleaved: BlockSet,
    /// Those of `interleaved` that are so from their start; others have a call that parts lanes.
    pub entered: BlockSet,
    /// Blocks of these beside held ones: nothing in them may read a uniform register that a held
    /// block may write.
    pub aside: BlockSet,
    /// Registers that are the same only by the numbers of threads, which differ: they are computed
    /// from what the general file alone has.
    pub numbered: RegSet,
}

/// Computes both; `meet` returns the reconvergence point of a block's branch, or `None` if there is
/// none.
pub fn analyse(
    function: &Function,
    cfg: &Cfg,
    row_bits: Option<&RowBits>,
    meet: impl Fn(Block) -> Option<Block>,
) -> Varying {
    let mut lanes = Lanes::new(function, cfg, row_bits);
    let mut seen_branches = BlockSet::new(function.block_limit());
    for block in &cfg.rpo {
        if comes_apart(function, *block) {
            lanes.divergent.insert(*block);
            lanes.interleaved.insert(*block);
            if *block == function.entry() && function.attributes().convention != Convention::Kernel {
                lanes.entered.insert(*block);
            }
        }
        if lanes.end_apart(*block) {
            lanes.part_behind(*block);
        }
    }
    // How many changes there were, and how many when a block was last looked at: it has to be
    // looked at again if there were more since, its own among them.
    let mut changes = 1;
    let mut known: SecondaryMap<Block, u32> = table(function.block_limit());
    loop {
        let mut changed = false;
        for block in &cfg.rpo {
            if std::mem::replace(&mut known[*block], changes) == changes {
                continue;
            }
            if lanes.results(*block) {
                (changed, changes) = (true, changes + 1);
            }
            if seen_branches.contains(*block) || !branch_varies(function, cfg, *block, &lanes.regs) {
                continue;
            }
            seen_branches.insert(*block);
            match meet(*block) {
                None => lanes.part_behind(*block),
                // If lanes run elsewhere before the branch, they do so beyond its reconvergence
                // point, so its region adds nothing.
                Some(_) if lanes.end_interleaved(*block) => continue,
                Some(meet) => lanes.part_until(*block, meet),
            }
            (changed, changes) = (true, changes + 1);
        }
        if !changed {
            let numbered = lanes.numbered();
            let Lanes { regs, divergent, interleaved, entered, aside, .. } = lanes;
            return Varying { regs, divergent, interleaved, entered, aside, numbered };
        }
    }
}

struct Lanes<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    regs: RegSet,
    divergent: BlockSet,
    interleaved: BlockSet,
    entered: BlockSet,
    aside: BlockSet,
    /// Reconvergence points of divergent branches.
    meets: BlockSet,
    /// Which registers live where, once it is asked.
    lives: Option<Lives>,
    /// The blocks visited by [`Lanes::part_behind`].
    beyond: BlockSet,
    /// Whether lanes are apart at the end of a block, where that does not depend on its start.
    ends: SecondaryMap<Block, Option<bool>>,
    /// Instructions of each block that may turn out to have varying results; `None` before its
    /// first visit.
    open: SecondaryMap<Block, Option<Vec<Open>>>,
    /// Bits that may differ by the numbers of threads.
    row_bits: Option<&'a RowBits>,
    /// Registers with several definitions out of SSA form, once it is asked.
    several: Option<RegSet>,
}

/// An instruction whose results do not vary, as far as is known.
#[derive(Clone, Copy)]
struct Open {
    inst: InstId,
    /// Whether lanes are apart there, where that does not depend on the start of the block.
    apart: Option<bool>,
}

impl<'a> Lanes<'a> {
    fn new(function: &'a Function, cfg: &'a Cfg, row_bits: Option<&'a RowBits>) -> Lanes<'a> {
        let mut ends = SecondaryMap::new();
        for block in &cfg.rpo {
            ends[*block] = function[*block].iter().rev().find_map(|inst| becomes_apart(function, *inst));
        }
        let limit = function.block_limit();
        let (regs, open) = (RegSet::new(function.regs().len()), table(limit));
        Lanes {
            function,
            cfg,
            regs,
            divergent: BlockSet::new(limit),
            interleaved: BlockSet::new(limit),
            entered: BlockSet::new(limit),
            aside: BlockSet::new(limit),
            meets: BlockSet::new(limit),
            lives: None,
            beyond: BlockSet::new(limit),
            ends,
            open,
            row_bits,
            several: None,
        }
    }

    /// Whether lanes may be apart at the end of a block.
    fn end_apart(&self, block: Block) -> bool {
        self.ends[block].unwrap_or_else(|| self.divergent.contains(block))
    }

    /// Whether lanes of the warp may run elsewhere while others are at the end of a block.
    fn end_interleaved(&self, block: Block) -> bool {
        self.ends[block].unwrap_or_else(|| self.interleaved.contains(block))
    }

    /// Marks everything reachable from a block as divergent and interleaved, up to meetings.
    fn part_behind(&mut self, block: Block) {
        let mut work = vec![block];
        while let Some(block) = work.pop() {
            for succ in &self.cfg.succs[block] {
                if self.beyond.insert(*succ) {
                    self.divergent.insert(*succ);
                    self.interleaved.insert(*succ);
                    self.entered.insert(*succ);
                    work.extend(self.end_apart(*succ).then_some(*succ));
                }
            }
        }
    }

    /// Marks what is reachable from a block before the reconvergence point as divergent, up to
    /// meetings, and what of it is interleaved; what is defined there and read behind varies.
    fn part_until(&mut self, block: Block, meet: Block) {
        let mut region = Region::new(self.function.block_limit(), block, meet);
        let mut work = vec![block];
        while let Some(block) = work.pop() {
            for succ in self.cfg.succs[block].iter().filter(|succ| **succ != meet) {
                if region.insert(*succ) {
                    self.divergent.insert(*succ);
                    work.extend(self.end_apart(*succ).then_some(*succ));
                }
            }
        }
        self.meets.insert(meet);
        let sides = region.sides(self.function, self.cfg, |block| self.end_apart(block), |reg| self.regs.contains(reg));
        sides.interleaved.iter().chain(&sides.aside).for_each(|block| {
            self.interleaved.insert(*block);
            self.entered.insert(*block);
        });
        sides.aside.iter().for_each(|block| {
            self.aside.insert(*block);
        });
        if region.may_leave_values(self.function) {
            let lives = self.lives.get_or_insert_with(|| Lives::new(self.function, self.cfg));
            lives.left_by(self.function, &region, |reg| {
                self.regs.insert(reg);
            });
        }
    }

    /// Marks the varying results of a block; whether there are new ones.
    fn results(&mut self, block: Block) -> bool {
        let interleaved = self.interleaved.contains(block);
        let mut changed = false;
        let Some(mut open) = self.open[block].take() else { return self.first_results(block) };
        open.retain(|Open { inst, apart }| {
            let varies =
                apart.unwrap_or(interleaved) && !self.is_function_of_sources(*inst) || self.result_varies(block, *inst);
            if varies {
                self.function.for_each_def(*inst, |reg| changed |= self.regs.insert(reg));
            }
            !varies
        });
        self.open[block] = Some(open);
        changed
    }

    /// The same on the first visit, which goes over all instructions.
    fn first_results(&mut self, block: Block) -> bool {
        let interleaved = self.interleaved.contains(block);
        let (mut apart, mut changed, mut open) = (None, false, Vec::new());
        for inst in &self.function[block] {
            apart = becomes_apart(self.function, *inst).or(apart);
            let varies =
                apart.unwrap_or(interleaved) && !self.is_function_of_sources(*inst) || self.result_varies(block, *inst);
            let mut any = false;
            self.function.for_each_def(*inst, |reg| {
                any = true;
                changed |= varies && self.regs.insert(reg);
            });
            if any && !varies {
                open.push(Open { inst: *inst, apart });
            }
        }
        self.open[block] = Some(open);
        changed
    }

    /// Whether an instruction out of SSA form is pure and the only one that defines its results. A
    /// result without a value may have any, so the same one.
    fn is_function_of_sources(&mut self, inst: InstId) -> bool {
        let function = self.function;
        let undefined = function[inst].op == Op::UNDEF;
        if function.is_ssa() || !undefined && !is_pure(function, inst) && !reads_kept(function, inst) {
            return false;
        }
        let mut free = true;
        function.for_each_use(inst, |reg| free &= is_free(function, reg));
        function.for_each_def(inst, |reg| free &= is_free(function, reg));
        if !free {
            return false;
        }
        let several = self.several.get_or_insert_with(|| {
            let (mut once, mut several) = (RegSet::new(function.regs().len()), RegSet::new(function.regs().len()));
            for inst in function.layout().iter().flat_map(|block| &function[*block]) {
                function.for_each_def(*inst, |reg| {
                    if !once.insert(reg) {
                        several.insert(reg);
                    }
                });
            }
            several
        });
        function.for_each_def(inst, |reg| free &= !several.contains(reg));
        free
    }

    /// Whether lanes that execute an instruction together may get different results.
    fn result_varies(&self, block: Block, inst: InstId) -> bool {
        let (function, data) = (self.function, &self.function[inst]);
        let met = self.meets.contains(block);
        let apart = |from: &Block| self.end_interleaved(*from) || met && self.end_apart(*from);
        if data.op == Op::PHI && self.cfg.preds[block].iter().any(apart) {
            return true;
        }
        let alike = |bits: &RowBits| function.arg(inst, Role::D).as_reg().is_some_and(|d| bits[d] == 0);
        if self.row_bits.is_some_and(alike) {
            return false;
        }
        match results(function, inst) {
            Results::Alike => false,
            Results::Different => self.divergent.contains(block) || !self.is_broadcast(inst),
            Results::AsSources => {
                let mut varies = false;
                function.for_each_use(inst, |reg| varies |= self.regs.contains(reg));
                varies
            }
        }
    }

    /// The registers that do not vary although a source does, and what is computed from them.
    fn numbered(&self) -> RegSet {
        let (function, mut numbered) = (self.function, RegSet::new(self.function.regs().len()));
        let Some(bits) = self.row_bits else { return numbered };
        // What may still turn out to be computed from them, round a loop.
        let (mut open, mut again): (Vec<InstId>, bool) = (Vec::new(), false);
        for inst in self.cfg.rpo.iter().flat_map(|block| &function[*block]) {
            let mut alike = false;
            function.for_each_def(*inst, |reg| alike |= !self.regs.contains(reg));
            if !alike {
                continue;
            }
            let results = results(function, *inst);
            let (mut varies, mut from) = (results == Results::Different, false);
            function.for_each_use(*inst, |reg| {
                varies |= self.regs.contains(reg);
                from |= results == Results::AsSources && numbered.contains(reg);
            });
            function.for_each_def(*inst, |reg| {
                if (bits[reg] == 0 && varies || from) && !self.regs.contains(reg) {
                    again |= numbered.insert(reg);
                }
            });
            open.extend((results == Results::AsSources && !from).then_some(*inst));
        }
        while again {
            again = false;
            open.retain(|inst| {
                let mut from = false;
                function.for_each_use(*inst, |reg| from |= numbered.contains(reg));
                if from {
                    function.for_each_def(*inst, |reg| again |= !self.regs.contains(reg) && numbered.insert(reg));
                }
                !from
            });
        }
        numbered
    }

    /// Whether an instruction is a shuffle that gives all lanes the value of one.
    fn is_broadcast(&self, inst: InstId) -> bool {
        let (function, data) = (self.function, &self.function[inst]);
        let mut varies = !data.guard.is_null();
        function.for_each_reg(function.arg(inst, Role::B), |reg| varies |= self.regs.contains(reg));
        !varies
            && data.op.has(Prop::SelectsLane)
            && data.mods.get(Mod::Shfl) == value::shfl::IDX
            && function.imm_value(function.arg(inst, Role::C)) == Some(LAST_LANE)
    }
}

/// Whether lanes are apart after an instruction, where it decides that: they are after a call,
/// because only some lanes may call a device function, and its lanes need not reconverge; they are
/// not after an operation that they execute together. The lanes that call a slow path together
/// leave it together, and those that call a function of the driver wait for each other behind it.
fn becomes_apart(function: &Function, inst: InstId) -> Option<bool> {
    if function.callee(inst).is_some_and(Callee::parts_lanes) {
        return Some(true);
    }
    is_meeting(function, inst).then_some(false)
}

/// Whether lanes may be apart behind these instructions, if they may be, or are not, before them.
pub fn apart_behind(function: &Function, insts: &[InstId], before: bool) -> bool {
    insts.iter().rev().find_map(|inst| becomes_apart(function, *inst)).unwrap_or(before)
}

/// What lanes get that execute an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// The same.
    Alike,
    /// What may differ whatever they give.
    Different,
    /// The same from the same sources.
    AsSources,
}

/// What lanes get that execute an instruction together; of a PHI, if they came together.
pub fn results(function: &Function, inst: InstId) -> Results {
    let op = function[inst].op;
    match function.arg(inst, Role::S).kind() {
        Kind::Special(number) if special_is_uniform(number) => Results::Alike,
        Kind::Special(_) => Results::Different,
        _ if op.has(Prop::WarpUniformResult) => Results::Alike,
        _ if matches!(function.callee(inst), Some(Callee::SlowPath(_))) => Results::AsSources,
        _ if op.has(Prop::VaryingResult) || op.has(Prop::ReadsMemory) && !op.has(Prop::UniformAccess) => {
            Results::Different
        }
        _ => Results::AsSources,
    }
}

/// Whether an instruction demands that all living lanes of a warp execute it together.
pub fn is_meeting(function: &Function, inst: InstId) -> bool {
    asks_for_all(function, inst) && function[inst].mods.get(Mod::All) == value::all::ALL
}

/// Whether an instruction waits for all living lanes of a warp, be they at it or at another that
/// does.
#[inline]
pub fn asks_for_all(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let all = || function.imm_value(function.arg(inst, Role::A)) == Some(ALL_LANES);
    data.op == Op::SYNCMASK && data.guard.is_null() && all()
}

/// Whether lanes may be diverged in a block regardless of its predecessors.
fn comes_apart(function: &Function, block: Block) -> bool {
    let entered = function.attributes().convention != Convention::Kernel && block == function.entry();
    entered || function[block].iter().any(|i| function.callee(*i).is_some_and(Callee::parts_lanes))
}

/// Whether a block ends with a branch that lanes may take differently.
pub fn branch_varies(function: &Function, cfg: &Cfg, block: Block, regs: &RegSet) -> bool {
    if cfg.succs[block].len() < 2 {
        return false;
    }
    let mut varies = false;
    for inst in function[block].iter().rev().take_while(|i| function[**i].op.has(Prop::Control)) {
        function.for_each_use(*inst, |reg| varies |= regs.contains(reg));
    }
    varies
}
