//! Executes atomic operations and reductions, `atom` and `red` (PTX ISA 9.7.13).
//!
//! Each element of a vector form is a separate read-modify-write, aligned to its own width. An f32
//! addition flushes subnormals in global memory and keeps them in shared memory.

use super::float::extreme_of;
use super::memory::{Address, put};
use super::program::{Sink, Src};
use super::state::{Scene, Thread};
use super::values::{each, elements, format, mask, number};
use super::watch::lack;
use crate::arrays::Each;
use crate::sim::fault::Fault;
use crate::sim::memory::{load, store};
use crate::sim::ops::format::F32;
use crate::sim::ops::real::{self, Mode};
use crate::tables::ptx::{AtomOp, ScalarType, Space};
use smallvec::SmallVec;

/// A value of up to 128 bits as one or two 64-bit words, lowest word first.
pub type Wide<T> = SmallVec<[T; 2]>;

/// One element of an atomic operation.
#[derive(Clone, Debug)]
pub struct Element {
    /// Where the old value goes; empty for a reduction.
    pub old: Wide<Sink>,
    /// The operation's operands: the addend, or the compare and swap values of `cas`.
    pub operands: SmallVec<[Wide<Src>; 2]>,
}

/// An atomic operation.
#[derive(Clone, Debug)]
pub struct Atomic {
    /// The address of the first element; the others follow at the width of `ty`.
    pub address: Address,
    /// The operation.
    pub op: AtomOp,
    /// The type of one element.
    pub ty: ScalarType,
    /// Whether subnormals of f32 are kept in global memory, too.
    pub keeps: bool,
    /// One element, or the elements of a vector form.
    pub elements: Vec<Element>,
}

impl Scene<'_> {
    /// Executes an atomic operation of one thread.
    ///
    /// # Errors
    ///
    /// A misaligned or out-of-bounds access is a fault.
    pub fn atomic(&mut self, thread: &mut Thread, atomic: &Atomic) -> Result<(), Fault> {
        let operands = atomic.elements.iter().flat_map(|e| &e.operands).flatten();
        [&atomic.address.base].into_iter().chain(operands).for_each(|src| self.decide(thread, "an atomic", src));
        let (space, base) = self.locate(thread, &atomic.address);
        let width = u64::from(atomic.ty.bits() / 8);
        let mut olds: SmallVec<[(u128, bool); 8]> = SmallVec::new();
        for (element, at) in atomic.elements.iter().zip((base..).step_by(width as usize)) {
            let wide = |srcs: &Wide<Src>| {
                srcs.iter().rev().fold(0, |word: u128, src| word << 64 | u128::from(self.value(thread, src)))
            };
            let [a, b] = [0, 1].each(|n| element.operands.get(n).map_or(0, wide));
            let bytes = self.bytes(thread, (space, at), width, true)?;
            let (low, high) = bytes.split_at_mut(bytes.len().min(8));
            let old = u128::from(load(low)) | u128::from(load(high)) << 64;
            let kept = if atomic.keeps { Space::Shared } else { space };
            let new = next(atomic.op, atomic.ty, kept, old, a, b);
            store(low, new as u64);
            store(high, (new >> 64) as u64);
            let lacks = self.atomically(thread, (space, at), width, atomic.op == AtomOp::Exch);
            olds.push((old, lacks));
        }
        for (element, (old, lacks)) in atomic.elements.iter().zip(olds) {
            for (n, sink) in element.old.iter().enumerate() {
                put(thread, *sink, (old >> (64 * n)) as u64);
                lack(thread, *sink, if lacks { u64::MAX } else { 0 });
            }
        }
        Ok(())
    }
}

/// The value that the operation stores, computed from the old value and the operands `a` and `b`.
pub(super) fn next(op: AtomOp, ty: ScalarType, space: Space, old: u128, a: u128, b: u128) -> u128 {
    let (x, y) = (old as u64, a as u64);
    let m = mask(ty.bits().min(64));
    let value = match op {
        AtomOp::Exch => return a,
        AtomOp::Cas => return if old == a { b } else { old },
        AtomOp::And => return old & a,
        AtomOp::Or => return old | a,
        AtomOp::Xor => return old ^ a,
        AtomOp::Inc => {
            if x >= y {
                0
            } else {
                x + 1
            }
        }
        AtomOp::Dec => {
            if x == 0 || x > y {
                y
            } else {
                x - 1
            }
        }
        AtomOp::Add | AtomOp::Min | AtomOp::Max => match format(ty) {
            Some(_) => float(op, ty, space, x, y),
            None => {
                let (p, q) = (number(ty, x), number(ty, y));
                (match op {
                    AtomOp::Add => p + q,
                    AtomOp::Min => p.min(q),
                    _ => p.max(q),
                }) as u64
            }
        },
    };
    u128::from(value & m)
}

/// The float sum, minimum or maximum, applied to each element of a packed type.
fn float(op: AtomOp, ty: ScalarType, space: Space, old: u64, a: u64) -> u64 {
    let Some(f) = format(ty) else { return old };
    let mode = Mode { ftz: f == F32 && space == Space::Global, ..Mode::default() };
    let count = elements(ty);
    each(f.bits(), count, |e| {
        let cut = |x: u64| x >> (f.bits() * e as u32) & mask(f.bits());
        let (x, y) = (cut(old), cut(a));
        if op == AtomOp::Add { real::add(f, x, y, mode) } else { extreme_of(f, &[x, y], op == AtomOp::Min) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_at_the_operand() {
        let u32_of = |op, old: u128, a: u128| next(op, ScalarType::U32, Space::Global, old, a, 0);
        assert_eq!([u32_of(AtomOp::Inc, 6, 7), u32_of(AtomOp::Inc, 7, 7), u32_of(AtomOp::Inc, 9, 7)], [7, 0, 0]);
        assert_eq!([u32_of(AtomOp::Dec, 0, 7), u32_of(AtomOp::Dec, 9, 7), u32_of(AtomOp::Dec, 7, 7)], [7, 7, 6]);
    }

    #[test]
    fn subnormal_sums_by_space() {
        let sum = |space| next(AtomOp::Add, ScalarType::F32, space, 1, 1, 0);
        assert_eq!((sum(Space::Global), sum(Space::Shared)), (0, 2));
    }
}
