//! Rewrites a function for values that live in memory, or are computed again, instead of in registers.
//!
//! Input: a function and a home for each register that goes. Output: the same with stores behind definitions and loads before uses, through fresh
//! registers that live around one instruction. Homes: a word of the frame for general registers; a general register for predicates,
//! uniform registers and convergence barriers; or an instruction that makes the value again. Neighbouring words of a vector go by one
//! access. Invariants: no instruction that remains reads or writes a register that is gone, but COPY, UNDEF and definitions that are
//! repeated elsewhere, which stay as markers for the checker; a guarded definition is preceded by a load of the old value.

use super::frame::{load, store};
use super::ranges::{Gone, is_marker};
use super::recompute::Recompute;
use crate::ori::{Convention, File, Function, InstId, Operand, VReg};
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
    Register(VReg),
    Recompute(Recompute),
}

pub struct Spiller<'a> {
    pub function: &'a mut Function,
    pub homes: SecondaryMap<VReg, Home>,
    pub gone: &'a mut Gone,
    /// Registers that live around one instruction.
    pub short: &'a mut SecondaryMap<VReg, bool>,
    sp: Option<VReg>,
    /// Fresh registers for the uses of the instruction at hand.
    loaded: Vec<(VReg, VReg)>,
}

impl<'a> Spiller<'a> {
    pub fn new(
        function: &'a mut Function,
        homes: SecondaryMap<VReg, Home>,
        gone: &'a mut Gone,
        short: &'a mut SecondaryMap<VReg, bool>,
    ) -> Spiller<'a> {
        Spiller { function, homes, gone, short, sp: None, loaded: Vec::new() }
    }

    /// Rewrites everything; the homes' registers are gone afterwards.
    pub fn run(&mut self) {
        for block in self.function.layout.clone() {
            let insts = std::mem::take(&mut self.function.blocks[block]);
            let mut out = Vec::with_capacity(insts.len() + 8);
            for inst in insts {
                if is_marker(self.function, inst, self.gone) {
                    out.push(inst);
                } else {
                    self.instruction(inst, &mut out);
                }
            }
            self.function.blocks[block] = out;
        }
        let regs: Vec<VReg> = self.function.regs.keys().filter(|r| self.homes[*r] != Home::None).collect();
        regs.into_iter().for_each(|r| self.gone[r] = true);
    }

    fn instruction(&mut self, inst: InstId, out: &mut Vec<InstId>) {
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

    fn is_plain_copy(&self, inst: InstId) -> bool {
        let source = self.function.arg(inst, Role::A);
        source == source.plain() && self.function.insts[inst].guard.is_null()
    }

    /// Whether every register that it defines is computed again where it is used.
    fn is_repeated(&self, inst: InstId) -> bool {
        let (mut all, mut any) = (true, false);
        self.function.for_each_def(inst, |reg| {
            any = true;
            all &= matches!(self.homes[reg], Home::Recompute(_));
        });
        any && all
    }

    fn copy(&mut self, inst: InstId, out: &mut Vec<InstId>) {
        let args = (self.function.arg(inst, Role::D).as_reg(), self.function.arg(inst, Role::A).as_reg());
        if let (Some(d), Some(a)) = args {
            let (to, from) = (self.homes[d], self.homes[a]);
            match (to, from) {
                _ if to == from => {}
                (Home::None, _) => self.fetch(from, d, out),
                (_, Home::None) => self.keep(to, a, out),
                _ => {
                    let fresh = self.fresh(a);
                    self.fetch(from, fresh, out);
                    self.keep(to, fresh, out);
                }
            }
        }
        out.push(inst);
    }

    fn general(&mut self, inst: InstId, out: &mut Vec<InstId>) {
        self.loaded.clear();
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
        out.push(inst);
        out.append(&mut after);
    }

    fn fresh(&mut self, like: VReg) -> VReg {
        let fresh = self.function.new_reg(self.function.regs[like].file);
        self.short[fresh] = true;
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
            let known = regs[i..i + count].iter().any(|r| self.loaded.iter().any(|l| l.0 == *r));
            if count > 1 && !known {
                let fresh: Vec<VReg> = regs[i..i + count].iter().map(|r| self.fresh(*r)).collect();
                let to = Operand::vector(self.function.vector(&fresh));
                if let Home::Frame(offset) = self.homes[regs[i]] {
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

    /// The register that holds a value at this instruction, loaded where it must be.
    fn loaded(&mut self, reg: VReg, out: &mut Vec<InstId>) -> VReg {
        let home = self.homes[reg];
        if home == Home::None {
            return reg;
        }
        if let Some((_, fresh)) = self.loaded.iter().find(|l| l.0 == reg) {
            return *fresh;
        }
        let fresh = self.fresh(reg);
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
                _ if guarded => self.loaded(*reg, out),
                _ => self.fresh(*reg),
            })
            .collect();
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
        let Home::Frame(offset) = self.homes[regs[i]] else { return 1 };
        let widest = if self.function.convention == Convention::Device { 2 } else { 4 };
        let fits = |n: usize| {
            i.is_multiple_of(n)
                && i + n <= regs.len()
                && offset % (4 * n as u32) == 0
                && (1..n).all(|k| self.homes[regs[i + k]] == Home::Frame(offset + 4 * k as u32))
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
            Home::Frame(offset) => {
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
            Home::None | Home::Recompute(_) => return,
            Home::Frame(offset) => {
                let sp = self.stack_pointer();
                store(self.function, sp, offset, Operand::reg(from))
            }
            Home::Register(to) => match f.regs[from].file {
                File::P => {
                    // !p ? 0 : 1
                    let (inst, one) = (f.make(Op::SEL), f.imm(1));
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
