//! Plan of the convergence regions: where lanes that part must meet again.
//!
//! Input: a function without BSSY and BSYNC. Output: groups, one for each meeting block, with the places where the lanes
//! enrol (BSSY) and the edges on which they wait (BSYNC). The machine's rule is that every lane that enrols at a barrier
//! waits for all lanes which enrolled with it, unless they exit. Invariants that make this safe:
//!  1. every surviving path from an enrolment leads to the meeting block (it post-dominates the enrolment);
//!  2. no lane enrols twice without meeting in between (a branch in a cycle enrols where the cycle is entered);
//!  3. on each edge into the meeting block either all lanes have enrolled or none has;
//!  4. no region contains a loop that may wait for another lane.
//!
//! A branch whose group cannot satisfy these stays without a meeting place: its lanes run apart from there on, which costs
//! time, never correctness.

use super::spin::waiting_blocks;
use crate::ori::cfg::{BlockSet, Cfg, Cycles, Dominators, cycles_among, reach};
use crate::ori::varying::{Varying, analyse, branch_varies};
use crate::ori::{Block, Function};

/// Where the lanes of one group enrol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enrol {
    /// In a block, before its branch.
    Branch(Block),
    /// On the edges from outside a cycle into this entry of it.
    Entry(Block),
}

/// One meeting block with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Group {
    pub meet: Block,
    pub enrol: Vec<Enrol>,
    /// Predecessors of the meeting block on whose edges the lanes wait.
    pub waiting: Vec<Block>,
    /// Blocks in which a lane may be enrolled.
    pub region: BlockSet,
}

/// The plan for a function.
pub struct Plan {
    pub groups: Vec<Group>,
    pub varying: Varying,
    /// Blocks of loops that may wait for another lane.
    pub spinning: BlockSet,
}

struct Planner<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    post: Dominators,
    dom: Dominators,
    /// Branch blocks that must do without a meeting place.
    apart: BlockSet,
    spinning: BlockSet,
}

/// Makes the plan.
pub fn plan(function: &Function, cfg: &Cfg) -> Plan {
    let limit = function.block_limit();
    let mut planner = Planner {
        function,
        cfg,
        post: cfg.post_dominators(function),
        dom: cfg.dominators(),
        apart: BlockSet::new(limit),
        spinning: waiting_blocks(function, cfg),
    };
    planner.part_spinning();
    loop {
        let varying = analyse(function, cfg, |b| planner.meeting(b));
        match planner.groups(&varying) {
            Ok(groups) => return Plan { groups, varying, spinning: planner.spinning },
            // Each failure leaves at least one more branch apart, so this ends.
            Err(branches) => branches.iter().for_each(|b| {
                planner.apart.insert(*b);
            }),
        }
    }
}

