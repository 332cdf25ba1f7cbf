//! Latencies: the cycles required between two instructions that access the same register, and which
//! dependences need a scoreboard.
//!
//! Handwritten types over generated data; the rows are `latency/*.ron`. Every operand of every
//! opcode has a class on every target, and every pair of classes has exactly one answer per
//! register file, so a lookup cannot fail. A distance is measured from issue to issue: the sum of
//! the stalls between. A test checks that the schedule's distances are not below those of ptxas,
//! except for listed pairs with reasons (`tests/sass/hazards/distances.rs`).

use super::ori::{Mod, Op, Role};
use super::{Mods, Target};

/// The register files that have distances, in the order of the generated tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegFile {
    R,
    UR,
    P,
    UP,
    /// Convergence barriers.
    B,
}

/// What is required between two instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// At least this many cycles from issue to issue.
    Cycles(u8),
    /// A wait for the scoreboard of the first: its write barrier after a write, its write or read
    /// barrier after a read.
    Scoreboard,
}

/// Facts of a latency class. Source: `latency/classes.ron`.
#[derive(Debug)]
pub struct ClassInfo {
    /// Results have variable latency and signal the write barrier.
    pub announced: bool,
    /// General registers are read some time after issue; the read barrier signals that they have
    /// been read.
    pub late: bool,
    /// Uniform registers too.
    pub late_uniform: bool,
    /// Results arrive in issue order.
    pub in_order: bool,
    /// In-order read queue of the class: reads in one queue happen in issue order; 0 for none.
    pub queue: u8,
    /// The pipe takes one instruction at a time: each waits for the previous one.
    pub alone: bool,
    /// Usual latency of a scoreboarded result in cycles: an estimate for the list scheduler, never
    /// for a wait.
    pub expected: u16,
}

/// A part of an opcode with a class of its own; 255 stands for every role or every word.
#[derive(Debug)]
struct Special {
    when: &'static [(Mod, u8)],
    role: u8,
    word: u8,
    class: u8,
}

/// One side of a pair: an opcode, and a role that the instruction must have or must not have.
#[derive(Debug)]
struct Side {
    op: Op,
    role: Option<(Role, bool)>,
}

impl Side {
    fn is(&self, op: Op, has: &impl Fn(Role) -> bool) -> bool {
        self.op == op && self.role.is_none_or(|(role, wanted)| has(role) == wanted)
    }
}

/// The distance between two instructions that name no register in common. Source:
/// `latency/pairs.ron`.
#[derive(Debug)]
pub struct Pair {
    first: Side,
    second: Side,
    /// Cycles from issue to issue.
    pub cycles: u8,
}

/// Most pairs of a target, for which sets of them are one byte.
pub const MOST_PAIRS: usize = 8;

/// Latencies of a group of targets.
#[derive(Debug)]
pub struct Latency {
    pub name: &'static str,
    /// Whether -O1 and up schedule with these tables; otherwise the conservative control words
    /// remain.
    pub scheduled: bool,
    base: &'static [u8],
    specials: &'static [Special],
    /// Where the specials of each opcode begin, by its position, and the end of the last one's.
    first: &'static [u16],
    /// Read after write, write after write, write after read: by file, class of the first, class of
    /// the second.
    distances: [&'static [&'static [&'static [u8]]]; 3],
    /// Minimum stall by opcode, without and with a guard.
    stalls: &'static [[u8; 2]],
    /// Distances between instructions that name no register in common.
    pub pairs: &'static [Pair],
}

/// The generated tables' value for a scoreboard.
const SCOREBOARD: u8 = 255;

impl Latency {
    /// The latencies that the schedule keeps on a target; `None` if its encoder is not implemented.
    pub fn of(target: &Target) -> Option<&'static Latency> {
        let place = super::targets::TARGETS.binary_search_by_key(&target.column, |t| t.column).ok()?;
        LATENCIES.get(usize::from(LATENCY_OF_TARGET[place]))
    }

    /// The latencies that finished code is checked against, as the hardware is believed to require
    /// them: never more than [`Latency::of`].
    pub fn demanded(target: &Target) -> Option<&'static Latency> {
        let place = super::targets::TARGETS.binary_search_by_key(&target.column, |t| t.column).ok()?;
        DEMANDED.get(usize::from(LATENCY_OF_TARGET[place]))
    }

