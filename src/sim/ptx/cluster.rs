//! Executes what concerns a cluster: the shared memory of its other blocks, its barrier (PTX ISA
//! 9.7.13.3), `st.async` and `red.async` (9.7.9.12 and 9.7.13.7), and requests for clusters that
//! have not begun (9.7.13.18).
//!
//! All blocks of a cluster are resident together. While one of them runs, the shared memory of the
//! others is lent to it. The top byte of a shared address is 0 in the own block, and one more than
//! the rank in another. A store in a block completes when it is issued, and the barrier learns of
//! its bytes then.

use super::atomic::next;
use super::mbarrier::{How, Mbarrier};
use super::memory::Address;
use super::program::Src;
use super::state::{Block, Scene, Thread, Wait};
use crate::sim::fault::{Fault, Kind};
use crate::sim::memory::{flat, store};
use crate::sim::ops::tensor_memory::Tensor;
use crate::sim::ops::tensor_unit::Side;
use crate::tables::ptx::{AtomOp, ScalarType, Space};

/// Bits of an address in shared memory; the others say which block of the cluster.
const SHARED: u64 = 0xff_ffff;
pub const RANK: u32 = 24;

/// Bytes of the answer to a request for a cluster.
const ANSWER: u64 = 16;

/// Another block of the cluster, while one runs.
#[derive(Debug, Default)]
pub struct Peer {
    shared: Vec<u8>,
    tensor: Tensor,
    ended: bool,
}

/// Whether all threads of a block have ended.
pub fn is_over(block: &Block) -> bool {
    block.warps.iter().flat_map(|warp| &warp.threads).all(|thread| thread.wait == Wait::Ended)
}

/// Lends the shared memory of all other blocks of a cluster.
pub fn lend(peers: &mut Vec<Peer>, cluster: &mut [Block], runs: usize) {
    if cluster.len() == 1 {
        return;
    }
    peers.resize_with(cluster.len(), Peer::default);
    for (_, (peer, block)) in peers.iter_mut().zip(cluster).enumerate().filter(|(at, _)| *at != runs) {
        let (shared, tensor) = (std::mem::take(&mut block.shared), std::mem::take(&mut block.tensor));
        *peer = Peer { ended: is_over(block), shared, tensor };
    }
}

/// Takes back what was lent.
pub fn take_back(peers: &mut [Peer], cluster: &mut [Block], runs: usize) {
    for (_, (peer, block)) in peers.iter_mut().zip(cluster).enumerate().filter(|(at, _)| *at != runs) {
        block.shared = std::mem::take(&mut peer.shared);
        block.tensor = std::mem::take(&mut peer.tensor);
    }
}

/// Completes the barrier of a cluster if all living threads have arrived. Returns whether somebody
/// goes on.
pub fn settle(cluster: &mut [Block]) -> bool {
    let threads = || cluster.iter().flat_map(|block| &block.warps).flat_map(|warp| &warp.threads);
    if !threads().any(|t| t.arrived) || !threads().all(|t| t.arrived || t.wait == Wait::Ended) {
        return false;
    }
    let mut moved = false;
    for thread in cluster.iter_mut().flat_map(|block| &mut block.warps).flat_map(|warp| &mut warp.threads) {
        thread.arrived = false;
        if thread.wait == Wait::Cluster {
            thread.wait = Wait::Nothing;
            thread.pc += 1;
            moved = true;
        }
    }
    moved
}

/// A store in a block of the cluster.
#[derive(Clone, Debug)]
pub struct Remote {
    pub to: Address,
    pub values: Vec<Src>,
    pub ty: ScalarType,
    pub barrier: Address,
    /// The operation that joins the old value and the new one.
    pub reduces: Option<AtomOp>,
}

/// A request for a cluster that has not begun.
#[derive(Clone, Copy, Debug)]
pub struct Cancel {
    /// Where the answer goes.
    pub to: Address,
    pub barrier: Address,
    /// Whether all blocks of the cluster get it.
    pub all: bool,
}

