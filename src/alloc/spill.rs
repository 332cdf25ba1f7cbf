//! Rewrites a function for values that live in memory, or are computed again, instead of in registers.
//!
//! Input: a function and a home for each register that goes. Output: the same with stores behind definitions and loads before uses, through fresh
//! registers that live around one instruction, or serve several reads of a block ([`Made`]). Homes: a word of the frame for general registers; a general register for predicates,
//! uniform registers and convergence barriers; a uniform register for uniform predicates; or an instruction that makes the value again. Neighbouring words of a vector go by one
//! access. Invariants: no instruction that remains reads or writes a register that is gone, but COPY, UNDEF and definitions that are
//! repeated elsewhere, which stay as markers for the checker; a guarded definition is preceded by a load of the old value.

use super::frame::{load, store};
use super::ranges::{Gone, is_marker};
use super::recompute::Recompute;
use crate::ori::hash::QuickMap;
use crate::ori::ssa::copy;
use crate::ori::{Convention, File, Function, InstId, Operand, STACK_POINTER, VReg};
use crate::tables::ori::Direction;
use crate::tables::{Mod, Op, Role, value};
use cranelift_entity::SecondaryMap;

/// Where a value is that is in no register of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    #[default]
    None,
    /// Byte offset from the stack pointer.
    Frame(u32),
    /// The same, where another register's stores keep the value.
    Slot(u32),
    Register(VReg),
    Recompute(Recompute),
}

pub struct Spiller<'a> {
    pub function: &'a mut Function,
    pub homes: SecondaryMap<VReg, Home>,
    pub gone: &'a mut Gone,
    made: &'a mut Made,
    sp: Option<VReg>,
    /// Fresh registers for the uses of the instruction at hand.
    loaded: Vec<(VReg, VReg)>,
    /// Registers that hold a value for several instructions of the block at hand.
    current: QuickMap<VReg, VReg>,
    /// Where the block at hand reads each register that goes, the last place first.
    reads: QuickMap<VReg, Vec<u32>>,
    /// Registers that go and that the instruction at hand writes, with what it writes in their place.
    defined: Vec<(VReg, VReg)>,
    /// Place of the instruction at hand in its block, and that of the block's first one in the layout.
    at: u32,
    first: u32,
}

/// What is known of registers that the allocator made.
#[derive(Default)]
pub struct Made {
    /// Lives around one instruction, and is never spilled.
    pub short: SecondaryMap<VReg, bool>,
    /// How many spilled registers it stands for in a row.
    pub generation: SecondaryMap<VReg, u8>,
    /// Where in the frame its value is, for as long as it lives.
    pub slot: SecondaryMap<VReg, Option<u32>>,
    /// The instruction, counted through the layout, over which it should not be held: there were too many.
    pub split: SecondaryMap<VReg, Option<u32>>,
}

/// Reads that are no further apart, in instructions, share one load in the last generation but one.
const CLOSE: u32 = 24;
/// The generation in which each instruction loads for itself.
const LAST_GENERATION: u8 = 4;

