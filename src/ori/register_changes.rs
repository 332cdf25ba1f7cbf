//! The instructions that change the number of registers of a warp (`setmaxnreg`).

use super::{Function, InstId};
use crate::tables::{Op, Role};

/// An instruction that changes the number of registers.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The number from there on.
    pub count: u32,
    /// Whether it takes registers.
    pub takes: bool,
}

impl Change {
    /// What an instruction does; `None` if it changes nothing.
    pub fn of(function: &Function, inst: InstId) -> Option<Change> {
        if function.insts[inst].op != Op::SETMAXREG {
            return None;
        }
        let count = function.imm_value(function.arg(inst, Role::A))? as u32;
        Some(Change { count, takes: function.arg(inst, Role::Pu).as_reg().is_some() })
    }
}

/// All changes of a function.
pub fn changes(function: &Function) -> Vec<Change> {
    let insts = function.layout.iter().flat_map(|block| &function.blocks[*block]);
    insts.filter_map(|inst| Change::of(function, *inst)).collect()
}

/// The least number of registers that a function ever has; `None`: that of the target.
pub fn least(function: &Function) -> Option<u32> {
    let counts = changes(function).into_iter().map(|change| change.count);
    counts.chain(function.entry_registers).chain(function.max_registers).min()
}
