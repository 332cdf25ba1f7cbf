//! The memory accesses of an instruction's lanes, and the shadow of the data that they move;
//! `matrices` does the same for matrix instructions.
//!
//! Addresses are computed by the executor's own functions. Global memory counts as defined, and
//! storing undefined bits there is a finding for the caller to report.

use super::super::access::{address, resolve};
use super::super::atomic;
use super::super::block::Block;
use super::super::bulk::{Bulk, CLEARED, UNIT, cleared};
use super::super::cluster::{self, Remote};
use super::super::code::{Access, Code, Exec, From, Space};
use super::super::exec::{Machine, lowest_if_uniform};
use super::super::mbarrier;
use super::super::setup::Setup;
use super::super::tensor::Tensor;
use super::super::warp::{LANES, Warp, lanes_of};
use super::accesses::{File, Run, Slot, Touches};
use super::shadow::Shadow;
use crate::arrays::Each;
use crate::sim::ops::tensor_map::Unit;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Load,
    Store,
    Atomic,
}

/// One lane's access; shared and local addresses are offsets in their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The lane.
    pub lane: usize,
    /// The state space.
    pub space: Space,
    /// The first byte's address.
    pub at: u64,
    /// The number of bytes.
    pub bytes: u8,
    /// Load, store or atomic.
    pub act: Act,
}

/// The space, width and kind of an instruction's access.
fn kind(code: &Code) -> Option<(Space, u8, Act)> {
    Some(match code.exec {
        Exec::Load { space, access } => (space, access.bytes, Act::Load),
        Exec::Store { space, access } => (space, access.bytes, Act::Store),
        Exec::LoadWide { .. } => (Space::Global, 32, Act::Load),
        Exec::StoreWide => (Space::Global, 32, Act::Store),
        Exec::Atomic { space, ty, .. } => (space, atomic::bytes(ty), Act::Atomic),
        Exec::CopyAsync { bytes, .. } => (Space::Shared, bytes, Act::Store),
        Exec::Bulk(bulk) => (Space::Shared, UNIT as u8, if bulk.to_global { Act::Load } else { Act::Store }),
        Exec::Remote(Remote { bytes, reduces: None }) => (Space::Shared, bytes, Act::Store),
        Exec::Remote(remote) => (Space::Shared, remote.bytes, Act::Atomic),
        Exec::Tensor(tensor) => (Space::Shared, UNIT as u8, if tensor.loads { Act::Store } else { Act::Load }),
        Exec::Cancel { .. } => (Space::Shared, cluster::ANSWER as u8, Act::Store),
        Exec::Clear => (Space::Shared, CLEARED as u8, Act::Store),
        Exec::Mbarrier(mbarrier::Act::Exchange) => (Space::Shared, 8, Act::Store),
        Exec::Mbarrier(mbarrier::Act::End) => return None,
        Exec::Mbarrier(_) => (Space::Shared, 8, Act::Atomic),
        Exec::LoadMatrix { .. } | Exec::Group(_) => (Space::Shared, 16, Act::Load),
        Exec::StoreMatrix { .. } => (Space::Shared, 16, Act::Store),
        _ => return None,
    })
}

/// Whether an instruction accesses memory other than constant banks.
pub fn is_access(code: &Code) -> bool {
    kind(code).is_some()
}

