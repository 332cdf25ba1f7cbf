//! Which instructions only one lane of a warp executes, because `elect.sync` chose it.
//!
//! What acts once per issue then needs no loop over the lanes, and ptxas 13.0.88 has none there.
//! All lanes of the warp come together at each election, so lanes at one instruction had their last
//! one together. A predicate counts behind its election, up to the next label; everywhere, if
//! nothing but elections writes it, so that at most one lane has it at any time. So does what one
//! instruction makes of it behind the election in the same block, where no lane can leave in
//! between: a lane that still has the old value stands before that instruction, and the others have
//! gone on. Programs make words of a predicate and predicates of these again: a word that is zero
//! in all lanes but the chosen one, or in that one alone, is followed too.
//!
//! A place belongs to the chosen lane alone if every way to it goes through a branch that the
//! others do not take.

use super::known::{constants, instructions, registers, written};
use crate::ptx::ast::{Constant, Instruction, LabelId, Operand, OperandKind, Part, RegId, Statement};
use crate::tables::ptx::{Compare, Op, ScalarType};
use std::collections::{BTreeMap, BTreeSet};

/// What a register says of the lane that the last election chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// It is zero in every lane.
    Nothing,
    /// It is zero, or false, in all other lanes.
    Chosen,
    /// It is not zero, or true, in all other lanes.
    Others,
}

impl Says {
    fn inverted(self) -> Option<Says> {
        match self {
            Says::Nothing => None,
            Says::Chosen => Some(Says::Others),
            Says::Others => Some(Says::Chosen),
        }
    }
}

/// The registers of a function that tell one lane from the others, and where lowering is.
#[derive(Debug, Default)]
pub struct Elected {
    /// What registers say everywhere.
    always: BTreeMap<RegId, Says>,
    /// The registers that something other than an election names, but for copies to registers that
    /// nothing names.
    named: BTreeSet<RegId>,
    /// What registers say since the last election before, where no label has come since: these
    /// count even if they are written elsewhere.
    fresh: BTreeMap<RegId, Says>,
    /// The labels that only the chosen lane reaches.
    labels: BTreeSet<LabelId>,
    /// Registers that always are a constant.
    constants: BTreeMap<RegId, u64>,
    /// Whether a branch left the others elsewhere.
    apart: bool,
}

impl Elected {
    /// Of a function with this body.
    pub fn new(body: &[Statement]) -> Elected {
        if !instructions(body).any(|inst| inst.op == Op::ElectSync) {
            return Elected::default();
        }
        let mut elected = Elected { constants: constants(body), ..Elected::default() };
        let (mut chosen, mut writes, mut copies) = (BTreeSet::new(), BTreeMap::<RegId, u32>::new(), BTreeMap::new());
        for inst in instructions(body) {
            if let Some(predicate) = elected.election(inst) {
                chosen.insert(predicate);
                continue;
            }
            match copy(inst) {
                Some((to, from)) => copies.entry(to).or_insert_with(Vec::new).push(from),
                None => {
                    let mut name = |reg| _ = elected.named.insert(reg);
                    inst.operands.iter().for_each(|operand| registers(operand, &mut name));
                }
            }
            written(inst, &mut |reg| *writes.entry(reg).or_default() += 1);
        }
        elected.name_copied(&copies);
        // Written by one instruction, and by no election.
        let once = |reg: RegId| writes.get(&reg) == Some(&1) && !chosen.contains(&reg);
        let alone: BTreeSet<RegId> = chosen.iter().copied().filter(|reg| !writes.contains_key(reg)).collect();
        elected.always = elected.made(body, &alone, once);
        elected.always.extend(alone.iter().map(|reg| (*reg, Says::Chosen)));
        elected.labels = elected.reached_alone(body);
        elected.fresh.clear();
        elected
    }

    /// What a copy reads is named if what it writes is.
    fn name_copied(&mut self, copies: &BTreeMap<RegId, Vec<RegId>>) {
        let mut work: Vec<RegId> = copies.keys().copied().filter(|to| self.named.contains(to)).collect();
        while let Some(to) = work.pop() {
            let from = copies.get(&to).into_iter().flatten().copied();
            work.extend(from.filter(|from| self.named.insert(*from)));
        }
    }

