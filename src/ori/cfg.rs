//! The control-flow graph: edges, orders, dominators, post-dominators, strongly connected
//! components.
//!
//! Every block of the function must end with a terminator. All results follow from layout order and
//! branch order, so equal functions give equal graphs. Post-dominance counts only the lanes that
//! survive: an EXIT other than the main one (the last in the layout) ends lanes and is not an edge
//! to the exit, so an early exit inside a region does not hide the reconvergence point of the other
//! lanes. In a function with a RET, the last RET is the main exit.

use super::function::{Block, Function};
use super::list_table::ListTable;
use super::operand::Kind;
use super::{table, table_of};
use crate::tables::{Op, Prop};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

/// Neighbours of a block.
pub type Edges = SmallVec<[Block; 4]>;

/// Edges and orders of a function.
#[derive(Clone, PartialEq, Eq)]
pub struct Cfg {
    /// Successors of each block, in branch order.
    pub succs: ListTable<Block, Edges>,
    /// Predecessors of each block.
    pub preds: ListTable<Block, Edges>,
    /// Reachable blocks in reverse post-order; the entry is first.
    pub rpo: Vec<Block>,
    /// Index in `rpo`; `usize::MAX` for unreachable blocks.
    pub number: SecondaryMap<Block, usize>,
}

impl Cfg {
    /// Computes the graph of a function.
    pub fn new(function: &Function) -> Cfg {
        let limit = function.block_limit();
        let mut succs: ListTable<Block, Edges> = ListTable::new(limit);
        for block in function.layout() {
            succs[*block] = function.successors(*block);
        }
        let rpo = reverse_postorder(function.entry(), &succs);
        let mut number = table_of(limit, usize::MAX);
        let mut preds: ListTable<Block, Edges> = ListTable::new(limit);
        for (i, block) in rpo.iter().enumerate() {
            number[*block] = i;
        }
        for block in &rpo {
            for succ in succs[*block].iter() {
                preds[*succ].push(*block);
            }
        }
        Cfg { succs, preds, rpo, number }
    }

    /// Whether a block is reachable from the entry.
    pub fn reachable(&self, block: Block) -> bool {
        self.number[block] != usize::MAX
    }

    /// Immediate dominators; `None` for the entry and for unreachable blocks.
    pub fn dominators(&self) -> Dominators {
        Dominators::new(&self.rpo, &self.preds, &self.succs)
    }

    /// Immediate post-dominators for surviving lanes; empty without a main exit.
    pub fn post_dominators(&self, function: &Function) -> Dominators {
        let ends = |b: &Block, op: Op| function[*b].last().is_some_and(|i| function[*i].op == op);
        let last = |op| function.layout().iter().rev().copied().find(|b| self.reachable(*b) && ends(b, op));
        let Some(main) = last(Op::RET).or_else(|| last(Op::EXIT)) else {
            return Dominators { idom: SecondaryMap::new(), depth: SecondaryMap::new(), span: SecondaryMap::new() };
        };
        let order = reverse_postorder(main, &self.preds);
        Dominators::new(&order, &self.succs, &self.preds)
    }

    /// The post-dominator trees of all blocks from which control can leave: the tree of
    /// [`Cfg::post_dominators`], then, of the blocks that no tree covers yet, one for the last of
    /// them in the layout with an EXIT, until none is left or there are `most` trees. Lanes leave
    /// such blocks, a persistent loop for example, by an early exit alone. A block that only
    /// covered blocks lead to, and that only exits, gets no tree: it has no branch.
    pub fn post_dominators_by_exit(&self, function: &Function, most: usize) -> Vec<Dominators> {
        let mut trees = vec![self.post_dominators(function)];
        let mut covered: SecondaryMap<Block, bool> = SecondaryMap::new();
        loop {
            let last = &trees[trees.len() - 1];
            self.rpo.iter().for_each(|block| covered[*block] |= last.covers(*block));
            let exits = |b: &Block| function[*b].iter().any(|i| function[*i].op == Op::EXIT);
            let open = |b: &Block| self.reachable(*b) && !covered[*b];
            let leads = |b: &Block| self.succs[*b].len() > 1 || self.preds[*b].iter().any(open);
            let root = function.layout().iter().rev().find(|b| open(b) && leads(b) && exits(b));
            let Some(root) = root.filter(|_| trees.len() < most) else { return trees };
            let (mut succs, mut preds) = (ListTable::new(self.succs.limit()), ListTable::new(self.preds.limit()));
            for block in self.rpo.iter().filter(|block| !covered[**block]) {
                let open = |edges: &Edges| edges.iter().copied().filter(|b| !covered[*b]).collect();
                (succs[*block], preds[*block]) = (open(&self.succs[*block]), open(&self.preds[*block]));
            }
            trees.push(Dominators::new(&reverse_postorder(*root, &preds), &succs, &preds));
        }
    }