    /// The classes of an instruction's operands.
    pub fn classes<'a>(&self, op: Op, mods: &'a Mods) -> OperandClasses<'a> {
        let at = op.position();
        let (start, end) = (self.first[at].into(), self.first[at + 1].into());
        OperandClasses { mods, specials: &self.specials[start..end], base: self.base[at] }
    }

    /// Class of an operand: the role by index, the 32-bit word within it from 0.
    pub fn class(&self, op: Op, mods: &Mods, role: usize, word: u8) -> LatencyClass {
        self.classes(op, mods).class(role, word)
    }

    /// Class of an opcode as a whole: of its memory access, and of operands without a class of
    /// their own.
    pub fn class_of(&self, op: Op, mods: &Mods) -> LatencyClass {
        self.classes(op, mods).whole()
    }

    /// Distance from the writer of a register to a reader.
    pub fn read_after_write(&self, file: RegFile, writer: LatencyClass, reader: LatencyClass) -> Needed {
        self.look(0, file, writer, reader)
    }

    /// Distance between two writers of a register.
    pub fn write_after_write(&self, file: RegFile, first: LatencyClass, second: LatencyClass) -> Needed {
        self.look(1, file, first, second)
    }

    /// Distance from a reader of a register to a writer.
    pub fn write_after_read(&self, file: RegFile, reader: LatencyClass, writer: LatencyClass) -> Needed {
        self.look(2, file, reader, writer)
    }

    /// Minimum stall of an opcode, in cycles; 0 only if ptxas uses 0.
    pub fn least_stall(&self, op: Op) -> u8 {
        self.stalls[op.position()][0]
    }

    /// Minimum stall of an opcode that may be guarded.
    pub fn least_stall_if(&self, op: Op, guarded: bool) -> u8 {
        self.stalls[op.position()][usize::from(guarded)]
    }

    /// The pairs of which an instruction is the first, and of which it is the second, one bit each;
    /// `has` tells which roles it has.
    pub fn pairs_of(&self, op: Op, has: impl Fn(Role) -> bool) -> [u8; 2] {
        let mut sets = [0; 2];
        for (i, pair) in self.pairs.iter().enumerate() {
            sets[0] |= u8::from(pair.first.is(op, &has)) << i;
            sets[1] |= u8::from(pair.second.is(op, &has)) << i;
        }
        sets
    }

    /// The pairs of a set, by number.
    pub fn each_pair(&self, set: u8) -> impl Iterator<Item = (usize, &'static Pair)> {
        self.pairs.iter().enumerate().filter(move |(i, _)| set >> i & 1 != 0)
    }

    fn look(&self, kind: usize, file: RegFile, first: LatencyClass, second: LatencyClass) -> Needed {
        match self.distances[kind][file as usize][first as usize][second as usize] {
            SCOREBOARD => Needed::Scoreboard,
            cycles => Needed::Cycles(cycles),
        }
    }
}

/// The classes of the operands of one instruction.
pub struct OperandClasses<'a> {
    mods: &'a Mods,
    specials: &'static [Special],
    base: u8,
}

impl OperandClasses<'_> {
    /// As [`Latency::class`].
    pub fn class(&self, role: usize, word: u8) -> LatencyClass {
        let fits = |s: &&Special| {
            s.when.iter().all(|(kind, value)| self.mods.get(*kind) == *value)
                && (s.role == u8::MAX || usize::from(s.role) == role && (s.word == u8::MAX || s.word == word))
        };
        let special = self.specials.iter().find(fits);
        LatencyClass::ALL[usize::from(special.map_or(self.base, |s| s.class))]
    }

    /// As [`Latency::class_of`].
    #[inline]
    pub fn whole(&self) -> LatencyClass {
        self.class(usize::from(u8::MAX) - 1, 0)
    }
}

impl LatencyClass {
    /// Facts of this class.
    pub fn info(self) -> &'static ClassInfo {
        &CLASSES[self as usize]
    }

    /// Whether registers of a file are read some time after issue.
    pub fn reads_late(self, file: RegFile) -> bool {
        match file {
            RegFile::R => self.info().late,
            RegFile::UR => self.info().late_uniform,
            _ => false,
        }
    }

    /// The in-order queue of a read of class `read` by an instruction of this class; 0 for none.
    /// Reads in one queue happen in issue order; if the instruction's unit has a different queue,
    /// only with reads of the same unit.
    pub fn read_order(self, read: LatencyClass) -> u8 {
        let (own, read) = (self.info().queue, read.info().queue);
        if read == 0 || own == 0 || own == read { read } else { QUEUES * own + read }
    }
}

/// Larger than any queue number.
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
        // An f64 conversion on sm_103: its source goes through the memory queue, its result comes
        // from a pipe with its own queue.
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
        // Only the high word of the addend of IMAD.WIDE is read late.
        let c = |word| hopper.class(Op::IMAD_WIDE, &none, role(Op::IMAD_WIDE, Role::C), word);
        assert_eq!(hopper.read_after_write(RegFile::R, fma, c(0)), Needed::Cycles(4));
        assert_eq!(hopper.read_after_write(RegFile::R, fma, c(1)), Needed::Cycles(2));
        // FP64 has a fixed latency only on some targets, and HMMA is slower in its large shapes.
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
