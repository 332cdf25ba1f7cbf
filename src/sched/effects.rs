//! What an allocated instruction reads and writes.
//!
//! Input: an instruction in physical registers. Output: one entry for each register, with its latency class. Invariant: every
//! register that it can read or write is there; RZ and PT are not. Two registers of the list are imagined: `FENCE` stands for what
//! must be over before anything goes on, `ALONE` for a pipe that takes one instruction at a time.

use crate::ori::{File, Function, InstId, Kind, Operand};
use crate::tables::latency::{Latency, LatencyClass, RegFile};
use crate::tables::ori::{Class, Direction};
use crate::tables::{Op, Prop};
use smallvec::SmallVec;

/// A register: its file and number in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u16);

/// Registers of one file, of which none has more.
const FILE: u16 = 256;
/// Written by an operation that announces its end and has no result, read by every instruction.
pub const FENCE: Reg = Reg(5 * FILE);
/// Read and written by the instructions of a pipe that takes one at a time.
pub const ALONE: Reg = Reg(5 * FILE + 1);
/// Predicates that can be written.
const PREDICATES: u16 = 7;

impl Reg {
    /// A register of a file.
    pub fn of(file: RegFile, number: u16) -> Reg {
        Reg(file as u16 * FILE + number)
    }

    /// Its file; the imagined ones count as general registers.
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

/// One access.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub reg: Reg,
    pub class: LatencyClass,
}

/// All accesses of an instruction.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    pub reads: SmallVec<[Access; 8]>,
    pub writes: SmallVec<[Access; 4]>,
    /// The old value stays where the guard is false.
    pub guarded: bool,
}

impl Effects {
    /// The accesses of an instruction.
    pub fn of(function: &Function, latency: &Latency, inst: InstId) -> Effects {
        let data = &function.insts[inst];
        let mut out = Effects { guarded: !data.guard.is_null(), ..Effects::default() };
        each(function, data.guard, |reg, _| out.reads.push(Access { reg, class: LatencyClass::Guard }));
        for (i, operand) in function.args(inst).iter().enumerate() {
            let written = function.direction(inst, i) == Direction::Def;
            each(function, *operand, |reg, word| {
                let access = Access { reg, class: latency.class(data.op, &data.mods, i, word) };
                if written { out.writes.push(access) } else { out.reads.push(access) }
            });
        }
        let class = latency.class_of(data.op, &data.mods);
        out.implied(data.op, class);
        if class.info().alone {
            out.reads.push(Access { reg: ALONE, class });
            out.writes.push(Access { reg: ALONE, class });
        }
        // What announces its end and touches no register is waited for by whatever comes next.
        // An access of memory without registers has none to announce, and its form no place for it.
        let memory = data.op.has(Prop::ReadsMemory) || data.op.has(Prop::WritesMemory);
        let announces = data.op.has(Prop::VariableLatency) && !memory;
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

    /// Whether a result is announced by a scoreboard.
    pub fn announced(&self) -> bool {
        self.writes.iter().any(|a| a.class.info().announced)
    }

    /// The general registers that are read some time after issue.
    pub fn late(&self) -> impl Iterator<Item = Reg> + '_ {
        let late = |a: &&Access| a.reg < Reg(FILE) && a.class.info().late;
        self.reads.iter().filter(late).map(|a| a.reg)
    }
}

/// Calls `f` with each physical register of an operand, and its word.
pub fn each(function: &Function, operand: Operand, mut f: impl FnMut(Reg, u8)) {
    if !matches!(operand.kind(), Kind::Reg(_) | Kind::Vector(_)) {
        return;
    }
    let mut word = 0;
    function.for_each_reg(operand, |reg| {
        let data = &function.regs[reg];
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
