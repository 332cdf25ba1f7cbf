//! Conditional constant propagation (in GeneralOptimize): computes pure instructions whose sources
//! are constants, and takes out branches, guards and inputs of PHIs that constants decide.
//!
//! One walk in reverse postorder over the blocks that can be reached: a value that goes round a
//! loop is not taken for a constant. A block of an irreducible loop may be reached from one that is
//! visited later, so it counts as reached. Blocks that nothing reaches afterwards leave the layout.
//! What a result of constants is, `value` says; a result that is NaN, or that depends on how
//! subnormal numbers are treated, is left to the GPU.

mod bounds;
mod value;

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, is_free, is_pure, rewrite};
use crate::arrays::Each;
use crate::opt::combine;
use crate::ori::cfg::{BlockSet, Cfg, Dominators};
use crate::ori::operand::Kind;
use crate::ori::{Block, File, Function, InstId, Operand, VReg, table};
use crate::sorted::SortedSet;
use crate::tables::ori::Direction;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use value::Value;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let def_use = cx.take_def_use();
    let function = &mut *cx.function;
    let truth = table(function.regs().len());
    let reached = BlockSet::new(function.block_limit());
    let mut pass = Pass { def_use, truth, reached, closed: SortedSet::new(), decided: Vec::new(), clear: Vec::new() };
    pass.reached.insert(function.entry());
    let mut dominators = None;
    for block in cfg.rpo.iter().filter(|block| cfg.reachable(**block)) {
        if pass.reached.contains(*block) || enters_late(&cfg, &mut dominators, *block) {
            pass.reached.insert(*block);
            pass.inputs(function, &cfg, *block);
            pass.body(function, *block);
            pass.branches(function, &cfg, *block);
        }
    }
    pass.forget_carries(function);
    if !pass.closed.is_empty() {
        close(function);
        cx.invalidate(&[]);
    }
    cx.decided = pass.decided;
}

/// Whether a block that is not reached yet may be reached from one that is visited later, and that
/// it does not dominate: if it does, that one is not reached without it.
fn enters_late(cfg: &Cfg, dominators: &mut Option<Dominators>, block: Block) -> bool {
    let late = |pred: &&Block| cfg.number[**pred] >= cfg.number[block];
    let mut preds = cfg.preds[block].iter().filter(late).peekable();
    if preds.peek().is_none() {
        return false;
    }
    let dominators = dominators.get_or_insert_with(|| cfg.dominators());
    preds.any(|pred| !dominators.dominates(block, *pred))
}

struct Pass {
    /// Knows the registers that hold constants: those that a MOV of one defines.
    def_use: DefUse,
    /// What is known of predicates.
    truth: SecondaryMap<VReg, Option<bool>>,
    reached: BlockSet,
    /// Edges that are never taken, from blocks that are reached.
    closed: SortedSet<(Block, Block)>,
    /// The branches that are decided.
    decided: Vec<InstId>,
    /// Sums whose carry is never set.
    clear: Vec<InstId>,
}

impl Pass {
    /// Whether an edge may be taken, as far as is known when its end is visited.
    fn open(&self, cfg: &Cfg, from: Block, to: Block) -> bool {
        let later = cfg.number[from] >= cfg.number[to];
        later || self.reached.contains(from) && !self.closed.contains(&(from, to))
    }

    /// Replaces PHIs that have one value.
    fn inputs(&mut self, function: &mut Function, cfg: &Cfg, block: Block) {
        let insts = &function[block];
        let phis: Vec<InstId> = insts.iter().copied().take_while(|i| function[*i].op == Op::PHI).collect();
        let sources: Vec<Block> = cfg.preds[block].iter().copied().filter(|p| self.open(cfg, *p, block)).collect();
        let mut copies = Vec::new();
        for phi in &phis {
            let args = function.args(*phi);
            let open = |label: Operand| matches!(label.kind(), Kind::Label(from) if sources.contains(&from));
            let values: Vec<Operand> = args[1..].chunks(2).filter(|pair| open(pair[0])).map(|pair| pair[1]).collect();
            let Some(one) = self.one_value(function, cfg.number[block], &sources, &cfg.number, &values) else {
                continue;
            };
            copies.push((*phi, one));
        }
        let gone = |phi: &InstId| copies.iter().any(|(other, _)| other == phi);
        let kept: Vec<InstId> = phis.iter().copied().filter(|phi| !gone(phi)).collect();
        for (phi, one) in &copies {
            let d = function.args(*phi)[0];
            self.copy(function, *phi, d, *one);
        }
        let moved = kept.into_iter().chain(copies.iter().map(|(phi, _)| *phi));
        function[block].splice(0..phis.len(), moved.collect::<Vec<_>>());
    }