    /// Whether only one lane executes the instruction.
    pub fn alone(&self, inst: &Instruction) -> bool {
        self.guarded(inst) || self.apart
    }

    /// Whether the guard holds in the chosen lane alone.
    fn guarded(&self, inst: &Instruction) -> bool {
        let wanted = |negated: bool| if negated { Says::Others } else { Says::Chosen };
        inst.guard.is_some_and(|guard| self.says(guard.register, wanted(guard.negated)))
    }

    /// Whether the guard fails in the chosen lane alone: the others leave by such a branch.
    fn excepted(&self, inst: &Instruction) -> bool {
        let wanted = |negated: bool| if negated { Says::Chosen } else { Says::Others };
        inst.guard.is_some_and(|guard| self.says(guard.register, wanted(guard.negated)))
    }

    fn says(&self, register: RegId, what: Says) -> bool {
        [&self.always, &self.fresh].iter().any(|all| all.get(&register) == Some(&what))
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
        self.apart |= leaves(inst) && self.excepted(inst);
        self.renew(inst);
    }

    /// Goes on at a label.
    pub fn join(&mut self, label: LabelId) {
        self.apart = self.labels.contains(&label);
        self.fresh.clear();
    }

    /// What the registers say that one instruction makes of a chosen predicate, behind its election
    /// in the same block.
    fn made(
        &mut self,
        body: &[Statement],
        chosen: &BTreeSet<RegId>,
        once: impl Fn(RegId) -> bool,
    ) -> BTreeMap<RegId, Says> {
        let mut all = BTreeMap::new();
        for statement in body {
            match statement {
                Statement::Instruction(inst)
                    if self.election(inst).is_some_and(|predicate| !chosen.contains(&predicate)) => {}
                Statement::Instruction(inst) if leaves(inst) => self.fresh.clear(),
                Statement::Instruction(inst) => {
                    let made = self.renew(inst).filter(|(d, says)| once(*d) && *says != Says::Nothing);
                    all.extend(made);
                }
                Statement::Label(_) => self.fresh.clear(),
                _ => {}
            }
        }
        all
    }

    /// The labels to which every way goes through a branch that only the chosen lane takes, or that
    /// all others take: the greatest set of which this holds.
    fn reached_alone(&mut self, body: &[Statement]) -> BTreeSet<LabelId> {
        let labels = |statement: &Statement| match statement {
            Statement::Label(label) => Some(*label),
            _ => None,
        };
        if instructions(body).any(|inst| inst.op == Op::BrxIdx) {
            return BTreeSet::new();
        }
        let mut all: BTreeSet<LabelId> = body.iter().filter_map(labels).collect();
        loop {
            let before = all.len();
            (self.apart, self.fresh) = (false, BTreeMap::new());
            for statement in body {
                match statement {
                    Statement::Label(label) => {
                        if !self.apart {
                            all.remove(label);
                        }
                        self.apart = all.contains(label);
                        self.fresh.clear();
                    }
                    Statement::Instruction(inst) => {
                        let goes_alone = self.alone(inst);
                        let targets = inst.operands.iter().filter_map(|operand| match operand.kind {
                            OperandKind::Label(label) if !goes_alone => Some(label),
                            _ => None,
                        });
                        targets.for_each(|label| _ = all.remove(&label));
                        self.pass(inst);
                        // Nobody comes to what stands behind.
                        self.apart |= leaves(inst) && inst.guard.is_none();
                    }
                    _ => {}
                }
            }
            if all.len() == before {
                self.apart = false;
                return all;
            }
        }
    }

    /// Goes on behind an instruction with what registers say of the lane that the last election
    /// before it chose; returns the register that it makes, and what that says.
    fn renew(&mut self, inst: &Instruction) -> Option<(RegId, Says)> {
        if let Some(predicate) = self.election(inst) {
            self.fresh.insert(predicate, Says::Chosen);
            return None;
        }
        let made = self.result(inst);
        written(inst, &mut |reg| _ = self.fresh.remove(&reg));
        self.fresh.extend(made);
        made
    }

