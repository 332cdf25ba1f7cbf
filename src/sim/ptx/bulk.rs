//! Executes `cp.async.bulk` and `cp.reduce.async.bulk` (PTX ISA 9.7.9.27), and `st.bulk`.
//!
//! A copy completes when it is issued, and the barrier that it names learns of all its bytes then.
//! Addresses and sizes are multiples of 16.

use super::atomic::next;
use super::mbarrier::{How, Mbarrier};
use super::memory::Address;
use super::program::Src;
use super::state::{Scene, Thread};
use crate::arrays::Each;
use crate::sim::fault::{Fault, Kind};
use crate::sim::memory::{load, store};
use crate::tables::ptx::{AtomOp, ScalarType, Space};
use std::ops::Range;

/// What addresses and sizes are multiples of.
pub const UNIT: u64 = 16;
/// Bytes that are moved at a time.
const PIECE: u64 = 8;

/// A copy or a reduction in bulk.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    pub to: Address,
    pub from: Address,
    pub bytes: Src,
    /// How many bytes at the beginning and at the end of the source need not exist; what they
    /// leave in the destination has no value.
    pub ends: Option<[Src; 2]>,
    /// The barrier that learns of the bytes.
    pub barrier: Option<Address>,
    /// The operation that joins the old elements and the new ones.
    pub reduces: Option<(AtomOp, ScalarType)>,
    /// Which bytes of each unit are copied.
    pub mask: Option<Src>,
    /// The blocks of the cluster that it copies to, if not that of the address.
    pub blocks: Option<Src>,
}

impl Scene<'_> {
    /// Performs a copy in bulk immediately.
    ///
    /// # Errors
    ///
    /// A misaligned or out-of-bounds access, and what the barrier does not allow.
    pub fn copy_in_bulk(&mut self, thread: &mut Thread, bulk: &Bulk) -> Result<(), Fault> {
        let operands = [Some(bulk.to.base), Some(bulk.from.base), Some(bulk.bytes), bulk.mask, bulk.blocks];
        operands.iter().flatten().chain(bulk.ends.iter().flatten()).for_each(|src| {
            self.decide(thread, "a copy in bulk", src);
        });
        let (to, from) = (self.locate(thread, &bulk.to), self.locate(thread, &bulk.from));
        let bytes = self.value(thread, &bulk.bytes);
        for number in [to.1, from.1, bytes] {
            if !number.is_multiple_of(UNIT) {
                let what = format!("copy in bulk of {bytes} bytes from {:#x} to {:#x}", from.1, to.1);
                return Err(Fault::of(Kind::Misaligned, what).about(number));
            }
        }
        let mask = bulk.mask.map_or(u64::MAX, |src| self.value(thread, &src));
        let blocks = bulk.blocks.map(|src| self.value(thread, &src));
        let targets = self.each_block(to.1, blocks);
        let pieces = targets.iter().flat_map(|to| (0..bytes).step_by(PIECE as usize).map(move |offset| (*to, offset)));
        let there = self.there(thread, bulk.ends, bytes)?;
        for (target, offset) in pieces {
            let kept = !spread(mask >> (offset % UNIT));
            let (source, at) = ((from.0, from.1 + offset), (to.0, target + offset));
            let whole = there.contains(&offset) && offset + PIECE <= there.end;
            let (value, lacks) = match whole {
                true => (self.load(thread, source, PIECE)?, self.read(thread, source, PIECE) & !kept),
                false => self.part(thread, source, |byte| there.contains(&(offset + byte)))?,
            };
            let old = load(self.bytes(thread, at, PIECE, true)?);
            let value = bulk.reduces.map_or(value, |(op, ty)| joined(op, ty, to.0, old, value));
            let new = old & kept | value & !kept;
            self.written(thread, at, PIECE, new, lacks);
            store(self.bytes(thread, at, PIECE, true)?, new);
        }
        let Some(barrier) = bulk.barrier else { return Ok(()) };
        self.complete_in(thread, &barrier, blocks, bytes)
    }

    /// The bytes of a copy that exist, counted from its beginning.
    fn there(&self, thread: &Thread, ends: Option<[Src; 2]>, bytes: u64) -> Result<Range<u64>, Fault> {
        let [left, right] = ends.map_or([0; 2], |ends| ends.each(|end| self.value(thread, &end)));
        if left.max(right) >= UNIT {
            return Err(Fault::new(format!("a copy in bulk whose ends lack {left} and {right} bytes")));
        }
        Ok(left..bytes.saturating_sub(right))
    }

    /// Eight bytes of which only some exist: those, and which bits have no value.
    fn part(
        &mut self,
        thread: &mut Thread,
        at: (Space, u64),
        exists: impl Fn(u64) -> bool,
    ) -> Result<(u64, u64), Fault> {
        let (mut value, mut lacks) = (0, 0);
        for byte in 0..PIECE {
            let (place, shift) = ((at.0, at.1 + byte), 8 * byte);
            let (one, none) = match exists(byte) {
                true => (self.load(thread, place, 1)?, self.read(thread, place, 1)),
                false => (0, 0xff),
            };
            value |= one << shift;
            lacks |= none << shift;
        }
        Ok((value, lacks))
    }

    /// So many bytes have come, as the barriers of the blocks learn.
    ///
    /// # Errors
    ///
    /// What a barrier does not allow.
    pub fn complete_in(
        &mut self,
        thread: &mut Thread,
        barrier: &Address,
        blocks: Option<u64>,
        bytes: u64,
    ) -> Result<(), Fault> {
        let blocks = blocks.map(|mask| self.ranks(mask));
        self.complete_at(thread, barrier, blocks, bytes)
    }

    /// The same in the blocks of these ranks, in each as often as it is named.
    ///
    /// # Errors
    ///
    /// As for a mask.
    pub fn complete_at(
        &mut self,
        thread: &mut Thread,
        barrier: &Address,
        ranks: Option<Vec<u64>>,
        bytes: u64,
    ) -> Result<(), Fault> {
        let (space, at) = self.locate(thread, barrier);
        let places = ranks.map_or(vec![at], |ranks| ranks.into_iter().map(|rank| self.in_block(at, rank)).collect());
        for at in places {
            let address = Address { space: Some(space), base: Src::Imm(at), offset: 0 };
            let number = Some(Src::Imm(bytes));
            self.mbarrier(thread, &Mbarrier { how: How::Complete, address, number, dst: None, blocks: None })?;
        }
        Ok(())
    }
}

