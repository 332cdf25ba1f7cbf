//! Joins the same operation on the two halves of a word into one on both (in GeneralOptimize): the
//! SLP vectorization of half arithmetic, as ptxas has it.
//!
//! `x * s` and `(x >> 16) * s`, of which only the low halves are read, become one product of both
//! halves of `x` with the low half of `s`, and a shift to the right of its result. The shift of `x`
//! is left to DCE, that of the result to the reader, if it is a move of bytes. Selects between the
//! halves of two words, or a half and a constant, by one predicate become a select between words.
//! An operation whose lower half alone is read takes a half of a word from where it stands, by
//! H1_H1 or as the lower half.

use super::demanded_bits::demand;
use crate::analysis::PassCx;
use crate::analysis::bit_flow::bytes;
use crate::analysis::def_use::{DefUse, Fits, is_free, is_pure, rewrite};
use crate::opt::combine::half_of;
use crate::ori::mods::SHF_R_U32_HI;
use crate::ori::operand::Kind;
use crate::ori::{Block, Function, InstId, Operand, VReg};
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

/// Operations on halves between two that are joined.
const WINDOW: usize = 64;
const HIGH_HALF: u32 = 0xffff_0000;
const OPERANDS: [(Role, Mod, u8, u8); 3] = [
    (Role::A, Mod::SwzA, value::swz_a::H0_H0, value::swz_a::H1_H1),
    (Role::B, Mod::SwzB, value::swz_b::H0_H0, value::swz_b::H1_H1),
    (Role::C, Mod::SwzC, value::swz_c::H0_H0, value::swz_c::H1_H1),
];

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let def_use = cx.def_use();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    let joins = |inst: &InstId| is_half(function, *inst) && of_high_half(function, &def_use, *inst);
    if !cfg.rpo.iter().any(|block| function[*block].iter().any(joins)) {
        cx.unchanged = true;
        return;
    }
    let insts: Vec<InstId> = cfg.rpo.iter().flat_map(|block| function[*block].iter().copied()).collect();
    let demand = demand::run(function, &insts);
    for block in &cfg.rpo {
        Joiner { function, def_use: &def_use, demand: &demand, fits }.block(*block);
    }
}

/// An operation on two halves without swizzles, or on all bits alike.
fn is_half(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let swizzled = [Mod::SwzA, Mod::SwzB, Mod::SwzC].into_iter().any(|kind| data.mods.get(kind) != 0);
    (data.op.has(Prop::HalfPair) || data.op == Op::SEL) && is_pure(function, inst) && !swizzled
}

/// Whether an operand is the upper half of a register.
fn of_high_half(function: &Function, def_use: &DefUse, inst: InstId) -> bool {
    OPERANDS.iter().any(|(role, ..)| operand(function, inst, *role).and_then(|o| whole(function, def_use, o)).is_some())
}

fn operand(function: &Function, inst: InstId, role: Role) -> Option<Operand> {
    function[inst].op.role_index(role).map(|_| function.arg(inst, role))
}

/// The register of which an operand is the upper half, with the operand's sign.
fn whole(function: &Function, def_use: &DefUse, operand: Operand) -> Option<Operand> {
    let reg = half_of(function, def_use, operand.plain())?.as_reg()?;
    Some(operand.with_reg(reg))
}

/// The register that has the same lower half as an operand, with the operand's sign.
fn lower(function: &Function, def_use: &DefUse, operand: Operand) -> Option<Operand> {
    let maker = def_use.def_of(function, operand.as_reg()?).filter(|inst| function[*inst].op == Op::PRMT)?;
    let (word, same) = (function.arg(maker, Role::A), bytes(function, maker)?[..2] == [0, 1]);
    let reg = word.as_reg().filter(|reg| same && word == word.plain() && is_free(function, *reg))?;
    Some(operand.with_reg(reg))
}

struct Joiner<'a> {
    function: &'a mut Function,
    def_use: &'a DefUse,
    demand: &'a SecondaryMap<VReg, u32>,
    fits: Fits<'a>,
}

