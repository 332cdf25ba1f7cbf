//! Executes matrix products of a warp, `mma` and `wmma.mma` (PTX ISA 9.7.14).
//!
//! Elements are multiplied exactly. Where the ISA leaves the order and precision of the summation
//! open, sums are computed in f64 and rounded to the result type once; f64 products are fused
//! multiply-adds in ascending k. Integer sums wrap unless `.satfinite` is set.

use super::convert::Small;
use super::fragment::{self, Shape};
use super::state::LANES;
use super::values::mask;
use super::warp::{Lanes, Together};
use crate::sim::ops::format::{BF16, F16, F32, F64, Format, Round, TF32};
use crate::sim::ops::real::{self, Mode};

/// The type of matrix elements.
#[derive(Clone, Copy, Debug)]
pub enum Element {
    Float(Format),
    /// tf32 in the upper bits of a 32-bit register.
    Tf32,
    Double,
    Small(Small),
    /// A small float in 4 bits.
    Nibble(Small),
    Int {
        bits: u32,
        signed: bool,
    },
    Bit,
}

impl Element {
    /// The element type with that name in PTX.
    pub fn by_name(name: &str) -> Option<Element> {
        Some(match name {
            "f16" => Element::Float(F16),
            "bf16" => Element::Float(BF16),
            "f32" => Element::Float(F32),
            "tf32" => Element::Tf32,
            "f64" => Element::Double,
            "b1" => Element::Bit,
            "s32" | "s8" | "s4" | "u8" | "u4" => {
                Element::Int { bits: name[1..].parse().ok()?, signed: name.starts_with('s') }
            }
            _ => Element::Small(Small::by_name(name)?),
        })
    }

    /// Size of an element in a register or in memory, in bits.
    pub fn bits(self) -> u32 {
        match self {
            Element::Float(f) => f.bits(),
            Element::Tf32 => 32,
            Element::Double => 64,
            Element::Small(_) => 8,
            Element::Nibble(_) => 4,
            Element::Int { bits, .. } => bits,
            Element::Bit => 1,
        }
    }

    /// Number of elements in one 32-bit register.
    pub fn each(self) -> usize {
        (32 / self.bits().min(32)) as usize
    }

    /// The number that bits stand for.
    pub fn number(self, bits: u64) -> f64 {
        let wide = |f: Format, bits| f64::from_bits(f.convert(bits, F64, Round::Nearest));
        match self {
            Element::Float(f) => wide(f, bits),
            Element::Tf32 => wide(TF32, bits >> 13),
            Element::Double => f64::from_bits(bits),
            Element::Small(small) => small.value(bits >> small.lead()),
            Element::Nibble(small) => small.value(bits),
            Element::Int { .. } | Element::Bit => self.integer(bits) as f64,
        }
    }

    fn integer(self, bits: u64) -> i64 {
        match self {
            Element::Int { bits: width, signed: true } => super::values::sign_extend(bits, width) as i64,
            _ => bits as i64,
        }
    }
}

/// A matrix product: shape, element types of D, A, B and C, and modifiers.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// The m, n and k dimensions.
    pub shape: Shape,
    /// The elements of D.
    pub d: Element,
    /// The elements of A.
    pub a: Element,
    /// The elements of B.
    pub b: Element,
    /// The elements of C.
    pub c: Element,
    /// Number of registers in the fragments of D, A, B and C.
    pub counts: [usize; 4],
    /// Whether A and B are row-major; only the form with four 8 × 8 × 4 products depends on it.
    pub by_row: [bool; 2],
    /// The rounding of f64 products.
    pub round: Round,
    /// Whether integer sums saturate.
    pub saturate: bool,
    /// Whether A is sparse, with half of its elements stored. The metadata and the selector then
    /// follow C among the sources.
    pub sparse: bool,
    /// For single-bit elements: combines with `and` instead of `xor`.
    pub and: bool,
}

/// A dense matrix of element bits, row-major.
pub struct Matrix {
    columns: usize,
    bits: Vec<u64>,
}

impl Matrix {
    /// Of zeros.
    pub fn new(rows: usize, columns: usize) -> Matrix {
        Matrix { columns, bits: vec![0; rows * columns] }
    }

    fn at(&self, row: usize, column: usize) -> u64 {
        self.bits[row * self.columns + column]
    }

    /// Sets an element.
    pub fn set(&mut self, (row, column): (usize, usize), value: u64) {
        self.bits[row * self.columns + column] = value;
    }
}

/// An element of a lane's fragment; `rows` are the fragment's registers over all lanes.
fn element(rows: &[[u64; LANES]], of: Element, lane: usize, number: usize) -> u64 {
    let each = of.each();
    let word = rows[number / each][lane];
    word >> (number % each * of.bits() as usize) & mask(of.bits())
}

