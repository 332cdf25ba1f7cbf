//! Sums of 64 bits in two words: fuses them with a product or another sum, and adds their
//! constants.
//!
//! The low words are added first and leave a carry, which the sum of the high words reads; each
//! function starts at that one.

use super::fuse::all_free;
use super::shift;
use crate::analysis::def_use::{DefUse, Fits, is_free, rewrite};
use crate::arrays::Each;
use crate::ori::operand::Kind;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::{Mod, Mods, Op, Role, value};

/// Fuses a 64-bit sum with a 64-bit product, at the instruction that adds the high words. Returns
/// the instruction that added the low words, to be removed.
pub fn wide(function: &mut Function, def_use: &mut DefUse, block: Block, at: usize, fits: Fits) -> Option<InstId> {
    let high = function[block][at];
    let carry = high_sum(function, high)?;
    let low = def_use.single_use_def(function, carry).filter(|l| low_sum(function, *l))?;
    let from = function[block][..at].iter().rposition(|i| *i == low)?;
    let d = function.arg(low, Role::D).as_reg()?;
    let mut read = false;
    for inst in &function[block][from + 1..at] {
        function.for_each_use(*inst, |reg| read |= reg == d);
    }
    let operands = |role| (function.arg(low, role), function.arg(high, role));
    let (x, y) = (operands(Role::A), operands(Role::B));
    if read {
        return None;
    }
    // The one that nothing else reads is gone then.
    let uses = |(_, high): (Operand, Operand)| high.as_reg().map_or(0, |reg| def_use.uses(reg));
    let (x, y) = if uses(y) < uses(x) { (y, x) } else { (x, y) };
    for (product, addend) in [(x, y), (y, x)] {
        let (Some(p), Some(a)) = (pair(function, product), pair(function, addend)) else { continue };
        let Some((fa, fb, mods)) = wide_factors(function, def_use, p) else { continue };
        let before = [DefUse::reads(function, low), DefUse::reads(function, high)].concat();
        let (d, c) = ([d, function.arg(high, Role::D).as_reg()?], function.vector(&a));
        let (d, old) = (function.vector(&d), function[high]);
        let args = [(Role::D, Operand::vector(d)), (Role::A, fa), (Role::B, fb), (Role::C, Operand::vector(c))];
        rewrite(function, high, Op::IMAD_WIDE, &args);
        function[high].mods = mods;
        if fits(function, high) {
            def_use.set_def(function, high);
            // What the low sum reads is given up here, also where nothing reads its word.
            def_use.forget(carry);
            def_use.update(function, high, &before);
            return Some(low);
        }
        function[high] = old;
    }
    None
}

/// Factors and modifiers of a 64-bit product without addend, or of a word that a shift extends by
/// its sign, which is the product with one. A product with other uses is recomputed, which costs no
/// more than the sum.
fn wide_factors(function: &mut Function, def_use: &DefUse, result: [VReg; 2]) -> Option<(Operand, Operand, Mods)> {
    let high = def_use.def_of(function, result[1])?;
    if shift::sign_of(function, def_use, high) == Some(Operand::reg(result[0])) {
        return Some((Operand::reg(result[0]), function.imm(1), Mods::default()));
    }
    let inst = def_use.def_of(function, result[0])?;
    if inst != high {
        let (x, places, signed) = shift::scaled(function, def_use, inst, high)?;
        let sign = if signed { value::sign::NONE } else { value::sign::U32 };
        return Some((x, function.imm(1 << places), Mods::default().with(Mod::Sign, sign)));
    }
    let made = function.arg(inst, Role::D).as_vector().map(|v| function.vector_regs(v) == result);
    let data = function[inst];
    let alone = data.op == Op::IMAD_WIDE && made == Some(true) && function.arg(inst, Role::C) == Operand::zero();
    let (a, b) = (function.arg(inst, Role::A), function.arg(inst, Role::B));
    (alone && all_free(function, &[a, b])).then_some((a, b, data.mods))
}

