//! Executes loads, stores, atomics and asynchronous copies of a group of lanes.
//!
//! Lanes access memory one after another in ascending order. Every access must be aligned and
//! inside an allocation; a fault carries the lane and the address.

use super::super::fault::{Fault, Kind};
use super::super::memory::{flat, load, store};
use super::atomic;
use super::block::Block;
use super::code::{Access, AtomicOp, AtomicType, Code, Exec, Space};
use super::exec::{Machine, lowest_if_uniform};
use super::setup::Setup;
use super::warp::{Warp, lanes_of};

/// Executes a memory instruction for the active lanes.
///
/// # Errors
///
/// A misaligned, out-of-bounds or forbidden access.
pub fn execute(m: &mut Machine, block: &mut Block, warp: usize, code: &Code, active: u32) -> Result<(), Fault> {
    for lane in lanes_of(lowest_if_uniform(code, active)) {
        let done = match code.exec {
            Exec::Load { space, access } => load_lane(m, block, warp, code, lane, space, access),
            Exec::Store { space, access } => store_lane(m, block, warp, code, lane, space, access),
            Exec::LoadConst { bank, access } => load_const(m.setup, &mut block.warps[warp], code, lane, bank, access),
            Exec::LoadWide { high, mask } => load_wide(m, block, warp, code, lane, (high, mask)),
            Exec::StoreWide => store_wide(m, block, warp, code, lane),
            Exec::CopyAsync { bytes, offset, fill } => copy_async(m, block, warp, code, lane, (bytes, offset, fill)),
            Exec::Atomic { space, op, ty } if atomic::bytes(ty) > 8 || matches!(ty, AtomicType::Lanes(..)) => {
                atomic_wide(m, block, warp, code, lane, (space, op, ty))
            }
            Exec::Atomic { space, op, ty } => atomic_lane(m, block, warp, code, lane, (space, op, ty)),
            _ => Ok(()),
        };
        done.map_err(|fault| fault.on_lane(lane))?;
    }
    Ok(())
}

fn atomic_lane(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    lane: usize,
    (space, op, ty): (Space, AtomicOp, AtomicType),
) -> Result<(), Fault> {
    let bytes = atomic::bytes(ty);
    let w = &block.warps[warp];
    let (b, c) = (w.get(&code.b, lane), w.get(&code.c, lane));
    // A generic atomic of 64 bits or on a float works in global memory and in that of another
    // block, an exchange also in the block's own shared memory. For other spaces it reports so in
    // its predicate, and ptxas emits a fallback after it: with the atomics of shared memory, and
    // for exchanges with plain accesses alone.
    let wide = bytes == 8 || !matches!(ty, AtomicType::Signed(_) | AtomicType::Unsigned(_));
    let exchanges = matches!(op, AtomicOp::Cas | AtomicOp::CasFlag | AtomicOp::Exch);
    let works = |there: Space| there == Space::Global || exchanges && there == Space::Shared;
    let given = address(w, code, lane);
    let there = resolve(m.setup, given).0;
    let other = there == Space::Shared && !super::cluster::is_own(block, given);
    if wide && space == Space::Generic && !other && !works(there) {
        block.warps[warp].set_pred(code.pu, 1 << lane, 0);
        return Ok(());
    }
    let slot = reach(m, block, warp, code, lane, space, bytes, true)?;
    let old = load(slot);
    store(slot, atomic::apply(op, ty, old, b, c));
    let w = &mut block.warps[warp];
    let result = atomic::result(op, old, b, bytes);
    put(w, code, lane, result, bytes);
    let flag = if op == AtomicOp::CasFlag { result as u32 } else { 1 };
    w.set_pred(code.pu, 1 << lane, flag << lane);
    Ok(())
}

/// Reads `count` words of a register tuple.
fn vector(w: &Warp, src: &super::code::Src, lane: usize, count: usize) -> Vec<u32> {
    let word = |i: usize| match src.from {
        super::code::From::Reg(r) if r < 255 => w.reg(usize::from(r) + i, lane),
        _ => 0,
    };
    (0..count).map(word).collect()
}

