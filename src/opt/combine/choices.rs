//! A comparison of a word that a predicate chose between two constants is that predicate, or its
//! opposite: as where a program makes a word of what `elect.sync` tells, and asks it at once.
//!
//! The word is made in the same block, so that the predicate lives no longer than the word did. The
//! comparison stays as a PLOP3, which copy propagation reads.

use super::predicates::is_comparison;
use crate::analysis::def_use::{DefUse, Fits, is_pure, rewrite};
use crate::arrays::Each;
use crate::ori::build::int::LUT_AND;
use crate::ori::commute::holds_of_words;
use crate::ori::{Block, Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};

/// What chooses between two constants, and both, the chosen one first.
type Choice = (Operand, [u32; 2]);

/// Turns a comparison of such a word with a constant into a PLOP3.
pub fn fold(function: &mut Function, def_use: &mut DefUse, (block, at): (Block, usize), fits: Fits) {
    let inst = function[block][at];
    let data = function[inst];
    if data.op != Op::ISETP || !is_pure(function, inst) || !is_comparison(function, inst) {
        return;
    }
    if data.mods.get(Mod::Ex) != value::ex::NONE {
        return;
    }
    let Some(bound) = def_use.known(function, function.arg(inst, Role::B)) else { return };
    let Some((predicate, words)) = choice(function, def_use, &function[block][..at], inst) else { return };
    let compare = |word| holds_of_words(&data.mods, word, bound);
    let [Some(first), Some(second)] = words.each(compare) else { return };
    if first == second {
        return;
    }
    let before = DefUse::reads(function, inst);
    let (d, lut, none) = (function.arg(inst, Role::Pu), function.imm(LUT_AND.into()), function.imm(0));
    let predicate = if first { predicate } else { predicate.inverted() };
    let always = Operand::always();
    let inputs = [(Role::Pa, predicate), (Role::Pb, always), (Role::Pc, always), (Role::Lut, lut), (Role::Lut2, none)];
    rewrite(function, inst, Op::PLOP3, &[&[(Role::Pu, d)], &inputs[..]].concat());
    if fits(function, inst) {
        def_use.update(function, inst, &before);
    } else {
        function[inst] = data;
    }
}

/// How the compared word was chosen, by one of these instructions before.
fn choice(function: &Function, def_use: &DefUse, insts: &[InstId], compare: InstId) -> Option<Choice> {
    let word = function.arg(compare, Role::A);
    let maker = def_use.definition(word.as_reg().filter(|_| word == word.plain())?)?;
    let data = &function[maker];
    let known = |operand| def_use.known(function, operand);
    let (predicate, chosen, other) = match (data.op, function.olds(maker)) {
        (Op::SEL, []) if data.guard.is_null() => {
            (function.arg(maker, Role::Pp), function.arg(maker, Role::A), function.arg(maker, Role::B))
        }
        (Op::MOV, [old]) if function.arg(maker, Role::Lanes).is_null() => {
            (data.guard, function.arg(maker, Role::A), *old)
        }
        _ => return None,
    };
    let both = [known(chosen)?, known(other)?];
    // The nearest definitions are asked first.
    (predicate.as_reg().is_some() && insts.iter().rev().any(|inst| *inst == maker)).then_some((predicate, both))
}
