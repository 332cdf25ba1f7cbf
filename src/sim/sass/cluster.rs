//! Clusters: the shared memory of other blocks, the barrier of a cluster, STAS, REDAS and
//! UGETNEXTWORKID.
//!
//! All blocks of a cluster are resident together. While one of them runs, the shared memory of the
//! others is lent to the simulator. The upper bits of an address in the cluster name the block. A
//! store in a block completes when it is issued, and the barrier learns of its bytes then.

use super::super::fault::{Fault, Kind};
use super::super::memory::{flat, load, store};
use super::super::ops::tensor_memory::Tensor;
use super::super::ops::tensor_unit::Side;
use super::atomic;
use super::block::Block;
use super::code::{AtomicOp, AtomicType, Code, From};
use super::control;
use super::exec::Machine;
use super::mbarrier;
use super::warp::{LANES, Wait, Warp, lanes_of};

/// Bits of an address in shared memory; the others say which block of the cluster.
pub const SHARED: u64 = 0xff_ffff;
/// The first of these others.
pub const RANK: u32 = 24;

/// Another block of the cluster, while one runs.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    shared: Vec<u8>,
    tensor: Tensor,
    ended: bool,
}

/// What a block knows of the barrier of its cluster.
#[derive(Clone, Debug, Default)]
pub struct Meeting {
    /// Lanes of each warp that have arrived since it was last complete.
    arrived: Vec<u32>,
    /// Lanes of each warp that have ever arrived.
    ever: Vec<u32>,
}

impl Meeting {
    /// Nobody has arrived.
    pub fn new(warps: usize) -> Meeting {
        Meeting { arrived: vec![0; warps], ever: vec![0; warps] }
    }
}

/// Lends the shared memory of all other blocks of the cluster to the simulator.
pub fn lend(m: &mut Machine, cluster: &mut [Block], runs: usize) {
    if cluster.len() == 1 {
        return;
    }
    m.peers.resize_with(cluster.len(), Peer::default);
    for (at, (peer, block)) in m.peers.iter_mut().zip(cluster).enumerate() {
        if at != runs {
            let (shared, tensor) = (std::mem::take(&mut block.shared), std::mem::take(&mut block.tensor));
            *peer = Peer { ended: block.done(), shared, tensor };
        }
    }
}

/// Takes back what was lent.
pub fn take_back(m: &mut Machine, cluster: &mut [Block], runs: usize) {
    for (at, (peer, block)) in m.peers.iter_mut().zip(cluster).enumerate() {
        if at != runs {
            block.shared = std::mem::take(&mut peer.shared);
            block.tensor = std::mem::take(&mut peer.tensor);
        }
    }
}

/// The bytes at an address in the cluster.
///
/// # Errors
///
/// An access out of bounds, or to a block that has ended or does not exist.
pub fn bytes<'a>(m: &'a mut Machine, block: &'a mut Block, at: u64, width: u64) -> Result<&'a mut [u8], Fault> {
    let rank = (at >> RANK & 0xff) as u32;
    if is_own(block, at) {
        return flat(&mut block.shared, "shared", at & SHARED, width);
    }
    let blocks = m.peers.len().max(1);
    match m.peers.get_mut(rank as usize) {
        Some(peer) if !peer.ended => flat(&mut peer.shared, "shared", at & SHARED, width),
        Some(_) => {
            let what = format!("shared memory of block {rank} of the cluster, which has ended");
            Err(Fault::of(Kind::OutOfBounds, what).about(at))
        }
        None => {
            let what = format!("shared memory of block {rank} of a cluster of {blocks}");
            Err(Fault::of(Kind::OutOfBounds, what).about(at))
        }
    }
}

/// The blocks that act on tensor memory together: the own one, or the pair that it belongs to, the
/// one of the lower rank first.
///
/// # Errors
///
/// A pair whose other block has ended or does not exist.
pub fn sides<'a>(m: &'a mut Machine, block: &'a mut Block, two: bool) -> Result<Vec<Side<'a>>, Fault> {
    let own: Side = (&mut block.tensor, &block.shared);
    if !two {
        return Ok(vec![own]);
    }
    let peer = m.peers.get_mut((block.rank ^ 1) as usize).filter(|peer| !peer.ended);
    let peer = peer.ok_or_else(|| Fault::new("the other block of the pair has ended or is not in the cluster"))?;
    let other: Side = (&mut peer.tensor, &peer.shared);
    Ok(if block.rank & 1 == 0 { vec![own, other] } else { vec![other, own] })
}

/// Whether an address in the cluster is in the own block.
pub fn is_own(block: &Block, at: u64) -> bool {
    (at >> RANK & 0xff) as u32 == block.rank
}

/// An address in the cluster as that of the own block.
pub fn own(block: &Block, at: u64) -> u64 {
    at & SHARED | u64::from(block.rank) << RANK
}

/// UCGABAR_ARV.
///
/// # Errors
///
/// A second arrival before the barrier is complete.
pub fn arrive(block: &mut Block, warp: usize, lanes: u32) -> Result<(), Fault> {
    let arrived = &mut block.meeting.arrived[warp];
    if *arrived & lanes != 0 {
        let what = "threads arrive twice at the barrier of the cluster before it is complete";
        return Err(Fault::new(what).among(*arrived & lanes));
    }
    *arrived |= lanes;
    block.meeting.ever[warp] |= lanes;
    Ok(())
}

