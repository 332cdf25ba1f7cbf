//! A register and a number as one operand: `st.u64 [x], r + 1`.
//!
//! Input: the cursor at the `+` behind an operand. Output: a register of its own in its place, and the addition that
//! writes it, which stands before the instruction. ptxas adds as integers, in the width of the register; of
//! other registers it drops the instruction or breaks off, so that these are refused.

use super::ast::*;
use super::instruction::Written;
use super::parser::{Parse, Parser};
use crate::diag::Pos;
use crate::tables::ptx::{Op, ScalarType, TypeClass};
use smallvec::smallvec;

/// An operand that is a sum.
pub struct Sum {
    /// What stands for the sum.
    pub register: RegId,
    of: RegisterUse,
    number: i64,
    pos: Pos,
}

impl<'a> Parser<'a> {
    /// `+ number` behind an operand.
    pub fn sum(&mut self, operand: Operand) -> Parse<Operand> {
        let OperandKind::Register(of @ RegisterUse { part: Part::Whole, not: false, negate: false, .. }) = operand.kind
        else {
            return Err(self.unexpected());
        };
        self.next();
        let number = self.integer()?;
        let (Operand { pos, .. }, old) = (operand, &self.body.registers[of.register]);
        if addition(old.ty).is_none() || old.vector != 1 {
            let text = format!("Operand '{}' plus a number is not supported: it is no integer register", old.name);
            return Err(self.error(pos, text));
        }
        let sum = Register { pos, ..old.clone() };
        let register = self.body.registers.push(sum);
        self.sums.push(Sum { register, of, number, pos });
        Ok(Operand { pos, kind: OperandKind::Register(RegisterUse { register, ..of }) })
    }

    /// Writes the additions of the instruction that comes next.
    pub fn add_sums(&mut self, out: &mut Vec<Statement>) {
        for sum in std::mem::take(&mut self.sums) {
            let Some(ty) = addition(self.body.registers[sum.of.register].ty) else { continue };
            let operand = |kind| Operand { pos: sum.pos, kind };
            let bits = sum.number as u64 & u64::MAX >> (64 - ty.bits());
            let written = Written {
                pos: sum.pos,
                op: Op::Add,
                suffixes: smallvec![(ty.name(), sum.pos)],
                operands: smallvec![
                    operand(OperandKind::Register(RegisterUse { register: sum.register, ..sum.of })),
                    operand(OperandKind::Register(sum.of)),
                    operand(OperandKind::Constant(Constant::Int { bits, unsigned: true })),
                ],
            };
            out.extend(self.resolve(written).ok().map(Statement::Instruction));
        }
    }
}

/// The type in which a register is added to.
fn addition(ty: ScalarType) -> Option<ScalarType> {
    let whole = matches!(ty.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
    let of_width = |other: &ScalarType| other.class() == TypeClass::Unsigned && other.bits() == ty.bits();
    let added = ScalarType::ALL.into_iter().find(of_width).filter(|_| whole)?;
    Op::Add.forms().any(|(_, form)| matches!(form.types, [types] if types & added.bit() != 0)).then_some(added)
}
