//! Pass `uniform_loads`: loads from the same place of a constant bank become one, to uniform
//! registers, where their readers take it there.
//!
//! Before a load is repeated near its readers it has many, and one that needs a general register
//! keeps it there (`uniform_registers`). What is repeated has few, and often stands where lanes are
//! apart. What is guaranteed:
//! - a load goes only if all its readers take a uniform register, in some order of their operands;
//! - the one that stays is in a block in which the warp is converged or its other lanes wait, and
//!   is not executed more often than those that go were; nothing beside what is held reads it;
//! - no more uniform registers live in a block than the file has, or calls there keep, minus a
//!   reserve. No load of a device function moves: its callers may be diverged.

use super::constants::{RESERVE, kept, kept_at_ends};
use crate::analysis::PassCx;
use crate::analysis::def_use::is_free;
use crate::analysis::divergence::Varying;
use crate::analysis::loops::Loops;
use crate::legal::operands::{self, Trial};
use crate::ori::cfg::{BlockSet, Cfg, Dominators};
use crate::ori::hash::QuickMap;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, Convention, File, Function, InstId, Operand, VReg, table};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::ori::{Class, Direction};
use crate::tables::{Feature, Mods, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Readers of a load, and loads from one place, that are looked at.
const MOST: usize = 64;

/// Whether the target encodes an instruction as it stands.
type Encodes = fn(&Function, InstId) -> bool;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let function = &*cx.function;
    let target = function.target();
    let fits = target.has(Feature::UniformDatapath)
        && !target.has(Feature::ConstantOperandsPreferred)
        && function.attributes().convention == Convention::Kernel;
    if !fits || !function.layout().iter().flat_map(|block| &function[*block]).any(|inst| loads(function, *inst)) {
        cx.unchanged = true;
        return;
    }
    let (cfg, loops, dominators, lanes) = (cx.cfg(), cx.loops(), cx.dominators(), cx.divergence());
    let (liveness, encodes) = (cx.liveness(), cx.encoder.encodes);
    let function = &mut *cx.function;
    let places = found(function, &cfg, &lanes);
    let free = free(function, &cfg, &liveness, &kept_at_ends(function, &cfg, &lanes));
    let (trial, registers) = (Trial::new(function), function.regs().len());
    let mut joiner = Joiner {
        cfg: &cfg,
        loops: &loops,
        dominators: &dominators,
        lanes: &lanes,
        trial,
        encodes,
        free,
        gone: SortedSet::new(),
    };
    places.into_iter().for_each(|loads| joiner.join(function, loads));
    for block in cfg.rpo.iter().filter(|_| !joiner.gone.is_empty()) {
        function[*block].retain(|inst| !joiner.gone.contains(inst));
    }
    cx.unchanged = joiner.gone.is_empty() && function.regs().len() == registers;
}

/// Whether an instruction loads from a fixed place of a constant bank to general registers.
fn loads(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let mut plain = data.op.has(Prop::LoadsConstant) && data.op.has(Prop::BothFiles) && data.guard.is_null();
    if plain {
        function.for_each_use(inst, |_| plain = false);
        function.for_each_def(inst, |reg| plain &= function[reg].file == File::R && is_free(function, reg));
    }
    plain
}

/// A load that may go for its own sake.
struct Load {
    inst: InstId,
    block: Block,
    regs: SmallVec<[VReg; 4]>,
    readers: SmallVec<[(InstId, Block); 4]>,
    fails: bool,
}

/// What is loaded from one place in the same way.
type Loads = Vec<Load>;

