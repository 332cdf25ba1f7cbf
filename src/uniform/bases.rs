//! Pass `uniform_bases`: an access of shared or local memory adds a uniform register to its address
//! itself.
//!
//! Where a sum of a general and a uniform register is read as such an address alone, each reader
//! takes both, and the sum goes. The same bytes are accessed, because registers of an address are
//! added modulo its width. It is done once instructions are in order: as many general registers
//! live as before at most, because that of the sum goes where the other one lives longer, so what
//! the order was made for still holds. The registers are read later than by the sum, which finds
//! the same in them:
//! - in its block, if neither is written between;
//! - in another one, if each has one definition, which dominates the sum, as the sum does its
//!   readers: a path on which it is executed again passes the sum as well. That block reads the
//!   uniform register otherwise too: lanes that left a loop at different times do not find theirs
//!   in it behind, and no block is the first to name a uniform register, because
//!   `insert_reconvergence` has told which may;
//! - only where, in all blocks from the sum to its readers, a uniform register is free.

use super::loads::{between, free};
use crate::analysis::PassCx;
use crate::analysis::calls_apart::calls_functions;
use crate::analysis::def_use::is_free;
use crate::analysis::sums::is_plain_sum;
use crate::ori::cfg::Dominators;
use crate::ori::hash::QuickMap;
use crate::ori::liveness::RegSet;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::{Prop, Role};
use smallvec::SmallVec;
use std::ops::Range;

/// Instructions from a sum to its last reader in its block that are looked at.
const FAR: usize = 1024;

/// A sum of a general and a uniform register.
struct Sum {
    inst: InstId,
    block: Block,
    result: VReg,
    lane: VReg,
    base: VReg,
}

/// The instructions that read each register, with their blocks and their places there.
type Readers = QuickMap<VReg, Vec<(InstId, Block, usize)>>;

/// What is known of the registers of sums.
struct Known {
    readers: Readers,
    /// The only definition of each; `None` where there are several.
    definition: QuickMap<VReg, Option<(Block, usize)>>,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let function = &*cx.function;
    let mut sums: Vec<Sum> = Vec::new();
    for block in function.layout() {
        let found = function[*block].iter().filter_map(|inst| sum(function, *block, *inst));
        sums.extend(found);
    }
    if sums.is_empty() {
        cx.unchanged = true;
        return;
    }
    let (cfg, dominators, liveness, encodes) = (cx.cfg(), cx.dominators(), cx.liveness(), cx.encoder.encodes);
    let function = &mut *cx.function;
    let known = Known::new(function, &sums);
    let mut free = free(function, &cfg, &liveness, &SortedMap::new());
    let mut gone: SortedSet<InstId> = SortedSet::new();
    for sum in sums {
        let all = known.readers_of(sum.result);
        let address = |reader: &(InstId, Block, usize)| is_address(function, reader.0, sum.result);
        if all.is_empty() || !all.iter().all(address) || !known.finds_same(function, &sum, &dominators) {
            continue;
        }
        let blocks = between(function.block_limit(), &cfg, sum.block, all.iter().map(|reader| reader.1));
        if blocks.iter().any(|block| free[*block] == 0) {
            continue;
        }
        let with = |function: &mut Function, a: VReg, ub: Operand| {
            all.iter().for_each(|reader| {
                function.set_arg(reader.0, Role::A, Operand::reg(a));
                function.set_arg(reader.0, Role::Ub, ub);
            });
        };
        with(function, sum.lane, Operand::reg(sum.base));
        if all.iter().all(|reader| encodes(function, reader.0)) {
            blocks.iter().for_each(|block| free[*block] -= 1);
            gone.insert(sum.inst);
        } else {
            with(function, sum.result, Operand::NULL);
        }
    }
    cx.unchanged = gone.is_empty();
    for block in cx.function.layout().to_vec() {
        cx.function[block].retain(|inst| !gone.contains(inst));
    }
}

