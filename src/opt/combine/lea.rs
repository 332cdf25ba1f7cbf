//! Fuses a 64-bit sum with the left shift of one of its terms: LEA for the low words, LEA.HI.X for
//! the high ones.
//!
//! Neither instruction moves. A shift with other readers stays: it and its source would have to be
//! kept.

use super::long::{high_sum, low_sum};
use super::shift;
use crate::analysis::def_use::{DefUse, Fits, rewrite};
use crate::arrays::Each;
use crate::ori::{Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};

/// Fuses the sum whose high words an instruction adds; returns whether it did.
pub fn fuse(function: &mut Function, def_use: &mut DefUse, high: InstId, fits: Fits) -> bool {
    let Some(carry) = high_sum(function, high) else { return false };
    let Some(low) = def_use.single_use_def(function, carry).filter(|low| low_sum(function, *low)) else { return false };
    let words = |role| [low, high].each(|inst| function.arg(inst, role));
    let (x, y) = (words(Role::A), words(Role::B));
    for (term, other) in [(x, y), (y, x)] {
        let Some((source, count)) = shifted(function, def_use, term) else { continue };
        if other.iter().any(|word| *word != word.plain()) {
            continue;
        }
        let before = [low, high].each(|inst| (DefUse::reads(function, inst), function[inst]));
        let (d, count, carry) = (words_of(function, [low, high]), function.imm(count.into()), Operand::reg(carry));
        let both = [(Role::A, source[0]), (Role::Sh, count)];
        let first = [(Role::D, d[0]), (Role::Pu, carry), (Role::B, other[0])];
        let second = [(Role::D, d[1]), (Role::B, other[1]), (Role::C, source[1]), (Role::Pp, carry)];
        rewrite(function, low, Op::LEA, &[&both[..], &first].concat());
        rewrite(function, high, Op::LEA, &[&both[..], &second].concat());
        function[high].mods.set(Mod::Hi, value::hi::HI);
        function[high].mods.set(Mod::X, value::x::X);
        if fits(function, low) && fits(function, high) {
            for (inst, (reads, _)) in [low, high].into_iter().zip(before) {
                def_use.set_def(function, inst);
                def_use.update(function, inst, &reads);
            }
            return true;
        }
        (function[low], function[high]) = (before[0].1, before[1].1);
    }
    false
}

fn words_of(function: &Function, insts: [InstId; 2]) -> [Operand; 2] {
    insts.each(|inst| function.arg(inst, Role::D))
}

/// The words of the number that a pair shifts to the left, and by how many places.
fn shifted(function: &Function, def_use: &DefUse, term: [Operand; 2]) -> Option<([Operand; 2], u32)> {
    let [Some(low), Some(high)] = term.each(|word| {
        let reg = word.as_reg().filter(|_| word == word.plain())?;
        def_use.single_use_def(function, reg)
    }) else {
        return None;
    };
    shift::of_pair(function, def_use, low, high)
}
