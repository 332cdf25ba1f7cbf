//! Small matrix products, as tensor cores compute them.
//!
//! Elements are multiplied exactly. Floating-point sums are computed in f64 in ascending k,
//! starting with the addend, and rounded once to the format of D; f64 products are a chain of fused
//! multiply-adds; integer sums are exact, then wrapped or clamped. The fragment layout is defined
//! by [`factor`] and [`sum_place`] alone (PTX ISA 9.0, 9.7.14.5).

use super::super::ops::format::{BF16, F16, F32, F64, Format, Round, Value};
use super::super::ops::narrow::{Tiny, from_tiny};
use super::super::ops::real::{self, Mode};
use crate::arrays::Each;

/// Lanes of a warp.
const LANES: usize = 32;
/// Rows that a register of all lanes covers.
const ROWS: usize = 8;
/// Bits of metadata for one row in one register.
const ROW_METADATA: usize = 16;

/// The type of the elements of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// A float of the format's width.
    Float(Format),
    /// tf32 in the upper bits of an f32.
    Tf32,
    /// A float of at most 8 bits in a byte of its own: 6-bit numbers in the low bits, 4-bit numbers
    /// in the middle (PTX ISA 9.0, 9.7.14.5.14).
    Tiny(Tiny),
    /// E2M1 in 4 bits.
    Nibble,
    Int {
        bits: u8,
        signed: bool,
    },
    Bit,
}

impl Element {
    pub(super) fn bits(self) -> usize {
        match self {
            Element::Float(f) => f.bits() as usize,
            Element::Tf32 => 32,
            Element::Tiny(_) => 8,
            Element::Nibble => 4,
            Element::Int { bits, .. } => bits.into(),
            Element::Bit => 1,
        }
    }
}

/// The type of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    F16,
    F32,
    F64(Round),
    Int { clamp: bool },
}

/// A matrix product: shape, element types and accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Rows m and columns n of D.
    pub shape: [u8; 2],
    /// The k dimension.
    pub k: u16,
    /// The elements of A.
    pub a: Element,
    /// The elements of B.
    pub b: Element,
    /// The elements of C and D.
    pub sum: Sum,
    /// For single bits: whether they are combined with AND instead of XOR.
    pub and: bool,
    /// For a sparse A, with half of its elements stored: the selector of its metadata.
    pub sparse: Option<u8>,
}

/// The position of an element: lane, and lowest bit in the lane's fragment.
type Place = (usize, usize);

/// The position of element `(line, place)` of a factor with `lines` rows (for B, columns).
pub(super) fn factor(element: Element, lines: usize, line: usize, place: usize) -> Place {
    let bits = element.bits();
    let per = (32 / bits).max(1);
    let (block, inside) = (place / (4 * per), place % (4 * per));
    let register = block * (lines / ROWS) + line / ROWS;
    (line % ROWS * 4 + inside / per, register * 32.max(bits) + inside % per * bits)
}

/// The position of element `(row, column)` of C or D.
pub(super) fn sum_place(sum: Sum, row: usize, column: usize) -> Place {
    let bits = match sum {
        Sum::F16 => 16,
        Sum::F32 | Sum::Int { .. } => 32,
        Sum::F64(_) => 64,
    };
    (row % ROWS * 4 + column / 2, (row / ROWS * 2 + column % 2) * bits)
}

/// Registers of a fragment, as words of each lane.
pub type Fragment = Vec<[u32; LANES]>;

/// Reads an element of a fragment.
pub(super) fn read(f: &Fragment, (lane, at): Place, bits: usize) -> u64 {
    let word = |i: usize| u64::from(f.get(i).map_or(0, |words| words[lane]));
    let low = word(at / 32) >> (at % 32);
    match bits {
        64 => low | word(at / 32 + 1) << 32,
        _ => low & ((1 << bits) - 1),
    }
}

