//! Control-flow graph of a function: edges, orders, dominators, post-dominators, strongly connected components.
//!
//! Input: a function whose blocks end with terminators. Output: tables indexed by block. Invariants: everything is
//! computed from the layout order and the branch order, so equal functions give equal graphs. Post-dominance speaks of
//! the lanes that survive: an EXIT other than the main one (the last in the layout) is a lane's end, not a way on, so that an
//! early exit inside a region does not hide the place where the others meet again. Where there is a RET, the last is the main one.

use super::function::{Block, Function};
use crate::tables::Op;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Edges and orders of a function.
pub struct Cfg {
    pub succs: SecondaryMap<Block, Vec<Block>>,
    pub preds: SecondaryMap<Block, Vec<Block>>,
    /// Reachable blocks in reverse post-order; the entry is first.
    pub rpo: Vec<Block>,
    /// Position in `rpo`; `usize::MAX` for unreachable blocks.
    pub number: SecondaryMap<Block, usize>,
}

impl Cfg {
    pub fn new(function: &Function) -> Cfg {
        let mut succs: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
        for block in &function.layout {
            succs[*block] = function.successors(*block);
        }
        let rpo = reverse_postorder(function.entry(), &succs);
        let mut number = SecondaryMap::with_default(usize::MAX);
        let mut preds: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
        for (i, block) in rpo.iter().enumerate() {
            number[*block] = i;
        }
        for block in &rpo {
            for succ in &succs[*block] {
                preds[*succ].push(*block);
            }
        }
        Cfg { succs, preds, rpo, number }
    }

    pub fn reachable(&self, block: Block) -> bool {
        self.number[block] != usize::MAX
    }

    /// Immediate dominators; `None` for the entry and for unreachable blocks.
    pub fn dominators(&self) -> Dominators {
        Dominators::new(&self.rpo, &self.preds)
    }

    /// Immediate post-dominators among the lanes that survive; `None` where there is none.
    pub fn post_dominators(&self, function: &Function) -> Dominators {
        let ends = |b: &Block, op: Op| function.blocks[*b].last().is_some_and(|i| function.insts[*i].op == op);
        let last = |op| function.layout.iter().rev().copied().find(|b| self.reachable(*b) && ends(b, op));
        let Some(main) = last(Op::RET).or_else(|| last(Op::EXIT)) else {
            return Dominators { idom: SecondaryMap::new(), depth: SecondaryMap::new() };
        };
        let order = reverse_postorder(main, &self.preds);
        Dominators::new(&order, &self.succs)
    }

    /// Strongly connected components with more than one block or a self-loop, and for each block the one it is in.
    pub fn cycles(&self) -> Cycles {
        let all: Vec<Block> = self.rpo.clone();
        cycles_among(self, &all)
    }
}

fn reverse_postorder(root: Block, next: &SecondaryMap<Block, Vec<Block>>) -> Vec<Block> {
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut post = Vec::new();
    let mut stack = vec![(root, 0usize)];
    seen[root] = true;
    while let Some((block, at)) = stack.last_mut() {
        // Last successor first, so that in the result the first successor comes directly after its block.
        let list = &next[*block];
        if *at < list.len() {
            let succ = list[list.len() - 1 - *at];
            *at += 1;
            if !seen[succ] {
                seen[succ] = true;
                stack.push((succ, 0));
            }
        } else {
            post.push(*block);
            stack.pop();
        }
    }
    post.reverse();
    post
}

/// A dominator tree.
pub struct Dominators {
    idom: SecondaryMap<Block, Option<Block>>,
    depth: SecondaryMap<Block, u32>,
}

impl Dominators {
    /// By the algorithm of Cooper, Harvey and Kennedy; `order` is a reverse post-order from the root.
    fn new(order: &[Block], preds: &SecondaryMap<Block, Vec<Block>>) -> Dominators {
        let mut number: SecondaryMap<Block, usize> = SecondaryMap::with_default(usize::MAX);
        for (i, block) in order.iter().enumerate() {
            number[*block] = i;
        }
        let mut idom: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
        let root = order[0];
        idom[root] = Some(root);
        let mut changed = true;
        while changed {
            changed = false;
            for block in &order[1..] {
                let mut best: Option<Block> = None;
                for pred in preds[*block].iter().filter(|p| number[**p] != usize::MAX && idom[**p].is_some()) {
                    best = Some(best.map_or(*pred, |b| intersect(&idom, &number, b, *pred)));
                }
                if best.is_some() && idom[*block] != best {
                    idom[*block] = best;
                    changed = true;
                }
            }
        }
        idom[root] = None;
        let mut depth: SecondaryMap<Block, u32> = SecondaryMap::new();
        depth[root] = 1;
        for block in &order[1..] {
            depth[*block] = idom[*block].map_or(0, |d| depth[d] + 1);
        }
        Dominators { idom, depth }
    }

    pub fn parent(&self, block: Block) -> Option<Block> {
        self.idom[block]
    }

    /// Whether the block is in the tree at all.
    pub fn covers(&self, block: Block) -> bool {
        self.depth[block] != 0
    }