/// Fuses a 64-bit sum into another 64-bit sum, its single use, at the instruction that adds the
/// high words: one three-input sum with two carries.
pub fn long_sum(function: &mut Function, def_use: &mut DefUse, high: InstId, fits: Fits) -> bool {
    let Some(carry) = high_sum(function, high) else { return false };
    let Some(low) = def_use.single_use_def(function, carry).filter(|l| low_sum(function, *l)) else { return false };
    let operands = |role| [function.arg(low, role), function.arg(high, role)];
    let (x, y) = (operands(Role::A), operands(Role::B));
    for (inner, other) in [(x, y), (y, x)] {
        let Some(p) = pair(function, (inner[0], inner[1])) else { continue };
        let makers = p.each(|reg| def_use.single_use_def(function, reg));
        let [Some(low_inner), Some(high_inner)] = makers else { continue };
        let Some(carried) = high_sum(function, high_inner) else { continue };
        if def_use.single_use_def(function, carried) != Some(low_inner) || !low_sum(function, low_inner) {
            continue;
        }
        let parts = |inst| [Role::A, Role::B].each(|role| function.arg(inst, role));
        let (Some(l), Some(h)) =
            (three(function, other[0], parts(low_inner)), three(function, other[1], parts(high_inner)))
        else {
            continue;
        };
        let before = [low, high].each(|inst| (DefUse::reads(function, inst), function[inst]));
        let second = Operand::reg(function.new_reg(File::P));
        let d = [low, high].each(|inst| function.arg(inst, Role::D));
        let carry = Operand::reg(carry);
        rewrite(function, low, Op::IADD3, &[(Role::D, d[0]), (Role::Pu, carry), (Role::Pv, second)]);
        rewrite(function, high, Op::IADD3, &[(Role::D, d[1]), (Role::Pp, carry), (Role::Pq, second)]);
        function[high].mods.set(Mod::X, value::x::X);
        for (inst, words) in [(low, l), (high, h)] {
            [Role::A, Role::B, Role::C].into_iter().zip(words).for_each(|(r, o)| function.set_arg(inst, r, o));
        }
        if fits(function, low) && fits(function, high) {
            def_use.set_def(function, low);
            def_use.update(function, low, &before[0].0);
            def_use.update(function, high, &before[1].0);
            return true;
        }
        (function[low], function[high]) = (before[0].1, before[1].1);
    }
    false
}

/// Adds two constants that are added to a 64-bit value one behind the other, at the instruction
/// that adds the high words, if nothing else reads the value between. Returns whether it did.
pub fn long_constants(function: &mut Function, def_use: &mut DefUse, high: InstId, fits: Fits) -> bool {
    let Some(carry) = high_sum(function, high) else { return false };
    let Some(low) = def_use.single_use_def(function, carry).filter(|l| low_sum(function, *l)) else { return false };
    let Some(regs) = pair(function, (function.arg(low, Role::A), function.arg(high, Role::A))) else { return false };
    if regs.iter().any(|reg| def_use.single_use_def(function, *reg).is_none()) {
        return false;
    }
    let word = |inst| def_use.known(function, function.arg(inst, Role::B)).map(u64::from);
    let (Some(x), Some(y)) = (word(low), word(high)) else { return false };
    let Some((base, bytes)) = long_offset(function, def_use, &regs) else { return false };
    let sum = (y << 32 | x).wrapping_add(bytes);
    let before = [low, high].each(|inst| DefUse::reads(function, inst));
    let old = [low, high].each(|inst| [Role::A, Role::B].each(|role| function.arg(inst, role)));
    for (inst, base, word) in [(low, base[0], sum as u32), (high, base[1], (sum >> 32) as u32)] {
        let word = if word == 0 { Operand::zero() } else { function.imm(word.into()) };
        function.set_arg(inst, Role::A, Operand::reg(base));
        function.set_arg(inst, Role::B, word);
    }
    if fits(function, low) && fits(function, high) {
        def_use.update(function, low, &before[0]);
        def_use.update(function, high, &before[1]);
        return true;
    }
    for (inst, [a, b]) in [low, high].into_iter().zip(old) {
        function.set_arg(inst, Role::A, a);
        function.set_arg(inst, Role::B, b);
    }
    false
}