/// Writes an element of a fragment.
pub(super) fn write(f: &mut Fragment, (lane, at): Place, bits: usize, value: u64) {
    if bits == 64 {
        f[at / 32][lane] = value as u32;
        f[at / 32 + 1][lane] = (value >> 32) as u32;
        return;
    }
    let mask = (((1u64 << bits) - 1) as u32) << (at % 32);
    let word = &mut f[at / 32][lane];
    *word = *word & !mask | (value as u32) << (at % 32) & mask;
}

/// The exact value of a floating-point element.
pub(super) fn real(element: Element, bits: u64) -> f64 {
    let (format, bits) = match element {
        Element::Tf32 => (F32, bits & !0x1fff),
        Element::Float(format) => (format, bits),
        Element::Tiny(tiny) => {
            let middle = if tiny == Tiny::E2m1 { bits >> 2 } else { bits };
            (F16, from_tiny(tiny, middle as u8, false))
        }
        Element::Nibble => (F16, from_tiny(Tiny::E2m1, bits as u8, false)),
        Element::Int { .. } | Element::Bit => return 0.0,
    };
    match format.unpack(bits) {
        Value::Nan => f64::NAN,
        _ => f64::from_bits(format.convert(bits, F64, Round::Nearest)),
    }
}

fn whole(element: Element, bits: u64) -> i64 {
    match element {
        Element::Int { bits: width, signed: true } => (bits as i64) << (64 - width) >> (64 - width),
        _ => bits as i64,
    }
}

/// Rounds a sum to the format of the result.
pub(super) fn rounded(sum: f64, to: Format) -> u64 {
    if sum.is_nan() { to.nan() } else { F64.convert(sum.to_bits(), to, Round::Nearest) }
}

impl Product {
    /// The bits of element `(row, k)` of A, or `None` if a sparse A does not store it.
    pub(super) fn first(&self, a: &Fragment, metadata: &[u32; LANES], row: usize, k: usize) -> Option<u64> {
        let rows = usize::from(self.shape[0]);
        let Some(selector) = self.sparse else {
            return Some(read(a, factor(self.a, rows, row, k), self.a.bits()));
        };
        // Metadata counts units: elements, pairs of 4-bit elements, or halves of 32-bit elements.
        let (unit, part, parts) = match self.a.bits() {
            32 => (2 * k, 0, 1),
            4 => (k / 2, k % 2, 2),
            _ => (k, 0, 1),
        };
        let units = match self.a.bits() {
            32 => 2 * usize::from(self.k),
            4 => usize::from(self.k) / 2,
            _ => usize::from(self.k),
        };
        let (chunk, index) = (unit / 4, unit % 4);
        let lanes = units / ROW_METADATA;
        // A register holds 16 bits of a row and 16 bits of the row 8 below; with narrow elements a
        // lane has 32 bits of one of them.
        let (further, at) = match self.a.bits() {
            4 | 8 => (chunk / ROWS * 2 + row / ROWS, chunk % ROWS * 4),
            _ => (chunk * 4 / ROW_METADATA, chunk * 4 % ROW_METADATA + row / ROWS * ROW_METADATA),
        };
        let lane = row % ROWS * 4 + usize::from(selector) * lanes + further;
        let bits = metadata[lane % LANES] >> at;
        let kept = (0..2).find(|s| (bits >> (2 * s) & 3) as usize == index)?;
        let place = match self.a.bits() {
            32 => chunk,
            _ => (2 * chunk + kept) * parts + part,
        };
        Some(read(a, factor(self.a, rows, row, place), self.a.bits()))
    }

