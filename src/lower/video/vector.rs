//! SIMD video instructions with two 16-bit or four 8-bit lanes, `cvt.pack`, and `fns`.
//!
//! `vadd vsub vavrg vabsdiff vmin vmax vset` become plain integer code, lane by lane: a lane is
//! selected from both sources, extended by its operand's sign, computed, clamped with `.sat`, and
//! inserted or added to the last operand. Lanes outside the mask come from the last operand. The
//! scalar forms are in `number`.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::float::compare::int_comparison;
use crate::lower::operand::is_signed;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast::{self, OperandKind, Part, RegisterUse};
use crate::tables::choices::{self, Step};
use crate::tables::ptx::ScalarType;
use crate::tables::{Mod, Op, Role, value};

/// The types of packed integers as I2IP names them.
const PACKED: [(ScalarType, u8); 8] = [
    (ScalarType::U16, value::dst::U16),
    (ScalarType::S16, value::dst::S16),
    (ScalarType::U8, value::dst::U8),
    (ScalarType::S8, value::dst::S8),
    (ScalarType::U4, value::dst::U4),
    (ScalarType::S4, value::dst::S4),
    (ScalarType::U2, value::dst::U2),
    (ScalarType::S2, value::dst::S2),
];

impl Builder<'_> {
    /// All video instructions but `vmad`.
    pub fn video(&mut self, inst: &ast::Instruction) -> Lowered {
        let (step, lanes) = choices::step(inst.op).ok_or(Refusal::NotBuilt)?;
        if lanes == 1 {
            return self.video_single(inst, step);
        }
        // The types are that of the result (absent in `vset`) and those of the two sources.
        let types = &inst.types[inst.types.len() - 2..];
        let result = if step == Step::Set { ScalarType::U32 } else { inst.types[0] };
        let words = [self.video_word(&inst.operands[1])?, self.video_word(&inst.operands[2])?];
        let c = self.source_reg(&inst.operands[3], result)?;
        let d = self.video_word(&inst.operands[0])?;
        let written = mask_of(&inst.operands[0], lanes);
        let (mut values, mut sum) = (Vec::new(), c);
        for (lane, written) in written.into_iter().enumerate().take(lanes) {
            if !written {
                values.push(self.lane_of(c, lane, lanes, false));
                continue;
            }
            let mut pair = [Operand::zero(); 2];
            for (i, chosen) in pair.iter_mut().enumerate() {
                let from = choice_of(&inst.operands[1 + i], lane, lanes, i);
                *chosen = self.lane_of(words[from / lanes], from % lanes, lanes, is_signed(types[i]));
            }
            let value = self.video_lane(inst, step, pair, lanes, result)?;
            values.push(value);
            if inst.mods.atom_op.is_some() {
                let next = self.temp();
                self.add(next, sum, value);
                sum = next;
            }
        }
        let whole = if inst.mods.atom_op.is_some() { sum } else { self.pack(&values, 32 / lanes as u32) };
        self.copy(d, whole);
        Ok(())
    }

    /// The whole register of an operand that selects parts of it.
    pub(crate) fn video_word(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        match &operand.kind {
            OperandKind::Register(used) => self.register(used.register).first().copied().ok_or(Refusal::NotBuilt),
            _ => self.source_reg(operand, ScalarType::U32),
        }
    }

    /// One lane of a word, extended to 32 bits.
    pub(crate) fn lane_of(&mut self, word: Operand, lane: usize, lanes: usize, signed: bool) -> Operand {
        if lanes == 2 {
            return self.half_of(word, lane, signed);
        }
        let (d, lane) = (self.temp(), lane as u32);
        let upper = if signed { lane | 8 } else { 4 };
        let selector = self.imm(upper << 12 | upper << 8 | upper << 4 | lane);
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, word), (Role::B, selector), (Role::C, Operand::zero())]);
        d
    }

    /// The result of one lane, from sources extended to 32 bits.
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
            Step::Average => {
                // Half of the sum, rounded away from zero: add one if it is not negative, then
                // shift right.
                let [sum, sign, rounded, one] = [self.temp(), self.temp(), self.temp(), self.imm(1)];
                self.add(sum, a, b);
                self.sign_word(sign, sum);
                let args = [(Role::D, rounded), (Role::A, sum), (Role::B, one), (Role::C, sign)];
                self.put(Op::IADD3, &[], &args);
                self.shf(&SHF_R_S32_HI, d, Operand::zero(), one, rounded);
            }
            Step::Min | Step::Max => self.word_min_max(d, a, b, step == Step::Max, true, false),
            Step::Set => {
                let cmp = int_comparison(inst.mods.compare).ok_or(Refusal::NotBuilt)?;
                let (p, one) = (self.temp_pred(), self.imm(1));
                self.isetp(p, &[cmp, AND], a, b);
                self.select(d, one, Operand::zero(), p);
            }
            Step::ShiftLeft | Step::ShiftRight => return Err(Refusal::NotBuilt),
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

    /// `cvt.pack`: two clamped numbers, packed below the low part of a third operand.
    pub fn convert_pack(&mut self, inst: &ast::Instruction) -> Lowered {
        let (to, from) = (inst.types[0], inst.types[1]);
        let format = PACKED.iter().find(|row| row.0 == to).ok_or(Refusal::NotBuilt)?.1;
        let high = self.source_reg(&inst.operands[1], from)?;
        let low = self.source_reg(&inst.operands[2], from)?;
        let rest = match inst.operands.get(3) {
            Some(rest) => self.source_reg(rest, ScalarType::B32)?,
            None => Operand::zero(),
        };
        let d = self.dest(&inst.operands[0])?;
        let mods = [(Mod::Dst, format), (Mod::Src, value::src::S32), (Mod::Isat, value::isat::SAT)];
        self.put(Op::I2IP, &mods, &[(Role::D, d), (Role::A, high), (Role::B, low), (Role::C, rest)]);
        Ok(())
    }

    /// `fns`: a binary search for the n-th set bit, upwards from a start bit; the mask is reversed
    /// to search downwards.
    pub fn find_nth_set(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = ScalarType::U32;
        let mask = self.source_reg(&inst.operands[1], ty)?;
        let base = self.source_reg(&inst.operands[2], ty)?;
        let offset = self.source_reg(&inst.operands[3], ty)?;
        let d = self.dest(&inst.operands[0])?;
        let (down, here, last, all) = (self.temp_pred(), self.temp_pred(), self.imm(31), self.imm(u32::MAX));
        self.isetp(down, &[LT, AND], offset, Operand::zero());
        self.isetp(here, &[EQ, AND], offset, Operand::zero());
        let [reversed, other_base, turned, start] = [(); 4].each(|()| self.temp());
        self.unary(Op::BREV, &[], reversed, mask);
        self.add(other_base, base.negated(), last);
        self.select(turned, reversed, mask, down);
        self.select(start, other_base, base, down);
        // Clears the bits below the start; if the offset is zero, those above it as well.
        let [shifted, one_bit, chosen, magnitude, one] = [(); 5].each(|()| self.temp());
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
            let [low, count, less, rest, further] = [(); 5].each(|()| self.temp());
            let (part, amount, p) = (self.imm((1 << width) - 1), self.imm(width), self.temp_pred());
            self.and(low, bits, part);
            self.unary(Op::POPC, &[], count, low);
            self.isetp(p, &[GE, AND, U32], rank, count);
            self.add(less, rank, count.negated());
            self.shf(&SHF_R_U32_HI, rest, Operand::zero(), amount, bits);
            self.add(further, position, amount);
            let next = [(less, rank), (rest, bits), (further, position)].each(|(yes, no)| {
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

/// The lanes that a destination selects; all if it has no mask.
fn mask_of(operand: &ast::Operand, lanes: usize) -> [bool; 4] {
    let mut mask = [false; 4];
    match &operand.kind {
        OperandKind::Register(RegisterUse { part: Part::Byte(n) | Part::Half(n), .. }) => {
            mask[usize::from(*n) % 4] = true
        }
        OperandKind::Register(RegisterUse { part: Part::Lanes(l), .. }) => {
            l.at[..usize::from(l.count)].iter().for_each(|n| mask[usize::from(*n) % 4] = true);
        }
        _ => mask[..lanes].fill(true),
    }
    mask
}

/// The lane that a source supplies for a lane of the result; lanes of the second source are
/// numbered after those of the first.
fn choice_of(operand: &ast::Operand, lane: usize, lanes: usize, source: usize) -> usize {
    match &operand.kind {
        OperandKind::Register(RegisterUse { part: Part::Lanes(l), .. }) => usize::from(l.at[lane]) % (2 * lanes),
        _ => source * lanes + lane,
    }
}
