//! What the legality matrix says of an instruction.
//!
//! Input: an instruction as it is written, or the use of a special register. Output: where one of the operations that it is of is illegal on the file's target,
//! an error in the incumbent's words. Where none is, one bit says so.

use super::ast::{Operand, OperandKind};
use super::instruction::Suffix;
use super::parser::Parser;
use crate::diag::Pos;
use crate::tables::instructions::{Named, Seen};
use crate::tables::legality;
use crate::tables::ptx::{Op, SpecialRegister};
use smallvec::SmallVec;

/// An instruction for the matrix: its name and place, what stands behind the name, its operands.
#[derive(Clone, Copy)]
pub struct Judged<'s> {
    pub pos: Pos,
    pub name: &'s str,
    pub suffixes: &'s [Suffix<'s>],
    pub operands: &'s [Operand],
}

impl Parser<'_> {
    /// Whether the target refuses an instruction that has forms, which is reported. What is refused from a version on is so from there on.
    pub fn refuses(&mut self, op: Op, judged: Judged) -> bool {
        let later = op.gone().is_some_and(|gone| !self.has(gone));
        !later && self.judge(legality::known(op), judged)
    }

    /// Likewise for one that has none.
    pub fn refuses_planned(&mut self, judged: Judged) -> bool {
        legality::planned(judged.name).is_some_and(|named| self.judge(named, judged))
    }

    /// Likewise for a special register.
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
