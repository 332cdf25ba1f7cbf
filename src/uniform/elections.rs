//! Pass `elections`: what one lane asks of a unit that acts once for a warp needs no lane alone.
//!
//! A branch that lanes take differently, around operations that act once for all lanes at them
//! (property `acts_once`) and pure ones, is the same as a branch that the warp takes if any lane
//! does: where all living lanes come to it together, and every word handed to the unit is the same
//! in all of them. What follows is then written where the warp is converged, so it can stand in
//! uniform registers. Of the lanes that come together to an ELECT in the same block one is elected,
//! so there is no branch at all; operations that take a uniform predicate (property
//! `uniform_guard`) need none either.
//!
//! Loops in which lanes take turns come first (`turns`).
//!
//! Words that R2UR and UMOV hand over in numbered registers, which nothing else may use, get a
//! register of their own where the warp is converged or its other lanes wait.

use super::turns;
use crate::analysis::PassCx;
use crate::analysis::def_use::is_pure;
use crate::analysis::divergence::{Results, Varying, apart_behind, results};
use crate::ori::cfg::{Cfg, named_blocks};
use crate::ori::{Block, Convention, File, Function, InstId, Kind, Operand, VReg, table};
use crate::tables::ori::Direction;
use crate::tables::{Feature, Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let any = |op: Prop, function: &Function| {
        function.layout().iter().flat_map(|b| &function[*b]).any(|i| function[*i].op.has(op))
    };
    let serves =
        cx.function.target().has(Feature::UniformDatapath) && cx.function.attributes().convention == Convention::Kernel;
    let acts = |function: &Function| any(Prop::ActsOnce, function) || any(Prop::Idempotent, function);
    if !serves || !acts(cx.function) && !any(Prop::HandsOver, cx.function) {
        cx.unchanged = true;
        return;
    }
    let mut changed = any(Prop::HandsOver, cx.function) && turns::settle(cx);
    if acts(cx.function) && straighten(cx) {
        changed = true;
        cx.invalidate(&[]);
    }
    if any(Prop::HandsOver, cx.function) {
        let (cfg, lanes) = (cx.cfg(), cx.divergence());
        changed |= hand_over(cx.function, &cfg, &lanes);
    }
    cx.unchanged = !changed;
}

/// Straightens the branches of a function; whether there are such.
fn straighten(cx: &mut PassCx) -> bool {
    let (cfg, lanes) = (cx.cfg(), cx.divergence());
    let mut elections = Elections::new(cx.function, &cfg, &lanes);
    for block in &cfg.rpo {
        while elections.straighten(*block, cx.encoder.encodes) {}
    }
    let (gone, changed) = (elections.gone, elections.changed);
    if changed {
        cx.function.retain_blocks(|block| !gone[*block]);
    }
    changed
}

struct Elections<'a> {
    function: &'a mut Function,
    lanes: &'a Varying,
    preds: SecondaryMap<Block, SmallVec<[Block; 4]>>,
    /// Whether lanes may be apart at the end of a block.
    apart: SecondaryMap<Block, bool>,
    gone: SecondaryMap<Block, bool>,
    /// Blocks that something other than a branch or a PHI names.
    named: SecondaryMap<Block, bool>,
    changed: bool,
}

/// A block that some lanes skip.
struct Skipped {
    block: Block,
    /// Where they go.
    meet: Block,
    /// What holds in the lanes that do not skip it.
    taken: Operand,
}

