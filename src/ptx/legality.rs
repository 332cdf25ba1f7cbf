//! Checks instructions and special registers against the legality matrix of the file's target.
//!
//! An illegal use is reported with the wording of ptxas. The usual case, a target on which every
//! operation of the name is legal, is decided by one bit.

use super::ast::{Operand, OperandKind};
use super::instruction::Suffix;
use super::parser::Parser;
use crate::diag::Pos;
use crate::tables::instructions::{Named, Seen};
use crate::tables::legality;
use crate::tables::ptx::{Op, SpecialRegister};
use smallvec::SmallVec;

/// An instruction as the matrix sees it: name, position, suffixes and operands.
#[derive(Clone, Copy)]
pub struct Judged<'s> {
    pub pos: Pos,
    pub name: &'s str,
    pub suffixes: &'s [Suffix<'s>],
    pub operands: &'s [Operand],
}

impl Parser<'_> {
    /// Whether the target rejects an instruction that has forms; reports it. An operation that a
    /// PTX version removed is left to the version check from that version on.
    pub fn refuses(&mut self, op: Op, judged: Judged) -> bool {
        let later = op.gone().is_some_and(|gone| !self.has(gone));
        !later && self.judge(legality::known(op), judged)
    }

    /// Whether the target rejects an instruction without forms; reports it.
    pub fn refuses_planned(&mut self, judged: Judged) -> bool {
        legality::planned(judged.name).is_some_and(|named| self.judge(named, judged))
    }

    /// Whether the target rejects a special register; reports it.
    pub fn refuses_special(&mut self, special: SpecialRegister, pos: Pos) -> bool {
        let name = special.name().split('.').next().unwrap_or_default();
        let Some(named) = legality::special(name) else { return false };
        self.judge(named, Judged { pos, name: &format!("%{name}"), suffixes: &[], operands: &[] })
    }

    fn judge(&mut self, named: &Named, judged: Judged) -> bool {
        let Some(target) = self.target_row.filter(|target| named.refuses_on(target)) else {
            return false;
        };
        let words: SmallVec<[&str; 8]> = judged.suffixes.iter().map(|suffix| suffix.0).collect();
        let register = |operand: &Operand| matches!(operand.kind, OperandKind::Register(_));
        let pair = |operand: &Operand| matches!(operand.kind, OperandKind::Pair(_));
        let seen = Seen {
            name: judged.name,
            words: &words,
            operands: judged.operands.len(),
            register: judged.operands.iter().any(register),
            pair: judged.operands.iter().any(pair),
        };
        let refusal = legality::refusal(named, &seen, target);
        let refused = refusal.is_some();
        if let Some(message) = refusal {
            self.error(judged.pos, message);
        }
        refused
    }
}