/// UCGABAR_WAIT: lanes whose arrival is over continue, the others wait.
///
/// # Errors
///
/// A lane that has not arrived.
pub fn wait(block: &mut Block, warp: usize, lanes: u32) -> Result<(), Fault> {
    let absent = lanes & !block.meeting.ever[warp];
    if absent != 0 {
        return Err(Fault::new("threads wait at the barrier of the cluster and have not arrived").among(absent));
    }
    let pending = lanes & block.meeting.arrived[warp];
    let w = &mut block.warps[warp];
    lanes_of(lanes & !pending).for_each(|lane| w.pc[lane] += 1);
    w.suspend(pending, |_| Wait::Cluster);
    Ok(())
}

/// Completes the barrier if all living threads of the cluster have arrived. Returns whether
/// somebody goes on.
pub fn settle(cluster: &mut [Block]) -> bool {
    let all = |block: &Block| block.warps.iter().zip(&block.meeting.arrived).all(|(w, lanes)| w.alive & !lanes == 0);
    let some = |block: &Block| block.meeting.arrived.iter().any(|lanes| *lanes != 0);
    if !cluster.iter().any(some) || !cluster.iter().all(all) {
        return false;
    }
    let mut moved = false;
    for block in cluster {
        block.meeting.arrived.fill(0);
        for warp in &mut block.warps {
            let waiting = warp.lanes_where(warp.alive & !warp.running, |lane| warp.wait[lane] == Wait::Cluster);
            if waiting != 0 {
                warp.release(waiting);
                control::settle(warp);
                moved = true;
            }
        }
    }
    moved
}

/// The addresses that a copy writes: one in each block of the mask, or that of the operand.
pub fn each(at: u64, mask: Option<u32>) -> Vec<u64> {
    let Some(mask) = mask else { return vec![at] };
    lanes_of(mask).map(|rank| at & SHARED | (rank as u64) << RANK).collect()
}

/// The barriers that learn of a copy: one in each block of the mask, or in the block of its pair
/// whose rank has the parity of the operand's; or that of the operand.
pub fn barriers(at: u64, mask: Option<u32>, pair: bool) -> Vec<u64> {
    let mut all = each(at, mask);
    if pair && mask.is_some() {
        all.iter_mut().for_each(|place| *place = *place & !(1 << RANK) | at & 1 << RANK);
    }
    all
}

/// Bytes of the answer to a request for a cluster.
pub const ANSWER: u64 = 16;

/// A store in a block of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Bytes of what is stored.
    pub bytes: u8,
    /// The operation that joins the old value and the new one.
    pub reduces: Option<(AtomicOp, AtomicType)>,
}

/// The addresses of the value and of the barrier.
pub fn places(w: &Warp, code: &Code, lane: usize) -> [u64; 2] {
    let pair = w.get(&code.a, lane);
    [(pair & 0xffff_ffff).wrapping_add(code.off as u64) & 0xffff_ffff, pair >> 32]
}

/// Executes one of them for the active lanes.
///
/// # Errors
///
/// A misaligned or out-of-bounds access, and what the barrier does not allow.
pub fn execute(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    remote: Remote,
) -> Result<(), Fault> {
    for lane in lanes_of(active) {
        let [to, barrier] = places(&block.warps[warp], code, lane);
        let width = u64::from(remote.bytes);
        if !to.is_multiple_of(width) {
            let what = format!("misaligned store of {width} bytes at {to:#x}");
            return Err(Fault::of(Kind::Misaligned, what).about(to).on_lane(lane));
        }
        let w = &block.warps[warp];
        let word = |n: usize| match code.b.from {
            From::Reg(first) if first != 255 => w.reg(usize::from(first) + n, lane),
            _ => 0,
        };
        let words: Vec<u32> = (0..usize::from(remote.bytes / 4)).map(word).collect();
        let place = bytes(m, block, to, width).map_err(|fault| fault.on_lane(lane))?;
        match remote.reduces {
            Some((op, ty)) => {
                let value = words.iter().rev().fold(0, |value, word| value << 32 | u64::from(*word));
                store(place, atomic::apply(op, ty, load(place), value, 0));
            }
            None => {
                place.chunks_exact_mut(4).zip(&words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()))
            }
        }
        mbarrier::complete(m, block, barrier, width as u32).map_err(|fault| fault.on_lane(lane))?;
    }
    Ok(())
}

/// Executes UGETNEXTWORKID, which acts once for all lanes of a group.
///
/// # Errors
///
/// A misaligned or out-of-bounds access, and what the barrier does not allow.
pub fn cancel(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    all: bool,
) -> Result<(), Fault> {
    let lane = active.trailing_zeros() as usize % LANES;
    let [to, barrier] = places(&block.warps[warp], code, lane);
    if !to.is_multiple_of(ANSWER) {
        return Err(Fault::of(Kind::Misaligned, format!("misaligned answer of {ANSWER} bytes at {to:#x}")).about(to));
    }
    let answer = m.clusters.cancel();
    let blocks = all.then(|| (1 << m.clusters.size()) - 1);
    for to in each(to, blocks) {
        let place = bytes(m, block, to, ANSWER)?;
        place.chunks_exact_mut(8).zip(answer).for_each(|(place, word)| store(place, word));
    }
    each(barrier, blocks).into_iter().try_for_each(|at| mbarrier::complete(m, block, at, ANSWER as u32))
}
