//! Latencies: how many cycles must lie between two instructions that share a register, and what only a scoreboard can say.
//!
//! Handwritten types over generated data; the rows are `latency/*.ron`. Every operand of every opcode has a class on every target,
//! and every pair of classes has exactly one answer for each register file, so that a look-up cannot fail. A distance counts
//! from the issue of the first instruction to the issue of the second: the sum of the stalls between them. Held by a test: the
//! schedule's distances are not below those of the incumbent, but for pairs listed with their reasons (`tests/hazards_support/distances.rs`).

use super::ori::{Mod, Op};
use super::{Mods, Target};

/// The register files that have distances. The order is that of the generated tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegFile {
    R,
    UR,
    P,
    UP,
    /// Convergence barriers.
    B,
}

/// What must lie between two instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// At least so many cycles from issue to issue.
    Cycles(u8),
    /// The scoreboard that the first one sets: its write barrier after a write, its write or read barrier after a read.
    Scoreboard,
}

/// Facts of a class. Source: `latency/classes.ron`.
#[derive(Debug)]
pub struct ClassInfo {
    /// Results are announced by the write barrier.
    pub announced: bool,
    /// General registers are read some time after issue, and the read barrier announces that it is done.
    pub late: bool,
    /// Results come in the order of issue.
    pub in_order: bool,
    /// Reads of the classes of one queue happen in the order of issue; 0 for none.
    pub queue: u8,
    /// Each waits for the one before it.
    pub alone: bool,
    /// Cycles after which an announced result is likely there: a guess for the order of instructions, never for a wait.
    pub expected: u16,
}

/// A part of an opcode whose class is not the opcode's; 255 stands for every role, every word.
#[derive(Debug)]
struct Special {
    op: Op,
    when: &'static [(Mod, u8)],
    role: u8,
    word: u8,
    class: u8,
}

/// Latencies of a group of targets.
#[derive(Debug)]
pub struct Latency {
    pub name: &'static str,
    /// Whether -O1 and up go by these tables; otherwise the safe schedule stays.
    pub scheduled: bool,
    base: &'static [u8],
    specials: &'static [Special],
    /// Read after write, write after write, write after read: by file, class of the first, class of the second.
    distances: [&'static [&'static [&'static [u8]]]; 3],
    /// By opcode, without a guard and under one.
    stalls: &'static [[u8; 2]],
}

/// What stands for a scoreboard in the generated tables.
const SCOREBOARD: u8 = 255;

impl Latency {
    /// The latencies of a target; `None` where its encoder is planned.
    pub fn of(target: &Target) -> Option<&'static Latency> {
        let place = super::targets::TARGETS.binary_search_by_key(&target.column, |t| t.column).ok()?;
        LATENCIES.get(usize::from(LATENCY_OF_TARGET[place]))
    }

    /// What the hardware is held to ask for, by which finished code is judged: nowhere more than [`Latency::of`], which the schedule keeps.
    pub fn demanded(target: &Target) -> Option<&'static Latency> {
        let place = super::targets::TARGETS.binary_search_by_key(&target.column, |t| t.column).ok()?;
        DEMANDED.get(usize::from(LATENCY_OF_TARGET[place]))
    }

    /// Class of an opcode's operand: the role by its position, the word within it from 0.
    pub fn class(&self, op: Op, mods: &Mods, role: usize, word: u8) -> LatencyClass {
        let fits = |s: &&Special| {
            s.op == op
                && s.when.iter().all(|(kind, value)| mods.get(*kind) == *value)
                && (s.role == u8::MAX || usize::from(s.role) == role && (s.word == u8::MAX || s.word == word))
        };
        let start = self.specials.partition_point(|s| (s.op as u16) < op as u16);
        let special = self.specials[start..].iter().take_while(|s| s.op == op).find(fits);
        let class = special.map_or(self.base[op.position()], |s| s.class);
        LatencyClass::ALL[usize::from(class)]
    }

    /// Class of an opcode as a whole: of what it does to memory, of operands that have no class of their own.
    pub fn class_of(&self, op: Op, mods: &Mods) -> LatencyClass {
        self.class(op, mods, usize::from(u8::MAX) - 1, 0)
    }

    /// From the instruction that writes a register to one that reads it.
    pub fn read_after_write(&self, file: RegFile, writer: LatencyClass, reader: LatencyClass) -> Needed {
        self.look(0, file, writer, reader)
    }

    /// From the instruction that writes a register to one that writes it again.
    pub fn write_after_write(&self, file: RegFile, first: LatencyClass, second: LatencyClass) -> Needed {
        self.look(1, file, first, second)
    }

