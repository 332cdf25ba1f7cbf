//! Places the words of 64-bit numbers beside each other where one operation on pairs can then do
//! what two operations on words do (`opt::wide_forms` makes it).
//!
//! Nothing depends on it: registers are joined only if no other position conflicts, after the
//! tuples that operands demand and after the copies. Numbers are known by the carry between two
//! sums or comparisons, and by a tuple: two selections by one predicate are the words of a number
//! if words that they read or write are beside each other already.

use super::bundles::Classes;
use crate::analysis::Loops;
use crate::arrays::Each;
use crate::ori::long::{carry_in, short_constant};
use crate::ori::{Function, InstId, Operand, VReg};
use crate::sorted::SortedMap;
use crate::tables::{Op, Role};
use smallvec::SmallVec;
use std::cmp::Reverse;

/// How often the operations are gone through: a pair found late shows others.
const ROUNDS: usize = 3;
/// Selections before one in its block among which its other word is sought.
const NEAR: usize = 6;
/// The words of the operands and of the result of an operation on pairs.
type Words = SmallVec<[[Operand; 2]; 3]>;

/// Joins the words of 64-bit numbers in pairs.
pub fn place(function: &Function, classes: &mut Classes, loops: &Loops) {
    let mut found = Vec::new();
    for block in function.layout() {
        let depth = Reverse(loops.depth(*block));
        let mut low: SortedMap<VReg, InstId> = SortedMap::new();
        let mut selections: Vec<InstId> = Vec::new();
        for inst in function[*block].iter().copied() {
            if let Some(first) = carry_in(function, inst).and_then(|carry| low.get(&carry.as_reg()?)) {
                found.push((depth, true, words(function, *first, inst)));
            }
            if let Some(carry) = function.arg(inst, Role::Pu).as_reg() {
                low.insert(carry, inst);
            }
            if function[inst].op == Op::SEL {
                let by = |inst: InstId| (function.arg(inst, Role::Pp), function[inst].guard);
                let like = selections.iter().rev().take(NEAR).filter(|other| by(**other) == by(inst));
                found.extend(like.map(|other| (depth, false, words(function, *other, inst))));
                selections.push(inst);
            }
        }
    }
    crate::sorted::by_key(&mut found, |(depth, ..)| *depth);
    for _ in 0..ROUNDS {
        let before = found.len();
        found.retain(|(_, known, words)| !join(function, classes, *known, words));
        if found.len() == before {
            break;
        }
    }
}

/// What two operations read and write, word beside word.
fn words(function: &Function, first: InstId, second: InstId) -> Words {
    let of = |role| [first, second].each(|inst| function.arg(inst, role));
    [Role::D, Role::A, Role::B].into_iter().map(of).filter(|words| !words[0].is_null()).collect()
}

/// Joins the words of one operation if all of them can be; false where a later round may do more.
fn join(function: &Function, classes: &mut Classes, known: bool, words: &Words) -> bool {
    let turned = |words: &Words| words.iter().map(|[one, two]| [*two, *one]).collect::<Words>();
    let words = match order(classes, words) {
        Some(true) => words.clone(),
        Some(false) if !known => turned(words),
        None if !known => return false,
        _ => words.clone(),
    };
    // A sum has a result; a word with zeros above it may be added to a pair.
    let sum = known && words.len() == Words::new().inline_size();
    let apart = words.iter().filter(|[low, high]| !may_stand(function, *low, *high));
    let added = |[low, high]: &[Operand; 2]| sum && low.as_reg().is_some() && *high == Operand::zero();
    if apart.clone().all(added) && apart.count() <= 1 {
        for [low, high] in words {
            if let (Some(low), Some(high)) = (low.as_reg(), high.as_reg())
                && !classes.join(function, &[low, high], 2)
            {
                break;
            }
        }
    }
    true
}

/// Whether the first words are the low ones, if words are beside each other already.
fn order(classes: &Classes, words: &Words) -> Option<bool> {
    words.iter().find_map(|[one, two]| {
        let (one, two) = (classes.find(one.as_reg()?)?, classes.find(two.as_reg()?)?);
        (one.0 == two.0 && (one.1 - two.1).abs() == 1).then_some(one.1 < two.1)
    })
}

/// Whether two words may be those of one operand: registers, or a constant that 32 bits and their
/// sign give.
fn may_stand(function: &Function, low_word: Operand, high_word: Operand) -> bool {
    match (low_word.as_reg(), high_word.as_reg()) {
        (Some(low), Some(high)) => low != high && function[low].file == function[high].file,
        (None, None) => short_constant(function, low_word, high_word).is_some(),
        _ => false,
    }
}
