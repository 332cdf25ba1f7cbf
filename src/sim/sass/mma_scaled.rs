//! Executes the block-scaled products QMMA.SF and OMMA.SF.
//!
//! The product is that of `mma`, with each block along k multiplied by both of its scales. Bit 2 of
//! the selector chooses the pair of lanes that holds the scale of a row, bits 5 and 6 the lane of
//! that of a column (PTX ISA 9.0, 9.7.14.3).

use super::super::ops::format::F32;
use super::super::ops::narrow::Tiny;
use super::code::{Code, From, Src};
use super::matrix::fragment;
use super::mma::Sum;
use super::mma::{Element, Fragment, factor, read, real, rounded, sum_place, write};
use super::warp::{LANES, Warp, lanes_of};

/// A product with block scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    pub k: u16,
    pub a: Element,
    pub b: Element,
    /// Scales along k.
    pub blocks: u8,
    /// Whether a scale is a float with a fraction; else it is a power of two.
    pub fraction: bool,
    /// The registers of the scales.
    pub first: u8,
    pub second: u8,
}

/// Rows and columns.
const ROWS: usize = 16;
const COLUMNS: usize = 8;

impl Scaled {
    /// A scale.
    fn scale(&self, byte: u32) -> f64 {
        match (self.fraction, byte & 255) {
            (true, bits) => real(Element::Tiny(Tiny::E4m3), u64::from(bits & 127)),
            (false, 255) => f64::NAN,
            (false, bits) => (f64::from(bits) - 127.0).exp2(),
        }
    }

    /// The words of d.
    fn eval(&self, [a, b, c]: [&Fragment; 3], scales: [&[u32; LANES]; 2], id: u32) -> Fragment {
        let mut d = vec![[0; LANES]; c.len()];
        let k = usize::from(self.k);
        let block = k / usize::from(self.blocks);
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let place = sum_place(Sum::F32, row, column);
                let mut sum = real(Element::Float(F32), read(c, place, 32));
                let lane_a = row % 8 * 4 + 2 * (id >> 2 & 1) as usize + row / 8;
                let lane_b = column * 4 + (id >> 5 & 3) as usize;
                for at in 0..usize::from(self.blocks) {
                    let part = (at * block..(at + 1) * block).map(|k| {
                        let x = read(a, factor(self.a, ROWS, row, k), self.a.bits());
                        let y = read(b, factor(self.b, COLUMNS, column, k), self.b.bits());
                        real(self.a, x) * real(self.b, y)
                    });
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
    let [a, b, c] = [(&code.a, 4), (&code.b, 2), (&code.c, 4)].map(|(src, words)| fragment(w, src, active, words));
    let word = |register: u8| {
        let from = if register == 255 { From::Zero } else { From::Reg(register) };
        fragment(w, &Src { from, ..Src::default() }, active, 1)[0]
    };
    let id = w.get(&code.ub, active.trailing_zeros() as usize % LANES) as u32;
    let d = scaled.eval([&a, &b, &c], [&word(scaled.first), &word(scaled.second)], id);
    for (i, words) in d.iter().enumerate() {
        lanes_of(active).for_each(|lane| w.set(code.d, i, lane, words[lane]));
    }
}
