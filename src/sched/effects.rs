//! Register reads and writes of an allocated instruction, each with its latency class.
//!
//! Lists every register that the instruction may read or write, except RZ and PT. Two
//! pseudo-registers model other dependences: `FENCE` for operations that must complete before
//! anything follows, `ALONE` for a pipe that takes one instruction at a time.

use crate::analysis::memory_dependence::Memory;
use crate::ori::{File, Function, InstId, Operand};
use crate::tables::latency::{Latency, LatencyClass, RegFile};
use crate::tables::ori::{Class, Direction};
use crate::tables::{Feature, Mod, Op, Prop, Role, value};
use smallvec::SmallVec;

/// A register: its file and number in one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u16);

/// Numbers reserved for each file; no file has more registers.
const FILE: u16 = 256;
/// Written by a scoreboarded operation without a result, read by every instruction.
pub const FENCE: Reg = Reg(5 * FILE);
/// Read and written by instructions of a pipe that takes one at a time.
pub const ALONE: Reg = Reg(5 * FILE + 1);
/// Number of writable predicates.
const PREDICATES: u16 = 7;

impl Reg {
    /// A register of a file.
    pub fn of(file: RegFile, number: u16) -> Reg {
        Reg(file as u16 * FILE + number)
    }

    /// The file of a register; pseudo-registers count as general registers.
    pub fn file(self) -> RegFile {
        match self.0 / FILE {
            1 => RegFile::UR,
            2 => RegFile::P,
            3 => RegFile::UP,
            4 => RegFile::B,
            _ => RegFile::R,
        }
    }
}

/// Values by register, for one part of the code after the other: clearing costs what was entered.
pub struct RegTable<T> {
    /// One more than the place of a register's value; 0 for none.
    place: Vec<u16>,
    values: Vec<(Reg, T)>,
}

impl<T: Default> RegTable<T> {
    /// Without values.
    pub fn new() -> RegTable<T> {
        RegTable { place: vec![0; usize::from(ALONE.0) + 1], values: Vec::new() }
    }

    /// The value of a register, if it has one.
    pub fn get(&self, reg: Reg) -> Option<&T> {
        let place = self.place[usize::from(reg.0)].checked_sub(1)?;
        Some(&self.values[usize::from(place)].1)
    }

    /// The value of a register, the default if it had none.
    #[inline]
    pub fn entry(&mut self, reg: Reg) -> &mut T {
        let place = &mut self.place[usize::from(reg.0)];
        if *place == 0 {
            self.values.push((reg, T::default()));
            *place = self.values.len() as u16;
        }
        &mut self.values[usize::from(*place - 1)].1
    }

    /// Changes each value.
    pub fn each(&mut self, mut change: impl FnMut(&mut T)) {
        self.values.iter_mut().for_each(|(_, value)| change(value));
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.values.drain(..).for_each(|(reg, _)| self.place[usize::from(reg.0)] = 0);
    }
}

/// A read or write of one register.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The register.
    pub reg: Reg,
    /// Latency class of the access, as a writer or as a reader.
    pub class: LatencyClass,
}

/// All register accesses of an instruction.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Registers that it may read.
    pub reads: SmallVec<[Access; 8]>,
    /// Registers that it may write.
    pub writes: SmallVec<[Access; 4]>,
    /// Whether the destinations keep their old values if the guard is false.
    pub guarded: bool,
}

