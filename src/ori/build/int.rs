//! Emits integer instructions on words and pairs of words: IADD3, IMAD, LOP3, SHF, SEL, ISETP.
//!
//! Used by lowering and by legalization. Any source may be an immediate; operand legalization
//! rewrites those that the target cannot encode. A 64-bit sum is an IADD3 of the low words whose
//! carry the IADD3 of the high words reads. Truth tables are indexed by a = 0xf0, b = 0xcc, c =
//! 0xaa.

use crate::arrays::Each;
use crate::ori::InstId;
use crate::ori::Operand;
use crate::ori::code::Code;
use crate::ori::mods::*;
use crate::tables::{Feature, Op, Role};

/// Truth tables of two inputs (a and b).
pub const LUT_AND: u8 = 0xf0 & 0xcc;
/// Table of `a && b && c`.
pub const LUT_AND_3: u8 = 0xf0 & 0xcc & 0xaa;
/// `a | b`
pub const LUT_OR: u8 = 0xf0 | 0xcc;
/// `a ^ b`
pub const LUT_XOR: u8 = 0xf0 ^ 0xcc;
/// a, with the bits of b taken from c.
pub const LUT_INSERT: u8 = 0xf0 & !0xcc | 0xaa & 0xcc;

/// Destinations of a comparison, and the predicate that its result is combined with.
pub struct Combined {
    /// The two predicate results, `Pu` and `Pv`.
    pub results: [Operand; 2],
    /// Boolean operation that combines the comparison with `input`.
    pub with: M,
    /// The predicate that is combined with the comparison.
    pub input: Operand,
}