/// The accesses of a group.
pub fn reaches(setup: &Setup, block: &Block, warp: usize, code: &Code, active: u32, out: &mut Vec<Reach>) {
    out.clear();
    let Some((named, bytes, act)) = kind(code) else { return };
    let w = &block.warps[warp];
    if let Exec::Group(group) = code.exec {
        let lane = active.trailing_zeros() as usize % LANES;
        return out.extend(group.chunks(w, code).into_iter().map(|at| Reach { lane, space: named, at, bytes, act }));
    }
    if let Exec::Bulk(bulk) = code.exec {
        return out.extend(bulk_reaches(bulk, w, code, active));
    }
    if matches!(code.exec, Exec::Cancel { .. }) {
        let lane = active.trailing_zeros() as usize % LANES;
        let [to, barrier] = cluster::places(w, code, lane).each(|at| at & cluster::SHARED);
        out.push(Reach { lane, space: named, at: to, bytes, act });
        return out.push(Reach { lane, space: named, at: barrier, bytes: 8, act: Act::Atomic });
    }
    if matches!(code.exec, Exec::Clear) {
        let (first, bytes) = cleared(w, code, active);
        let lane = active.trailing_zeros() as usize % LANES;
        let one = |at| Reach { lane, space: Space::Shared, at, bytes: CLEARED as u8, act };
        return out.extend((first..first + bytes).step_by(CLEARED as usize).map(one));
    }
    let rows = match code.exec {
        Exec::LoadMatrix { count, .. } | Exec::StoreMatrix { count, .. } => {
            u32::MAX >> (32 - 8 * u32::from(count.min(4)))
        }
        _ => u32::MAX,
    };
    for lane in lanes_of(lowest_if_uniform(code, active) & rows) {
        let (space, at) = match code.exec {
            Exec::CopyAsync { offset, .. } => {
                (Space::Shared, u64::from((w.get(&code.c, lane) as u32).wrapping_add(offset as u32)))
            }
            Exec::Remote(_) => (Space::Shared, cluster::places(w, code, lane)[0]),
            _ if named == Space::Generic => resolve(setup, address(w, code, lane)),
            _ => (named, address(w, code, lane)),
        };
        let at = match space {
            Space::Shared => at & 0xff_ffff,
            Space::Local => at & 0xffff_ffff,
            _ => at,
        };
        out.push(Reach { lane, space, at, bytes, act });
    }
}

/// The accesses of a copy in bulk to shared memory: what it reads there, or what it writes there
/// and then the barrier. A reduction there is taken for a store.
fn bulk_reaches(bulk: Bulk, w: &Warp, code: &Code, active: u32) -> Vec<Reach> {
    let lane = active.trailing_zeros() as usize % LANES;
    let places = bulk.places(w, code, active);
    let run = |first: u64, act| {
        let one = move |at| Reach { lane, space: Space::Shared, at, bytes: UNIT as u8, act };
        (first..first + places.bytes).step_by(UNIT as usize).map(one)
    };
    let mut all = Vec::new();
    if !bulk.to_global {
        all.extend(run(places.to & cluster::SHARED, Act::Store));
    }
    if !bulk.from_global {
        all.extend(run(places.from, Act::Load));
    }
    let barrier = places.barrier.map(|at| at & cluster::SHARED);
    all.extend(barrier.map(|at| Reach { lane, space: Space::Shared, at, bytes: 8, act: Act::Atomic }));
    all
}

/// The accesses of a copy of a box to shared memory: what it reads there, or what it writes there
/// and then the barrier. None where the copy faults.
pub fn tensor_reaches(m: &mut Machine, w: &Warp, code: &Code, active: u32, tensor: Tensor) -> Vec<Reach> {
    let lane = active.trailing_zeros() as usize % LANES;
    let places = tensor.places(w, code, active);
    let Ok((_, units)) = places.units(m) else { return Vec::new() };
    let act = if tensor.loads { Act::Store } else { Act::Load };
    let one = |unit: Unit| {
        let (first, end) = if tensor.loads { (0, UNIT) } else { unit.inside };
        Reach { lane, space: Space::Shared, at: unit.shared + first, bytes: (end - first) as u8, act }
    };
    let mut all: Vec<Reach> = units.into_iter().map(one).filter(|reach| reach.bytes != 0).collect();
    let barrier = places.barrier.map(|at| at & cluster::SHARED);
    all.extend(barrier.map(|at| Reach { lane, space: Space::Shared, at, bytes: 8, act: Act::Atomic }));
    all
}

/// Nothing in shared memory has a value at first, but what the block keeps of its tensor memory.
pub fn open(shared: &mut Vec<u8>, block: &Block) {
    shared.resize(block.shared.len(), u8::MAX);
    shared.iter_mut().take(block.reserved).for_each(|bits| *bits = 0);
}

