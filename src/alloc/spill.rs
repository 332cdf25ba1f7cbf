//! Rewrites a function for registers that are spilled or rematerialized.
//!
//! Stores follow definitions and loads precede uses, through fresh registers that live around one
//! instruction or serve several reads of a block ([`Made`]). Locations ([`Home`]): a word of the
//! frame for general registers; a general register for predicates, uniform registers and
//! convergence barriers; a uniform register for uniform predicates; or an instruction that
//! recomputes the value. Adjacent words of a tuple share one access. Afterwards only COPY, UNDEF
//! and rematerialized definitions name spilled registers, as markers for the checker. A guarded
//! definition is preceded by a load of the old value.

use super::frame::{load, store};
use super::ranges::Gone;
use super::remat::Recompute;
use crate::analysis::def_use::sets_stack_pointer;
use crate::ori::destruct::copy;
use crate::ori::hash::QuickMap;
use crate::ori::{Convention, File, Function, InstId, Operand, VReg};
use crate::tables::ori::Direction;
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

/// Location of the value of a spilled register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    #[default]
    None,
    /// In the frame, at this byte offset from the stack pointer.
    Frame(u32),
    /// In the frame, stored there by another register's definition.
    Slot(u32),
    Register(VReg),
    /// In a register, put there by another register's definition.
    Held(VReg),
    Recompute(Recompute),
}

/// Rewrites one function.
pub struct Spiller<'a> {
    /// The function to rewrite.
    pub function: &'a mut Function,
    /// New location of each register that leaves its register.
    pub homes: SecondaryMap<VReg, Home>,
    /// Set for the registers that have been replaced.
    pub gone: &'a mut Gone,
    made: &'a mut Made,
    sp: Option<VReg>,
    /// Fresh registers for the uses of the current instruction.
    loaded: Vec<(VReg, VReg)>,
    /// Registers that hold a value for several instructions of the current block.
    current: QuickMap<VReg, VReg>,
    /// Uses of each spilled register in the current block, the last one first.
    reads: QuickMap<VReg, Vec<u32>>,
    /// Spilled registers that the current instruction defines, with their replacements.
    defined: Vec<(VReg, VReg)>,
    /// Index of the current instruction in its block, and of the block's first instruction in the
    /// layout.
    at: u32,
    first: u32,
}

/// Attributes of registers that the allocator introduced.
#[derive(Default)]
pub struct Made {
    /// Whether it lives around one instruction and must not be spilled.
    pub short: SecondaryMap<VReg, bool>,
    /// Length of the chain of spilled registers that it replaces.
    pub generation: SecondaryMap<VReg, u8>,
    /// Byte offset in the frame where its value stays for its whole live range.
    pub slot: SecondaryMap<VReg, Option<u32>>,
    /// Register in which its value stays for its whole live range.
    pub held: SecondaryMap<VReg, Option<VReg>>,
    /// Split point: the index in the layout of the instruction at which the pressure was too high,
    /// across which the value should not be held.
    pub split: SecondaryMap<VReg, Option<u32>>,
}

/// Maximum distance, in instructions, of reads that share one load in the last generation but one.
const CLOSE: u32 = 24;
/// The same of predicates, in any generation: there are few of them.
const CLOSE_PREDICATES: u32 = 8;
/// The generation in which each instruction has its own load.
const LAST_GENERATION: u8 = 4;

