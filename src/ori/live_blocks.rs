//! Where registers live, from where blocks use and define them: by sets, or register by register.

use super::cfg::Cfg;
use super::function::{Block, Function, VReg};
use super::liveness::{Events, Lists, NEVER};
use cranelift_entity::EntityRef;

/// Sets of registers for each block, in one piece.
struct Sets {
    /// Words of each set.
    width: usize,
    words: Vec<u64>,
}

impl Sets {
    fn new(width: usize, count: usize, pairs: &[(u32, Block)]) -> Sets {
        let mut sets = Sets { width, words: vec![0; width * count] };
        for (number, block) in pairs {
            sets.words[width * block.index() + *number as usize / 64] |= 1 << (number % 64);
        }
        sets
    }

    fn of(&self, block: Block) -> &[u64] {
        &self.words[self.width * block.index()..self.width * (block.index() + 1)]
    }

    fn of_mut(&mut self, block: Block) -> &mut [u64] {
        &mut self.words[self.width * block.index()..self.width * (block.index() + 1)]
    }
}

/// Solves by dataflow over sets, block by block from the end, until nothing changes.
pub(super) fn by_sets(function: &Function, cfg: &Cfg, events: &Events, at_start: bool) -> Lists<VReg> {
    let (width, limit) = (events.regs.len().div_ceil(64), function.block_limit());
    let mut live_in = Sets::new(width, limit, &events.reads);
    let kills = Lists::new(limit, events.kills.iter().map(|(number, block)| (block.index(), *number)));
    // What leaves a block for a PHI; outside SSA form there is none.
    let leaves = (!events.leaves.is_empty()).then(|| Sets::new(width, limit, &events.leaves));
    let ends = |block: Block, live_in: &Sets, out: &mut [u64]| {
        let mut succs = &cfg.succs[block][..];
        match (&leaves, succs.split_first()) {
            (Some(leaves), _) => out.copy_from_slice(leaves.of(block)),
            (None, None) => out.fill(0),
            (None, Some((first, others))) => {
                out.copy_from_slice(live_in.of(*first));
                succs = others;
            }
        }
        for succ in succs {
            out.iter_mut().zip(live_in.of(*succ)).for_each(|(out, succ)| *out |= succ);
        }
    };
    let pass = |live_in: &mut [u64], through: &[u64]| {
        let mut grown = 0;
        for (to, through) in live_in.iter_mut().zip(through) {
            grown |= through & !*to;
            *to |= through;
        }
        grown != 0
    };
    let mut waits = vec![true; limit];
    let mut out = vec![0; width];
    let mut work: Vec<Block> = cfg.rpo.clone();
    while let Some(block) = work.pop() {
        waits[block.index()] = false;
        ends(block, &live_in, &mut out);
        kills.of(block.index()).iter().for_each(|number| out[*number as usize / 64] &= !(1 << (number % 64)));
        if pass(live_in.of_mut(block), &out) {
            for pred in cfg.preds[block].iter() {
                if !std::mem::replace(&mut waits[pred.index()], true) {
                    work.push(*pred);
                }
            }
        }
    }
    let (mut first, mut all) = (Vec::with_capacity(limit + 1), Vec::new());
    first.push(0);
    for block in (0..limit).map(Block::new) {
        if at_start {
            append(live_in.of(block), &events.regs, &mut all);
        } else if cfg.reachable(block) {
            ends(block, &live_in, &mut out);
            append(&out, &events.regs, &mut all);
        }
        first.push(all.len() as u32);
    }
    Lists::finished(first, all)
}

/// Appends the registers of a set.
fn append(set: &[u64], regs: &[VReg], all: &mut Vec<VReg>) {
    for (bits, regs) in set.iter().zip(regs.chunks(64)) {
        let mut bits = *bits;
        while bits != 0 {
            all.push(regs[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
    }
}

/// Follows each register from its uses back to its definitions.
pub(super) fn by_register(function: &Function, cfg: &Cfg, events: &Events, at_start: bool) -> Lists<VReg> {
    let limit = function.block_limit();
    let mut live = Noted { at_start, blocks: Vec::new(), ends: Vec::with_capacity(events.regs.len()), len: 0 };
    let lists = |pairs: &[(u32, Block)]| {
        Lists::new(events.regs.len(), pairs.iter().map(|(number, block)| (*number as usize, *block)))
    };
    let (reads, leaves, kills) = (lists(&events.reads), lists(&events.leaves), lists(&events.kills));
    // Per block, the last register killed, live-in and live-out.
    let mut marks = vec![Marks { killed: NEVER, live_in: NEVER, live_out: NEVER }; limit];
    let mut work: Vec<Block> = Vec::new();
    for at in 0..events.regs.len() {
        let now = at as u32;
        kills.of(at).iter().for_each(|b| marks[b.index()].killed = now);
        for block in reads.of(at) {
            marks[block.index()].live_in = now;
            live.note(true, *block);
            work.push(*block);
        }
        let mut ends = |block: Block, live: &mut Noted, work: &mut Vec<Block>| {
            let marks = &mut marks[block.index()];
            if std::mem::replace(&mut marks.live_out, now) == now {
                return;
            }
            live.note(false, block);
            if marks.killed != now && std::mem::replace(&mut marks.live_in, now) != now {
                live.note(true, block);
                work.push(block);
            }
        };
        leaves.of(at).iter().for_each(|b| ends(*b, &mut live, &mut work));
        while let Some(block) = work.pop() {
            cfg.preds[block].iter().for_each(|p| ends(*p, &mut live, &mut work));
        }
        live.ends.push(live.len);
    }
    live.lists(limit, &events.regs)
}

/// What a block is to the last register that reached it.
#[derive(Clone, Copy)]
struct Marks {
    killed: u32,
    live_in: u32,
    live_out: u32,
}

/// The blocks at whose start, or at whose end, registers live: register by register, in pieces, so
/// that they are never copied as they become more.
struct Noted {
    at_start: bool,
    blocks: Vec<Vec<Block>>,
    /// How many blocks belong to the registers up to each.
    ends: Vec<usize>,
    len: usize,
}

/// Blocks in a piece of [`Noted`]: a megabyte, so that it has pages of its own, which go back.
const PIECE: usize = 1 << 18;

impl Noted {
    fn note(&mut self, at_start: bool, block: Block) {
        if self.at_start != at_start {
            return;
        }
        if self.len.is_multiple_of(PIECE) {
            // The first one grows: most functions need little of it.
            self.blocks.push(Vec::with_capacity(if self.len == 0 { 0 } else { PIECE }));
        }
        self.blocks[self.len / PIECE].push(block);
        self.len += 1;
    }

    /// The registers of each block, of which there are `limit`.
    fn lists(self, limit: usize, regs: &[VReg]) -> Lists<VReg> {
        let pairs = regs.iter().zip(&self.ends).scan(0, |start, (reg, end)| {
            let range = std::mem::replace(start, *end)..*end;
            Some(range.map(|at| (self.blocks[at / PIECE][at % PIECE].index(), *reg)))
        });
        Lists::new(limit, pairs.flatten())
    }
}
