//! Which scoreboard an instruction sets.
//!
//! Input: the instructions of a block. Output: for each that announces a result or a late read, a scoreboard, so that few wait for what
//! they do not need: one that nothing is in flight on, else the one whose users are waited for at nearly the same place. A late read
//! gets one only where the register is written again before the result is waited for; across blocks only on demand. Nothing
//! depends on the choice but time: the waits follow from it (`control`).

use super::control::{Item, NONE};
use super::effects::Reg;
use crate::ori::hash::QuickMap;

/// Scoreboards of a warp.
const BOARDS: u8 = 6;
/// A place behind every instruction of a block.
const FAR: usize = usize::MAX;

/// Scoreboards while a block is gone through.
pub struct Boards {
    /// Place until which each is in use; `None` for one that is not to be used at all.
    until: [Option<usize>; BOARDS as usize],
}

/// Where the registers of an instruction are touched next: the first need of a result, the first write over a late read.
struct Needs {
    result: usize,
    overwritten: usize,
}

impl Boards {
    /// All scoreboards but a reserved one.
    pub fn new(reserved: Option<u8>) -> Boards {
        let mut until = [Some(0); BOARDS as usize];
        if let Some(board) = reserved {
            until[usize::from(board)] = None;
        }
        Boards { until }
    }

    /// Allots the scoreboards of a block.
    pub fn allot(&mut self, items: &mut [Item]) {
        // What came before is waited for at an unknown place: such a scoreboard is taken where no other is free.
        self.until.iter_mut().flatten().for_each(|u| *u = usize::from(*u == FAR));
        let needs = needs(items);
        for (at, (item, need)) in items.iter_mut().zip(needs).enumerate() {
            if item.write_bar == NONE && item.announces() {
                let board = self.take(at, need.result, None);
                let slot = if item.announces_by_read { &mut item.read_bar } else { &mut item.write_bar };
                *slot = board;
            }
            let covered = item.write_bar != NONE && need.result <= need.overwritten && need.result != FAR;
            let wanted = item.read_wanted || need.overwritten != FAR && !covered;
            if wanted && item.read_bar == NONE && !item.control && item.effects.late().next().is_some() {
                item.read_bar = self.take(at, need.overwritten, Some(item.write_bar));
            }
        }
    }

    fn take(&mut self, at: usize, until: usize, other: Option<u8>) -> u8 {
        let usable = (0..BOARDS).filter(|b| Some(*b) != other).filter_map(|b| Some((b, self.until[usize::from(b)]?)));
        let cost = |(board, busy): (u8, usize)| {
            // Far apart is far; a free one costs nothing, and one in use by something that is needed at the same place neither.
            let cost = if busy == until && busy != FAR && busy > at {
                0
            } else if busy <= at {
                1
            } else {
                busy.abs_diff(until).saturating_add(2)
            };
            (cost, board)
        };
        let best = usable.min_by_key(|b| cost(*b)).map_or(NONE, |b| b.0);
        if let Some(Some(busy)) = self.until.get_mut(usize::from(best)) {
            *busy = (*busy).max(until);
        }
        best
    }
}

fn needs(items: &[Item]) -> Vec<Needs> {
    let mut touched: QuickMap<Reg, usize> = QuickMap::default();
    let mut written: QuickMap<Reg, usize> = QuickMap::default();
    let mut out = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate().rev() {
        let first = |map: &QuickMap<Reg, usize>, reg: Reg| map.get(&reg).copied().unwrap_or(FAR);
        let result = item.effects.writes.iter().map(|a| first(&touched, a.reg)).min().unwrap_or(FAR);
        let overwritten = item.effects.late().map(|reg| first(&written, reg)).min().unwrap_or(FAR);
        out.push(Needs { result, overwritten });
        for access in &item.effects.writes {
            touched.insert(access.reg, at);
            written.insert(access.reg, at);
        }
        item.effects.reads.iter().for_each(|access| {
            touched.insert(access.reg, at);
        });
        if item.drains {
            touched.clear();
        }
    }
    out.reverse();
    out
}
