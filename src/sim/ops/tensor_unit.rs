//! What the unit of tensor memory does by itself (PTX ISA 9.0, 9.7.16): products, copies, shifts.
//!
//! Elements are multiplied exactly, and so are their scales; floating-point sums are computed in
//! f64 in ascending k, behind the addend, and rounded once. Where factors lie in shared memory is
//! up to the caller. Two blocks each have half of the rows of the first factor and half of the
//! columns of the second one; each has the scales of its own rows and of all columns, as CUTLASS
//! gives them. Where the sums of `.ws` lie is a figure of the ISA; the lanes and columns are those
//! of CUTLASS (`tmem_frg_ws` in `mma_traits_sm100_frag.hpp`). What is known from figures alone is
//! refused: fewer than 128 rows of a first factor in tensor memory or of a sparse one, copies of
//! four lanes. Scales and what a sparse factor has stand in `tensor_beside.rs`.

use super::format::{BF16, F16, F32, F64, Format, Round, TF32};
use super::narrow::{Tiny, from_tiny};
use super::tensor_beside::{self, Scales, spread};
use super::tensor_memory::Tensor;

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
    /// Floats of at most 8 bits with a scale for each 32 of them, or 64 of a sparse product.
    ScaledByte,
    /// Floats of 4 bits with a scale for each so many of them, or twice as many of a sparse one.
    ScaledNibble { each: usize },
}

/// A block that takes part: its tensor memory and its shared memory.
pub type Side<'a> = (&'a mut Tensor, &'a [u8]);

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
    /// A bit for each lane that keeps its sums, of the second block too.
    pub kept: [u32; 8],
    /// Whether the old sums are added, divided by this power of two.
    pub added: bool,
    pub scale: u32,
    /// Addresses of the scales of both factors, where they have some.
    pub scales: [u32; 2],
    /// Whether the unit keeps the second factor (`.ws`), which gives the sums other lanes.
    pub keeps: bool,
    /// Address of the numbers of the elements that a sparse first factor has.
    pub chosen: Option<u32>,
}

/// The type of the elements of a factor.
#[derive(Clone, Copy)]
enum Element {
    Float(Format),
    Tf32,
    /// In a byte of tensor memory; 16 of them in 16 bytes of shared memory, side by side.
    Tiny(Tiny),
    /// Two in a byte.
    Nibble,
    Integer {
        signed: bool,
    },
}

impl Element {
    fn of(kind: Kind, code: u32) -> Result<Element, String> {
        Ok(match (kind, code) {
            (Kind::Half, 0) => Element::Float(F16),
            (Kind::Half, 1) => Element::Float(BF16),
            (Kind::Half | Kind::Tf32, 2) => Element::Tf32,
            (Kind::Byte | Kind::ScaledByte, 0) => Element::Tiny(Tiny::E4m3),
            (Kind::Byte | Kind::ScaledByte, 1) => Element::Tiny(Tiny::E5m2),
            (Kind::Byte | Kind::ScaledByte, 3) => Element::Tiny(Tiny::E2m3),
            (Kind::Byte | Kind::ScaledByte, 4) => Element::Tiny(Tiny::E3m2),
            (Kind::Byte | Kind::ScaledByte, 5) => Element::Tiny(Tiny::E2m1),
            (Kind::ScaledNibble { .. }, 1) => Element::Nibble,
            (Kind::Integer, 0 | 1) => Element::Integer { signed: code == 1 },
            _ => return Err(format!("elements of type {code} in a product of this kind are not modelled")),
        })
    }

    /// Bits from one element of a row to the next.
    fn bits(self) -> usize {
        match self {
            Element::Nibble => 4,
            Element::Float(_) => 16,
            Element::Tf32 => 32,
            Element::Tiny(_) | Element::Integer { .. } => 8,
        }
    }

    /// The element at a place in shared memory.
    fn load<E>(
        self,
        (at, turned, line, k): (u64, bool, usize, usize),
        shared: &mut impl FnMut(Place) -> Result<u64, E>,
    ) -> Result<u64, E> {
        let width = match self {
            Element::Tiny(tiny) if tiny.format().bits() < 8 => tiny.format().bits() as usize,
            _ => return shared((at, self.bits(), turned, line, k)),
        };
        let (near, far) = if turned { (line, k) } else { (k, line) };
        let bit = near % PACK * width;
        let mut byte = |number: usize| {
            let near = near / PACK * PACK + number;
            let (line, k) = if turned { (near, far) } else { (far, near) };
            shared((at, 8, turned, line, k))
        };
        let mut word = byte(bit / 8)?;
        if bit % 8 + width > 8 {
            word |= byte(bit / 8 + 1)? << 8;
        }
        Ok(word >> (bit % 8) & (u64::MAX >> (64 - width)))
    }