/// The loads that alone make their registers, by what they load, in the order of the first of each.
fn found(function: &Function, cfg: &Cfg, lanes: &Varying) -> Vec<Loads> {
    let mut found: Vec<Load> = Vec::new();
    // One more than the load that makes each register.
    let mut of: SecondaryMap<VReg, u32> = table(function.regs().len());
    for block in &cfg.rpo {
        for inst in &function[*block] {
            let loads = loads(function, *inst);
            let (mut regs, mut fails) = (SmallVec::new(), false);
            function.for_each_def(*inst, |reg| {
                regs.push(reg);
                if let Some(load) = of[reg].checked_sub(1) {
                    fails = true;
                    found.get_mut(load as usize).into_iter().for_each(|load: &mut Load| load.fails = true);
                }
                of[reg] = if loads { found.len() as u32 + 1 } else { u32::MAX };
            });
            if loads {
                found.push(Load { inst: *inst, block: *block, regs, readers: SmallVec::new(), fails });
            }
        }
    }
    for block in &cfg.rpo {
        let aside = lanes.aside.contains(*block);
        for inst in &function[*block] {
            function.for_each_use(*inst, |reg| {
                if let Some(load) = of[reg].checked_sub(1).and_then(|at| found.get_mut(at as usize)) {
                    load.fails |= aside || load.readers.len() == MOST;
                    if load.readers.last().is_none_or(|last| last.0 != *inst) {
                        load.readers.push((*inst, *block));
                    }
                }
            });
        }
    }
    found.retain(|load| !load.fails && !load.readers.is_empty());
    by_place(function, found)
}

fn by_place(function: &Function, found: Vec<Load>) -> Vec<Loads> {
    let (mut places, mut at): (Vec<Loads>, QuickMap<(Operand, Mods), usize>) = (Vec::new(), QuickMap::default());
    for load in found {
        let key = (function.arg(load.inst, Role::C), function[load.inst].mods);
        let place = *at.entry(key).or_insert(places.len());
        if place == places.len() {
            places.push(Loads::new());
        }
        places[place].push(load);
    }
    places
}

/// Uniform registers that are free in each block where they are fewest.
pub(super) fn free(
    function: &Function,
    cfg: &Cfg,
    liveness: &Liveness,
    ends: &SortedMap<Block, usize>,
) -> SecondaryMap<Block, usize> {
    let mut free: SecondaryMap<Block, usize> = SecondaryMap::new();
    for block in &cfg.rpo {
        let is_uniform = |reg: VReg| function[reg].file == File::UR;
        let mut words = RESERVE + liveness.live[*block].iter().filter(|reg| is_uniform(**reg)).count();
        let mut most = ends.get(block).copied().unwrap_or(usize::MAX);
        for inst in &function[*block] {
            function.for_each_def(*inst, |reg| words += usize::from(is_uniform(reg)));
            most = most.min(kept(function, *inst));
        }
        free[*block] = most.saturating_sub(words);
    }
    free
}

/// What makes one load of several.
struct Joiner<'a> {
    cfg: &'a Cfg,
    loops: &'a Loops,
    dominators: &'a Dominators,
    lanes: &'a Varying,
    trial: Trial,
    encodes: Encodes,
    free: SecondaryMap<Block, usize>,
    /// Loads that nobody reads any more.
    gone: SortedSet<InstId>,
}

