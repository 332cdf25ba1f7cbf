//! Where the lanes of a memory instruction reach, and the shadow of what they move; that of matrices is in `matrices`.
//!
//! Input: an instruction and its lanes, before it is executed. Output: a list of accesses; shadow between registers and shared or local
//! memory. Invariant: addresses are computed by the executor's own functions; global memory counts as having values, and storing bits
//! without a value there is a finding of the caller's.

use super::super::access::{address, resolve};
use super::super::atomic;
use super::super::block::Block;
use super::super::code::{Access, Code, Exec, From, Space};
use super::super::exec::lowest_if_uniform;
use super::super::setup::Setup;
use super::super::warp::{LANES, lanes_of};
use super::shadow::Shadow;
use super::touch::{File, Run, Slot, Touches};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Load,
    Store,
    Atomic,
}

/// One lane's access; a shared or local address counts from the start of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    pub lane: usize,
    pub space: Space,
    pub at: u64,
    pub bytes: u8,
    pub act: Act,
}

/// The space that an instruction names, its width, what it does.
fn kind(code: &Code) -> Option<(Space, u8, Act)> {
    Some(match code.exec {
        Exec::Load { space, access } => (space, access.bytes, Act::Load),
        Exec::Store { space, access } => (space, access.bytes, Act::Store),
        Exec::LoadWide { .. } => (Space::Global, 32, Act::Load),
        Exec::StoreWide => (Space::Global, 32, Act::Store),
        Exec::Atomic { space, ty, .. } => (space, atomic::bytes(ty), Act::Atomic),
        Exec::CopyAsync { bytes, .. } => (Space::Shared, bytes, Act::Store),
        Exec::LoadMatrix { .. } => (Space::Shared, 16, Act::Load),
        Exec::StoreMatrix { .. } => (Space::Shared, 16, Act::Store),
        _ => return None,
    })
}

/// Whether an instruction accesses memory other than constants.
pub fn is_access(code: &Code) -> bool {
    kind(code).is_some()
}

/// The accesses of a group.
pub fn reaches(setup: &Setup, block: &Block, warp: usize, code: &Code, active: u32, out: &mut Vec<Reach>) {
    out.clear();
    let Some((named, bytes, act)) = kind(code) else { return };
    let w = &block.warps[warp];
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

/// The bytes of the shadow of a shared or local access; made at the first of them.
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
                shared.resize(block.shared.len(), u8::MAX);
            }
            (shared, 0)
        }
        Space::Local => {
            let each = block.warps[warp].local_bytes;
            if shadow.local.is_empty() {
                shadow.local.resize(each * LANES, u8::MAX);
            }
            // Beyond its end the access itself is a fault.
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

/// Before a store: its data goes into the shadow. The first access that stores bits without a value to global memory.
pub fn store(
    shared: &mut Vec<u8>,
    shadow: &mut Shadow,
    block: &Block,
    warp: usize,
    (code, touches): (&Code, &Touches),
    reaches: &[Reach],
) -> Option<Reach> {
    if matches!(code.exec, Exec::StoreMatrix { .. }) {
        return None;
    }
    let copy = matches!(code.exec, Exec::CopyAsync { .. });
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

/// After an exchange: what it has put into memory has a value.
pub fn written(shared: &mut Vec<u8>, shadow: &mut Shadow, block: &Block, warp: usize, reaches: &[Reach]) {
    for r in reaches {
        if let Some(bytes) = bytes_of(shared, shadow, block, warp, r) {
            bytes.fill(0);
        }
    }
}

/// Which bytes of a lane's access of shared memory hold already what it stores, one bit each; none where its data do not come from its own
/// lane's registers.
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

/// Whether two lanes of a store store the same bits; of a store whose data do not come from its own lane's registers, yes.
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
                let [x, y] = lanes.map(|lane| w.reg(register, lane));
                (x ^ y) & used == 0
            })
        }
        _ => true,
    }
}

/// After a load: the shadow of what came from memory goes into the result.
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
    if matches!(code.exec, Exec::LoadMatrix { .. }) {
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
