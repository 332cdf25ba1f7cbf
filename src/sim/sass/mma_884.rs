//! `HMMA.884`: four products of 8 × 8 × 4 at once, in steps of two words of the result.
//!
//! Lanes 4 q to 4 q + 3 and the lanes 16 above them hold quarter q; the upper ones hold rows (for
//! B, columns) 4 to 7. Sums, including the addend, are computed in f64 and rounded once. Step s
//! computes elements 2 s and 2 s + 1 of each lane's f32 results, or the four elements from 4 s of
//! its f16 results, and takes the corresponding words of C (PTX ISA 9.0, 9.7.14.5.1; the steps as
//! ptxas emits them).

use super::super::ops::format::F16;
use super::mma::{Element, Fragment, read, real, rounded, write};

const LANES: usize = 32;
/// The k dimension.
const DEPTH: usize = 4;
const HALF: Element = Element::Float(F16);

/// One step of such a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quarters {
    /// The step's number, 0 to 3.
    pub step: u8,
    /// Whether A and B are row-major.
    pub by_row: [bool; 2],
    /// Whether results are f32 instead of f16.
    pub wide: bool,
    /// Whether addends are f32 instead of f16.
    pub wide_addend: bool,
}

/// Lane and element of `(line, k)` of a factor of quarter `q`; its lines are distributed over lanes
/// or over elements.
fn factor(q: usize, lines_in_lanes: bool, line: usize, k: usize) -> (usize, usize) {
    let (within, element) = if lines_in_lanes { (line % 4, k) } else { (k, line % 4) };
    (4 * q + within + line / 4 * 16, element)
}

impl Quarters {
    /// Computes two words of `d = a * b + c`.
    pub fn eval(&self, a: &Fragment, b: &Fragment, c: &Fragment) -> Fragment {
        let mut d: Fragment = vec![[0; LANES]; 2];
        let (first, count) = if self.wide { (2 * usize::from(self.step), 2) } else { (4 * usize::from(self.step), 4) };
        for lane in 0..LANES {
            for element in first..first + count {
                let upper = lane / 16 * 4;
                let (row, column) = if self.wide {
                    ((lane & 1) + (element & 2) + upper, (element & 4) + (lane & 2) + (element & 1))
                } else {
                    (lane % 4 + upper, element)
                };
                let bits = if self.wide { 32 } else { 16 };
                let place = (lane, (element - first) * bits);
                let addend = match (self.wide_addend, self.wide) {
                    (true, _) => f64::from(f32::from_bits(read(c, place, 32) as u32)),
                    (false, false) => real(HALF, read(c, place, 16)),
                    // f16 addends come as four columns of a row, in the lane of that row.
                    (false, true) => {
                        let at = (lane % 16 / 4 * 4 + row % 4 + row / 4 * 16, column % 4 * 16);
                        real(HALF, read(c, at, 16))
                    }
                };
                let sum = addend + self.dot(a, b, lane % 16 / 4, row, column);
                let format = if self.wide { super::super::ops::format::F32 } else { F16 };
                write(&mut d, place, bits, rounded(sum, format));
            }
        }
        d
    }

    fn dot(&self, a: &Fragment, b: &Fragment, q: usize, row: usize, column: usize) -> f64 {
        let element = |f: &Fragment, (lane, element): (usize, usize)| real(HALF, read(f, (lane, 16 * element), 16));
        let term = |k| {
            let second = factor(q, !self.by_row[1], column, k);
            element(a, factor(q, self.by_row[0], row, k)) * element(b, second)
        };
        (0..DEPTH).map(term).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_give_their_parts() {
        // Row 1 of quarter 2 of A is 1 2 3 4, row-major in lane 9; the column-major B is 1
        // everywhere.
        let mut a: Fragment = vec![[0; LANES]; 2];
        (a[0][9], a[1][9]) = (0x4000_3c00, 0x4400_4200);
        let b: Fragment = vec![[0x3c00_3c00; LANES]; 2];
        let c: Fragment = vec![[0; LANES]; 2];
        let run = |step, wide| {
            let q = Quarters { step, by_row: [true, false], wide, wide_addend: wide };
            q.eval(&a, &b, &c)
        };
        // The f16 results of row 1 are in lane 9, its f32 results in lanes 9 and 11 with two of
        // four columns each.
        assert_eq!(run(1, false).iter().map(|w| w[9]).collect::<Vec<_>>(), [0x4900_4900; 2]);
        assert_eq!(run(0, true).iter().map(|w| w[11]).collect::<Vec<_>>(), [10f32.to_bits(); 2]);
        assert_eq!(run(1, true).iter().map(|w| w[11]).collect::<Vec<_>>(), [0; 2]);
    }
}
