//! Rules for commuting operands that the optimizer and operand legalization share; they do not
//! depend on the target.

use super::{Function, InstId};
use crate::tables::Role;

/// Whether a predicate result says which of two operands was chosen, so that they cannot be
/// swapped. Besides a sum it is the carry.
pub fn says_which(function: &Function, inst: InstId) -> bool {
    function.insts[inst].op.role_index(Role::C).is_none()
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