impl<'a> Elections<'a> {
    fn new(function: &'a mut Function, cfg: &Cfg, lanes: &'a Varying) -> Elections<'a> {
        let (mut preds, mut apart) = (SecondaryMap::new(), SecondaryMap::new());
        for block in &cfg.rpo {
            preds[*block] = cfg.preds[*block].iter().copied().collect();
            apart[*block] = apart_behind(function, &function[*block], lanes.divergent.contains(*block));
        }
        let named = named_blocks(function);
        Elections { function, lanes, preds, apart, gone: SecondaryMap::new(), named, changed: false }
    }

    /// Straightens the branch at the end of a block; whether another may stand there now.
    fn straighten(&mut self, block: Block, encodes: fn(&Function, InstId) -> bool) -> bool {
        if self.gone[block] || self.apart[block] {
            return false;
        }
        let Some(skipped) = self.skipped(block) else { return false };
        if !self.is_for_all(&skipped) || !self.agrees(block, &skipped) {
            return false;
        }
        self.changed = true;
        let mut guard = None;
        if !self.is_certain(block, skipped.taken) {
            let vote = self.vote(block, skipped.taken);
            if !self.takes_guard(&skipped, vote, encodes) {
                self.ask(block, &skipped, vote);
                return false;
            }
            guard = Some(vote);
        }
        self.flatten(block, &skipped, guard);
        self.join(block, skipped.meet)
    }

    /// The block that a branch at the end of another skips, if nothing else leads there.
    fn skipped(&self, block: Block) -> Option<Skipped> {
        let function = &*self.function;
        let [.., branch, jump] = function[block][..] else { return None };
        let target = |inst: InstId| match function.arg(inst, Role::Target).kind() {
            Kind::Label(to) if function[inst].op == Op::BRA => Some(to),
            _ => None,
        };
        let guard = function[branch].guard;
        let (away, on) = (target(branch)?, target(jump)?);
        let alone = |at: Block| self.preds[at][..] == [block] && self.next(at).is_some();
        let varies = guard.as_reg().is_some_and(|reg| self.lanes.regs.contains(reg));
        if !function[jump].guard.is_null() || !varies || away == on {
            return None;
        }
        let plain = |inst: InstId| function[inst].mods.iter().next().is_none();
        if !plain(branch) || !plain(jump) || function.first_terminator(block) + 2 != function[block].len() {
            return None;
        }
        if alone(on) && self.next(on) == Some(away) {
            return Some(Skipped { block: on, meet: away, taken: guard.inverted() });
        }
        (alone(away) && self.next(away) == Some(on)).then_some(Skipped { block: away, meet: on, taken: guard })
    }

    /// The block that a block always goes on to.
    fn next(&self, block: Block) -> Option<Block> {
        let function = &*self.function;
        let last = *function[block].last()?;
        let data = &function[last];
        let alone = function.first_terminator(block) + 1 == function[block].len();
        match function.arg(last, Role::Target).kind() {
            Kind::Label(to) if data.op == Op::BRA && data.guard.is_null() && alone => Some(to),
            _ => None,
        }
    }

    /// Whether all lanes together may do what a block does, with words that are the same in all of
    /// them, and something acts once in it.
    fn is_for_all(&self, skipped: &Skipped) -> bool {
        let function = &*self.function;
        let does = |inst: InstId| function[inst].op.has(Prop::ActsOnce);
        let insts = &function[skipped.block];
        let mut acts = false;
        // What is made here differs between lanes only if its sources do.
        let mut made: SecondaryMap<VReg, bool> = SecondaryMap::new();
        let all = insts[..insts.len() - 1].iter().all(|inst| {
            let data = &function[*inst];
            acts |= does(*inst);
            let mut same = data.guard.is_null();
            function.for_each_use(*inst, |reg| same &= made[reg] || !self.lanes.regs.contains(reg));
            let alike = same && data.op != Op::PHI && results(function, *inst) != Results::Different;
            let mut silent = true;
            function.for_each_def(*inst, |reg| {
                silent = false;
                made[reg] = alike;
            });
            let once = does(*inst) && silent;
            is_pure(function, *inst) || same && (once || is_hand_over(function, *inst))
        });
        acts && all
    }

    /// Whether the predicate holds in one of the lanes that are at the end of a block.
    fn is_certain(&self, block: Block, taken: Operand) -> bool {
        let Some(reg) = taken.as_reg().filter(|_| !taken.not()) else { return false };
        let function = &*self.function;
        let insts = &function[block];
        let makes = |inst: &InstId| {
            let data = &function[*inst];
            data.op == Op::ELECT && data.guard.is_null() && function.arg(*inst, Role::Pu).as_reg() == Some(reg)
        };
        let Some(at) = insts.iter().rposition(makes) else { return false };
        // Nobody leaves between the two, and all were together before.
        let leaves = |inst: &InstId| function[*inst].op.has(Prop::Control);
        !apart_behind(function, &insts[..at], self.lanes.divergent.contains(block))
            && !insts[at..function.first_terminator(block)].iter().any(leaves)
    }

    /// Whether everything that acts in a block takes this predicate as its guard.
    fn takes_guard(&mut self, skipped: &Skipped, guard: VReg, encodes: fn(&Function, InstId) -> bool) -> bool {
        let function = &mut *self.function;
        function[skipped.block].clone().into_iter().all(|inst| {
            let op = function[inst].op;
            if !op.has(Prop::ActsOnce) || !op.has(Prop::UniformGuard) {
                return !op.has(Prop::ActsOnce);
            }
            let old = std::mem::replace(&mut function[inst].guard, Operand::reg(guard));
            let fits = encodes(function, inst);
            function[inst].guard = old;
            fits
        })
    }

    /// Whether the lanes that skip a block and those that do not bring the same values with them.
    fn agrees(&self, block: Block, skipped: &Skipped) -> bool {
        let function = &*self.function;
        let phis = function[skipped.meet].iter().take_while(|inst| function[**inst].op == Op::PHI);
        phis.copied().all(|phi| {
            let from = |from: Block| self.incoming(phi, from).map(|at| function.args(phi)[at]);
            from(block) == from(skipped.block)
        })
    }

    /// Place of the value that a PHI takes from a block.
    fn incoming(&self, phi: InstId, from: Block) -> Option<usize> {
        let args = self.function.args(phi);
        (1..args.len()).step_by(2).find(|at| args[*at].kind() == Kind::Label(from)).map(|at| at + 1)
    }

    /// A uniform predicate that holds if one does in any lane, at the end of a block.
    fn vote(&mut self, block: Block, taken: Operand) -> VReg {
        let function = &mut *self.function;
        let reg = function.new_reg(File::UP);
        function[reg].varying = false;
        let vote = function.make(Op::VOTEU);
        function[vote].mods.set(Mod::Vote, value::vote::ANY);
        function.set_arg(vote, Role::Pu, Operand::reg(reg));
        function.set_arg(vote, Role::Pp, taken);
        let at = function.first_terminator(block);
        function[vote].line = function[function[block][at]].line;
        function[block].insert(at, vote);
        reg
    }

    /// Makes the warp take a branch together.
    fn ask(&mut self, block: Block, skipped: &Skipped, vote: VReg) {
        let vote = Operand::reg(vote);
        let function = &mut *self.function;
        let branch = function[block][function.first_terminator(block)];
        let skips = function.arg(branch, Role::Target).kind() == Kind::Label(skipped.meet);
        function[branch].guard = if skips { vote.inverted() } else { vote };
    }

    /// Does in a block what the skipped one does, under a guard where there is one.
    fn flatten(&mut self, block: Block, skipped: &Skipped, guard: Option<VReg>) {
        let function = &mut *self.function;
        let mut insts = std::mem::take(&mut function[skipped.block]);
        if let Some(guard) = guard {
            for inst in &insts {
                if function[*inst].op.has(Prop::ActsOnce) {
                    function[*inst].guard = Operand::reg(guard);
                }
            }
        }
        let at = function.first_terminator(block);
        function[block].truncate(at);
        function[block].append(&mut insts);
        self.gone[skipped.block] = true;
        for phi in self.function[skipped.meet].clone() {
            if self.function[phi].op != Op::PHI {
                break;
            }
            if let Some(at) = self.incoming(phi, skipped.block) {
                let mut args = self.function.args(phi).to_vec();
                args.drain(at - 1..=at);
                self.replace(phi, Op::PHI, &args);
            }
        }
        self.preds[skipped.meet].retain(|pred| *pred != skipped.block);
    }

    fn replace(&mut self, inst: InstId, op: Op, args: &[Operand]) {
        let new = self.function.make_with(op, args);
        self.function[new].line = self.function[inst].line;
        self.function[inst] = self.function[new];
    }

    /// Joins a block to the only one before it; whether that is so.
    fn join(&mut self, block: Block, next: Block) -> bool {
        if self.preds[next][..] != [block] || next == self.function.entry() || self.named[next] {
            return false;
        }
        self.function[block].pop();
        let insts = std::mem::take(&mut self.function[next]);
        for inst in &insts {
            if self.function[*inst].op != Op::PHI {
                break;
            }
            let args = self.function.args(*inst).to_vec();
            self.replace(*inst, Op::COPY, &[args[0], args[2]]);
        }
        self.function[block].extend(insts);
        self.apart[block] = self.apart[next];
        self.gone[next] = true;
        for succ in self.function.successors(block) {
            self.preds[succ].iter_mut().filter(|pred| **pred == next).for_each(|pred| *pred = block);
            for phi in self.function[succ].clone() {
                if self.function[phi].op != Op::PHI {
                    break;
                }
                if let Some(at) = self.incoming(phi, next) {
                    self.function.args_mut(phi)[at - 1] = Operand::label(block);
                }
            }
        }
        true
    }
}