/// The 64-bit value to which a constant was added to make a pair of registers, and the constant.
pub fn long_offset(function: &Function, def_use: &DefUse, regs: &[VReg]) -> Option<([VReg; 2], u64)> {
    let [low, high] = regs else { return None };
    let (low_sum_at, high_sum_at) = (def_use.def_of(function, *low)?, def_use.def_of(function, *high)?);
    let carry = high_sum(function, high_sum_at)?;
    if def_use.def_of(function, carry) != Some(low_sum_at) || !low_sum(function, low_sum_at) {
        return None;
    }
    let result = |inst, reg: VReg| function.arg(inst, Role::D) == Operand::reg(reg);
    let made = result(low_sum_at, *low) && result(high_sum_at, *high);
    let carries = function.arg(low_sum_at, Role::Pu) == Operand::reg(carry);
    let word = |inst| def_use.known(function, function.arg(inst, Role::B)).map(u64::from);
    let bytes = word(high_sum_at)? << 32 | word(low_sum_at)?;
    let base = |inst| {
        let operand = function.arg(inst, Role::A);
        operand.as_reg().filter(|r| operand == operand.plain() && is_free(function, *r))
    };
    let base = [base(low_sum_at)?, base(high_sum_at)?];
    (made && carries).then_some((base, bytes))
}

/// Three terms of a sum without modifiers, with a constant in the middle.
fn three(function: &Function, one: Operand, [two, three]: [Operand; 2]) -> Option<[Operand; 3]> {
    let mut terms = [one, two, three];
    let simple = |o: &Operand| *o == o.plain() && matches!(o.kind(), Kind::Reg(_) | Kind::Imm(_) | Kind::Zero);
    let immediates = terms.iter().filter(|o| matches!(o.kind(), Kind::Imm(_))).count();
    if !terms.iter().all(simple) || immediates > 1 || !all_free(function, &terms) {
        return None;
    }
    if let Some(at) = terms.iter().position(|o| matches!(o.kind(), Kind::Imm(_))) {
        terms.swap(at, 1);
    }
    Some(terms)
}

/// Two general registers without fixed places.
fn pair(function: &Function, (low, high): (Operand, Operand)) -> Option<[VReg; 2]> {
    let regs = [low.as_reg()?, high.as_reg()?];
    let plain = low == low.plain() && high == high.plain() && regs[0] != regs[1];
    let general = |r: &VReg| is_free(function, *r) && function[*r].file == File::R;
    (plain && regs.iter().all(general)).then_some(regs)
}

/// The carry of an unguarded sum of high words with a single carry.
pub fn high_sum(function: &Function, inst: InstId) -> Option<VReg> {
    let data = &function[inst];
    if data.op != Op::IADD3 {
        return None;
    }
    let carry = function.arg(inst, Role::Pp);
    let other = function.arg(inst, Role::Pq);
    let alone = data.guard.is_null()
        && data.mods.get(Mod::X) == value::x::X
        && [Role::Pu, Role::Pv].into_iter().all(|r| function.arg(inst, r).is_null())
        && (other.is_null() || other == Operand::never())
        && carry == carry.plain()
        && function.arg(inst, Role::C) == Operand::zero();
    carry.as_reg().filter(|_| alone)
}

/// Whether an instruction is an unguarded sum of two words with one carry-out and no carry-in.
pub fn low_sum(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    data.op == Op::IADD3
        && data.guard.is_null()
        && data.mods.get(Mod::X) != value::x::X
        && [Role::Pv, Role::Pp, Role::Pq].into_iter().all(|r| function.arg(inst, r).is_null())
        && function.arg(inst, Role::C) == Operand::zero()
}