    /// The element in as many bits of tensor memory.
    fn unpacked(self, bits: u64) -> u64 {
        if matches!(self, Element::Tiny(Tiny::E2m1)) { bits >> NIBBLE_AT } else { bits }
    }

    fn number(self, bits: u64) -> f64 {
        let wide = |f: Format, bits| f64::from_bits(f.convert(bits, F64, Round::Nearest));
        match self {
            Element::Float(f) => wide(f, bits),
            Element::Tf32 => wide(TF32, bits >> 13),
            Element::Tiny(tiny) => wide(F16, from_tiny(tiny, bits as u8, false)),
            Element::Nibble => wide(F16, from_tiny(Tiny::E2m1, bits as u8, false)),
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

/// Elements that share 16 bytes of shared memory, if each has fewer than 8 bits.
const PACK: usize = 16;
/// Where four bits lie in a byte.
const NIBBLE_AT: u32 = 2;
/// Bits of a descriptor that say what is not modelled: larger shifts, more depth, other numbers of
/// a sparse factor.
const LOST: u32 = 0xe080_0043;
const LOST_SCALED: u32 = 0x8700_004b;
/// Bit of a descriptor: the first factor is sparse.
pub const SPARSE: u32 = 1 << 2;

/// Types and shape, as the descriptor of an instruction has them.
struct Plan {
    a: Element,
    b: Element,
    sum: Sum,
    negative: bool,
    turned: [bool; 2],
    rows: u32,
    columns: u32,
    /// Elements of a line that are stored of the first factor, and those of the second one.
    depth: usize,
    whole: usize,
    scales: Option<Scales>,
    keeps: bool,
    chosen: Option<u32>,
}

impl Plan {
    fn of(p: &Product, blocks: u32) -> Result<Plan, String> {
        let Product { kind, of, keeps, chosen, .. } = *p;
        let field = |at: u32, bits: u32| of >> at & ((1 << bits) - 1);
        let scales = match kind {
            Kind::ScaledByte => Some(Scales::of(of, tensor_beside::MOST, false, chosen.is_some())?),
            Kind::ScaledNibble { each } => Some(Scales::of(of, each, true, chosen.is_some())?),
            _ => None,
        };
        let lost = if scales.is_some() { LOST_SCALED } else { LOST };
        if of & lost != 0 || (of & SPARSE != 0) != chosen.is_some() {
            return Err(format!("the descriptor {of:#010x} of a product is not modelled"));
        }
        let (a, b) = (Element::of(kind, field(7, 3))?, Element::of(kind, field(10, 3))?);
        let sum = match (kind, field(4, 2)) {
            _ if scales.is_some() => Sum::F32,
            (Kind::Integer, 2) => Sum::Integer { clamp: field(3, 1) == 1 },
            (Kind::Half | Kind::Byte, 0) => Sum::F16,
            (Kind::Half | Kind::Byte | Kind::Tf32, 1) => Sum::F32,
            (_, code) => return Err(format!("sums of type {code} in a product of this kind")),
        };
        let rows = if scales.is_some() { field(27, 2) * 128 } else { field(24, 5) * 16 };
        let columns = field(17, 6) * 8;
        let step = if rows == 64 || scales.is_some() { 8 } else { 16 * blocks };
        let step = if rows == 256 { 16 } else { step };
        let fits = match (blocks, scales.is_some()) {
            (1, true) => rows == 128,
            (1, false) if keeps => matches!(rows, 32 | 64 | 128) && matches!(columns, 64 | 128 | 256),
            (1, false) => rows == 64 || rows == 128,
            (_, true) => rows == 256,
            (_, false) => rows == 128 || rows == 256,
        };
        if !fits || columns == 0 || columns > 256 || columns % step != 0 {
            return Err(format!("a product of {rows} rows and {columns} columns"));
        }
        if chosen.is_some() && rows / blocks != 128 {
            return Err("fewer than 128 rows of a sparse factor are not modelled".to_string());
        }
        let negative = field(13, 1) != field(14, 1);
        let turned = [field(15, 1) == 1, field(16, 1) == 1];
        let depth = 256 / a.bits();
        let whole = if chosen.is_some() { 2 * depth } else { depth };
        Ok(Plan { a, b, sum, negative, turned, rows, columns, depth, whole, scales, keeps, chosen })
    }

    /// The place in the row of an element that is stored of the first factor.
    fn place_of(&self, tensor: &mut Tensor, row: usize, stored: usize) -> Result<usize, String> {
        self.chosen.map_or(Ok(stored), |at| spread(tensor, at, self.a.bits(), (row, stored)))
    }

    /// The scale of an element of a factor.
    fn scale(&self, tensor: &mut Tensor, at: [u32; 2], which: usize, (line, k): (usize, usize)) -> Result<f64, String> {
        self.scales.as_ref().map_or(Ok(1.0), |scales| scales.get(tensor, at[which], which, (line, k)))
    }

    /// The lane and column of a sum in the block that has its row, relative to the address: with
    /// 64 rows in each of two blocks, half of the columns lie in the upper lanes, and so they do if
    /// the unit keeps the second factor, or a quarter in each warp's lanes with 32 rows.
    fn place(&self, row: u32, column: u32, blocks: u32) -> (u32, u32) {
        let half = self.columns / 2;
        let quarter = self.columns / 4;
        match (self.rows / blocks, blocks) {
            (32, _) => (row + 32 * (column / quarter), column % quarter),
            (64, 1) if !self.keeps => (32 * (row / 16) + row % 16, column),
            (64, _) => (row + 64 * (column / half), column % half),
            _ => (row, column),
        }
    }
}

/// Which element of a factor: its descriptor, bits and whether it is turned, its line (a row of the
/// first factor, a column of the second) and the place in it.
pub type Place = (u64, usize, bool, usize, usize);

/// Computes a product of one block, or of the two of a pair, the one of the lower rank first.
/// `shared` reads an element of a factor in shared memory.
///
/// # Errors
///
/// What is not modelled, lanes or columns that are not there, and what `shared` gives.
pub fn product<E: From<String>>(
    sides: &mut [Side],
    p: &Product,
    mut shared: impl FnMut(&[u8], Place) -> Result<u64, E>,
) -> Result<(), E> {
    let blocks = sides.len().max(1);
    let plan = Plan::of(p, blocks as u32)?;
    let (depth, whole, rows, columns) =
        (plan.depth, plan.whole, plan.rows as usize / blocks, plan.columns as usize / blocks);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (tensor, memory) in sides.iter_mut() {
        for row in 0..rows {
            for k in 0..depth {
                let bits = match p.first {
                    First::Shared(at) => plan.a.load((at, plan.turned[0], row, k), &mut |at| shared(memory, at))?,
                    First::Tensor(_) if rows < 128 || plan.turned[0] => {
                        return Err(format!("{rows} rows in tensor memory are not modelled").into());
                    }
                    First::Tensor(at) => {
                        let bit = k * plan.a.bits();
                        let cell = *tensor.cell((at >> 16) + row as u32, (at & 0xffff) + (bit / 32) as u32)?;
                        plan.a.unpacked(u64::from(cell) >> (bit % 32) & (u64::MAX >> (64 - plan.a.bits())))
                    }
                };
                let at = plan.place_of(tensor, row, k)?;
                let number = plan.a.number(bits) * plan.scale(tensor, p.scales, 0, (row, at))?;
                first.push((at, if plan.negative { -number } else { number }));
            }
        }
        for column in 0..columns {
            for k in 0..whole {
                let bits = plan.b.load((p.second, plan.turned[1], column, k), &mut |at| shared(memory, at))?;
                second.push(plan.b.number(bits));
            }
        }
    }
    for (side, (tensor, _)) in sides.iter_mut().enumerate() {
        let mut second = second.clone();
        for (at, number) in second.iter_mut().enumerate() {
            *number *= plan.scale(tensor, p.scales, 1, (at / whole, at % whole))?;
        }
        for row in 0..rows {
            for column in 0..plan.columns {
                let (down, right) = plan.place(row as u32, column, blocks as u32);
                let lane = (p.to >> 16) + down;
                if p.kept[4 * side + (lane / 32 % 4) as usize] >> (lane % 32) & 1 != 0 {
                    continue;
                }
                let cell = tensor.cell(lane, (p.to & 0xffff) + right)?;
                let old = if p.added { plan.sum.number(*cell) / f64::from(1u32 << p.scale) } else { 0.0 };
                let a = &first[(side * rows + row) * depth..][..depth];
                let b = &second[column as usize * whole..][..whole];
                *cell = plan.sum.cell(a.iter().fold(old, |sum, (k, a)| sum + a * b[*k]));
            }
        }
    }
    Ok(())
}

/// A copy from shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    pub shape: CopyShape,
    /// Bits of the elements there, if they are fewer than the 8 that they get.
    pub narrow: Option<usize>,
}

/// Lanes and bits of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyShape {
    /// All lanes, 256 or 128 bits.
    Wide,
    All,
    /// 64 lanes of 128 bits: the first half to the lanes of two warps, the second to those of the
    /// others, of which each is so many lanes further.
    Half {
        apart: u32,
    },
    /// 32 lanes of 128 bits, to each warp's lanes.
    Quarter,
}

impl CopyShape {
    /// Lines, and words of each.
    fn size(self) -> (usize, usize) {
        match self {
            CopyShape::Wide => (128, 8),
            CopyShape::All => (128, 4),
            CopyShape::Half { .. } => (64, 4),
            CopyShape::Quarter => (32, 4),
        }
    }

