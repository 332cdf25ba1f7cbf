//! Live registers at block boundaries.
//!
//! Input: a function, SSA or not. Output: for each block the registers live at its start and end. Invariant: a guarded
//! definition does not end a live range, because the old value survives where the guard is false; a PHI's inputs are live at
//! the end of the predecessors they come from, not at the start of the PHI's block.

use super::cfg::Cfg;
use super::function::{Block, Function, VReg};
use super::operand::{Kind, Operand};
use crate::tables::Op;
use cranelift_entity::{EntityRef, SecondaryMap};

/// A set of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegSet(Vec<u64>);

impl RegSet {
    pub fn new(limit: usize) -> RegSet {
        RegSet(vec![0; limit.div_ceil(64)])
    }
    pub fn insert(&mut self, reg: VReg) -> bool {
        let (word, bit) = (reg.index() / 64, 1u64 << (reg.index() % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
    pub fn remove(&mut self, reg: VReg) {
        self.0[reg.index() / 64] &= !(1u64 << (reg.index() % 64));
    }
    pub fn contains(&self, reg: VReg) -> bool {
        self.0.get(reg.index() / 64).is_some_and(|w| w >> (reg.index() % 64) & 1 != 0)
    }
    /// Adds all of another set; true if anything was new.
    pub fn union(&mut self, other: &RegSet) -> bool {
        let mut changed = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            changed |= *b & !*a != 0;
            *a |= b;
        }
        changed
    }
    pub fn iter(&self) -> impl Iterator<Item = VReg> + '_ {
        self.0.iter().enumerate().flat_map(|(i, word)| {
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| VReg::from_u32((i * 64 + bit) as u32))
        })
    }
}

/// Live registers of every block.
pub struct Liveness {
    pub live_in: SecondaryMap<Block, RegSet>,
    pub live_out: SecondaryMap<Block, RegSet>,
}

impl Liveness {
    pub fn new(function: &Function, cfg: &Cfg) -> Liveness {
        let limit = function.regs.len();
        let mut live_in = SecondaryMap::with_default(RegSet::new(limit));
        let mut live_out = SecondaryMap::with_default(RegSet::new(limit));
        for block in &cfg.rpo {
            for (pred, operand) in phi_inputs(function, *block) {
                function.for_each_reg(operand, |reg| {
                    live_out[pred].insert(reg);
                });
            }
        }
        let mut work: Vec<Block> = cfg.rpo.clone();
        let mut queued: SecondaryMap<Block, bool> = SecondaryMap::with_default(true);
        while let Some(block) = work.pop() {
            queued[block] = false;
            let mut live = live_out[block].clone();
            for inst in function.blocks[block].iter().rev() {
                step_back(function, *inst, &mut live);
            }
            if live == live_in[block] {
                continue;
            }
            for pred in &cfg.preds[block] {
                if live_out[*pred].union(&live) && !queued[*pred] {
                    queued[*pred] = true;
                    work.push(*pred);
                }
            }
            live_in[block] = live;
        }
        Liveness { live_in, live_out }
    }
}

/// The set before an instruction from the set after it. Inputs of a PHI are not counted here.
pub fn step_back(function: &Function, inst: super::InstId, live: &mut RegSet) {
    let data = &function.insts[inst];
    let kills = data.guard.is_null() || function.ssa;
    if kills {
        function.for_each_def(inst, |reg| live.remove(reg));
    }
    if data.op != Op::PHI {
        function.for_each_use(inst, |reg| {
            live.insert(reg);
        });
    }
}

/// The inputs of all PHIs of a block, with the predecessors they come from.
pub fn phi_inputs(function: &Function, block: Block) -> Vec<(Block, Operand)> {
    let phis = function.blocks[block].iter().take_while(|i| function.insts[**i].op == Op::PHI);
    phis.flat_map(|inst| {
        function.args(*inst)[1..].chunks_exact(2).filter_map(|pair| match pair[0].kind() {
            Kind::Label(pred) => Some((pred, pair[1])),
            _ => None,
        })
    })
    .collect()
}