/// Whether an instruction hands a word or a predicate to the uniform file.
pub(super) fn is_hand_over(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    function[inst].guard.is_null() && (op.has(Prop::HandsOver) || op == Op::UMOV)
}

/// Gives words that are handed over in numbered registers, to one reader in the same block, any
/// register where the warp is converged or its other lanes wait, and the word is the same in all
/// lanes. Whether there are such.
fn hand_over(function: &mut Function, cfg: &Cfg, lanes: &Varying) -> bool {
    let mut any = false;
    let mut uses: SecondaryMap<VReg, u32> = table(function.regs().len());
    for inst in function.layout().iter().flat_map(|b| &function[*b]) {
        function.for_each_use(*inst, |reg| uses[reg] += 1);
    }
    for block in &cfg.rpo {
        let mut handed: SecondaryMap<VReg, bool> = SecondaryMap::new();
        let mut free: Vec<VReg> = Vec::new();
        let insts = &function[*block];
        let mut apart = lanes.interleaved.contains(*block);
        for (at, inst) in insts.iter().enumerate() {
            apart = apart_behind(function, &insts[at..=at], apart);
            if is_hand_over(function, *inst) && !apart {
                let mut same = true;
                function.for_each_use(*inst, |reg| same &= !lanes.regs.contains(reg));
                function.for_each_def(*inst, |reg| handed[reg] = same && uses[reg] == 1);
            }
            for (at, operand) in function.args(*inst).iter().enumerate() {
                let mut regs: SmallVec<[VReg; 8]> = SmallVec::new();
                function.for_each_reg(*operand, |reg| regs.push(reg));
                let reads = function.direction(*inst, at) == Direction::Use;
                if reads && regs.iter().all(|reg| handed[*reg] && function[*reg].phys.is_some()) {
                    free.extend(regs);
                }
            }
        }
        any |= !free.is_empty();
        free.into_iter().for_each(|reg| function[reg].phys = None);
    }
    any
}
