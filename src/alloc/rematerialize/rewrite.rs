//! Inserts the copies of the chosen values before their readers.
//!
//! A copy stands before its readers in their block, or at the end of a block that dominates theirs.
//! Readers then name the copies only; the old definitions are left to DCE.

use super::candidates::{Candidates, Definition, FAR, NEAR};
use super::{Places, Ranges, first_points};
use crate::analysis::def_use::sets_stack_pointer;
use crate::ori::hash::QuickMap;
use crate::ori::{Block, File, Function, InstId, Operand, VReg, table};
use crate::tables::Prop;
use crate::tables::ori::Direction;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

struct Rewriter<'a> {
    function: &'a mut Function,
    places: &'a Places<'a>,
    candidates: &'a Candidates,
    ranges: &'a Ranges,
    /// Registers that hold values for the blocks behind a place.
    served: QuickMap<(Block, VReg), VReg>,
    /// Registers that hold values in the block at hand, and where they were last read.
    local: QuickMap<VReg, (VReg, u32)>,
    block: Block,
    point: u32,
    line: u32,
    /// Readers of each register.
    uses: SecondaryMap<VReg, u32>,
    out: Vec<InstId>,
}

pub fn run(function: &mut Function, places: &Places, candidates: &Candidates, ranges: &Ranges) {
    let mut ends: SecondaryMap<Block, Vec<u32>> = SecondaryMap::new();
    for (i, candidate) in candidates.all.iter().enumerate().filter(|c| c.1.chosen) {
        candidate.groups.iter().filter(|g| g.serves).for_each(|g| ends[g.place].push(i as u32));
    }
    let (_, first) = first_points(function);
    let block = function.entry();
    let (served, local) = (QuickMap::default(), QuickMap::default());
    let uses = table(function.regs().len());
    let mut rewriter = Rewriter {
        function,
        places,
        candidates,
        ranges,
        served,
        local,
        block,
        point: 0,
        line: 0,
        uses,
        out: Vec::new(),
    };
    for block in &places.cfg.rpo {
        rewriter.block(*block, first[*block], &ends[*block]);
    }
    let uses = rewriter.uses;
    sweep_up(function, places, candidates, uses);
}

/// Removes what may be repeated and nobody reads.
fn sweep_up(function: &mut Function, places: &Places, candidates: &Candidates, mut uses: SecondaryMap<VReg, u32>) {
    let mut dead: SecondaryMap<InstId, bool> = table(function.insts().len());
    let mut blocks: SecondaryMap<Block, bool> = SecondaryMap::new();
    for (block, inst) in candidates.repeatable.iter().rev() {
        let mut read = false;
        function.for_each_def(*inst, |reg| read |= uses[reg] > 0);
        if !read {
            function.for_each_use(*inst, |reg| uses[reg] -= 1);
            (dead[*inst], blocks[*block]) = (true, true);
        }
    }
    for block in places.cfg.rpo.iter().filter(|b| blocks[**b]) {
        function[*block].retain(|inst| !dead[*inst]);
    }
}