impl Code {
    /// `d = a + b` on one word.
    pub fn add(&mut self, d: Operand, a: Operand, b: Operand) {
        self.put(Op::IADD3, &[], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, Operand::zero())]);
    }

    /// The negation of one word: an immediate is negated, a register gets a modifier.
    pub fn negative(&mut self, a: Operand) -> Operand {
        match self.f.imm_value(a) {
            Some(value) => self.imm((value as u32).wrapping_neg()),
            None if a == Operand::zero() => a,
            None => a.negated(),
        }
    }

    /// The complement of one word.
    pub fn complement(&mut self, a: Operand) -> Operand {
        match self.f.imm_value(a) {
            Some(value) => self.imm(!(value as u32)),
            None => a.inverted(),
        }
    }

    /// `d = a + b`, or `a - b`, of 64 bits.
    pub fn add_long(&mut self, d: [Operand; 2], a: [Operand; 2], b: [Operand; 2], subtract: bool) {
        let carry = self.temp_pred();
        self.add_carry_out(d[0], a[0], b[0], subtract, carry);
        self.add_carry_in(d[1], a[1], b[1], subtract, carry, Operand::NULL);
    }

    /// `d = a ± b` with carry out: after a subtraction, "no borrow".
    pub fn add_carry_out(&mut self, d: Operand, a: Operand, b: Operand, subtract: bool, carry: Operand) {
        // The carry of a difference comes from negating the subtrahend; negating zero gives a
        // carry, but RZ would not.
        let b = if subtract { self.in_reg_unless_zero(b) } else { b };
        let b = if subtract { b.negated() } else { b };
        let args = [(Role::D, d), (Role::Pu, carry), (Role::A, a), (Role::B, b), (Role::C, Operand::zero())];
        self.put(Op::IADD3, &[], &args);
    }

    /// The operand in a register, unless it is zero.
    pub fn in_reg_unless_zero(&mut self, value: Operand) -> Operand {
        if value == Operand::zero() { value } else { self.in_reg(value) }
    }

    /// `d = a + b + carry`, or `a + ~b + carry`, with carry out.
    pub fn add_carry_in(&mut self, d: Operand, a: Operand, b: Operand, subtract: bool, carry: Operand, out: Operand) {
        let b = if subtract { self.complement(b) } else { b };
        let args = [
            (Role::D, d),
            (Role::Pu, out),
            (Role::A, a),
            (Role::B, b),
            (Role::C, Operand::zero()),
            (Role::Pp, carry),
            (Role::Pq, Operand::never()),
        ];
        self.put(Op::IADD3, &[X], &args);
    }

    /// `d = a * b + c` on one word.
    pub fn imad(&mut self, d: Operand, a: Operand, b: Operand, c: Operand) {
        self.put(Op::IMAD, &[], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
    }

    /// `d = a * b + c` into 64 bits.
    pub fn imad_wide(&mut self, d: Operand, sign: M, a: Operand, b: Operand, c: Operand) {
        self.put(Op::IMAD_WIDE, &[sign], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
    }

    /// The high word of a product.
    pub fn imad_high(&mut self, d: Operand, sign: M, a: Operand, b: Operand) {
        self.put(Op::IMAD_HI, &[sign], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, Operand::zero())]);
    }

    /// The low 64 bits of a product: the product of the low words, with the two cross products
    /// added to its high word.
    pub fn product_low(&mut self, a: [Operand; 2], b: [Operand; 2]) -> Operand {
        let (product, cross) = (self.temp_pair(), self.temp());
        self.imad_wide(product, U32, a[0], b[0], Operand::zero());
        let [low, high] = self.words(product);
        self.imad(cross, a[0], b[1], high);
        let top = self.temp();
        self.imad(top, a[1], b[0], cross);
        self.pair_of([low, top])
    }

    /// The high 64 bits of a product. With a = a1·2³² + a0, each cross product is added to the part
    /// above the word below it.
    pub fn product_high(&mut self, a: [Operand; 2], b: [Operand; 2], signed: bool) -> Operand {
        let low = self.temp_pair();
        self.imad_wide(low, U32, a[0], b[0], Operand::zero());
        let above = self.words(low)[1];
        let carried = self.pair_of([above, Operand::zero()]);
        let first = self.temp_pair();
        self.imad_wide(first, U32, a[1], b[0], carried);
        let [first_low, first_high] = self.words(first);
        let carried = self.pair_of([first_low, Operand::zero()]);
        let second = self.temp_pair();
        self.imad_wide(second, U32, a[0], b[1], carried);
        let second_high = self.words(second)[1];
        let carried = self.pair_of([first_high, Operand::zero()]);
        let top = self.temp_pair();
        self.imad_wide(top, U32, a[1], b[1], carried);
        let sum = self.temp_pair();
        let (sum_words, top_words) = (self.words(sum), self.words(top));
        self.add_long(sum_words, top_words, [second_high, Operand::zero()], false);
        if signed {
            self.subtract_if_negative(sum, a, b);
            self.subtract_if_negative(sum, b, a);
        }
        sum
    }

    /// `d -= by` if `a` is negative: corrects an unsigned high product to a signed one.
    pub fn subtract_if_negative(&mut self, d: Operand, a: [Operand; 2], by: [Operand; 2]) {
        let (sign, high) = (self.temp(), self.in_reg(a[1]));
        self.sign_word(sign, high);
        let amount = by.each(|word| {
            let masked = self.temp();
            self.and(masked, sign, word);
            masked
        });
        let words = self.words(d);
        self.add_long(words, words, amount, true);
    }

    /// Emits one instruction with a result and one source.
    pub fn unary(&mut self, op: Op, mods: &[M], d: Operand, a: Operand) {
        self.put(op, mods, &[(Role::D, d), (Role::A, a)]);
    }

    /// Emits one ISETP with one result.
    pub fn isetp(&mut self, p: Operand, mods: &[M], a: Operand, b: Operand) {
        self.put(Op::ISETP, mods, &[(Role::Pu, p), (Role::A, a), (Role::B, b)]);
    }

    /// Emits one comparison of 64-bit integers with one result.
    pub fn compare_words(&mut self, p: Operand, cmp: M, sign: M, a: [Operand; 2], b: [Operand; 2]) {
        let to = Combined { results: [p, Operand::NULL], with: AND, input: Operand::NULL };
        self.compare_long(cmp, sign, &to, a, b);
    }

    /// Emits a comparison with these destinations.
    pub fn put_compare(&mut self, op: Op, mods: &[M], to: &Combined, a: Operand, b: Operand) {
        let args =
            [(Role::Pu, to.results[0]), (Role::Pv, to.results[1]), (Role::A, a), (Role::B, b), (Role::Pp, to.input)];
        self.put(op, mods, &args);
    }

    /// Compares two 64-bit integers: the low words unsigned, then the high words, extended by that
    /// result.
    pub fn compare_long(&mut self, cmp: M, sign: M, to: &Combined, a: [Operand; 2], b: [Operand; 2]) {
        let low = self.temp_pred();
        self.isetp(low, &[cmp, AND, U32], a[0], b[0]);
        let args = [
            (Role::Pu, to.results[0]),
            (Role::Pv, to.results[1]),
            (Role::A, a[1]),
            (Role::B, b[1]),
            (Role::Pp, to.input),
            (Role::Pq, low),
        ];
        self.put(Op::ISETP, &[cmp, to.with, sign, EX], &args);
    }

    /// Emits one LOP3.
    pub fn lop3(&mut self, d: Operand, a: Operand, b: Operand, c: Operand, lut: u8) {
        let lut = self.literal(lut.into());
        self.put(Op::LOP3, &[], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c), (Role::Lut, lut)]);
    }

    /// `d = a & b`
    pub fn and(&mut self, d: Operand, a: Operand, b: Operand) {
        self.lop3(d, a, b, Operand::zero(), LUT_AND);
    }

    /// Emits one PLOP3 with one result.
    pub fn plop3(&mut self, d: Operand, [a, b, c]: [Operand; 3], lut: u8) -> InstId {
        let lut = self.literal(lut.into());
        let none = self.literal(0);
        let args = [(Role::Pu, d), (Role::Pa, a), (Role::Pb, b), (Role::Pc, c), (Role::Lut, lut), (Role::Lut2, none)];
        self.put(Op::PLOP3, &[], &args)
    }

    /// Copies a predicate.
    pub fn copy_pred(&mut self, d: Operand, a: Operand) {
        if self.guard.is_null() && a.as_reg().is_some() && !a.not() {
            self.put(Op::COPY, &[], &[(Role::D, d), (Role::A, a)]);
        } else {
            self.plop3(d, [a, Operand::always(), Operand::always()], LUT_AND);
        }
    }

    /// Emits one SHF.
    pub fn shf(&mut self, mods: &[M], d: Operand, low: Operand, amount: Operand, high: Operand) {
        self.put(Op::SHF, mods, &[(Role::D, d), (Role::A, low), (Role::B, amount), (Role::C, high)]);
    }

    /// Copies the sign of a word to all its bits.
    pub fn sign_word(&mut self, d: Operand, a: Operand) {
        let all = self.imm(31);
        self.shf(&SHF_R_S32_HI, d, Operand::zero(), all, a);
    }

    /// Shifts 64 bits. The word that is shifted into the other one is written last, so the
    /// destination may be the source.
    pub fn shift_long(&mut self, d: Operand, a: Operand, amount: Operand, left: bool, signed: bool) {
        let ([d_lo, d_hi], [lo, hi], zero) = (self.words(d), self.words(a), Operand::zero());
        // The amount may be a word of the destination.
        let amount = if amount == d_lo || amount == d_hi {
            let kept = self.temp();
            self.copy(kept, amount);
            kept
        } else {
            amount
        };
        if left {
            self.shf(&SHF_L_U64_HI, d_hi, lo, amount, hi);
            self.shf(&SHF_L, d_lo, lo, amount, zero);
        } else if signed {
            self.shf(&SHF_R_S64, d_lo, lo, amount, hi);
            self.shf(&SHF_R_S32_HI, d_hi, zero, amount, hi);
        } else {
            self.shf(&SHF_R_U64, d_lo, lo, amount, hi);
            self.shf(&SHF_R_U32_HI, d_hi, zero, amount, hi);
        }
    }

    /// `d = p ? a : b` on one word.
    pub fn select(&mut self, d: Operand, a: Operand, b: Operand, p: Operand) {
        self.put(Op::SEL, &[], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::Pp, p)]);
    }

    /// Minimum or maximum of two words; `relu`: at least zero.
    pub fn word_min_max(&mut self, d: Operand, a: Operand, b: Operand, max: bool, signed: bool, relu: bool) {
        let sign = if signed { S32 } else { U32 };
        let which = if max { Operand::never() } else { Operand::always() };
        if self.has(Feature::IntegerMinMaxVimnmx) {
            let ty = if signed { VTYPE_S32 } else { VTYPE_U32 };
            let mods: &[M] = if relu { &[ty, RELU] } else { &[ty] };
            self.put(Op::VIMNMX, mods, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::Pp, which)]);
            return;
        }
        let first = if relu { self.temp() } else { d };
        self.put(Op::IMNMX, &[sign], &[(Role::D, first), (Role::A, a), (Role::B, b), (Role::Pp, which)]);
        if relu {
            let args = [(Role::D, d), (Role::A, first), (Role::B, Operand::zero()), (Role::Pp, Operand::never())];
            self.put(Op::IMNMX, &[S32], &args);
        }
    }
}
