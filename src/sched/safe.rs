//! Phase ProcessO0WaitsAndSBs: control words that need no latency table.
//!
//! Input: instructions in physical registers. Output: each with the longest stall, its results announced by scoreboard 0 and
//! its late reads by scoreboard 1 where its latency is variable, and every instruction waiting for both. Invariant:
//! whatever the program, each instruction starts after everything before it has finished. Source: what ptxas does at -O0.

use crate::ori::Function;
use crate::ori::function::ControlWord;
use crate::tables::ori::Direction;
use crate::tables::{Op, Prop};

/// Longest stall that the field holds, in cycles.
const LONGEST: u8 = 15;
const RESULT: u8 = 0;
const READ: u8 = 1;
const NONE: u8 = 7;

pub fn run(function: &mut Function) {
    for block in function.layout.clone() {
        for inst in function.blocks[block].clone() {
            let op = function.insts[inst].op;
            let variable = op.has(Prop::VariableLatency) && !op.has(Prop::Control);
            let roles = op.info().roles;
            let some = |d: Direction| {
                roles.iter().zip(function.args(inst)).any(|(r, a)| r.direction == d && !a.is_null())
            };
            // A barrier or fence has no result, but what follows must wait until it is over.
            let result = variable && (some(Direction::Def) || !some(Direction::Use));
            let read = variable && some(Direction::Use);
            function.insts[inst].ctrl = ControlWord {
                stall: LONGEST,
                stay: false,
                write_bar: if result { RESULT } else { NONE },
                read_bar: if read { READ } else { NONE },
                wait: if op == Op::NOP { 0 } else { 1 << RESULT | 1 << READ },
            };
        }
    }
}