    /// The value that all inputs of a PHI have; `None` if they differ, or if one is not known yet.
    fn one_value(
        &self,
        function: &Function,
        number: usize,
        sources: &[Block],
        numbers: &SecondaryMap<Block, usize>,
        values: &[Operand],
    ) -> Option<Operand> {
        let [first, rest @ ..] = values else { return None };
        if rest.is_empty() && sources.iter().all(|from| numbers[*from] < number) {
            return first.as_reg().is_some_and(|reg| is_free(function, reg)).then_some(*first);
        }
        let bits = |value: &Operand| match self.truth(function, *value) {
            Some(truth) => Some(u32::from(truth)),
            None => self.def_use.known(function, *value),
        };
        let one = bits(first)?;
        rest.iter().all(|value| bits(value) == Some(one)).then_some(*first)
    }

    /// Makes an instruction a copy of a register; what is known of it is known of its result.
    fn copy(&mut self, function: &mut Function, inst: InstId, d: Operand, source: Operand) {
        let reg = d.as_reg().filter(|reg| function[*reg].file == File::R);
        let known = reg.and_then(|_| self.def_use.known(function, source));
        match known {
            Some(bits) => {
                let bits = constant(function, bits);
                rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, bits)]);
            }
            None => rewrite(function, inst, Op::COPY, &[(Role::D, d), (Role::A, source)]),
        }
        self.def_use.set_def(function, inst);
        if let Some(reg) = d.as_reg() {
            self.truth[reg] = self.truth(function, source);
        }
    }

    /// What is known of a predicate operand.
    fn truth(&self, function: &Function, operand: Operand) -> Option<bool> {
        match operand.kind() {
            Kind::Reg(reg) if function[reg].file == File::P => Some(self.truth[reg]? != operand.not()),
            Kind::Zero if operand == Operand::always() => Some(true),
            Kind::Zero if operand == Operand::never() => Some(false),
            _ => None,
        }
    }

    /// Computes what is constant in a block.
    fn body(&mut self, function: &mut Function, block: Block) {
        let insts = std::mem::take(&mut function[block]);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            let op = function[inst].op;
            if op == Op::PHI || op.has(Prop::Terminator) {
                out.push(inst);
                continue;
            }
            self.predicates(function, inst);
            bounds::drop_carry_in(function, inst);
            if !self.executes(function, inst) {
                out.extend(self.old_values(function, inst));
                continue;
            }
            out.push(inst);
            if op.has(Prop::SelectsLane) {
                self.lane_numbers(function, inst);
            }
            if is_pure(function, inst) && !combine::fold_constants(function, &self.def_use, inst) {
                out.extend(self.compute(function, inst));
            }
            if let Some(carry) = bounds::clear_carry(function, &self.def_use, inst) {
                self.truth[carry] = Some(false);
                self.clear.push(inst);
            }
        }
        function[block] = out;
    }

    /// A shuffle names its lane and its segments itself where they are constants, as lowering has
    /// it: then it is known what lanes get.
    fn lane_numbers(&self, function: &mut Function, inst: InstId) {
        for (role, bits) in [(Role::B, 5), (Role::C, 13)] {
            let operand = function.arg(inst, role);
            let Some(number) = self.def_use.known(function, operand).filter(|_| operand.as_reg().is_some()) else {
                continue;
            };
            let number = function.imm((number & ((1 << bits) - 1)).into());
            function.set_arg(inst, role, number);
        }
    }

    /// Sums no longer give the carries that are never set, where nothing reads them any more.
    fn forget_carries(&self, function: &mut Function) {
        if self.clear.is_empty() {
            return;
        }
        let def_use = DefUse::new(function);
        for inst in &self.clear {
            let carry = function.arg(*inst, Role::Pu).as_reg();
            if carry.is_some_and(|carry| def_use.uses(carry) == 0) {
                function.set_arg(*inst, Role::Pu, Operand::NULL);
            }
        }
    }

    /// Replaces known predicates that an instruction reads.
    fn predicates(&self, function: &mut Function, inst: InstId) {
        for at in 0..function.args(inst).len() {
            let operand = function.args(inst)[at];
            if matches!(operand.kind(), Kind::Reg(_))
                && function.direction(inst, at) == Direction::Use
                && let Some(truth) = self.truth(function, operand)
            {
                function.args_mut(inst)[at] = if truth { Operand::always() } else { Operand::never() };
            }
        }
    }

    /// Takes away a guard that is known to hold; returns whether the instruction stays.
    fn executes(&mut self, function: &mut Function, inst: InstId) -> bool {
        let (guard, op) = (function[inst].guard, function[inst].op);
        let Some(truth) = guard.as_reg().and_then(|_| self.truth(function, guard)) else { return true };
        if op.has(Prop::Convergent) || op.has(Prop::Control) {
            return true;
        }
        if truth {
            function[inst].guard = Operand::NULL;
            function.set_olds(inst, &[]);
        }
        truth
    }

    /// Copies of the old values of an instruction that never executes.
    fn old_values(&mut self, function: &mut Function, inst: InstId) -> Vec<InstId> {
        let (mut results, mut olds) = (Vec::new(), Vec::new());
        function.for_each_def(inst, |reg| results.push(reg));
        function.olds(inst).iter().for_each(|old| function.for_each_reg(*old, |reg| olds.push(reg)));
        debug_assert_eq!(results.len(), olds.len());
        let mut copies = Vec::with_capacity(results.len());
        for (d, old) in results.into_iter().zip(olds) {
            let copy = function.make(Op::COPY);
            function[copy].line = function[inst].line;
            self.copy(function, copy, Operand::reg(d), Operand::reg(old));
            copies.push(copy);
        }
        copies
    }

    /// Replaces a pure instruction by its result; returns the second instruction of a pair.
    fn compute(&mut self, function: &mut Function, inst: InstId) -> Option<InstId> {
        let truth = |operand| self.truth(function, operand);
        match value::of(function, &self.def_use, &truth, inst)? {
            Value::Truth(reg, truth) => {
                self.truth[reg] = Some(truth);
                None
            }
            Value::Same(source) => {
                let d = function.arg(inst, Role::D);
                rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, source)]);
                None
            }
            Value::Word(bits) => {
                let (d, bits) = (function.arg(inst, Role::D), constant(function, bits));
                rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, bits)]);
                None
            }
            Value::Pair([low, high], bits) => {
                let second = function.make(Op::MOV);
                function[second].line = function[inst].line;
                let [less, more] = [bits as u32, (bits >> 32) as u32].each(|bits| constant(function, bits));
                rewrite(function, inst, Op::MOV, &[(Role::D, Operand::reg(low)), (Role::A, less)]);
                function.set_arg(second, Role::D, Operand::reg(high));
                function.set_arg(second, Role::A, more);
                self.def_use.set_def(function, second);
                Some(second)
            }
        }
    }

    /// Removes the branches of a block that are never taken.
    fn branches(&mut self, function: &mut Function, cfg: &Cfg, block: Block) {
        let mut at = function.first_terminator(block);
        while let Some(inst) = function[block].get(at).copied() {
            let guard = function[inst].guard;
            let truth = guard.as_reg().and_then(|_| self.truth(function, guard));
            self.decided.extend(truth.map(|_| inst));
            match truth {
                Some(true) => {
                    function[inst].guard = Operand::NULL;
                    function[block].truncate(at + 1);
                }
                Some(false) => {
                    function[block].remove(at);
                    continue;
                }
                None => {}
            }
            at += 1;
        }
        let open = function.successors(block);
        for succ in &open {
            self.reached.insert(*succ);
        }
        let closed = cfg.succs[block].iter().filter(|succ| !open.contains(succ));
        self.closed.extend(closed.map(|succ| (block, *succ)));
    }
}

/// Drops the blocks that nothing reaches, and the inputs of PHIs from edges that are never taken.
fn close(function: &mut Function) {
    let cfg = Cfg::new(function);
    function.retain_blocks(|block| cfg.reachable(*block));
    for block in function.layout().to_vec() {
        for at in 0..function[block].len() {
            let phi = function[block][at];
            if function[phi].op != Op::PHI {
                break;
            }
            let args = function.args(phi);
            let stays =
                |pair: &&[Operand]| matches!(pair[0].kind(), Kind::Label(from) if cfg.preds[block].contains(&from));
            let mut kept = vec![args[0]];
            kept.extend(args[1..].chunks(2).filter(stays).flatten());
            if kept.len() < args.len() {
                let new = function.make_with(Op::PHI, &kept);
                function[new].line = function[phi].line;
                function[phi] = function[new];
            }
        }
    }
}

/// An operand for a constant word.
fn constant(function: &mut Function, bits: u32) -> Operand {
    if bits == 0 { Operand::zero() } else { function.imm(bits.into()) }
}
