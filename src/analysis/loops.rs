//! The loop forest: natural loops, each a header that dominates its latches.
//!
//! Guarantee: two loops are disjoint or nested, and a loop's number is below that of the loop around
//! it. An irreducible cycle has no header and is no loop. Near-linear: a block that an inner loop has
//! claimed is never walked again, only that loop's header.

use crate::ori::Block;
use crate::ori::cfg::{Cfg, Dominators};
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;

/// A natural loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(u32);
entity_impl!(LoopId, "loop");

/// A header and all blocks from which it is reached again without leaving through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    pub header: Block,
    /// Blocks of the loop that branch back to the header.
    pub latches: SmallVec<[Block; 2]>,
    /// The loop directly around it.
    pub parent: Option<LoopId>,
    /// Number of loops around its blocks, itself included.
    pub depth: u32,
}

/// All loops of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loops {
    pub all: PrimaryMap<LoopId, Loop>,
    innermost: SecondaryMap<Block, Option<LoopId>>,
}

impl Loops {
    pub fn new(cfg: &Cfg, dominators: &Dominators) -> Loops {
        let mut loops = Loops::default();
        // The header of an inner loop comes behind that of the outer one.
        for header in cfg.rpo.iter().rev().copied() {
            let back = |b: &Block| dominators.dominates(header, *b);
            let latches: SmallVec<[Block; 2]> = cfg.preds[header].iter().copied().filter(back).collect();
            if !latches.is_empty() {
                loops.discover(cfg, header, latches);
            }
        }
        // Outer loops have the greater numbers, so that their depth is known first.
        for id in loops.all.keys().rev() {
            loops.all[id].depth = loops.all[id].parent.map_or(0, |parent| loops.all[parent].depth) + 1;
        }
        loops
    }

    /// Claims the blocks of one loop.
    fn discover(&mut self, cfg: &Cfg, header: Block, latches: SmallVec<[Block; 2]>) {
        let id = self.all.push(Loop { header, latches: latches.clone(), parent: None, depth: 0 });
        self.innermost[header].get_or_insert(id);
        let mut work: Vec<Block> = latches.into_vec();
        while let Some(block) = work.pop() {
            if block == header {
                continue;
            }
            match self.innermost[block] {
                None => {
                    self.innermost[block] = Some(id);
                    work.extend(cfg.preds[block].iter().filter(|p| cfg.reachable(**p)));
                }
                Some(inner) => {
                    let outermost = self.outermost(inner);
                    if outermost != id {
                        self.all[outermost].parent = Some(id);
                        let inner_header = self.all[outermost].header;
                        work.extend(cfg.preds[inner_header].iter().filter(|p| cfg.reachable(**p)));
                    }
                }
            }
        }
    }

    fn outermost(&self, mut id: LoopId) -> LoopId {
        while let Some(parent) = self.all[id].parent {
            id = parent;
        }
        id
    }

    /// The innermost loop that a block is in.
    pub fn innermost(&self, block: Block) -> Option<LoopId> {
        self.innermost[block]
    }

    /// The loops that a block is in, inner ones first.
    pub fn around(&self, block: Block) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(self.innermost[block], |id| self.all[*id].parent)
    }

    /// Whether a block is in a loop.
    pub fn contains(&self, id: LoopId, block: Block) -> bool {
        // Numbers grow outwards.
        self.around(block).take_while(|other| *other <= id).any(|other| other == id)
    }

    /// Number of loops around a block.
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost[block].map_or(0, |id| self.all[id].depth)
    }

    /// Whether every iteration but the last, which may leave before, runs through a block.
    pub fn is_always_run(&self, id: LoopId, block: Block, dominators: &Dominators) -> bool {
        self.all[id].latches.iter().all(|latch| dominators.dominates(block, *latch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    fn loops(text: &str) -> Loops {
        let cfg = Cfg::new(&text::parse(text).unwrap());
        Loops::new(&cfg, &cfg.dominators())
    }

    #[test]
    fn nested_loops_with_one_exit_each() {
        let l = loops(
            "function k sm_90\nb0:\n  BRA target=b1\nb1:\n  BRA target=b2\nb2:\n  @p0 BRA target=b2\n  BRA target=b3\n\
             b3:\n  @p0 BRA target=b1\n  BRA target=b4\nb4:\n  EXIT\n",
        );
        let depths: Vec<u32> = (0..5).map(|b| l.depth(Block::from_u32(b))).collect();
        assert_eq!(depths, [0, 1, 2, 1, 0]);
        let (inner, outer) = (LoopId::from_u32(0), LoopId::from_u32(1));
        assert_eq!((l.all[inner].parent, l.all[outer].parent), (Some(outer), None));
        assert!(l.contains(outer, Block::from_u32(2)) && !l.contains(inner, Block::from_u32(3)));
    }

    #[test]
    fn an_irreducible_cycle_is_no_loop() {
        let l = loops(
            "function k sm_90\nb0:\n  @p0 BRA target=b1\n  BRA target=b2\nb1:\n  BRA target=b2\n\
             b2:\n  @p0 BRA target=b1\n  BRA target=b3\nb3:\n  EXIT\n",
        );
        assert!(l.all.is_empty());
    }
}
