//! Scalar video instructions: `vadd vsub vabsdiff vmin vmax vset vshl vshr vmad`.
//!
//! Their sources may be bytes or halves of registers; they become plain integer code. The ISA
//! extends sources to 33 bits and computes in 34. Here 64 bits hold that, and `vshl`, the only
//! operation that can exceed it, is truncated to 34. The result is then clamped to its size,
//! inserted into the last operand, or combined with it. `vmad` computes in three words.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::float::compare::int_comparison;
use crate::lower::operand::is_signed;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast::{self, OperandKind, Part, RegisterUse};
use crate::tables::choices::Step;
use crate::tables::ptx::{AtomOp, ScalarType, ShiftMode, VideoScale};
use crate::tables::{Op, Role};

impl Builder<'_> {
    /// A scalar video instruction other than `vmad`.
    pub(crate) fn video_single(&mut self, inst: &ast::Instruction, step: Step) -> Lowered {
        // The types are that of the result (absent in `vset`) and those of the two sources.
        let types = &inst.types[inst.types.len() - 2..];
        let result = if step == Step::Set { ScalarType::U32 } else { inst.types[0] };
        let a = self.video_source(&inst.operands[1], types[0])?;
        let b = self.video_source(&inst.operands[2], types[1])?;
        let c = match inst.operands.get(3) {
            Some(operand) => Some(self.source_reg(operand, result)?),
            None => None,
        };
        let d = self.video_word(&inst.operands[0])?;
        let part = part_of(&inst.operands[0]);
        let words = self.video_number(inst, step, [a, b], [is_signed(types[0]), is_signed(types[1])])?;
        let value = if inst.mods.saturate {
            self.clamp(words, part_type(part, is_signed(result)), ScalarType::S64)[0]
        } else {
            words[0]
        };
        self.video_second(inst, d, value, (part, c))
    }

    /// A source, or its selected byte or half, extended to 32 bits.
    fn video_source(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        let word = self.video_word(operand)?;
        Ok(match part_of(operand) {
            Part::Byte(n) => self.lane_of(word, n.into(), 4, is_signed(ty)),
            Part::Half(n) => self.lane_of(word, n.into(), 2, is_signed(ty)),
            _ => word,
        })
    }

    /// The two words of the result before clamping.
    fn video_number(
        &mut self,
        inst: &ast::Instruction,
        step: Step,
        operands: [Operand; 2],
        signs: [bool; 2],
    ) -> Lowered<[Operand; 2]> {
        let [a, b] = [0, 1].each(|i| [operands[i], self.high_word(operands[i], signs[i])]);
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
                return Ok([d[0], Operand::zero()]);
            }
            Step::ShiftLeft | Step::ShiftRight => return Ok(self.video_shift(inst, step == Step::ShiftLeft, a, b[0])),
            Step::Average => return Err(Refusal::NotBuilt),
        }
        Ok(d)
    }

    /// The high word of the extension of a word to 64 bits.
    fn high_word(&mut self, word: Operand, signed: bool) -> Operand {
        if !signed {
            return Operand::zero();
        }
        let high = self.temp();
        self.sign_word(high, word);
        high
    }

    /// `vshl` and `vshr`.
    fn video_shift(&mut self, inst: &ast::Instruction, left: bool, a: [Operand; 2], b: Operand) -> [Operand; 2] {
        let amount = self.temp();
        if inst.mods.shift_mode == Some(ShiftMode::Wrap) {
            let mask = self.imm(31);
            self.and(amount, b, mask);
        } else {
            let most = self.imm(32);
            self.word_min_max(amount, b, most, false, false, false);
        }
        let (source, shifted) = (self.pair_of(a), self.temp_pair());
        self.shift_long(shifted, source, amount, left, true);
        let [low, high] = self.words(shifted);
        if !left {
            return [low, high];
        }
        // Truncate to 34 bits.
        let [up, cut, above] = [self.temp(), self.temp(), self.imm(30)];
        self.shf(&SHF_L, up, high, above, Operand::zero());
        self.shf(&SHF_R_S32_HI, cut, Operand::zero(), above, up);
        [low, cut]
    }

    /// Applies the secondary operation with the last operand, or inserts the result into a part of
    /// it.
    fn video_second(
        &mut self,
        inst: &ast::Instruction,
        d: Operand,
        value: Operand,
        (part, c): (Part, Option<Operand>),
    ) -> Lowered {
        let selector = match part {
            Part::Byte(n) => 0x7654 & !(15 << (4 * n)),
            Part::Half(0) => 0x7610,
            Part::Half(_) => 0x1054,
            _ => 0,
        };
        match (inst.mods.atom_op, c) {
            (None, Some(c)) if selector != 0 => {
                let selector = self.imm(selector);
                let args = [(Role::D, d), (Role::A, value), (Role::B, selector), (Role::C, c)];
                self.put(Op::PRMT, &[], &args);
            }
            // Without a secondary operation ptxas accepts a third operand and ignores it.
            (None, _) => self.copy(d, value),
            (Some(AtomOp::Add), Some(c)) => self.add(d, value, c),
            (Some(op @ (AtomOp::Min | AtomOp::Max)), Some(c)) => {
                self.word_min_max(d, value, c, op == AtomOp::Max, is_signed(inst.types[0]), false);
            }
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }

    /// `vmad`: the product and the sum in 96 bits, shifted down, clamped.
    pub(crate) fn video_mad(&mut self, inst: &ast::Instruction) -> Lowered {
        let signs = [is_signed(inst.types[1]), is_signed(inst.types[2])];
        let negated = [1, 2, 3].each(|i| is_negated(&inst.operands[i]));
        let turned = negated[0] ^ negated[1];
        let signed = signs[0] || signs[1] || turned || negated[2];
        let a = self.video_source(&inst.operands[1], inst.types[1])?;
        let b = self.video_source(&inst.operands[2], inst.types[2])?;
        let mut c = self.video_word(&inst.operands[3])?;
        let mut product = self.wide_product([a, b], signs);
        if turned {
            product = product.each(|word| self.not_word(word));
        }
        if negated[2] {
            c = self.not_word(c);
        }
        let above = self.high_word(c, signed);
        let mut sum = self.add_three(product, [c, above, above], Operand::NULL);
        if turned || negated[2] || inst.mods.plus_one {
            let one = self.imm(1);
            sum = self.add_three(sum, [one, Operand::zero(), Operand::zero()], Operand::NULL);
        }
        let value = self.video_result(inst, sum, signed);
        let d = self.dest(&inst.operands[0])?;
        self.copy(d, value);
        Ok(())
    }

    fn not_word(&mut self, word: Operand) -> Operand {
        let d = self.temp();
        self.lop3(d, Operand::zero(), word, Operand::zero(), !0xcc);
        d
    }

    /// The product of two words with their signs, in three words.
    fn wide_product(&mut self, [a, b]: [Operand; 2], signs: [bool; 2]) -> [Operand; 3] {
        let pair = self.temp_pair();
        let sign = if signs == [true; 2] { S32 } else { U32 };
        self.put(Op::IMAD_WIDE, &[sign], &[(Role::D, pair), (Role::A, a), (Role::B, b), (Role::C, Operand::zero())]);
        let [low, mut high] = self.words(pair);
        if signs[0] != signs[1] {
            // The product so far is unsigned: if the signed factor is negative, subtract the other
            // one, one word up.
            let (number, other) = if signs[0] { (a, b) } else { (b, a) };
            let [mask, less, right] = [(); 3].each(|()| self.temp());
            self.sign_word(mask, number);
            self.and(less, mask, other);
            self.add(right, high, less.negated());
            high = right;
        }
        let top = self.high_word(high, signs != [false; 2]);
        [low, high, top]
    }

    /// The sum of two numbers of three words.
    fn add_three(&mut self, a: [Operand; 3], b: [Operand; 3], mut carry: Operand) -> [Operand; 3] {
        let d = [(); 3].each(|()| self.temp());
        for i in 0..3 {
            let out = if i < 2 { self.temp_pred() } else { Operand::NULL };
            if carry.is_null() {
                self.add_carry_out(d[i], a[i], b[i], false, out);
            } else {
                self.add_carry_in(d[i], a[i], b[i], false, carry, out);
            }
            carry = out;
        }
        d
    }

    /// The result of `vmad` from its sum: shifted, and clamped with `.sat`.
    fn video_result(&mut self, inst: &ast::Instruction, mut sum: [Operand; 3], signed: bool) -> Operand {
        let amount = match inst.mods.video_scale {
            None => 0,
            Some(VideoScale::Shr7) => 7,
            Some(VideoScale::Shr15) => 15,
        };
        if amount != 0 {
            let (amount, [low, middle, high]) = (self.imm(amount), sum);
            sum = [(); 3].each(|()| self.temp());
            self.shf(&SHF_R_U64, sum[0], low, amount, middle);
            self.shf(&SHF_R_U64, sum[1], middle, amount, high);
            self.shf(&SHF_R_S32_HI, sum[2], Operand::zero(), amount, high);
        }
        if !inst.mods.saturate {
            return sum[0];
        }
        // In range if the words above are copies of the sign, or zero.
        let [beyond, clamped, p] = [self.temp(), self.temp(), self.temp_pred()];
        let sign = self.high_word(sum[0], signed);
        self.lop3(beyond, sum[1], sum[2], sign, (0xf0 ^ 0xaa) | (0xcc ^ 0xaa));
        self.isetp(p, &[EQ, AND, U32], beyond, Operand::zero());
        let bound = if signed {
            let (bound, top) = (self.temp(), self.imm(0x7fff_ffff));
            self.lop3(bound, sum[2], top, Operand::zero(), crate::ori::build::int::LUT_XOR);
            bound
        } else {
            let all = self.imm(u32::MAX);
            self.in_reg(all)
        };
        self.select(clamped, sum[0], bound, p);
        clamped
    }
}

/// The part of a register that an operand names.
fn part_of(operand: &ast::Operand) -> Part {
    match &operand.kind {
        OperandKind::Register(RegisterUse { part, .. }) => *part,
        _ => Part::Whole,
    }
}

fn is_negated(operand: &ast::Operand) -> bool {
    matches!(&operand.kind, OperandKind::Register(RegisterUse { negate: true, .. }))
}

/// The integer type of a part's size.
fn part_type(part: Part, signed: bool) -> ScalarType {
    match (part, signed) {
        (Part::Byte(_), true) => ScalarType::S8,
        (Part::Byte(_), false) => ScalarType::U8,
        (Part::Half(_), true) => ScalarType::S16,
        (Part::Half(_), false) => ScalarType::U16,
        (_, true) => ScalarType::S32,
        (_, false) => ScalarType::U32,
    }
}
