//! Rules for commuting operands and turning comparisons that the optimizer and operand legalization
//! share; they do not depend on the target.

use super::{Function, InstId};
use crate::tables::{Mod, Mods, Role, value};
use std::cmp::Ordering;

/// Whether a predicate result says which of two operands was chosen, so that they cannot be
/// swapped. Besides a sum it is the carry.
pub fn says_which(function: &Function, inst: InstId) -> bool {
    function[inst].op.role_index(Role::C).is_none()
        && [Role::Pu, Role::Pv].into_iter().any(|role| !function.arg(inst, role).is_null())
}

/// The truth table of three inputs after reordering its first inputs: input `i` was `from[i]`. The
/// first input is the highest bit of an index.
pub fn table_in_order(old: u64, from: &[usize]) -> u64 {
    let place = |at: usize| 2 - at;
    (0..8u64).fold(0, |new, index| {
        let mut was = if from.len() == 2 { index & 1 } else { 0 };
        for (now, before) in from.iter().enumerate() {
            was |= (index >> place(now) & 1) << place(*before);
        }
        new | (old >> was & 1) << index
    })
}

/// Comparisons with the one that is true for exchanged operands; all others are symmetric.
const MIRRORED: [(u8, u8); 4] = [
    (value::cmp::LT, value::cmp::GT),
    (value::cmp::LE, value::cmp::GE),
    (value::cmp::LTU, value::cmp::GTU),
    (value::cmp::LEU, value::cmp::GEU),
];

/// Comparisons of integers, each with the one that is true where it is false.
const INVERTED: [(u8, u8); 3] =
    [(value::cmp::LT, value::cmp::GE), (value::cmp::LE, value::cmp::GT), (value::cmp::EQ, value::cmp::NE)];

/// The same of floats: of a pair one is true where an operand is NaN.
const INVERTED_FLOAT: [(u8, u8); 7] = [
    (value::cmp::LT, value::cmp::GEU),
    (value::cmp::LE, value::cmp::GTU),
    (value::cmp::GT, value::cmp::LEU),
    (value::cmp::GE, value::cmp::LTU),
    (value::cmp::EQ, value::cmp::NEU),
    (value::cmp::NE, value::cmp::EQU),
    (value::cmp::NUM, value::cmp::NAN),
];

/// The comparison that is true for exchanged operands.
pub fn mirrored(cmp: u8) -> u8 {
    partner(&MIRRORED, cmp).unwrap_or(cmp)
}

/// The comparison that is true where this one is false; `None` for what is always true or false.
pub fn inverted(cmp: u8, float: bool) -> Option<u8> {
    partner(if float { &INVERTED_FLOAT } else { &INVERTED }, cmp)
}

/// Whether a comparison of two words with these modifiers holds, as [`holds`] says.
pub fn holds_of_words(mods: &Mods, a: u32, b: u32) -> Option<bool> {
    let order = match mods.get(Mod::Sign) {
        value::sign::U32 => a.cmp(&b),
        _ => (a as i32).cmp(&(b as i32)),
    };
    holds(mods.get(Mod::Cmp), order)
}

/// Whether a comparison of integers holds; `None` for what is always true or false.
pub fn holds(cmp: u8, order: Ordering) -> Option<bool> {
    Some(match cmp {
        value::cmp::LT => order.is_lt(),
        value::cmp::EQ => order.is_eq(),
        value::cmp::LE => order.is_le(),
        value::cmp::GT => order.is_gt(),
        value::cmp::NE => order.is_ne(),
        value::cmp::GE => order.is_ge(),
        _ => return None,
    })
}

fn partner(pairs: &[(u8, u8)], cmp: u8) -> Option<u8> {
    pairs.iter().find_map(|(one, two)| match cmp {
        _ if cmp == *one => Some(*two),
        _ if cmp == *two => Some(*one),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_their_inputs() {
        let (a, b, c) = (0xf0, 0xcc, 0xaa);
        assert_eq!(table_in_order(a & !b | c, &[1, 0]), b & !a & 0xff | c);
        assert_eq!(table_in_order(a & !b, &[2, 0, 1]), b & !c & 0xff);
        assert_eq!(table_in_order(0x96, &[1, 2, 0]), 0x96);
    }
}
