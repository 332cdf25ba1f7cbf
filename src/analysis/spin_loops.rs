//! Spin loops: cycles in which a lane may wait for another lane.
//!
//! Finds the blocks of each cycle with a branch that depends on the result of a strong or atomic
//! read in the cycle. Conservative: the dependence is followed through registers, in any order of
//! the cycle's instructions. A lane that leaves such a cycle must not wait for those still in it,
//! because it may hold what they wait for. A compare-and-swap that is retried with exactly the
//! value it returned waits for no lane: it failed because another lane made progress, so testing
//! only its success is not counted as a dependence. Nor is a branch that only chooses between two
//! ways to compute a value, as of a quotient: the value depends on it instead.

use super::divergence::branch_varies;
use super::memory_dependence::CONSTANT;
use crate::ori::cfg::{BlockSet, Cfg};
use crate::ori::liveness::RegSet;
use crate::ori::{Block, Function, InstId, VReg};
use crate::tables::registers::Callee;
use crate::tables::{Mod, Op, Prop, Role, Says, value};

/// The blocks of all spin loops.
pub fn waiting_blocks(function: &Function, cfg: &Cfg) -> BlockSet {
    let mut set = BlockSet::new(function.block_limit());
    for members in &cfg.cycles().members {
        if waits(function, cfg, members) {
            members.iter().for_each(|b| {
                set.insert(*b);
            });
        }
    }
    set
}

/// Whether lanes in a cycle may wait for another lane.
pub fn waits(function: &Function, cfg: &Cfg, members: &[Block]) -> bool {
    let insts = || members.iter().flat_map(|b| &function[*b]).copied();
    let mut tainted = RegSet::new(0);
    for inst in insts().filter(|inst| reads_what_others_write(function, *inst)) {
        if tainted.limit() == 0 {
            tainted = RegSet::new(function.regs().len());
        }
        function.for_each_def(inst, |reg| {
            tainted.insert(reg);
        });
    }
    if tainted.limit() == 0 {
        return false;
    }
    let retried = retried(function, members);
    let mut harmless: Vec<Block> = Vec::new();
    loop {
        loop {
            let mut changed = false;
            for inst in insts() {
                let asked = asked(function, inst, &retried);
                let mut hit = false;
                function.for_each_use(inst, |reg| hit |= tainted.contains(reg) && !asked.contains(&reg));
                if hit {
                    function.for_each_def(inst, |reg| changed |= tainted.insert(reg));
                }
            }
            if !changed {
                break;
            }
        }
        let depends = |b: &&Block| !harmless.contains(b) && branch_varies(function, cfg, **b, &tainted);
        let Some(branch) = members.iter().find(depends) else { return false };
        let Some(made) = computed_by_ways(function, cfg, members, *branch) else { return true };
        harmless.push(*branch);
        made.into_iter().for_each(|reg| {
            tainted.insert(reg);
        });
    }
}

/// Number of blocks on the ways of a branch that only computes.
const COMPUTING: usize = 8;

/// The registers that the ways of a branch in a cycle compute, if they do nothing else before they
/// meet in the cycle.
fn computed_by_ways(function: &Function, cfg: &Cfg, members: &[Block], branch: Block) -> Option<Vec<VReg>> {
    let computes = |inst: &InstId| {
        let op = function[*inst].op;
        let called = matches!(function.callee(*inst), Some(Callee::SlowPath(_)));
        called || op.has(Prop::Pure) || op.has(Prop::Copies) || op.has(Prop::Terminator) && !op.has(Prop::Leaves)
    };
    let ways = |meet: Block| {
        let mut region: Vec<Block> = cfg.succs[branch].iter().copied().filter(|b| *b != meet).collect();
        let mut next = 0;
        while let Some(block) = region.get(next).copied() {
            next += 1;
            let within = block != branch && members.contains(&block) && region.len() <= COMPUTING;
            if !within || !function[block].iter().all(computes) {
                return None;
            }
            for succ in cfg.succs[block].iter().filter(|succ| **succ != meet) {
                if !region.contains(succ) {
                    region.push(*succ);
                }
            }
        }
        Some(region)
    };
    let mut meets: Vec<Block> = cfg.succs[branch].iter().copied().collect();
    let mut next = 0;
    while let Some(meet) = meets.get(next).copied() {
        next += 1;
        let region = ways(meet).filter(|_| meet != branch && members.contains(&meet));
        if let Some(region) = region {
            let mut made = Vec::new();
            let merged = function[meet].iter().filter(|inst| function[**inst].op == Op::PHI);
            let insts = region.iter().flat_map(|block| &function[*block]).chain(merged);
            insts.for_each(|inst| function.for_each_def(*inst, |reg| made.push(reg)));
            return Some(made);
        }
        let new = cfg.succs[meet].iter().copied().filter(|succ| !meets.contains(succ)).collect::<Vec<_>>();
        meets.extend(new.into_iter().take(COMPUTING.saturating_sub(next)));
    }
    None
}

