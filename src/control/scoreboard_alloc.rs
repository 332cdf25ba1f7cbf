//! Scoreboard allocation: assigns one of six scoreboards to each variable-latency result and to
//! late source reads.
//!
//! Prefers an idle scoreboard; otherwise shares the one whose first consumer is closest, to
//! minimize false waits. A late read (WAR) gets a scoreboard only if its register is overwritten
//! before the result is waited for; across blocks only on demand. The choice affects only speed:
//! `control_words` derives the waits from it.

use super::control_words::{Item, NONE};
use crate::ori::hash::QuickMap;
use crate::sched::effects::Reg;

/// Number of scoreboards of a warp.
const BOARDS: u8 = 6;
/// A position after all instructions of a block.
const FAR: usize = usize::MAX;

/// Allocation state within a block.
pub struct Boards {
    /// Position until which each scoreboard is in use; `None` if it is reserved.
    until: [Option<usize>; BOARDS as usize],
}

/// Next accesses to the registers of an instruction: the first need of a result, and the first
/// overwrite of a late source.
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

    /// Allocates the scoreboards of a block.
    pub fn allot(&mut self, items: &mut [Item]) {
        // Entries from earlier blocks are waited for at an unknown position, so their scoreboards
        // are taken only if no other is free.
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
            // An idle scoreboard is cheap, and sharing one that is needed at the same position
            // costs nothing; otherwise the cost is the distance between the consumers.
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