impl Joiner<'_> {
    /// Makes one load of those from one place whose readers take it.
    fn join(&mut self, function: &mut Function, mut loads: Loads) {
        loads.retain(|load| load.readers.iter().all(|reader| self.takes(function, reader.0, &load.regs)));
        loads.truncate(MOST);
        let Some(first) = loads.first() else { return };
        let (inst, words) = (first.inst, first.regs.len());
        let Some(place) = self.place(&loads) else { return };
        let readers = loads.iter().flat_map(|load| &load.readers).map(|reader| reader.1);
        let blocks = between(function.block_limit(), self.cfg, place, readers);
        if blocks.iter().any(|block| self.free[*block] < words) {
            return;
        }
        let names: SmallVec<[VReg; 4]> = (0..words).map(|_| function.new_reg(File::UR)).collect();
        names.iter().for_each(|reg| function[*reg].varying = false);
        let regs = first.regs.clone();
        let Some(new) =
            operands::uniform_form(function, inst, &self.encodes, &self.trial, &mut |_, reg| named(&regs, &names, reg))
        else {
            return;
        };
        function[new].line = function[inst].line;
        let before = loads.iter().map(|load| load.inst).find(|inst| function[place].contains(inst));
        let before = before.and_then(|inst| function[place].iter().position(|other| *other == inst));
        let mut moved = false;
        for load in &loads {
            moved |= self.rename(function, load, &names);
        }
        if moved {
            let at = before.unwrap_or_else(|| function.first_terminator(place));
            function[place].insert(at, new);
            blocks.iter().for_each(|block| self.free[*block] -= words);
        }
    }

    /// Whether an instruction takes registers in the uniform file.
    fn takes(&self, function: &mut Function, reader: InstId, regs: &[VReg]) -> bool {
        reads_whole(function, reader, regs)
            && operands::takes_uniform(function, reader, &self.encodes, &self.trial, regs)
    }

    /// Where one load may stand for all of these, of the blocks before them that are executed least
    /// the last; `None` where it would be executed more often.
    fn place(&self, loads: &[Load]) -> Option<Block> {
        let mut at = loads.iter().map(|load| Some(load.block)).reduce(|a, b| self.dominators.common(a?, b?))??;
        let mut best = None;
        loop {
            let rarer = |best: Block| self.loops.depth(at) < self.loops.depth(best);
            if !self.lanes.interleaved.contains(at) && best.is_none_or(rarer) {
                best = Some(at);
            }
            let Some(next) = self.dominators.parent(at) else { break };
            at = next;
        }
        let often = |block: Block| 10f64.powi(self.loops.depth(block).min(8) as i32);
        let sum: f64 = loads.iter().map(|load| often(load.block)).sum();
        best.filter(|best| often(*best) <= sum)
    }

    /// Gives the readers of a load the uniform registers, if they still take them; whether they do.
    fn rename(&mut self, function: &mut Function, load: &Load, names: &[VReg]) -> bool {
        if !load.readers.iter().all(|reader| self.takes(function, reader.0, &load.regs)) {
            return false;
        }
        for (reader, _) in &load.readers {
            for at in 0..function.args(*reader).len() {
                let operand = function.args(*reader)[at];
                let mut within = function.direction(*reader, at) == Direction::Use;
                function.for_each_reg(operand, |reg| within &= load.regs.contains(&reg));
                function.args_mut(*reader)[at] = match (operand.as_reg(), operand.as_vector()) {
                    (Some(reg), _) if within => operand.with_reg(named(&load.regs, names, reg)),
                    (_, Some(vector)) if within => {
                        let regs = function.vector_regs(vector).iter();
                        let regs: SmallVec<[VReg; 4]> = regs.map(|reg| named(&load.regs, names, *reg)).collect();
                        let vector = function.vector(&regs);
                        operand.with_vector(vector)
                    }
                    _ => operand,
                };
            }
            operands::put_in_order(function, *reader, &self.encodes);
        }
        self.gone.insert(load.inst);
        true
    }
}

/// The blocks from a place to readers of what is made there.
pub(super) fn between(limit: usize, cfg: &Cfg, place: Block, readers: impl Iterator<Item = Block>) -> Vec<Block> {
    let mut seen = BlockSet::new(limit);
    seen.insert(place);
    let (mut all, mut work) = (vec![place], Vec::new());
    work.extend(readers.filter(|block| seen.insert(*block)));
    while let Some(block) = work.pop() {
        all.push(block);
        work.extend(cfg.preds[block].iter().copied().filter(|pred| seen.insert(*pred)));
    }
    all
}

/// The register that stands for one.
fn named(regs: &[VReg], names: &[VReg], reg: VReg) -> VReg {
    regs.iter().position(|old| *old == reg).map_or(reg, |at| names[at])
}

/// Whether an instruction reads registers in operands that could be uniform alone, each with no
/// others.
fn reads_whole(function: &Function, inst: InstId, regs: &[VReg]) -> bool {
    let (data, roles) = (&function[inst], function[inst].op.info().roles);
    let names = |operand: Operand| {
        let (mut any, mut all) = (false, true);
        function.for_each_reg(operand, |reg| {
            any |= regs.contains(&reg);
            all &= regs.contains(&reg);
        });
        (any, all)
    };
    let fits = |(at, operand): (usize, &Operand)| match names(*operand) {
        (false, _) => true,
        (true, all) => {
            let general = roles.get(at).is_some_and(|role| role.class == Class::Reg);
            all && general && function.direction(inst, at) == Direction::Use
        }
    };
    let outside = function.olds(inst).iter().chain([&data.guard]).all(|operand| !names(*operand).0);
    outside && !data.op.has(Prop::Pseudo) && function.args(inst).iter().enumerate().all(fits)
}
