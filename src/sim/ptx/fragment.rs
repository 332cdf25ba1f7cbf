//! Maps the registers of each lane to the matrix elements that they hold (PTX ISA 9.7.14).
//!
//! The lanes of a warp together hold every element of a matrix, and a register holds elements that
//! are adjacent in the k dimension. The ISA leaves the layout of `wmma` fragments open; here it is
//! the `mma` layout, in blocks of 16 rows or 8 columns.

/// The m, n and k dimensions of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of A and D.
    pub m: usize,
    /// Columns of B and D.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
}

impl Shape {
    /// Reads a shape such as `m16n8k16`.
    pub fn parse(text: &str) -> Option<Shape> {
        let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Shape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }
}

/// Row and column (m, k) of an element of the A fragment; `each` elements share a register.
pub fn first(m: usize, k: usize, each: usize, lane: usize, element: usize) -> (usize, usize) {
    let (group, place) = (lane / 4, lane % 4);
    let (register, within) = (element / each, element % each);
    let steps = (k / (4 * each)).max(1);
    let (row, step) = if m == 8 {
        (group, register)
    } else {
        let (block, register) = (register / (2 * steps), register % (2 * steps));
        (16 * block + group + 8 * (register % 2), register / 2)
    };
    (row, place * each + step * 4 * each + within)
}

/// Row and column (k, n) of an element of the B fragment.
pub fn second(k: usize, each: usize, lane: usize, element: usize) -> (usize, usize) {
    let (register, within) = (element / each, element % each);
    let steps = (k / (4 * each)).max(1);
    (lane % 4 * each + register % steps * 4 * each + within, register / steps * 8 + lane / 4)
}

/// Row and column (m, n) of an element of the C or D fragment.
pub fn result(m: usize, lane: usize, element: usize) -> (usize, usize) {
    let (group, column) = (lane / 4, lane % 4 * 2 + element % 2);
    match m {
        8 => (group, element / 2 * 8 + column),
        32 => (element / 4 * 16 + group + element / 2 % 2 * 8, column),
        _ => (group + element / 2 % 2 * 8, element / 4 * 8 + column),
    }
}

/// Which of the four 8 × 8 × 4 products of a warp (`mma.m8n8k4`) a lane takes part in.
pub fn quarter(lane: usize) -> usize {
    lane % 16 / 4
}

/// Row and column of an element of A in such a product, or of B with rows and columns exchanged.
pub fn quarter_factor(by_row: bool, lane: usize, element: usize) -> (usize, usize) {
    let upper = lane / 16 * 4;
    if by_row { (lane % 4 + upper, element) } else { (element % 4 + upper, lane % 4) }
}

/// Row and column of an element of C or D in such a product; `wide` for elements of 32 bits.
pub fn quarter_result(wide: bool, lane: usize, element: usize) -> (usize, usize) {
    let upper = lane / 16 * 4;
    if wide {
        ((lane & 1) + (element & 2) + upper, (element & 4) + (lane & 2) + (element & 1))
    } else {
        (lane % 4 + upper, element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sorted::SortedSet;

    #[test]
    fn fragments_hold_every_element_once() {
        for (m, k, each) in
            [(16, 16, 2), (16, 8, 2), (16, 32, 4), (16, 8, 1), (16, 4, 1), (8, 16, 4), (32, 16, 2), (16, 16, 1)]
        {
            let count = m * k / 32;
            let all: SortedSet<_> = (0..32).flat_map(|l| (0..count).map(move |e| first(m, k, each, l, e))).collect();
            assert_eq!(all.len(), m * k);
            assert!(all.iter().all(|(row, column)| *row < m && *column < k));
        }
        for (n, k, each) in [(8, 16, 2), (16, 16, 2), (32, 16, 4), (8, 4, 1), (16, 8, 1)] {
            let count = n * k / 32;
            let all: SortedSet<_> = (0..32).flat_map(|l| (0..count).map(move |e| second(k, each, l, e))).collect();
            assert_eq!(all.len(), n * k);
            assert!(all.iter().all(|(row, column)| *row < k && *column < n));
        }
        for (m, n) in [(16, 8), (8, 8), (16, 16), (32, 8), (8, 32)] {
            let count = m * n / 32;
            let all: SortedSet<_> = (0..32).flat_map(|l| (0..count).map(move |e| result(m, l, e))).collect();
            assert!(all.len() == m * n && all.iter().all(|(row, column)| *row < m && *column < n));
        }
    }

    #[test]
    fn quarters_hold_every_element_once() {
        for by_row in [true, false] {
            let all: SortedSet<_> = [0, 1, 2, 3, 16, 17, 18, 19]
                .into_iter()
                .flat_map(|l| (0..4).map(move |e| quarter_factor(by_row, l, e)))
                .collect();
            assert_eq!(all.len(), 32);
            let all: SortedSet<_> = [0, 1, 2, 3, 16, 17, 18, 19]
                .into_iter()
                .flat_map(|l| (0..8).map(move |e| quarter_result(by_row, l, e)))
                .collect();
            assert_eq!(all.len(), 64);
        }
    }

    #[test]
    fn shapes_are_read() {
        assert_eq!(Shape::parse("m16n8k256"), Some(Shape { m: 16, n: 8, k: 256 }));
        assert_eq!(Shape::parse("m8n8"), None);
    }
}