    /// Computes `d = a * b + c`; `e` is the metadata of a sparse product.
    pub fn eval(&self, a: &Fragment, b: &Fragment, c: &Fragment, e: &[u32; LANES]) -> Fragment {
        let [rows, columns] = self.shape.each(usize::from);
        let mut d: Fragment = vec![[0; LANES]; c.len()];
        for row in 0..rows {
            let line: Vec<Option<u64>> = (0..usize::from(self.k)).map(|k| self.first(a, e, row, k)).collect();
            for column in 0..columns {
                let other = |k: usize| read(b, factor(self.b, ROWS, column, k), self.b.bits());
                let pairs = line.iter().enumerate().filter_map(|(k, a)| a.map(|a| (a, other(k))));
                let place = sum_place(self.sum, row, column);
                let bits = if self.sum == Sum::F16 {
                    16
                } else if matches!(self.sum, Sum::F64(_)) {
                    64
                } else {
                    32
                };
                let value = self.dot(pairs, read(c, place, bits));
                write(&mut d, place, bits, value);
            }
        }
        d
    }

    fn dot(&self, pairs: impl Iterator<Item = (u64, u64)>, c: u64) -> u64 {
        let float = |format: Format| real(Element::Float(format), c);
        let reals = |pairs: &mut dyn Iterator<Item = (u64, u64)>, c: f64| {
            pairs.fold(c, |sum, (x, y)| sum + real(self.a, x) * real(self.b, y))
        };
        let mut pairs = pairs;
        match self.sum {
            Sum::F16 => rounded(reals(&mut pairs, float(F16)), F16),
            Sum::F32 => rounded(reals(&mut pairs, float(F32)), F32),
            Sum::F64(round) => {
                let mode = Mode { round, ..Mode::default() };
                pairs.fold(c, |sum, (x, y)| real::fma(F64, x, y, sum, mode))
            }
            Sum::Int { clamp } => {
                let product = |(x, y): (u64, u64)| match self.a {
                    Element::Bit if self.and => (x & y) as i64,
                    Element::Bit => (x ^ y) as i64,
                    _ => whole(self.a, x) * whole(self.b, y),
                };
                let sum = pairs.map(product).sum::<i64>() + i64::from(c as i32);
                let sum = if clamp { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                (sum as u32).into()
            }
        }
    }
}

/// The element types that modifier words name.
pub const FLOATS: [(&str, Element); 7] = [
    ("BF16", Element::Float(BF16)),
    ("TF32", Element::Tf32),
    ("E4M3", Element::Tiny(Tiny::E4m3)),
    ("E3M2", Element::Tiny(Tiny::E3m2)),
    ("E2M3", Element::Tiny(Tiny::E2m3)),
    ("E2M1", Element::Tiny(Tiny::E2m1)),
    ("E5M2", Element::Float(Format { mant: 2, exp: 5 })),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_manual() {
        let half = Element::Float(F16);
        assert_eq!(factor(half, 16, 9, 11), (5, 3 * 32 + 16));
        assert_eq!(factor(half, 8, 3, 8), (12, 32));
        assert_eq!(factor(Element::Int { bits: 8, signed: true }, 16, 8, 21), (1, 3 * 32 + 8));
        assert_eq!(factor(Element::Float(F64), 16, 8, 5), (1, 3 * 64));
        assert_eq!(sum_place(Sum::F32, 9, 3), (5, 96));
        assert_eq!(sum_place(Sum::F16, 9, 3), (5, 48));
    }

    #[test]
    fn integers_clamp_and_wrap() {
        let element = Element::Int { bits: 8, signed: true };
        let p = |clamp| Product {
            shape: [8, 8],
            k: 16,
            a: element,
            b: element,
            sum: Sum::Int { clamp },
            and: false,
            sparse: None,
        };
        let (ones, most) = (vec![[0x0101_0101; 32]], vec![[i32::MAX as u32; 32]; 2]);
        assert_eq!(p(true).eval(&ones, &ones, &most, &[0; 32])[0][0], i32::MAX as u32);
        assert_eq!(p(false).eval(&ones, &ones, &most, &[0; 32])[0][0], (i32::MAX as u32).wrapping_add(16));
    }
}
