//! Access to the parts of a function: `function[inst]`, `function[reg]`, `function[block]`, and by
//! name. An instruction that is borrowed to change it leaves the lists of registers.

use super::{Block, Function, InstData, InstId, RegData, Stage, VReg};
use crate::ori::arena::Arena;
use crate::ori::attributes::Attributes;
use crate::ori::insts::Insts;
use crate::ori::watched::Watched;
use crate::tables::Target;

use std::ops::{Index, IndexMut};

impl Index<InstId> for Function {
    type Output = InstData;

    #[inline]
    fn index(&self, inst: InstId) -> &InstData {
        &self.insts[inst]
    }
}

impl IndexMut<InstId> for Function {
    #[inline]
    fn index_mut(&mut self, inst: InstId) -> &mut InstData {
        &mut self.insts[inst]
    }
}

impl Index<VReg> for Function {
    type Output = RegData;

    #[inline]
    fn index(&self, reg: VReg) -> &RegData {
        &self.regs[reg]
    }
}

impl IndexMut<VReg> for Function {
    #[inline]
    fn index_mut(&mut self, reg: VReg) -> &mut RegData {
        &mut self.regs[reg]
    }
}

/// The instructions of a block, in order.
impl Index<Block> for Function {
    type Output = Vec<InstId>;

    #[inline]
    fn index(&self, block: Block) -> &Vec<InstId> {
        &self.blocks[block]
    }
}

impl IndexMut<Block> for Function {
    #[inline]
    fn index_mut(&mut self, block: Block) -> &mut Vec<InstId> {
        &mut self.blocks[block]
    }
}

impl Function {
    /// Name in the cubin.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The target.
    #[inline]
    pub fn target(&self) -> &'static Target {
        self.target
    }

    /// Blocks in layout order; the first is the entry.
    #[inline]
    pub fn layout(&self) -> &[Block] {
        &self.layout
    }

    /// Places blocks at the end of the layout.
    pub fn place_blocks(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.layout.extend(blocks);
    }

    /// Takes the blocks from the layout that are not to be kept. A block without a place is dead.
    pub fn retain_blocks(&mut self, keep: impl FnMut(&Block) -> bool) {
        self.layout.retain(keep);
    }

    /// Takes the blocks from this place in the layout on, to place them again.
    pub fn take_blocks(&mut self, from: usize) -> Vec<Block> {
        self.layout.split_off(from)
    }

    /// Moves a block to the end of the layout, or places it there.
    pub fn move_to_end(&mut self, block: Block) {
        // Most blocks were created recently.
        if let Some(at) = self.layout.iter().rposition(|b| *b == block) {
            self.layout.remove(at);
        }
        self.layout.push(block);
    }

    /// A new block with these instructions that is not in the layout yet.
    pub fn new_unplaced_block(&mut self, insts: Vec<InstId>) -> Block {
        self.blocks.push(insts)
    }

    /// All instructions ever created.
    #[inline]
    pub fn insts(&self) -> &Insts {
        &self.insts
    }

    /// Forbids that products and sums become one operation with one rounding.
    pub fn forbid_contraction(&mut self) {
        self.insts.values_mut().for_each(|inst| inst.contract = false);
    }

    /// All virtual registers ever created.
    #[inline]
    pub fn regs(&self) -> &Arena<VReg, RegData> {
        &self.regs
    }

    /// A new register of the file of another one, which varies between lanes if that does.
    pub fn another_register(&mut self, like: VReg) -> VReg {
        let RegData { file, varying, .. } = self.regs[like];
        self.regs.push(RegData { file, varying, phys: None, fixed: None })
    }

    /// Whether the function is in SSA form.
    pub fn is_ssa(&self) -> bool {
        self.ssa
    }

    /// Says that the function is in SSA form, or no longer.
    pub fn set_ssa(&mut self, ssa: bool) {
        self.ssa = ssa;
    }

    /// Progress through the phases.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// As [`Function::stage`], mutable.
    pub fn stage_mut(&mut self) -> &mut Stage {
        &mut self.stage
    }

    /// The stack pointer, if anything needs it ([`Function::stack_register`]).
    pub fn stack_pointer(&self) -> Option<VReg> {
        self.stack_pointer
    }

    /// Makes a register the stack pointer.
    pub fn set_stack_pointer(&mut self, reg: Option<VReg>) {
        self.stack_pointer = reg;
    }

    /// Instructions whose offset (role `off`, else `b`) is relative to the end of the frame
    /// (incoming stack arguments); the allocator adds `frame_bytes` to it.
    pub fn above_frame(&self) -> &[InstId] {
        &self.above_frame
    }

    /// As [`Function::above_frame`], mutable.
    pub fn above_frame_mut(&mut self) -> &mut Vec<InstId> {
        &mut self.above_frame
    }

    /// The values that a debugger reads; `None` without debug information.
    pub fn watched(&self) -> Option<&Watched> {
        self.watched.as_deref()
    }

    /// Sets the values that a debugger reads.
    pub fn set_watched(&mut self, watched: Watched) {
        self.watched = Some(Box::new(watched));
    }

    /// What is known of the function beside its code.
    #[inline]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// As [`Function::attributes`], mutable.
    pub fn attributes_mut(&mut self) -> &mut Attributes {
        &mut self.attributes
    }
}
