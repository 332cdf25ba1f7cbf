//! Video instructions: one number, two of 16 bits or four of 8 bits; packing with saturation; the n-th set bit.
//!
//! Input: `vadd vsub vabsdiff vmin vmax vset`, their forms of two and four lanes, `cvt.pack`, `fns`. Output: plain integer code lane by lane: a lane is
//! extended by its operand's sign, computed on, clamped where `.sat` says so, and put back or added to the last operand. One number
//! is computed in 64 bits, which hold every sum and difference of signed and unsigned 32-bit numbers.

use super::builder::{Builder, Lowered, Refusal};
use super::compare::int_comparison;
use super::mods::*;
use super::operand::is_signed;
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{AtomOp, Op as PtxOp, ScalarType};
use crate::tables::{Op, Role};

/// What is done to a pair of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Add,
    Sub,
    Difference,
    Min,
    Max,
    Set,
}

/// The step and the number of lanes of an instruction.
fn step_of(op: PtxOp) -> Option<(Step, usize)> {
    Some(match op {
        PtxOp::Vadd => (Step::Add, 1),
        PtxOp::Vsub => (Step::Sub, 1),
        PtxOp::Vabsdiff => (Step::Difference, 1),
        PtxOp::Vmin => (Step::Min, 1),
        PtxOp::Vmax => (Step::Max, 1),
        PtxOp::Vset => (Step::Set, 1),
        PtxOp::Vadd2 => (Step::Add, 2),
        PtxOp::Vsub2 => (Step::Sub, 2),
        PtxOp::Vabsdiff2 => (Step::Difference, 2),
        PtxOp::Vmin2 => (Step::Min, 2),
        PtxOp::Vmax2 => (Step::Max, 2),
        PtxOp::Vset2 => (Step::Set, 2),
        PtxOp::Vadd4 => (Step::Add, 4),
        PtxOp::Vsub4 => (Step::Sub, 4),
        PtxOp::Vabsdiff4 => (Step::Difference, 4),
        PtxOp::Vmin4 => (Step::Min, 4),
        PtxOp::Vmax4 => (Step::Max, 4),
        PtxOp::Vset4 => (Step::Set, 4),
        _ => return None,
    })
}

