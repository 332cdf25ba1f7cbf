//! What a launch has while it runs: threads, warps, blocks, and what is fixed.
//!
//! Made by `grid`, changed by everything that executes. Invariant: a thread that waits stands at the instruction that
//! it waits in, and goes on behind it.

use super::barrier::Arrival;
use super::program::{Dst, Program, Src};
use super::values::{mask, sign_extend};
use super::watch::{Findings, Seen};
use crate::sim::memory::Global;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Wait {
    #[default]
    Nothing,
    /// It has ended.
    Ended,
    /// Lanes of a mask at the same kind of operation.
    Lanes { mask: u32, kind: u32 },
    /// Whoever comes to the same instruction.
    Company,
    /// The rest of its warp, to arrive at a barrier of the block.
    Barrier(Arrival),
    /// Has arrived; waits for the block.
    Block(Arrival),
}

/// The caller's state during a call.
#[derive(Clone, Debug)]
pub struct Frame {
    pub function: usize,
    /// The call instruction.
    pub pc: usize,
    pub base: usize,
    pub local: u64,
    /// Bytes of local memory, and of that of `alloca`, then.
    pub depth: usize,
    pub taken: usize,
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub cells: Vec<u64>,
    /// Their bits that have no value.
    pub lacks: Vec<u64>,
    /// First cell of the running function.
    pub base: usize,
    pub function: usize,
    pub pc: usize,
    pub frames: Vec<Frame>,
    /// Local memory; its length is the depth of the stack.
    pub memory: Vec<u8>,
    pub memory_lacks: Vec<u8>,
    /// Where the running function's frame starts.
    pub local: u64,
    /// Memory of `alloca`: the last bytes below [`super::call::TOP`]; it grows downwards.
    pub taken: Vec<u8>,
    pub taken_lacks: Vec<u8>,
    pub wait: Wait,
    pub id: [u32; 3],
    pub lane: u32,
    pub warp: u32,
}

impl Thread {
    /// The value of a source that needs nothing but the thread.
    pub fn cell(&self, cell: u32) -> u64 {
        self.cells[self.base + cell as usize]
    }

    /// The bits of a cell that have no value.
    pub fn lacking(&self, cell: u32) -> u64 {
        self.lacks[self.base + cell as usize]
    }

    /// Writes a result, which has a value.
    pub fn put(&mut self, dst: Dst, value: u64) {
        let [low, above] = dst.words(value);
        let cell = self.base + dst.cell as usize;
        (self.cells[cell], self.lacks[cell]) = (low, 0);
        if dst.above {
            (self.cells[cell + 1], self.lacks[cell + 1]) = (above, 0);
        }
    }

    /// Some bits of a result have no value.
    pub fn lack(&mut self, dst: Dst, bits: u64) {
        let [low, above] = dst.words(bits);
        let cell = self.base + dst.cell as usize;
        self.lacks[cell] |= low;
        if dst.above {
            self.lacks[cell + 1] |= above;
        }
    }
}

/// Threads that may act together.
#[derive(Clone, Debug, Default)]
pub struct Warp {
    pub threads: Vec<Thread>,
}

/// One block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub id: [u32; 3],
    pub shared: Vec<u8>,
    pub warps: Vec<Warp>,
    pub barriers: Vec<super::barrier::Named>,
    pub seen: Seen,
}

/// What is fixed for a launch.
pub struct Env {
    pub program: Program,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of shared memory, and of them what is reserved at the start and what is dynamic.
    pub shared: u64,
    pub reserved: u32,
    pub dynamic: u32,
    /// The `.const` bank.
    pub constants: Vec<u8>,
    /// Instructions of all threads after which the launch is given up.
    pub step_limit: u64,
    /// The parameters of the kernel.
    pub params: Vec<u8>,
}

/// What a thread sees while it runs.
pub struct Scene<'a> {
    pub env: &'a Env,
    pub global: &'a mut Global,
    pub shared: &'a mut [u8],
    pub block: [u32; 3],
    /// Instructions executed so far in the launch.
    pub steps: u64,
    /// What the program printed.
    pub printed: &'a mut Vec<u8>,
    /// What the watch knows of the block, and found.
    pub seen: &'a mut Seen,
    pub findings: &'a mut Findings,
}

impl Dst {
    /// What a value makes of its cell, and of the one above.
    fn words(self, value: u64) -> [u64; 2] {
        let bits = u32::from(self.bits);
        let value = if self.signed { sign_extend(value, bits) } else { value & mask(bits) };
        [value & self.mask, if self.signed { (value as i64 >> 63) as u64 } else { 0 }]
    }
}

impl Scene<'_> {
    /// The value of a source.
    pub fn value(&self, thread: &Thread, src: &Src) -> u64 {
        match *src {
            Src::Cell { cell, mask } => thread.cell(cell) & mask,
            Src::Imm(value) => value,
            Src::Not(cell) => thread.cell(cell) ^ 1,
            Src::Special(register, mask) => super::special::read(self, thread, register) & mask,
            Src::Local(offset) => thread.local.wrapping_add(offset as u64),
            Src::Part { cell, shift, bits, signed, negate } => {
                let part = thread.cell(cell) >> shift & mask(bits.into());
                let value = if signed { sign_extend(part, bits.into()) } else { part };
                if negate { value.wrapping_neg() } else { value }
            }
        }
    }
}