impl Effects {
    /// The accesses of an instruction.
    pub fn of(function: &Function, latency: &Latency, inst: InstId) -> Effects {
        let data = &function[inst];
        // WARPGROUP.DEPBAR has no place for a scoreboard that it waits for.
        if data.op == Op::WARPGROUP && !function.arg(inst, Role::A).is_null() {
            return Effects::default();
        }
        let mut out = Effects { guarded: !data.guard.is_null(), ..Effects::default() };
        let classes = latency.classes(data.op, &data.mods);
        // A branch reads its condition in the uniform file as an operand.
        let guard = if function.is_uniform_branch(inst) { classes.whole() } else { LatencyClass::Guard };
        each(function, data.guard, |reg, _| out.reads.push(Access { reg, class: guard }));
        for (i, operand) in function.args(inst).iter().enumerate() {
            let written = function.direction(inst, i) == Direction::Def;
            each(function, *operand, |reg, word| {
                let access = Access { reg, class: classes.class(i, word) };
                if written { out.writes.push(access) } else { out.reads.push(access) }
            });
        }
        let class = classes.whole();
        out.implied(data.op, class);
        if class.info().alone {
            out.reads.push(Access { reg: ALONE, class });
            out.writes.push(Access { reg: ALONE, class });
        }
        // The next instruction must wait for a scoreboarded operation that names no register. A
        // memory access without registers signals no completion, and its encoding has no field for
        // a scoreboard.
        let memory = data.op.has(Prop::ReadsMemory) || data.op.has(Prop::WritesMemory);
        let fences = data.op == Op::MEMBAR && data.mods.get(Mod::Scope) == value::scope::CTA;
        let fences = fences && function.target().has(Feature::BlockFenceAnnounces);
        let announces = (data.op.has(Prop::VariableLatency) || fences) && !memory && class != LatencyClass::Group;
        let bare = out.writes.is_empty() && out.reads.iter().all(|a| a.class == LatencyClass::Guard);
        if announces && bare && class.info().announced && !data.op.has(Prop::Convergent) {
            out.writes.push(Access { reg: FENCE, class });
        }
        out.reads.push(Access { reg: FENCE, class });
        out
    }

    fn implied(&mut self, op: Op, class: LatencyClass) {
        let uniform = op.info().roles.iter().any(|r| r.class == Class::Uniform);
        let file = if uniform { RegFile::UP } else { RegFile::P };
        let all = (0..PREDICATES).map(|n| Access { reg: Reg::of(file, n), class });
        if op.has(Prop::ReadsPredicates) {
            self.reads.extend(all.clone());
        }
        if op.has(Prop::WritesPredicates) {
            self.writes.extend(all);
        }
    }

    /// Whether the result is scoreboarded.
    #[inline]
    pub fn announced(&self) -> bool {
        self.writes.iter().any(|a| a.class.info().announced && a.class != LatencyClass::Group)
    }

    /// The reads of registers some time after issue.
    #[inline]
    pub fn late(&self) -> impl Iterator<Item = &Access> + '_ {
        let late = |a: &&Access| a.reg < FENCE && a.class.reads_late(a.reg.file()) && a.class != LatencyClass::Group;
        self.reads.iter().filter(late)
    }
}

/// Lets each WARPGROUP.ARRIVE of a block wait for what the products behind it do with general
/// registers: the tensor cores are believed to start for all warps where the last one has arrived.
/// Source: none of 1,924 products of ptxas 13.0.88 -O3 waits for a scoreboard; the four of 120
/// kernels that failed on an H200 had products that waited for late reads of their registers, and
/// so had ten that did not fail.
pub fn arrivals(function: &Function, insts: &[InstId], effects: &mut [&mut Effects]) {
    let mut arrival = None;
    for (at, inst) in insts.iter().enumerate() {
        match (function[*inst].op, arrival) {
            (Op::WARPGROUP, _) => arrival = function.arg(*inst, Role::A).is_null().then_some(at),
            (Op::GMMA, Some(arrival)) => {
                let general = |access: &&Access| access.reg < FENCE && access.reg.file() == RegFile::R;
                let product = effects[at].clone();
                effects[arrival].reads.extend(product.reads.iter().filter(general).copied());
                effects[arrival].writes.extend(product.writes.iter().filter(general).copied());
            }
            _ => {}
        }
    }
}

/// The memory access of an allocated instruction, as [`Memory::of`].
pub fn memory_access(function: &Function, inst: InstId, written: impl Fn(Reg) -> usize) -> Option<Memory> {
    Memory::with_base(function, inst, |operand, base| {
        each(function, operand, |reg, _| base.push((reg.0.into(), written(reg))));
    })
}

/// Calls `f` with each physical register of an operand, and the index of its word.
pub fn each(function: &Function, operand: Operand, mut f: impl FnMut(Reg, u8)) {
    let mut word = 0;
    function.for_each_reg(operand, |reg| {
        let data = &function[reg];
        let file = match data.file {
            File::R => RegFile::R,
            File::UR => RegFile::UR,
            File::P => RegFile::P,
            File::UP => RegFile::UP,
            File::B | File::UB => RegFile::B,
        };
        if let Some(number) = data.phys {
            f(Reg::of(file, number), word);
        }
        word += 1;
    });
}
