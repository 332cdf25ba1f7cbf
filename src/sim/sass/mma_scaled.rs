//! Executes the block-scaled products QMMA.SF and OMMA.SF, dense and sparse.
//!
//! The product is that of `mma`, with each block along k multiplied by both of its scales. Of a
//! sparse product the register before that of the first scale holds the metadata. Bit 2 of
//! the selector chooses the pair of lanes that holds the scale of a row, bits 5 and 6 the lane of
//! that of a column (PTX ISA 9.0, 9.7.14.3).

use super::super::ops::format::F32;
use super::super::ops::narrow::Tiny;
use super::code::{Code, From, Src};
use super::matrix::fragment;
use super::mma::Sum;
use super::mma::{Element, Fragment, Product, factor, read, real, rounded, sum_place, write};
use super::warp::{LANES, Warp, lanes_of};
use crate::arrays::Each;

/// A product with block scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// The product without its scales.
    pub product: Product,
    /// Scales along k.
    pub blocks: u8,
    /// Whether a scale is a float with a fraction; else it is a power of two.
    pub fraction: bool,
    /// The registers of the scales; of a sparse product, the first one holds the metadata, and the
    /// next one the first scale.
    pub first: u8,
    pub second: u8,
}

/// Rows and columns.
const ROWS: usize = 16;
const COLUMNS: usize = 8;

impl Scaled {
    /// Registers of the second factor.
    pub fn words_of_b(&self) -> u8 {
        if self.product.sparse.is_some() { 4 } else { 2 }
    }

    /// The registers of the scales, with how many there are: metadata stands before the first.
    pub fn scales(&self) -> [(u8, u8); 2] {
        [(self.first, 1 + u8::from(self.product.sparse.is_some())), (self.second, 1)]
    }

    /// A scale.
    fn scale(&self, byte: u32) -> f64 {
        match (self.fraction, byte & 255) {
            (true, bits) => real(Element::Tiny(Tiny::E4m3), u64::from(bits & 127)),
            (false, 255) => f64::NAN,
            (false, bits) => (f64::from(bits) - 127.0).exp2(),
        }
    }

    /// The words of d.
    fn eval(&self, [a, b, c]: [&Fragment; 3], [metadata, scales @ ..]: [&[u32; LANES]; 3], id: u32) -> Fragment {
        let mut d = vec![[0; LANES]; c.len()];
        let p = &self.product;
        let k = usize::from(p.k);
        let block = k / usize::from(self.blocks);
        for row in 0..ROWS {
            let line: Vec<f64> =
                (0..k).map(|k| p.first(a, metadata, row, k).map_or(0.0, |bits| real(p.a, bits))).collect();
            for column in 0..COLUMNS {
                let place = sum_place(Sum::F32, row, column);
                let mut sum = real(Element::Float(F32), read(c, place, 32));
                let lane_a = row % 8 * 4 + 2 * (id >> 2 & 1) as usize + row / 8;
                let lane_b = column * 4 + (id >> 5 & 3) as usize;
                for at in 0..usize::from(self.blocks) {
                    let part = (at * block..(at + 1) * block)
                        .map(|k| line[k] * real(p.b, read(b, factor(p.b, COLUMNS, column, k), p.b.bits())));
                    let byte = |word: u32, first: u32| word.checked_shr(8 * (first + at as u32)).unwrap_or(0);
                    let first = self.scale(byte(scales[0][lane_a], id & 3));
                    let second = self.scale(byte(scales[1][lane_b], id >> 3 & 3));
                    sum += part.sum::<f64>() * first * second;
                }
                write(&mut d, place, 32, rounded(sum, F32));
            }
        }
        d
    }
}

/// Executes one.
pub fn execute(w: &mut Warp, code: &Code, active: u32, scaled: &Scaled) {
    let sparse = scaled.product.sparse.is_some();
    let parts = [(&code.a, 4), (&code.b, scaled.words_of_b()), (&code.c, 4)];
    let [a, b, c] = parts.each(|(src, words)| fragment(w, src, active, words));
    let word = |register: u8, further: bool| {
        let from = if register == 255 { From::Zero } else { From::Reg(register + u8::from(further)) };
        fragment(w, &Src { from, ..Src::default() }, active, 1)[0]
    };
    let id = w.get(&code.ub, active.trailing_zeros() as usize % LANES) as u32;
    let words = [(scaled.first, false), (scaled.first, sparse), (scaled.second, false)];
    let [metadata, first, second] = words.each(|(register, further)| word(register, further));
    let d = scaled.eval([&a, &b, &c], [&metadata, &first, &second], id);
    for (i, words) in d.iter().enumerate() {
        lanes_of(active).for_each(|lane| w.set(code.d, i, lane, words[lane]));
    }
}
