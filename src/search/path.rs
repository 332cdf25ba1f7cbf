//! The path that a warp is expected to take through finished code.
//!
//! A loop is run [`TURNS`] times, and left by the first branch that leaves it then. Of two arms
//! each is taken as often as the other, the one without a branch first: that is also how a guard of
//! a whole kernel is passed. Guarded exits are not taken. The same rules for all codes of a
//! function make their times comparable; how often a loop really turns is not known.

use crate::pipeline::emit::{BranchTable, WORD};
use crate::sass::flow::leaves_under_guard;
use crate::sass::{ArgKind, Inst};
use crate::sorted::SortedMap;
use crate::tables::{Op, Prop, Role};

/// Turns of a loop, each time that control comes to it.
const TURNS: u32 = 6;
/// Instructions of a path.
const MOST: usize = 1 << 13;

/// One step of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It issues the instruction of this index.
    Issue(u32),
    /// It waits for the other warps of its block.
    Meet,
}

/// The path through the instructions, with what their tables of branches lead to.
pub fn of(insts: &[Option<Inst>], tables: &[BranchTable]) -> Vec<Step> {
    let mut walk = Walk { insts, loops: loops(insts), visits: vec![0; insts.len()], steps: Vec::new() };
    let tables: SortedMap<usize, &BranchTable> = tables.iter().map(|table| (index(table.at.into()), table)).collect();
    let mut at = 0;
    while let Some(Some(inst)) = insts.get(at).filter(|_| walk.steps.len() < MOST) {
        walk.steps.push(Step::Issue(at as u32));
        if inst.op.has(Prop::AwaitsLanes) && inst.op.has(Prop::WholeWarp) {
            walk.steps.push(Step::Meet);
        }
        let next = match tables.get(&at) {
            Some(table) => walk.indirect(at, table),
            None => walk.next(at, inst),
        };
        let Some(next) = next else { break };
        at = next;
    }
    walk.steps
}

struct Walk<'a> {
    insts: &'a [Option<Inst>],
    loops: Vec<(usize, usize)>,
    /// How often each branch has been asked since its loop was entered.
    visits: Vec<u32>,
    steps: Vec<Step>,
}

impl Walk<'_> {
    /// Where control goes from an instruction; none where it ends.
    fn next(&mut self, at: usize, inst: &Inst) -> Option<usize> {
        let always = !inst.is_guarded() && leaves_under_guard(inst);
        if inst.op == Op::BRA {
            let target = target(self.insts, at, inst)?;
            return Some(if self.takes(at, target, always) { target } else { at + 1 });
        }
        (!(always && inst.op.has(Prop::Leaves))).then_some(at + 1)
    }

    /// Whether a branch is taken.
    fn takes(&mut self, at: usize, target: usize, always: bool) -> bool {
        let around =
            self.loops.iter().filter(|(from, to)| (*from..=*to).contains(&at)).min_by_key(|(from, to)| to - from);
        let leaves = around.is_some_and(|(from, to)| !(*from..=*to).contains(&target));
        self.visits[at] += 1;
        let taken = if target <= at {
            always || self.visits[at] < TURNS
        } else if leaves {
            always || self.visits[at] >= TURNS
        } else {
            always || self.visits[at].is_multiple_of(2)
        };
        let left = around.filter(|_| leaves == taken && (leaves || target <= at)).copied();
        if let Some((from, to)) = left {
            self.visits[from..=to].fill(0);
        }
        taken
    }

    /// The next target of a table.
    fn indirect(&mut self, at: usize, table: &BranchTable) -> Option<usize> {
        let place = self.visits[at] as usize % table.targets.len().max(1);
        self.visits[at] += 1;
        table.targets.get(place).map(|offset| index(*offset))
    }
}

/// The loops: from the target of a branch back to the last one to it.
fn loops(insts: &[Option<Inst>]) -> Vec<(usize, usize)> {
    let mut loops: SortedMap<usize, usize> = SortedMap::new();
    for (at, inst) in insts.iter().enumerate() {
        let branch = inst.as_ref().filter(|inst| inst.op == Op::BRA);
        // A branch to itself is what follows the code of a function.
        if let Some(to) = branch.and_then(|inst| target(insts, at, inst)).filter(|to| *to < at) {
            loops.insert(to, at);
        }
    }
    loops.into_iter().collect()
}

fn target(insts: &[Option<Inst>], at: usize, inst: &Inst) -> Option<usize> {
    let label = inst.arg(Role::Target);
    let to = ((at as u64 + 1) * WORD).wrapping_add(label.val);
    (label.kind == ArgKind::Label && index(to) < insts.len()).then(|| index(to))
}

fn index(offset: u64) -> usize {
    (offset / WORD) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass::parse;
    use crate::tables::Target;

    /// The indices on the path through these lines; meetings are `None`.
    fn path(lines: &[&str]) -> Vec<Option<u32>> {
        let target = Target::by_name("sm_80").unwrap();
        let label = |name: &str| name.strip_prefix('L').and_then(|at| at.parse::<u64>().ok()).map(|at| at * WORD);
        let insts: Vec<Option<Inst>> = lines
            .iter()
            .zip(0..)
            .map(|(line, at)| Some(parse(target, line, at * WORD, Some(&label)).unwrap_or_else(|e| panic!("{e}"))))
            .collect();
        let step = |step| if let Step::Issue(at) = step { Some(at) } else { None };
        of(&insts, &[]).into_iter().map(step).collect()
    }

    fn count(path: &[Option<u32>], at: u32) -> usize {
        path.iter().filter(|step| **step == Some(at)).count()
    }

    #[test]
    fn loops_turn_and_arms_alternate() {
        // 0: a guard of the kernel; 1..=5: a loop with an arm at 3; 6: a barrier.
        let way = path(&[
            "@P0 BRA `(L8)",
            "NOP",
            "@P1 BRA `(L4)",
            "NOP",
            "NOP",
            "@P2 BRA `(L1)",
            "BAR.SYNC.DEFER_BLOCKING 0x0",
            "NOP",
            "EXIT",
            "BRA `(L9)",
        ]);
        assert_eq!(count(&way, 1), TURNS as usize);
        assert_eq!((count(&way, 3), count(&way, 4)), (TURNS as usize / 2, TURNS as usize));
        assert_eq!(way[way.len() - 4..], [Some(6), None, Some(7), Some(8)]);
    }

    #[test]
    fn a_loop_that_tests_first_and_one_inside_another() {
        // 0..=5: a loop that 1 leaves; 2..=3: one inside it.
        let way = path(&["NOP", "@P0 BRA `(L5)", "NOP", "@P1 BRA `(L2)", "BRA `(L0)", "EXIT"]);
        assert_eq!(count(&way, 0), TURNS as usize);
        assert_eq!(count(&way, 2), TURNS as usize * (TURNS as usize - 1));
        assert_eq!(way.last(), Some(&Some(5)));
    }

    #[test]
    fn an_endless_loop_ends() {
        assert_eq!(path(&["NOP", "BRA `(L0)"]).len(), MOST);
    }
}
