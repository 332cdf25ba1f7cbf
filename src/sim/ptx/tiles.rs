//! Moves matrices between memory and fragments: `ldmatrix`, `stmatrix`, `movmatrix`, `wmma.load`,
//! `wmma.store` (PTX ISA 9.7.14).
//!
//! For `ldmatrix` and `stmatrix` one lane provides the address of each row, which must be aligned
//! to 16 bytes. For `wmma` all lanes give the same base address and stride.

use super::fragment::{self, Shape};
use super::state::LANES;
use super::values::mask;
use super::warp::{Lanes, Memory, Together, WithMemory, lanes_of};
use crate::arrays::Each;
use crate::sim::fault::{Fault, Kind};
use crate::tables::ptx::Space;

/// Bytes of a row of eight 16-bit elements.
const ROW: u64 = 16;

/// The position in an 8 × 8 matrix of both halves of a lane's register: row (the lane that gives
/// its address) and element.
fn halves(lane: usize, transposed: bool) -> [(usize, usize); 2] {
    let (group, place) = (lane / 4, lane % 4);
    [0, 1].each(|h| if transposed { (2 * place + h, group) } else { (group, 2 * place + h) })
}

fn row_at(l: &Lanes, lane: usize) -> Result<(Space, u64), Fault> {
    let (space, address) = l.at[lane];
    if !address.is_multiple_of(ROW) {
        let what = format!("misaligned row of a matrix at {address:#x}");
        return Err(Fault::of(Kind::Misaligned, what).about(address).on_lane(lane));
    }
    Ok((space, address))
}

/// `ldmatrix` of 8 × 8 matrices: lanes 8 n to 8 n + 7 give the row addresses of matrix n.
pub fn load_rows(count: usize, transposed: bool) -> WithMemory {
    Box::new(move |l, memory| {
        for matrix in 0..count {
            for lane in lanes_of(l.active) {
                let mut word = 0;
                for (h, (row, element)) in halves(lane, transposed).into_iter().enumerate() {
                    let from = 8 * matrix + row;
                    let (space, address) = row_at(l, from)?;
                    word |= memory.read(from, (space, address + 2 * element as u64), 2)? << (16 * h);
                }
                l.out[matrix][lane] = word;
            }
        }
        Ok(())
    })
}

/// `stmatrix` of 8 × 8 matrices.
pub fn store_rows(count: usize, transposed: bool) -> WithMemory {
    Box::new(move |l, memory| {
        for matrix in 0..count {
            for lane in lanes_of(l.active) {
                for (h, (row, element)) in halves(lane, transposed).into_iter().enumerate() {
                    let to = 8 * matrix + row;
                    let (space, address) = row_at(l, to)?;
                    let value = l.src[matrix][lane] >> (16 * h) & 0xffff;
                    memory.write(to, (space, address + 2 * element as u64), 2, value)?;
                }
            }
        }
        Ok(())
    })
}

/// Shapes of matrices whose elements take up a byte in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// 8 × 16: a register holds four elements of a row, and one register per matrix.
    Wide,
    /// 16 × 16, transposed: two registers per matrix.
    Square,
    /// 16 × 8, transposed: its rows in memory are columns of the fragment.
    Result,
}

impl Bytes {
    /// The position of byte `byte` of a lane's register: the lane that gives the row's address, and
    /// the element. Source: the thread and value layouts of CUTLASS's copy traits
    /// (`copy_traits_sm100.hpp`), with rows named by the lane that gives their address.
    fn place(self, register: usize, lane: usize, byte: usize) -> (usize, usize) {
        let (group, place) = (lane / 4, lane % 4);
        let across = group + 8 * (byte / 2);
        match self {
            Bytes::Wide => (8 * register + group, 4 * place + byte),
            Bytes::Square => (16 * (register / 2) + 4 * place + 2 * (register % 2) + byte % 2, across),
            Bytes::Result => (8 * register + 2 * place + byte % 2, across),
        }
    }
}

/// `ldmatrix` of 4-, 6- or 8-bit elements, packed at the start of 16-byte rows; each is widened to
/// a byte.
pub fn load_bytes(layout: Bytes, registers: usize, bits: usize) -> WithMemory {
    Box::new(move |l, memory| {
        for register in 0..registers {
            for lane in lanes_of(l.active) {
                let mut word = 0;
                for byte in 0..4 {
                    let (from, element) = layout.place(register, lane, byte);
                    let (space, address) = row_at(l, from)?;
                    // The last element may not have two bytes left in the row, so the pair is read
                    // from two bytes before the row's end.
                    let first = (element * bits / 8).min(ROW as usize - 2);
                    let pair = memory.read(from, (space, address + first as u64), 2)?;
                    word |= (pair >> (element * bits - 8 * first) & mask(bits as u32)) << (8 * byte);
                }
                l.out[register][lane] = word;
            }
        }
        Ok(())
    })
}