/// The shadow bytes of a shared or local access; allocated on first use.
fn bytes_of<'a>(
    shared: &'a mut Vec<u8>,
    shadow: &'a mut Shadow,
    block: &Block,
    warp: usize,
    r: &Reach,
) -> Option<&'a mut [u8]> {
    let (memory, base) = match r.space {
        Space::Shared => {
            if shared.is_empty() {
                open(shared, block);
            }
            (shared, 0)
        }
        Space::Local => {
            let each = block.warps[warp].local_bytes;
            if shadow.local.is_empty() {
                shadow.local.resize(each * LANES, u8::MAX);
            }
            // An access past the end is reported as a fault by the access itself.
            if r.at + u64::from(r.bytes) > each as u64 {
                return None;
            }
            (&mut shadow.local, r.lane * each)
        }
        _ => return None,
    };
    let start = base + r.at as usize;
    memory.get_mut(start..start + usize::from(r.bytes))
}

/// The shadow of the words that a lane stores, as bytes.
fn stored(shadow: &Shadow, reads: &[Run], r: &Reach) -> [u8; 32] {
    let mut bytes = [0; 32];
    let data = reads.iter().filter(|run| matches!(run.slot, Slot::B | Slot::C));
    let words = data.flat_map(|run| {
        let first = usize::from(run.first);
        (0..usize::from(run.count)).map(move |i| shadow.get(run.file, first + i, r.lane))
    });
    bytes.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    bytes[usize::from(r.bytes)..].fill(0);
    bytes
}

/// Before a store: writes the data's shadow to that of memory. Returns the first access that stores
/// undefined bits to global memory.
pub fn store(
    shared: &mut Vec<u8>,
    shadow: &mut Shadow,
    block: &Block,
    warp: usize,
    (code, touches): (&Code, &Touches),
    reaches: &[Reach],
) -> Option<Reach> {
    if matches!(code.exec, Exec::StoreMatrix { .. } | Exec::Bulk(_) | Exec::Tensor(_)) {
        return None;
    }
    let copy = matches!(code.exec, Exec::CopyAsync { .. } | Exec::Clear | Exec::Cancel { .. });
    let data = touches.reads.iter().filter(|run| matches!(run.slot, Slot::B | Slot::C));
    let dirty = if copy { 0 } else { data.fold(0, |mask, run| mask | shadow.lanes_of(*run)) };
    let mut found = None;
    for r in reaches {
        let fresh = if dirty >> r.lane & 1 != 0 { stored(shadow, &touches.reads, r) } else { [0; 32] };
        match bytes_of(shared, shadow, block, warp, r) {
            Some(bytes) => bytes.copy_from_slice(&fresh[..usize::from(r.bytes)]),
            None if fresh.iter().any(|byte| *byte != 0) => found = found.or(Some(*r)),
            None => {}
        }
    }
    found
}

/// Before a copy in bulk: what it writes in shared memory is as undefined as what it reads there.
/// Returns the first undefined unit that goes to global memory.
pub fn bulk(shared: &mut Vec<u8>, block: &Block, reaches: &[Reach]) -> Option<Reach> {
    if shared.is_empty() {
        open(shared, block);
    }
    let all = |act| reaches.iter().filter(move |r| r.act == act);
    let place = |r: &Reach| r.at as usize..r.at as usize + usize::from(r.bytes);
    let read: Vec<Vec<u8>> =
        all(Act::Load).map(|r| shared.get(place(r)).map(<[u8]>::to_vec).unwrap_or_default()).collect();
    let written = all(Act::Store).count();
    for (i, r) in all(Act::Store).enumerate() {
        if let Some(bytes) = shared.get_mut(place(r)) {
            match read.get(i).filter(|from| from.len() == bytes.len()) {
                Some(from) => bytes.copy_from_slice(from),
                None => bytes.fill(0),
            }
        }
    }
    let open = read.iter().position(|bytes| bytes.iter().any(|byte| *byte != 0));
    open.filter(|_| written == 0).and_then(|i| all(Act::Load).nth(i)).copied()
}

