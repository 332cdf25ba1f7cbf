//! Integer division and remainder by constants, through multiplication by the reciprocal.
//!
//! A division of 16- or 32-bit integers becomes a product with shifts, a 64-bit division by a power
//! of two becomes shifts; the results are the same for every dividend. Divisions by zero and
//! guarded divisions stay. The code is in SSA form and has no branches.
//!
//! A reciprocal m / 2^p of d, with m the least integer not below 2^p / d, gives the quotients of
//! all numbers below 2^n if m * d - 2^p is at most 2^(p-n); for negative numbers it gives one less
//! than the quotient (T. Granlund, P. Montgomery: Division by invariant integers using
//! multiplication, 1994).

use crate::analysis::PassCx;
use crate::analysis::def_use::DefUse;
use crate::arrays::Each;
use crate::ori::build::int::LUT_AND;
use crate::ori::mods::*;
use crate::ori::{Code, Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};

/// A division by a constant.
#[derive(Clone, Copy)]
struct Division {
    /// Magnitude of the divisor.
    by: u64,
    negative: bool,
    signed: bool,
    remainder: bool,
    /// Bits of the operands: 16 (extended to 32), 32 or 64.
    bits: u32,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let function = &*cx.function;
    let divides = |inst: &InstId| division_bits(function[*inst].op).is_some();
    if !function.layout().iter().flat_map(|b| &function[*b]).any(divides) {
        cx.unchanged = true;
        return;
    }
    let def_use = cx.def_use();
    let function = &mut *cx.function;
    let f = std::mem::replace(function, Function::new("", function.target()));
    let entry = f.entry();
    let mut code = Code { f, block: entry, guard: Operand::NULL, line: 0, visible: 0, cold: Vec::new() };
    for block in code.f.layout().to_vec() {
        code.block = block;
        for inst in std::mem::take(&mut code.f[block]) {
            match division(&code.f, &def_use, inst) {
                Some(division) => code.divide_by(inst, division),
                None => code.f.append(block, inst),
            }
        }
    }
    *function = code.f;
}

fn division_bits(op: Op) -> Option<(u32, bool)> {
    Some(match op {
        Op::IDIV_16 => (16, false),
        Op::IREM_16 => (16, true),
        Op::IDIV => (32, false),
        Op::IREM => (32, true),
        Op::IDIV_64 => (64, false),
        Op::IREM_64 => (64, true),
        _ => return None,
    })
}

/// The constant divisor of an instruction, if the division can be rewritten.
fn division(function: &Function, def_use: &DefUse, inst: InstId) -> Option<Division> {
    let data = &function[inst];
    let (bits, remainder) = division_bits(data.op).filter(|_| data.guard.is_null())?;
    let signed = data.mods.get(Mod::Sign) == value::sign::NONE;
    let b = function.arg(inst, Role::B);
    let known = match b.as_vector() {
        Some(vector) => {
            let [low, high] = *function.vector_regs(vector) else { return None };
            u64::from(def_use.constant(function, low)?) | u64::from(def_use.constant(function, high)?) << 32
        }
        None => def_use.known(function, b)?.into(),
    };
    let negative = signed && if bits == 64 { (known as i64) < 0 } else { (known as u32 as i32) < 0 };
    let by = match (negative, bits) {
        (false, _) => known,
        (true, 64) => known.wrapping_neg(),
        (true, _) => (known as u32).wrapping_neg().into(),
    };
    // The least 16-bit number divided by -1 does not fit in 16 bits.
    let narrow = bits == 16 && by == 1 && negative;
    let fits = by != 0 && !narrow && (bits < 64 || by.is_power_of_two());
    fits.then_some(Division { by, negative, signed, remainder, bits })
}

/// The least reciprocal m / 2^(32 + shift) that is exact for numbers below 2^bits, if m fits in 32
/// bits.
fn reciprocal(by: u32, bits: u32) -> Option<(u32, u32)> {
    (0..32).find_map(|shift| {
        let power = 1u128 << (32 + shift);
        let m = power.div_ceil(by.into());
        (m * u128::from(by) - power <= 1 << (32 + shift - bits)).then_some((u32::try_from(m).ok()?, shift))
    })
}

