//! Control words: stall counts, scoreboards and waits of allocated, scheduled instructions.

pub mod conservative;
pub mod control_words;
pub(crate) mod in_flight;
mod late_reads;
pub(crate) mod scoreboard_alloc;

use crate::ori::{Function, InstId};
use crate::tables::Op;

/// An ACQUIRE only waits, so with its control word it is a NOP.
fn written_as_nop(function: &mut Function, inst: InstId) {
    if function[inst].op == Op::ACQUIRE {
        function[inst].op = Op::NOP;
    }
}