/// After an exchange: marks the stored bytes as defined.
pub fn written(shared: &mut Vec<u8>, shadow: &mut Shadow, block: &Block, warp: usize, reaches: &[Reach]) {
    for r in reaches {
        if let Some(bytes) = bytes_of(shared, shadow, block, warp, r) {
            bytes.fill(0);
        }
    }
}

/// Mask of the bytes of shared memory that already hold the value a lane stores; 0 if its data do
/// not come from the lane's own registers.
pub fn unchanged(block: &Block, warp: usize, code: &Code, r: &Reach) -> u32 {
    if !matches!(code.exec, Exec::Store { .. }) {
        return 0;
    }
    let (w, first) = (&block.warps[warp], block.warps[warp].get(&code.b, r.lane));
    let word = |i: usize| match code.b.from {
        From::Reg(reg) if reg != 255 => w.reg(usize::from(reg) + i, r.lane),
        From::UReg(reg) if reg != 255 => w.ureg(usize::from(reg) + i),
        _ => (first >> (32 * i.min(1))) as u32 * u32::from(i < 2),
    };
    let there = block.shared.get(r.at as usize..).unwrap_or_default();
    let bytes = (0..usize::from(r.bytes)).map(|i| (word(i / 4) >> (8 * (i % 4))) as u8);
    let pairs = bytes.zip(there).enumerate();
    pairs.fold(0, |mask, (i, (new, old))| mask | u32::from(new == *old) << i)
}

/// Whether two lanes of a store store the same bits; true if the data do not come from the lanes'
/// own registers.
pub fn same_data(block: &Block, warp: usize, code: &Code, lanes: [usize; 2]) -> bool {
    let words = match code.exec {
        Exec::Store { access, .. } => (access.bytes / 4).max(1),
        _ => return true,
    };
    let w = &block.warps[warp];
    let used = if let Exec::Store { access: Access { bytes: bytes @ 1..4, .. }, .. } = code.exec {
        u32::MAX >> (32 - 8 * u32::from(bytes))
    } else {
        u32::MAX
    };
    match code.b.from {
        From::Reg(first) if first != 255 => {
            (usize::from(first)..usize::from(first) + usize::from(words)).all(|register| {
                let [x, y] = lanes.each(|lane| w.reg(register, lane));
                (x ^ y) & used == 0
            })
        }
        _ => true,
    }
}

/// After a load: copies the shadow of memory to that of the result.
pub fn load(
    shared: &mut Vec<u8>,
    shadow: &mut Shadow,
    block: &Block,
    warp: usize,
    (code, touches): (&Code, &Touches),
    reaches: &[Reach],
) {
    let Some(run) = touches.writes.iter().find(|run| matches!(run.file, File::Reg | File::UReg)).copied() else {
        return;
    };
    if matches!(code.exec, Exec::LoadMatrix { .. } | Exec::Group(_)) {
        return;
    }
    let access = if let Exec::Load { access, .. } = code.exec { Some(access) } else { None };
    for r in reaches {
        let mut words = [0u32; 8];
        if let Some(bytes) = bytes_of(shared, shadow, block, warp, r)
            && bytes.iter().any(|byte| *byte != 0)
        {
            match (bytes, access) {
                (&mut [byte], Some(Access { signed: true, .. })) => words[0] = byte as i8 as u32,
                (&mut [low, high], Some(Access { signed: true, .. })) => {
                    words[0] = i16::from_le_bytes([low, high]) as u32;
                }
                (&mut [byte], _) => words[0] = byte.into(),
                (&mut [low, high], _) => words[0] = u16::from_le_bytes([low, high]).into(),
                (bytes, _) => words.iter_mut().zip(bytes.chunks_exact(4)).for_each(|(word, bytes)| {
                    *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
                }),
            }
        }
        for (i, register) in run.registers().enumerate() {
            if let Some(word) = words.get(i).filter(|word| **word != 0) {
                shadow.set(run.file, register, r.lane, *word);
            }
        }
    }
}
