//! Tensor memory and the products in it (PTX ISA 9.0, 9.7.16).
//!
//! A block has 128 lanes of 512 columns of 32 bits, allocated in units of 32 columns. Elements are
//! multiplied exactly; floating-point sums are computed in f64 in ascending k, behind the addend,
//! and rounded once. Where the factors lie in shared memory is up to the caller. Every cell counts
//! as defined. What the ISA has as figures only (rows of 64 for a first factor in tensor memory,
//! packing in shapes other than 32 bits) is refused.

use super::format::{BF16, F16, F32, F64, Format, Round, TF32};
use super::narrow::{Tiny, from_tiny};

/// Lanes, and columns of each.
pub const ROWS: u32 = 128;
pub const COLUMNS: u32 = 512;
/// Columns of a unit of allocation, and units.
pub const UNIT: u32 = 32;
const UNITS: u32 = COLUMNS / UNIT;
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

/// Registers of a warp.
pub type Words = Vec<[u32; LANES]>;

impl Tensor {
    /// The first of so many free units side by side, at a multiple of their number.
    pub fn find(&mut self, count: u32) -> Option<u32> {
        let ones = |first: u32| (((1u64 << count) - 1) << first) as u32;
        let all = (0..UNITS).step_by(count.max(1) as usize).filter(|first| first + count <= UNITS);
        let found = all.into_iter().find(|first| self.units & ones(*first) == 0)?;
        self.units |= ones(found);
        Some(found)
    }

    fn cell(&mut self, row: u32, column: u32) -> Result<&mut u32, String> {
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
        if piece.halves && !matches!(piece.shape, Shape::Whole | Shape::Lower | Shape::Upper) {
            return Err("halves of tensor memory in this shape are not modelled".to_string());
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

/// The kind of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Floats of 16 bits, or of 32.
    Half,
    /// The latter alone.
    Tf32,
    /// Floats of at most 8 bits.
    Byte,
    /// Integers of 8 bits.
    Integer,
}

/// Where the first factor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// In shared memory, by its descriptor.
    Shared(u64),
    /// In tensor memory, by its address.
    Tensor(u32),
}

/// A product and its operands.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    pub kind: Kind,
    /// Address of the sums.
    pub to: u32,
    pub first: First,
    /// Descriptor of the second factor.
    pub second: u64,
    /// The descriptor of the instruction: types and shape.
    pub of: u32,
    /// A bit for each lane that keeps its sums.
    pub kept: [u32; 4],
    /// Whether the old sums are added, divided by this power of two.
    pub added: bool,
    pub scale: u32,
}

/// The type of the elements of a factor.
#[derive(Clone, Copy)]
enum Element {
    Float(Format),
    Tf32,
    Tiny(Tiny),
    Integer { signed: bool },
}

impl Element {
    fn of(kind: Kind, code: u32) -> Result<Element, String> {
        Ok(match (kind, code) {
            (Kind::Half, 0) => Element::Float(F16),
            (Kind::Half, 1) => Element::Float(BF16),
            (Kind::Half | Kind::Tf32, 2) => Element::Tf32,
            (Kind::Byte, 0) => Element::Tiny(Tiny::E4m3),
            (Kind::Byte, 1) => Element::Tiny(Tiny::E5m2),
            (Kind::Integer, 0 | 1) => Element::Integer { signed: code == 1 },
            _ => return Err(format!("elements of type {code} in a product of this kind are not modelled")),
        })
    }

    fn bits(self) -> usize {
        match self {
            Element::Float(_) => 16,
            Element::Tf32 => 32,
            Element::Tiny(_) | Element::Integer { .. } => 8,
        }
    }

    fn number(self, bits: u64) -> f64 {
        let wide = |f: Format, bits| f64::from_bits(f.convert(bits, F64, Round::Nearest));
        match self {
            Element::Float(f) => wide(f, bits),
            Element::Tf32 => wide(TF32, bits >> 13),
            Element::Tiny(tiny) => wide(F16, from_tiny(tiny, bits as u8, false)),
            Element::Integer { signed: true } => f64::from(bits as u8 as i8),
            Element::Integer { signed: false } => f64::from(bits as u8),
        }
    }
}

/// The type of the sums.
#[derive(Clone, Copy, PartialEq)]
enum Sum {
    F16,
    F32,
    Integer { clamp: bool },
}

impl Sum {
    fn number(self, cell: u32) -> f64 {
        match self {
            Sum::F16 => f64::from_bits(F16.convert(u64::from(cell & 0xffff), F64, Round::Nearest)),
            Sum::F32 => f64::from(f32::from_bits(cell)),
            Sum::Integer { .. } => f64::from(cell as i32),
        }
    }

    fn cell(self, sum: f64) -> u32 {
        let float = |f: Format| if sum.is_nan() { f.nan() } else { F64.convert(sum.to_bits(), f, Round::Nearest) };
        match self {
            Sum::F16 => float(F16) as u32,
            Sum::F32 => float(F32) as u32,
            Sum::Integer { clamp: true } => sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32 as u32,
            Sum::Integer { clamp: false } => sum as i64 as u32,
        }
    }
}

/// Types and shape, as the descriptor of an instruction has them.
struct Plan {
    a: Element,
    b: Element,
    sum: Sum,
    negative: bool,
    turned: [bool; 2],
    rows: u32,
    columns: u32,
    depth: usize,
}

