//! Predication before scheduling: short arms of a branch become guarded instructions of the block
//! that ends with it.
//!
//! `@p BRA end; …; end:` loses its branch, likewise two arms that join. What only the arm reads and
//! what cannot trap is computed in any case; the rest of the arm gets the guard. So the loads of
//! several arms are in flight at once, and the schedulers see one block. Only arms of at most
//! [`MOST`] instructions ([`MOST_MOVED`] of those that move data) that are single, neither control
//! flow, convergent nor ordered, and have no guard of their own. Outside SSA form, before the first
//! construction of it, which ties the old values to guarded definitions. `if_conversion` does the
//! same with what is short only after allocation.

use crate::analysis::PassCx;
use crate::analysis::def_use::rewrite;
use crate::arrays::Each;
use crate::opt::block_layout::is_jump;
use crate::ori::cfg::BlockSet;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg};
use crate::sorted::SortedSet;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;

/// Most instructions of the arms of a branch. Measured on the launches of one target: 6 and 20 give
/// the same estimated cycles, and 0 gives 1 % more.
const MOST: usize = 12;

/// Most instructions of the arms where one both loads and stores: where that moves data, nothing
/// waits for the load before the store, and what stands around the arms fills the time.
const MOST_MOVED: usize = 18;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let function = &mut *cx.function;
    let live = Liveness::at_start(function, &cfg);
    let limit = function.block_limit();
    let (kept, gone) = (BlockSet::new(limit), BlockSet::new(limit));
    let (before, next) = (SecondaryMap::new(), SecondaryMap::new());
    let mut pass = Pass { live, preds: SecondaryMap::new(), before, next, kept, gone };
    pass.kept.insert(function.entry());
    for pair in function.layout().windows(2) {
        pass.next[pair[0]] = Some(pair[1]);
        pass.before[pair[1]] = Some(pair[0]);
    }
    for block in function.layout() {
        pass.preds[*block] = cfg.preds[*block].len();
        // What control does not reach may name blocks that it reaches: `merge_blocks` drops it.
        let names = |inst: &&InstId| !cfg.reachable(*block) || !function[**inst].op.has(Prop::Control);
        for operand in function[*block].iter().filter(names).flat_map(|inst| function.args(*inst)) {
            if let Kind::Label(named) = operand.kind() {
                pass.kept.insert(named);
            }
        }
    }
    // Inner branches first.
    for block in cfg.rpo.iter().rev().filter(|block| cfg.reachable(**block)) {
        while !pass.gone.contains(*block) && (pass.convert(function, *block) || pass.absorb(function, *block)) {}
    }
    function.retain_blocks(|block| !pass.gone.contains(*block));
    cx.invalidate(&[]);
}

struct Pass {
    /// Live registers at the start of each block as it was.
    live: Liveness,
    /// Number of predecessors of each block.
    preds: SecondaryMap<Block, usize>,
    /// The blocks before and after each in the layout.
    before: SecondaryMap<Block, Option<Block>>,
    next: SecondaryMap<Block, Option<Block>>,
    /// Blocks that must stay: those that something other than a branch names, and the entry.
    kept: BlockSet,
    gone: BlockSet,
}

/// An arm of a branch: its block, its guard, and where it goes.
struct Arm {
    block: Block,
    guard: Operand,
    end: Block,
}

impl Pass {
    /// Moves the arms of a branch into the block that ends with it; returns whether it did.
    fn convert(&mut self, function: &mut Function, block: Block) -> bool {
        self.converted(function, block).is_some()
    }

    fn converted(&mut self, function: &mut Function, block: Block) -> Option<()> {
        let [.., conditional, last] = function[block][..] else { return None };
        let guard = function[conditional].guard;
        let whole = is_jump(function, conditional) && is_jump(function, last) && function[last].guard.is_null();
        let predicate = guard.as_reg().filter(|p| whole && function[*p].file == File::P)?;
        let (yes, no) = (function.branch_target(conditional)?, function.branch_target(last)?);
        if yes == no || function.first_terminator(block) + 2 != function[block].len() {
            return None;
        }
        let arm = |to: Block, guard: Operand| {
            self.end(function, to, predicate).map(|end| Arm { block: to, guard, end }).filter(|arm| arm.end != block)
        };
        let (taken, other) = (arm(yes, guard), arm(no, guard.inverted()));
        let (arms, end) = match (taken, other) {
            (_, Some(arm)) if arm.end == yes => (vec![arm], yes),
            (Some(arm), _) if arm.end == no => (vec![arm], no),
            (Some(one), Some(two)) if one.end == two.end => {
                let end = one.end;
                (vec![two, one], end)
            }
            _ => return None,
        };
        let size: usize = arms.iter().map(|arm| function[arm.block].len() - 1).sum();
        if size > arms.iter().map(|arm| most(function, arm.block)).max()? {
            return None;
        }
        let at = function[block].len() - 2;
        function[block].truncate(at);
        for arm in &arms {
            // What lives where control goes otherwise keeps its value there.
            let others: Vec<Block> =
                arms.iter().map(|arm| arm.block).filter(|b| *b != arm.block).chain([end]).collect();
            let mut body = std::mem::take(&mut function[arm.block]);
            body.pop();
            let guarded = self.guard(function, arm, &body, &others);
            function[block].extend(guarded);
            self.remove(arm.block);
        }
        function.set_arg(last, Role::Target, Operand::label(end));
        function[block].push(last);
        // One edge is left of two.
        self.preds[end] -= 1;
        Some(())
    }

