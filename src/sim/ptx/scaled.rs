//! Executes `mma` with block scale (PTX ISA 9.7.14.3).
//!
//! Each block along k is scaled by one number of its row and one of its column. Sums are computed
//! in f64 and rounded once.

use super::convert::Small;
use super::fragment;
use super::matrix::{Element, Product, spread};
use super::state::LANES;
use super::values::mask;
use super::warp::Together;
use crate::sim::ops::format::{F32, F64, Round};

/// How factors are scaled.
#[derive(Clone, Copy, Debug)]
pub struct Scaling {
    /// Scales of a row along k.
    pub blocks: usize,
    /// The format of a scale; a power of two where there is none.
    pub format: Option<Small>,
}

impl Scaling {
    fn value(&self, byte: u64) -> f64 {
        match self.format {
            Some(format) => format.value(byte & 0x7f),
            None if byte == 0xff => f64::NAN,
            None => 2f64.powi(byte as i32 - 127),
        }
    }
}

/// What lanes compute together. Behind the summand come the metadata of a sparse first factor and
/// their selector, then the scales of the first factor, their byte and their lanes, and those of
/// the second.
pub fn compile(p: Product, scaling: Scaling) -> Together {
    Box::new(move |l| {
        let [_, na, nb, nc] = p.counts;
        let (a, rest) = l.src.split_at(na);
        let (b, rest) = rest.split_at(nb);
        let (c, rest) = rest.split_at(nc);
        let (meta, scales) = rest.split_at(if p.sparse { 2 } else { 0 });
        let (rows, columns, depth) = (p.shape.m, p.shape.n, p.shape.k);
        let kept = if p.sparse { depth / 2 } else { depth };
        let part = |words: &[[u64; LANES]], of: Element, lane: usize, e: usize| {
            let each = of.each();
            of.number(words[e / each][lane] >> (e % each * of.bits() as usize) & mask(of.bits()))
        };
        let (mut ma, mut mb) = (vec![0.0; rows * depth], vec![0.0; depth * columns]);
        for lane in 0..LANES {
            for e in 0..rows * kept / LANES {
                let (row, at) = fragment::first(rows, kept, p.a.each(), lane, e);
                let k = if p.sparse { spread(&p, meta, row, at) } else { at };
                ma[row * depth + k] = part(a, p.a, lane, e);
            }
            for e in 0..depth * columns / LANES {
                let (k, column) = fragment::second(depth, p.b.each(), lane, e);
                mb[k * columns + column] = part(b, p.b, lane, e);
            }
        }
        let step = depth / scaling.blocks;
        let scale = |words: usize, lane: usize, block: usize| {
            let first = scales[words + 1][lane] & 3;
            scaling.value(scales[words][lane] >> (8 * (first + block as u64)) & 0xff)
        };
        let (pair, quad) = (scales[2][0] & 1, scales[5][0] & 3);
        let entry = |lane: usize, e: usize| {
            let (row, column) = fragment::result(rows, lane, e);
            let mut sum = p.c.number(c[e][lane]);
            for block in 0..scaling.blocks {
                let products =
                    (block * step..(block + 1) * step).map(|k| ma[row * depth + k] * mb[k * columns + column]);
                let of_row = scale(0, 4 * (row % 8) + 2 * pair as usize + row / 8, block);
                let of_column = scale(3, 4 * column + quad as usize, block);
                sum += products.sum::<f64>() * of_row * of_column;
            }
            if sum.is_nan() { F32.nan() } else { F64.convert(sum.to_bits(), F32, Round::Nearest) }
        };
        let out: Vec<[u64; LANES]> = (0..4).map(|e| std::array::from_fn(|lane| entry(lane, e))).collect();
        l.out[..4].copy_from_slice(&out);
    })
}