    /// The lanes that get a line.
    fn lanes(self, line: u32) -> Vec<u32> {
        match self {
            CopyShape::Wide | CopyShape::All => vec![line],
            CopyShape::Half { apart } => {
                let first = line % 32 + line / 32 * (96 - apart);
                vec![first, first + apart]
            }
            CopyShape::Quarter => (0..4).map(|quarter| line + 32 * quarter).collect(),
        }
    }
}

/// Copies to tensor memory; `shared` reads a word of 32 bits as if it were an element of a factor.
///
/// # Errors
///
/// Lanes or columns that are not there, and what `shared` gives.
pub fn copy<E: From<String>>(
    (tensor, memory): &mut Side,
    (to, from, copy): (u32, u64, Copy),
    mut shared: impl FnMut(&[u8], Place) -> Result<u64, E>,
) -> Result<(), E> {
    let (lines, words) = copy.shape.size();
    for line in 0..lines {
        let mut row = Vec::new();
        for chunk in 0..words / 4 {
            let mut bytes = 0u128;
            for word in 0..4 {
                bytes |= u128::from(shared(memory, (from, 32, false, line, 4 * chunk + word))?) << (32 * word);
            }
            let bytes = copy.narrow.map_or(bytes, |bits| widened(bytes, bits));
            row.extend((0..4).map(|word| (bytes >> (32 * word)) as u32));
        }
        for lane in copy.shape.lanes(line as u32) {
            for (column, word) in row.iter().enumerate() {
                *tensor.cell((to >> 16) + lane, (to & 0xffff) + column as u32)? = *word;
            }
        }
    }
    Ok(())
}

/// Sixteen elements of 4 or 6 bits, a byte each.
fn widened(packed: u128, bits: usize) -> u128 {
    let at = if bits == 4 { NIBBLE_AT } else { 0 };
    (0..PACK).fold(0, |all, i| all | (packed >> (bits * i) & ((1 << bits) - 1)) << (8 * i + at as usize))
}

/// Lanes of a shift, of which the last one keeps what it has.
const SHIFTED: u32 = 32;

/// Moves 32 bytes of each of 31 lanes to the lane before.
///
/// # Errors
///
/// Lanes or columns that are not there, or a lane that is no multiple of 32.
pub fn shift(tensor: &mut Tensor, at: u32) -> Result<(), String> {
    let (first, left) = (at >> 16, at & 0xffff);
    if !first.is_multiple_of(SHIFTED) {
        return Err(format!("a shift of tensor memory from lane {first} on"));
    }
    for lane in first..first + SHIFTED - 1 {
        for column in left..left + 8 {
            *tensor.cell(lane, column)? = *tensor.cell(lane + 1, column)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_times_twos() {
        let mut tensor = Tensor::default();
        tensor.units = 1;
        let of = 1 << 4 | 2 << 17 | 8 << 24;
        let p = Product {
            kind: Kind::Half,
            to: 0,
            first: First::Shared(1),
            second: 2,
            of,
            kept: [0, 1, 0, 0, 0, 0, 0, 0],
            added: true,
            scale: 1,
            scales: [0; 2],
            keeps: false,
            chosen: None,
        };
        *tensor.cell(3, 5).expect("there") = 8f32.to_bits();
        let element = |_: &[u8], (at, ..): Place| Ok::<_, String>(if at == 1 { 0x3c00 } else { 0x4000 });
        product(&mut [(&mut tensor, &[])], &p, element).expect("a product");
        assert_eq!(*tensor.cell(3, 5).expect("there"), 36f32.to_bits());
        assert_eq!(*tensor.cell(127, 15).expect("there"), 32f32.to_bits());
        assert_eq!(*tensor.cell(32, 15).expect("there"), 0);
    }
}