impl Scene<'_> {
    /// `st.bulk` (PTX ISA 9.7.9.13).
    ///
    /// # Errors
    ///
    /// A misaligned or out-of-bounds access, or one outside of shared memory.
    pub fn clear(&mut self, thread: &mut Thread, to: &Address, bytes: &Src) -> Result<(), Fault> {
        [&to.base, bytes].into_iter().for_each(|src| self.decide(thread, "the address of a store", src));
        let ((space, at), bytes) = (self.locate(thread, to), self.value(thread, bytes));
        if space != Space::Shared || !bytes.is_multiple_of(PIECE) {
            return Err(Fault::new(format!("st.bulk of {bytes} bytes in {} memory", space.name())).about(at));
        }
        for at in (at..at.saturating_add(bytes)).step_by(PIECE as usize) {
            self.bytes(thread, (space, at), PIECE, true)?;
            self.written(thread, (space, at), PIECE, 0, 0);
            store(self.bytes(thread, (space, at), PIECE, true)?, 0);
        }
        Ok(())
    }
}

/// For each of eight bits a byte of ones.
fn spread(bits: u64) -> u64 {
    (0..PIECE).filter(|i| bits >> i & 1 != 0).fold(0, |mask, i| mask | 0xff << (8 * i))
}

/// The elements of eight bytes, each joined with a new one.
fn joined(op: AtomOp, ty: ScalarType, space: Space, old: u64, new: u64) -> u64 {
    let bits = ty.bits();
    let cut = |word: u64, at: u32| u128::from(word >> at & (u64::MAX >> (64 - bits)));
    let one = |at| (next(op, ty, space, cut(old, at), cut(new, at), 0) as u64) << at;
    (0..64).step_by(bits as usize).fold(0, |word, at| word | one(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_joined_one_by_one() {
        let sum = |ty, a, b| joined(AtomOp::Add, ty, Space::Global, a, b);
        assert_eq!(sum(ScalarType::U32, 0x1_ffff_ffff, 0x1_0000_0001), 0x2_0000_0000);
        assert_eq!(sum(ScalarType::F16, 0x3c00_4000_3c00_0000, 0x3c00_3c00_3c00_3c00), 0x4000_4200_4000_3c00);
        assert_eq!(sum(ScalarType::U64, u64::MAX, 2), 1);
        assert_eq!(spread(0b1000_0101), 0xff00_0000_00ff_00ff);
    }
}
