//! Assigns frame words (spill slots) to the values that one round spills.
//!
//! Columns that need adjacent words form a run. Runs of one shape (number of words, position within
//! 16 bytes) whose spans do not intersect share slots, the one that has been free longest first. A
//! value is stored directly after its definition and loaded directly before its uses, all within
//! its span, so two values in one slot are never live at the same point. Rounds share no slots,
//! because their points differ. O(n log n).

use super::ranges::Range;
use crate::sorted::SortedMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bytes of the widest access, within which the position of a run is fixed.
const WIDEST: u32 = 16;

/// Columns whose words are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// From the first point at which one of them is live to the end of the last.
    pub span: Range,
    /// Number of words.
    pub words: u32,
    /// Word among the 16 bytes at which the run starts; `None`: any.
    pub place: Option<u32>,
}

/// Slots of one shape, the one that is free first on top: free from this point on, and first byte.
type Pool = BinaryHeap<Reverse<(u32, u32)>>;

/// Returns the first byte of each run. `top` is the first free byte, and is updated.
pub fn assign(runs: &[Run], top: &mut u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    crate::sorted::by_key(&mut order, |at| (runs[*at].span, *at));
    let mut free: SortedMap<(u32, Option<u32>), Pool> = SortedMap::new();
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

/// New slots for a run.
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
