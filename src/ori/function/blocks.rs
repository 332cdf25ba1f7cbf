//! Blocks: new ones, their order, their branches and successors.

use super::{Block, Function, InstId};
use crate::ori::operand::{Kind, Operand};
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

impl Function {
    /// A new block at the end of the layout.
    pub fn new_block(&mut self) -> Block {
        let block = self.blocks.push(Vec::new());
        self.layout.push(block);
        block
    }

    /// A new block placed directly before another one in the layout.
    pub fn new_block_before(&mut self, next: Block) -> Block {
        let block = self.blocks.push(Vec::new());
        let at = self.layout.iter().position(|b| *b == next).unwrap_or(self.layout.len());
        self.layout.insert(at, block);
        block
    }

    /// Inserts new blocks into the layout, each directly before another one: pairs of (existing
    /// block, new block).
    pub fn place_before(&mut self, pairs: &[(Block, Block)]) {
        let mut before: SecondaryMap<Block, SmallVec<[Block; 4]>> = SecondaryMap::new();
        pairs.iter().for_each(|(next, new)| before[*next].push(*new));
        let old = std::mem::take(&mut self.layout);
        self.layout.reserve(old.len() + pairs.len());
        for block in old {
            self.layout.extend(before[block].iter().copied());
            self.layout.push(block);
        }
    }

    /// Redirects the branches of a block from `old` to `new`.
    pub fn redirect(&mut self, block: Block, old: Block, new: Block) {
        for i in self.first_terminator(block)..self.blocks[block].len() {
            let inst = self.blocks[block][i];
            if !self.insts[inst].op.has(Prop::Control) {
                continue;
            }
            for operand in self.args_mut(inst) {
                if operand.kind() == Kind::Label(old) {
                    *operand = Operand::label(new);
                }
            }
        }
    }

    /// The block that a branch goes to, if it names one.
    pub fn branch_target(&self, inst: InstId) -> Option<Block> {
        match self.arg(inst, Role::Target).kind() {
            Kind::Label(block) => Some(block),
            _ => None,
        }
    }

    /// Index of the first terminator at the end of a block; only these branch.
    #[inline]
    pub fn first_terminator(&self, block: Block) -> usize {
        let insts = &self.blocks[block];
        insts.len() - insts.iter().rev().take_while(|i| self.insts[**i].op.has(Prop::Terminator)).count()
    }

    /// The entry block. There must be a block.
    pub fn entry(&self) -> Block {
        self.layout[0]
    }

    /// Successors of a block in branch order, each once.
    pub fn successors(&self, block: Block) -> SmallVec<[Block; 4]> {
        let mut out = SmallVec::new();
        for inst in &self.blocks[block][self.first_terminator(block)..] {
            for operand in self.args(*inst) {
                if let Kind::Label(target) = operand.kind()
                    && !out.contains(&target)
                {
                    out.push(target);
                }
            }
        }
        out
    }

    /// Whether the block at this index in the layout ends with a branch to the next block.
    pub fn falls_through(&self, place: usize) -> bool {
        let last = self.blocks[self.layout[place]].last().copied();
        let (Some(inst), Some(next)) = (last, self.layout.get(place + 1)) else { return false };
        let data = &self.insts[inst];
        data.op == Op::BRA && data.guard.is_null() && self.arg(inst, Role::Target).kind() == Kind::Label(*next)
    }

    /// Appends an instruction to a block.
    #[inline]
    pub fn append(&mut self, block: Block, inst: InstId) {
        self.blocks[block].push(inst);
    }

    /// Number of blocks ever created; ids are below it.
    pub fn block_limit(&self) -> usize {
        self.blocks.len()
    }
}
