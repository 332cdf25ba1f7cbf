//! The state of a running launch (threads, warps, blocks) and its constants.
//!
//! `grid` creates it and every executing module changes it. The `pc` of a waiting thread is the
//! instruction that it waits in; it moves past it when the wait ends.

use super::barrier::Arrival;
use super::cluster::Peer;
use super::mbarrier::Waits;
use super::program::{Dst, Program, Src};
use super::values::{mask, sign_extend};
use super::watch::{Findings, Seen};
use crate::sim::memory::Global;
use crate::sim::ops::clusters::Clusters;
use crate::sim::ops::tensor_memory::Tensor;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Wait {
    /// Nothing: it can run.
    #[default]
    Nothing,
    /// The thread has ended.
    Ended,
    /// The lanes of a mask, to reach the same kind of warp operation.
    Lanes { mask: u32, kind: u32 },
    /// The next turn of its warp: it has asked in vain for the end of a phase of the mbarrier at
    /// this shared address.
    Poll(u32),
    /// Any other lanes that may reach the same instruction.
    Company,
    /// The other threads of its warp, to arrive at a block barrier.
    Barrier(Arrival),
    /// The rest of the block, at a barrier where its warp has arrived.
    Block(Arrival),
    /// The rest of the cluster, at its barrier.
    Cluster,
}

/// The caller's state, saved during a call.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The caller.
    pub function: usize,
    /// Index of the call instruction.
    pub pc: usize,
    /// First cell of the caller's registers.
    pub base: usize,
    /// Start of the caller's frame.
    pub local: u64,
    /// Bytes of local memory in use before the call.
    pub depth: usize,
    /// Bytes of `alloca` memory in use before the call.
    pub taken: usize,
}

/// The state of one thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Register cells of all active functions, outermost first.
    pub cells: Vec<u64>,
    /// The undefined bits of each cell.
    pub lacks: Vec<u64>,
    /// First cell of the running function.
    pub base: usize,
    /// The running function.
    pub function: usize,
    /// Index of the next instruction.
    pub pc: usize,
    /// The saved state of the callers.
    pub frames: Vec<Frame>,
    /// Local memory up to the current stack depth.
    pub memory: Vec<u8>,
    /// The undefined bits of local memory.
    pub memory_lacks: Vec<u8>,
    /// Start of the running function's frame in local memory.
    pub local: u64,
    /// The memory of `alloca`, which ends at [`super::call::TOP`] and grows downwards.
    pub taken: Vec<u8>,
    /// The undefined bits of the `alloca` memory.
    pub taken_lacks: Vec<u8>,
    /// What the thread waits for.
    pub wait: Wait,
    /// `%tid`.
    pub id: [u32; 3],
    /// The lane in its warp.
    pub lane: u32,
    /// The warp in its block.
    pub warp: u32,
    /// Whether it has arrived at the barrier of its cluster, which is not complete.
    pub arrived: bool,
    /// Whether it has ever arrived there.
    pub met: bool,
}

impl Thread {
    /// The value of a cell of the running function.
    pub fn cell(&self, cell: u32) -> u64 {
        self.cells[self.base + cell as usize]
    }

    /// The undefined bits of a cell.
    pub fn lacking(&self, cell: u32) -> u64 {
        self.lacks[self.base + cell as usize]
    }

    /// Writes a result and marks it as defined.
    pub fn put(&mut self, dst: Dst, value: u64) {
        let [low, above] = dst.words(value);
        let cell = self.base + dst.cell as usize;
        (self.cells[cell], self.lacks[cell]) = (low, 0);
        if dst.above {
            (self.cells[cell + 1], self.lacks[cell + 1]) = (above, 0);
        }
    }

    /// Marks bits of a result as undefined.
    pub fn lack(&mut self, dst: Dst, bits: u64) {
        let [low, above] = dst.words(bits);
        let cell = self.base + dst.cell as usize;
        self.lacks[cell] |= low;
        if dst.above {
            self.lacks[cell + 1] |= above;
        }
    }
}

/// The up to 32 threads of a warp.
#[derive(Clone, Debug, Default)]
pub struct Warp {
    /// In lane order; the last warp of a block may have fewer than 32.
    pub threads: Vec<Thread>,
}

