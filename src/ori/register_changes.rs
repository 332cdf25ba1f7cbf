//! The instructions that change the number of registers of a warp (`setmaxnreg`).

use super::{Block, Function, InstId};
use crate::sorted::SortedMap;
use crate::tables::{Op, Role};
use cranelift_entity::SecondaryMap;

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
        if function[inst].op != Op::SETMAXREG {
            return None;
        }
        let count = function.imm_value(function.arg(inst, Role::A))? as u32;
        Some(Change { count, takes: function.arg(inst, Role::Pu).as_reg().is_some() })
    }
}

/// All changes of a function.
pub fn changes(function: &Function) -> Vec<Change> {
    let insts = function.layout().iter().flat_map(|block| &function[*block]);
    insts.filter_map(|inst| Change::of(function, *inst)).collect()
}

/// The least number of registers that a function ever has; `None`: that of the target.
pub fn least(function: &Function) -> Option<u32> {
    let counts = changes(function).into_iter().map(|change| change.count);
    counts.chain(function.attributes().entry_registers).chain(function.attributes().max_registers).min()
}

/// The number at the start of each block: the least of its predecessors; at entry there are
/// `entry`.
pub fn at_starts(function: &Function, entry: u32) -> SecondaryMap<Block, Option<u32>> {
    let mut starts: SecondaryMap<Block, Option<u32>> = SecondaryMap::new();
    let mut waiting: Vec<Block> = function.layout().first().copied().into_iter().collect();
    waiting.iter().for_each(|first| starts[*first] = Some(entry));
    while let Some(block) = waiting.pop() {
        let insts = function[block].iter();
        let changed = insts.filter_map(|inst| Change::of(function, *inst)).next_back();
        let Some(end) = changed.map(|change| change.count).or(starts[block]) else { continue };
        for next in function.successors(block) {
            let least = starts[next].map_or(end, |old| old.min(end));
            if starts[next] != Some(least) {
                starts[next] = Some(least);
                waiting.push(next);
            }
        }
    }
    starts
}

/// The blocks by the number of registers that a warp has in them, the least inside of each; one
/// group, unless the function changes their number.
pub fn groups(function: &Function) -> Vec<(u32, Vec<Block>)> {
    let all = function.target().info().map_or(0, |info| info.reg_limit);
    let all = function.attributes().max_registers.map_or(all, |most| most.min(all));
    let Some(entry) = function.attributes().entry_registers else { return vec![(all, function.layout().to_vec())] };
    let starts = at_starts(function, entry);
    let mut groups: SortedMap<u32, Vec<Block>> = SortedMap::new();
    for block in function.layout() {
        let changes = function[*block].iter().filter_map(|inst| Change::of(function, *inst));
        let least = changes.map(|change| change.count).chain(starts[*block]).min().unwrap_or(entry);
        groups.entry(least.min(all)).or_default().push(*block);
    }
    groups.into_iter().collect()
}