    /// Guards the instructions of an arm that must not execute otherwise, and those that read their
    /// results. What only the arm reads has no value before: without saying so, its register would
    /// be taken from the start of the loop around it.
    fn guard(&self, function: &mut Function, arm: &Arm, body: &[InstId], others: &[Block]) -> Vec<InstId> {
        let mut guarded: SortedSet<VReg> = SortedSet::new();
        let (mut out, mut defined) = (Vec::with_capacity(body.len()), SortedSet::new());
        for inst in body.iter().copied() {
            let (mut needed, mut follows, mut defs) = (false, false, Vec::new());
            function.for_each_def(inst, |reg| {
                needed |= others.iter().any(|other| self.live.live[*other].binary_search(&reg).is_ok());
                defs.push(reg);
            });
            function.for_each_use(inst, |reg| follows |= guarded.contains(&reg));
            let op = function[inst].op;
            let free = (op.has(Prop::Pure) || op == Op::COPY) && !op.has(Prop::ReadsMemory) && !needed && !follows;
            if free {
                defs.iter().for_each(|reg| {
                    guarded.remove(reg);
                    defined.insert(*reg);
                });
            } else {
                if op == Op::COPY {
                    let args = [Role::D, Role::A].each(|role| (role, function.arg(inst, role)));
                    rewrite(function, inst, Op::MOV, &args);
                }
                function[inst].guard = arm.guard;
                for reg in defs {
                    if !needed && function[reg].file == File::R && !defined.contains(&reg) {
                        let undefined = function.make(Op::UNDEF);
                        function.set_arg(undefined, Role::D, Operand::reg(reg));
                        out.push(undefined);
                    }
                    defined.insert(reg);
                    guarded.insert(reg);
                }
            }
            out.push(inst);
        }
        out
    }

    /// Where an arm goes, if it can be guarded.
    fn end(&self, function: &Function, block: Block, predicate: VReg) -> Option<Block> {
        let (last, body) = function[block].split_last()?;
        let end = function.branch_target(*last)?;
        let jumps = is_jump(function, *last) && function[*last].guard.is_null() && end != block;
        let alone = self.preds[block] == 1 && !self.kept.contains(block) && body.len() <= most(function, block);
        (jumps && alone && body.iter().all(|inst| may_be_guarded(function, *inst, predicate))).then_some(end)
    }

    /// Appends the block that only this one goes to and that follows it; returns whether it did.
    fn absorb(&mut self, function: &mut Function, block: Block) -> bool {
        let Some(last) = function[block].last().copied() else { return false };
        let plain = is_jump(function, last) && function[last].guard.is_null();
        let Some(next) = function.branch_target(last).filter(|_| plain) else { return false };
        let alone = self.preds[next] == 1 && !self.kept.contains(next) && self.next[block] == Some(next);
        if !alone || function.first_terminator(block) + 1 != function[block].len() {
            return false;
        }
        function[block].pop();
        let rest = std::mem::take(&mut function[next]);
        function[block].extend(rest);
        self.remove(next);
        true
    }

    fn remove(&mut self, block: Block) {
        self.gone.insert(block);
        let (before, after) = (self.before[block], self.next[block]);
        if let Some(before) = before {
            self.next[before] = after;
        }
        if let Some(after) = after {
            self.before[after] = before;
        }
    }
}

/// Most instructions of the arms of a branch, if this is one of them.
fn most(function: &Function, arm: Block) -> usize {
    let any = |prop| function[arm].iter().any(|inst| function[*inst].op.has(prop));
    if any(Prop::ReadsMemory) && any(Prop::WritesMemory) { MOST_MOVED } else { MOST }
}

/// Whether an instruction copies one general register to another.
fn copies(function: &Function, inst: InstId) -> bool {
    let general = |role| function.arg(inst, role).as_reg().is_some_and(|reg| function[reg].file == File::R);
    function[inst].op == Op::COPY && general(Role::D) && general(Role::A)
}

/// Whether an instruction is a single one that may be guarded, and leaves the predicate as it is.
fn may_be_guarded(function: &Function, inst: InstId, predicate: VReg) -> bool {
    let data = &function[inst];
    let op = data.op;
    let bound = [Prop::Convergent, Prop::Control, Prop::CopyGroup, Prop::BulkGroup];
    let at = op.role_index(Role::Off).is_some();
    let (reads, writes) = (at && op.has(Prop::ReadsMemory), at && op.has(Prop::WritesMemory));
    let single = (!op.has(Prop::Pseudo) || copies(function, inst))
        && !bound.into_iter().any(|prop| op.has(prop))
        && !data.ordered;
    let mut kept = false;
    function.for_each_def(inst, |reg| {
        let reg_data = &function[reg];
        kept |= reg == predicate || reg_data.fixed.is_some() || reg_data.phys.is_some();
    });
    single
        && (op.has(Prop::Pure) || op == Op::COPY || reads != writes)
        && data.guard.is_null()
        && !kept
        && op != Op::PHI
}