/// The state of one block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// `%ctaid`.
    pub id: [u32; 3],
    /// `%cluster_ctarank`.
    pub rank: u32,
    /// Shared memory.
    pub shared: Vec<u8>,
    /// The block's warps.
    pub warps: Vec<Warp>,
    /// The block's barriers.
    pub barriers: Vec<super::barrier::Named>,
    /// Shadow state for the detection of undefined values and races.
    pub seen: Seen,
    /// Tensor memory.
    pub tensor: Tensor,
}

/// The constants of a launch.
pub struct Env {
    /// The translated module.
    pub program: Program,
    /// Blocks in the grid, by axis.
    pub grid: [u32; 3],
    /// Threads in a block, by axis.
    pub block: [u32; 3],
    /// Blocks in a cluster, by axis.
    pub cluster: [u32; 3],
    /// `%is_explicit_cluster`.
    pub explicit_cluster: bool,
    /// Size of shared memory in bytes, including the reserved start and dynamic memory.
    pub shared: u64,
    /// Reserved bytes at the start of shared memory.
    pub reserved: u32,
    /// Bytes of dynamic shared memory.
    pub dynamic: u32,
    /// The `.const` bank.
    pub constants: Vec<u8>,
    /// Limit on the instructions of all threads.
    pub step_limit: u64,
    /// The contents of parameter memory.
    pub params: Vec<u8>,
    /// Sees each thread before each instruction.
    pub inspect: Option<fn(&Stop<'_>)>,
}

/// A thread before an instruction.
pub struct Stop<'a> {
    /// The running function.
    pub function: &'a str,
    /// Position of the instruction in the text.
    pub pos: crate::diag::Pos,
    pub block: [u32; 3],
    /// The thread's number in its block, counted along the axes.
    pub thread: u32,
    names: &'a [String],
    cells: &'a [u64],
    lacks: &'a [u64],
}

impl Stop<'_> {
    /// The registers that are defined: each cell's name and value. A register of 128 bits and a
    /// vector have several cells.
    pub fn registers(&self) -> impl Iterator<Item = (&str, u64)> {
        let cells = self.names.iter().zip(self.cells).zip(self.lacks);
        cells.filter(|(_, lacks)| **lacks == 0).map(|((name, value), _)| (name.as_str(), *value))
    }
}

impl Env {
    /// Lets the launch's observer see a thread.
    pub fn stop(&self, thread: &Thread, block: [u32; 3]) {
        let Some(inspect) = self.inspect else { return };
        let function = &self.program.functions[thread.function];
        let range = thread.base..thread.base + function.names.len();
        let (Some(cells), Some(lacks)) = (thread.cells.get(range.clone()), thread.lacks.get(range)) else { return };
        inspect(&Stop {
            function: &function.name,
            pos: function.insts[thread.pc].pos,
            block,
            thread: thread.warp * LANES as u32 + thread.lane,
            names: &function.names,
            cells,
            lacks,
        });
    }

    /// Whether each block is a cluster of its own.
    pub fn is_alone(&self) -> bool {
        self.cluster.iter().product::<u32>() == 1
    }
}

/// A running thread's view of the launch.
pub struct Scene<'a> {
    /// The launch's constants.
    pub env: &'a Env,
    /// Global memory.
    pub global: &'a mut Global,
    /// The block's shared memory.
    pub shared: &'a mut [u8],
    /// The block's tensor memory.
    pub tensor: &'a mut Tensor,
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%cluster_ctarank`.
    pub rank: u32,
    /// The blocks of the cluster; none in a cluster of one.
    pub peers: &'a mut [Peer],
    /// The clusters that have not begun.
    pub clusters: &'a mut Clusters,
    /// Instructions executed so far in the launch.
    pub steps: u64,
    /// Output of `vprintf`.
    pub printed: &'a mut Vec<u8>,
    /// The block's shadow state.
    pub seen: &'a mut Seen,
    /// The findings of the launch.
    pub findings: &'a mut Findings,
    /// Who asks in vain for the end of a phase.
    pub waits: &'a mut Waits,
}

impl Dst {
    /// The words that a value leaves in the destination's cell and in the cell above.
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