impl Code {
    /// Rewrites a division.
    fn divide_by(&mut self, inst: InstId, division: Division) {
        self.line = self.f[inst].line;
        let [d, a] = [Role::D, Role::A].each(|role| self.f.arg(inst, role));
        if division.bits == 64 {
            return self.divide_long_by(d, a, division);
        }
        let by = division.by as u32;
        let a = self.in_reg(a);
        match (division.signed, by.is_power_of_two()) {
            (false, true) if division.remainder => {
                let mask = self.imm(by - 1);
                self.and(d, a, mask);
            }
            (false, true) => self.shifted(d, &SHF_R_U32_HI, a, by.trailing_zeros()),
            (false, false) => self.unsigned_by(d, a, division),
            (true, true) => self.signed_by_power(d, a, division),
            (true, false) => self.signed_by(d, a, division),
        }
    }

    /// One word shifted right; a copy if `places` is 0.
    fn shifted(&mut self, d: Operand, mods: &[M], a: Operand, places: u32) {
        if places == 0 {
            return self.copy(d, a);
        }
        let amount = self.imm(places);
        self.shf(mods, d, Operand::zero(), amount, a);
    }

    /// Finishes the quotient, or computes the remainder from it.
    fn finish(&mut self, d: Operand, a: Operand, quotient: Operand, division: Division) {
        match (division.remainder, division.negative) {
            (true, _) => {
                // The quotient is by the magnitude; the remainder has the sign of the dividend.
                let by = self.imm((division.by as u32).wrapping_neg());
                self.imad(d, quotient, by, a);
            }
            (false, true) => self.add(d, quotient.negated(), Operand::zero()),
            (false, false) => self.copy(d, quotient),
        }
    }

    fn unsigned_by(&mut self, d: Operand, a: Operand, division: Division) {
        let (by, quotient, high) = (division.by as u32, self.temp(), self.temp());
        let zeros = by.trailing_zeros();
        if let Some((m, shift)) = reciprocal(by, division.bits) {
            self.high_by(high, U32, a, m);
            self.shifted(quotient, &SHF_R_U32_HI, high, shift);
        } else if let Some((m, shift)) = (zeros > 0).then(|| reciprocal(by >> zeros, 32 - zeros)).flatten() {
            let less = self.temp();
            self.shifted(less, &SHF_R_U32_HI, a, zeros);
            self.high_by(high, U32, less, m);
            self.shifted(quotient, &SHF_R_U32_HI, high, shift);
        } else {
            // The reciprocal has 33 bits. Its highest bit stands for the dividend itself, which is
            // added with both halved, so that no bit is lost.
            let shift = 32 - by.leading_zeros();
            let m = (1u128 << (32 + shift)).div_ceil(by.into()) - (1 << 32);
            let [rest, half, sum] = [(); 3].each(|()| self.temp());
            self.high_by(high, U32, a, m as u32);
            self.add(rest, a, high.negated());
            self.shifted(half, &SHF_R_U32_HI, rest, 1);
            self.add(sum, half, high);
            self.shifted(quotient, &SHF_R_U32_HI, sum, shift - 1);
        }
        self.finish(d, a, quotient, division);
    }

    /// The high word of a product with a constant.
    fn high_by(&mut self, d: Operand, sign: M, a: Operand, m: u32) {
        let m = self.imm(m);
        self.imad_high(d, sign, a, m);
    }

