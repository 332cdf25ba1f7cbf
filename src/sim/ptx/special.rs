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
        S::Ctaid | S::CtaidX => scene.block[0],
        S::CtaidY => scene.block[1],
        S::CtaidZ => scene.block[2],
        S::Nctaid | S::NctaidX => env.grid[0],
        S::NctaidY => env.grid[1],
        S::NctaidZ => env.grid[2],
        S::Clusterid | S::ClusteridX => scene.block[0] / env.cluster[0],
        S::ClusteridY => scene.block[1] / env.cluster[1],
        S::ClusteridZ => scene.block[2] / env.cluster[2],
        S::Nclusterid | S::NclusteridX => env.grid[0] / env.cluster[0],
        S::NclusteridY => env.grid[1] / env.cluster[1],
        S::NclusteridZ => env.grid[2] / env.cluster[2],
        S::ClusterCtaid | S::ClusterCtaidX => scene.block[0] % env.cluster[0],
        S::ClusterCtaidY => scene.block[1] % env.cluster[1],
        S::ClusterCtaidZ => scene.block[2] % env.cluster[2],
        S::ClusterNctaid | S::ClusterNctaidX => env.cluster[0],
        S::ClusterNctaidY => env.cluster[1],
        S::ClusterNctaidZ => env.cluster[2],
        S::ClusterCtarank => scene.rank,
        S::ClusterNctarank => env.cluster.iter().product(),
        S::IsExplicitCluster => u32::from(env.explicit_cluster),
        S::Laneid => lane,
        S::Warpid => thread.warp,
        S::Nwarpid => WARPS as u32,
        S::Nsmid => 1,
        // One domain of all processors.
        S::LocalityDomainId | S::LocalityDomainSupplementalSm => 0,
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