/// Whether an instruction reads a register as the whole address of shared or local memory alone.
fn is_address(function: &Function, inst: InstId, reg: VReg) -> bool {
    let op = function[inst].op;
    let window = (op.has(Prop::SharedMemory) || op.has(Prop::LocalMemory)) && !op.has(Prop::Pseudo);
    let mut reads = 0;
    function.for_each_use(inst, |read| reads += usize::from(read == reg));
    let beside = op.role_index(Role::Ub).is_some() && function.arg(inst, Role::Ub).is_null();
    window && beside && reads == 1 && function.arg(inst, Role::A) == Operand::reg(reg)
}

impl Known {
    fn new(function: &Function, sums: &[Sum]) -> Known {
        let mut wanted = RegSet::new(function.regs().len());
        sums.iter().flat_map(|sum| [sum.result, sum.lane, sum.base]).for_each(|reg| {
            wanted.insert(reg);
        });
        let (mut readers, mut definition) = (Readers::default(), QuickMap::default());
        for block in function.layout() {
            for (at, inst) in function[*block].iter().enumerate() {
                function.for_each_use(*inst, |reg| {
                    if wanted.contains(reg) {
                        readers.entry(reg).or_default().push((*inst, *block, at));
                    }
                });
                function.for_each_def(*inst, |reg| {
                    if wanted.contains(reg) {
                        definition.entry(reg).and_modify(|known| *known = None).or_insert(Some((*block, at)));
                    }
                });
            }
        }
        Known { readers, definition }
    }

    /// The readers of a register.
    fn readers_of(&self, reg: VReg) -> &[(InstId, Block, usize)] {
        self.readers.get(&reg).map_or(&[], Vec::as_slice)
    }

    /// The only definition of a register.
    fn defined(&self, reg: VReg) -> Option<(Block, usize)> {
        self.definition.get(&reg).copied().flatten()
    }

    /// Whether each reader of a sum finds in its registers what the sum does.
    fn finds_same(&self, function: &Function, sum: &Sum, dominators: &Dominators) -> bool {
        let Some((_, from)) = self.defined(sum.result) else { return false };
        let (mut last, mut others, mut behind) = (from, SmallVec::<[Block; 4]>::new(), true);
        for (_, block, at) in self.readers_of(sum.result) {
            if *block == sum.block {
                behind &= *at > from;
                last = last.max(*at);
            } else {
                others.push(*block);
            }
        }
        let before = |(block, at): (Block, usize)| {
            if block == sum.block { at < from } else { dominators.dominates(block, sum.block) }
        };
        let single = [sum.lane, sum.base].iter().all(|reg| self.defined(*reg).is_some_and(before));
        if !behind || !single && (last - from > FAR || changes(function, sum, from..last)) {
            return false;
        }
        let reads_base = |block: Block| self.readers_of(sum.base).iter().any(|reader| reader.1 == block);
        (others.is_empty() || single && !calls_functions(function))
            && others.iter().all(|block| dominators.dominates(sum.block, *block) && reads_base(*block))
    }
}

/// Whether one of these instructions of its block writes what a sum reads.
fn changes(function: &Function, sum: &Sum, between: Range<usize>) -> bool {
    let mut changes = false;
    for inst in &function[sum.block][between] {
        function.for_each_def(*inst, |reg| changes |= reg == sum.lane || reg == sum.base);
    }
    changes
}

/// The sum of a general and a uniform register that an instruction is.
fn sum(function: &Function, block: Block, inst: InstId) -> Option<Sum> {
    let plain = is_plain_sum(function, inst) && function[inst].guard.is_null() && function.olds(inst).is_empty();
    let (mut lane, mut base) = (None, None);
    for role in [Role::A, Role::B, Role::C].into_iter().filter(|_| plain) {
        let operand = function.arg(inst, role);
        if operand == Operand::zero() {
            continue;
        }
        let reg = operand.as_reg().filter(|reg| operand == operand.plain() && is_free(function, *reg))?;
        let place = if function[reg].file == File::UR { &mut base } else { &mut lane };
        if place.replace(reg).is_some() {
            return None;
        }
    }
    let result = function.arg(inst, Role::D).as_reg().filter(|reg| is_free(function, *reg))?;
    Some(Sum { inst, block, result, lane: lane?, base: base? })
}