fn atomic_wide(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    lane: usize,
    (space, op, ty): (Space, AtomicOp, AtomicType),
) -> Result<(), Fault> {
    let bytes = atomic::bytes(ty);
    let count = usize::from(bytes / 4);
    let w = &block.warps[warp];
    let (b, c) = (vector(w, &code.b, lane, count), vector(w, &code.c, lane, count));
    let slot = reach(m, block, warp, code, lane, space, bytes, true)?;
    let old: Vec<u32> = slot.chunks_exact(4).map(|bytes| load(bytes) as u32).collect();
    let new = atomic::apply_wide(op, ty, &old, &b, &c);
    slot.chunks_exact_mut(4).zip(new).for_each(|(bytes, word)| store(bytes, word.into()));
    let w = &mut block.warps[warp];
    old.iter().enumerate().for_each(|(i, word)| w.set(code.d, i, lane, *word));
    w.set_pred(code.pu, 1 << lane, 1 << lane);
    Ok(())
}

/// Bytes of a 256-bit access, and words in each of its two register tuples.
const WIDE_BYTES: u8 = 32;
const WIDE_WORDS: usize = 4;

fn load_wide(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    lane: usize,
    (high, mask): (super::code::Dst, u8),
) -> Result<(), Fault> {
    let slot = reach(m, block, warp, code, lane, Space::Global, WIDE_BYTES, false)?;
    let words: Vec<u32> = slot.chunks_exact(4).map(|bytes| load(bytes) as u32).collect();
    let w = &mut block.warps[warp];
    // Words that are not loaded take up no register; the next loaded word follows directly.
    for (to, first) in [(code.d, 0), (high, WIDE_WORDS)] {
        let taken = (first..first + WIDE_WORDS).filter(|i| mask >> i & 1 != 0);
        taken.enumerate().for_each(|(place, i)| w.set(to, place, lane, words[i]));
    }
    Ok(())
}

fn store_wide(m: &mut Machine, block: &mut Block, warp: usize, code: &Code, lane: usize) -> Result<(), Fault> {
    let w = &block.warps[warp];
    let mut words = vector(w, &code.b, lane, WIDE_WORDS);
    words.extend(vector(w, &code.c, lane, WIDE_WORDS));
    let slot = reach(m, block, warp, code, lane, Space::Global, WIDE_BYTES, true)?;
    slot.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| store(bytes, word.into()));
    Ok(())
}

/// Performs the copy immediately; a program that waits correctly cannot observe the difference.
fn copy_async(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    lane: usize,
    (bytes, offset, fill): (u8, i32, bool),
) -> Result<(), Fault> {
    let w = &block.warps[warp];
    let width = u64::from(bytes);
    let given = address(w, code, lane);
    let zeros = if fill { given % width } else { 0 };
    let mut data = vec![0; usize::from(bytes)];
    if w.pred(code.pp) >> lane & 1 != 0 {
        let from = given - zeros;
        if !from.is_multiple_of(width) {
            return Err(
                Fault::of(Kind::Misaligned, format!("misaligned copy of {width} bytes from {given:#x}")).about(given)
            );
        }
        let copied = (width - zeros) as usize;
        data[..copied].copy_from_slice(m.global.slice(from, width - zeros, false)?);
    }
    let to = (w.get(&code.c, lane) as u32).wrapping_add(offset as u32);
    if u64::from(to) % width != 0 {
        return Err(
            Fault::of(Kind::Misaligned, format!("misaligned copy of {width} bytes to {to:#x}")).about(to.into())
        );
    }
    flat(&mut block.shared, "shared", u64::from(to & 0xff_ffff), width)?.copy_from_slice(&data);
    Ok(())
}

fn put(w: &mut Warp, code: &Code, lane: usize, value: u64, bytes: u8) {
    w.set(code.d, 0, lane, value as u32);
    if bytes == 8 {
        w.set(code.d, 1, lane, (value >> 32) as u32);
    }
}

/// The address of a lane: register × scale + uniform register + offset.
pub(super) fn address(w: &Warp, code: &Code, lane: usize) -> u64 {
    let a = w.get(&code.a, lane).wrapping_mul(code.scale.into());
    let sum = a.wrapping_add(w.get(&code.ub, lane)).wrapping_add(code.off as u64);
    if code.a.wide || code.ub.wide { sum } else { sum & 0xffff_ffff }
}

/// Whether an address lies in the 4 GiB window.
fn inside(window: u64, address: u64) -> bool {
    address >> 32 == window >> 32
}