/// `stmatrix` of 8-bit elements.
pub fn store_bytes(registers: usize) -> WithMemory {
    Box::new(move |l, memory| {
        for register in 0..registers {
            for lane in lanes_of(l.active) {
                for byte in 0..4 {
                    let (to, element) = Bytes::Result.place(register, lane, byte);
                    let (space, address) = row_at(l, to)?;
                    let value = l.src[register][lane] >> (8 * byte) & 0xff;
                    memory.write(to, (space, address + element as u64), 1, value)?;
                }
            }
        }
        Ok(())
    })
}

/// `movmatrix`: transposes an 8 × 8 matrix.
pub fn transpose() -> Together {
    Box::new(|l| {
        for lane in 0..LANES {
            let half =
                |(row, element): (usize, usize)| l.src[0][4 * row + element / 2] >> (16 * (element % 2)) & 0xffff;
            let [low, high] = halves(lane, true).each(half);
            l.out[0][lane] = low | high << 16;
        }
    })
}

/// Which matrix of a product a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A.
    First,
    /// B.
    Second,
    /// C or D.
    Result,
}

/// A `wmma` matrix in memory.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// Which matrix of the product it is.
    pub part: Part,
    /// The shape of the product.
    pub shape: Shape,
    /// Size of an element in bits.
    pub bits: u32,
    /// Number of registers in the fragment.
    pub registers: usize,
    /// Whether it is row-major.
    pub by_row: bool,
    /// Whether the last source is the stride, in elements; otherwise rows are adjacent.
    pub strided: bool,
}

impl Tile {
    fn size(&self) -> (usize, usize) {
        let Shape { m, n, k } = self.shape;
        match self.part {
            Part::First => (m, k),
            Part::Second => (k, n),
            Part::Result => (m, n),
        }
    }

    /// Elements in a register.
    fn each(&self) -> usize {
        (32 / self.bits.min(32)) as usize
    }

    fn place(&self, lane: usize, element: usize) -> (usize, usize) {
        let Shape { m, k, .. } = self.shape;
        match self.part {
            Part::First => fragment::first(m, k, self.each(), lane, element),
            Part::Second => fragment::second(k, self.each(), lane, element),
            Part::Result => fragment::result(m, lane, element),
        }
    }

    /// The byte address of an element and its first bit in that byte.
    fn locate(&self, l: &Lanes, lane: usize, element: usize) -> ((Space, u64), u32) {
        let (rows, columns) = self.size();
        let (row, column) = self.place(lane, element);
        let (major, minor, length) = if self.by_row { (row, column, columns) } else { (column, row, rows) };
        let stride = if self.strided { l.src[l.src.len() - 1][lane] } else { length as u64 };
        let bit = (major as u64 * stride + minor as u64) * u64::from(self.bits);
        let (space, address) = l.at[lane];
        ((space, address + bit / 8), (bit % 8) as u32)
    }

    /// Number of distinct elements in a lane's fragment; the registers beyond them repeat them.
    fn distinct(&self) -> usize {
        let (rows, columns) = self.size();
        rows * columns / LANES
    }
}

/// `wmma.load`.
pub fn load_tile(tile: Tile) -> WithMemory {
    Box::new(move |l, memory| {
        let width = u64::from(tile.bits.div_ceil(8));
        for lane in lanes_of(l.active) {
            for register in 0..tile.registers {
                let mut word = 0;
                for n in 0..tile.each() {
                    let (at, bit) = tile.locate(l, lane, (register * tile.each() + n) % tile.distinct());
                    let value = memory.read(lane, at, width)? >> bit & mask(tile.bits);
                    word |= value << (n as u32 * tile.bits.min(32));
                }
                l.out[register][lane] = word;
            }
        }
        Ok(())
    })
}

/// `wmma.store`.
pub fn store_tile(tile: Tile) -> WithMemory {
    Box::new(move |l, memory: &mut dyn Memory| {
        let width = u64::from(tile.bits / 8);
        for lane in lanes_of(l.active) {
            for element in 0..tile.distinct() {
                let word = l.src[element / tile.each()][lane];
                let value = word >> ((element % tile.each()) as u32 * tile.bits.min(32)) & mask(tile.bits);
                let (at, _) = tile.locate(l, lane, element);
                memory.write(lane, at, width, value)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_twice_changes_nothing() {
        let mut lanes = Lanes { active: u32::MAX, ..Lanes::default() };
        lanes.src = vec![std::array::from_fn(|lane| (2 * lane + (2 * lane + 1) * 0x10000) as u64)];
        lanes.out = vec![[0; LANES]];
        let first = lanes.src[0];
        transpose()(&mut lanes);
        // Element (1, 0) has number 8 and moves to (0, 1).
        assert_eq!(lanes.out[0][0], 8 << 16);
        lanes.src[0] = lanes.out[0];
        transpose()(&mut lanes);
        assert_eq!(lanes.out[0], first);
    }
}
