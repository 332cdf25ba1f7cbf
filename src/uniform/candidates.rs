//! Computes the largest consistent set of values that can move to the uniform register file.
//!
//! An instruction is in the set with all its results or not at all, and so are its sources. A value
//! computed from registers is in it only if every reader takes it in a uniform register, or if a
//! move out of it (a [`Twin`]) saves more moves into it or much is computed for it there. Where a
//! loop is crowded, what a value that leaves was made for is handed over instead, once, if it goes
//! round that loop.

use super::taken::Taken;
use super::twins::{Places, Twin, Twins};
use crate::analysis::SHORT_ARM;
use crate::analysis::def_use::is_free;
use crate::analysis::divergence::Varying;
use crate::legal::operands;
use crate::ori::cfg::Cfg;
use crate::ori::list_table::ListTable;
use crate::ori::liveness::RegSet;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::tables::{Feature, Op, Prop};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Whether the target encodes an instruction as it stands.
type Encodes = fn(&Function, InstId) -> bool;

/// The set, and what is known of every register.
pub struct Candidates {
    pub(super) set: RegSet,
    pub(super) definition: SecondaryMap<VReg, Option<(InstId, Block)>>,
    readers: ListTable<VReg, SmallVec<[InstId; 4]>>,
    pub(super) encodes: Encodes,
    /// Instructions to be looked at again: they read what is in the set, and are not in it.
    work: Vec<InstId>,
    pub(super) trial: operands::Trial,
    count: usize,
    /// What instructions take, by what of their registers was in the set: 1 + the index of each.
    pub(super) asked: SecondaryMap<InstId, u32>,
    pub(super) answers: Vec<(u64, Taken)>,
    pub(super) twins: Twins,
    /// Values that were handed over once, which are not again.
    handed: RegSet,
    /// Instructions that must read no uniform register.
    aside: SecondaryMap<InstId, bool>,
    /// Branches that may have their condition in the uniform file.
    branches: SecondaryMap<InstId, bool>,
    /// Whether a value has a reader that takes it in a general register alone, once it is known.
    pub(super) stays: SecondaryMap<VReg, Option<bool>>,
}

/// Instructions that are looked at for what a value is worth; one that serves more is worth it.
pub(super) const WORTH: usize = 256;