impl Joiner<'_> {
    fn block(&mut self, block: Block) {
        let function = &*self.function;
        let low =
            |inst: &InstId| function.arg(*inst, Role::D).as_reg().is_some_and(|d| self.demand[d] & HIGH_HALF == 0);
        let halves: Vec<InstId> =
            function[block].iter().filter(|inst| is_half(function, **inst) && low(inst)).copied().collect();
        let mut joined = vec![false; halves.len()];
        // An operation on the low halves and the one on the upper halves before which it moves.
        let mut moved: Vec<(InstId, InstId)> = Vec::new();
        for (at, high) in halves.iter().enumerate() {
            if joined[at] || !of_high_half(self.function, self.def_use, *high) {
                continue;
            }
            let near = at.saturating_sub(WINDOW)..halves.len().min(at + WINDOW);
            let found =
                near.into_iter().find(|other| *other != at && !joined[*other] && self.join(halves[*other], *high));
            if let Some(other) = found {
                (joined[at], joined[other]) = (true, true);
                if other > at {
                    moved.push((halves[other], *high));
                }
            }
        }
        for (low, high) in moved {
            let insts = &mut self.function[block];
            insts.retain(|inst| *inst != low);
            if let Some(at) = insts.iter().position(|inst| *inst == high) {
                insts.insert(at, low);
            }
        }
        let alone = halves.iter().zip(&joined).filter(|(_, joined)| !**joined).map(|(inst, _)| *inst);
        alone.collect::<Vec<InstId>>().into_iter().for_each(|inst| self.take_halves(inst));
    }

    /// Makes operands of an operation on low halves halves of words.
    fn take_halves(&mut self, inst: InstId) {
        if !self.function[inst].op.has(Prop::HalfPair) {
            return;
        }
        for (role, swizzle, _, high) in OPERANDS {
            let function = &mut *self.function;
            let Some(before) = operand(function, inst, role) else { continue };
            let upper = whole(function, self.def_use, before);
            let Some(word) = upper.or_else(|| lower(function, self.def_use, before)) else { continue };
            function.set_arg(inst, role, word);
            let select = if upper.is_some() { high } else { 0 };
            function[inst].mods.set(swizzle, select);
            if !(self.fits)(function, inst) {
                function.set_arg(inst, role, before);
                function[inst].mods.set(swizzle, 0);
            }
        }
    }

    /// Makes `low` the operation on both halves and `high` the shift of its result, if they are the
    /// same operation on the halves of the same registers.
    fn join(&mut self, low: InstId, high: InstId) -> bool {
        let function = &mut *self.function;
        let (one, two) = (function[low], function[high]);
        if one.op != two.op || one.mods != two.mods || one.contract != two.contract {
            return false;
        }
        let (d, result) = (function.arg(high, Role::D), function.arg(low, Role::D));
        let both = result.as_reg().zip(d.as_reg()).filter(|(y, x)| is_free(function, *x) && is_free(function, *y));
        let done = both.is_some() && if one.op == Op::SEL { self.select(low, high) } else { self.swizzle(low, high) };
        if !done {
            return false;
        }
        let function = &mut *self.function;
        let count = function.imm(16);
        let args = [(Role::D, d), (Role::A, Operand::zero()), (Role::B, count), (Role::C, result)];
        rewrite(function, high, Op::SHF, &args);
        SHF_R_U32_HI.iter().for_each(|(kind, value)| function[high].mods.set(*kind, *value));
        true
    }

    /// Makes arithmetic on the low halves that on both, if that of the upper halves is the same.
    fn swizzle(&mut self, low: InstId, high: InstId) -> bool {
        let function = &mut *self.function;
        let before = function[low].mods;
        let mut mods = before;
        for (role, swizzle, both, _) in OPERANDS {
            let (Some(x), Some(y)) = (operand(function, low, role), operand(function, high, role)) else { continue };
            match whole(function, self.def_use, y) {
                Some(whole) if whole == x => {}
                _ if x != y => return false,
                _ if matches!(x.kind(), Kind::Zero) || x.is_null() => {}
                _ if x.as_reg().is_some() => mods.set(swizzle, both),
                _ => return false,
            }
        }
        function[low].mods = mods;
        let fit = (self.fits)(function, low);
        if !fit {
            function[low].mods = before;
        }
        fit
    }

    /// Makes a select between low halves one between words, if that of the upper halves is the
    /// same.
    fn select(&mut self, low: InstId, high: InstId) -> bool {
        let function = &mut *self.function;
        if function.arg(low, Role::Pp) != function.arg(high, Role::Pp) {
            return false;
        }
        let mut words = [Operand::zero(); 2];
        for (word, role) in words.iter_mut().zip([Role::A, Role::B]) {
            let (x, y) = (function.arg(low, role), function.arg(high, role));
            let half = |operand| self.def_use.known(function, operand).map(|bits| bits & !HIGH_HALF);
            *word = match (half(x), half(y)) {
                (Some(0), Some(0)) => Operand::zero(),
                (Some(x), Some(y)) if x == y => function.imm((x << 16 | x).into()),
                _ if whole(function, self.def_use, y) == Some(x) => x,
                _ => return false,
            };
        }
        function.set_arg(low, Role::A, words[0]);
        function.set_arg(low, Role::B, words[1]);
        true
    }
}