/// The warp operation of a product. Its sources are the registers of A, B and C.
pub fn compile(p: Product) -> Together {
    let quarters = p.shape == Shape { m: 8, n: 8, k: 4 } && matches!(p.a, Element::Float(_));
    Box::new(move |l| {
        let [_, na, nb, nc] = p.counts;
        let (a, rest) = l.src.split_at(na);
        let (b, c) = rest.split_at(nb);
        let (c, meta) = c.split_at(nc);
        let out = if quarters { in_quarters(&p, a, b, c) } else { whole(&p, a, b, c, meta) };
        store(&p, l, &out);
    })
}

/// The elements of D in the order of each lane's fragment.
type Results = Vec<Vec<u64>>;

fn store(p: &Product, l: &mut Lanes, out: &Results) {
    let each = p.d.each();
    for (lane, values) in out.iter().enumerate() {
        for (register, row) in l.out.iter_mut().enumerate().take(p.counts[0]) {
            let part = values[register * each..].iter().take(each).enumerate();
            row[lane] = part.fold(0, |word, (n, bits)| word | bits << (n * p.d.bits().min(63) as usize));
        }
    }
}

pub type Rows = [[u64; LANES]];

fn whole(p: &Product, a: &Rows, b: &Rows, c: &Rows, meta: &Rows) -> Results {
    let Shape { m, n, k } = p.shape;
    let kept = if p.sparse { k / 2 } else { k };
    let (mut ma, mut mb, mut mc) = (Matrix::new(m, k), Matrix::new(k, n), Matrix::new(m, n));
    for lane in 0..LANES {
        for e in 0..m * kept / LANES {
            let (row, place) = fragment::first(m, kept, p.a.each(), lane, e);
            let place = if p.sparse { spread(p, meta, row, place) } else { place };
            ma.set((row, place), element(a, p.a, lane, e));
        }
        for e in 0..k * n / LANES {
            mb.set(fragment::second(k, p.b.each(), lane, e), element(b, p.b, lane, e));
        }
        for e in 0..m * n / LANES {
            mc.set(fragment::result(m, lane, e), element(c, p.c, lane, e));
        }
    }
    let of = |lane: usize, e: usize| {
        let (row, column) = fragment::result(m, lane, e);
        entry(p, &ma, &mb, mc.at(row, column), row, column)
    };
    (0..LANES).map(|lane| (0..m * n / LANES).map(|e| of(lane, e)).collect()).collect()
}

/// The k index of a stored element of a sparse A.
///
/// Two of every four units are stored, and the metadata has a 2-bit index for each. A unit is an
/// element, a pair of 4-bit elements, or half of a 32-bit element. A metadata register holds 16
/// bits of one row and 16 bits of the row 8 below. For elements of 4 and 8 bits it holds 32 bits of
/// one of these rows, and the next lane holds the other. The selector chooses which lanes of a quad
/// provide the metadata.
pub fn spread(p: &Product, meta: &Rows, row: usize, place: usize) -> usize {
    let (chunk, slot) = match p.a.bits() {
        4 => (place / 4, place / 2 % 2),
        32 => (place, 0),
        _ => (place / 2, place % 2),
    };
    let chunks = match p.a.bits() {
        4 => p.shape.k / 8,
        32 => p.shape.k / 2,
        _ => p.shape.k / 4,
    };
    let [metadata, selector] = meta else { return place };
    let (further, at) = match p.a.bits() {
        4 | 8 => (chunk / 8 * 2 + row / 8, chunk % 8 * 4),
        _ => (chunk / 4, chunk % 4 * 4 + row / 8 * 16),
    };
    let lane = row % 8 * 4 + selector[0] as usize * (chunks / 4).max(1) + further;
    let bits = metadata[lane % LANES] >> at;
    let index = (bits >> (2 * slot) & 3) as usize;
    match p.a.bits() {
        4 => (4 * chunk + index) * 2 + place % 2,
        32 => 2 * chunk + usize::from(bits & 0b1111 == 0b1110),
        _ => 4 * chunk + index,
    }
}

/// Four products of 8 × 8 × 4, each computed by the lanes of two quads.
fn in_quarters(p: &Product, a: &[[u64; LANES]], b: &[[u64; LANES]], c: &[[u64; LANES]]) -> Results {
    let mut sets: Vec<(Matrix, Matrix, Matrix)> =
        (0..4).map(|_| (Matrix::new(8, 4), Matrix::new(4, 8), Matrix::new(8, 8))).collect();
    for lane in 0..LANES {
        let (ma, mb, mc) = &mut sets[fragment::quarter(lane)];
        for e in 0..4 {
            ma.set(fragment::quarter_factor(p.by_row[0], lane, e), element(a, p.a, lane, e));
            // A column-major B has the layout of a row-major A.
            let (column, place) = fragment::quarter_factor(!p.by_row[1], lane, e);
            mb.set((place, column), element(b, p.b, lane, e));
        }
        for e in 0..8 {
            mc.set(fragment::quarter_result(p.c.bits() == 32, lane, e), element(c, p.c, lane, e));
        }
    }
    let of = |lane: usize, e: usize| {
        let (row, column) = fragment::quarter_result(p.d.bits() == 32, lane, e);
        let (ma, mb, mc) = &sets[fragment::quarter(lane)];
        entry(p, ma, mb, mc.at(row, column), row, column)
    };
    (0..LANES).map(|lane| (0..8).map(|e| of(lane, e)).collect()).collect()
}