impl Rewriter<'_> {
    fn block(&mut self, block: Block, first: u32, ends: &[u32]) {
        self.local.clear();
        self.block = block;
        let end = self.function.first_terminator(block);
        let insts = std::mem::take(&mut self.function[block]);
        for (at, inst) in insts.iter().enumerate() {
            (self.point, self.line) = (first + 2 * at as u32, self.function[*inst].line);
            if at == end {
                self.leave(ends);
            }
            // Between the move of the stack pointer and its call nothing may reach for the frame.
            let calls = self.function[*inst].op.has(Prop::Clobbers);
            let moved = self.out.pop_if(|last| calls && sets_stack_pointer(self.function, *last));
            self.reader(*inst);
            self.out.extend(moved);
            self.out.push(*inst);
        }
        if end == insts.len() {
            self.leave(ends);
        }
        self.function[block] = std::mem::take(&mut self.out);
    }

    /// Computes what the blocks behind read.
    fn leave(&mut self, ends: &[u32]) {
        for i in ends {
            for reg in self.candidates.all[*i as usize].regs.clone() {
                let held = self.held(reg);
                self.served.insert((self.block, reg), held);
            }
        }
    }

    fn reader(&mut self, inst: InstId) {
        let mut concerned = false;
        self.function.for_each_use(inst, |reg| {
            self.uses[reg] += 1;
            concerned |= self.candidates.is_gone(reg);
        });
        if !concerned {
            return;
        }
        self.function.for_each_use(inst, |reg| self.uses[reg] -= 1);
        for i in 0..self.function.args(inst).len() {
            if self.function.direction(inst, i) == Direction::Use {
                let operand = self.function.args(inst)[i];
                let new = self.operand(operand, |this, reg| this.read(reg));
                self.function.args_mut(inst)[i] = new;
            }
        }
        self.function.for_each_use(inst, |reg| self.uses[reg] += 1);
    }

    /// The operand with other registers.
    fn operand(&mut self, operand: Operand, mut f: impl FnMut(&mut Self, VReg) -> VReg) -> Operand {
        if let Some(reg) = operand.as_reg() {
            return operand.with_reg(f(self, reg));
        }
        let Some(vector) = operand.as_vector() else { return operand };
        let regs: SmallVec<[VReg; 4]> = self.function.vector_regs(vector).into();
        let new: SmallVec<[VReg; 4]> = regs.iter().map(|reg| f(self, *reg)).collect();
        if new == regs {
            return operand;
        }
        let vector = self.function.vector(&new);
        operand.with_vector(vector)
    }

    /// The register with a value that the block reads.
    fn read(&mut self, reg: VReg) -> VReg {
        let Some(candidate) = self.candidates.of[reg].map(|i| &self.candidates.all[i as usize]) else { return reg };
        match self.places.place(self.block, candidate.home) {
            _ if !candidate.chosen => reg,
            Some(place) if place != self.block => self.served.get(&(place, reg)).copied().unwrap_or(reg),
            Some(_) => self.held(reg),
            None => reg,
        }
    }

    /// The register with a value in this block, computed if it must be.
    fn held(&mut self, reg: VReg) -> VReg {
        if let Some((held, last)) = self.local.get(&reg).copied()
            && self.point - last <= if self.function[reg].file == File::P { NEAR } else { FAR }
        {
            self.touch(reg);
            return held;
        }
        let Definition::One(inst, _) = self.candidates.definition[reg] else { return reg };
        self.again(inst);
        self.local.get(&reg).map_or(reg, |held| held.0)
    }

    /// Notes that a value, and what one instruction computes with it, is read here.
    fn touch(&mut self, reg: VReg) {
        let candidate = self.candidates.of[reg].map(|i| &self.candidates.all[i as usize]);
        for reg in candidate.map_or(&[reg][..], |c| &c.regs) {
            if let Some(held) = self.local.get_mut(reg) {
                held.1 = self.point;
            }
        }
    }

    /// Repeats an instruction here.
    fn again(&mut self, inst: InstId) {
        let data = self.function[inst];
        let mut args: SmallVec<[Operand; 8]> = self.function.args(inst).into();
        for (i, operand) in args.iter_mut().enumerate() {
            if self.function.direction(inst, i) == Direction::Use {
                *operand = self.operand(*operand, |this, reg| this.source(reg));
            }
        }
        for (i, operand) in args.iter_mut().enumerate() {
            if self.function.direction(inst, i) == Direction::Def {
                *operand = self.operand(*operand, |this, reg| this.fresh(reg));
            }
        }
        let new = self.function.make_with(data.op, &args);
        let made = &mut self.function[new];
        (made.mods, made.contract, made.line) = (data.mods, data.contract, self.line);
        self.function.for_each_use(new, |reg| self.uses[reg] += 1);
        self.out.push(new);
    }

    /// What a repeated instruction reads: a register that lives here, or one that is computed here
    /// too.
    fn source(&mut self, reg: VReg) -> VReg {
        if self.candidates.is_anchor(reg) {
            return reg;
        }
        let lives = || self.ranges.of[reg].iter().any(|r| r.0 <= self.point && self.point < r.1);
        if self.function[reg].file == File::R && !self.candidates.is_gone(reg) && lives() {
            return reg;
        }
        self.held(reg)
    }

    fn fresh(&mut self, reg: VReg) -> VReg {
        let fresh = self.function.another_register(reg);
        self.local.insert(reg, (fresh, self.point));
        fresh
    }
}