    /// What the result of an instruction says.
    fn result(&self, inst: &Instruction) -> Option<(RegId, Says)> {
        let says = |operand: &Operand| self.fresh.get(&plain(operand)?).copied();
        let number = |operand: &Operand| self.number(operand);
        let zero = |operand: &Operand| number(operand) == Some(0);
        let [to, sources @ ..] = inst.operands.as_slice() else { return None };
        let to = plain(to)?;
        let found = match (inst.op, sources) {
            // Only the chosen lane changes it.
            (Op::Mov, [_]) if inst.guard.is_some() => {
                (self.fresh.get(&to) == Some(&Says::Nothing) && self.guarded(inst)).then_some(Says::Chosen)
            }
            _ if inst.guard.is_some() => None,
            (Op::Mov, [from]) if zero(from) => Some(Says::Nothing),
            (Op::Mov, [from]) => says(from),
            (Op::Not, [from]) if is_predicate(inst) => says(from)?.inverted(),
            (Op::And, [a, b]) if is_predicate(inst) => {
                [a, b].iter().find_map(|o| says(o).filter(|s| *s == Says::Chosen))
            }
            (Op::Or, [a, b]) if is_predicate(inst) => {
                [a, b].iter().find_map(|o| says(o).filter(|s| *s == Says::Others))
            }
            (Op::Selp, [a, b, p]) => match (number(a), number(b)) {
                (Some(a), Some(0)) if a != 0 => says(p),
                (Some(0), Some(b)) if b != 0 => says(p)?.inverted(),
                _ => None,
            },
            (Op::Setp, [a, b]) if zero(b) && integer(inst) => match inst.mods.compare? {
                Compare::Ne => says(a),
                Compare::Eq => says(a)?.inverted(),
                _ => None,
            },
            // Zero is not equal to another number.
            (Op::Setp, [a, b]) if number(b).is_some_and(|n| n as u16 != 0) && integer(inst) => {
                let a = says(a).filter(|says| *says != Says::Others)?;
                match inst.mods.compare? {
                    Compare::Eq => Some(a),
                    Compare::Ne => a.inverted(),
                    _ => None,
                }
            }
            _ => None,
        };
        Some((to, found?))
    }

    /// The number that an operand always is.
    fn number(&self, operand: &Operand) -> Option<u64> {
        match operand.kind {
            OperandKind::Constant(Constant::Int { bits, .. }) => Some(bits),
            _ => self.constants.get(&plain(operand)?).copied(),
        }
    }

    /// The predicate of an election among all lanes of a warp.
    fn election(&self, inst: &Instruction) -> Option<RegId> {
        let (Op::ElectSync, None, [Operand { kind: OperandKind::Pair(pair), .. }, mask]) =
            (inst.op, inst.guard, inst.operands.as_slice())
        else {
            return None;
        };
        match (&pair.1.kind, self.number(mask)? as u32 == u32::MAX) {
            (OperandKind::Register(predicate), true) => Some(predicate.register),
            _ => None,
        }
    }
}

/// The registers that a copy writes and reads.
fn copy(inst: &Instruction) -> Option<(RegId, RegId)> {
    match inst.operands.as_slice() {
        [to, from] if inst.op == Op::Mov => Some((plain(to)?, plain(from)?)),
        _ => None,
    }
}

fn leaves(inst: &Instruction) -> bool {
    matches!(inst.op, Op::Bra | Op::Ret | Op::Exit)
}

fn is_predicate(inst: &Instruction) -> bool {
    inst.types.as_slice() == [ScalarType::Pred]
}

/// Whether a comparison is one of integers: a float may be zero with a bit set.
fn integer(inst: &Instruction) -> bool {
    use ScalarType::{B16, B32, B64, S16, S32, S64, U16, U32, U64};
    matches!(inst.types.first(), Some(B16 | B32 | B64 | S16 | S32 | S64 | U16 | U32 | U64))
}

/// The register that an operand is, whole and as it stands.
fn plain(operand: &Operand) -> Option<RegId> {
    match &operand.kind {
        OperandKind::Register(used) if !used.not && !used.negate && used.part == Part::Whole => Some(used.register),
        _ => None,
    }
}
