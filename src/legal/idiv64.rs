//! Division and remainder of 64-bit integers. A zero divisor gives all ones.
//!
//! A function that may call slow paths calls one: compilers that write PTX put a test for numbers
//! that fit in 32 bits before it. Elsewhere numbers that fit are divided as such. Otherwise an f32
//! estimate of 2⁶⁴ / divisor, never too large, is refined by two Newton steps in integers; the
//! quotient from its high product is too small by at most two, and two corrections follow.

use crate::arrays::Each;
use crate::ori::build::int::{Combined, LUT_OR, LUT_XOR};
use crate::ori::mods::*;
use crate::ori::{Code, Convention, Operand};
use crate::tables::ptx::ScalarType;
use crate::tables::{Op, Role};

/// Adds 64 to the exponent of a float and subtracts four units in the last place, which is more
/// than the error of the estimate.
const TIMES_2_TO_64_LESS_4: u32 = 0x1fff_fffc;

type Words = [Operand; 2];

fn nothing() -> Words {
    [Operand::zero(); 2]
}

impl Code {
    /// `d = a / b` in pairs, or the remainder.
    pub(super) fn divide_longs(&mut self, d: Operand, a: Operand, b: Operand, signed: bool, remainder: bool) {
        let [d, a, b] = [d, a, b].each(|pair| self.words(pair));
        let (what, ty) = (if remainder { "rem" } else { "div" }, if signed { 's' } else { 'u' });
        if let Some(helper) = self.slow_path(&format!("__cuda_sm20_{what}_{ty}64")) {
            return self.call_slow_path(helper, &[a[0], a[1], b[0], b[1]], &d);
        }
        let (result, divisor) = if signed {
            // The sign is asked first and the divisor's magnitude last, so that few values stay.
            let (sign, negative) = (self.temp(), self.temp_pred());
            if remainder {
                self.copy(sign, a[1]);
            } else {
                self.lop3(sign, a[1], b[1], Operand::zero(), LUT_XOR);
            }
            self.isetp(negative, &[LT, AND], sign, Operand::zero());
            let [a, b] = [a, b].each(|value| self.magnitude(value));
            let result = self.quotient_long(a, b, remainder);
            (self.negated_if(negative, result), b)
        } else {
            (self.quotient_long(a, b, remainder), b)
        };
        let (any, p, ones) = (self.temp(), self.temp_pred(), self.imm(u32::MAX));
        self.lop3(any, divisor[0], divisor[1], Operand::zero(), LUT_OR);
        self.isetp(p, &[EQ, AND, U32], any, Operand::zero());
        (0..2).for_each(|i| self.copy(d[i], result[i]));
        self.move_if(p, d, [ones, ones]);
    }

    /// The absolute value. `value` stays live, so a select is cheaper than a predicated copy.
    fn magnitude(&mut self, value: Words) -> Words {
        let (negative, p) = ([self.temp(), self.temp()], self.temp_pred());
        self.isetp(p, &[LT, AND], value[1], Operand::zero());
        self.add_long(negative, nothing(), value, true);
        [0, 1].each(|i| {
            let d = self.temp();
            self.select(d, negative[i], value[i], p);
            d
        })
    }

    /// The value, or its negation if `p` is true.
    fn negated_if(&mut self, p: Operand, value: Words) -> Words {
        let (negative, d) = ([self.temp(), self.temp()], [self.temp(), self.temp()]);
        self.add_long(negative, nothing(), value, true);
        (0..2).for_each(|i| self.copy(d[i], value[i]));
        self.move_if(p, d, negative);
        d
    }

    /// `d = a` under a predicate.
    fn move_if(&mut self, p: Operand, d: Words, a: Words) {
        for (d, a) in d.into_iter().zip(a) {
            self.put_if(p, Op::MOV, &[], &[(Role::D, d), (Role::A, a)]);
        }
    }

    fn quotient_long(&mut self, a: Words, b: Words, remainder: bool) -> Words {
        if self.f.attributes().convention == Convention::SlowPath {
            return self.quotient_of_longs(a, b, remainder);
        }
        let (high, p, result) = (self.temp(), self.temp_pred(), [self.temp(), self.temp()]);
        self.lop3(high, a[1], b[1], Operand::zero(), LUT_OR);
        self.isetp(p, &[NE, AND, U32], high, Operand::zero());
        self.either(
            p,
            |code| {
                let wide = code.quotient_of_longs(a, b, remainder);
                (0..2).for_each(|i| code.copy(result[i], wide[i]));
            },
            |code| {
                let low = code.quotient(a[0], b[0], remainder);
                code.copy(result[0], low);
                code.copy(result[1], Operand::zero());
            },
        );
        result
    }

