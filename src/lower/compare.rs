//! Comparisons: `setp`, `set`, minimum and maximum of integers.
//!
//! Input: comparisons of every width with their combination by a boolean operation. Output: ISETP, FSETP, DSETP, and SEL. A comparison of
//! 64-bit integers is one of the low words, unsigned, whose result the extended comparison of the high words takes in.

use super::builder::{Builder, Lowered, Refusal};
use super::mods::*;
use super::operand::{Class, class_of, is_signed};
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{BoolOp, Compare, ScalarType};
use crate::tables::{Op, Role};

/// PTX comparison, integer comparison, whether it is unsigned whatever the type says, float comparison.
const COMPARISONS: [(Compare, Option<M>, bool, Option<M>); 18] = [
    (Compare::Eq, Some(EQ), false, Some(FEQ)),
    (Compare::Ne, Some(NE), false, Some(FNE)),
    (Compare::Lt, Some(LT), false, Some(FLT)),
    (Compare::Le, Some(LE), false, Some(FLE)),
    (Compare::Gt, Some(GT), false, Some(FGT)),
    (Compare::Ge, Some(GE), false, Some(FGE)),
    (Compare::Lo, Some(LT), true, None),
    (Compare::Ls, Some(LE), true, None),
    (Compare::Hi, Some(GT), true, None),
    (Compare::Hs, Some(GE), true, None),
    (Compare::Equ, None, false, Some(FEQU)),
    (Compare::Neu, None, false, Some(FNEU)),
    (Compare::Ltu, None, false, Some(FLTU)),
    (Compare::Leu, None, false, Some(FLEU)),
    (Compare::Gtu, None, false, Some(FGTU)),
    (Compare::Geu, None, false, Some(FGEU)),
    (Compare::Num, None, false, Some(FNUM)),
    (Compare::Nan, None, false, Some(FNAN)),
];

/// Results and combination of a comparison.
struct Combined {
    /// Result and its complement's partner.
    results: [Operand; 2],
    with: M,
    /// What it is combined with.
    input: Operand,
}

