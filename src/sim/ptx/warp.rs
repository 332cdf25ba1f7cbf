//! Operations across the lanes of a warp: shuffles, votes, matches, reductions, `bar.warp.sync`
//! (PTX ISA 9.7.9.6 and 9.7.13).
//!
//! An operation executes once, when all live lanes of its mask wait at the same kind of operation
//! with the same mask.

use super::float::extreme_of;
use super::memory::Address;
use super::program::{Sink, Src};
use super::state::LANES;
use super::values::{mask, number};
use crate::ptx::ast::Instruction;
use crate::sim::fault::Fault;
use crate::sim::ops::format::F32;
use crate::sim::ops::tensor_memory::Tensor;
use crate::tables::ptx::{AtomOp, MatchMode, Modifiers, Op, ScalarType, ShflMode, Space, VoteMode};

/// Sources and results of a warp operation: one row per operand, one column per lane.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// The lanes that execute.
    pub active: u32,
    /// The sources.
    pub src: Vec<[u64; LANES]>,
    /// The results.
    pub out: Vec<[u64; LANES]>,
    /// The address of each lane, if the operation has one.
    pub at: Vec<(Space, u64)>,
    /// Their warp in the block.
    pub warp: usize,
}

/// A warp operation on registers.
pub type Together = Box<dyn Fn(&mut Lanes) + Send + Sync>;

/// A warp operation that also accesses memory through the lanes' addresses.
pub type WithMemory = Box<dyn Fn(&mut Lanes, &mut dyn Memory) -> Result<(), Fault> + Send + Sync>;

/// A warp operation on tensor memory.
pub type InTensor = Box<dyn Fn(&mut Lanes, &mut Tensor, &mut dyn Memory) -> Result<(), Fault> + Send + Sync>;

/// Memory as a warp operation accesses it; addresses are those of [`Lanes::at`] plus an offset.
pub trait Memory {
    /// Reads up to 8 bytes.
    fn read(&mut self, lane: usize, at: (Space, u64), width: u64) -> Result<u64, Fault>;
    /// Writes up to 8 bytes.
    fn write(&mut self, lane: usize, at: (Space, u64), width: u64, value: u64) -> Result<(), Fault>;
}

/// Which lanes execute an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Party {
    /// The lanes of a mask, which wait for each other.
    Mask(Src),
    /// The lanes that have reached the instruction when no other lane of the warp can run.
    Company,
}

/// A resolved warp operation.
pub struct Collective {
    /// Lanes wait for each other if this number and the mask agree.
    pub kind: u32,
    /// The lanes that execute it.
    pub party: Party,
    /// The sources.
    pub src: Vec<Src>,
    /// The destinations.
    pub dst: Vec<Sink>,
    /// The address, if it accesses memory.
    pub address: Option<Address>,
    /// Its function.
    pub how: How,
}

/// The function of a warp operation.
pub enum How {
    /// Uses registers only.
    Together(Together),
    /// Also accesses memory.
    WithMemory(WithMemory),
    /// Accesses tensor memory, all of which counts as defined.
    InTensor(InTensor),
}

/// The lanes of a mask in ascending order.
pub fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
}

/// The function of a warp instruction, or `None` for other instructions. The mask is not among its
/// sources.
pub fn compile(i: &Instruction) -> Option<Together> {
    let ty = i.types.first().copied();
    match i.op {
        Op::ShflSync | Op::Shfl => shuffle(i.mods.shfl_mode?),
        Op::VoteSync | Op::Vote => vote(i.mods.vote_mode?),
        Op::MatchSync => matching(i.mods.match_mode?),
        Op::ReduxSync => reduce(i.mods.atom_op?, ty?, &i.mods),
        Op::ElectSync => Some(Box::new(|l| {
            let lowest = l.active.trailing_zeros();
            l.out[0] = [lowest.into(); LANES];
            (0..LANES).for_each(|lane| l.out[1][lane] = u64::from(lane as u32 == lowest));
        })),
        Op::BarWarpSync => Some(Box::new(|_| {})),
        Op::Activemask => Some(Box::new(|l| l.out[0] = [l.active.into(); LANES])),
        _ => None,
    }
}

/// `shfl`. Sources: value, lane or distance, clamp and segment mask. Results: value, and whether
/// the source lane is in range.
fn shuffle(mode: ShflMode) -> Option<Together> {
    Some(Box::new(move |l| {
        for lane in lanes_of(l.active) {
            let (b, c) = (l.src[1][lane] as i64 & 31, l.src[2][lane] as i64);
            let (own, segment, clamp) = (lane as i64, c >> 8 & 31, c & 31);
            let least = own & segment;
            let most = least | clamp & !segment;
            let (from, valid) = match mode {
                ShflMode::Up => (own - b, own - b >= most),
                ShflMode::Down => (own + b, own + b <= most),
                ShflMode::Bfly => (own ^ b, own ^ b <= most),
                ShflMode::Idx => (least | b & !segment, least | b & !segment <= most),
            };
            let from = if valid { from as usize } else { lane };
            // The ISA leaves open what an inactive lane provides; here it is 0.
            let there = l.active >> from & 1 != 0;
            l.out[0][lane] = if there { l.src[0][from] } else { 0 };
            l.out[1][lane] = valid.into();
        }
    }))
}