    fn signed_by(&mut self, d: Operand, a: Operand, division: Division) {
        // A magnitude that is no power of two has a 32-bit reciprocal for numbers below 2^31.
        let Some((m, shift)) = reciprocal(division.by as u32, 31) else { return };
        let [mut high, shifted, sign, quotient] = [(); 4].each(|()| self.temp());
        self.high_by(high, S32, a, m);
        if m >> 31 != 0 {
            // As a signed number the reciprocal is too small by 2^32.
            let more = self.temp();
            self.add(more, high, a);
            high = more;
        }
        self.shifted(shifted, &SHF_R_S32_HI, high, shift);
        self.shifted(sign, &SHF_R_U32_HI, a, 31);
        self.add(quotient, shifted, sign);
        self.finish(d, a, quotient, division);
    }

    /// Adds the divisor less one to negative dividends, so that the shift rounds towards zero.
    fn signed_by_power(&mut self, d: Operand, a: Operand, division: Division) {
        let places = (division.by as u32).trailing_zeros();
        if places == 0 {
            return self.finish(d, a, a, division);
        }
        let [sign, more, sum, quotient] = [(); 4].each(|()| self.temp());
        self.sign_word(sign, a);
        self.shifted(more, &SHF_R_U32_HI, sign, 32 - places);
        self.add(sum, a, more);
        if division.remainder {
            let (mask, whole) = (self.imm((division.by as u32).wrapping_neg()), self.temp());
            self.and(whole, sum, mask);
            self.add(d, a, whole.negated());
            return;
        }
        self.shifted(quotient, &SHF_R_S32_HI, sum, places);
        self.finish(d, a, quotient, division);
    }

    /// 64-bit division by powers of two.
    fn divide_long_by(&mut self, d: Operand, a: Operand, division: Division) {
        let (to, from, places) = (self.words(d), self.words(a), division.by.trailing_zeros());
        let mask = division.by - 1;
        let low_bits = |code: &mut Code, d: [Operand; 2], a: [Operand; 2], mask: u64| {
            let masks = [mask as u32, (mask >> 32) as u32].each(|word| code.imm(word));
            (0..2).for_each(|i| code.lop3(d[i], a[i], masks[i], Operand::zero(), LUT_AND));
        };
        let fresh = |code: &mut Code| code.temp_pair();
        if !division.signed {
            if division.remainder {
                return low_bits(self, to, from, mask);
            }
            return self.shifted_long(d, a, places, false);
        }
        let (sum, sign) = (fresh(self), self.temp());
        let sums = self.words(sum);
        self.sign_word(sign, from[1]);
        let more = [self.temp(), self.temp()];
        low_bits(self, more, [sign, sign], mask);
        self.add_long(sums, from, more, false);
        if division.remainder {
            let whole = [self.temp(), self.temp()];
            low_bits(self, whole, sums, !mask);
            return self.add_long(to, from, whole, true);
        }
        let quotient = if division.negative { fresh(self) } else { d };
        self.shifted_long(quotient, sum, places, true);
        if division.negative {
            let words = self.words(quotient);
            self.add_long(to, [Operand::zero(); 2], words, true);
        }
    }

    /// Two words shifted right; a copy if `places` is 0.
    fn shifted_long(&mut self, d: Operand, a: Operand, places: u32, signed: bool) {
        if places == 0 {
            return self.copy_value(d, a);
        }
        let amount = self.imm(places);
        self.shift_long(d, a, amount, false, signed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the bound of the theorem with the numbers next to multiples, where it would fail
    /// first.
    #[test]
    fn reciprocals_are_right_at_the_multiples() {
        for by in (2u32..3000).chain((0..2000).map(|i| u32::MAX - 7 * i)).filter(|by| !by.is_power_of_two()) {
            for bits in [16, 31, 32] {
                let Some((m, shift)) = reciprocal(by, bits) else {
                    assert_eq!(bits, 32, "{by}");
                    continue;
                };
                let last = ((1u64 << bits) - 1) / u64::from(by) * u64::from(by);
                for x in [1, by.into(), last, last.saturating_sub(1), (1 << bits) - 1] {
                    let x = x.min((1u64 << bits) - 1);
                    let high = (u128::from(x) * u128::from(m)) >> (32 + shift);
                    assert_eq!(high as u64, x / u64::from(by), "{x} by {by}");
                }
            }
        }
    }
}
