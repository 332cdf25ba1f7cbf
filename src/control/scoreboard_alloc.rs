//! Scoreboard allocation: assigns one of six scoreboards to each variable-latency result and to
//! late source reads.
//!
//! Prefers an idle scoreboard; otherwise shares the one where the false waits are estimated to cost
//! the fewest cycles. In a block with late reads that something waits for, the last idle ones are
//! left to these: a read is soon over, and one that shares with a load waits for memory. A late
//! read (WAR) gets a scoreboard only if its register is overwritten before the result is waited
//! for, by an instruction that must wait for the read, and of the reads of a register that happen
//! in order only the last; across blocks only on demand (`late_reads`). What a block leaves in
//! flight is known to those behind it: where they wait for it, a loop does in each turn, and for
//! all else that the same scoreboard counts. The choice affects only speed: `control_words` derives
//! the waits from it.

use super::control_words::{Item, NONE};
use crate::ori::Block;
use crate::ori::list_table::ListTable;
use crate::sched::effects::{Access, FENCE, Reg, RegTable};
use crate::tables::latency::{Latency, Needed};
use smallvec::SmallVec;

/// Number of scoreboards of a warp.
pub const BOARDS: u8 = 6;
/// A position after all instructions of a block.
const FAR: usize = usize::MAX;

/// Idle scoreboards that results leave to late reads, and the false waits, in cycles, that are
/// taken instead. Measured on an H200: with none left, loads in a row waited for each other, and
/// layer_norm_bwd_dwdb took 2.2 times as long as ptxas's code, with these 1.3 times.
const LEFT: usize = 2;
const TAKEN: usize = 24;

/// Cycles from one instruction of a block to the next, for the estimate of false waits.
const PACE: usize = 2;

/// Results that a block leaves in flight, at most.
const MOST_LEFT: usize = 32;

/// A result in flight at the end of a block, or a late read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pending {
    reg: Reg,
    board: u8,
    /// Whether it is read, so that only what overwrites it waits.
    read: bool,
    /// Cycles from the end of the block until it is there.
    over: usize,
}

type Ends = ListTable<Block, SmallVec<[Pending; 4]>>;

/// What a scoreboard counts.
#[derive(Clone, Copy, Default)]
struct Counted {
    /// Position of the first instruction that waits for it.
    until: usize,
    /// When the last operation is over, in cycles from the start of the block.
    over: usize,
    /// Whether the block waits for it for the sake of what others left in flight.
    outer: bool,
}

/// Allocation state within a block.
pub struct Boards {
    /// The scoreboards; `None` if one is reserved.
    counted: [Option<Counted>; BOARDS as usize],
    next: Next,
    /// What each block left in flight.
    ends: Ends,
}

/// The next accesses to registers, for a block that is read from its end; tables that all blocks
/// use in turn.
struct Next {
    touched: RegTable<Option<usize>>,
    written: RegTable<Option<(usize, Access)>>,
    /// The queue of the next late read of a register that happens under no condition; 0 for none.
    read: RegTable<u8>,
}

/// Next accesses to the registers of an instruction: the first need of a result, and the first
/// overwrite of a late source.
struct Needs {
    result: usize,
    overwritten: usize,
}

impl Needs {
    /// Whether an instruction's late reads take a scoreboard of their own.
    fn reads(&self, item: &Item) -> bool {
        let announced = item.write_bar != NONE || item.announces() && !item.announces_by_read;
        let covered = announced && self.result <= self.overwritten && self.result != FAR;
        let wanted = self.overwritten != FAR && !covered;
        wanted && !item.control && item.effects.late().next().is_some()
    }
}

impl Boards {
    /// All scoreboards but a reserved one.
    pub fn new(reserved: Option<u8>) -> Boards {
        let mut counted = [Some(Counted::default()); BOARDS as usize];
        if let Some(board) = reserved {
            counted[usize::from(board)] = None;
        }
        let next = Next { touched: RegTable::new(), written: RegTable::new(), read: RegTable::new() };
        Boards { counted, next, ends: Ends::new(0) }
    }

    /// Allocates the scoreboards of a block, behind these; returns the mask of those that it waits
    /// for because of what they left in flight.
    pub fn allot(&mut self, block: Block, preds: &[Block], items: &mut [Item], latency: &Latency) -> u8 {
        let needs = needs(items, latency, &mut self.next);
        let pending = self.enter(preds);
        let outer = (0..BOARDS).filter(|board| self.counted[usize::from(*board)].is_some_and(|c| c.outer));
        let outer = outer.fold(0, |mask, board| mask | 1 << board);
        let first: SmallVec<[usize; 4]> = pending.iter().map(|p| self.first(p)).collect();
        let count = items.len();
        let left = if items.iter().zip(&needs).any(|(item, need)| need.reads(item)) { LEFT } else { 0 };
        let mut left_behind = SmallVec::<[Pending; 4]>::new();
        for (at, (item, need)) in items.iter_mut().zip(needs).enumerate() {
            if item.write_bar == NONE && item.announces() {
                let board = self.take(at, need.result, item.pace.result, None, left);
                let slot = if item.announces_by_read { &mut item.read_bar } else { &mut item.write_bar };
                *slot = board;
                let over = usize::from(item.pace.result).saturating_sub((count - at) * PACE);
                let writes = item.effects.writes.iter().filter(|_| need.result == FAR);
                left_behind.extend(writes.map(|write| Pending { reg: write.reg, board, read: false, over }));
            }
            if item.read_bar == NONE && need.reads(item) {
                item.read_bar = self.take(at, need.overwritten, item.pace.read, Some(item.write_bar), 0);
            }
            // A read without a scoreboard of its own is over when the result is there.
            if item.read_bar == NONE && need.result == FAR && need.overwritten == FAR && item.write_bar != NONE {
                let over = usize::from(item.pace.result).saturating_sub((count - at) * PACE);
                let board = item.write_bar;
                left_behind.extend(item.effects.late().map(|late| Pending { reg: late.reg, board, read: true, over }));
            }
        }
        let still = pending.into_iter().zip(first).filter(|(_, first)| *first == FAR);
        left_behind.extend(still.map(|(p, _)| Pending { over: p.over.saturating_sub(count * PACE), ..p }));
        left_behind.retain(|p| p.reg < FENCE && p.board != NONE);
        left_behind.truncate(MOST_LEFT);
        self.ends[block] = left_behind;
        outer
    }