fn vote(mode: VoteMode) -> Option<Together> {
    Some(Box::new(move |l| {
        let ballot = lanes_of(l.active).fold(0u32, |bits, lane| bits | u32::from(l.src[0][lane] != 0) << lane);
        let answer = match mode {
            VoteMode::All => u32::from(ballot == l.active),
            VoteMode::Any => u32::from(ballot != 0),
            VoteMode::Uni => u32::from(ballot == l.active || ballot == 0),
            VoteMode::Ballot => ballot,
        };
        l.out[0] = [answer.into(); LANES];
    }))
}

fn matching(mode: MatchMode) -> Option<Together> {
    Some(Box::new(move |l| {
        for lane in lanes_of(l.active) {
            let same = |other: &usize| l.src[0][*other] == l.src[0][lane];
            let equal = lanes_of(l.active).filter(same).fold(0u32, |bits, lane| bits | 1 << lane);
            let all = equal == l.active;
            l.out[0][lane] = if mode == MatchMode::Any || all { equal.into() } else { 0 };
            l.out[1][lane] = all.into();
        }
    }))
}

fn reduce(op: AtomOp, ty: ScalarType, mods: &Modifiers) -> Option<Together> {
    let mods = *mods;
    let f = move |a: u64, b: u64| {
        let (x, y) = (number(ty, a), number(ty, b));
        Some(match op {
            AtomOp::Min | AtomOp::Max if ty == ScalarType::F32 => {
                let magnitude = |x: u64| if mods.abs { x & mask(31) } else { x };
                let nan = mods.nan && (F32.is_nan(a) || F32.is_nan(b));
                if nan { F32.nan() } else { extreme_of(F32, &[magnitude(a), magnitude(b)], op == AtomOp::Min) }
            }
            AtomOp::Add => (x + y) as u64 & mask(ty.bits()),
            AtomOp::Min => x.min(y) as u64 & mask(ty.bits()),
            AtomOp::Max => x.max(y) as u64 & mask(ty.bits()),
            AtomOp::And => a & b,
            AtomOp::Or => a | b,
            AtomOp::Xor => a ^ b,
            _ => return None,
        })
    };
    f(0, 0)?;
    Some(Box::new(move |l| {
        let magnitude = |x: u64| if mods.abs { x & mask(31) } else { x };
        let values = lanes_of(l.active).map(|lane| magnitude(l.src[0][lane]));
        let total = values.reduce(|a, b| f(a, b).unwrap_or(0)).unwrap_or(0);
        l.out[0] = [total; LANES];
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(f: Option<Together>, active: u32, src: &[[u64; LANES]]) -> Vec<[u64; LANES]> {
        let mut lanes = Lanes { active, src: src.to_vec(), out: vec![[0; LANES]; 2], ..Lanes::default() };
        f.expect("an operation")(&mut lanes);
        lanes.out
    }

    #[test]
    fn shuffles_stay_in_their_segment() {
        let own: [u64; LANES] = std::array::from_fn(|lane| lane as u64);
        let up = run(shuffle(ShflMode::Up), u32::MAX, &[own, [1; LANES], [0x1800; LANES]]);
        assert_eq!((up[0][8], up[1][8]), (8, 0));
        assert_eq!((up[0][9], up[1][9]), (8, 1));
        let down = run(shuffle(ShflMode::Down), u32::MAX, &[own, [1; LANES], [0x1f; LANES]]);
        assert_eq!((down[0][31], down[1][31], down[0][3]), (31, 0, 4));
        let index = run(shuffle(ShflMode::Idx), u32::MAX, &[own, [2; LANES], [0x181f; LANES]]);
        assert_eq!((index[0][13], index[1][13]), (10, 1));
    }

    #[test]
    fn votes_and_matches() {
        let parity: [u64; LANES] = std::array::from_fn(|lane| lane as u64 & 1);
        assert_eq!(run(vote(VoteMode::Ballot), 0xff, &[parity])[0][0], 0xaa);
        assert_eq!(run(matching(MatchMode::Any), 0xff, &[parity])[0][1], 0xaa);
        assert_eq!(run(matching(MatchMode::All), 0xaa, &[parity])[0][1], 0xaa);
        let least = run(reduce(AtomOp::Min, ScalarType::S32, &Modifiers::default()), 0b11, &[[0xffff_fff0; LANES]]);
        assert_eq!(least[0][0], 0xffff_fff0);
    }
}