    /// Strongly connected components with more than one block or a self-loop, and for each block
    /// the one it is in.
    pub fn cycles(&self) -> Cycles {
        let all: Vec<Block> = self.rpo.clone();
        cycles_among(self, &all)
    }
}

fn reverse_postorder(root: Block, next: &ListTable<Block, Edges>) -> Vec<Block> {
    let mut seen: SecondaryMap<Block, bool> = table(next.limit());
    let mut post = Vec::with_capacity(next.limit());
    let mut stack = vec![(root, 0usize)];
    seen[root] = true;
    while let Some((block, at)) = stack.last_mut() {
        // Push the last successor first, so that the first successor directly follows its block in
        // the result.
        let list = next[*block].as_slice();
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
#[derive(Clone, PartialEq, Eq)]
pub struct Dominators {
    idom: SecondaryMap<Block, Option<Block>>,
    /// Distance from the root, starting with 1; 0 outside the tree.
    depth: SecondaryMap<Block, u32>,
    /// Preorder number in the tree, and the end of the block's subtree in that numbering.
    span: SecondaryMap<Block, (u32, u32)>,
}

impl Dominators {
    /// `order` must be a reverse postorder from the root.
    fn new(order: &[Block], preds: &ListTable<Block, Edges>, succs: &ListTable<Block, Edges>) -> Dominators {
        let root = order[0];
        let idom = immediate(root, preds, succs);
        let mut depth: SecondaryMap<Block, u32> = table(preds.limit());
        depth[root] = 1;
        for block in &order[1..] {
            depth[*block] = idom[*block].map_or(0, |d| depth[d] + 1);
        }
        let span = spans(order, &idom, preds.limit());
        Dominators { idom, depth, span }
    }

    /// Immediate dominator of a block; `None` for the root and outside the tree.
    pub fn parent(&self, block: Block) -> Option<Block> {
        self.idom[block]
    }

    /// Whether the block is in the tree.
    pub fn covers(&self, block: Block) -> bool {
        self.depth[block] != 0
    }

    /// Whether `a` dominates `b` (every block dominates itself).
    #[inline]
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let ((first, end), (at, _)) = (self.span[a], self.span[b]);
        self.covers(a) && self.covers(b) && (first..end).contains(&at)
    }

    /// Nearest common dominator.
    pub fn common(&self, mut a: Block, mut b: Block) -> Option<Block> {
        while a != b {
            if self.depth[a] >= self.depth[b] { a = self.idom[a]? } else { b = self.idom[b]? }
        }
        Some(a)
    }
}

/// Preorder intervals of a dominator tree. In a reverse postorder each block comes after its
/// parent.
fn spans(order: &[Block], idom: &SecondaryMap<Block, Option<Block>>, limit: usize) -> SecondaryMap<Block, (u32, u32)> {
    let mut size: SecondaryMap<Block, u32> = table(limit);
    for block in order.iter().rev() {
        size[*block] += 1;
        if let Some(parent) = idom[*block] {
            size[parent] += size[*block];
        }
    }
    let mut span: SecondaryMap<Block, (u32, u32)> = table(limit);
    // Next free preorder number in each block's subtree.
    let mut next: SecondaryMap<Block, u32> = table(limit);
    for block in order {
        let first = idom[*block].map_or(0, |parent| next[parent]);
        if let Some(parent) = idom[*block] {
            next[parent] += size[*block];
        }
        span[*block] = (first, first + size[*block]);
        next[*block] = first + 1;
    }
    span
}

/// Immediate dominators from the semidominators of a depth-first tree (semi-NCA). It is near-linear
/// on long chains, where an iterative fixpoint would walk them again and again.
fn immediate(
    root: Block,
    preds: &ListTable<Block, Edges>,
    succs: &ListTable<Block, Edges>,
) -> SecondaryMap<Block, Option<Block>> {
    const NONE: usize = usize::MAX;
    // Depth-first tree, by preorder numbers.
    let limit = preds.limit();
    let mut number: SecondaryMap<Block, usize> = table_of(limit, NONE);
    let (mut blocks, mut parent) = (Vec::with_capacity(limit), Vec::with_capacity(limit));
    let mut stack = vec![(root, 0)];
    while let Some((block, from)) = stack.pop() {
        if number[block] == NONE {
            number[block] = blocks.len();
            blocks.push(block);
            parent.push(from);
            stack.extend(succs[block].iter().filter(|s| number[**s] == NONE).map(|s| (*s, number[block])));
        }
    }
    let mut semi: Vec<usize> = (0..blocks.len()).collect();
    let mut best: Vec<usize> = semi.clone();
    let mut ancestor = parent.clone();
    let mut path = Vec::new();
    for w in (1..blocks.len()).rev() {
        for pred in preds[blocks[w]].iter().map(|p| number[*p]).filter(|p| *p != NONE) {
            let u = if pred <= w { pred } else { eval(pred, w, &semi, &mut best, &mut ancestor, &mut path) };
            semi[w] = semi[w].min(semi[u]);
        }
    }
    let mut idom = parent;
    for w in 1..blocks.len() {
        while idom[w] > semi[w] {
            idom[w] = idom[idom[w]];
        }
    }
    let mut out = table(limit);
    (1..blocks.len()).for_each(|w| out[blocks[w]] = Some(blocks[idom[w]]));
    out
}

/// The block with the least semidominator on the tree path above `v`, down from `last` (not visited
/// yet); compresses the path.
fn eval(
    v: usize,
    last: usize,
    semi: &[usize],
    best: &mut [usize],
    ancestor: &mut [usize],
    path: &mut Vec<usize>,
) -> usize {
    path.clear();
    let mut at = v;
    while ancestor[at] > last {
        path.push(at);
        at = ancestor[at];
    }
    while let Some(below) = path.pop() {
        if semi[best[at]] < semi[best[below]] {
            best[below] = best[at];
        }
        ancestor[below] = ancestor[at];
        at = below;
    }
    best[v]
}

/// The cycles of a graph.
pub struct Cycles {
    /// Blocks of each cycle, in reverse post-order.
    pub members: Vec<Vec<Block>>,
    /// Index of the cycle of a block, sorted by block.
    of: Vec<(Block, u32)>,
}

impl Cycles {
    /// The index of the cycle that contains a block.
    pub fn of(&self, block: Block) -> Option<u32> {
        self.of.binary_search_by_key(&block, |o| o.0).ok().map(|at| self.of[at].1)
    }
}

/// Strongly connected components of the subgraph of `blocks`, with more than one block or a
/// self-loop (Tarjan, iterative). The cost depends on these blocks and their edges, not on the size
/// of the function.
pub fn cycles_among(cfg: &Cfg, blocks: &[Block]) -> Cycles {
    let mut order: Vec<Block> = blocks.to_vec();
    crate::sorted::by_key(&mut order, |b| cfg.number[*b]);
    let mut found = Cycles { members: Vec::new(), of: Vec::new() };
    let place = |block: Block| order.binary_search_by_key(&cfg.number[block], |b| cfg.number[*b]).ok();
    // Every cycle has an edge against the order.
    let back = |b: &Block| cfg.succs[*b].iter().any(|s| cfg.number[*s] <= cfg.number[*b] && place(*s).is_some());
    if !order.iter().any(back) {
        return found;
    }
    let succs = |at: usize| cfg.succs[order[at]].iter().filter_map(|s| place(*s)).collect::<SmallVec<[usize; 4]>>();
    let mut tarjan = Tarjan {
        succs: (0..order.len()).map(succs).collect(),
        index: vec![usize::MAX; order.len()],
        low: vec![0; order.len()],
        on_stack: vec![false; order.len()],
        stack: Vec::new(),
        way: Vec::new(),
        next: 0,
        found: Vec::new(),
    };
    for at in 0..order.len() {
        if tarjan.index[at] == usize::MAX {
            tarjan.visit(at);
        }
    }
    for members in tarjan.found {
        let id = found.members.len() as u32;
        found.of.extend(members.iter().map(|at| (order[*at], id)));
        found.members.push(members.into_iter().map(|at| order[at]).collect());
    }
    found.of.sort_unstable();
    found
}

/// State of the algorithm, over indices in a list of blocks.
struct Tarjan {
    succs: Vec<SmallVec<[usize; 4]>>,
    index: Vec<usize>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    /// The blocks on the way from the root, with how many of their successors have been seen.
    way: Vec<(usize, usize)>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl Tarjan {
    fn open(&mut self, at: usize) {
        self.index[at] = self.next;
        self.low[at] = self.next;
        self.next += 1;
        self.stack.push(at);
        self.on_stack[at] = true;
    }

    fn visit(&mut self, root: usize) {
        self.open(root);
        self.way.push((root, 0));
        while let Some((at, done)) = self.way.last_mut() {
            let at = *at;
            if let Some(succ) = self.succs[at].get(*done).copied() {
                *done += 1;
                if self.index[succ] == usize::MAX {
                    self.open(succ);
                    self.way.push((succ, 0));
                } else if self.on_stack[succ] {
                    self.low[at] = self.low[at].min(self.index[succ]);
                }
                continue;
            }
            self.way.pop();
            if let Some((parent, _)) = self.way.last() {
                self.low[*parent] = self.low[*parent].min(self.low[at]);
            }
            if self.low[at] == self.index[at] {
                self.close(at);
            }
        }
    }

    fn close(&mut self, root: usize) {
        let mut members = Vec::new();
        while let Some(at) = self.stack.pop() {
            self.on_stack[at] = false;
            members.push(at);
            if at == root {
                break;
            }
        }
        members.sort_unstable();
        if members.len() > 1 || self.succs[root].contains(&root) {
            self.found.push(members);
        }
    }
}

/// A set of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSet(Vec<u64>);

impl BlockSet {
    /// An empty set for blocks with numbers below `limit`.
    pub fn new(limit: usize) -> BlockSet {
        BlockSet(vec![0; limit.div_ceil(64)])
    }
    /// Adds a block; returns whether it is new.
    pub fn insert(&mut self, block: Block) -> bool {
        let (word, bit) = (block.index() / 64, 1u64 << (block.index() % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
    /// Whether a block is in the set.
    pub fn contains(&self, block: Block) -> bool {
        self.0.get(block.index() / 64).is_some_and(|w| w >> (block.index() % 64) & 1 != 0)
    }
    /// Whether the set has no blocks.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// Blocks reachable from `from` (including these) without entering `stop`, each once.
pub fn reach(cfg: &Cfg, from: &[Block], stop: Option<Block>, limit: usize) -> Vec<Block> {
    let mut set = BlockSet::new(limit);
    let mut found: Vec<Block> = from.iter().copied().filter(|b| Some(*b) != stop && set.insert(*b)).collect();
    let mut at = 0;
    while at < found.len() {
        for succ in cfg.succs[found[at]].iter().filter(|s| Some(**s) != stop) {
            if set.insert(*succ) {
                found.push(*succ);
            }
        }
        at += 1;
    }
    found
}
/// Blocks that something other than a branch or a PHI names, so that they must stay.
pub fn named_blocks(function: &Function) -> SecondaryMap<Block, bool> {
    let mut named = SecondaryMap::new();
    for inst in function.layout().iter().flat_map(|block| &function[*block]) {
        let op = function[*inst].op;
        if op.has(Prop::Control) || op == Op::PHI {
            continue;
        }
        for operand in function.args(*inst) {
            if let Kind::Label(block) = operand.kind() {
                named[block] = true;
            }
        }
    }
    named
}
