//! Scoreboards for late source reads that the dataflow of `control_words` asks for.
//!
//! Most late reads that need a scoreboard get it in their own block, by `scoreboard_alloc`. The
//! dataflow finds the others, which are overwritten in another block or in the next turn of a
//! loop: those that nothing covers must have one, and those that the scoreboard of their result
//! covers are better off with one of their own where the result takes much longer than the read,
//! because what overwrites the source need not wait for the result then. What overwrites it waits
//! for all that the scoreboard counts, so one on which no result is in flight there comes first,
//! and of those the one that the fewest instructions nearby set.

use super::control_words::{COPIES, Item, NONE, Scheduler};
use super::scoreboard_alloc::BOARDS;
use crate::ori::{Block, Function};

/// Late reads that ask for a scoreboard: the number of the instruction, and the mask of the
/// scoreboards of the results in flight where the source is overwritten.
pub type LateReads = Vec<(u32, u8)>;

/// Instructions before and behind one of which the scoreboards are compared.
const NEAR: usize = 16;

/// Cycles by which a result must take longer than the read of the sources for the read to get a
/// scoreboard that it could do without. By the estimate of all launches, 20 gave no more than
/// this, and cost some of them 3 %.
const LONGER: u16 = 60;

impl Scheduler<'_> {
    /// Assigns scoreboards to late reads; unless they `must` have one, only to those that gain by
    /// it. Returns whether any item changed.
    pub(super) fn grant(&mut self, function: &Function, asked: LateReads, must: bool) -> bool {
        let asked = merged(asked);
        let mut granted = false;
        for block in function.layout() {
            let room = &self.rooms[*block];
            let (first, behind) = (room.first, room.first + room.items.len() as u32);
            let from = asked.partition_point(|(number, _)| *number < first);
            let own = asked[from..].iter().take_while(|(number, _)| *number < behind);
            for (number, busy) in own {
                let at = (number - first) as usize;
                let item = &self.rooms[*block].items[at];
                if item.read_bar != NONE || !must && !gains(item) {
                    continue;
                }
                let board = self.least_used(*block, at, *busy);
                if board == NONE || !must && busy >> board & 1 != 0 {
                    continue;
                }
                let room = &mut self.rooms[*block];
                room.items[at].read_bar = board;
                (room.changed, granted) = (true, true);
            }
        }
        granted
    }

    /// The scoreboard without results in flight at the overwrite, if there is one, that the fewest
    /// instructions near an item set, with those at the start of the blocks behind: what
    /// overwrites the source stands there.
    fn least_used(&self, block: Block, at: usize, busy: u8) -> u8 {
        let (room, behind) = (&self.rooms[block], self.set_at_start(block));
        let near = &room.items[at.saturating_sub(NEAR)..(at + NEAR).min(room.items.len())];
        let used = |board: u8| {
            let sets = near.iter().filter(|i| i.write_bar == board || i.read_bar == board).count();
            sets + behind[usize::from(board)] + usize::from(room.outer >> board & 1)
        };
        let from = if self.reserved { COPIES + 1 } else { 0 };
        let others = (from..BOARDS).filter(|b| *b != room.items[at].write_bar);
        others.min_by_key(|b| (busy >> b & 1, used(*b))).unwrap_or(NONE)
    }

    /// How often each scoreboard is set at the start of the blocks behind one, and behind these
    /// where one does little but copy.
    fn set_at_start(&self, block: Block) -> [usize; BOARDS as usize] {
        let mut sets = [0; BOARDS as usize];
        let succs = &self.cfg.succs;
        let little = succs[block].iter().filter(|succ| self.rooms[**succ].items.len() < NEAR);
        for succ in succs[block].iter().chain(little.flat_map(|succ| &succs[*succ])) {
            let first = self.rooms[*succ].items.iter().take(NEAR);
            for board in first.flat_map(|item| [item.write_bar, item.read_bar]) {
                if let Some(count) = sets.get_mut(usize::from(board)) {
                    *count += 1;
                }
            }
        }
        sets
    }
}

/// Whether the result of an item takes so much longer than its reads that these are worth a
/// scoreboard of their own.
fn gains(item: &Item) -> bool {
    !item.control && item.write_bar != NONE && item.pace.result >= item.pace.read + LONGER
}

/// Each late read once, in the order of the code, with the scoreboards of all places.
fn merged(mut asked: LateReads) -> LateReads {
    asked.sort_unstable();
    asked.dedup_by(|later, first| {
        let same = later.0 == first.0;
        first.1 |= if same { later.1 } else { 0 };
        same
    });
    asked
}