impl Builder<'_> {
    /// The video instructions.
    pub fn video(&mut self, inst: &ast::Instruction) -> Lowered {
        let (step, lanes) = step_of(inst.op).ok_or(Refusal::NotBuilt)?;
        // The types are those of the result (of `vset` there is none) and of the two operands.
        let types = &inst.types[inst.types.len() - 2..];
        let result = if step == Step::Set { ScalarType::U32 } else { inst.types[0] };
        let a = self.source_reg(&inst.operands[1], types[0])?;
        let b = self.source_reg(&inst.operands[2], types[1])?;
        let c = match inst.operands.get(3) {
            Some(operand) => Some(self.source_reg(operand, result)?),
            None => None,
        };
        let d = self.dest(&inst.operands[0])?;
        let signs = [is_signed(types[0]), is_signed(types[1])];
        if lanes == 1 {
            let value = self.video_number(inst, step, [a, b], signs, result)?;
            return self.video_second(inst, d, value, c);
        }
        let mut values = Vec::new();
        for lane in 0..lanes {
            let x = self.lane_of(a, lane, lanes, signs[0]);
            let y = self.lane_of(b, lane, lanes, signs[1]);
            values.push(self.video_lane(inst, step, [x, y], lanes, result)?);
        }
        if inst.mods.atom_op == Some(AtomOp::Add) {
            let mut sum = c.ok_or(Refusal::NotBuilt)?;
            for value in values {
                let next = self.temp();
                self.add(next, sum, value);
                sum = next;
            }
            self.copy(d, sum);
        } else {
            let packed = self.pack(&values, 32 / lanes as u32);
            self.copy(d, packed);
        }
        Ok(())
    }

    /// One lane of a word, extended to 32 bits.
    fn lane_of(&mut self, word: Operand, lane: usize, lanes: usize, signed: bool) -> Operand {
        if lanes == 2 {
            return self.half_of(word, lane, signed);
        }
        let (d, lane) = (self.temp(), lane as u32);
        let upper = if signed { lane | 8 } else { 4 };
        let selector = self.imm(upper << 12 | upper << 8 | upper << 4 | lane);
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, word), (Role::B, selector), (Role::C, Operand::zero())]);
        d
    }

    /// One lane's result, extended numbers in 32 bits.
    fn video_lane(
        &mut self,
        inst: &ast::Instruction,
        step: Step,
        [a, b]: [Operand; 2],
        lanes: usize,
        ty: ScalarType,
    ) -> Lowered<Operand> {
        let d = self.temp();
        match step {
            Step::Add => self.add(d, a, b),
            Step::Sub => self.add(d, a, b.negated()),
            Step::Difference => {
                let difference = self.temp();
                self.add(difference, a, b.negated());
                self.unary(Op::IABS, &[], d, difference);
            }
            Step::Min | Step::Max => self.word_min_max(d, a, b, step == Step::Max, true, false),
            Step::Set => {
                let cmp = int_comparison(inst.mods.compare).ok_or(Refusal::NotBuilt)?;
                let (p, one) = (self.temp_pred(), self.imm(1));
                self.isetp(p, &[cmp, AND], a, b);
                self.select(d, one, Operand::zero(), p);
            }
        }
        if !inst.mods.saturate {
            return Ok(d);
        }
        let bits = 32 / lanes as u32;
        let (low, high) =
            if is_signed(ty) { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1i32 << bits) - 1) };
        let (low, high, above, clamped) = (self.imm(low as u32), self.imm(high as u32), self.temp(), self.temp());
        self.word_min_max(above, d, low, true, true, false);
        self.word_min_max(clamped, above, high, false, true, false);
        Ok(clamped)
    }

    /// The result on single numbers, in 64 bits, clamped to the type where `.sat` says so.
    fn video_number(
        &mut self,
        inst: &ast::Instruction,
        step: Step,
        operands: [Operand; 2],
        signs: [bool; 2],
        ty: ScalarType,
    ) -> Lowered<Operand> {
        let [a, b] = [0, 1].map(|i| {
            let high = self.temp();
            if signs[i] {
                self.sign_word(high, operands[i]);
            } else {
                self.copy(high, Operand::zero());
            }
            [operands[i], high]
        });
        let result = self.temp_pair();
        let d = self.words(result);
        match step {
            Step::Add => self.add_long(d, a, b, false),
            Step::Sub => self.add_long(d, a, b, true),
            Step::Difference => {
                let (up, down, p) = (self.temp_pair(), self.temp_pair(), self.temp_pred());
                let (x, y) = (self.words(up), self.words(down));
                self.add_long(x, a, b, true);
                self.add_long(y, b, a, true);
                self.compare_words(p, LT, S32, a, b);
                (0..2).for_each(|i| self.select(d[i], y[i], x[i], p));
            }
            Step::Min | Step::Max => {
                let p = self.temp_pred();
                self.compare_words(p, if step == Step::Max { GT } else { LT }, S32, a, b);
                (0..2).for_each(|i| self.select(d[i], a[i], b[i], p));
            }
            Step::Set => {
                let cmp = int_comparison(inst.mods.compare).ok_or(Refusal::NotBuilt)?;
                let (p, one) = (self.temp_pred(), self.imm(1));
                self.compare_words(p, cmp, S32, a, b);
                self.select(d[0], one, Operand::zero(), p);
                return Ok(d[0]);
            }
        }
        Ok(if inst.mods.saturate { self.clamp(d, ty, ScalarType::S64)[0] } else { d[0] })
    }

    /// The second operation of a video instruction on single numbers, with the last operand.
    fn video_second(&mut self, inst: &ast::Instruction, d: Operand, value: Operand, c: Option<Operand>) -> Lowered {
        match (inst.mods.atom_op, c) {
            // Without a second operation a third operand has no part in the result; the incumbent takes it.
            (None, _) => self.copy(d, value),
            (Some(AtomOp::Add), Some(c)) => self.add(d, value, c),
            (Some(op @ (AtomOp::Min | AtomOp::Max)), Some(c)) => {
                self.word_min_max(d, value, c, op == AtomOp::Max, is_signed(inst.types[0]), false);
            }
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }

    /// `cvt.pack`: two numbers clamped and put side by side, before the low part of a third.
    pub fn convert_pack(&mut self, inst: &ast::Instruction) -> Lowered {
        let (to, from) = (inst.types[0], inst.types[1]);
        let mut parts = Vec::new();
        for operand in [&inst.operands[2], &inst.operands[1]] {
            let value = self.source_reg(operand, from)?;
            parts.push(self.clamp([value, Operand::zero()], to, from)[0]);
        }
        let d = self.dest(&inst.operands[0])?;
        if to.bits() == 16 {
            self.join_halves(d, parts[0], parts[1]);
            return Ok(());
        }
        let c = self.source_reg(&inst.operands[3], ScalarType::B32)?;
        let pair = self.pack(&parts, 8);
        self.join_halves(d, pair, c);
        Ok(())
    }

    /// `fns`: a search upwards from a bit, the mask reversed for one downwards; the bits counted away half by half.
    pub fn find_nth_set(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = ScalarType::U32;
        let mask = self.source_reg(&inst.operands[1], ty)?;
        let base = self.source_reg(&inst.operands[2], ty)?;
        let offset = self.source_reg(&inst.operands[3], ty)?;
        let d = self.dest(&inst.operands[0])?;
        let (down, here, last, all) = (self.temp_pred(), self.temp_pred(), self.imm(31), self.imm(u32::MAX));
        self.isetp(down, &[LT, AND], offset, Operand::zero());
        self.isetp(here, &[EQ, AND], offset, Operand::zero());
        let [reversed, other_base, turned, start] = [(); 4].map(|()| self.temp());
        self.unary(Op::BREV, &[], reversed, mask);
        self.add(other_base, base.negated(), last);
        self.select(turned, reversed, mask, down);
        self.select(start, other_base, base, down);
        // Bits below the start go; without an offset, those above it as well.
        let [shifted, one_bit, chosen, magnitude, one] = [(); 5].map(|()| self.temp());
        self.shf(&SHF_R_U32_HI, shifted, Operand::zero(), start, turned);
        let unit = self.imm(1);
        self.and(one_bit, shifted, unit);
        self.select(chosen, one_bit, shifted, here);
        self.unary(Op::IABS, &[], magnitude, offset);
        self.select(one, unit, magnitude, here);
        let (mut rank, mut bits) = (self.plus(one, -1), chosen);
        let (count, found) = (self.temp(), self.temp_pred());
        self.unary(Op::POPC, &[], count, bits);
        self.isetp(found, &[GT, AND, U32], count, rank);
        let mut position = start;
        for width in [16u32, 8, 4, 2, 1] {
            let [low, count, less, rest, further] = [(); 5].map(|()| self.temp());
            let (part, amount, p) = (self.imm((1 << width) - 1), self.imm(width), self.temp_pred());
            self.and(low, bits, part);
            self.unary(Op::POPC, &[], count, low);
            self.isetp(p, &[GE, AND, U32], rank, count);
            self.add(less, rank, count.negated());
            self.shf(&SHF_R_U32_HI, rest, Operand::zero(), amount, bits);
            self.add(further, position, amount);
            let next = [(less, rank), (rest, bits), (further, position)].map(|(yes, no)| {
                let chosen = self.temp();
                self.select(chosen, yes, no, p);
                chosen
            });
            [rank, bits, position] = next;
        }
        let (mirrored, place) = (self.temp(), self.temp());
        self.add(mirrored, position.negated(), last);
        self.select(place, mirrored, position, down);
        self.select(d, place, all, found);
        Ok(())
    }
}
