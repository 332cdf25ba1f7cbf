//! The registers that an instruction defines and reads, from the lists or from its operands.

use super::{Function, InstId, VReg};
use crate::ori::operand::Operand;
use crate::tables::Op;
use cranelift_entity::packed_option::ReservedValue;

impl Function {
    /// Calls `f` for each register of an operand.
    #[inline]
    pub fn for_each_reg(&self, operand: Operand, mut f: impl FnMut(VReg)) {
        // One call of `f`, so that what it does is compiled once.
        let (mut reg, mut others): (VReg, &[VReg]) = if let Some(reg) = operand.as_reg() {
            (reg, &[])
        } else if let Some(vector) = operand.as_vector()
            && let Some((first, others)) = self.vector_regs(vector).split_first()
        {
            (*first, others)
        } else {
            return;
        };
        loop {
            f(reg);
            let Some((next, rest)) = others.split_first() else { return };
            (reg, others) = (*next, rest);
        }
    }

    /// Calls `f` for each register that an instruction defines.
    #[inline]
    pub fn for_each_def(&self, inst: InstId, f: impl FnMut(VReg)) {
        for_each(self.insts.defs(inst), |from| self.some_defs(inst, from), f);
    }

    /// Calls `f` for each register that an instruction reads: sources, guard and tied old values.
    #[inline]
    pub fn for_each_use(&self, inst: InstId, f: impl FnMut(VReg)) {
        for_each(self.insts.uses(inst), |from| self.some_uses(inst, from), f);
    }

    /// Calls `f` for each source of an instruction: PHI inputs or roles that it reads, and implicit
    /// uses.
    #[inline]
    pub fn for_each_source(&self, inst: InstId, f: impl FnMut(Operand)) {
        self.sources(inst).for_each(f);
    }

    /// Lists the registers of all instructions, so that the two above go over lists.
    pub fn list_registers(&mut self) {
        let (mut list, changed) = self.insts.begin();
        for inst in changed {
            let first = list.len();
            self.find_defs(inst, |reg| list.push(reg));
            let uses = list.len();
            self.find_uses(inst, |reg| list.push(reg));
            self.insts.note(inst, &list, first, uses);
        }
        self.insts.finish(list);
    }

    /// An instruction whose list of registers is not that of its operands, if there is one.
    pub fn wrongly_listed(&self) -> Option<InstId> {
        let insts = self.layout.iter().flat_map(|block| &self.blocks[*block]).copied();
        let mut listed = insts.filter_map(|inst| self.insts.defs(inst).zip(self.insts.uses(inst)).map(|of| (inst, of)));
        let wrong = listed.find(|(inst, (defs, uses))| {
            let (mut defs, mut uses, mut same) = (defs.iter(), uses.iter(), true);
            self.find_defs(*inst, |reg| same &= defs.next() == Some(&reg));
            self.find_uses(*inst, |reg| same &= uses.next() == Some(&reg));
            !(same && defs.len() + uses.len() == 0)
        });
        wrong.map(|(inst, _)| inst)
    }

    #[inline(never)]
    fn some_defs(&self, inst: InstId, from: usize) -> Found {
        let mut some = Found::new(from);
        self.find_defs(inst, |reg| some.add(reg));
        some
    }

    #[inline(never)]
    fn some_uses(&self, inst: InstId, from: usize) -> Found {
        let mut some = Found::new(from);
        self.find_uses(inst, |reg| some.add(reg));
        some
    }

    /// As [`Function::for_each_def`], from the operands.
    #[expect(clippy::redundant_closure, reason = "`&mut f` is called by a function that is not inlined")]
    fn find_defs(&self, inst: InstId, mut f: impl FnMut(VReg)) {
        let data = &self.insts[inst];
        let len = usize::from(data.len);
        let places = if data.op == Op::PHI { 1 } else { data.op.places().0 };
        let extras = (len - usize::from(data.extra_defs), len);
        let operands = Operands { all: self.args(inst), places, run: extras, last: None };
        for operand in operands {
            self.for_each_reg(operand, |reg| f(reg));
        }
    }

    /// As [`Function::for_each_use`], from the operands.
    #[expect(clippy::redundant_closure, reason = "`&mut f` is called by a function that is not inlined")]
    fn find_uses(&self, inst: InstId, mut f: impl FnMut(VReg)) {
        let data = &self.insts[inst];
        let sources = self.sources(inst);
        let olds = (usize::from(data.len), sources.all.len());
        let last = (!data.guard.is_null() || data.olds != 0).then_some((data.guard, olds));
        for operand in (Operands { last, ..sources }) {
            self.for_each_reg(operand, |reg| f(reg));
        }
    }

    #[inline]
    fn sources(&self, inst: InstId) -> Operands<'_> {
        let data = &self.insts[inst];
        let (start, len) = (data.start as usize, usize::from(data.len));
        let all = &self.operands[start..start + len + usize::from(data.olds)];
        let before = len - usize::from(data.extra_defs);
        let extras = (before - usize::from(data.extra_uses), before);
        let (places, run) = if data.op == Op::PHI { (0, (1, len)) } else { (data.op.places().1, extras) };
        Operands { all, places, run, last: None }
    }
}

/// Some operands of an instruction. One loop goes over them, so that what it does with each is
/// compiled once.
struct Operands<'a> {
    all: &'a [Operand],
    /// The places that come first, one bit each.
    places: u16,
    /// Where the places begin and end that come next.
    run: (usize, usize),
    /// The guard, and the places behind it.
    last: Option<(Operand, (usize, usize))>,
}

impl Iterator for Operands<'_> {
    type Item = Operand;

    #[inline]
    fn next(&mut self) -> Option<Operand> {
        if self.places != 0 {
            let place = self.places.trailing_zeros() as usize;
            self.places &= self.places - 1;
            return Some(self.all.get(place).copied().unwrap_or(Operand::NULL));
        }
        if self.run.0 < self.run.1 {
            self.run.0 += 1;
            return Some(self.all[self.run.0 - 1]);
        }
        let (guard, run) = self.last.take()?;
        self.run = run;
        Some(guard)
    }
}

/// Registers that are found at a time.
const AT_A_TIME: usize = 16;

/// Registers of an instruction that are not listed: a part of them.
struct Found {
    /// How many come before, and how many have been seen.
    from: usize,
    seen: usize,
    regs: [VReg; AT_A_TIME],
}

impl Found {
    fn new(from: usize) -> Found {
        Found { from, seen: 0, regs: [VReg::reserved_value(); AT_A_TIME] }
    }

    fn add(&mut self, reg: VReg) {
        if let Some(place) = self.seen.checked_sub(self.from).and_then(|at| self.regs.get_mut(at)) {
            *place = reg;
        }
        self.seen += 1;
    }
}

/// Calls `f` for each register that is listed, else for each that is found from a number on. There
/// is one loop, so that what it does is compiled once.
#[inline]
fn for_each(listed: Option<&[VReg]>, find: impl Fn(usize) -> Found, mut f: impl FnMut(VReg)) {
    let mut from = 0;
    loop {
        let found;
        let regs = match listed {
            Some(regs) => regs,
            None => {
                found = find(from);
                from += AT_A_TIME;
                let left = found.seen - found.from;
                if left <= AT_A_TIME {
                    from = 0;
                }
                &found.regs[..left.min(AT_A_TIME)]
            }
        };
        for reg in regs {
            f(*reg);
        }
        if from == 0 {
            return;
        }
    }
}
