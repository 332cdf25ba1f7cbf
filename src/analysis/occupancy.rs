//! Blocks that an SM holds at once, by the registers of a thread.
//!
//! An SM has four schedulers with a quarter of its registers each, and every warp takes its
//! registers from one of them in whole units. Shared memory is not counted: what a launch adds to
//! it is not known here.

use crate::ori::{Convention, Function};
use crate::tables::Feature;
use crate::tables::GenerationInfo;

/// Schedulers of an SM, and threads of a warp.
const SCHEDULERS: i32 = 4;
const WARP: i32 = 32;
/// Threads of a block where a kernel does not say: a warp for each scheduler.
pub const USUAL: u32 = 128;

/// Threads from which on a block is large. Measured: where blocks of 128 threads count as well,
/// what is given up for one more of them on an SM costs three launches 4 to 7 % more cycles, one a
/// third.
const LARGE: u32 = 256;

/// Whether a kernel says that its blocks are large.
pub fn has_large_blocks(function: &Function) -> bool {
    function.attributes().threads.is_some_and(|threads| threads >= LARGE)
}

/// Most registers of a thread with which an SM holds so many blocks of so many warps: of each
/// scheduler's registers every warp takes whole units.
pub fn most_registers(info: &GenerationInfo, warps: u32, blocks: u32) -> u32 {
    let each = warps.saturating_mul(blocks.max(1)).div_ceil(SCHEDULERS as u32).max(1);
    info.reg_file / each.saturating_mul((SCHEDULERS * WARP) as u32) / info.reg_unit * info.reg_unit
}

/// What decides how many blocks of a kernel an SM holds.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy {
    /// Registers of a scheduler for each thread of a warp, and the unit in which a warp takes them.
    file: i32,
    unit: i32,
    /// Warps of a block, and the most of a scheduler.
    block: i32,
    most: i32,
}

impl Occupancy {
    /// Of a kernel; a function that is called has what its callers leave.
    pub fn of(function: &Function) -> Option<Occupancy> {
        let kernel = function.attributes().convention == Convention::Kernel;
        let (info, threads) =
            (function.target().info().filter(|_| kernel)?, function.attributes().threads.unwrap_or(USUAL));
        let most = if function.target().has(Feature::MostWarps) {
            16
        } else if function.target().has(Feature::HalfTheWarps) {
            8
        } else {
            12
        };
        let file = info.reg_file as i32 / (SCHEDULERS * WARP);
        Some(Occupancy { file, unit: info.reg_unit as i32, block: threads.div_ceil(WARP as u32).max(1) as i32, most })
    }

    /// Blocks of an SM where a thread has this many registers.
    pub fn blocks(&self, registers: i32) -> i32 {
        let taken = (registers.max(1) + self.unit - 1) / self.unit * self.unit;
        (self.file / taken).min(self.most) * SCHEDULERS / self.block
    }

    /// The most registers of a thread with which an SM holds as many blocks.
    pub fn most(&self, registers: i32) -> i32 {
        let blocks = self.blocks(registers);
        let mut most = registers;
        while most < self.file && self.blocks(most + 1) == blocks {
            most += 1;
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::Occupancy;

    #[test]
    fn steps() {
        let of = |block| Occupancy { file: 512, unit: 8, block, most: 16 };
        // The guide's figures: 65,536 registers, blocks of 128 and of 256 threads.
        assert_eq!([32, 33, 64, 65, 128, 168, 169].map(|r| of(4).blocks(r)), [16, 12, 8, 7, 4, 3, 2]);
        assert_eq!([48, 56, 64, 72].map(|r| of(8).blocks(r)), [5, 4, 4, 3]);
        assert_eq!((of(8).most(54), of(4).most(120), of(4).most(129)), (64, 128, 168));
    }
}