impl Builder<'_> {
    /// One ISETP with one result.
    pub fn isetp(&mut self, p: Operand, mods: &[M], a: Operand, b: Operand) {
        let a = self.in_reg(a);
        self.put(Op::ISETP, mods, &[(Role::Pu, p), (Role::A, a), (Role::B, b)]);
    }

    /// `setp`
    pub fn setp(&mut self, inst: &ast::Instruction) -> Lowered {
        let (p, q) = self.dest_and_pred(&inst.operands[0])?;
        let combined = self.combination(inst, [p, q])?;
        self.compare(inst, inst.types[0], &combined)
    }

    fn combination(&mut self, inst: &ast::Instruction, results: [Operand; 2]) -> Lowered<Combined> {
        let with = match inst.mods.bool_op {
            None | Some(BoolOp::And) => AND,
            Some(BoolOp::Or) => OR,
            Some(BoolOp::Xor) => XOR,
        };
        let input = match inst.operands.get(3) {
            Some(operand) => self.source(operand, ScalarType::Pred)?,
            None => Operand::NULL,
        };
        // A result that goes nowhere is PT.
        let results = results.map(|r| if r == Operand::zero() { Operand::always() } else { r });
        Ok(Combined { results, with, input })
    }

    fn compare(&mut self, inst: &ast::Instruction, ty: ScalarType, to: &Combined) -> Lowered {
        let compare = inst.mods.compare.ok_or(Refusal::NotBuilt)?;
        let row = COMPARISONS.iter().find(|row| row.0 == compare).ok_or(Refusal::NotBuilt)?;
        let [a, b] = [&inst.operands[1], &inst.operands[2]];
        match (class_of(ty), ty.bits()) {
            (Class::Float, 32) => {
                let cmp = row.3.ok_or(Refusal::NotBuilt)?;
                let mods: &[M] = if inst.mods.ftz { &[cmp, to.with, FTZ] } else { &[cmp, to.with] };
                let (a, b) = (self.source_reg(a, ty)?, self.source(b, ty)?);
                self.put_compare(Op::FSETP, mods, to, a, b);
            }
            (Class::Float, 64) => {
                let cmp = row.3.ok_or(Refusal::NotBuilt)?;
                let (a, b) = (self.source_pair(a, ty)?, self.source_pair(b, ty)?);
                self.put_compare(Op::DSETP, &[cmp, to.with], to, a, b);
            }
            (Class::Float | Class::Pred, _) => return Err(Refusal::NotBuilt),
            (_, bits) => {
                let cmp = row.1.ok_or(Refusal::NotBuilt)?;
                let sign = if is_signed(ty) && !row.2 { S32 } else { U32 };
                if bits == 64 {
                    let (a, b) = (self.source_words(a, ty)?, self.source_words(b, ty)?);
                    self.compare_long(cmp, sign, to, a, b);
                } else {
                    let (a, b) = (self.extended(a, ty)?, self.extended(b, ty)?);
                    let a = self.in_reg(a);
                    self.put_compare(Op::ISETP, &[cmp, to.with, sign], to, a, b);
                }
            }
        }
        Ok(())
    }

    /// One comparison of 64-bit integers with one result.
    pub fn compare_words(&mut self, p: Operand, cmp: M, sign: M, a: [Operand; 2], b: [Operand; 2]) {
        let to = Combined { results: [p, Operand::NULL], with: AND, input: Operand::NULL };
        self.compare_long(cmp, sign, &to, a, b);
    }

    fn put_compare(&mut self, op: Op, mods: &[M], to: &Combined, a: Operand, b: Operand) {
        let args =
            [(Role::Pu, to.results[0]), (Role::Pv, to.results[1]), (Role::A, a), (Role::B, b), (Role::Pp, to.input)];
        self.put(op, mods, &args);
    }

    fn compare_long(&mut self, cmp: M, sign: M, to: &Combined, a: [Operand; 2], b: [Operand; 2]) {
        let low = self.temp_pred();
        self.isetp(low, &[cmp, AND, U32], a[0], b[0]);
        let high = self.in_reg(a[1]);
        let args = [
            (Role::Pu, to.results[0]),
            (Role::Pv, to.results[1]),
            (Role::A, high),
            (Role::B, b[1]),
            (Role::Pp, to.input),
            (Role::Pq, low),
        ];
        self.put(Op::ISETP, &[cmp, to.with, sign, EX], &args);
    }

    /// `set`: the result as all ones or zero, or as 1.0 or 0.0.
    pub fn set(&mut self, inst: &ast::Instruction) -> Lowered {
        let (to, ty) = (inst.types[0], inst.types[1]);
        let p = self.temp_pred();
        let combined = self.combination(inst, [p, Operand::NULL])?;
        self.compare(inst, ty, &combined)?;
        let d = self.dest(&inst.operands[0])?;
        let truth = match to {
            ScalarType::F32 => self.imm(1.0f32.to_bits()),
            _ if to.bits() == 32 => self.imm(u32::MAX),
            _ => return Err(Refusal::NotBuilt),
        };
        self.select(d, truth, Operand::zero(), p);
        Ok(())
    }

    /// `min` and `max` of integers.
    pub fn min_max(&mut self, inst: &ast::Instruction, max: bool) -> Lowered {
        let ty = inst.types[0];
        let cmp = if max { GT } else { LT };
        let sign = if is_signed(ty) { S32 } else { U32 };
        let p = self.temp_pred();
        let to = Combined { results: [p, Operand::NULL], with: AND, input: Operand::NULL };
        let [a, b] = [&inst.operands[1], &inst.operands[2]];
        if ty.bits() == 64 {
            let (a, b) = (self.source_words(a, ty)?, self.source_words(b, ty)?);
            self.compare_long(cmp, sign, &to, a, b);
            let d = self.dest_words(&inst.operands[0])?;
            (0..2).for_each(|i| self.select(d[i], a[i], b[i], p));
        } else {
            let (a, b) = (self.extended(a, ty)?, self.extended(b, ty)?);
            let a = self.in_reg(a);
            self.put_compare(Op::ISETP, &[cmp, AND, sign], &to, a, b);
            let d = self.dest(&inst.operands[0])?;
            self.select(d, a, b, p);
        }
        Ok(())
    }
}
