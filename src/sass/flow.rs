//! The control-flow graph of finished code, rebuilt from the words.
//!
//! It uses the decoded instructions of a section and the cubin's indirect branches and labels; an
//! indirect branch that the cubin does not list may lead wherever a word of the branch tables says.
//! If it is unknown whether a branch is taken, both successors are kept: a spurious edge only makes
//! the analysis more conservative. A call leads to its callee, and a return leads to the
//! instructions after the calls; a call out of the section leads to the next instruction. Lanes
//! that reconverge at a BSYNC continue after it.

use crate::cubin::Function;
use crate::sass::inst::{ArgKind, Inst, PT};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::{Mod, Op, Prop, Role};

/// Bytes per instruction word.
pub const WORD: u64 = 16;

/// A basic block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// First instruction (`start`), and the one after the last (`end`).
    pub start: usize,
    pub end: usize,
    /// Possible successors.
    pub succs: Vec<usize>,
    /// Reached from outside the section: nothing is in flight here.
    pub entry: bool,
    /// Ends with a call of a function outside the section, or of an unknown one.
    pub calls_out: bool,
}

/// The basic blocks of a section in address order.
pub struct Flow {
    pub blocks: Vec<Block>,
}

/// The possible successors of an instruction.
struct Exits {
    next: bool,
    targets: Vec<usize>,
    /// Target of a call.
    call: Option<usize>,
    returns: bool,
    /// Ends a block although control may fall through.
    ends: bool,
}

impl Flow {
    /// Builds the graph of a section; an undecodable word falls through.
    pub fn new(function: &Function, insts: &[Option<Inst>]) -> Flow {
        let exits: Vec<Exits> = insts.iter().enumerate().map(|(at, inst)| exits(function, insts, at, inst)).collect();
        let mut entries: SortedSet<usize> = [0].into();
        entries.extend(function.labels.iter().map(|l| (l.offset / WORD) as usize).filter(|l| *l < insts.len()));
        let mut leaders = entries.clone();
        for (at, exit) in exits.iter().enumerate() {
            leaders.extend(exit.targets.iter().copied().chain(exit.call));
            if exit.ends && at + 1 < insts.len() {
                leaders.insert(at + 1);
            }
        }
        let starts: Vec<usize> = leaders.into_iter().collect();
        let number: SortedMap<usize, usize> = starts.iter().enumerate().map(|(i, at)| (*at, i)).collect();
        let called: SortedSet<usize> = exits.iter().filter_map(|e| e.call).collect();
        let mut blocks: Vec<Block> = Vec::with_capacity(starts.len());
        for (i, start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(insts.len());
            // A function called only from this section inherits the in-flight state of the calls.
            let entry = *start == 0 || entries.contains(start) && !called.contains(start);
            let mut block = Block { start: *start, end, succs: Vec::new(), entry, calls_out: false };
            if let Some(last) = end.checked_sub(1).filter(|last| *last < insts.len()) {
                let exit = &exits[last];
                block.calls_out = calls_out(function, last, &insts[last], exit);
                block.succs.extend(exit.targets.iter().chain(&exit.call).filter_map(|t| number.get(t)));
                if exit.next && exit.call.is_none() {
                    block.succs.extend(number.get(&end));
                }
            }
            blocks.push(block);
        }
        let mut flow = Flow { blocks };
        flow.return_edges(&exits, &number);
        flow.unreached_are_entered();
        flow
    }

    /// Adds an edge from each return of a called function to the instruction after each call of it.
    fn return_edges(&mut self, exits: &[Exits], number: &SortedMap<usize, usize>) {
        let mut behind: SortedMap<usize, Vec<usize>> = SortedMap::new();
        for (at, exit) in exits.iter().enumerate() {
            if let (Some(callee), Some(next)) = (exit.call, number.get(&(at + 1))) {
                behind.entry(number[&callee]).or_default().push(*next);
            }
        }
        // Inside the called function, nested calls count as falling through.
        let mut inner: Vec<Vec<usize>> = self.blocks.iter().map(|b| b.succs.clone()).collect();
        for (block, list) in self.blocks.iter().zip(inner.iter_mut()) {
            if exits.get(block.end.wrapping_sub(1)).is_some_and(|e| e.call.is_some()) {
                *list = number.get(&block.end).copied().into_iter().collect();
            }
        }
        for (callee, sites) in behind {
            let mut seen = SortedSet::from([callee]);
            let mut work = vec![callee];
            while let Some(block) = work.pop() {
                if exits.get(self.blocks[block].end.wrapping_sub(1)).is_some_and(|e| e.returns) {
                    self.blocks[block].succs.extend(&sites);
                }
                work.extend(inner[block].iter().copied().filter(|b| seen.insert(*b)));
            }
        }
        for block in &mut self.blocks {
            block.succs.sort_unstable();
            block.succs.dedup();
        }
    }

