//! Words of the frame for values that go to memory in one round.
//!
//! Input: runs of columns that need adjacent words, with the points at which they are live. Output: the first byte of each run. Runs of
//! one shape (number of words, place among 16 bytes) whose spans do not meet get the same words, those that are free longest before others.
//! Invariants: words given to two runs are never live at one point, for a value is stored directly behind its definition and loaded directly before its reads, all
//! within its span; rounds share nothing, for their points are not the same. Work is n log n.

use super::ranges::Range;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Bytes of one access at most: where a vector's words begin counts within these.
const WIDEST: u32 = 16;

/// Columns whose words stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// From the first point at which one of them is live to behind the last.
    pub span: Range,
    pub words: u32,
    /// Word among the 16 bytes in which the first one stands; `None`: any.
    pub place: Option<u32>,
}

/// Words of one shape, the one that is free first on top: from which point on, and the first byte.
type Pool = BinaryHeap<Reverse<(u32, u32)>>;

/// First bytes of the runs, in their order; `top` is the first free byte, before and after.
pub fn assign(runs: &[Run], top: &mut u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|at| (runs[*at].span, *at));
    let mut free: BTreeMap<(u32, Option<u32>), Pool> = BTreeMap::new();
    let mut first = vec![0; runs.len()];
    for at in order {
        let run = runs[at];
        let pool = free.entry((run.words, run.place)).or_default();
        let old = pool.peek().filter(|r| r.0.0 <= run.span.0).map(|r| r.0.1);
        first[at] = match old {
            Some(byte) => {
                pool.pop();
                byte
            }
            None => fresh(run, top),
        };
        pool.push(Reverse((run.span.1, first[at])));
    }
    first
}

/// New words for a run.
fn fresh(run: Run, top: &mut u32) -> u32 {
    let first = run.place.map_or(*top, |place| top.next_multiple_of(WIDEST) + 4 * place);
    *top = first + 4 * run.words;
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(span: Range, words: u32, place: Option<u32>) -> Run {
        Run { span, words, place }
    }

    #[test]
    fn spans_that_do_not_meet_share() {
        let mut top = 4;
        let runs = [run((1, 9), 1, None), run((9, 20), 1, None), run((10, 12), 1, None), run((12, 30), 1, None)];
        assert_eq!(assign(&runs, &mut top), [4, 4, 8, 8]);
        assert_eq!(top, 12);
    }

    #[test]
    fn vectors_keep_their_places_and_share_with_their_like() {
        let mut top = 4;
        let runs = [run((1, 9), 4, Some(0)), run((9, 12), 1, None), run((9, 20), 4, Some(0)), run((9, 20), 2, Some(2))];
        assert_eq!(assign(&runs, &mut top), [16, 32, 16, 56]);
        assert_eq!(top, 64);
    }
}
