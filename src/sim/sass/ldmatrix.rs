//! Moves matrices between shared memory and registers (LDSM, STSM).
//!
//! Each participating lane gives the address of a 16-byte row, which must be aligned and inside
//! shared memory. A register of the warp holds four or two elements per lane, depending on their
//! size.

use super::super::fault::{Fault, Kind};
use super::block::Block;
use super::code::Code;
use super::mma::Fragment;
use super::warp::LANES;

/// Bytes of a row.
const ROW: usize = 16;

/// Maps the elements of a register to rows in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// 8 rows of 8 half-words.
    Halves { transposed: bool },
    /// 8 rows of 16 elements of `bits` bits; each is widened to a byte.
    Wide { bits: u8 },
    /// 16 rows of 16 such elements, transposed: two registers.
    Square { bits: u8 },
    /// 8 rows of 16 bytes, transposed.
    Columns,
}

impl Grid {
    /// Size of an element in a row and in a register, in bits.
    fn bits(self) -> (usize, usize) {
        match self {
            Grid::Halves { .. } => (16, 16),
            Grid::Wide { bits } | Grid::Square { bits } => (usize::from(bits), 8),
            Grid::Columns => (8, 8),
        }
    }

    /// Row and element of part `e` of a lane's register. For transposed bytes a lane holds the
    /// elements of two adjacent rows, at a column and at the one eight further; for a wide row it
    /// holds four adjacent elements. Source: the copy traits of CUTLASS for sm_100.
    fn at(self, register: usize, lane: usize, e: usize) -> (usize, usize) {
        match self {
            Grid::Halves { transposed } => {
                let (row, place) = half(lane, e, transposed);
                (8 * register + row, place)
            }
            Grid::Wide { .. } => (8 * register + (lane >> 2), (lane & 3) << 2 | e),
            Grid::Square { .. } => {
                ((register & 2) << 3 | (lane & 3) << 2 | (register & 1) << 1 | e & 1, lane >> 2 | (e & 2) << 2)
            }
            Grid::Columns => (register << 3 | (lane & 3) << 1 | e & 1, lane >> 2 | (e & 2) << 2),
        }
    }
}

/// The bytes of the row whose address a lane holds.
fn row<'b>(block: &'b mut Block, warp: usize, code: &Code, active: u32, lane: usize) -> Result<&'b mut [u8], Fault> {
    let w = &block.warps[warp];
    if active >> lane & 1 == 0 {
        return Err(Fault::new("the lane that has a row's address takes no part").on_lane(lane));
    }
    let sum = w.get(&code.a, lane).wrapping_add(w.get(&code.ub, lane)).wrapping_add(code.off as u64);
    let at = sum & 0xff_ffff;
    if !at.is_multiple_of(ROW as u64) {
        return Err(Fault::of(Kind::Misaligned, format!("misaligned row of a matrix at {at:#x}"))
            .about(at)
            .on_lane(lane));
    }
    super::super::memory::flat(&mut block.shared, "shared", at, ROW as u64).map_err(|fault| fault.on_lane(lane))
}

/// Row and half-word of half `e` of a lane's register.
pub fn half(lane: usize, e: usize, transposed: bool) -> (usize, usize) {
    let (line, place) = (lane / 4, 2 * (lane % 4) + e);
    if transposed { (place, line) } else { (line, place) }
}

/// LDSM: the registers that a load returns.
pub fn load(
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    count: u8,
    grid: Grid,
) -> Result<Fragment, Fault> {
    let mut rows = Vec::new();
    for lane in 0..8 * usize::from(count) {
        let bytes = row(block, warp, code, active, lane)?;
        rows.push(bytes.iter().rev().fold(0u128, |all, byte| all << 8 | u128::from(*byte)));
    }
    let (bits, wide) = grid.bits();
    let part = |register: usize, lane: usize, e: usize| {
        let (row, element) = grid.at(register, lane, e);
        ((rows[row] >> (element * bits)) as u32 & ((1 << bits) - 1)) << (e * wide)
    };
    let word = |register: usize, lane: usize| (0..32 / wide).fold(0, |word, e| word | part(register, lane, e));
    Ok((0..usize::from(count)).map(|register| std::array::from_fn(|lane| word(register, lane))).collect())
}

/// STSM: writes registers to shared memory.
pub fn store(
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    words: &Fragment,
    grid: Grid,
) -> Result<(), Fault> {
    let mut rows = vec![0u128; 8 * words.len()];
    let (bits, wide) = grid.bits();
    for (register, words) in words.iter().enumerate() {
        for (lane, word) in words.iter().enumerate().take(LANES) {
            for e in 0..32 / wide {
                let (row, element) = grid.at(register, lane, e);
                rows[row] |= u128::from(word >> (e * wide) & ((1 << wide) - 1)) << (element * bits);
            }
        }
    }
    for (lane, value) in rows.iter().enumerate() {
        row(block, warp, code, active, lane)?.copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates a CUTLASS layout: `digits` are the sizes and strides of the number's mixed-radix
    /// digits.
    fn layout(mut number: usize, digits: &[(usize, usize)]) -> usize {
        digits.iter().fold(0, |sum, (size, stride)| {
            let digit = number % size;
            number /= size;
            sum + digit * stride
        })
    }

    /// The row addresses given by threads (in bits), and a lane's registers and bytes, by bit:
    /// SM100_U8x16_LDSM_T, SM100_U8x16_STSM_T.
    #[test]
    fn bytes_lie_where_the_public_layouts_have_them() {
        let square = [(2, 128), (2, 1024), (4, 256), (2, 2048)].as_slice();
        let columns = [(32, 128)].as_slice();
        for (grid, given) in [(Grid::Square { bits: 8 }, square), (Grid::Columns, columns)] {
            for lane in 0..LANES {
                for value in 0..16 {
                    let bit = layout(lane, &[(4, 256), (8, 8)]) + layout(value, &[(2, 128), (2, 64), (4, 1024)]);
                    let row = (0..LANES).find(|thread| layout(*thread, given) / 128 == bit / 128).unwrap();
                    assert_eq!(grid.at(value / 4, lane, value % 4), (row, bit % 128 / 8), "{grid:?} {lane} {value}");
                }
            }
        }
    }

    #[test]
    fn each_element_is_one_lane_s() {
        let grids =
            [Grid::Halves { transposed: true }, Grid::Wide { bits: 4 }, Grid::Square { bits: 6 }, Grid::Columns];
        for grid in grids {
            let parts = 32 / grid.bits().1;
            let places =
                (0..4).flat_map(|n| (0..LANES).flat_map(move |lane| (0..parts).map(move |e| grid.at(n, lane, e))));
            let all: crate::sorted::SortedSet<_> = places.collect();
            assert_eq!(all.len(), 4 * LANES * parts, "{grid:?}");
            assert!(all.iter().all(|(row, element)| *row < 32 && *element < 4 * parts), "{grid:?}");
        }
    }
}
