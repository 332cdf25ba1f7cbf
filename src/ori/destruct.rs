//! SSA destruction.
//!
//! PHIs and tied values become parallel copies, those for PHIs at the end of the predecessors; a
//! cycle of copies is broken with a fresh register. A number with several readers is not copied but
//! written where the copy would be.

use super::cfg::Cfg;
use super::function::{Block, Function, InstId, VReg};
use super::operand::{Kind, Operand};
use crate::sorted::SortedSet;
use crate::tables::ori::Direction;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;

/// Converts a function out of SSA form.
pub fn destruct(function: &mut Function) {
    let constants = constants(function);
    split_critical_edges(function);
    for block in function.layout().to_vec() {
        let mut copies: Vec<(Block, Vec<(VReg, VReg)>)> = Vec::new();
        let insts = function[block].clone();
        for inst in insts.iter().take_while(|i| function[**i].op == Op::PHI) {
            let args = function.args(*inst).to_vec();
            let Some(result) = args[0].as_reg() else { continue };
            for (i, pair) in args[1..].chunks_exact(2).enumerate() {
                let (Kind::Label(pred), Some(value)) = (pair[0].kind(), pair[1].as_reg()) else { continue };
                // All PHIs of a block name its predecessors in the same order.
                let at = if copies.get(i).is_some_and(|c| c.0 == pred) {
                    Some(i)
                } else {
                    copies.iter().position(|c| c.0 == pred)
                };
                match at {
                    Some(at) => copies[at].1.push((result, value)),
                    None => copies.push((pred, vec![(result, value)])),
                }
            }
        }
        for (pred, list) in copies {
            let insts = copies_and_constants(function, &list, &constants);
            let at = function[pred].len() - terminators(function, pred);
            function[pred].splice(at..at, insts);
        }
        old_value_copies(function, block, &constants);
    }
    drop_unread(function, &constants);
    function.set_ssa(false);
}

/// Numbers with several readers: the instruction that gives each, and its source. One with a single
/// reader is left to the allocator, which can give both the same register.
fn constants(function: &Function) -> Constants {
    let mut found = Constants::new();
    if !function.attributes().optimise {
        return found;
    }
    let mut readers: SecondaryMap<VReg, u32> = SecondaryMap::new();
    for block in function.layout() {
        for inst in &function[*block] {
            function.for_each_use(*inst, |reg| readers[reg] += 1);
        }
    }
    for block in function.layout() {
        for inst in &function[*block] {
            let data = &function[*inst];
            let moves = data.op.has(Prop::Moves) && data.guard.is_null();
            let Some(reg) = function.args(*inst).first().filter(|_| moves).and_then(|d| d.as_reg()) else { continue };
            let source = function.arg(*inst, Role::A);
            let number = matches!(source.kind(), Kind::Imm(_) | Kind::Zero) && source == source.plain();
            let named = function[reg].phys.is_some();
            if number && readers[reg] > 1 && !named && function.arg(*inst, Role::Lanes).is_null() {
                found[reg] = Some((data.op, source));
            }
        }
    }
    found
}

type Constants = SecondaryMap<VReg, Option<(Op, Operand)>>;

/// A parallel copy whose constant sources are written again and not read: no register is kept for
/// a number that only copies read, and none is copied where an immediate does.
fn copies_and_constants(function: &mut Function, pairs: &[(VReg, VReg)], constants: &Constants) -> Vec<InstId> {
    let (numbers, others): (Vec<_>, Vec<_>) = pairs.iter().partition(|(_, source)| constants[*source].is_some());
    let mut out = parallel_copy(function, &others);
    for (to, source) in numbers {
        let Some((op, source)) = constants[source] else { continue };
        let inst = function.make(op);
        function.set_arg(inst, Role::D, Operand::reg(to));
        function.set_arg(inst, Role::A, source);
        out.push(inst);
    }
    out
}

/// Removes the constants whose last reader was a copy.
fn drop_unread(function: &mut Function, constants: &Constants) {
    let mut read: SecondaryMap<VReg, bool> = SecondaryMap::new();
    for block in function.layout() {
        for inst in &function[*block] {
            function.for_each_use(*inst, |reg| read[reg] = true);
        }
    }
    for block in function.layout().to_vec() {
        let mut insts = std::mem::take(&mut function[block]);
        insts.retain(|inst| {
            let written = function.args(*inst).first().and_then(|d| d.as_reg());
            written.is_none_or(|reg| constants[reg].is_none() || read[reg])
        });
        function[block] = insts;
    }
}

fn terminators(function: &Function, block: Block) -> usize {
    function[block].iter().rev().take_while(|i| function[**i].op.has(Prop::Terminator)).count()
}

/// Removes the PHIs of a block, and copies the tied old value before each guarded definition.
fn old_value_copies(function: &mut Function, block: Block, constants: &Constants) {
    let insts = std::mem::take(&mut function[block]);
    let mut out = Vec::with_capacity(insts.len());
    for inst in insts {
        if function[inst].op == Op::PHI {
            continue;
        }
        if function.olds(inst).is_empty() {
            out.push(inst);
            continue;
        }
        let mut pairs = Vec::new();
        let mut olds = function.olds(inst).iter();
        for (i, operand) in function.args(inst).iter().enumerate() {
            if function.direction(inst, i) != Direction::Def {
                continue;
            }
            let (mut new, mut old) = (Vec::new(), Vec::new());
            function.for_each_reg(*operand, |r| new.push(r));
            if let Some(operand) = olds.next() {
                function.for_each_reg(*operand, |r| old.push(r));
            }
            pairs.extend(new.into_iter().zip(old).filter(|(n, o)| n != o));
        }
        if !pairs.is_empty() {
            out.extend(copies_and_constants(function, &pairs, constants));
            read_copies(function, inst, &pairs);
        }
        function.set_olds(inst, &[]);
        out.push(inst);
    }
    function[block] = out;
}