    /// From the instruction that reads a register to one that writes it.
    pub fn write_after_read(&self, file: RegFile, reader: LatencyClass, writer: LatencyClass) -> Needed {
        self.look(2, file, reader, writer)
    }

    /// Least stall of an opcode, in cycles; 0 only where the incumbent uses 0.
    pub fn least_stall(&self, op: Op) -> u8 {
        self.stalls[op.position()][0]
    }

    /// The same of an instruction that may be under a guard.
    pub fn least_stall_if(&self, op: Op, guarded: bool) -> u8 {
        self.stalls[op.position()][usize::from(guarded)]
    }

    fn look(&self, kind: usize, file: RegFile, first: LatencyClass, second: LatencyClass) -> Needed {
        match self.distances[kind][file as usize][first as usize][second as usize] {
            SCOREBOARD => Needed::Scoreboard,
            cycles => Needed::Cycles(cycles),
        }
    }
}

impl LatencyClass {
    /// Facts of this class.
    pub fn info(self) -> &'static ClassInfo {
        &CLASSES[self as usize]
    }

    /// The order that a read of class `read` is part of, of an instruction of this class: reads of one queue happen in the order of issue, and where
    /// the instruction's own unit has another queue, only with those of the same unit. 0 for none.
    pub fn read_order(self, read: LatencyClass) -> u8 {
        let (own, read) = (self.info().queue, read.info().queue);
        if read == 0 || own == 0 || own == read { read } else { QUEUES * own + read }
    }
}

/// More than there are queues.
const QUEUES: u8 = 8;

include!(concat!(env!("OUT_DIR"), "/latency.rs"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Role, value};

    #[test]
    fn an_order_of_reads_is_of_a_unit_and_a_queue() {
        use LatencyClass::{Agu, Alu, Fp64Alone, Unit};
        assert!(CLASSES.iter().all(|class| class.queue < QUEUES));
        assert_eq!(Agu.read_order(Agu), Unit.read_order(Unit));
        assert_eq!(Alu.read_order(Alu), 0);
        // A conversion of f64 on sm_103: its number goes through the queue of memory, its result comes from a pipe with its own.
        assert_ne!(Fp64Alone.read_order(Unit), Unit.read_order(Unit));
        assert_ne!(Fp64Alone.read_order(Unit), Fp64Alone.read_order(Fp64Alone));
    }

    #[test]
    fn numbers_that_the_manual_of_the_house_names() {
        let target = |name: &str| Target::by_name(name).and_then(Latency::of).unwrap();
        let role = |op: Op, role| op.role_index(role).unwrap();
        let none = Mods::default();
        let hopper = target("sm_90");
        let (alu, fma) = (hopper.class_of(Op::IADD3, &none), hopper.class_of(Op::FFMA, &none));
        assert_eq!(hopper.read_after_write(RegFile::R, alu, alu), Needed::Cycles(4));
        assert_eq!(hopper.read_after_write(RegFile::R, alu, fma), Needed::Cycles(5));
        assert_eq!(hopper.read_after_write(RegFile::P, alu, LatencyClass::Guard), Needed::Cycles(13));
        // Only the high word of what IMAD.WIDE adds is read late.
        let c = |word| hopper.class(Op::IMAD_WIDE, &none, role(Op::IMAD_WIDE, Role::C), word);
        assert_eq!(hopper.read_after_write(RegFile::R, fma, c(0)), Needed::Cycles(4));
        assert_eq!(hopper.read_after_write(RegFile::R, fma, c(1)), Needed::Cycles(2));
        // FP64 has a fixed latency on some targets alone, and HMMA is slower in its large shapes.
        assert!(!hopper.class_of(Op::DFMA, &none).info().announced);
        assert!(target("sm_103").class_of(Op::DFMA, &none).info().announced);
        let shape = |s| none.with(Mod::Mshape, s);
        assert_eq!(hopper.class_of(Op::HMMA, &shape(value::mshape::_1688)), LatencyClass::Tensor);
        assert_eq!(hopper.class_of(Op::HMMA, &shape(value::mshape::_16816)), LatencyClass::TensorLong);
        let load = hopper.class_of(Op::LDG, &none);
        assert_eq!(hopper.read_after_write(RegFile::R, load, alu), Needed::Scoreboard);
        assert_eq!(hopper.write_after_read(RegFile::R, load, alu), Needed::Scoreboard);
        assert_eq!(hopper.least_stall(Op::EXIT), 5);
        let ampere = Latency::demanded(crate::tables::Target::by_name("sm_80").unwrap()).unwrap();
        assert_eq!((ampere.least_stall(Op::CALL), ampere.least_stall_if(Op::CALL, true)), (5, 1));
    }
}
