//! Plans convergence regions: where diverged lanes reconverge.
//!
//! A plan has a group per reconvergence point: the places where lanes join the barrier (BSSY), and
//! the edges on which they wait for it (BSYNC). In the simulator every lane that joined a barrier
//! waits there for all lanes that joined with it, unless they exit. Five rules make this safe:
//! 1. Every surviving path from a BSSY leads to the reconvergence point (it post-dominates the
//!    BSSY).
//! 2. No lane joins twice without reconverging in between (for a branch in a cycle, lanes join
//!    where the cycle is entered).
//! 3. On each edge into the reconvergence point either all lanes have joined or none has.
//! 4. No region contains a loop that may wait for another lane.
//! 5. No region contains a path on which lanes only exit, but meet others of a mask before: those
//!    may wait for them at the reconvergence point.
//!
//! In a persistent loop, which lanes leave by an early exit alone, a branch's reconvergence point
//! is the one on all ways to that exit.
//!
//! A branch whose group cannot satisfy these rules gets no region: its lanes stay diverged, which
//! costs time, never correctness. Work on a group is linear in the blocks between its branches and
//! its reconvergence point. To keep the whole linear, branches within more than [`DEEPEST`] regions
//! get no region either.

use super::divergence::{Varying, analyse, branch_varies};
use super::row_bits;
use super::spin_loops::{waiting_blocks, waits};
use crate::ori::cfg::{BlockSet, Cfg, Cycles, Dominators, cycles_among, reach};
use crate::ori::hash::QuickMap;
use crate::ori::{Block, Function, InstId};
use crate::tables::Prop;
use cranelift_entity::SecondaryMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Nesting depth of regions from which on a branch gets none of its own. Each region keeps a
/// barrier live throughout.
const DEEPEST: u32 = 256;

/// Number of dominators of a branch at which its lanes may join instead.
const EARLIER: usize = 8;

/// Number of post-dominator trees of a function that are looked at: its end, and the exits of
/// persistent loops.
const TREES: usize = 8;

/// Where the lanes of a group join the barrier (BSSY).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enrol {
    /// In a block, before its branch.
    Branch(Block),
    /// On the edges from outside a cycle into this entry of the cycle.
    Entry(Block),
}

/// One reconvergence point with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Group {
    /// The reconvergence point.
    pub meet: Block,
    /// Where lanes join the barrier.
    pub enrol: Vec<Enrol>,
    /// Predecessors of the reconvergence point on whose edges lanes wait (BSYNC).
    pub waiting: Vec<Block>,
    /// Blocks in which a lane may have joined.
    pub region: Vec<Block>,
    /// For each cycle entry at which lanes join, its predecessors outside the cycle.
    pub outside: Vec<(Block, Vec<Block>)>,
}

/// The convergence regions of a function.
pub struct Plan {
    /// The regions, one per reconvergence point.
    pub groups: Vec<Group>,
    /// Divergence, with the reconvergence points of this plan.
    pub varying: Rc<Varying>,
    /// Blocks of loops that may wait for another lane.
    pub spinning: BlockSet,
}

struct Planner<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    /// Post-dominators of the blocks that lanes leave by the end of the function, then of those
    /// that they leave by early exits alone.
    post: Vec<Dominators>,
    dom: &'a Dominators,
    /// Branch blocks that get no region.
    apart: BlockSet,
    spinning: BlockSet,
    /// Whether lanes may wait in cycles of regions, which many regions have in common.
    known: RefCell<QuickMap<Vec<Block>, bool>>,
}

/// Plans the regions of a function with these dominators.
pub fn plan(function: &Function, cfg: &Cfg, dom: &Dominators) -> Plan {
    let limit = function.block_limit();
    let mut planner = Planner {
        function,
        cfg,
        post: cfg.post_dominators_by_exit(function, TREES),
        dom,
        apart: BlockSet::new(limit),
        spinning: waiting_blocks(function, cfg),
        known: RefCell::default(),
    };
    planner.part_deep();
    if !planner.spinning.is_empty() {
        planner.part_around(|planner, _, region| planner.spins(region));
    }
    let meetings = planner.meetings_before_exits();
    if !meetings.is_empty() {
        planner.part_around(|planner, block, region| {
            region.iter().chain([&block]).any(|b| meetings.contains(*b) && planner.rank(*b) > planner.rank(block))
        });
    }
    let row_bits = row_bits::analyse(function, cfg);
    let mut known = Known::default();
    let mut round = 0;
    loop {
        let varying = analyse(function, cfg, row_bits.as_ref(), |b| planner.meeting(b));
        let at_most = if round < ONE_BY_ONE { 1 } else { usize::MAX };
        match planner.groups(&varying, at_most, &mut known) {
            Ok(groups) => return Plan { groups, varying: Rc::new(varying), spinning: planner.spinning },
            // Each failure leaves at least one more branch without a region, so this ends.
            Err(branches) => branches.iter().for_each(|b| {
                planner.apart.insert(*b);
            }),
        }
        round += 1;
    }
}