/// Reads the copy of an old value in place of its source, whose live range can then end.
fn read_copies(function: &mut Function, inst: InstId, pairs: &[(VReg, VReg)]) {
    for i in 0..function.args(inst).len() {
        let operand = function.args(inst)[i];
        if function.direction(inst, i) == Direction::Use
            && let Kind::Reg(reg) = operand.kind()
            && let Some((new, _)) = pairs.iter().find(|(_, old)| *old == reg)
        {
            function.args_mut(inst)[i] = operand.with_reg(*new);
        }
    }
}

/// A parallel copy as a sequence of copies.
pub fn parallel_copy(function: &mut Function, pairs: &[(VReg, VReg)]) -> Vec<InstId> {
    let mut pending: Vec<(VReg, VReg)> = pairs.iter().copied().filter(|(d, s)| d != s).collect();
    let mut out = Vec::with_capacity(pending.len());
    // The copy that writes each register, and the number of pending copies that read it.
    let mut writers: Vec<(VReg, usize)> = pending.iter().enumerate().map(|(i, (d, _))| (*d, i)).collect();
    writers.sort_unstable();
    let writer = |reg: VReg| writers.binary_search_by_key(&reg, |w| w.0).ok().map(|at| writers[at].1);
    let mut readers = vec![0u32; pending.len()];
    pending.iter().filter_map(|(_, s)| writer(*s)).for_each(|i| readers[i] += 1);
    let mut ready: SortedSet<usize> = (0..pending.len()).filter(|i| readers[*i] == 0).collect();
    let mut open: SortedSet<usize> = (0..pending.len()).collect();
    while let Some(first) = open.first().copied() {
        if let Some(i) = ready.pop_first() {
            let (dst, src) = pending[i];
            out.push(copy(function, dst, src));
            open.remove(&i);
            if let Some(freed) = writer(src).filter(|w| open.contains(w)) {
                readers[freed] -= 1;
                if readers[freed] == 0 {
                    ready.insert(freed);
                }
            }
            continue;
        }
        // Only cycles are left: save one source, so that the copy that overwrites it can proceed.
        let src = pending[first].1;
        let saved = function.new_reg(function[src].file);
        out.push(copy(function, saved, src));
        open.iter().filter(|i| pending[**i].1 == src).copied().collect::<Vec<_>>().into_iter().for_each(|i| {
            pending[i].1 = saved;
        });
        ready.extend(writer(src));
    }
    out
}

/// Creates a copy of one register.
pub fn copy(function: &mut Function, dst: VReg, src: VReg) -> InstId {
    let inst = function.make(Op::COPY);
    function.set_arg(inst, Role::D, Operand::reg(dst));
    function.set_arg(inst, Role::A, Operand::reg(src));
    inst
}

/// Splits the edges from blocks with several successors to blocks with PHIs.
fn split_critical_edges(function: &mut Function) {
    let cfg = Cfg::new(function);
    let mut placed: Vec<(Block, Block)> = Vec::new();
    let mut into: SecondaryMap<Block, Vec<(Block, Block)>> = SecondaryMap::new();
    for block in &cfg.rpo {
        if cfg.succs[*block].len() < 2 {
            continue;
        }
        for succ in &cfg.succs[*block] {
            let has_phi = function[*succ].first().is_some_and(|i| function[*i].op == Op::PHI);
            if has_phi {
                let middle = split_edge(function, *block, *succ);
                placed.push((*succ, middle));
                into[*succ].push((*block, middle));
            }
        }
    }
    for block in &cfg.rpo {
        into[*block].sort_unstable();
        rename_inputs(function, *block, &into[*block]);
    }
    function.place_before(&placed);
}

/// Renames predecessors in the PHIs of a block: pairs of (old, new), sorted by the old block.
fn rename_inputs(function: &mut Function, block: Block, renamed: &[(Block, Block)]) {
    if renamed.is_empty() {
        return;
    }
    let phis = function[block].iter().take_while(|i| function[**i].op == Op::PHI).count();
    for i in 0..phis {
        let inst = function[block][i];
        for operand in function.args_mut(inst) {
            if let Kind::Label(old) = operand.kind()
                && let Ok(at) = renamed.binary_search_by_key(&old, |r| r.0)
            {
                *operand = Operand::label(renamed[at].1);
            }
        }
    }
}

/// Creates a block on an edge; it is not in the layout yet, and PHIs are not updated.
fn split_edge(function: &mut Function, from: Block, to: Block) -> Block {
    let middle = function.new_unplaced_block(Vec::new());
    let bra = function.make(Op::BRA);
    function.set_arg(bra, Role::Target, Operand::label(to));
    function.append(middle, bra);
    function.redirect(from, to, middle);
    middle
}
