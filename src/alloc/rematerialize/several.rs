//! Registers with several definitions, of which candidates for rematerialization read one.
//!
//! Such a register has the same value behind a candidate as in it if control comes from the
//! candidate's block to none of its definitions.

use super::Places;
use super::candidates::Definition;
use crate::analysis::def_use::is_free;
use crate::ori::cfg::{BlockSet, reach};
use crate::ori::{Block, File, Function, VReg};
use cranelift_entity::SecondaryMap;

/// Most blocks of which it is asked where control goes from there: more are taken to lead to
/// definitions.
const ASKED: u32 = 64;

/// Registers with several definitions.
#[derive(Default)]
pub struct Several {
    /// The blocks that define each of them, sorted.
    homes: Vec<(VReg, Block)>,
    /// A block, and those that control comes to from its end.
    behind: Option<(Block, BlockSet)>,
    asked: u32,
}

impl Several {
    /// Those of a function; none where no anchor may be one.
    pub fn of(function: &Function, places: &Places, definition: &SecondaryMap<VReg, Definition>) -> Several {
        let mut homes = Vec::new();
        for block in places.cfg.rpo.iter().filter(|_| places.exchanged) {
            for inst in &function[*block] {
                function.for_each_def(*inst, |reg| {
                    let anchors = function[reg].file == File::R && is_free(function, reg);
                    homes.extend((anchors && definition[reg] == Definition::Many).then_some((reg, *block)));
                });
            }
        }
        homes.sort_unstable();
        homes.dedup();
        Several { homes, ..Several::default() }
    }

    /// Whether control comes from a block to none of the definitions of a register.
    pub fn are_over(&mut self, function: &Function, places: &Places, reg: VReg, block: Block) -> bool {
        let first = self.homes.partition_point(|(other, _)| *other < reg);
        let homes = self.homes[first..].iter().take_while(|(other, _)| *other == reg);
        if self.behind.as_ref().is_none_or(|(of, _)| *of != block) {
            if self.asked == ASKED {
                return false;
            }
            self.asked += 1;
            let limit = function.block_limit();
            let mut set = BlockSet::new(limit);
            for block in reach(places.cfg, &places.cfg.succs[block], None, limit) {
                set.insert(block);
            }
            self.behind = Some((block, set));
        }
        let behind = &self.behind;
        let over = |home: Block| home != block && behind.as_ref().is_some_and(|(_, set)| !set.contains(home));
        let mut any = false;
        homes.inspect(|_| any = true).all(|(_, home)| over(*home)) && any
    }
}
