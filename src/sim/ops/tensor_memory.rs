//! Tensor memory, its loads and stores (PTX ISA 9.0, 9.7.16).
//!
//! A block has 128 lanes of columns of 32 bits, allocated in units of 32 columns; how many columns
//! there are is the target's to say. Every cell counts as defined.

use super::format::F32;
use super::real::{Mode, min_max};
use crate::tables::Target;

/// Lanes, and columns of each: the most that a target has, of which only an allocation of all
/// reaches more than the first part.
pub const ROWS: u32 = 128;
const COLUMNS: u32 = Target::MOST_TENSOR_COLUMNS;
const ALIGNED: u32 = 512;
/// Columns of a unit of allocation, and units.
pub const UNIT: u32 = 32;
/// Lanes of a warp, each of which reaches a quarter of the lanes of tensor memory.
const LANES: usize = 32;

/// The tensor memory of a block.
#[derive(Clone, Debug, Default)]
pub struct Tensor {
    cells: Vec<u32>,
    /// Units that are allocated.
    pub units: u32,
    /// The first units of allocations.
    pub firsts: u32,
    /// Whether the block allocates no more.
    pub closed: bool,
}

/// The lanes and bits that a load or store moves per piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 32 lanes of 32 bits.
    Whole,
    /// 16 lanes of 64, 128 or 256 bits.
    Bits64,
    Bits128,
    Bits256,
    /// 16 lanes of 32 bits, by the lower or by the upper half of the warp.
    Lower,
    Upper,
}

impl Shape {
    /// Whether a lane has a part in it.
    pub fn reaches(self, lane: usize) -> bool {
        self.place(0, lane).is_some()
    }

    /// The lane and column of a thread's register, relative to the address; `None` where the thread
    /// has no part in it.
    fn place(self, register: usize, lane: usize) -> Option<(usize, usize)> {
        Some(match self {
            Shape::Whole => (lane, register),
            Shape::Bits64 => (lane / 4 + 8 * (lane % 2), 2 * register + lane / 2 % 2),
            Shape::Bits128 => (lane / 4 + 8 * (register % 2), 4 * (register / 2) + lane % 4),
            Shape::Bits256 => (lane / 4 + 8 * (register / 2 % 2), 8 * (register / 4) + 2 * (lane % 4) + register % 2),
            Shape::Lower if lane < 16 => (lane, register),
            Shape::Upper if lane >= 16 => (lane - 16, register),
            Shape::Lower | Shape::Upper => return None,
        })
    }
}

/// A load or store of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub shape: Shape,
    /// Registers of each thread.
    pub registers: usize,
    /// Whether a register holds the low halves of two columns.
    pub halves: bool,
}

/// The numbers that an extreme is looked for among.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Unsigned,
    Signed,
    /// Of 32 bits; the result is NaN if one of them is, or only if all are.
    Real {
        nan: bool,
    },
}

/// The least or greatest of a thread's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extreme {
    pub of: Numbers,
    pub least: bool,
    /// Whether signs are taken off first.
    pub magnitude: bool,
}

impl Extreme {
    /// That of each lane.
    pub fn of_lanes(self, words: &Words) -> [u32; LANES] {
        let of_two = |a: u32, b: u32| match self.of {
            Numbers::Unsigned if self.least => a.min(b),
            Numbers::Unsigned => a.max(b),
            Numbers::Signed if self.least => (a as i32).min(b as i32) as u32,
            Numbers::Signed => (a as i32).max(b as i32) as u32,
            Numbers::Real { nan } => min_max(F32, a.into(), b.into(), self.least, nan, Mode::default()) as u32,
        };
        let bare = |word: u32| if self.magnitude { word & !(1 << 31) } else { word };
        // One number is an extreme of itself, which makes a NaN the usual one.
        std::array::from_fn(|lane| {
            let mut all = words.iter().map(|row| bare(row[lane]));
            let first = all.next().unwrap_or(0);
            all.fold(of_two(first, first), of_two)
        })
    }
}

/// Registers of a warp.
pub type Words = Vec<[u32; LANES]>;

impl Tensor {
    /// The first of so many free units side by side, at a multiple of their number. Whether an
    /// `aligned` search goes beyond column 512 where there are more is not known: it does not here.
    pub fn find(&mut self, count: u32, aligned: bool) -> Option<u32> {
        let ones = |first: u32| (((1u64 << count) - 1) << first) as u32;
        let (step, end) = if aligned { (count.max(1), ALIGNED / UNIT) } else { (1, COLUMNS / UNIT) };
        let all = (0..end).step_by(step as usize).filter(|first| first.checked_add(count).is_some_and(|n| n <= end));
        let found = all.into_iter().find(|first| self.units & ones(*first) == 0)?;
        self.units |= ones(found);
        Some(found)
    }

