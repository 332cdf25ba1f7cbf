//! Which instructions only one lane of a warp executes, because `elect.sync` chose it.
//!
//! What acts once per issue then needs no loop over the lanes, and ptxas 13.0.88 has none there.
//! All lanes of the warp come together at each election, so lanes at one instruction had their last
//! one together. A predicate counts behind its election, up to the next label; everywhere, if
//! nothing but elections writes it, so that at most one lane has it at any time. So does a register
//! that is only made of such predicates behind their elections, in the same block, where no lane
//! can leave in between: a lane that still has the old value stands before what makes it, and the
//! others have gone on. Programs make words of a predicate and predicates of these again: a word
//! that is zero in all lanes but the chosen one, or in that one alone, is followed too.
//!
//! An election that no loop repeats chooses one lane for good, so what is made of it counts
//! everywhere, whatever stands in between, if all that write the register agree on that lane.
//!
//! A place belongs to the chosen lane alone if every way to it goes through a branch that the
//! others do not take.

mod says;

use super::known::{constants, instructions, written};
use crate::ptx::ast::{
    Constant, Function, Instruction, LabelId, Operand, OperandKind, Parameter, Part, RegId, Statement,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::ptx::{Compare, Op, ScalarType};
use says::{Says, Verdicts};

/// The registers of a function that tell one lane from the others, and where lowering is.
#[derive(Debug, Default)]
pub struct Elected {
    /// What registers say everywhere.
    always: SortedMap<RegId, Says>,
    /// What registers say of elections that no loop repeats.
    steady: SortedMap<RegId, Says>,
    /// What registers say since the last election before, where no label has come since: these
    /// count even if they are written elsewhere.
    fresh: SortedMap<RegId, Says>,
    /// The labels that only the chosen lane reaches.
    labels: SortedSet<LabelId>,
    /// Registers that always are a constant.
    constants: SortedMap<RegId, u64>,
    /// Whether a branch left the others elsewhere.
    apart: bool,
}

/// How many rounds follow what is made in one block of what is made in another.
const ROUNDS: usize = 8;

impl Elected {
    /// Of a function.
    pub fn new(function: &Function) -> Elected {
        let body = function.body.as_deref().unwrap_or_default();
        if !instructions(body).any(|inst| inst.op == Op::ElectSync) {
            return Elected::default();
        }
        let mut elected = Elected { constants: constants(body), ..Elected::default() };
        let (mut chosen, mut others) = (SortedSet::new(), SortedSet::new());
        for inst in instructions(body) {
            match elected.election(inst) {
                Some(predicate) => _ = chosen.insert(predicate),
                None => written(inst, &mut |reg| _ = others.insert(reg)),
            }
        }
        chosen.retain(|predicate| !others.contains(predicate));
        let made = elected.agreed(body, &chosen, &function.params, false);
        elected.settle(body, &function.params);
        elected.always = made;
        elected.always.extend(&elected.steady);
        elected.labels = elected.reached_alone(body);
        elected.fresh.clear();
        elected
    }

    /// Finds what registers say everywhere of elections that are made once: that lane stays.
    fn settle(&mut self, body: &[Statement], params: &[Parameter]) {
        let once = self.made_once(body);
        for _ in 0..ROUNDS {
            let found = self.agreed(body, &once, params, true);
            if found.len() == self.steady.len() {
                break;
            }
            self.steady = found;
        }
    }

    /// What all that write a register agree on, behind elections of these predicates in the same
    /// block. Elections made `once` choose a lane for good: what only that lane writes counts, and
    /// lanes may leave before.
    fn agreed(
        &mut self,
        body: &[Statement],
        elections: &SortedSet<RegId>,
        params: &[Parameter],
        once: bool,
    ) -> SortedMap<RegId, Says> {
        let mut all = Verdicts::of(params);
        self.fresh.clear();
        for statement in body {
            match statement {
                Statement::Label(_) => self.fresh.clear(),
                Statement::Instruction(inst) => {
                    let guard = self.guard_says(inst).filter(|says| once && matches!(says, Says::Chosen(_)));
                    let made = self.renew(inst);
                    let election = self.election(inst);
                    if let Some(predicate) = election.filter(|predicate| !elections.contains(predicate)) {
                        self.fresh.remove(&predicate);
                    }
                    written(inst, &mut |reg| {
                        let says = match election {
                            Some(predicate) if predicate == reg => self.fresh.get(&reg).copied(),
                            _ => guard.or_else(|| made.filter(|(d, _)| *d == reg).map(|(_, says)| says)),
                        };
                        // One that is repeated starts anew each time.
                        all.add(reg, if once { says } else { says.map(Says::of_any) });
                    });
                    if leaves(inst) && !once {
                        self.fresh.clear();
                    }
                }
                _ => {}
            }
        }
        all.found()
    }

    /// The predicates of the elections that no branch back repeats.
    fn made_once(&self, body: &[Statement]) -> SortedSet<RegId> {
        let mut places: SortedMap<LabelId, (usize, usize)> = SortedMap::new();
        for (at, statement) in body.iter().enumerate() {
            if let Statement::Label(label) = statement {
                places.insert(*label, (at, at));
            }
        }
        for (at, statement) in body.iter().enumerate() {
            let Statement::Instruction(inst) = statement else { continue };
            if inst.op == Op::BrxIdx {
                return SortedSet::new();
            }
            for operand in &inst.operands {
                if let OperandKind::Label(label) = operand.kind
                    && let Some((_, last)) = places.get_mut(&label)
                {
                    *last = at.max(*last);
                }
            }
        }
        // Up to where a branch leads back to a label that came before.
        let mut repeated = 0;
        let mut once = SortedSet::new();
        for (at, statement) in body.iter().enumerate() {
            match statement {
                Statement::Label(label) => repeated = repeated.max(places[label].1),
                Statement::Instruction(inst) if at > repeated => once.extend(self.election(inst)),
                _ => {}
            }
        }
        once
    }

    /// Whether only one lane executes the instruction.
    #[inline]
    pub fn alone(&self, inst: &Instruction) -> bool {
        self.guarded(inst) || self.apart
    }

    /// Whether the guard holds in the chosen lane alone.
    fn guarded(&self, inst: &Instruction) -> bool {
        matches!(self.guard_says(inst), Some(Says::Chosen(_)))
    }

    /// Whether the guard fails in the chosen lane alone: the others leave by such a branch.
    fn excepted(&self, inst: &Instruction) -> bool {
        matches!(self.guard_says(inst), Some(Says::Others(_)))
    }

    /// What the guard of an instruction says.
    #[inline]
    fn guard_says(&self, inst: &Instruction) -> Option<Says> {
        let guard = inst.guard?;
        let says =
            [&self.fresh, &self.always, &self.steady].iter().find_map(|all| all.get(&guard.register).copied())?;
        if guard.negated { says.inverted() } else { Some(says) }
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

    /// The labels to which every way goes through a branch that only the chosen lane takes, or that
    /// all others take: the greatest set of which this holds.
    fn reached_alone(&mut self, body: &[Statement]) -> SortedSet<LabelId> {
        let labels = |statement: &Statement| match statement {
            Statement::Label(label) => Some(*label),
            _ => None,
        };
        if instructions(body).any(|inst| inst.op == Op::BrxIdx) {
            return SortedSet::new();
        }
        let mut all: SortedSet<LabelId> = body.iter().filter_map(labels).collect();
        loop {
            let before = all.len();
            (self.apart, self.fresh) = (false, SortedMap::new());
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
        let made = self.result(inst);
        written(inst, &mut |reg| _ = self.fresh.remove(&reg));
        self.fresh.extend(made);
        self.fresh.extend(self.election(inst).map(|predicate| (predicate, Says::Chosen(Some(predicate)))));
        made
    }

    /// What the result of an instruction says.
    fn result(&self, inst: &Instruction) -> Option<(RegId, Says)> {
        let says = |operand: &Operand| {
            let reg = plain(operand)?;
            [&self.fresh, &self.always, &self.steady].iter().find_map(|all| all.get(&reg).copied())
        };
        let number = |operand: &Operand| self.number(operand);
        let zero = |operand: &Operand| number(operand) == Some(0);
        let [to, sources @ ..] = inst.operands.as_slice() else { return None };
        let to = plain(to)?;
        let found = match (inst.op, sources) {
            // Only the chosen lane changes it.
            (Op::Mov, [_]) if inst.guard.is_some() => {
                let clear = self.fresh.get(&to) == Some(&Says::Nothing);
                self.guard_says(inst).filter(|says| clear && matches!(says, Says::Chosen(_)))
            }
            _ if inst.guard.is_some() => None,
            (Op::Mov, [from]) if zero(from) => Some(Says::Nothing),
            (Op::Mov, [from]) => says(from),
            (Op::Not, [from]) if is_predicate(inst) => says(from)?.inverted(),
            (Op::And, [a, b]) if is_predicate(inst) => {
                [a, b].iter().find_map(|o| says(o).filter(|s| matches!(s, Says::Chosen(_))))
            }
            (Op::Or, [a, b]) if is_predicate(inst) => {
                [a, b].iter().find_map(|o| says(o).filter(|s| matches!(s, Says::Others(_))))
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
                let a = says(a).filter(|says| !matches!(says, Says::Others(_)))?;
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
