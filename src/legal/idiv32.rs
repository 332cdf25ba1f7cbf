//! Division and remainder of integers of 16 and 32 bits. A zero divisor gives all ones.
//!
//! 32 bits: a reciprocal in f32, rounded down so that it is never too large, is refined by one
//! Newton step in integers; the quotient from its high product is too small by at most two, which
//! two corrections add. The corrections are predicated, because few lanes need them. 16 bits: a
//! product of floats is accurate enough.

use crate::arrays::Each;
use crate::ori::build::int::LUT_XOR;
use crate::ori::mods::*;
use crate::ori::{Code, Operand};
use crate::tables::{Op, Role};

/// Adds 32 to the exponent of a float and subtracts two units in the last place.
const TIMES_2_TO_32_LESS_2: u32 = 0x0fff_fffe;

impl Code {
    /// `d = a / b`, or the remainder.
    pub(super) fn divide_words(&mut self, d: Operand, a: Operand, b: Operand, signed: bool, remainder: bool) {
        let result = if signed { self.signed_division(a, b, remainder) } else { self.quotient(a, b, remainder) };
        self.unless_zero(d, result, b);
    }

    /// As `divide_words`, for 16-bit operands in 32 bits. The reciprocal is too large by less than
    /// 2⁻²⁰, so the quotient is never too small and too large by less than its distance to the next
    /// integer, which is at least 2⁻¹⁶ of it.
    pub(super) fn divide_shorts(&mut self, d: Operand, a: Operand, b: Operand, signed: bool, remainder: bool) {
        let from: &[M] = if signed { &[] } else { &[I2F_U32] };
        let floats = [a, b].each(|x| {
            let float = self.temp();
            self.unary(Op::I2F, from, float, x);
            float
        });
        let [inverse, product, quotient] = [(); 3].each(|()| self.temp());
        self.mufu(MUFU_RCP, inverse, floats[1]);
        let larger = self.plus(inverse, 2);
        self.fmul(&[], product, floats[0], larger);
        let to: &[M] = if signed { &[FTZ, TRUNC, F2I_NTZ] } else { &[FTZ, F2I_U32, TRUNC, F2I_NTZ] };
        self.unary(Op::F2I, to, quotient, product);
        let result = if remainder {
            let (negative, rest) = (self.temp(), self.temp());
            self.add(negative, quotient.negated(), Operand::zero());
            self.imad(rest, negative, b, a);
            rest
        } else {
            quotient
        };
        self.unless_zero(d, result, b);
    }

    /// The result, or all ones if the divisor is zero.
    fn unless_zero(&mut self, d: Operand, result: Operand, b: Operand) {
        let (p, ones) = (self.temp_pred(), self.imm(u32::MAX));
        self.isetp(p, &[EQ, AND, U32], b, Operand::zero());
        self.copy(d, result);
        self.put_if(p, Op::MOV, &[], &[(Role::D, d), (Role::A, ones)]);
    }

    fn signed_division(&mut self, a: Operand, b: Operand, remainder: bool) -> Operand {
        let magnitudes = [a, b].each(|value| {
            let magnitude = self.temp();
            self.unary(Op::IABS, &[], magnitude, value);
            magnitude
        });
        let result = self.quotient(magnitudes[0], magnitudes[1], remainder);
        // A remainder has the sign of the dividend; a quotient that of the product of both.
        let sign = if remainder {
            a
        } else {
            let sign = self.temp();
            self.lop3(sign, a, b, Operand::zero(), LUT_XOR);
            sign
        };
        let (p, signed) = (self.temp_pred(), self.temp());
        self.isetp(p, &[LT, AND], sign, Operand::zero());
        self.copy(signed, result);
        self.add_if(p, signed, signed.negated(), Operand::zero());
        signed
    }

    /// `d = a + b` on one word under a predicate.
    fn add_if(&mut self, p: Operand, d: Operand, a: Operand, b: Operand) {
        self.put_if(p, Op::IADD3, &[], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, Operand::zero())]);
    }

    /// The unsigned quotient or remainder.
    pub(super) fn quotient(&mut self, a: Operand, b: Operand, remainder: bool) -> Operand {
        let negative = self.temp();
        self.add(negative, b.negated(), Operand::zero());
        let inverse = self.scaled_reciprocal(b, negative);
        let (q, r) = (self.temp(), self.temp());
        self.imad_high(q, U32, inverse, a);
        self.imad(r, q, negative, a);
        let one = self.imm(1);
        for last in [false, true] {
            let p = self.temp_pred();
            self.isetp(p, &[GE, AND, U32], r, b);
            if remainder || !last {
                self.add_if(p, r, r, b.negated());
            }
            if !remainder {
                self.add_if(p, q, q, one);
            }
        }
        if remainder { r } else { q }
    }

    /// 2³² / b, never too large; `negative` is -b.
    fn scaled_reciprocal(&mut self, b: Operand, negative: Operand) -> Operand {
        let [float, inverse, scaled, estimate] = [(); 4].each(|()| self.temp());
        self.put(Op::I2F, &[I2F_U32, RP], &[(Role::D, float), (Role::A, b)]);
        self.put(Op::MUFU, &[MUFU_RCP], &[(Role::D, inverse), (Role::A, float)]);
        let scale = self.imm(TIMES_2_TO_32_LESS_2);
        self.add(scaled, inverse, scale);
        self.put(Op::F2I, &[FTZ, F2I_U32, TRUNC, F2I_NTZ], &[(Role::D, estimate), (Role::A, scaled)]);
        // estimate += estimate * (-b * estimate mod 2³²) / 2³²
        let [error, better] = [(); 2].each(|()| self.temp());
        self.imad(error, negative, estimate, Operand::zero());
        let above = self.pair_of([Operand::zero(), estimate]);
        let args = [(Role::D, better), (Role::A, estimate), (Role::B, error), (Role::C, above)];
        self.put(Op::IMAD_HI, &[U32], &args);
        better
    }
}