impl Planner<'_> {
    fn meeting(&self, branch: Block) -> Option<Block> {
        if self.apart.contains(branch) { None } else { self.post.parent(branch) }
    }

    /// Rule 4.
    fn part_spinning(&mut self) {
        for block in self.cfg.rpo.iter().filter(|b| self.cfg.succs[**b].len() > 1) {
            let Some(meet) = self.post.parent(*block) else { continue };
            let region = reach(self.cfg, &self.cfg.succs[*block], Some(meet), self.function.block_limit());
            if region.intersects(&self.spinning) || self.spinning.contains(*block) {
                self.apart.insert(*block);
            }
        }
    }

    /// Groups for all divergent branches that may have one, or the branches of a group that failed.
    fn groups(&self, varying: &Varying) -> Result<Vec<Group>, Vec<Block>> {
        let mut by_meet: Vec<(Block, Vec<Block>)> = Vec::new();
        for block in &self.cfg.rpo {
            let Some(meet) = self.meeting(*block) else { continue };
            if !branch_varies(self.function, self.cfg, *block, &varying.regs) {
                continue;
            }
            match by_meet.iter_mut().find(|g| g.0 == meet) {
                Some(group) => group.1.push(*block),
                None => by_meet.push((meet, vec![*block])),
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        for (meet, branches) in by_meet {
            groups.push(self.group(meet, &branches).ok_or(branches)?);
        }
        Ok(groups)
    }

    fn group(&self, meet: Block, branches: &[Block]) -> Option<Group> {
        let others: Vec<Block> = self.cfg.rpo.iter().copied().filter(|b| *b != meet).collect();
        let cycles = cycles_among(self.cfg, &others);
        let mut enrol: Vec<Enrol> = Vec::new();
        for branch in branches {
            let (_, must) = self.coverage(meet, &enrol, &cycles);
            if must.contains(*branch) {
                continue;
            }
            match cycles.of[*branch] {
                None => enrol.push(Enrol::Branch(*branch)),
                Some(cycle) => enrol.extend(self.entries(&cycles.members[cycle as usize]).map(Enrol::Entry)),
            }
        }
        if enrol.len() == 1 {
            return self.checked(meet, enrol, &cycles);
        }
        // One place for all is better than several: their lanes then wait for each other too.
        self.single(meet, &enrol, &cycles).or_else(|| self.checked(meet, enrol, &cycles))
    }

    /// The group with one enrolment, in the block that dominates all of these places.
    fn single(&self, meet: Block, enrol: &[Enrol], cycles: &Cycles) -> Option<Group> {
        let blocks = enrol.iter().map(|e| match *e {
            Enrol::Branch(block) | Enrol::Entry(block) => block,
        });
        let top = blocks.map(Some).reduce(|a, b| self.dom.common(a?, b?))??;
        let usable = cycles.of[top].is_none() && top != meet && self.post.dominates(meet, top);
        usable.then(|| self.checked(meet, vec![Enrol::Branch(top)], cycles)).flatten()
    }

    /// Blocks of a cycle that are entered from outside.
    fn entries<'b>(&'b self, members: &'b [Block]) -> impl Iterator<Item = Block> + 'b {
        members
            .iter()
            .copied()
            .filter(|b| *b == self.function.entry() || self.cfg.preds[*b].iter().any(|p| !members.contains(p)))
    }

    /// The group, if it keeps rules 1 to 3.
    fn checked(&self, meet: Block, enrol: Vec<Enrol>, cycles: &Cycles) -> Option<Group> {
        let (may, must) = self.coverage(meet, &enrol, cycles);
        for place in &enrol {
            let (block, before) = match *place {
                Enrol::Branch(block) => (block, may_in(self.cfg, meet, &may, block, &enrol)),
                Enrol::Entry(block) => {
                    let members = &cycles.members[cycles.of[block]? as usize];
                    let outside = self.cfg.preds[block].iter().filter(|p| !members.contains(p));
                    (block, outside.into_iter().any(|p| *p != meet && may.contains(*p)))
                }
            };
            if before || !self.post.dominates(meet, block) || block == self.function.entry() && is_entry(place) {
                return None;
            }
        }
        let mut waiting = Vec::new();
        for pred in self.cfg.preds[meet].iter().filter(|p| **p != meet) {
            match (may.contains(*pred), must.contains(*pred)) {
                (true, true) => waiting.push(*pred),
                (false, false) => {}
                _ => return None,
            }
        }
        Some(Group { meet, enrol, waiting, region: may })
    }

    /// Blocks at whose end a lane may, and blocks at whose end every lane must, be enrolled.
    fn coverage(&self, meet: Block, enrol: &[Enrol], cycles: &Cycles) -> (BlockSet, BlockSet) {
        let limit = self.function.block_limit();
        let sources = |block: Block, pred: Block| {
            // Lanes that come over an edge into a cycle's entry from outside enrol on that edge.
            enrol.contains(&Enrol::Entry(block))
                && cycles.of[block].is_some_and(|c| !cycles.members[c as usize].contains(&pred))
        };
        let mut may = BlockSet::new(limit);
        let mut must_not = BlockSet::new(limit);
        let mut changed = true;
        while changed {
            changed = false;
            for block in &self.cfg.rpo {
                let here = enrol.contains(&Enrol::Branch(*block));
                let preds = &self.cfg.preds[*block];
                let any = preds.iter().any(|p| sources(*block, *p) || may.contains(*p) && *p != meet);
                let open = |p: &Block| !sources(*block, *p) && (must_not.contains(*p) || *p == meet);
                let none = *block == self.function.entry() || preds.iter().any(open);
                let (any, none) = if *block == meet { (false, true) } else { (any, none) };
                if (here || any) && may.insert(*block) {
                    changed = true;
                }
                if !here && none && must_not.insert(*block) {
                    changed = true;
                }
            }
        }
        let mut must = BlockSet::new(limit);
        for block in self.cfg.rpo.iter().filter(|b| !must_not.contains(**b)) {
            must.insert(*block);
        }
        (may, must)
    }
}

fn is_entry(place: &Enrol) -> bool {
    matches!(place, Enrol::Entry(_))
}

/// Whether a lane may be enrolled when it reaches the start of a block.
fn may_in(cfg: &Cfg, meet: Block, may: &BlockSet, block: Block, enrol: &[Enrol]) -> bool {
    enrol.contains(&Enrol::Entry(block)) || cfg.preds[block].iter().any(|p| *p != meet && may.contains(*p))
}