    /// Starts a block whose needs are known: what those before it left in flight.
    fn enter(&mut self, preds: &[Block]) -> SmallVec<[Pending; 4]> {
        let mut pending = SmallVec::<[Pending; 4]>::new();
        for left in preds.iter().flat_map(|pred| &self.ends[*pred]) {
            if !pending.iter().any(|p| (p.reg, p.board, p.read) == (left.reg, left.board, left.read)) {
                pending.push(*left);
            }
        }
        self.counted.iter_mut().flatten().for_each(|counted| *counted = Counted::default());
        for left in &pending {
            let first = self.first(left);
            if let Some(Some(counted)) = self.counted.get_mut(usize::from(left.board)) {
                let until = if counted.until == 0 && !counted.outer { first } else { counted.until.min(first) };
                *counted = Counted { until, over: counted.over.max(left.over), outer: true };
            }
        }
        pending
    }

    /// The first instruction of the block that waits for what is in flight.
    fn first(&self, left: &Pending) -> usize {
        if left.read {
            return self.next.written.get(left.reg).copied().flatten().map_or(FAR, |(at, _)| at);
        }
        self.next.touched.get(left.reg).copied().flatten().unwrap_or(FAR)
    }

    /// The scoreboard for an operation of `cycles` that is waited for at `until`; it leaves `left`
    /// idle ones where it can share.
    fn take(&mut self, at: usize, until: usize, cycles: u16, other: Option<u8>, left: usize) -> u8 {
        let over = at * PACE + usize::from(cycles);
        let idle = self.counted.iter().flatten().filter(|counted| counted.until <= at).count();
        let usable = (0..BOARDS).filter(|b| Some(*b) != other).filter_map(|b| Some((b, self.counted[usize::from(b)]?)));
        let cost = |(board, counted): (u8, Counted)| {
            let busy = counted.until;
            // An idle scoreboard is cheap, and sharing one that is needed at the same position
            // costs nothing. Otherwise the earlier of the two that wait also waits for the
            // operation of the later one, beyond its own.
            let cost = if busy == until && busy != FAR && busy > at {
                0
            } else if busy <= at {
                1 + if idle <= left { TAKEN } else { 0 }
            } else if busy < until {
                2 + over.saturating_sub(counted.over.max(busy.saturating_mul(PACE)))
            } else {
                2 + counted.over.saturating_sub(over.max(until.saturating_mul(PACE)))
            };
            // In a loop, what is in flight at its end waits where the next turn waits for another.
            (cost, counted.outer, busy.abs_diff(until), board)
        };
        let best = usable.min_by_key(|b| cost(*b)).map_or(NONE, |b| b.0);
        if let Some(Some(counted)) = self.counted.get_mut(usize::from(best)) {
            *counted = if counted.until > at {
                Counted { until: counted.until.min(until), over: counted.over.max(over), ..*counted }
            } else {
                Counted { until, over, ..*counted }
            };
        }
        best
    }
}

fn needs(items: &[Item], latency: &Latency, next: &mut Next) -> Vec<Needs> {
    let Next { touched, written, read } = next;
    touched.clear();
    written.clear();
    read.clear();
    let mut out = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate().rev() {
        let first = |reg: Reg| touched.get(reg).copied().flatten().unwrap_or(FAR);
        // An overwrite that cannot come too early does not wait.
        let overwrite = |access: &Access| {
            let (at, write) = written.get(access.reg)?.as_ref()?;
            let needed = latency.write_after_read(access.reg.file(), access.class, write.class);
            let order = item.class.read_order(access.class);
            let over_before_another = order != 0 && read.get(access.reg) == Some(&order);
            (matches!(needed, Needed::Scoreboard) && !over_before_another).then_some(*at)
        };
        let result = item.effects.writes.iter().map(|a| first(a.reg)).min().unwrap_or(FAR);
        let overwritten = item.effects.late().filter_map(overwrite).min().unwrap_or(FAR);
        out.push(Needs { result, overwritten });
        if !item.effects.guarded {
            let late = item.effects.late();
            late.for_each(|access| *read.entry(access.reg) = item.class.read_order(access.class));
        }
        for access in item.effects.writes.iter() {
            *touched.entry(access.reg) = Some(at);
            *written.entry(access.reg) = Some((at, *access));
            *read.entry(access.reg) = 0;
        }
        item.effects.reads.iter().for_each(|access| {
            *touched.entry(access.reg) = Some(at);
        });
        if item.drains {
            touched.clear();
            read.clear();
        }
    }
    out.reverse();
    out
}