    fn quotient_of_longs(&mut self, a: Words, b: Words, remainder: bool) -> Words {
        // A slow path has few registers and computes -b products instead.
        let negative = (self.f.attributes().convention != Convention::SlowPath).then(|| {
            let negative = [self.temp(), self.temp()];
            self.add_long(negative, nothing(), b, true);
            negative
        });
        let inverse = self.scaled_reciprocal_long(b, negative);
        let q = self.high_product(inverse, a, true);
        let r = self.less_product(a, q, b, negative);
        // A subtraction without borrow sets the carry: the remainder was not less.
        let (enough, less) = (self.temp_pred(), [self.temp(), self.temp()]);
        self.take_away(less, r, b, enough);
        let again = self.temp_pred();
        if remainder {
            let (left, both) = ([self.temp(), self.temp()], self.temp_pred());
            self.take_away(left, less, b, again);
            self.plop3(both, [enough, again, Operand::always()], crate::ori::build::int::LUT_AND);
            self.move_if(enough, r, less);
            self.move_if(both, r, left);
            return r;
        }
        let to = Combined { results: [again, Operand::NULL], with: AND, input: enough };
        self.compare_long(GE, U32, &to, less, b);
        let ([low, high], carry) = ([self.temp(), self.temp()], self.temp_pred());
        self.add_carries(low, q[0], [enough, again], carry);
        self.add_carries(high, q[1], [carry, Operand::never()], Operand::NULL);
        [low, high]
    }

    /// `d = a - b`; `carry` is set if there was no borrow.
    fn take_away(&mut self, d: Words, a: Words, b: Words, carry: Operand) {
        let low = self.temp_pred();
        self.add_carry_out(d[0], a[0], b[0], true, low);
        self.add_carry_in(d[1], a[1], b[1], true, low, carry);
    }

    /// `d = a`, plus one for each of two predicates.
    fn add_carries(&mut self, d: Operand, a: Operand, carries: [Operand; 2], out: Operand) {
        let args = [
            (Role::D, d),
            (Role::Pu, out),
            (Role::A, a),
            (Role::B, Operand::zero()),
            (Role::C, Operand::zero()),
            (Role::Pp, carries[0]),
            (Role::Pq, carries[1]),
        ];
        self.put(Op::IADD3, &[X], &args);
    }

    /// 2⁶⁴ / b, never too large, and too small by less than two; `negative` is -b.
    fn scaled_reciprocal_long(&mut self, b: Words, negative: Option<Words>) -> Words {
        let [float, inverse, scaled] = [(); 3].each(|()| self.temp());
        let (divisor, estimate) = (self.pair_of(b), self.temp_pair());
        self.put(Op::I2F_X, &[i2f_src(ScalarType::U64), RP], &[(Role::D, float), (Role::A, divisor)]);
        self.put(Op::MUFU, &[MUFU_RCP], &[(Role::D, inverse), (Role::A, float)]);
        let scale = self.imm(TIMES_2_TO_64_LESS_4);
        self.add(scaled, inverse, scale);
        let to = f2i_dst(ScalarType::U64);
        self.put(Op::F2I_X, &[to, TRUNC], &[(Role::D, estimate), (Role::A, scaled)]);
        let mut inverse = self.words(estimate);
        for last in [false, true] {
            // inverse += inverse * (-b * inverse mod 2⁶⁴) / 2⁶⁴; the second step recovers what the
            // first one truncates.
            let error = self.less_product(nothing(), inverse, b, negative);
            let (more, better) = (self.high_product(inverse, error, last), [self.temp(), self.temp()]);
            self.add_long(better, inverse, more, false);
            inverse = better;
        }
        inverse
    }

    /// `c - a * b` modulo 2⁶⁴; `negative` is -b, if there is one.
    fn less_product(&mut self, c: Words, a: Words, b: Words, negative: Option<Words>) -> Words {
        if let Some(negative) = negative {
            return self.low_product(a, negative, c);
        }
        let (product, rest) = (self.low_product(a, b, nothing()), [self.temp(), self.temp()]);
        self.add_long(rest, c, product, true);
        rest
    }

    /// `a * b + c` modulo 2⁶⁴.
    fn low_product(&mut self, a: Words, b: Words, c: Words) -> Words {
        let (product, addend) = (self.temp_pair(), if c == nothing() { Operand::zero() } else { self.pair_of(c) });
        self.imad_wide(product, U32, a[0], b[0], addend);
        let ([low, high], cross, top) = (self.words(product), self.temp(), self.temp());
        self.imad(cross, a[0], b[1], high);
        self.imad(top, a[1], b[0], cross);
        [low, top]
    }

    /// The high 64 bits of a product. Unless `exact`, they may be too small by one, because the
    /// carry of the lowest words is ignored.
    fn high_product(&mut self, a: Words, b: Words, exact: bool) -> Words {
        let carried = if exact {
            let above = self.temp();
            self.imad_high(above, U32, a[0], b[0]);
            self.pair_of([above, Operand::zero()])
        } else {
            Operand::zero()
        };
        let (first, middle, carry) = (self.temp_pair(), self.temp_pair(), self.temp_pred());
        self.imad_wide(first, U32, a[1], b[0], carried);
        let [low, high] = self.words(middle);
        let args = [(Role::D, low), (Role::Pu, carry), (Role::A, a[0]), (Role::B, b[1]), (Role::C, first)];
        self.put(Op::IMAD_HI, &[U32], &args);
        self.add_carries(high, Operand::zero(), [carry, Operand::never()], Operand::NULL);
        let top = self.temp_pair();
        self.imad_wide(top, U32, a[1], b[1], middle);
        self.words(top)
    }
}