/// Whether an instruction reads memory such that it observes concurrent writes.
fn reads_what_others_write(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    if !data.op.has(Prop::ReadsMemory) {
        return false;
    }
    let strong = || data.mods.iter().any(|(kind, value)| kind.says(Says::Order, value) > CONSTANT);
    data.op.has(Prop::WritesMemory) || data.ordered || strong()
}

/// For each compare-and-swap in a cycle, the words of its result and of its compare operand, if the
/// latter is in each iteration the former or read from memory.
fn retried(function: &Function, members: &[Block]) -> Vec<(VReg, VReg)> {
    let words = |inst: InstId, role: Role| {
        let mut list = Vec::new();
        function.for_each_reg(function.arg(inst, role), |reg| list.push(reg));
        list
    };
    let insts = || members.iter().flat_map(|b| &function[*b]).copied();
    let swaps = |inst: &InstId| {
        let data = &function[*inst];
        data.op.has(Prop::Atomic) && data.mods.get(Mod::Aop) == value::aop::CAS
    };
    let mut pairs = insts().filter(swaps).peekable();
    if pairs.peek().is_none() {
        return Vec::new();
    }
    // What writes each register, by register.
    let mut writers: Vec<(VReg, InstId)> = Vec::new();
    insts().for_each(|inst| function.for_each_def(inst, |reg| writers.push((reg, inst))));
    writers.sort_unstable();
    let pairs = pairs.flat_map(|inst| words(inst, Role::D).into_iter().zip(words(inst, Role::B)));
    pairs.filter(|(result, compared)| echoes(function, &writers, *result, *compared, 0)).collect()
}

/// Maximum length of a chain of copies that is followed.
const COPIES: usize = 4;

/// Whether every instruction of a cycle that writes `to` copies `from` into it, directly or through
/// other registers, or reads it from memory.
fn echoes(function: &Function, writers: &[(VReg, InstId)], from: VReg, to: VReg, depth: usize) -> bool {
    let first = writers.partition_point(|(reg, _)| *reg < to);
    let own = || writers[first..].iter().take_while(|(reg, _)| *reg == to);
    let right = |reg: VReg| reg == from || depth < COPIES && echoes(function, writers, from, reg, depth + 1);
    let all = own().all(|(_, inst)| {
        let data = &function[*inst];
        let copied = data.op.has(Prop::Copies) && data.guard.is_null();
        // A value that is read again is as good as the result of the swap.
        let read = data.op.has(Prop::ReadsMemory) && !reads_what_others_write(function, *inst);
        read || copied && function.arg(*inst, Role::A).as_reg().is_some_and(right)
    });
    all && own().next().is_some()
}

/// The registers that an instruction reads only to test whether a compare-and-swap succeeded.
fn asked(function: &Function, inst: InstId, retried: &[(VReg, VReg)]) -> Vec<VReg> {
    if retried.is_empty() || !matches!(function[inst].op, Op::ISETP) {
        return Vec::new();
    }
    let source = |role: Role| function.arg(inst, role).as_reg();
    let (Some(a), Some(b)) = (source(Role::A), source(Role::B)) else { return Vec::new() };
    if retried.iter().any(|pair| *pair == (a, b) || *pair == (b, a)) { vec![a, b] } else { Vec::new() }
}
