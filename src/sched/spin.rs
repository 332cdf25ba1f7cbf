//! Loops that may wait for another lane.
//!
//! Input: a function and its graph. Output: the blocks of each cycle one of whose branches depends on what a strong or
//! atomic read inside the cycle returned. Invariant: conservative; the dependence is followed through registers, in any
//! order of the cycle's instructions. A lane that leaves such a cycle must not be made to wait for those that are still in it: it may
//! hold what they wait for. A compare-and-swap that is tried again with just what it returned waits for no one: it fails because another
//! lane was faster, and asking only whether it did is no dependence.

use crate::ori::cfg::{BlockSet, Cfg};
use crate::ori::liveness::RegSet;
use crate::ori::{Block, Function, InstId, VReg};
use crate::tables::{Mod, Op, Prop, Role, value};

/// The blocks of all such cycles.
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

fn waits(function: &Function, cfg: &Cfg, members: &[Block]) -> bool {
    let mut tainted = RegSet::new(function.regs.len());
    let retried = retried(function, members);
    loop {
        let mut changed = false;
        for inst in members.iter().flat_map(|b| &function.blocks[*b]) {
            let mut hit = reads_what_others_write(function, *inst);
            let asked = asked(function, *inst, &retried);
            function.for_each_use(*inst, |reg| hit |= tainted.contains(reg) && !asked.contains(&reg));
            if hit {
                function.for_each_def(*inst, |reg| changed |= tainted.insert(reg));
            }
        }
        if !changed {
            break;
        }
    }
    members.iter().any(|b| crate::ori::varying::branch_varies(function, cfg, *b, &tainted))
}

/// Whether an instruction reads memory in a way that sees what another thread writes meanwhile.
fn reads_what_others_write(function: &Function, inst: InstId) -> bool {
    let data = &function.insts[inst];
    let strong = || data.mods.iter().any(|(kind, v)| kind.text(v).starts_with("STRONG") || kind.text(v) == "MMIO");
    data.op.has(Prop::ReadsMemory) && (data.op.has(Prop::WritesMemory) || strong())
}

/// What a compare-and-swap in a cycle returns and what it compares with, word by word, where the latter is in each round what the former was,
/// or what memory held.
fn retried(function: &Function, members: &[Block]) -> Vec<(VReg, VReg)> {
    let words = |inst: InstId, role: Role| {
        let mut list = Vec::new();
        function.for_each_reg(function.arg(inst, role), |reg| list.push(reg));
        list
    };
    let insts = || members.iter().flat_map(|b| &function.blocks[*b]).copied();
    let swaps = |inst: &InstId| {
        let data = &function.insts[*inst];
        matches!(data.op, Op::ATOMS | Op::ATOM | Op::ATOMG) && data.mods.get(Mod::Aop) == value::aop::CAS
    };
    let pairs = insts().filter(swaps).flat_map(|inst| words(inst, Role::D).into_iter().zip(words(inst, Role::B)));
    pairs.filter(|(result, compared)| echoes(function, members, *result, *compared, 0)).collect()
}

/// Most copies in a row that are followed.
const COPIES: usize = 4;

/// Whether every instruction of a cycle that writes a register copies another one into it, at once or over further registers, or reads it
/// from memory.
fn echoes(function: &Function, members: &[Block], from: VReg, to: VReg, depth: usize) -> bool {
    let mut any = false;
    let all = members.iter().flat_map(|b| &function.blocks[*b]).all(|inst| {
        let mut writes = false;
        function.for_each_def(*inst, |reg| writes |= reg == to);
        any |= writes;
        let data = &function.insts[*inst];
        let source = || function.arg(*inst, Role::A).as_reg();
        let copied = || matches!(data.op, Op::COPY | Op::MOV) && data.guard.is_null();
        let right = |reg: VReg| reg == from || depth < COPIES && echoes(function, members, from, reg, depth + 1);
        // What is read anew is as good as what the swap returned.
        let read = || data.op.has(Prop::ReadsMemory) && !reads_what_others_write(function, *inst);
        !writes || read() || copied() && source().is_some_and(right)
    });
    any && all
}

/// The registers that an instruction reads only to ask whether a compare-and-swap succeeded.
fn asked(function: &Function, inst: InstId, retried: &[(VReg, VReg)]) -> Vec<VReg> {
    if !matches!(function.insts[inst].op, Op::ISETP) {
        return Vec::new();
    }
    let source = |role: Role| function.arg(inst, role).as_reg();
    let (Some(a), Some(b)) = (source(Role::A), source(Role::B)) else { return Vec::new() };
    if retried.iter().any(|pair| *pair == (a, b) || *pair == (b, a)) { vec![a, b] } else { Vec::new() }
}