impl Scene<'_> {
    /// `barrier.cluster.arrive`; in a cluster of one block, to wait is to synchronize.
    ///
    /// # Errors
    ///
    /// A second arrival before the barrier is complete.
    pub fn arrive_in_cluster(&mut self, thread: &mut Thread) -> Result<(), Fault> {
        if thread.arrived {
            return Err(Fault::new("a thread arrives twice at the barrier of the cluster before it is complete"));
        }
        (thread.arrived, thread.met) = (!self.env.is_alone(), true);
        Ok(())
    }

    /// `barrier.cluster.wait` in a cluster of several blocks.
    ///
    /// # Errors
    ///
    /// A thread that has not arrived.
    pub fn wait_for_cluster(&mut self, thread: &mut Thread) -> Result<(), Fault> {
        if !thread.met {
            return Err(Fault::new("a thread waits at the barrier of the cluster and has not arrived"));
        }
        if thread.arrived {
            thread.wait = Wait::Cluster;
        } else {
            thread.pc += 1;
        }
        Ok(())
    }

    /// The blocks that act on tensor memory together: the own one, or the pair that it belongs to,
    /// the one of the lower rank first.
    ///
    /// # Errors
    ///
    /// A pair whose other block has ended or does not exist.
    pub fn sides(&mut self, two: bool) -> Result<Vec<Side<'_>>, Fault> {
        let own: Side = (&mut *self.tensor, &*self.shared);
        if !two {
            return Ok(vec![own]);
        }
        let peer = self.peers.get_mut((self.rank ^ 1) as usize).filter(|peer| !peer.ended);
        let peer = peer.ok_or_else(|| Fault::new("the other block of the pair has ended or is not in the cluster"))?;
        let other: Side = (&mut peer.tensor, &peer.shared);
        Ok(if self.rank & 1 == 0 { vec![own, other] } else { vec![other, own] })
    }

    /// The bytes at a shared address.
    ///
    /// # Errors
    ///
    /// An access out of bounds, or to a block that has ended or does not exist.
    pub fn shared_bytes(&mut self, address: u64, width: u64) -> Result<&mut [u8], Fault> {
        let Some(rank) = (address >> RANK).checked_sub(1).filter(|_| !self.env.is_alone()) else {
            return flat(self.shared, "shared", address, width);
        };
        let blocks = self.peers.len();
        let (state, peer) = match self.peers.get_mut(rank as usize) {
            Some(peer) if !peer.ended => return flat(&mut peer.shared, "shared", address & SHARED, width),
            Some(_) => (", which has ended", rank),
            None => ("", rank),
        };
        let what = format!("shared memory of block {peer} of a cluster of {blocks}{state}");
        Err(Fault::of(Kind::OutOfBounds, what).about(address))
    }

    /// The addresses that a copy writes: one in each block of the mask, or that of the operand.
    pub fn each_block(&self, at: u64, mask: Option<u64>) -> Vec<u64> {
        let Some(mask) = mask else { return vec![at] };
        self.ranks(mask).into_iter().map(|rank| self.in_block(at, rank)).collect()
    }

    /// The blocks of a mask.
    pub fn ranks(&self, mask: u64) -> Vec<u64> {
        (0..16).filter(|rank| mask >> rank & 1 != 0).collect()
    }

    /// Of the pair of each block of a mask, the block whose rank has the parity of that of an
    /// address.
    pub fn alike_in_pairs(&self, at: u64, mask: u64) -> Vec<u64> {
        let rank = match at >> RANK {
            0 => u64::from(self.rank),
            other => other - 1,
        };
        self.ranks(mask).into_iter().map(|block| block & !1 | rank & 1).collect()
    }

    /// An address in shared memory as that in the block of a rank.
    pub fn in_block(&self, at: u64, rank: u64) -> u64 {
        let block = if rank == u64::from(self.rank) { 0 } else { rank + 1 };
        at & SHARED | block << RANK
    }

    /// Performs a store in a block of the cluster immediately.
    ///
    /// # Errors
    ///
    /// A misaligned or out-of-bounds access, and what the barrier does not allow.
    pub fn store_in_cluster(&mut self, thread: &mut Thread, remote: &Remote) -> Result<(), Fault> {
        self.decide(thread, "the address of a store", &remote.to.base);
        let ((space, first), width) = (self.locate(thread, &remote.to), u64::from(remote.ty.bits() / 8));
        let bytes = width * remote.values.len() as u64;
        self.bytes(thread, (space, first), bytes, true)?;
        for (at, src) in (first..).step_by(width as usize).zip(&remote.values) {
            self.decide(thread, "what is stored in a block of the cluster", src);
            let (old, new) = (self.load(thread, (space, at), width)?, self.value(thread, src));
            let value = match remote.reduces {
                Some(op) => next(op, remote.ty, Space::Shared, old.into(), new.into(), 0) as u64,
                None => new,
            };
            self.written(thread, (space, at), width, value, 0);
            store(self.bytes(thread, (space, at), width, true)?, value);
        }
        let number = Some(Src::Imm(bytes));
        self.mbarrier(
            thread,
            &Mbarrier { how: How::Complete, address: remote.barrier, number, dst: None, blocks: None },
        )
    }

    /// Answers a request for a cluster immediately.
    ///
    /// # Errors
    ///
    /// A misaligned or out-of-bounds access, and what the barrier does not allow.
    pub fn cancel(&mut self, thread: &mut Thread, cancel: &Cancel) -> Result<(), Fault> {
        self.decide(thread, "the address of a store", &cancel.to.base);
        let (space, at) = self.locate(thread, &cancel.to);
        if space != Space::Shared || !at.is_multiple_of(ANSWER) {
            let what = format!("an answer of {ANSWER} bytes at {at:#x} in {} memory", space.name());
            return Err(Fault::of(Kind::Misaligned, what).about(at));
        }
        let answer = self.clusters.cancel();
        // Where no block is there is no place.
        let lacks = [if answer[1] == 0 { u64::MAX } else { 0 }, 0];
        let blocks = cancel.all.then_some((1 << self.env.cluster.iter().product::<u32>()) - 1);
        for first in self.each_block(at, blocks) {
            for (n, at) in (first..).step_by(8).enumerate().take(2) {
                self.bytes(thread, (space, at), 8, true)?;
                self.written(thread, (space, at), 8, answer[n], lacks[n]);
                store(self.bytes(thread, (space, at), 8, true)?, answer[n]);
            }
        }
        self.complete_in(thread, &cancel.barrier, blocks, ANSWER)
    }
}
