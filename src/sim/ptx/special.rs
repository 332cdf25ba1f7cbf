//! Reads special registers.
//!
//! The clocks count the instructions of the launch and therefore increase. Identifiers depend only
//! on the thread's position in the grid. A register without a meaning in this launch reads as 0.

use super::state::{LANES, Scene, Thread};
use crate::tables::ptx::SpecialRegister as S;

/// Warps that a multiprocessor holds, as `%nwarpid` reports.
const WARPS: u64 = 64;

/// The value of a special register.
pub fn read(scene: &Scene, thread: &Thread, register: S) -> u64 {
    let (env, lane) = (scene.env, thread.lane);
    let word = match register {
        S::Tid | S::TidX => thread.id[0],
        S::TidY => thread.id[1],
        S::TidZ => thread.id[2],
        S::Ntid | S::NtidX => env.block[0],
        S::NtidY => env.block[1],
        S::NtidZ => env.block[2],
        S::Ctaid | S::CtaidX | S::Clusterid | S::ClusteridX => scene.block[0],
        S::CtaidY | S::ClusteridY => scene.block[1],
        S::CtaidZ | S::ClusteridZ => scene.block[2],
        S::Nctaid | S::NctaidX | S::Nclusterid | S::NclusteridX => env.grid[0],
        S::NctaidY | S::NclusteridY => env.grid[1],
        S::NctaidZ | S::NclusteridZ => env.grid[2],
        S::ClusterNctaid | S::ClusterNctaidX | S::ClusterNctaidY | S::ClusterNctaidZ | S::ClusterNctarank => 1,
        S::Laneid => lane,
        S::Warpid => thread.warp,
        S::Nwarpid => WARPS as u32,
        S::Nsmid => 1,
        S::LanemaskEq => 1 << lane,
        S::LanemaskLe => u32::MAX >> (LANES as u32 - 1 - lane),
        S::LanemaskLt => (1 << lane) - 1,
        S::LanemaskGe => u32::MAX << lane,
        S::LanemaskGt => (u32::MAX << lane) << 1,
        S::Clock | S::GlobaltimerLo => scene.steps as u32,
        S::ClockHi | S::GlobaltimerHi => (scene.steps >> 32) as u32,
        S::Clock64 | S::Globaltimer => return scene.steps,
        S::TotalSmemSize => (env.shared - u64::from(env.reserved)) as u32,
        S::AggrSmemSize => env.shared as u32,
        S::DynamicSmemSize => env.dynamic,
        S::ReservedSmemOffsetEnd | S::ReservedSmemOffsetCap => env.reserved,
        _ => 0,
    };
    word.into()
}
