//! Executes UTMALDG, UTMASTG and UTMAREDG, copies and reductions of boxes of tensors.
//!
//! The unit acts once for all lanes of a group, and here at once: a barrier in shared memory learns
//! of all bytes of the box when the copy is issued.

use super::super::fault::Fault;
use super::super::memory::{load, store};
use super::super::ops::tensor_map::{BYTES, Taken, TensorMap, UNIT, Unit};
use super::atomic;
use super::block::Block;
use super::cluster::{self, SHARED};
use super::code::{AtomicOp, AtomicType, Code, From};
use super::exec::Machine;
use super::mbarrier;
use super::warp::{LANES, Warp};
use crate::sim::ops::format::{BF16, F16, F32, F64};
use crate::tables::ptx::{ScalarType, TypeClass};

/// Which elements of a tensor a copy takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Tile,
    Rows,
    /// Pixels, and whether there are offsets.
    Pixels {
        offsets: bool,
    },
}

/// A copy of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Whether it writes shared memory, and a barrier learns of it.
    pub loads: bool,
    /// Number of coordinates.
    pub coordinates: u8,
    pub mode: Mode,
    /// The operation that joins the old elements and the new ones.
    pub reduces: Option<AtomicOp>,
    /// Whether a mask says to which blocks of the cluster it copies.
    pub multicast: bool,
    /// The same by a mask of 32 bits.
    pub wide: bool,
    /// Whether the barrier may be in the other block of the pair.
    pub pair: bool,
}

/// The operands of one copy.
#[derive(Clone, Debug)]
pub struct Places {
    /// The address of the map.
    pub map: u64,
    pub shared: u64,
    /// The barrier that learns of the bytes.
    pub barrier: Option<u64>,
    pub corner: Vec<i32>,
    pub taken: Taken,
    /// The blocks of the cluster that it copies to, if not that of the address.
    pub blocks: Option<u32>,
}

impl Tensor {
    /// Adjacent words of its first operand.
    pub fn words(self) -> u8 {
        self.coordinates + if self.loads { 2 } else { 1 }
    }

    /// The operands, which are the same in all lanes.
    pub fn places(self, w: &Warp, code: &Code, active: u32) -> Places {
        let lane = active.trailing_zeros() as usize % LANES;
        let word = |n: u8| match code.a.from {
            From::UReg(first) if first != 255 => w.ureg(usize::from(first + n)),
            _ => 0,
        };
        let addresses = self.words() - self.coordinates;
        let words = w.get(&code.c, lane);
        let rest = words as u32;
        // The mask is above the offsets, or alone.
        let mask = if self.mode == (Mode::Pixels { offsets: true }) { words >> 32 } else { words };
        Places {
            map: w.get(&code.b, lane),
            shared: u64::from(word(0)),
            barrier: self.loads.then(|| u64::from(word(1))),
            blocks: if self.wide { Some(mask as u32) } else { self.multicast.then_some(rest >> 16) },
            corner: (0..self.coordinates).map(|i| word(addresses + i) as i32).collect(),
            taken: match self.mode {
                Mode::Tile => Taken::Tile,
                Mode::Rows => Taken::Rows,
                Mode::Pixels { offsets: false } => Taken::Pixels(Vec::new()),
                Mode::Pixels { offsets: true } => Taken::Pixels(self.offsets(rest)),
            },
        }
    }
}

impl Tensor {
    /// Offsets of pixels, of which there are two fewer than coordinates.
    fn offsets(self, word: u32) -> Vec<i64> {
        let bits = [16, 8, 5][usize::from(self.coordinates.clamp(3, 5)) - 3];
        (0..self.coordinates.saturating_sub(2)).map(|i| i64::from(word >> (bits * i) & ((1 << bits) - 1))).collect()
    }
}

impl Places {
    /// The map and the units of the box.
    ///
    /// # Errors
    ///
    /// A map that is out of bounds or not known.
    pub fn units(&self, m: &mut Machine) -> Result<(TensorMap, Vec<Unit>), Fault> {
        let fault = |what: String| Fault::new(what).about(self.map);
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(m.global.slice(self.map, BYTES as u64, false)?);
        let map = TensorMap::read(self.map, &bytes).map_err(fault)?;
        let units = map.units(self.shared & SHARED, &self.corner, &self.taken).map_err(fault)?;
        Ok((map, units))
    }
}

/// Executes one of them.
///
/// # Errors
///
/// A map that is not known, an access out of bounds, and what the barrier does not allow.
pub fn execute(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    tensor: Tensor,
) -> Result<(), Fault> {
    let places = tensor.places(&block.warps[warp], code, active);
    let (map, units) = places.units(m)?;
    let outside = map.outside().map_err(|what| Fault::new(what).about(places.map))?;
    let (width, bytes) = (map.width() as usize, units.len() as u32 * UNIT as u32);
    let targets = match tensor.loads {
        true => cluster::each(places.shared, places.blocks),
        false => vec![cluster::own(block, places.shared)],
    };
    for (target, unit) in targets.iter().flat_map(|target| units.iter().map(move |unit| (target, unit))) {
        let Unit { shared, global, inside: (first, end) } = *unit;
        let mut there = [0; UNIT as usize];
        let at = target & !SHARED | shared;
        there.copy_from_slice(cluster::bytes(m, block, at, UNIT)?);
        let part = first as usize..end as usize;
        if tensor.loads {
            there.chunks_exact_mut(width).for_each(|element| store(element, outside));
        }
        if !part.is_empty() {
            let memory = m.global.slice(global.wrapping_add(first), end - first, !tensor.loads)?;
            match (tensor.loads, tensor.reduces) {
                (true, _) => there[part].copy_from_slice(memory),
                (false, None) => memory.copy_from_slice(&there[part]),
                (false, Some(op)) => {
                    let ty = atomic_type(map.ty);
                    for (to, from) in memory.chunks_exact_mut(width).zip(there[part].chunks_exact(width)) {
                        store(to, atomic::apply(op, ty, load(to), load(from), 0));
                    }
                }
            }
        }
        cluster::bytes(m, block, at, UNIT)?.copy_from_slice(&there);
    }
    let barriers = places.barrier.map_or(Vec::new(), |at| cluster::barriers(at, places.blocks, tensor.pair));
    barriers.into_iter().try_for_each(|at| mbarrier::complete(m, block, at, bytes))
}

fn atomic_type(ty: ScalarType) -> AtomicType {
    let bytes = (ty.bits() / 8) as u8;
    match ty {
        ScalarType::F16 => AtomicType::Float(F16),
        ScalarType::Bf16 => AtomicType::Float(BF16),
        ScalarType::F32 => AtomicType::Float(F32),
        ScalarType::F64 => AtomicType::Float(F64),
        _ if ty.class() == TypeClass::Signed => AtomicType::Signed(bytes),
        _ => AtomicType::Unsigned(bytes),
    }
}