/// Number of rounds in which groups fail one at a time, because a failed group may make way for
/// another. After that all groups that fail in a round fail together, so that functions with many
/// of them do not need a round for each.
const ONE_BY_ONE: usize = 32;

/// Cached result per reconvergence point: its branches, which alone determine the group, and the
/// group.
type Known = QuickMap<Block, (Vec<Block>, Option<Group>)>;

impl Planner<'_> {
    fn meeting(&self, branch: Block) -> Option<Block> {
        if self.apart.contains(branch) { None } else { self.behind(branch) }
    }

    /// The immediate post-dominator of a block for surviving lanes.
    fn behind(&self, block: Block) -> Option<Block> {
        self.post.get(self.rank(block))?.parent(block)
    }

    /// Which of the trees covers a block; their number, if none does.
    fn rank(&self, block: Block) -> usize {
        self.post.iter().position(|tree| tree.covers(block)).unwrap_or(self.post.len())
    }

    /// Whether surviving lanes come from a block to `meet`.
    fn leads_to(&self, block: Block, meet: Block) -> bool {
        let rank = self.rank(meet);
        self.post.get(rank).is_some_and(|tree| tree.dominates(meet, block))
    }

    /// Whether there is a cycle among blocks in which a lane may wait for another.
    fn spins(&self, region: &[Block]) -> bool {
        let waiting = |cycle: Vec<Block>| {
            let ask = |cycle: &Vec<Block>| waits(self.function, self.cfg, cycle);
            *self.known.borrow_mut().entry(cycle).or_insert_with_key(ask)
        };
        region.iter().any(|b| self.spinning.contains(*b))
            && cycles_among(self.cfg, region).members.into_iter().any(waiting)
    }

    /// Gives up branches that too many regions would surround. Branches with the same reconvergence
    /// point share a region.
    fn part_deep(&mut self) {
        let mut around: SecondaryMap<Block, (u32, Option<Block>)> = SecondaryMap::new();
        for block in &self.cfg.rpo {
            // A dominator comes earlier in this order.
            if let Some(above) = self.dom.parent(*block) {
                let (depth, innermost) = around[above];
                let opened = if self.cfg.succs[above].len() > 1 { self.meeting(above) } else { None };
                let opens = opened.is_some() && opened != innermost && opened != Some(*block);
                around[*block] = if opens { (depth + 1, opened) } else { (depth, innermost) };
            }
            if around[*block].0 >= DEEPEST && self.cfg.succs[*block].len() > 1 {
                self.apart.insert(*block);
            }
        }
    }

    /// Blocks in which lanes wait for others (WARPSYNC, BAR) and from which they do not come to the
    /// end of the function (rule 5).
    fn meetings_before_exits(&self) -> BlockSet {
        let mut set = BlockSet::new(self.function.block_limit());
        let meets = |b: Block| {
            let waits = |i: &InstId| self.function[*i].op.has(Prop::AwaitsLanes);
            self.function[b].iter().any(waits)
        };
        for block in self.cfg.rpo.iter().filter(|b| self.rank(**b) > 0 && meets(**b)) {
            set.insert(*block);
        }
        set
    }

    /// Gives up branches whose region must not be one, of which `bad` is told (rules 4 and 5).
    fn part_around(&mut self, bad: impl Fn(&Self, Block, &[Block]) -> bool) {
        let branches = self.cfg.rpo.iter().filter(|b| self.cfg.succs[**b].len() > 1);
        for block in branches.filter(|b| !self.apart.contains(**b)).copied().collect::<Vec<_>>().iter() {
            let Some(meet) = self.behind(*block) else { continue };
            let region = reach(self.cfg, &self.cfg.succs[*block], Some(meet), self.function.block_limit());
            if bad(self, *block, &region) {
                self.apart.insert(*block);
            }
        }
    }

    /// The groups of all divergent branches that may have one; or the branches of up to `at_most`
    /// groups that failed.
    fn groups(&self, varying: &Varying, at_most: usize, known: &mut Known) -> Result<Vec<Group>, Vec<Block>> {
        let mut by_meet: Vec<(Block, Vec<Block>)> = Vec::new();
        let mut place: SecondaryMap<Block, Option<usize>> = SecondaryMap::new();
        for block in &self.cfg.rpo {
            let Some(meet) = self.meeting(*block) else { continue };
            if !branch_varies(self.function, self.cfg, *block, &varying.regs) {
                continue;
            }
            match place[meet] {
                Some(at) => by_meet[at].1.push(*block),
                None => {
                    place[meet] = Some(by_meet.len());
                    by_meet.push((meet, vec![*block]));
                }
            }
        }
        let (mut failed, mut failures) = (Vec::new(), 0);
        for (meet, branches) in &by_meet {
            let entry = known.entry(*meet).or_default();
            if entry.0 != *branches {
                *entry = (branches.clone(), self.group(*meet, branches));
            }
            if entry.1.is_none() {
                failed.extend(branches);
                failures += 1;
                if failures == at_most {
                    return Err(failed);
                }
            }
        }
        if !failed.is_empty() {
            return Err(failed);
        }
        Ok(by_meet.iter().filter_map(|(meet, _)| known.remove(meet)?.1).collect())
    }

    fn group(&self, meet: Block, branches: &[Block]) -> Option<Group> {
        // A cycle through one of these branches that avoids the reconvergence point consists of
        // blocks that lanes reach without reconverging.
        let cycles = cycles_among(self.cfg, &reach(self.cfg, branches, Some(meet), self.function.block_limit()));
        let mut enrol: Vec<Enrol> = Vec::new();
        let mut covered: Option<Coverage> = None;
        for branch in branches {
            if covered.as_ref().is_some_and(|covered| covered.must(*branch)) {
                continue;
            }
            match cycles.of(*branch) {
                None => enrol.push(Enrol::Branch(*branch)),
                Some(cycle) => enrol.extend(self.entries(&cycles, cycle).map(Enrol::Entry)),
            }
            covered = Some(self.coverage(meet, &enrol, &cycles));
        }
        // A single BSSY is better than several, because all lanes then wait for each other.
        let single = if enrol.len() == 1 { None } else { self.single(meet, &enrol, &cycles) };
        let found = single.or_else(|| self.checked(meet, enrol, covered?, &cycles));
        found.or_else(|| self.earlier(meet, *branches.first()?, &cycles))
    }

    /// The group with a single BSSY before an earlier branch, which all lanes of the group come by:
    /// those that do not come to the later ones have joined as well where they meet.
    fn earlier(&self, meet: Block, branch: Block, cycles: &Cycles) -> Option<Group> {
        let above = std::iter::successors(self.dom.parent(branch), |block| self.dom.parent(*block));
        let joins = |block: &Block| self.cfg.succs[*block].len() > 1 && self.meeting(*block) == Some(meet);
        above.take(EARLIER).filter(joins).find_map(|block| self.single(meet, &[Enrol::Branch(block)], cycles))
    }

    /// The group with a single BSSY in the block that dominates all these places.
    fn single(&self, meet: Block, enrol: &[Enrol], cycles: &Cycles) -> Option<Group> {
        let blocks = enrol.iter().map(|e| match *e {
            Enrol::Branch(block) | Enrol::Entry(block) => block,
        });
        let top = blocks.map(Some).reduce(|a, b| self.dom.common(a?, b?))??;
        let again = || reach(self.cfg, &self.cfg.succs[top], Some(meet), self.function.block_limit()).contains(&top);
        let usable = top != meet && self.leads_to(top, meet) && !again();
        let enrol = vec![Enrol::Branch(top)];
        usable
            .then(|| self.coverage(meet, &enrol, cycles))
            .and_then(|covered| self.checked(meet, enrol, covered, cycles))
    }

    /// Blocks of a cycle with predecessors outside it.
    fn entries<'b>(&'b self, cycles: &'b Cycles, cycle: u32) -> impl Iterator<Item = Block> + 'b {
        let entered = move |b: Block| self.outside(cycles, b).next().is_some();
        cycles.members[cycle as usize].iter().copied().filter(move |b| *b == self.function.entry() || entered(*b))
    }

    /// Predecessors outside the cycle of a block in it.
    fn outside<'b>(&'b self, cycles: &'b Cycles, block: Block) -> impl Iterator<Item = Block> + 'b {
        let own = cycles.of(block);
        self.cfg.preds[block].iter().copied().filter(move |p| cycles.of(*p) != own)
    }

    /// The group with what these places cover, if it satisfies rules 1 to 4.
    fn checked(&self, meet: Block, enrol: Vec<Enrol>, covered: Coverage, cycles: &Cycles) -> Option<Group> {
        if self.spins(&covered.region) {
            return None;
        }
        let mut outside = Vec::new();
        for place in &enrol {
            let (block, before) = match *place {
                Enrol::Branch(block) => (block, covered.comes_in(self.cfg, block)),
                Enrol::Entry(block) => {
                    cycles.of(block)?;
                    outside.push((block, self.outside(cycles, block).collect::<Vec<_>>()));
                    (block, self.outside(cycles, block).any(|p| p != meet && covered.may(p)))
                }
            };
            if before || !self.leads_to(block, meet) || block == self.function.entry() && is_entry(place) {
                return None;
            }
        }
        let mut waiting = Vec::new();
        for pred in self.cfg.preds[meet].iter().filter(|p| **p != meet) {
            match (covered.may(*pred), covered.must(*pred)) {
                (true, true) => waiting.push(*pred),
                (false, false) => {}
                _ => return None,
            }
        }
        Some(Group { meet, enrol, waiting, region: covered.region, outside })
    }

    /// Computes at the end of which blocks a lane may, and every lane must, have joined.
    fn coverage(&self, meet: Block, enrol: &[Enrol], cycles: &Cycles) -> Coverage {
        let limit = self.function.block_limit();
        let (mut here, mut entered) = (BlockSet::new(limit), BlockSet::new(limit));
        for place in enrol {
            match *place {
                Enrol::Branch(block) => here.insert(block),
                Enrol::Entry(block) => entered.insert(block),
            };
        }
        // Lanes join on the edge if they enter a cycle from outside through its entry.
        let enrols = |block: Block, pred: Block| {
            entered.contains(block) && cycles.of(block).is_some_and(|c| cycles.of(pred) != Some(c))
        };
        let starts = enrol.iter().filter_map(|place| match *place {
            Enrol::Branch(block) => Some(block),
            Enrol::Entry(block) => self.cfg.preds[block].iter().any(|p| enrols(block, *p)).then_some(block),
        });
        let starts: Vec<Block> = starts.collect();
        let region = reach(self.cfg, &starts, Some(meet), limit);
        let (mut may, mut must_not) = (BlockSet::new(limit), BlockSet::new(limit));
        region.iter().for_each(|b| {
            may.insert(*b);
        });
        // At the end of a block outside the region no lane has joined.
        let mut work: Vec<Block> = Vec::new();
        for block in &region {
            let open = |p: &Block| !enrols(*block, *p) && (*p == meet || !may.contains(*p));
            let none = *block == self.function.entry() || self.cfg.preds[*block].iter().any(open);
            if none && !here.contains(*block) {
                must_not.insert(*block);
                work.push(*block);
            }
        }
        while let Some(block) = work.pop() {
            for succ in &self.cfg.succs[block] {
                let passes = may.contains(*succ) && !here.contains(*succ) && !enrols(*succ, block);
                if passes && must_not.insert(*succ) {
                    work.push(*succ);
                }
            }
        }
        Coverage { may, must_not, entered, region }
    }
}

/// The extent of a region.
struct Coverage {
    /// Blocks at whose end a lane may have joined, and those of them at whose end a lane may not
    /// have joined.
    may: BlockSet,
    must_not: BlockSet,
    /// Cycle entries at which lanes join.
    entered: BlockSet,
    /// The blocks of `may`.
    region: Vec<Block>,
}

impl Coverage {
    fn may(&self, block: Block) -> bool {
        self.may.contains(block)
    }

    fn must(&self, block: Block) -> bool {
        self.may.contains(block) && !self.must_not.contains(block)
    }

    /// Whether a lane may have joined when it reaches the start of a block. The reconvergence point
    /// is never in the region.
    fn comes_in(&self, cfg: &Cfg, block: Block) -> bool {
        self.entered.contains(block) || cfg.preds[block].iter().any(|p| self.may.contains(*p))
    }
}

fn is_entry(place: &Enrol) -> bool {
    matches!(place, Enrol::Entry(_))
}
