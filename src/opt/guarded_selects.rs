//! Selects that become guards: `t = op(x, y); d = p ? t : old` becomes `d = old; @p d = op(x, y)`.
//!
//! Runs in SSA form, where the guarded operation is tied to the old value of its result. What feeds
//! it is then needed only where the guard is true, so a load under the same guard needs no value of
//! its own where it is false (`old_values`).
//!
//! The operation must stand in the same block, and its result be read by the select alone. The
//! select must be the last reader of the other value, so that both results take one register and no
//! copy is left. What is the same in all lanes is left to the uniform file. The operation moves
//! down to the select: at most one of its sources may end with it, so that no more registers live
//! in between. The guard must be known by the time that the operation's sources are, by estimate:
//! a select needs its predicate only when the operation is done.

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, is_free, is_pure};
use crate::ori::liveness::RegSet;
use crate::ori::{Block, File, Function, InstId, Operand, VReg, table};
use crate::tables::ori::Direction;
use crate::tables::{Mods, Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// The last place where a register is read, if all readers are in one block and none is a PHI.
#[derive(Clone, Copy, Default, PartialEq)]
enum Last {
    #[default]
    Nowhere,
    In(Block, usize),
    Elsewhere,
}

/// Cycles to a result, by estimate: of most operations, of a predicate, of variable latency.
const USUAL: u32 = 4;
const PREDICATE: u32 = 13;
const VARIABLE: u32 = 24;

/// What a select becomes.
struct Guarded {
    operation: InstId,
    result: VReg,
    old: VReg,
    guard: Operand,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    cx.unchanged = true;
    let is_select = |inst: &InstId| matches!(cx.function[*inst].op, Op::SEL | Op::FSEL);
    if !cx.function.layout().iter().any(|block| cx.function[*block].iter().any(is_select)) {
        return;
    }
    let def_use = cx.take_def_use();
    let function = &mut *cx.function;
    let mut search = Search::new(function, def_use);
    for block in function.layout().to_vec() {
        let found = search.block(function, block);
        cx.unchanged &= found.is_empty();
        let moved: Vec<InstId> = found.iter().map(|(_, guarded)| guarded.operation).collect();
        let mut insts = std::mem::take(&mut function[block]);
        // Each moves down over all selects before its own, so none of these is met again.
        for (at, guarded) in found {
            apply(function, &guarded);
            insts[at] = guarded.operation;
        }
        remove_first(&mut insts, &moved);
        function[block] = insts;
    }
}

/// Removes the first of the two places of each of these.
fn remove_first(insts: &mut Vec<InstId>, moved: &[InstId]) {
    let mut moved = moved.to_vec();
    moved.sort_unstable();
    let mut met = vec![false; moved.len()];
    insts.retain(|inst| moved.binary_search(inst).map_or(true, |place| std::mem::replace(&mut met[place], true)));
}

fn apply(function: &mut Function, guarded: &Guarded) {
    let Guarded { operation, result, old, guard } = *guarded;
    function.set_arg(operation, Role::D, Operand::reg(result));
    function[operation].guard = guard;
    let defs = (0..function.args(operation).len()).filter(|at| function.direction(operation, *at) == Direction::Def);
    let written = |at: usize| function.args(operation)[at] == Operand::reg(result);
    let null = Operand::default();
    let olds: SmallVec<[Operand; 4]> = defs.map(|at| if written(at) { Operand::reg(old) } else { null }).collect();
    function.set_olds(operation, &olds);
}

struct Search {
    def_use: DefUse,
    last: SecondaryMap<VReg, Last>,
    /// The block of each instruction.
    place: SecondaryMap<InstId, Option<Block>>,
    /// Old values of what has become guarded.
    tied: RegSet,
    /// Cycles from the beginning of the block at hand to each value that it makes.
    ready: SecondaryMap<VReg, u32>,
}

impl Search {
    fn new(function: &Function, def_use: DefUse) -> Search {
        let mut last: SecondaryMap<VReg, Last> = table(function.regs().len());
        let mut place = table(function.insts().len());
        for block in function.layout() {
            for (at, inst) in function[*block].iter().enumerate() {
                place[*inst] = Some(*block);
                let phi = function[*inst].op == Op::PHI;
                function.for_each_use(*inst, |reg| {
                    last[reg] = match last[reg] {
                        Last::Nowhere if !phi => Last::In(*block, at),
                        Last::In(here, _) if here == *block && !phi => Last::In(here, at),
                        _ => Last::Elsewhere,
                    };
                });
            }
        }
        Search { def_use, last, place, tied: RegSet::new(function.regs().len()), ready: table(function.regs().len()) }
    }

    /// The selects of a block that can be guards, with their places.
    fn block(&mut self, function: &Function, block: Block) -> Vec<(usize, Guarded)> {
        let insts = &function[block];
        let mut found = Vec::new();
        for (at, inst) in insts.iter().enumerate() {
            found.extend(self.guarded(function, block, at).map(|guarded| (at, guarded)));
            let variable = function[*inst].op.has(Prop::VariableLatency);
            let start = if function[*inst].op == Op::PHI { 0 } else { self.start(function, *inst) };
            function.for_each_def(*inst, |reg| {
                let usual = if function[reg].file == File::P { PREDICATE } else { USUAL };
                self.ready[reg] = start + if variable { VARIABLE } else { usual };
            });
        }
        insts.iter().for_each(|inst| function.for_each_def(*inst, |reg| self.ready[reg] = 0));
        found
    }

    /// When the sources of an instruction are known.
    fn start(&self, function: &Function, inst: InstId) -> u32 {
        let mut start = 0;
        function.for_each_use(inst, |reg| start = start.max(self.ready[reg]));
        start
    }

    /// What an instruction becomes, if it is a select that can be a guard.
    fn guarded(&mut self, function: &Function, block: Block, at: usize) -> Option<Guarded> {
        let inst = function[block][at];
        let data = &function[inst];
        let plain = data.op == Op::SEL || data.op == Op::FSEL && data.mods == Mods::default();
        if !plain || !is_pure(function, inst) {
            return None;
        }
        let reg = |role| function.arg(inst, role).as_reg().filter(|reg| self.fits(function, *reg));
        let plain = |role| reg(role).filter(|reg| function.arg(inst, role) == Operand::reg(*reg));
        let (result, one, other) = (plain(Role::D)?, plain(Role::A)?, plain(Role::B)?);
        let guard = function.arg(inst, Role::Pp);
        let predicate = guard.as_reg()?;
        if function[predicate].file != File::P || !is_free(function, predicate) {
            return None;
        }
        [(one, other, guard), (other, one, guard.inverted())].into_iter().find_map(|(value, old, guard)| {
            let operation = self.operation(function, block, value, old)?;
            let early = self.ready[predicate] <= self.start(function, operation);
            if !early || self.last[old] != Last::In(block, at) || !self.tied.insert(old) {
                return None;
            }
            // Neither can be the operation of another select now.
            (self.place[operation], self.place[inst]) = (None, None);
            Some(Guarded { operation, result, old, guard })
        })
    }

    /// Whether a register is one that the pass deals with.
    fn fits(&self, function: &Function, reg: VReg) -> bool {
        let data = &function[reg];
        data.file == File::R && data.varying && is_free(function, reg)
    }

    /// The operation in this block that makes a value for one reader, if it may get a guard that
    /// keeps the old value.
    fn operation(&self, function: &Function, block: Block, value: VReg, old: VReg) -> Option<InstId> {
        let inst = self.def_use.single_use_def(function, value).filter(|inst| self.place[*inst] == Some(block))?;
        let op = function[inst].op;
        let other = [Prop::Pseudo, Prop::Convergent, Prop::HandsOver, Prop::VariableLatency];
        let copies = op.has(Prop::Copies);
        let mut defs = 0;
        function.for_each_def(inst, |_| defs += 1);
        if copies || other.into_iter().any(|prop| op.has(prop)) || defs != 1 || !function.olds(inst).is_empty() {
            return None;
        }
        let (mut free, mut reads) = (true, false);
        let mut ended: SmallVec<[VReg; 4]> = SmallVec::new();
        function.for_each_use(inst, |reg| {
            free &= is_free(function, reg) && (reg == old || !self.tied.contains(reg));
            reads |= reg == old;
            let ends = matches!(self.last[reg], Last::In(_, at) if function[block][at] == inst);
            if ends && function[reg].file == File::R && !ended.contains(&reg) {
                ended.push(reg);
            }
        });
        let single = function.arg(inst, Role::D).as_reg() == Some(value);
        (free && single && (reads || ended.len() <= 1)).then_some(inst)
    }
}