impl Plan {
    fn of(kind: Kind, of: u32) -> Result<Plan, String> {
        let field = |at: u32, bits: u32| of >> at & ((1 << bits) - 1);
        if field(0, 3) != 0 || field(30, 2) != 0 || field(6, 1) != 0 || field(23, 1) != 0 || field(29, 1) != 0 {
            return Err(format!("the descriptor {of:#010x} of a product is not modelled"));
        }
        let (a, b) = (Element::of(kind, field(7, 3))?, Element::of(kind, field(10, 3))?);
        let sum = match (kind, field(4, 2)) {
            (Kind::Integer, 2) => Sum::Integer { clamp: field(3, 1) == 1 },
            (Kind::Half | Kind::Byte, 0) => Sum::F16,
            (Kind::Half | Kind::Byte | Kind::Tf32, 1) => Sum::F32,
            (_, code) => return Err(format!("sums of type {code} in a product of this kind")),
        };
        let (rows, columns) = (field(24, 5) * 16, field(17, 6) * 8);
        let step = if rows == 64 { 8 } else { 16 };
        if !matches!(rows, 64 | 128) || columns == 0 || columns > 256 || columns % step != 0 {
            return Err(format!("a product of {rows} rows and {columns} columns"));
        }
        let negative = field(13, 1) != field(14, 1);
        let turned = [field(15, 1) == 1, field(16, 1) == 1];
        Ok(Plan { a, b, sum, negative, turned, rows, columns, depth: 256 / a.bits() })
    }

    /// The lane of a row, relative to the address.
    fn lane(&self, row: u32) -> u32 {
        if self.rows == 64 { 32 * (row / 16) + row % 16 } else { row }
    }
}

/// Which element of a factor: its descriptor, bits and whether it is turned, its line (a row of the
/// first factor, a column of the second) and the place in it.
pub type Place = (u64, usize, bool, usize, usize);

/// Computes a product. `shared` reads an element of a factor in shared memory.
///
/// # Errors
///
/// What is not modelled, lanes or columns that are not there, and what `shared` gives.
pub fn product<E: From<String>>(
    tensor: &mut Tensor,
    p: &Product,
    mut shared: impl FnMut(Place) -> Result<u64, E>,
) -> Result<(), E> {
    let plan = Plan::of(p.kind, p.of)?;
    let (depth, rows, columns) = (plan.depth, plan.rows as usize, plan.columns as usize);
    let mut first = vec![0f64; rows * depth];
    let mut second = vec![0f64; columns * depth];
    for row in 0..rows {
        for k in 0..depth {
            let bits = match p.first {
                First::Shared(at) => shared((at, plan.a.bits(), plan.turned[0], row, k))?,
                First::Tensor(_) if plan.rows == 64 || plan.turned[0] => {
                    return Err("64 rows in tensor memory are not modelled".to_string().into());
                }
                First::Tensor(at) => {
                    let bit = k * plan.a.bits();
                    let cell = *tensor.cell((at >> 16) + row as u32, (at & 0xffff) + (bit / 32) as u32)?;
                    u64::from(cell) >> (bit % 32) & (u64::MAX >> (64 - plan.a.bits()))
                }
            };
            let number = plan.a.number(bits);
            first[row * depth + k] = if plan.negative { -number } else { number };
        }
    }
    for column in 0..columns {
        for k in 0..depth {
            second[column * depth + k] = plan.b.number(shared((p.second, plan.b.bits(), plan.turned[1], column, k))?);
        }
    }
    for row in 0..rows {
        let lane = (p.to >> 16) + plan.lane(row as u32);
        if p.kept[(lane / 32 % 4) as usize] >> (lane % 32) & 1 != 0 {
            continue;
        }
        for column in 0..columns {
            let cell = tensor.cell(lane, (p.to & 0xffff) + column as u32)?;
            let old = if p.added { plan.sum.number(*cell) / f64::from(1u32 << p.scale) } else { 0.0 };
            let factors = first[row * depth..][..depth].iter().zip(&second[column * depth..][..depth]);
            *cell = plan.sum.cell(factors.fold(old, |sum, (a, b)| sum + a * b));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_lie_at_multiples_of_their_number() {
        let mut tensor = Tensor::default();
        assert_eq!([1, 4, 2, 8, 8].map(|count| tensor.find(count)), [Some(0), Some(4), Some(2), Some(8), None]);
        assert_eq!(tensor.units, 0xfffd & 0xfffd);
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

    #[test]
    fn ones_times_twos() {
        let mut tensor = Tensor { units: 1, ..Tensor::default() };
        let of = 1 << 4 | 2 << 17 | 8 << 24;
        let p = Product {
            kind: Kind::Half,
            to: 0,
            first: First::Shared(1),
            second: 2,
            of,
            kept: [0, 1, 0, 0],
            added: true,
            scale: 1,
        };
        *tensor.cell(3, 5).expect("there") = 8f32.to_bits();
        product(&mut tensor, &p, |(at, ..)| Ok::<_, String>(if at == 1 { 0x3c00 } else { 0x4000 })).expect("a product");
        assert_eq!(*tensor.cell(3, 5).expect("there"), 36f32.to_bits());
        assert_eq!(*tensor.cell(127, 15).expect("there"), 32f32.to_bits());
        assert_eq!(*tensor.cell(32, 15).expect("there"), 0);
    }
}