    /// A cell.
    ///
    /// # Errors
    ///
    /// There is none, or its column is not allocated.
    pub fn cell(&mut self, row: u32, column: u32) -> Result<&mut u32, String> {
        if row >= ROWS || column >= COLUMNS {
            return Err(format!("lane {row} and column {column} are beyond tensor memory"));
        }
        if self.units >> (column / UNIT) & 1 == 0 {
            return Err(format!("column {column} of tensor memory is not allocated"));
        }
        if self.cells.is_empty() {
            self.cells.resize((ROWS * COLUMNS) as usize, 0);
        }
        Ok(&mut self.cells[(row * COLUMNS + column) as usize])
    }

    /// Calls `f` with the cells of each register of each thread: those of both halves, or one.
    fn each(
        &mut self,
        (address, warp): (u32, usize),
        piece: Piece,
        mut f: impl FnMut(&mut u32, (usize, usize), u32),
    ) -> Result<(), String> {
        let (row, column) = (address >> 16, address & 0xffff);
        let step = if piece.shape == Shape::Whole { LANES } else { LANES / 2 } as u32;
        if row / LANES as u32 != (warp % 4) as u32 || row % step != 0 {
            return Err(format!("warp {warp} accesses lane {row} of tensor memory"));
        }
        for register in 0..piece.registers {
            for lane in 0..LANES {
                let Some((down, right)) = piece.shape.place(register, lane) else { continue };
                let (row, right) = (row + down as u32, right as u32);
                if piece.halves {
                    f(self.cell(row, column + 2 * right)?, (register, lane), 0);
                    f(self.cell(row, column + 2 * right + 1)?, (register, lane), 16);
                } else {
                    f(self.cell(row, column + right)?, (register, lane), 32);
                }
            }
        }
        Ok(())
    }

    /// Loads registers of a warp; those of threads that have no part stay as they are.
    ///
    /// # Errors
    ///
    /// Lanes that the warp does not reach, or columns that are not allocated.
    pub fn load(&mut self, at: (u32, usize), piece: Piece, words: &mut Words) -> Result<(), String> {
        self.each(at, piece, |cell, (register, lane), shift| {
            let word = &mut words[register][lane];
            *word = match shift {
                0 => *cell & 0xffff,
                16 => *word | *cell << 16,
                _ => *cell,
            };
        })
    }

    /// Stores registers of a warp.
    ///
    /// # Errors
    ///
    /// As for a load.
    pub fn store(&mut self, at: (u32, usize), piece: Piece, words: &Words) -> Result<(), String> {
        self.each(at, piece, |cell, (register, lane), shift| {
            let word = words[register][lane];
            *cell = if shift == 32 { word } else { word >> shift & 0xffff };
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_lie_at_multiples_of_their_number() {
        let mut tensor = Tensor::default();
        assert_eq!([1, 4, 2, 8, 8].map(|count| tensor.find(count, true)), [Some(0), Some(4), Some(2), Some(8), None]);
        assert_eq!(tensor.units, 0xfffd & 0xfffd);
        assert_eq!(Tensor::default().find(18, false), Some(0));
        assert_eq!(tensor.find(18, false), None);
    }

    #[test]
    fn what_is_stored_comes_back() {
        let mut tensor = Tensor { units: 0xffff, ..Tensor::default() };
        for shape in [Shape::Whole, Shape::Bits64, Shape::Bits128, Shape::Bits256] {
            let piece = Piece { shape, registers: 8, halves: false };
            let words: Words = (0..8).map(|r| std::array::from_fn(|lane| (r * 32 + lane) as u32)).collect();
            tensor.store((32 << 16 | 8, 5), piece, &words).expect("stores");
            let mut found = vec![[0; LANES]; 8];
            tensor.load((32 << 16 | 8, 5), piece, &mut found).expect("loads");
            assert_eq!(found, words);
        }
        let piece = Piece { shape: Shape::Whole, registers: 1, halves: true };
        tensor.store((0, 0), piece, &vec![[0x0003_0002; LANES]]).expect("stores");
        assert_eq!((*tensor.cell(7, 0).expect("there"), *tensor.cell(7, 1).expect("there")), (2, 3));
        assert!(tensor.store((0, 1), piece, &vec![[0; LANES]]).is_err());
    }
}