impl<'a> Spiller<'a> {
    pub fn new(
        function: &'a mut Function,
        homes: SecondaryMap<VReg, Home>,
        gone: &'a mut Gone,
        made: &'a mut Made,
    ) -> Spiller<'a> {
        let (loaded, current, reads) = (Vec::new(), QuickMap::default(), QuickMap::default());
        Spiller { function, homes, gone, made, sp: None, loaded, current, reads, defined: Vec::new(), at: 0, first: 0 }
    }

    /// Rewrites everything; the homes' registers are gone afterwards.
    pub fn run(&mut self) {
        for block in self.function.layout.clone() {
            let insts = std::mem::take(&mut self.function.blocks[block]);
            let mut out = Vec::with_capacity(insts.len() + 8);
            let count = insts.len() as u32;
            self.look_ahead(&insts);
            for (at, inst) in insts.into_iter().enumerate() {
                self.at = at as u32;
                if is_marker(self.function, inst, self.gone) {
                    out.push(inst);
                } else {
                    self.instruction(inst, &mut out);
                }
            }
            self.function.blocks[block] = out;
            self.first += count;
        }
        let regs: Vec<VReg> = self.function.regs.keys().filter(|r| self.homes[*r] != Home::None).collect();
        regs.into_iter().for_each(|r| self.gone[r] = true);
    }

    fn instruction(&mut self, inst: InstId, out: &mut Vec<InstId>) {
        if matches!(self.function.insts[inst].op, Op::EXIT | Op::RET) {
            self.let_go_of_barriers(inst);
        }
        let mut concerned = false;
        let note = |reg: VReg, homes: &SecondaryMap<VReg, Home>| homes[reg] != Home::None;
        self.function.for_each_def(inst, |reg| concerned |= note(reg, &self.homes));
        self.function.for_each_use(inst, |reg| concerned |= note(reg, &self.homes));
        if !concerned {
            out.push(inst);
            return;
        }
        let line = self.function.insts[inst].line;
        let first = out.len();
        match self.function.insts[inst].op {
            Op::UNDEF => out.push(inst),
            Op::COPY if self.is_plain_copy(inst) => self.copy(inst, out),
            _ if self.is_repeated(inst) => out.push(inst),
            _ => self.general(inst, out),
        }
        for new in &out[first..] {
            self.function.insts[*new].line = line;
        }
    }

    /// What ends a lane holds the barriers of the regions around it for the others of its warp, and reads none of them: one that lies
    /// in general registers needs no barrier there.
    fn let_go_of_barriers(&mut self, inst: InstId) {
        let (regs, homes) = (&self.function.regs, &self.homes);
        let stays = |o: &&Operand| o.as_reg().is_none_or(|r| regs[r].file != File::B || homes[r] == Home::None);
        let uses = self.function.extras(inst).0;
        let kept: Vec<Operand> = uses.iter().filter(stays).copied().collect();
        if kept.len() != uses.len() {
            self.function.set_extra_uses(inst, &kept);
        }
    }

    /// Notes where a block reads the registers that go.
    fn look_ahead(&mut self, insts: &[InstId]) {
        self.current.clear();
        self.reads.clear();
        for (at, inst) in insts.iter().enumerate().rev().filter(|i| !is_marker(self.function, *i.1, self.gone)) {
            let (homes, reads) = (&self.homes, &mut self.reads);
            self.function.for_each_use(*inst, |reg| {
                if homes[reg] != Home::None {
                    reads.entry(reg).or_default().push(at as u32);
                }
            });
        }
    }

    /// Whether a register that holds a value now is to hold it for later instructions of the block.
    fn lasts(&mut self, reg: VReg) -> bool {
        let reach = match self.made.generation[reg] {
            _ if !matches!(self.homes[reg], Home::Frame(_) | Home::Slot(_) | Home::Recompute(_)) => return false,
            LAST_GENERATION.. => return false,
            generation if generation + 1 == LAST_GENERATION => CLOSE,
            _ => u32::MAX,
        };
        let Some(reads) = self.reads.get_mut(&reg) else { return false };
        while reads.last().is_some_and(|at| *at <= self.at) {
            reads.pop();
        }
        let Some(next) = reads.last() else { return false };
        let crossed =
            self.made.split[reg].is_some_and(|over| (self.first + self.at..self.first + next).contains(&over));
        next - self.at <= reach && !crossed
    }

    /// A register that holds a value for several instructions.
    fn lasting(&mut self, reg: VReg) -> VReg {
        let fresh = self.function.new_reg(self.function.regs[reg].file);
        self.made.generation[fresh] = self.made.generation[reg] + 1;
        if let Home::Frame(offset) | Home::Slot(offset) = self.homes[reg] {
            self.made.slot[fresh] = Some(offset);
        }
        fresh
    }

    /// A register for a value that is brought in, noted where it serves later instructions too.
    fn holder(&mut self, reg: VReg) -> VReg {
        if !self.lasts(reg) {
            return self.fresh(reg);
        }
        let fresh = self.lasting(reg);
        self.current.insert(reg, fresh);
        fresh
    }

    fn is_plain_copy(&self, inst: InstId) -> bool {
        let source = self.function.arg(inst, Role::A);
        source == source.plain() && self.function.insts[inst].guard.is_null()
    }

    /// Whether every register that it defines is computed again where it is used.
    fn is_repeated(&self, inst: InstId) -> bool {
        let (mut all, mut any) = (true, false);
        self.function.for_each_def(inst, |reg| {
            any = true;
            all &= matches!(self.homes[reg], Home::Recompute(_) | Home::Slot(_));
        });
        any && all
    }

    fn copy(&mut self, inst: InstId, out: &mut Vec<InstId>) {
        let args = (self.function.arg(inst, Role::D).as_reg(), self.function.arg(inst, Role::A).as_reg());
        if let (Some(d), Some(a)) = args {
            let (to, from) = (self.homes[d], self.homes[a]);
            match (to, from) {
                _ if to == from => {}
                (Home::None, _) => match self.current.get(&a).copied() {
                    Some(held) => out.push(copy(self.function, d, held)),
                    None => self.fetch(from, d, out),
                },
                (_, Home::None) => self.keep(to, a, out),
                _ => {
                    let fresh = self.fresh(a);
                    self.fetch(from, fresh, out);
                    self.keep(to, fresh, out);
                }
            }
            self.current.remove(&d);
        }
        out.push(inst);
    }

    /// Takes back the move of the stack pointer before a call: what the call reads must come from the frame while the pointer is there.
    fn stack_move(&self, inst: InstId, out: &mut Vec<InstId>) -> Option<InstId> {
        let last = *out.last().filter(|_| self.function.insts[inst].op == Op::CALL)?;
        let mut moves = false;
        self.function.for_each_def(last, |reg| moves |= self.function.regs[reg].phys == Some(STACK_POINTER));
        if moves { out.pop() } else { None }
    }

    fn general(&mut self, inst: InstId, out: &mut Vec<InstId>) {
        self.loaded.clear();
        self.defined.clear();
        let moved = self.stack_move(inst, out);
        let mut after = Vec::new();
        let guarded = !self.function.insts[inst].guard.is_null();
        for i in 0..self.function.args(inst).len() {
            let operand = self.function.args(inst)[i];
            let new = match self.function.direction(inst, i) {
                Direction::Use => self.used(operand, out),
                Direction::Def => self.defined(operand, guarded, out, &mut after),
                Direction::None => continue,
            };
            self.function.args_mut(inst)[i] = new;
        }
        let guard = self.function.insts[inst].guard;
        self.function.insts[inst].guard = self.used(guard, out);
        out.extend(moved);
        out.push(inst);
        out.append(&mut after);
        for (reg, now) in std::mem::take(&mut self.defined) {
            self.current.remove(&reg);
            if !guarded && self.lasts(reg) {
                let lasting = self.lasting(reg);
                self.current.insert(reg, lasting);
                out.push(copy(self.function, lasting, now));
            }
        }
    }

    fn fresh(&mut self, like: VReg) -> VReg {
        let fresh = self.function.new_reg(self.function.regs[like].file);
        self.made.short[fresh] = true;
        fresh
    }

    /// The operand with registers that hold the values at this instruction.
    fn used(&mut self, operand: Operand, out: &mut Vec<InstId>) -> Operand {
        if let Some(reg) = operand.as_reg() {
            return operand.with_reg(self.loaded(reg, out));
        }
        let Some(vector) = operand.as_vector() else { return operand };
        let regs = self.function.vector_regs(vector).to_vec();
        let mut i = 0;
        while i < regs.len() {
            let count = self.run_length(&regs, i);
            let held = |r: &VReg| self.current.contains_key(r) || self.loaded.iter().any(|l| l.0 == *r);
            let known = regs[i..i + count].iter().any(held);
            if count > 1 && !known {
                let fresh: Vec<VReg> = regs[i..i + count].iter().map(|r| self.holder(*r)).collect();
                let to = Operand::vector(self.function.vector(&fresh));
                if let Home::Frame(offset) | Home::Slot(offset) = self.homes[regs[i]] {
                    let sp = self.stack_pointer();
                    out.push(load(self.function, to, sp, offset));
                }
                self.loaded.extend(regs[i..i + count].iter().copied().zip(fresh));
            }
            i += count;
        }
        let new: Vec<VReg> = regs.iter().map(|r| self.loaded(*r, out)).collect();
        let vector = self.function.vector(&new);
        operand.with_vector(vector)
    }

    /// Forgets the register that holds a value, if it is not to hold it until the next read.
    fn let_go(&mut self, reg: VReg) {
        if !self.lasts(reg) {
            self.current.remove(&reg);
        }
    }

    /// A register with the old value of one that a guarded instruction writes: nothing else may hold it.
    fn old_value(&mut self, reg: VReg, out: &mut Vec<InstId>) -> VReg {
        let fresh = self.fresh(reg);
        self.fetch(self.homes[reg], fresh, out);
        fresh
    }

    /// The register that holds a value at this instruction, loaded where it must be.
    fn loaded(&mut self, reg: VReg, out: &mut Vec<InstId>) -> VReg {
        let home = self.homes[reg];
        if home == Home::None {
            return reg;
        }
        if let Some((_, fresh)) = self.loaded.iter().find(|l| l.0 == reg) {
            return *fresh;
        }
        if let Some(held) = self.current.get(&reg).copied() {
            self.let_go(reg);
            return held;
        }
        let fresh = self.holder(reg);
        self.fetch(home, fresh, out);
        self.loaded.push((reg, fresh));
        fresh
    }

    /// The operand with registers into which the results go, and the stores behind the instruction.
    fn defined(&mut self, operand: Operand, guarded: bool, out: &mut Vec<InstId>, after: &mut Vec<InstId>) -> Operand {
        let mut regs = Vec::new();
        self.function.for_each_reg(operand, |reg| regs.push(reg));
        let new: Vec<VReg> = regs
            .iter()
            .map(|reg| match self.homes[*reg] {
                Home::None => *reg,
                _ if guarded => self.old_value(*reg, out),
                _ => self.fresh(*reg),
            })
            .collect();
        let gone = regs.iter().copied().zip(new.iter().copied()).filter(|(reg, _)| self.homes[*reg] != Home::None);
        self.defined.extend(gone);
        let mut i = 0;
        while i < regs.len() {
            let count = self.run_length(&regs, i);
            match self.homes[regs[i]] {
                Home::Frame(offset) if count > 1 => {
                    let value = Operand::vector(self.function.vector(&new[i..i + count]));
                    let sp = self.stack_pointer();
                    after.push(store(self.function, sp, offset, value));
                }
                home => self.keep(home, new[i], after),
            }
            i += count;
        }
        match operand.as_vector() {
            Some(_) => {
                let vector = self.function.vector(&new);
                operand.with_vector(vector)
            }
            None => new.first().map_or(operand, |r| operand.with_reg(*r)),
        }
    }

    /// How many of these registers, from one on, one access can take: 4, 2 or 1.
    fn run_length(&self, regs: &[VReg], i: usize) -> usize {
        let (Home::Frame(offset) | Home::Slot(offset)) = self.homes[regs[i]] else { return 1 };
        let kind = std::mem::discriminant(&self.homes[regs[i]]);
        let widest = if self.function.convention == Convention::Device { 2 } else { 4 };
        let fits = |n: usize| {
            i.is_multiple_of(n)
                && i + n <= regs.len()
                && offset % (4 * n as u32) == 0
                && (1..n).all(|k| {
                    let home = self.homes[regs[i + k]];
                    let place = offset + 4 * k as u32;
                    std::mem::discriminant(&home) == kind && [Home::Frame(place), Home::Slot(place)].contains(&home)
                })
        };
        [4, 2].into_iter().find(|n| *n <= widest && fits(*n)).unwrap_or(1)
    }

    fn stack_pointer(&mut self) -> VReg {
        *self.sp.get_or_insert_with(|| self.function.stack_register())
    }

    /// Brings a value from its home into a register.
    fn fetch(&mut self, home: Home, to: VReg, out: &mut Vec<InstId>) {
        let f = &mut *self.function;
        let inst = match home {
            Home::None => return,
            Home::Frame(offset) | Home::Slot(offset) => {
                let sp = self.stack_pointer();
                load(self.function, Operand::reg(to), sp, offset)
            }
            Home::Recompute(how) => how.make(f, to),
            Home::Register(from) => match f.regs[to].file {
                File::P => {
                    let inst = f.make(Op::ISETP);
                    f.insts[inst].mods.set(Mod::Cmp, value::cmp::NE);
                    set(f, inst, &[(Role::Pu, to.into()), (Role::A, from.into()), (Role::B, Operand::zero())])
                }
                File::UP => {
                    let inst = f.make(Op::UISETP);
                    f.insts[inst].mods.set(Mod::Cmp, value::cmp::NE);
                    set(f, inst, &[(Role::Pu, to.into()), (Role::A, from.into()), (Role::B, Operand::zero())])
                }
                File::B => two(f, Op::BMOV_B, (Role::B, to), (Role::A, from)),
                _ => two(f, Op::R2UR, (Role::D, to), (Role::A, from)),
            },
        };
        out.push(inst);
    }

    /// Brings a value from a register to its home.
    fn keep(&mut self, home: Home, from: VReg, out: &mut Vec<InstId>) {
        let f = &mut *self.function;
        let inst = match home {
            Home::None | Home::Recompute(_) | Home::Slot(_) => return,
            Home::Frame(offset) => {
                let sp = self.stack_pointer();
                store(self.function, sp, offset, Operand::reg(from))
            }
            Home::Register(to) => match f.regs[from].file {
                file @ (File::P | File::UP) => {
                    // !p ? 0 : 1
                    let op = if file == File::P { Op::SEL } else { Op::USEL };
                    let (inst, one) = (f.make(op), f.imm(1));
                    let not = Operand::reg(from).inverted();
                    set(f, inst, &[(Role::D, to.into()), (Role::A, Operand::zero()), (Role::B, one), (Role::Pp, not)])
                }
                File::B => {
                    let inst = two(f, Op::BMOV_R, (Role::D, to), (Role::B, from));
                    f.insts[inst].mods.set(Mod::Clear, value::clear::CLEAR);
                    inst
                }
                _ => two(f, Op::MOV, (Role::D, to), (Role::A, from)),
            },
        };
        out.push(inst);
    }
}

fn set(f: &mut Function, inst: InstId, args: &[(Role, Operand)]) -> InstId {
    args.iter().for_each(|(role, operand)| f.set_arg(inst, *role, *operand));
    inst
}

fn two(f: &mut Function, op: Op, d: (Role, VReg), a: (Role, VReg)) -> InstId {
    let inst = f.make(op);
    set(f, inst, &[(d.0, d.1.into()), (a.0, a.1.into())])
}
