//! Which instructions only one lane of a warp executes, because `elect.sync` chose it.
//!
//! What acts once per issue then needs no loop over the lanes, and ptxas 13.0.88 has none there.
//! All lanes of the warp come together at each election, so lanes at one instruction had their last
//! one together. A predicate counts behind its election, up to the next label; everywhere, if
//! nothing but elections writes it, so that at most one lane has it at any time. So does what one
//! `and` makes of it behind the election in the same block, where no lane can leave in between: a
//! lane that still has the old value stands before that `and`, and the others have gone on.

use super::known::{instructions, registers, written};
use crate::ptx::ast::{Constant, Instruction, Operand, OperandKind, Part, RegId, Statement};
use crate::tables::ptx::{Op, ScalarType};
use std::collections::{BTreeMap, BTreeSet};

/// The predicates of a function that choose one lane, and where lowering is.
#[derive(Debug, Default)]
pub struct Elected {
    predicates: BTreeSet<RegId>,
    /// The registers that something other than an election names.
    named: BTreeSet<RegId>,
    /// Predicates of the last election before, and no label has come since: these count even if
    /// they are written elsewhere.
    fresh: BTreeSet<RegId>,
    /// Whether a branch left the others elsewhere, and no label has come since.
    apart: bool,
}

impl Elected {
    /// Of a function with this body.
    pub fn new(body: &[Statement]) -> Elected {
        if !instructions(body).any(|inst| inst.op == Op::ElectSync) {
            return Elected::default();
        }
        let (mut chosen, mut named) = (BTreeSet::new(), BTreeSet::new());
        let mut writes: BTreeMap<RegId, u32> = BTreeMap::new();
        for inst in instructions(body) {
            if let Some(predicate) = election(inst) {
                chosen.insert(predicate);
                continue;
            }
            inst.operands.iter().for_each(|operand| registers(operand, &mut |reg| _ = named.insert(reg)));
            written(inst, &mut |reg| *writes.entry(reg).or_default() += 1);
        }
        // Written by one `and`, and by no election.
        let once = |reg: RegId| writes.get(&reg) == Some(&1) && !chosen.contains(&reg);
        let alone: BTreeSet<RegId> = chosen.iter().copied().filter(|reg| !writes.contains_key(reg)).collect();
        let predicates = &alone | &narrowed(body, &alone, once);
        Elected { predicates, named, ..Elected::default() }
    }

    /// Whether only one lane executes the instruction.
    pub fn alone(&self, inst: &Instruction) -> bool {
        inst.guard.is_some_and(|guard| !guard.negated && self.chooses(guard.register)) || self.apart
    }

    fn chooses(&self, predicate: RegId) -> bool {
        self.predicates.contains(&predicate) || self.fresh.contains(&predicate)
    }

    /// Whether nothing reads a register that an election writes.
    pub fn is_unread(&self, operand: &Operand) -> bool {
        match operand.kind {
            OperandKind::Register(used) => !self.named.contains(&used.register),
            _ => false,
        }
    }

    /// Goes on behind an instruction.
    pub fn pass(&mut self, inst: &Instruction) {
        self.apart |= leaves(inst) && inst.guard.is_some_and(|guard| guard.negated && self.chooses(guard.register));
        renew(&mut self.fresh, inst);
    }

    /// Goes on at a label, which is reached from elsewhere too.
    pub fn join(&mut self) {
        self.apart = false;
        self.fresh.clear();
    }
}

fn leaves(inst: &Instruction) -> bool {
    matches!(inst.op, Op::Bra | Op::Ret | Op::Exit)
}

/// The predicates that one `and` makes of a chosen one, behind its election in the same block.
fn narrowed(body: &[Statement], chosen: &BTreeSet<RegId>, once: impl Fn(RegId) -> bool) -> BTreeSet<RegId> {
    let (mut all, mut fresh) = (BTreeSet::new(), BTreeSet::new());
    for statement in body {
        match statement {
            Statement::Instruction(inst) if election(inst).is_some_and(|predicate| !chosen.contains(&predicate)) => {}
            Statement::Instruction(inst) if leaves(inst) => fresh.clear(),
            Statement::Instruction(inst) => {
                let made = conjunction(inst).is_some_and(|(d, _)| once(d));
                all.extend(renew(&mut fresh, inst).filter(|_| made));
            }
            Statement::Label(_) => fresh.clear(),
            _ => {}
        }
    }
    all
}

/// Goes on behind an instruction with the predicates that say which lane the last election before
/// it chose; returns one that an `and` made.
fn renew(fresh: &mut BTreeSet<RegId>, inst: &Instruction) -> Option<RegId> {
    if let Some(predicate) = election(inst) {
        fresh.insert(predicate);
        return None;
    }
    let made = conjunction(inst).filter(|(_, [a, b])| fresh.contains(a) || fresh.contains(b));
    written(inst, &mut |reg| _ = fresh.remove(&reg));
    made.map(|(d, _)| {
        fresh.insert(d);
        d
    })
}

/// The result and the sources of an `and` of predicates.
fn conjunction(inst: &Instruction) -> Option<(RegId, [RegId; 2])> {
    if inst.op != Op::And || inst.guard.is_some() || inst.types.as_slice() != [ScalarType::Pred] {
        return None;
    }
    let plain = |operand: &Operand| match &operand.kind {
        OperandKind::Register(used) if !used.not && used.part == Part::Whole => Some(used.register),
        _ => None,
    };
    let [d, a, b] = inst.operands.as_slice() else { return None };
    Some((plain(d)?, [plain(a)?, plain(b)?]))
}

/// The predicate of an election among all lanes of a warp.
fn election(inst: &Instruction) -> Option<RegId> {
    let (Op::ElectSync, None, [Operand { kind: OperandKind::Pair(pair), .. }, mask]) =
        (inst.op, inst.guard, inst.operands.as_slice())
    else {
        return None;
    };
    let OperandKind::Constant(Constant::Int { bits, .. }) = mask.kind else { return None };
    match (&pair.1.kind, bits as u32 == u32::MAX) {
        (OperandKind::Register(predicate), true) => Some(predicate.register),
        _ => None,
    }
}
