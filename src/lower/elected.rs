//! Which instructions only one lane of a warp executes, because `elect.sync` chose it.
//!
//! What acts once per issue then needs no loop over the lanes, and ptxas 13.0.88 has none there. A
//! predicate counts if nothing but elections of whole warps and guards names it: all lanes of the
//! warp come together at each election, so at most one of them has the predicate at any time.

use crate::ptx::ast::{Address, AddressBase, Constant, Instruction, Operand, OperandKind, RegId, Statement};
use crate::tables::ptx::Op;
use std::collections::BTreeSet;

/// The predicates of a function that choose one lane, and where lowering is.
#[derive(Debug, Default)]
pub struct Elected {
    predicates: BTreeSet<RegId>,
    /// Whether a branch left the others elsewhere, and no label has come since.
    apart: bool,
}

impl Elected {
    /// Of a function with this body.
    pub fn new(body: &[Statement]) -> Elected {
        let (mut chosen, mut other) = (BTreeSet::new(), BTreeSet::new());
        for statement in body {
            let Statement::Instruction(inst) = statement else { continue };
            match election(inst) {
                Some(predicate) => {
                    chosen.insert(predicate);
                }
                None => inst.operands.iter().for_each(|operand| named(operand, &mut other)),
            }
        }
        Elected { predicates: &chosen - &other, apart: false }
    }

    /// Whether only one lane executes the instruction.
    pub fn alone(&self, inst: &Instruction) -> bool {
        let chosen = inst.guard.is_some_and(|guard| !guard.negated && self.predicates.contains(&guard.register));
        chosen || self.apart
    }

    /// Goes on behind an instruction.
    pub fn pass(&mut self, inst: &Instruction) {
        let leaves = matches!(inst.op, Op::Bra | Op::Ret | Op::Exit);
        self.apart |=
            leaves && inst.guard.is_some_and(|guard| guard.negated && self.predicates.contains(&guard.register));
    }

    /// Goes on at a label, which is reached from elsewhere too.
    pub fn join(&mut self) {
        self.apart = false;
    }
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

/// Adds the registers that an operand names.
fn named(operand: &Operand, to: &mut BTreeSet<RegId>) {
    match &operand.kind {
        OperandKind::Register(used) => {
            to.insert(used.register);
        }
        OperandKind::Address(Address { base, rest, .. }) => {
            if let AddressBase::Register(register) = base {
                to.insert(*register);
            }
            rest.iter().for_each(|operand| named(operand, to));
        }
        OperandKind::Vector(list) | OperandKind::List(list) => list.iter().for_each(|operand| named(operand, to)),
        OperandKind::Pair(pair) => {
            named(&pair.0, to);
            named(&pair.1, to);
        }
        OperandKind::Special(_)
        | OperandKind::Constant(_)
        | OperandKind::Symbol { .. }
        | OperandKind::Label(_)
        | OperandKind::Sink => {}
    }
}
