//! Live registers at block boundaries, in or out of SSA form.
//!
//! A guarded definition does not end a live range, because the old value survives if the guard is
//! false. The inputs of a PHI are live at the end of the predecessors they come from, not at the
//! start of the PHI's block. Time and memory are linear in the size of the code and of the result:
//! each register is followed from its uses back to its definitions.

use super::cfg::Cfg;
use super::function::{Block, Function, InstId, VReg};
use super::operand::Kind;
use super::table;
use crate::tables::Op;
use cranelift_entity::{EntityRef, SecondaryMap};

/// A set of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegSet(Vec<u64>);

impl RegSet {
    /// An empty set for registers with numbers below `limit`.
    pub fn new(limit: usize) -> RegSet {
        RegSet(vec![0; limit.div_ceil(64)])
    }
    /// A number above those of all registers that it can hold.
    pub fn limit(&self) -> usize {
        64 * self.0.len()
    }
    /// Adds a register; returns whether it is new.
    pub fn insert(&mut self, reg: VReg) -> bool {
        let (word, bit) = (reg.index() / 64, 1u64 << (reg.index() % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
    /// Removes a register; returns whether it was in the set.
    pub fn remove(&mut self, reg: VReg) -> bool {
        let (word, bit) = (reg.index() / 64, 1u64 << (reg.index() % 64));
        let there = self.0[word] & bit != 0;
        self.0[word] &= !bit;
        there
    }
    /// Whether a register is in the set.
    pub fn contains(&self, reg: VReg) -> bool {
        self.0.get(reg.index() / 64).is_some_and(|w| w >> (reg.index() % 64) & 1 != 0)
    }
}

/// Live registers at the start or end of every block, in ascending order.
#[derive(Clone, PartialEq, Eq)]
pub struct Liveness {
    /// Live registers of each block, ascending.
    pub live: SecondaryMap<Block, Vec<VReg>>,
    at_start: bool,
}

impl Liveness {
    /// At the start of each block.
    pub fn at_start(function: &Function, cfg: &Cfg) -> Liveness {
        let events = Events::new(function, cfg, |_| false, false);
        solve(function, cfg, &events, true)
    }

    /// Live registers at the end of each block, outside SSA form, ignoring the instructions that
    /// `skip` names. A guarded definition also reads the old value, so its register is live before
    /// it.
    pub fn at_end(function: &Function, cfg: &Cfg, skip: impl Fn(InstId) -> bool) -> Liveness {
        let events = Events::new(function, cfg, skip, true);
        solve(function, cfg, &events, false)
    }

    /// Whether a register is live at the computed end of a block.
    pub fn contains(&self, block: Block, reg: VReg) -> bool {
        self.live[block].binary_search(&reg).is_ok()
    }
}

/// Lists of blocks by register, concatenated.
struct ByReg {
    /// Start of each register's list, and the end of the last.
    first: Vec<u32>,
    blocks: Vec<Block>,
}

impl ByReg {
    fn new(limit: usize, pairs: &[(VReg, Block)]) -> ByReg {
        let mut first = vec![0u32; limit + 1];
        for (reg, _) in pairs {
            first[reg.index() + 1] += 1;
        }
        for i in 0..limit {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut blocks = vec![Block::from_u32(0); pairs.len()];
        for (reg, block) in pairs {
            blocks[next[reg.index()] as usize] = *block;
            next[reg.index()] += 1;
        }
        ByReg { first, blocks }
    }

    fn of(&self, reg: VReg) -> &[Block] {
        &self.blocks[self.first[reg.index()] as usize..self.first[reg.index() + 1] as usize]
    }
}

/// Uses and definitions of registers by block.
struct Events {
    /// Blocks that use a register before they define it.
    reads: ByReg,
    /// Blocks at whose end a PHI uses it.
    leaves: ByReg,
    /// Blocks that end its live range by a definition.
    kills: ByReg,
}

const NEVER: u32 = u32::MAX;

impl Events {
    fn new(function: &Function, cfg: &Cfg, skip: impl Fn(InstId) -> bool, old_values: bool) -> Events {
        let (mut reads, mut leaves, mut kills) = (Vec::new(), Vec::new(), Vec::new());
        let limit = function.regs.len();
        let (mut written, mut read) = (vec![NEVER; limit], vec![NEVER; limit]);
        for (i, block) in cfg.rpo.iter().enumerate() {
            let i = i as u32;
            for inst in function.blocks[*block].iter().copied().filter(|inst| !skip(*inst)) {
                let data = &function.insts[inst];
                let mut note = |reg: VReg, written: &[u32]| {
                    if written[reg.index()] != i && read[reg.index()] != i {
                        read[reg.index()] = i;
                        reads.push((reg, *block));
                    }
                };
                if data.op == Op::PHI {
                    phi_inputs(function, inst, |pred, reg| leaves.push((reg, pred)));
                } else {
                    function.for_each_use(inst, |reg| note(reg, &written));
                }
                if data.guard.is_null() || function.ssa {
                    function.for_each_def(inst, |reg| {
                        if std::mem::replace(&mut written[reg.index()], i) != i {
                            kills.push((reg, *block));
                        }
                    });
                } else if old_values {
                    function.for_each_def(inst, |reg| note(reg, &written));
                }
            }
        }
        // Most registers are read in the block that defines them, and nowhere else.
        let mut leaving = RegSet::new(limit);
        reads.iter().chain(&leaves).for_each(|(reg, _)| {
            leaving.insert(*reg);
        });
        kills.retain(|(reg, _)| leaving.contains(*reg));
        let by_reg = |pairs: &[(VReg, Block)]| ByReg::new(limit, pairs);
        Events { reads: by_reg(&reads), leaves: by_reg(&leaves), kills: by_reg(&kills) }
    }
}

fn phi_inputs(function: &Function, phi: InstId, mut f: impl FnMut(Block, VReg)) {
    for pair in function.args(phi)[1..].chunks_exact(2) {
        if let Kind::Label(pred) = pair[0].kind() {
            function.for_each_reg(pair[1], |reg| f(pred, reg));
        }
    }
}

fn solve(function: &Function, cfg: &Cfg, events: &Events, at_start: bool) -> Liveness {
    let mut live = Noted { at_start, pairs: Vec::new() };
    let limit = function.block_limit();
    // Per block, the last register killed, live-in and live-out.
    let (mut killed, mut live_in, mut live_out) = (vec![NEVER; limit], vec![NEVER; limit], vec![NEVER; limit]);
    let mut work: Vec<Block> = Vec::new();
    for reg in function.regs.keys() {
        let (reads, leaves) = (events.reads.of(reg), events.leaves.of(reg));
        if reads.is_empty() && leaves.is_empty() {
            continue;
        }
        let now = reg.index() as u32;
        events.kills.of(reg).iter().for_each(|b| killed[b.index()] = now);
        for block in reads {
            live_in[block.index()] = now;
            live.note(true, *block, reg);
            work.push(*block);
        }
        let mut ends = |block: Block, live: &mut Noted, work: &mut Vec<Block>| {
            if std::mem::replace(&mut live_out[block.index()], now) == now {
                return;
            }
            live.note(false, block, reg);
            if killed[block.index()] != now && std::mem::replace(&mut live_in[block.index()], now) != now {
                live.note(true, block, reg);
                work.push(block);
            }
        };
        leaves.iter().for_each(|b| ends(*b, &mut live, &mut work));
        while let Some(block) = work.pop() {
            cfg.preds[block].iter().for_each(|p| ends(*p, &mut live, &mut work));
        }
    }
    Liveness { live: by_block(limit, &live.pairs), at_start }
}

/// The blocks at whose start, or at whose end, registers live.
struct Noted {
    at_start: bool,
    pairs: Vec<(Block, VReg)>,
}

impl Noted {
    fn note(&mut self, at_start: bool, block: Block, reg: VReg) {
        if self.at_start == at_start {
            self.pairs.push((block, reg));
        }
    }
}

/// The registers of each block, in the order of the pairs.
fn by_block(limit: usize, pairs: &[(Block, VReg)]) -> SecondaryMap<Block, Vec<VReg>> {
    let mut counts = vec![0usize; limit];
    pairs.iter().for_each(|(block, _)| counts[block.index()] += 1);
    let mut live: SecondaryMap<Block, Vec<VReg>> = table(limit);
    for (block, count) in live.values_mut().zip(counts) {
        block.reserve_exact(count);
    }
    pairs.iter().for_each(|(block, reg)| live[*block].push(*reg));
    live
}