    /// Whether `a` dominates `b` (every block dominates itself).
    pub fn dominates(&self, a: Block, mut b: Block) -> bool {
        if !self.covers(a) || !self.covers(b) {
            return false;
        }
        while self.depth[b] > self.depth[a] {
            let Some(up) = self.idom[b] else { return false };
            b = up;
        }
        a == b
    }

    /// Nearest common dominator.
    pub fn common(&self, mut a: Block, mut b: Block) -> Option<Block> {
        while a != b {
            if self.depth[a] >= self.depth[b] { a = self.idom[a]? } else { b = self.idom[b]? }
        }
        Some(a)
    }
}

fn intersect(
    idom: &SecondaryMap<Block, Option<Block>>,
    number: &SecondaryMap<Block, usize>,
    mut a: Block,
    mut b: Block,
) -> Block {
    while a != b {
        while number[a] > number[b] {
            a = idom[a].unwrap_or(b);
        }
        while number[b] > number[a] {
            b = idom[b].unwrap_or(a);
        }
    }
    a
}

/// The cycles of a graph.
pub struct Cycles {
    /// Blocks of each cycle.
    pub members: Vec<Vec<Block>>,
    /// Which cycle a block is in.
    pub of: SecondaryMap<Block, Option<u32>>,
}

/// Strongly connected components of the subgraph of these blocks (Tarjan, iterative).
pub fn cycles_among(cfg: &Cfg, blocks: &[Block]) -> Cycles {
    let mut inside: SecondaryMap<Block, bool> = SecondaryMap::new();
    blocks.iter().for_each(|b| inside[*b] = true);
    let mut tarjan = Tarjan {
        cfg,
        inside,
        index: SecondaryMap::with_default(usize::MAX),
        low: SecondaryMap::new(),
        on_stack: SecondaryMap::new(),
        stack: Vec::new(),
        next: 0,
        found: Cycles { members: Vec::new(), of: SecondaryMap::new() },
    };
    for block in blocks {
        if tarjan.index[*block] == usize::MAX {
            tarjan.visit(*block);
        }
    }
    tarjan.found
}

struct Tarjan<'a> {
    cfg: &'a Cfg,
    inside: SecondaryMap<Block, bool>,
    index: SecondaryMap<Block, usize>,
    low: SecondaryMap<Block, usize>,
    on_stack: SecondaryMap<Block, bool>,
    stack: Vec<Block>,
    next: usize,
    found: Cycles,
}

impl Tarjan<'_> {
    fn open(&mut self, block: Block) {
        self.index[block] = self.next;
        self.low[block] = self.next;
        self.next += 1;
        self.stack.push(block);
        self.on_stack[block] = true;
    }

    fn visit(&mut self, root: Block) {
        self.open(root);
        let mut work = vec![(root, 0usize)];
        while let Some((block, at)) = work.last_mut() {
            let block = *block;
            let succs = &self.cfg.succs[block];
            if let Some(succ) = succs.get(*at).copied() {
                *at += 1;
                if !self.inside[succ] {
                    continue;
                }
                if self.index[succ] == usize::MAX {
                    self.open(succ);
                    work.push((succ, 0));
                } else if self.on_stack[succ] {
                    self.low[block] = self.low[block].min(self.index[succ]);
                }
                continue;
            }
            work.pop();
            if let Some((parent, _)) = work.last() {
                self.low[*parent] = self.low[*parent].min(self.low[block]);
            }
            if self.low[block] == self.index[block] {
                self.close(block);
            }
        }
    }

    fn close(&mut self, root: Block) {
        let mut members = Vec::new();
        while let Some(block) = self.stack.pop() {
            self.on_stack[block] = false;
            members.push(block);
            if block == root {
                break;
            }
        }
        members.sort_by_key(|b| self.cfg.number[*b]);
        if members.len() > 1 || self.cfg.succs[root].contains(&root) {
            let id = self.found.members.len() as u32;
            members.iter().for_each(|b| self.found.of[*b] = Some(id));
            self.found.members.push(members);
        }
    }
}

/// A set of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSet(Vec<u64>);

impl BlockSet {
    pub fn new(limit: usize) -> BlockSet {
        BlockSet(vec![0; limit.div_ceil(64)])
    }
    pub fn insert(&mut self, block: Block) -> bool {
        let (word, bit) = (block.index() / 64, 1u64 << (block.index() % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
    pub fn contains(&self, block: Block) -> bool {
        self.0.get(block.index() / 64).is_some_and(|w| w >> (block.index() % 64) & 1 != 0)
    }
    pub fn intersects(&self, other: &BlockSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
    pub fn union(&mut self, other: &BlockSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

/// Blocks reachable from `from` (themselves included) without entering `stop`.
pub fn reach(cfg: &Cfg, from: &[Block], stop: Option<Block>, limit: usize) -> BlockSet {
    let mut set = BlockSet::new(limit);
    let mut work: Vec<Block> = from.iter().copied().filter(|b| Some(*b) != stop).collect();
    work.iter().for_each(|b| {
        set.insert(*b);
    });
    while let Some(block) = work.pop() {
        for succ in cfg.succs[block].iter().filter(|s| Some(**s) != stop) {
            if set.insert(*succ) {
                work.push(*succ);
            }
        }
    }
    set
}