/// One element of D.
pub fn entry(p: &Product, a: &Matrix, b: &Matrix, c: u64, row: usize, column: usize) -> u64 {
    let pairs = (0..a.columns).map(|k| (a.at(row, k), b.at(k, column)));
    match p.d {
        Element::Int { .. } => {
            let term = |(x, y): (u64, u64)| match p.a {
                Element::Bit if p.and => (x & y) as i64,
                Element::Bit => (x ^ y) as i64,
                _ => p.a.integer(x) * p.b.integer(y),
            };
            let sum = pairs.map(term).sum::<i64>() + p.c.integer(c);
            let sum = if p.saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
            sum as u64 & mask(32)
        }
        Element::Double => {
            let mode = Mode { round: p.round, ..Mode::default() };
            pairs.fold(c, |sum, (x, y)| real::fma(F64, x, y, sum, mode))
        }
        _ => {
            let sum = pairs.map(|(x, y)| p.a.number(x) * p.b.number(y)).sum::<f64>() + p.c.number(c);
            let f = if let Element::Float(f) = p.d { f } else { F32 };
            if sum.is_nan() { f.nan() } else { F64.convert(sum.to_bits(), f, Round::Nearest) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(shape: &str, [d, a, b, c]: [&str; 4], counts: [usize; 4]) -> Product {
        let of = |name| Element::by_name(name).expect("a type");
        Product {
            shape: Shape::parse(shape).expect("a shape"),
            d: of(d),
            a: of(a),
            b: of(b),
            c: of(c),
            counts,
            by_row: [true, false],
            round: Round::Nearest,
            saturate: false,
            sparse: false,
            and: false,
        }
    }

    fn run(p: Product, src: Vec<[u64; LANES]>) -> Vec<[u64; LANES]> {
        let mut lanes = Lanes { active: u32::MAX, src, out: vec![[0; LANES]; 8], ..Lanes::default() };
        compile(p)(&mut lanes);
        lanes.out
    }

    #[test]
    fn ones_times_ones() {
        let half = 0x3c00_3c00;
        let p = product("m16n8k16", ["f32", "f16", "f16", "f32"], [4, 4, 2, 4]);
        let src = [vec![[half; LANES]; 6], vec![[0x3f80_0000; LANES]; 4]].concat();
        assert_eq!(run(p, src)[3][31], u64::from(17f32.to_bits()));
        let p = product("m16n8k32", ["s32", "s8", "u8", "s32"], [4, 4, 2, 4]);
        let src = [vec![[0xffff_ffff; LANES]; 6], vec![[5; LANES]; 4]].concat();
        assert_eq!(run(p, src)[0][0], (5i64 - 32 * 255) as u64 & 0xffff_ffff);
        let p = product("m8n8k4", ["f16", "f16", "f16", "f16"], [4, 2, 2, 4]);
        assert_eq!(run(p, vec![[half; LANES]; 8])[0][9], 0x4500_4500);
    }

    #[test]
    fn sparse_rows_are_spread() {
        // All of A is 1, stored at positions 0 and 2 of each four; each row of B holds its row
        // number.
        let p = product("m16n8k32", ["f32", "f16", "f16", "f32"], [4, 4, 4, 4]);
        let p = Product { sparse: true, ..p };
        let mut src = [vec![[0x3c00_3c00; LANES]; 4], vec![[0; LANES]; 4], vec![[0; LANES]; 4]].concat();
        for register in 0..4 {
            for (lane, word) in src[4 + register].iter_mut().enumerate() {
                let row = lane % 4 * 2 + register * 8;
                let half = |x: usize| F64.convert((x as f64).to_bits(), F16, Round::Nearest);
                *word = half(row) | half(row + 1) << 16;
            }
        }
        src.extend([[0x8888_8888; LANES], [0; LANES]]);
        let even: usize = (0..32).step_by(2).sum();
        assert_eq!(run(p, src)[2][17], u64::from((even as f32).to_bits()));
    }

    #[test]
    fn a_row_meets_a_column() {
        // A has 1 at (3, 5); B has 2 at (5, 6): D has 2 at (3, 6).
        let p = product("m16n8k8", ["f32", "tf32", "tf32", "f32"], [4, 4, 2, 4]);
        let mut src = vec![[0; LANES]; 10];
        src[2][3 * 4 + 1] = 1f32.to_bits().into();
        src[5][6 * 4 + 1] = 2f32.to_bits().into();
        let out = run(p, src);
        let found: Vec<(usize, usize)> =
            (0..4).flat_map(|r| (0..LANES).map(move |l| (r, l))).filter(|(r, l)| out[*r][*l] != 0).collect();
        assert_eq!((found.as_slice(), out[0][15]), ([(0, 15)].as_slice(), u64::from(2f32.to_bits())));
    }
}