impl<'a> Spiller<'a> {
    /// A spiller for one round.
    pub fn new(
        function: &'a mut Function,
        homes: SecondaryMap<VReg, Home>,
        gone: &'a mut Gone,
        made: &'a mut Made,
    ) -> Spiller<'a> {
        let (loaded, current, reads) = (Vec::new(), QuickMap::default(), QuickMap::default());
        Spiller { function, homes, gone, made, sp: None, loaded, current, reads, defined: Vec::new(), at: 0, first: 0 }
    }

    /// Rewrites the function and marks the registers that have a home as spilled.
    pub fn run(&mut self) {
        for block in self.function.layout().to_vec() {
            let insts = std::mem::take(&mut self.function[block]);
            let mut out = Vec::with_capacity(insts.len() + 8);
            let count = insts.len() as u32;
            self.look_ahead(&insts);
            for (at, inst) in insts.into_iter().enumerate() {
                self.at = at as u32;
                if self.gone.is_marker(inst) {
                    out.push(inst);
                } else {
                    self.instruction(inst, &mut out);
                }
            }
            self.function[block] = out;
            self.first += count;
        }
        let regs: Vec<VReg> = self.function.regs().keys().filter(|r| self.homes[*r] != Home::None).collect();
        self.function.list_registers();
        self.gone.add(self.function, &regs);
    }

    fn instruction(&mut self, inst: InstId, out: &mut Vec<InstId>) {
        if self.function[inst].op.has(Prop::Leaves) {
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
        let line = self.function[inst].line;
        let first = out.len();
        match self.function[inst].op {
            Op::UNDEF => out.push(inst),
            Op::COPY if self.is_plain_copy(inst) => self.copy(inst, out),
            _ if self.is_repeated(inst) => out.push(inst),
            _ => self.general(inst, out),
        }
        for new in &out[first..] {
            self.function[*new].line = line;
        }
    }

    /// Drops implicit uses of spilled barriers from EXIT and RET. They only keep barriers alive for
    /// the other lanes of the warp; a barrier in a general register is not needed there.
    fn let_go_of_barriers(&mut self, inst: InstId) {
        let (regs, homes) = (&self.function.regs(), &self.homes);
        let stays = |o: &&Operand| o.as_reg().is_none_or(|r| regs[r].file != File::B || homes[r] == Home::None);
        let uses = self.function.extras(inst).0;
        let kept: Vec<Operand> = uses.iter().filter(stays).copied().collect();
        if kept.len() != uses.len() {
            self.function.set_extra_uses(inst, &kept);
        }
    }

    /// Records where a block reads the spilled registers.
    fn look_ahead(&mut self, insts: &[InstId]) {
        self.current.clear();
        self.reads.clear();
        for (at, inst) in insts.iter().enumerate().rev().filter(|i| !self.gone.is_marker(*i.1)) {
            let (homes, reads) = (&self.homes, &mut self.reads);
            self.function.for_each_use(*inst, |reg| {
                if homes[reg] != Home::None {
                    reads.entry(reg).or_default().push(at as u32);
                }
            });
        }
    }

    /// Whether the register that now holds a value should keep it for later instructions of the
    /// block.
    fn lasts(&mut self, reg: VReg) -> bool {
        let predicate = matches!(self.function[reg].file, File::P);
        let reach = match (self.made.generation[reg], self.homes[reg]) {
            (LAST_GENERATION.., _) => return false,
            (_, Home::Register(_) | Home::Held(_)) if predicate => CLOSE_PREDICATES,
            (_, Home::None | Home::Register(_) | Home::Held(_)) => return false,
            (generation, _) if generation + 1 == LAST_GENERATION => CLOSE,
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
        let fresh = self.function.new_reg(self.function[reg].file);
        self.made.generation[fresh] = self.made.generation[reg] + 1;
        if let Home::Frame(offset) | Home::Slot(offset) = self.homes[reg] {
            self.made.slot[fresh] = Some(offset);
        }
        if let Home::Register(from) | Home::Held(from) = self.homes[reg] {
            self.made.held[fresh] = Some(from);
        }
        fresh
    }

    /// A register for a loaded value, recorded if it serves later instructions too.
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
        source == source.plain() && source.as_reg().is_some() && self.function[inst].guard.is_null()
    }

    /// Whether every register that an instruction defines is rematerialized at its uses.
    fn is_repeated(&self, inst: InstId) -> bool {
        let (mut all, mut any) = (true, false);
        self.function.for_each_def(inst, |reg| {
            any = true;
            all &= matches!(self.homes[reg], Home::Recompute(_) | Home::Slot(_) | Home::Held(_));
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

    /// Removes the move of the stack pointer before a call, to be reinserted after the loads from
    /// the frame.
    fn stack_move(&self, inst: InstId, out: &mut Vec<InstId>) -> Option<InstId> {
        let calls = self.function[inst].op == Op::CALL;
        out.pop_if(|last| calls && sets_stack_pointer(self.function, *last))
    }

    fn general(&mut self, inst: InstId, out: &mut Vec<InstId>) {
        self.loaded.clear();
        self.defined.clear();
        let moved = self.stack_move(inst, out);
        let mut after = Vec::new();
        let guarded = !self.function[inst].guard.is_null();
        for i in 0..self.function.args(inst).len() {
            let operand = self.function.args(inst)[i];
            let new = match self.function.direction(inst, i) {
                Direction::Use => self.used(operand, out),
                Direction::Def => self.defined(operand, guarded, out, &mut after),
                Direction::None => continue,
            };
            self.function.args_mut(inst)[i] = new;
        }
        let guard = self.function[inst].guard;
        self.function[inst].guard = self.used(guard, out);
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
        let fresh = self.function.new_reg(self.function[like].file);
        self.made.short[fresh] = true;
        fresh
    }

    /// The operand with loaded registers for this instruction.
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

    /// Releases the register that holds a value, unless it keeps it until the next read.
    fn let_go(&mut self, reg: VReg) {
        if !self.lasts(reg) {
            self.current.remove(&reg);
        }
    }

    /// A register with the old value for a guarded definition; it must not be shared.
    fn old_value(&mut self, reg: VReg, out: &mut Vec<InstId>) -> VReg {
        let fresh = self.fresh(reg);
        self.fetch(self.homes[reg], fresh, out);
        fresh
    }

    /// The register that holds a value at this instruction; loads it if necessary.
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

    /// The operand with fresh destination registers, and the stores after the instruction.
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

    /// The number of these registers, from `i` on, that one access can take: 4, 2 or 1.
    fn run_length(&self, regs: &[VReg], i: usize) -> usize {
        let (Home::Frame(offset) | Home::Slot(offset)) = self.homes[regs[i]] else { return 1 };
        let kind = std::mem::discriminant(&self.homes[regs[i]]);
        let widest = if self.function.attributes().convention == Convention::Device { 2 } else { 4 };
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

    /// Loads a value from its home into a register.
    fn fetch(&mut self, home: Home, to: VReg, out: &mut Vec<InstId>) {
        let f = &mut *self.function;
        let inst = match home {
            Home::None => return,
            Home::Frame(offset) | Home::Slot(offset) => {
                let sp = self.stack_pointer();
                load(self.function, Operand::reg(to), sp, offset)
            }
            Home::Recompute(how) => how.make(f, to),
            Home::Register(from) | Home::Held(from) => match f[to].file {
                File::P => {
                    let inst = f.make(Op::ISETP);
                    f[inst].mods.set(Mod::Cmp, value::cmp::NE);
                    set(f, inst, &[(Role::Pu, to.into()), (Role::A, from.into()), (Role::B, Operand::zero())])
                }
                File::UP => {
                    let inst = f.make(Op::UISETP);
                    f[inst].mods.set(Mod::Cmp, value::cmp::NE);
                    set(f, inst, &[(Role::Pu, to.into()), (Role::A, from.into()), (Role::B, Operand::zero())])
                }
                File::B => two(f, Op::BMOV_B, (Role::B, to), (Role::A, from)),
                _ => two(f, Op::R2UR, (Role::D, to), (Role::A, from)),
            },
        };
        out.push(inst);
    }

    /// Stores a value from a register to its home.
    fn keep(&mut self, home: Home, from: VReg, out: &mut Vec<InstId>) {
        let f = &mut *self.function;
        let inst = match home {
            Home::None | Home::Recompute(_) | Home::Slot(_) | Home::Held(_) => return,
            Home::Frame(offset) => {
                let sp = self.stack_pointer();
                store(self.function, sp, offset, Operand::reg(from))
            }
            Home::Register(to) => match f[from].file {
                file @ (File::P | File::UP) => {
                    // !p ? 0 : 1
                    let op = if file == File::P { Op::SEL } else { Op::USEL };
                    let (inst, one) = (f.make(op), f.imm(1));
                    let not = Operand::reg(from).inverted();
                    set(f, inst, &[(Role::D, to.into()), (Role::A, Operand::zero()), (Role::B, one), (Role::Pp, not)])
                }
                File::B => {
                    let inst = two(f, Op::BMOV_R, (Role::D, to), (Role::B, from));
                    f[inst].mods.set(Mod::Clear, value::clear::CLEAR);
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
