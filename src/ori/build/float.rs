//! Emits float instructions: FFMA, DFMA, DMUL, MUFU, DSETP, and selects of pairs.
//!
//! Used by lowering and by legalization. An f64 is a register pair.

use crate::ori::Operand;
use crate::ori::code::Code;
use crate::ori::mods::*;
use crate::tables::{Op, Role};

/// The exponent field of f64 in its high word.
pub const EXPONENT: u32 = 0x7ff;
/// High word of 1.0.
pub const ONE_HIGH: u32 = 0x3ff0_0000;

impl Code {
    /// `a * b + c` in f32, rounded to nearest.
    pub fn ffma(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        let d = self.temp();
        self.put(Op::FFMA, &[], &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
        d
    }

    /// `a * b + c` in f64, rounded to nearest.
    pub fn dfma(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        let d = self.temp_pair();
        self.dfma_into(d, None, a, b, c);
        d
    }

    /// `d = a * b + c` in f64, with this rounding mode.
    pub fn dfma_into(&mut self, d: Operand, rounding: Option<M>, a: Operand, b: Operand, c: Operand) {
        self.put(Op::DFMA, rounding.as_slice(), &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
    }

    /// `a * b` in f64.
    pub fn dmul(&mut self, rounding: Option<M>, a: Operand, b: Operand) -> Operand {
        let d = self.temp_pair();
        self.put(Op::DMUL, rounding.as_slice(), &[(Role::D, d), (Role::A, a), (Role::B, b)]);
        d
    }

    /// An f64 constant whose low word is zero, in a pair.
    pub fn double_constant(&mut self, high: u32) -> Operand {
        let high = self.imm(high);
        self.pair_of([Operand::zero(), high])
    }

    /// A MUFU function of the high word of an f64: the high word of the result; its low word is
    /// zero.
    pub fn mufu_high(&mut self, function: M, a: Operand) -> Operand {
        let (high, of) = (self.temp(), self.words(a)[1]);
        self.put(Op::MUFU, &[function], &[(Role::D, high), (Role::A, of)]);
        self.pair_of([Operand::zero(), high])
    }

    /// Both words of `p ? a : b`.
    pub fn select_pair(&mut self, a: Operand, b: Operand, p: Operand) -> Operand {
        let d = self.temp_pair();
        self.select_into(d, a, b, p);
        d
    }

    /// Both words of `d = p ? a : b`.
    pub fn select_into(&mut self, d: Operand, a: Operand, b: Operand, p: Operand) {
        let (d, a, b) = (self.words(d), self.words(a), self.words(b));
        (0..2).for_each(|i| self.select(d[i], a[i], b[i], p));
    }

    /// A predicate from a comparison of f64.
    pub fn dsetp(&mut self, cmp: M, a: Operand, b: Operand) -> Operand {
        let p = self.temp_pred();
        self.put(Op::DSETP, &[cmp, AND], &[(Role::Pu, p), (Role::A, a), (Role::B, b)]);
        p
    }

    /// The result of a comparison of words, combined with another predicate.
    pub fn isetp_with(&mut self, mods: &[M], a: Operand, b: Operand, with: Operand) -> Operand {
        let p = self.temp_pred();
        self.put(Op::ISETP, mods, &[(Role::Pu, p), (Role::A, a), (Role::B, b), (Role::Pp, with)]);
        p
    }

    /// A sum with a constant, in a fresh register.
    pub fn plus(&mut self, a: Operand, value: i32) -> Operand {
        let (d, value) = (self.temp(), self.imm(value as u32));
        self.add(d, a, value);
        d
    }

    /// The exponent field of an f64.
    pub fn exponent_of(&mut self, a: Operand) -> Operand {
        let (high, shifted, field) = (self.words(a)[1], self.temp(), self.temp());
        let (by, mask) = (self.imm(20), self.imm(EXPONENT));
        self.shf(&SHF_R_U32_HI, shifted, Operand::zero(), by, high);
        self.and(field, shifted, mask);
        field
    }

    /// `d = a * b` in f32.
    pub fn fmul(&mut self, mods: &[M], d: Operand, a: Operand, b: Operand) {
        self.put(Op::FMUL, mods, &[(Role::D, d), (Role::A, a), (Role::B, b)]);
    }

    /// `d = function(a)` by MUFU, a MUFU modifier.
    pub fn mufu(&mut self, function: M, d: Operand, a: Operand) {
        self.put(Op::MUFU, &[function], &[(Role::D, d), (Role::A, a)]);
    }

    /// `p ? 1.0 : factor`
    pub fn factor_unless(&mut self, p: Operand, factor: f32) -> Operand {
        let (one, factor) = (self.imm(1.0f32.to_bits()), self.imm(factor.to_bits()));
        let scale = self.temp();
        self.select(scale, one, factor, p);
        scale
    }

    /// A predicate from a comparison of an f32 with a constant.
    pub fn compare_float(&mut self, cmp: M, a: Operand, bound: f32) -> Operand {
        let (p, bound) = (self.temp_pred(), self.imm(bound.to_bits()));
        self.put(Op::FSETP, &[cmp, AND], &[(Role::Pu, p), (Role::A, a), (Role::B, bound)]);
        p
    }

    /// A predicate: `x` is NaN, or its magnitude is at least that of the least normal f32.
    pub fn is_normal(&mut self, x: Operand) -> Operand {
        self.compare_float(FGEU, x.absolute(), f32::MIN_POSITIVE)
    }
}
