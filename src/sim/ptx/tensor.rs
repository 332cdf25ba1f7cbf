//! Executes `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor` (PTX ISA 9.7.9.27), and
//! `tensormap.*` (PTX ISA 9.7.9.28 and 9.7.13.16).
//!
//! A copy completes when it is issued, and the barrier that it names learns of all bytes of the box
//! then, those outside of the tensor included.

use super::atomic::next;
use super::memory::Address;
use super::program::Src;
use super::state::{Scene, Thread};
use crate::sim::fault::Fault;
use crate::sim::memory::store;
use crate::sim::ops::tensor_map::{BYTES, Taken, TensorMap, UNIT};
use crate::tables::lowering::{MapField, MapValue};
use crate::tables::ptx::{AtomOp, Space};

/// Bytes of the words that a map is changed in, and that lanes publish.
const WORD: u64 = 4;

/// Which elements of a tensor a copy takes.
#[derive(Clone, Debug)]
pub enum Mode {
    Tile,
    Rows,
    /// Pixels, and their offsets.
    Pixels(Vec<Src>),
}

/// A copy or a reduction of a box of a tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The map, and the coordinates of the corner.
    pub map: Address,
    pub corner: Vec<Src>,
    pub mode: Mode,
    pub shared: Address,
    /// The barrier that learns of the bytes of a load.
    pub barrier: Option<Address>,
    /// The operation that joins the old elements and the new ones.
    pub reduces: Option<AtomOp>,
    /// The blocks of the cluster that it copies to, if not that of the address.
    pub blocks: Option<Src>,
    /// Whether the barrier may be in the other block of the pair.
    pub pair: bool,
}

/// New values of fields of a map.
#[derive(Clone, Debug)]
pub struct Replace {
    pub map: Address,
    pub fields: Vec<(&'static MapField, MapValue)>,
    pub value: Src,
}

impl Scene<'_> {
    /// Performs a copy of a box immediately.
    ///
    /// # Errors
    ///
    /// A map that is not known, an access out of bounds, and what the barrier does not allow.
    pub fn copy_tensor(&mut self, thread: &mut Thread, copy: &Tensor) -> Result<(), Fault> {
        let operands = [copy.map.base, copy.shared.base];
        operands.iter().chain(&copy.corner).for_each(|src| self.decide(thread, "a copy of a tensor", src));
        let map = self.tensor_map(thread, &copy.map)?;
        let corner: Vec<i32> = copy.corner.iter().map(|c| self.value(thread, c) as i32).collect();
        let (space, to) = self.locate(thread, &copy.shared);
        let wrong = |what: String| Fault::new(what).about(to);
        let taken = match &copy.mode {
            Mode::Tile => Taken::Tile,
            Mode::Rows => Taken::Rows,
            Mode::Pixels(offsets) => {
                offsets.iter().for_each(|src| self.decide(thread, "a copy of a tensor", src));
                Taken::Pixels(offsets.iter().map(|src| self.value(thread, src) as i64).collect())
            }
        };
        let (units, width, outside) =
            (map.units(to, &corner, &taken).map_err(wrong)?, map.width(), map.outside().map_err(wrong)?);
        let blocks = copy.blocks.map(|src| self.value(thread, &src));
        let targets = self.each_block(to, blocks);
        for (target, unit) in targets.iter().flat_map(|target| units.iter().map(move |unit| (target, unit))) {
            for at in (0..super::bulk::UNIT).step_by(width as usize) {
                let inside = (unit.inside.0..unit.inside.1).contains(&at);
                let (global, shared) =
                    ((Space::Global, unit.global.wrapping_add(at)), (space, target + (unit.shared - to) + at));
                if copy.barrier.is_some() {
                    let value = if inside { self.load(thread, global, width)? } else { outside };
                    let lacks = if inside { self.read(thread, global, width) } else { 0 };
                    self.put_element(thread, shared, width, value, lacks)?;
                } else if inside {
                    let value = self.load(thread, shared, width)?;
                    let lacks = self.read(thread, shared, width);
                    let value = match copy.reduces {
                        Some(op) => {
                            let old = self.load(thread, global, width)?;
                            next(op, map.ty, Space::Global, old.into(), value.into(), 0) as u64
                        }
                        None => value,
                    };
                    self.put_element(thread, global, width, value, lacks)?;
                }
            }
        }
        let Some(barrier) = copy.barrier else { return Ok(()) };
        let (_, at) = self.locate(thread, &barrier);
        let blocks = blocks.map(|mask| if copy.pair { self.alike_in_pairs(at, mask) } else { self.ranks(mask) });
        self.complete_at(thread, &barrier, blocks, units.len() as u64 * UNIT)
    }

    fn put_element(
        &mut self,
        thread: &mut Thread,
        at: (Space, u64),
        width: u64,
        value: u64,
        lacks: u64,
    ) -> Result<(), Fault> {
        self.bytes(thread, at, width, true)?;
        self.written(thread, at, width, value, lacks);
        store(self.bytes(thread, at, width, true)?, value);
        Ok(())
    }

    /// The map at an address, of which each word has a value.
    fn tensor_map(&mut self, thread: &mut Thread, address: &Address) -> Result<TensorMap, Fault> {
        let (space, at) = self.locate(thread, address);
        let mut bytes = [0; BYTES];
        for (word, at) in bytes.chunks_mut(WORD as usize).zip((at..).step_by(WORD as usize)) {
            store(word, self.load(thread, (space, at), WORD)?);
            if space != Space::Param && self.read(thread, (space, at), WORD) != 0 {
                return Err(Fault::new("a word of a tensor map has no value".to_string()).about(at));
            }
        }
        TensorMap::read(at, &bytes).map_err(|what| Fault::new(what).about(at))
    }

    /// `tensormap.replace`
    ///
    /// # Errors
    ///
    /// An access out of bounds.
    pub fn replace_in_map(&mut self, thread: &mut Thread, replace: &Replace) -> Result<(), Fault> {
        self.decide(thread, "the address of a store", &replace.map.base);
        let (space, at) = self.locate(thread, &replace.map);
        let value = self.value(thread, &replace.value);
        for (row, to) in &replace.fields {
            let value = if let MapValue::Constant(value) = to { *value } else { value };
            let value = value.wrapping_sub(row.less.into()) >> row.shift;
            // A field lies in one word, or is as long as several.
            for bit in (0..u32::from(row.bits)).step_by(32) {
                let first = u32::from(row.at) + bit;
                let place = (space, at + u64::from(first / 32) * WORD);
                let count = (u32::from(row.bits) - bit).min(32);
                let mask = (u64::from(u32::MAX) >> (32 - count)) << (first % 32);
                let old = self.load(thread, place, WORD)?;
                let lacks = self.read(thread, place, WORD) & !mask;
                let new = old & !mask | (value >> bit) << (first % 32) & mask;
                self.put_element(thread, place, WORD, new, lacks)?;
            }
        }
        Ok(())
    }

    /// `tensormap.cp_fenceproxy`: the word of the lane.
    ///
    /// # Errors
    ///
    /// An access out of bounds.
    pub fn publish_map(&mut self, thread: &mut Thread, to: &Address, from: &Address) -> Result<(), Fault> {
        let ((space, from), to) = (self.locate(thread, from), self.locate(thread, to));
        let offset = u64::from(thread.lane) * WORD;
        let value = self.load(thread, (space, from + offset), WORD)?;
        let lacks = self.read(thread, (space, from + offset), WORD);
        self.put_element(thread, (to.0, to.1 + offset), WORD, value, lacks)
    }
}