    /// A block without predecessors is an entry, or unreachable.
    fn unreached_are_entered(&mut self) {
        let mut led: Vec<bool> = self.blocks.iter().map(|b| b.entry).collect();
        self.blocks.iter().flat_map(|b| &b.succs).for_each(|s| led[*s] = true);
        self.blocks.iter_mut().zip(led).filter(|(_, led)| !led).for_each(|(b, _)| b.entry = true);
    }
}

/// Whether an instruction calls a function outside the section; a relocation names it.
fn calls_out(function: &Function, at: usize, inst: &Option<Inst>, exit: &Exits) -> bool {
    let here = |offset: u64| offset / WORD == at as u64;
    inst.as_ref().is_some_and(|inst| inst.op == Op::CALL)
        && (exit.call.is_none() || function.code_relocs.iter().any(|reloc| here(reloc.offset)))
}

fn exits(function: &Function, insts: &[Option<Inst>], at: usize, inst: &Option<Inst>) -> Exits {
    let mut out = Exits { next: true, targets: Vec::new(), call: None, returns: false, ends: false };
    let Some(inst) = inst else { return out };
    let next = (at as u64 + 1) * WORD;
    let place = |offset: u64| {
        let at = (offset / WORD) as usize;
        (offset.is_multiple_of(WORD) && at < insts.len()).then_some(at)
    };
    let label = inst.arg(Role::Target);
    let target = if label.kind == ArgKind::Label { place(next.wrapping_add(label.val)) } else { None };
    let always = !inst.is_guarded() && leaves_under_guard(inst);
    match inst.op {
        Op::BRA => {
            out.targets.extend(target);
            (out.next, out.ends) = (!always, true);
        }
        Op::BRX | Op::BRXU => {
            let here = at as u64 * WORD;
            let listed = function.sites.indirect_branches.iter().filter(|b| u64::from(b.offset) == here);
            out.targets.extend(listed.flat_map(|b| &b.targets).filter_map(|t| place(u64::from(*t))));
            if out.targets.is_empty() {
                out.targets.extend(table_words(function).filter(|offset| *offset > 0).filter_map(place));
            }
            (out.next, out.ends) = (!always, true);
        }
        Op::CALL => (out.call, out.ends) = (target.filter(|_| is_direct(inst)), true),
        Op::RET => (out.returns, out.next, out.ends) = (true, !always, true),
        op if op.has(Prop::Leaves) => (out.next, out.ends) = (!always, true),
        Op::WARPSYNC => {
            out.ends = target.is_some();
            out.targets.extend(target);
        }
        _ => {}
    }
    out
}

/// The words of a function's branch tables, where its targets are if nothing lists them.
fn table_words(function: &Function) -> impl Iterator<Item = u64> {
    let bytes = function.constant2.as_ref().map_or(&[][..], |image| &image.bytes);
    bytes.chunks_exact(4).map(|word| u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]])))
}

/// Whether every lane whose guard holds leaves: a branch or an exit without another condition.
pub fn leaves_under_guard(inst: &Inst) -> bool {
    let condition = inst.arg(Role::Pp);
    (condition.is_none() || condition.val == u64::from(PT) && !condition.not)
        && inst.modifier(Mod::Bra) == 0
        && inst.arg(Role::Ub).is_none()
}

/// Whether a call has its target as a code address.
fn is_direct(inst: &Inst) -> bool {
    inst.arg(Role::A).is_none() && inst.arg(Role::Target).kind == ArgKind::Label
}
