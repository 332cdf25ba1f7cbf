//! A register plus a number as one operand: `st.u64 [x], r + 1`.
//!
//! The sum is replaced by a fresh register, and an addition in front of the instruction computes
//! it. ptxas adds as integers, in the width of the register. For other registers it drops the
//! instruction or crashes, so these are rejected.

use super::ast::*;
use super::instruction::Written;
use super::parser::{Parse, Parser};
use crate::diag::Pos;
use crate::tables::ptx::{Op, ScalarType, TypeClass};
use smallvec::smallvec;

/// A pending addition.
pub struct Sum {
    /// The register that replaces the sum.
    pub register: RegId,
    of: RegisterUse,
    number: i64,
    pos: Pos,
}

impl<'a> Parser<'a> {
    /// Parses `+ number` after an operand.
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

    /// Emits the additions for the next instruction.
    pub fn add_sums(&mut self, out: &mut Vec<Statement>) {
        for sum in std::mem::take(&mut self.sums) {
            let Some(ty) = addition(self.body.registers[sum.of.register].ty) else { continue };
            let operand = |kind| Operand { pos: sum.pos, kind };
            let bits = sum.number as u64 & u64::MAX >> (64 - ty.bits());
            let written = Written {
                pos: sum.pos,
                // No operation has the name of a type.
                whole: ty.name(),
                op: Op::Add,
                suffixes: smallvec![(ty.name(), sum.pos)],
                operands: smallvec![
                    operand(OperandKind::Register(RegisterUse { register: sum.register, ..sum.of })),
                    operand(OperandKind::Register(sum.of)),
                    operand(OperandKind::Constant(Constant::Int { bits, unsigned: true })),
                ],
            };
            out.extend(self.resolve(written).ok().map(|inst| Statement::Instruction(Box::new(inst))));
        }
    }
}

/// The unsigned type of the addition; `None` if the register's type is not an integer or cannot be
/// added.
fn addition(ty: ScalarType) -> Option<ScalarType> {
    let whole = matches!(ty.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
    let of_width = |other: &ScalarType| other.class() == TypeClass::Unsigned && other.bits() == ty.bits();
    let added = ScalarType::ALL.into_iter().find(of_width).filter(|_| whole)?;
    Op::Add.forms().any(|(_, form)| matches!(form.types, [types] if types & added.bit() != 0)).then_some(added)
}