/// Converts a generic address to its state space and the address in it.
pub(super) fn resolve(setup: &Setup, address: u64) -> (Space, u64) {
    if inside(setup.shared_window, address) {
        (Space::Shared, address & 0xff_ffff)
    } else if inside(setup.local_window, address) {
        (Space::Local, address & 0xffff_ffff)
    } else {
        (Space::Global, address)
    }
}

#[allow(clippy::too_many_arguments)]
fn reach<'a>(
    m: &'a mut Machine,
    block: &'a mut Block,
    warp: usize,
    code: &Code,
    lane: usize,
    space: Space,
    bytes: u8,
    write: bool,
) -> Result<&'a mut [u8], Fault> {
    let w = &block.warps[warp];
    let given = address(w, code, lane);
    let named = space;
    let (space, at) = if space == Space::Generic { resolve(m.setup, given) } else { (space, given) };
    let width = u64::from(bytes);
    if at % width != 0 {
        return Err(
            Fault::of(Kind::Misaligned, format!("misaligned access of {width} bytes at {given:#x}")).about(given)
        );
    }
    match space {
        Space::Global | Space::Generic => m.global.slice(at, width, write),
        Space::Shared if named == Space::Generic => super::cluster::bytes(m, block, given & 0xffff_ffff, width),
        Space::Shared => flat(&mut block.shared, "shared", at & 0xff_ffff, width),
        Space::Local => flat(block.warps[warp].local_of(lane), "local", at & 0xffff_ffff, width),
    }
}

fn extended(bytes: &[u8], access: Access) -> u64 {
    let value = load(bytes);
    match (access.signed, access.bytes) {
        (true, 1) => (value as u8 as i8) as u64,
        (true, 2) => (value as u16 as i16) as u64,
        _ => value,
    }
}

fn load_lane(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    lane: usize,
    space: Space,
    access: Access,
) -> Result<(), Fault> {
    let mut words = [0; 8];
    let slot = reach(m, block, warp, code, lane, space, access.bytes, false)?;
    let count = fill(&mut words, slot, access);
    for (i, word) in words.iter().enumerate().take(count) {
        block.warps[warp].set(code.d, i, lane, *word);
    }
    Ok(())
}

fn fill(words: &mut [u32; 8], slot: &[u8], access: Access) -> usize {
    if access.bytes < 4 {
        words[0] = extended(slot, access) as u32;
        return 1;
    }
    for (word, bytes) in words.iter_mut().zip(slot.chunks_exact(4)) {
        *word = load(bytes) as u32;
    }
    slot.len() / 4
}

fn store_lane(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    lane: usize,
    space: Space,
    access: Access,
) -> Result<(), Fault> {
    let w = &block.warps[warp];
    let first = w.get(&code.b, lane);
    let words: [u32; 8] = std::array::from_fn(|i| match code.b.from {
        super::code::From::Reg(r) if r < 255 => w.reg(usize::from(r) + i, lane),
        super::code::From::UReg(r) if r < 255 => w.ureg(usize::from(r) + i),
        _ if i == 0 => first as u32,
        _ => (first >> 32) as u32 * u32::from(i == 1),
    });
    let slot = reach(m, block, warp, code, lane, space, access.bytes, true)?;
    if access.bytes < 4 {
        store(slot, words[0].into());
    } else {
        slot.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| store(bytes, word.into()));
    }
    Ok(())
}

fn load_const(setup: &Setup, w: &mut Warp, code: &Code, lane: usize, bank: u8, access: Access) -> Result<(), Fault> {
    let at = (w.get(&code.a, lane) as u32).wrapping_add(code.off as u32);
    let slot = setup.banks.slice(bank, at, access.bytes.into())?;
    let mut words = [0; 8];
    let count = fill(&mut words, slot, access);
    for (i, word) in words.iter().enumerate().take(count) {
        w.set(code.d, i, lane, *word);
    }
    Ok(())
}

/// QSPC: tests for each lane whether the generic address lies in the space; shared memory is that
/// of the block, or of the whole cluster.
pub fn in_space(
    setup: &Setup,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    (space, cluster): (Space, bool),
) {
    let w = &block.warps[warp];
    let holds = w.lanes_where(active, |lane| {
        let given = address(w, code, lane);
        let near = space != Space::Shared || cluster || super::cluster::is_own(block, given);
        resolve(setup, given).0 == space && near
    });
    let w = &mut block.warps[warp];
    for lane in lanes_of(active) {
        w.set(code.d, 0, lane, holds >> lane & 1);
    }
    w.set_pred(code.pu, active, holds);
}
