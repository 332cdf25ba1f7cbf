//! Executes STAS and REDAS, stores and reductions in a block of the cluster, of which there is one.
//!
//! The pair of a has the address and that of the barrier, which learns of the bytes at once.

use super::super::fault::{Fault, Kind};
use super::super::memory::{flat, load, store};
use super::atomic;
use super::block::Block;
use super::code::{AtomicOp, AtomicType, Code, From};
use super::exec::Machine;
use super::mbarrier;
use super::warp::{Warp, lanes_of};

/// Bits of an address in shared memory; the others say which block of the cluster.
pub const SHARED: u64 = 0xff_ffff;

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
/// An address in another block, a misaligned or out-of-bounds access, and what the barrier does not
/// allow.
pub fn execute(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    remote: Remote,
) -> Result<(), Fault> {
    for lane in lanes_of(active) {
        let places = places(&block.warps[warp], code, lane);
        if let Some(at) = places.into_iter().find(|at| at & !SHARED != 0) {
            let what = "a store in another block of the cluster, which is not simulated".to_string();
            return Err(Fault::new(what).about(at).on_lane(lane));
        }
        let [to, barrier] = places;
        let bytes = u64::from(remote.bytes);
        if !to.is_multiple_of(bytes) {
            let what = format!("misaligned store of {bytes} bytes at {to:#x}");
            return Err(Fault::of(Kind::Misaligned, what).about(to).on_lane(lane));
        }
        let w = &block.warps[warp];
        let word = |n: usize| match code.b.from {
            From::Reg(first) if first != 255 => w.reg(usize::from(first) + n, lane),
            _ => 0,
        };
        let words: Vec<u32> = (0..usize::from(remote.bytes / 4)).map(word).collect();
        let place = flat(&mut block.shared, "shared", to, bytes)?;
        match remote.reduces {
            Some((op, ty)) => {
                let value = words.iter().rev().fold(0, |value, word| value << 32 | u64::from(*word));
                store(place, atomic::apply(op, ty, load(place), value, 0));
            }
            None => {
                place.chunks_exact_mut(4).zip(&words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()))
            }
        }
        mbarrier::complete(m, block, barrier, bytes as u32)?;
    }
    Ok(())
}