impl Candidates {
    /// All values that could be in the set for their definitions' sake.
    pub fn new(function: &mut Function, places: &Places, encodes: Encodes) -> Candidates {
        let mut new = Candidates {
            set: RegSet::new(function.regs().len()),
            definition: table(function.regs().len()),
            readers: ListTable::new(function.regs().len()),
            encodes,
            work: Vec::new(),
            trial: operands::Trial::new(function),
            count: 0,
            asked: table(function.insts().len()),
            answers: Vec::new(),
            twins: Twins::new(function, places),
            handed: RegSet::new(function.regs().len()),
            aside: SecondaryMap::new(),
            branches: SecondaryMap::new(),
            stays: SecondaryMap::new(),
        };
        let (cfg, lanes) = (places.cfg, places.lanes);
        for block in &cfg.rpo {
            for at in 0..function[*block].len() {
                let inst = function[*block][at];
                if lanes.aside.contains(*block) {
                    new.aside[inst] = true;
                }
                if may_be_uniform(function, places, *block, inst) {
                    new.branches[inst] = true;
                }
                function.for_each_use(inst, |reg| {
                    if new.readers[reg].last() != Some(&inst) {
                        new.readers[reg].push(inst);
                    }
                });
                function.for_each_def(inst, |reg| new.definition[reg] = Some((inst, *block)));
                if !lanes.interleaved.contains(*block) && new.may_move(function, lanes, inst) {
                    new.count += 1;
                    function.for_each_def(inst, |reg| {
                        new.set.insert(reg);
                    });
                }
            }
        }
        new.import(function, places);
        new.check_sources(function, places);
        new.note_readers(function, cfg);
        new
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn contains(&self, reg: VReg) -> bool {
        self.set.contains(reg)
    }

    /// Whether an instruction is in the set.
    #[inline]
    pub fn has(&self, function: &Function, inst: InstId) -> bool {
        let mut has = None;
        let moves = |reg: VReg| self.set.contains(reg) && self.twins.of(reg) != Twin::In;
        function.for_each_def(inst, |reg| has = has.or(Some(moves(reg))));
        has == Some(true)
    }

    /// Which values are in both files.
    pub fn twins(&self) -> &Twins {
        &self.twins
    }

    /// Adds values that are computed in the general file and can be handed over.
    fn import(&mut self, function: &Function, places: &Places) {
        if !self.twins.any {
            return;
        }
        for inst in places.cfg.rpo.iter().flat_map(|block| &function[*block]) {
            if !self.has(function, *inst) {
                self.hand_over(function, places, *inst);
            }
        }
    }

    /// Adds the result of an instruction that is not in the set if it can be handed over, for the
    /// first time; whether it is.
    fn hand_over(&mut self, function: &Function, places: &Places, inst: InstId) -> bool {
        let mut again = false;
        function.for_each_def(inst, |reg| again |= self.handed.contains(reg));
        let Some(reg) =
            Some(inst).filter(|_| !again).and_then(|inst| self.twins.import(function, places, inst, &self.readers))
        else {
            return false;
        };
        self.count += 1;
        self.set.insert(reg);
        self.handed.insert(reg);
        true
    }

    /// Whether a reader may have a value in a uniform register.
    pub(super) fn offers(&self, reg: VReg, reader: InstId) -> bool {
        self.set.contains(reg) && self.twins.reaches(reg, reader) && !self.is_aside(reader)
    }

    /// The condition of the set that a branch takes in the uniform file.
    pub(super) fn condition(&self, function: &Function, inst: InstId) -> Option<VReg> {
        let condition = function[inst].guard.as_reg().filter(|_| self.branches[inst])?;
        self.offers(condition, inst).then_some(condition)
    }

    /// Whether an instruction must read no uniform register.
    pub(super) fn is_aside(&self, inst: InstId) -> bool {
        self.aside[inst]
    }

    /// Whether more is handed over of a value and what is computed from it in the set, by how often
    /// it is, than moving the value itself takes.
    fn is_worth_a_move(&self, function: &Function, value: VReg) -> bool {
        let (true, Some((_, home))) = (self.twins.any, self.definition[value]) else { return false };
        self.gains_more(function, value, self.twins.cost(value, home))
    }

    /// Whether a value goes round a crowded loop in the uniform file, or what is computed from it.
    pub fn serves_a_loop(&self, function: &Function, value: VReg) -> bool {
        self.twins.crowds && self.gains_more(function, value, 0.0)
    }

    /// Whether moves of a value and of what is computed from it in the set, by how often they are
    /// executed, are more than `cost`.
    fn gains_more(&self, function: &Function, value: VReg, cost: f64) -> bool {
        let (mut gain, mut seen, mut work) = (0.0, SmallVec::<[InstId; 16]>::new(), vec![value]);
        while let Some(reg) = work.pop() {
            for reader in &self.readers[reg] {
                if seen.contains(reader) {
                    continue;
                }
                if seen.len() == WORTH || gain > cost {
                    return true;
                }
                seen.push(*reader);
                let within = self.has(function, *reader);
                gain += self.twins.gain(function, *reader, reg, within);
                if within {
                    function.for_each_def(*reader, |def| work.push(def));
                }
            }
        }
        gain > cost
    }

    /// The instruction that defines a value.
    pub fn definition(&self, reg: VReg) -> Option<InstId> {
        self.definition[reg].map(|definition| definition.0)
    }

    pub fn readers(&self, reg: VReg) -> &[InstId] {
        &self.readers[reg]
    }

    /// The same instruction in the uniform datapath, in no block; `None` where the target has none.
    /// `renamed` gives each register the one that stands for it.
    pub fn uniform_form(
        &mut self,
        function: &mut Function,
        inst: InstId,
        renamed: &mut dyn FnMut(&mut Function, VReg) -> VReg,
    ) -> Option<InstId> {
        operands::uniform_form(function, inst, &self.encodes, &self.trial, renamed)
    }

    /// Whether an instruction has results that the uniform file could hold, and a form that makes
    /// them there.
    fn may_move(&mut self, function: &mut Function, lanes: &Varying, inst: InstId) -> bool {
        let data = &function[inst];
        let (op, phi) = (data.op, data.op == Op::PHI);
        if !data.guard.is_null() || !(phi || op == Op::UNDEF || !op.info().uniform.is_empty()) {
            return false;
        }
        let (mut any, mut all) = (false, true);
        function.for_each_def(inst, |reg| {
            any = true;
            let file = function[reg].file;
            all &= file == File::R || file == File::P && !phi;
            all &= is_free(function, reg) && !lanes.regs.contains(reg);
        });
        function.for_each_use(inst, |reg| all &= is_free(function, reg) || function[reg].file == File::UR);
        if !any || !all {
            return false;
        }
        phi || op == Op::UNDEF || operands::has_uniform_form(function, inst, &self.encodes, &self.trial)
    }

    /// Takes out what has a source that is not in the set, until none is left; in a crowded kernel
    /// it is computed in the general file and handed over if it can be.
    fn check_sources(&mut self, function: &Function, places: &Places) {
        let mut again = true;
        while again {
            again = false;
            for inst in places.cfg.rpo.iter().flat_map(|block| &function[*block]) {
                if !self.has(function, *inst) || self.sources_in(function, *inst) {
                    continue;
                }
                again = true;
                self.take_out(function, *inst);
                if !places.crowded.is_empty() {
                    self.hand_over(function, places, *inst);
                }
            }
        }
    }

    fn sources_in(&self, function: &Function, inst: InstId) -> bool {
        let mut all = true;
        function.for_each_use(inst, |reg| {
            all &= self.offers(reg, inst) || matches!(function[reg].file, File::UR | File::UP);
        });
        all
    }

    /// Everything outside the set that reads it is to be looked at.
    fn note_readers(&mut self, function: &Function, cfg: &Cfg) {
        for inst in cfg.rpo.iter().flat_map(|block| &function[*block]) {
            let mut reads = false;
            function.for_each_use(*inst, |reg| reads |= self.set.contains(reg));
            if reads && !self.has(function, *inst) {
                self.work.push(*inst);
            }
        }
    }

    /// Takes one instruction out of the set.
    fn take_out(&mut self, function: &Function, inst: InstId) {
        self.count -= 1;
        function.for_each_def(inst, |reg| {
            self.set.remove(reg);
            self.twins.set(reg, Twin::None);
        });
    }

    /// Takes the definition of a value out, and everything that is computed from it; in a crowded
    /// kernel what can be handed over is.
    pub fn drop_value(&mut self, function: &Function, places: &Places, reg: VReg) {
        self.leave(function, reg, Some(places).filter(|places| !places.crowded.is_empty()));
    }

    /// The same, with nothing handed over: uniform registers are too few.
    pub fn give_up(&mut self, function: &Function, reg: VReg) {
        self.leave(function, reg, None);
    }

    fn leave(&mut self, function: &Function, reg: VReg, places: Option<&Places>) {
        let first = self.definition(reg);
        let mut dropped: Vec<InstId> = first.into_iter().collect();
        while let Some(inst) = dropped.pop() {
            let moves = self.has(function, inst);
            let mut within = false;
            function.for_each_def(inst, |reg| within |= self.set.contains(reg));
            // What is handed over is computed in the general file, whatever its sources are.
            if !within || !moves && Some(inst) != first {
                continue;
            }
            self.take_out(function, inst);
            if moves {
                self.work.push(inst);
            }
            let places = places.filter(|_| moves && Some(inst) != first);
            if !places.is_some_and(|places| self.hand_over(function, places, inst)) {
                function.for_each_def(inst, |reg| dropped.extend(self.readers[reg].iter().copied()));
            }
        }
    }

    /// Takes out values that are needed in a general register and constants that nobody needs in a
    /// uniform one, until the rest fits together.
    pub fn settle(&mut self, function: &mut Function, places: &Places) {
        loop {
            while let Some(inst) = self.work.pop() {
                if self.has(function, inst) {
                    continue;
                }
                for reg in self.taken(function, inst).general {
                    if self.is_in_both(function, reg) {
                        continue;
                    }
                    if function[reg].file == File::R && self.is_worth_a_move(function, reg)
                        || self.is_behind_a_chain(function, reg)
                    {
                        self.twins.set(reg, Twin::Out);
                    } else {
                        self.drop_value(function, places, reg);
                    }
                }
            }
            // What is not worth a move goes first: beside it a constant may seem to serve nobody.
            self.drop_twins(function, places);
            if !self.work.is_empty() {
                continue;
            }
            self.drop_unread(function);
            if self.work.is_empty() {
                return;
            }
        }
    }

    /// Values that are made twice are worth it only where the uniform one serves another uniform
    /// operation, or nobody needs the other. What reads one that goes is to be looked at again: it
    /// may have taken another operand in a uniform register only beside this one.
    fn drop_unread(&mut self, function: &mut Function) {
        let regs: Vec<VReg> = function.regs().keys().filter(|reg| self.set.contains(*reg)).collect();
        let mut useless: Vec<InstId> = Vec::new();
        for reg in regs {
            let Some((inst, _)) = self.definition[reg].filter(|_| self.may_be_twice(function, reg)) else { continue };
            if useless.last() != Some(&inst) && !self.is_useful(function, inst) {
                useless.push(inst);
            }
        }
        for inst in useless {
            self.take_out(function, inst);
            function.for_each_def(inst, |reg| self.work.extend(self.readers[reg].iter().copied()));
        }
    }

    /// Values that are moved and are not worth it any more.
    fn drop_twins(&mut self, function: &mut Function, places: &Places) {
        if !self.twins.any && !self.twins.out {
            return;
        }
        let regs: Vec<VReg> = function.regs().keys().filter(|reg| self.set.contains(*reg)).collect();
        for reg in regs {
            let twin = if self.set.contains(reg) { self.twins.of(reg) } else { Twin::None };
            let worth = twin == Twin::None
                || function[reg].file == File::R && self.is_worth_a_move(function, reg)
                || twin == Twin::Out && self.is_behind_a_chain(function, reg);
            if worth {
                continue;
            }
            if self.twins.of(reg) == Twin::In {
                self.drop_value(function, places, reg);
            } else {
                // Only if it is still needed in the general file does it go.
                self.twins.set(reg, Twin::None);
                self.work.extend(self.readers[reg].iter().copied());
            }
        }
    }

    fn is_useful(&mut self, function: &mut Function, inst: InstId) -> bool {
        let mut defs: SmallVec<[VReg; 4]> = SmallVec::new();
        function.for_each_def(inst, |reg| defs.push(reg));
        let (mut chained, mut taken, mut general) = (false, false, false);
        for reg in defs {
            for reader in self.readers[reg].clone() {
                if self.has(function, reader) {
                    chained = true;
                    continue;
                }
                let found = self.taken(function, reader);
                taken |= found.uniform.contains(&reg);
                general |= found.general.contains(&reg);
            }
        }
        // Where instructions name constants themselves, these are no worse in general registers.
        chained || taken && !general && !function.target().has(Feature::ConstantOperandsPreferred)
    }

    /// Whether a value of the set is there in the general file too, if it is needed.
    pub fn is_in_both(&self, function: &Function, reg: VReg) -> bool {
        self.twins.of(reg) != Twin::None || self.may_be_twice(function, reg)
    }

    /// Whether a value may be made in both files: it has no register source.
    pub fn may_be_twice(&self, function: &Function, reg: VReg) -> bool {
        let Some((inst, _)) = self.definition[reg] else { return false };
        let op = function[inst].op;
        if !op.has(Prop::BothFiles) {
            return false;
        }
        let mut sources = false;
        function.for_each_use(inst, |_| sources = true);
        !sources
    }
}

/// Whether a branch may have its condition in the uniform file: no lanes are apart, and neither of
/// its arms is so short that its instructions are guarded instead, which takes a predicate.
fn may_be_uniform(function: &Function, places: &Places, block: Block, inst: InstId) -> bool {
    let data = &function[inst];
    let conditional = data.op == Op::BRA && data.guard.as_reg().is_some();
    if !conditional || !function.target().has(Feature::UniformBranchCondition) || places.lanes.divergent.contains(block)
    {
        return false;
    }
    let succs = &places.cfg.succs;
    let short = |to: Block| places.cfg.preds[to].len() == 1 && function[to].len() <= SHORT_ARM + 1;
    let is_arm = |to: Block, other: Block| short(to) && (succs[to][..] == [other] || succs[to] == succs[other]);
    let [yes, no] = succs[block][..] else { return false };
    !is_arm(yes, no) && !is_arm(no, yes)
}
