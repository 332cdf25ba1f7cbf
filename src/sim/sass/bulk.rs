//! Executes UBLKCP and UBLKRED, copies and reductions in bulk, and UMEMSETS.
//!
//! The copy unit acts once for all lanes of a group, and here at once: a barrier in shared memory
//! learns of all bytes when the copy is issued. Addresses and sizes are multiples of 16.

use super::super::fault::{Fault, Kind};
use super::super::memory::{flat, load, store};
use super::access::address;
use super::atomic;
use super::block::Block;
use super::cluster::{self, SHARED};
use super::code::{AtomicOp, AtomicType, Code};
use super::exec::Machine;
use super::mbarrier;
use super::warp::{LANES, Warp};
use crate::arrays::Each;

/// What addresses and sizes are multiples of.
pub const UNIT: u64 = 16;
/// What UMEMSETS counts in.
pub const CLEARED: u64 = 8;

/// A copy or a reduction in bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// Whether it writes global memory, and not shared.
    pub to_global: bool,
    /// Whether it reads global memory, and not shared.
    pub from_global: bool,
    /// The operation that joins the old elements and the new ones.
    pub reduces: Option<(AtomicOp, AtomicType)>,
    /// Whether a mask says which bytes of each unit are written.
    pub masked: bool,
    /// Whether a mask says to which blocks of the cluster it copies.
    pub multicast: bool,
    /// The same by a mask of 32 bits.
    pub wide: bool,
}

/// The operands of one copy.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub to: u64,
    pub from: u64,
    pub bytes: u64,
    /// The barrier that learns of the bytes.
    pub barrier: Option<u64>,
    /// Which bytes of each unit are written.
    mask: u32,
    /// The blocks of the cluster that it copies to, if not that of the address.
    pub blocks: Option<u32>,
}

impl Bulk {
    /// Where it copies, by the operands of a lane, which are the same in all.
    pub fn places(self, w: &Warp, code: &Code, active: u32) -> Places {
        let lane = active.trailing_zeros() as usize % LANES;
        let [to, from, size] = [&code.a, &code.b, &code.c].each(|src| w.get(src, lane));
        let bytes = (size & 0xffff) * UNIT;
        let mask = if self.masked { (size >> 16) as u32 & 0xffff } else { 0xffff };
        let from = if self.from_global { from } else { from & SHARED };
        let blocks = match self.wide {
            true => Some((size >> 32) as u32),
            false => self.multicast.then_some((size >> 16) as u32 & 0xffff),
        };
        match self.to_global {
            true => Places { to, from, bytes, barrier: None, mask, blocks },
            false => Places { to: to & 0xffff_ffff, from, bytes, barrier: Some(to >> 32), mask, blocks },
        }
    }

    /// The new contents of one unit.
    fn unit(self, to: &mut [u8], from: &[u8], mask: u32) {
        let Some((op, ty)) = self.reduces else {
            let chosen = to.iter_mut().zip(from).enumerate().filter(|(i, _)| mask >> i & 1 != 0);
            return chosen.for_each(|(_, (to, from))| *to = *from);
        };
        let width = usize::from(atomic::bytes(ty));
        for (to, from) in to.chunks_exact_mut(width).zip(from.chunks_exact(width)) {
            store(to, atomic::apply(op, ty, load(to), load(from), 0));
        }
    }
}

/// Where UMEMSETS clears, and how many bytes.
pub fn cleared(w: &Warp, code: &Code, active: u32) -> (u64, u64) {
    let lane = active.trailing_zeros() as usize % LANES;
    (address(w, code, lane) & SHARED, w.get(&code.b, lane) * CLEARED)
}

/// Executes UMEMSETS.
///
/// # Errors
///
/// A misaligned or out-of-bounds access.
pub fn clear(block: &mut Block, warp: usize, code: &Code, active: u32) -> Result<(), Fault> {
    let (at, bytes) = cleared(&block.warps[warp], code, active);
    if !at.is_multiple_of(CLEARED) {
        return Err(Fault::of(Kind::Misaligned, format!("misaligned clearing of {bytes} bytes at {at:#x}")).about(at));
    }
    flat(&mut block.shared, "shared", at, bytes)?.fill(0);
    Ok(())
}

/// What a copy reads in global memory. It takes whole units: of the first and the last one, bytes
/// may be beside an allocation, which have any value. Only the interpreter knows whether the
/// program allows it (`.ignore_oob`): the word does not say.
fn global_units(m: &mut Machine, from: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
    let fault = match m.global.slice(from, bytes, false) {
        Ok(data) => return Ok(data.to_vec()),
        Err(fault) => fault,
    };
    let lacking = (0..2 * UNIT - 1).flat_map(|sum| (0..=sum).map(move |left| [left, sum - left]));
    for [left, right] in lacking.filter(|ends| ends.iter().all(|end| *end < UNIT) && ends[0] + ends[1] < bytes) {
        if let Ok(data) = m.global.slice(from + left, bytes - left - right, false) {
            return Ok([vec![0; left as usize], data.to_vec(), vec![0; right as usize]].concat());
        }
    }
    Err(fault)
}

/// Executes one of them.
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
    bulk: Bulk,
) -> Result<(), Fault> {
    let Places { to, from, bytes, barrier, mask, blocks } = bulk.places(&block.warps[warp], code, active);
    for address in [to, from] {
        if !address.is_multiple_of(UNIT) {
            let what = format!("copy in bulk of {bytes} bytes from {from:#x} to {to:#x}");
            return Err(Fault::of(Kind::Misaligned, what).about(address));
        }
    }
    let data = match bulk.from_global {
        _ if bytes == 0 => Vec::new(),
        true => global_units(m, from, bytes)?,
        false => flat(&mut block.shared, "shared", from, bytes)?.to_vec(),
    };
    let targets = if bulk.to_global { vec![to] } else { cluster::each(to, blocks) };
    for to in targets.into_iter().filter(|_| bytes != 0) {
        let place = match bulk.to_global {
            true => m.global.slice(to, bytes, true)?,
            false => cluster::bytes(m, block, to, bytes)?,
        };
        let units = place.chunks_exact_mut(UNIT as usize).zip(data.chunks_exact(UNIT as usize));
        units.for_each(|(to, from)| bulk.unit(to, from, mask));
    }
    let barriers = barrier.map_or(Vec::new(), |at| cluster::each(at, blocks));
    barriers.into_iter().try_for_each(|at| mbarrier::complete(m, block, at, bytes as u32))
}
