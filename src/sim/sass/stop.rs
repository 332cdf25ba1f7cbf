//! What a lane has before it executes an instruction: what a debugger sees that stops there.

use super::warp::Warp;

/// A lane before an instruction.
pub struct Stop<'a> {
    /// Byte offset of the instruction in the code, which begins with the kernel.
    pub pc: u64,
    /// The block.
    pub block: [u32; 3],
    /// The thread's number in its block, counted along the axes.
    pub thread: u32,
    pub(super) warp: &'a mut Warp,
    pub(super) lane: usize,
}

impl Stop<'_> {
    /// A general register.
    pub fn register(&self, number: u16) -> u32 {
        self.warp.reg(usize::from(number), self.lane)
    }

    /// A predicate.
    pub fn predicate(&self, number: u16) -> bool {
        self.warp.pred_bits(self.lane) >> number & 1 != 0
    }

    /// The local memory of the lane.
    pub fn local(&mut self) -> &[u8] {
        self.warp.local_of(self.lane)
    }
}
