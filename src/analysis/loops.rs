//! The loop forest: natural loops, each a header that dominates its latches.
//!
//! Two loops are disjoint or nested, and an inner loop has a smaller number than the loops around
//! it. An irreducible cycle has no such header and is not a loop. Near-linear: a block that an
//! inner loop has claimed is not walked again, only that loop's header.

use crate::ori::Block;
use crate::ori::cfg::{Cfg, Dominators};
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;

/// A natural loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(u32);
entity_impl!(LoopId, "loop");

/// A header and all blocks from which it can be reached again without passing through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The block through which every path enters the loop.
    pub header: Block,
    /// Blocks of the loop that branch back to the header.
    pub latches: SmallVec<[Block; 4]>,
    /// The innermost loop around it.
    pub parent: Option<LoopId>,
    /// Nesting depth; 1 for an outermost loop.
    pub depth: u32,
}

/// All loops of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loops {
    /// The loops; an inner loop has a smaller number than the loops around it.
    pub all: PrimaryMap<LoopId, Loop>,
    innermost: SecondaryMap<Block, Option<LoopId>>,
}

impl Loops {
    /// Finds the natural loops of a graph.
    pub fn new(cfg: &Cfg, dominators: &Dominators) -> Loops {
        let mut loops = Loops::default();
        // In reverse postorder, inner headers come after outer ones.
        for header in cfg.rpo.iter().rev().copied() {
            let back = |b: &Block| dominators.dominates(header, *b);
            let latches: SmallVec<[Block; 4]> = cfg.preds[header].iter().copied().filter(back).collect();
            if !latches.is_empty() {
                loops.discover(cfg, header, latches);
            }
        }
        // Outer loops have greater numbers, so their depth is known first.
        for id in loops.all.keys().rev() {
            loops.all[id].depth = loops.all[id].parent.map_or(0, |parent| loops.all[parent].depth) + 1;
        }
        loops
    }

    /// Assigns the blocks of one loop.
    fn discover(&mut self, cfg: &Cfg, header: Block, latches: SmallVec<[Block; 4]>) {
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

    /// The innermost loop that contains a block.
    pub fn innermost(&self, block: Block) -> Option<LoopId> {
        self.innermost[block]
    }

    /// The loops that contain a block, innermost first.
    pub fn around(&self, block: Block) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(self.innermost[block], |id| self.all[*id].parent)
    }

    /// Whether a block is in a loop.
    pub fn contains(&self, id: LoopId, block: Block) -> bool {
        // Numbers grow outwards.
        self.around(block).take_while(|other| *other <= id).any(|other| other == id)
    }

    /// Loop depth of a block; 0 outside all loops.
    #[inline]
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost[block].map_or(0, |id| self.all[id].depth)
    }

    /// Whether every iteration executes a block, except that the last one may leave before it.
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
