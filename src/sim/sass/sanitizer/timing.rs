//! The timing requirements of an instruction: the latency class of each register that it reads and
//! writes, and its control word.
//!
//! Each register appears once for each operand that names it. The words of one operand may have
//! different classes.

use crate::sass::reuse::Operand;
use crate::sass::{Ctrl, Effects, Inst, Slot};
use crate::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use crate::tables::{Mod, Op, Prop, Role};
use smallvec::SmallVec;

/// One register that an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The register file.
    pub file: RegFile,
    /// The register's number.
    pub register: u8,
    /// The latency class of the access.
    pub class: LatencyClass,
    /// Whether it is the guard.
    pub guard: bool,
    /// For a read: the most cycles that a later write may have to wait.
    pub longest: u8,
    /// For a read: whether a later write may have to wait for a scoreboard.
    pub scoreboard: bool,
}

impl Use {
    /// Fills in what the tables can require of a write after this read.
    fn with_writers(self, latency: &Latency) -> Use {
        let mut out = self;
        for writer in LatencyClass::ALL {
            match latency.write_after_read(self.file, self.class, writer) {
                Needed::Cycles(n) => out.longest = out.longest.max(n),
                Needed::Scoreboard => out.scoreboard = true,
            }
        }
        out
    }

    /// Whether a later write can come too early for this read; the next instruction issues at least
    /// one cycle later in any case.
    pub fn is_awaited(&self) -> bool {
        self.scoreboard || self.longest > 1
    }
}

/// The timing of an instruction.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The registers that it reads.
    pub reads: Vec<Use>,
    /// The registers that it writes.
    pub writes: Vec<Use>,
    /// The control word.
    pub ctrl: Ctrl,
    /// Least stall count.
    pub least: u8,
    /// The class of the instruction as a whole.
    pub class: LatencyClass,
    /// Whether it is a block barrier; after it all late reads are done.
    pub meets: bool,
    /// DEPBAR: its scoreboard, and how many of the settings may still be in flight.
    pub depends: Option<(u8, u64)>,
    /// DEPBAR: the scoreboards of its operand, which it looks at later than those of a wait mask.
    pub drains: u8,
    /// A product that closes a group of products of a warp group.
    pub closes: bool,
    /// LDGDEPBAR: commits the warp's asynchronous copies so far as a group, which its scoreboard
    /// completes.
    pub commits: bool,
    /// The pairs of instructions of which it is the first, and of which it is the second.
    pub pairs: [u8; 2],
    /// Operands that the reuse cache serves; empty if no instruction of the code marks one.
    pub reuse: SmallVec<[Operand; 4]>,
}

impl Timing {
    /// The in-order queue of its reads, if they have one.
    pub fn read_order(&self) -> Option<u8> {
        self.reads.iter().map(|read| self.class.read_order(read.class)).find(|order| *order != 0)
    }

    /// The timing of a decoded instruction.
    pub fn of(inst: &Inst, latency: &Latency) -> Timing {
        let effects = Effects::of(inst);
        let uses = |accesses: &[crate::sass::Access]| {
            let one = |a: &crate::sass::Access| {
                let access = *a;
                let of = move |(register, word)| {
                    let class = access.class(latency, inst, word);
                    let guard = access.slot == Slot::Guard;
                    Use { file: access.file, register, class, guard, longest: 0, scoreboard: false }
                };
                access.registers().map(of)
            };
            accesses.iter().flat_map(one).collect::<Vec<Use>>()
        };
        let mut ctrl = inst.ctrl;
        let (mut depends, mut drains) = (None, 0);
        if inst.op == Op::DEPBAR {
            depends = (inst.modifier(Mod::Le) != 0).then(|| (inst.arg(Role::Sb).val as u8, inst.arg(Role::N).val));
            drains = inst.arg(Role::Mask).val as u8 & 63;
            ctrl.wait |= drains;
        }
        if inst.op == Op::WARPGROUP && !inst.arg(Role::A).is_none() {
            depends = Some((super::in_flight::GROUPS, inst.arg(Role::A).val));
        }
        Timing {
            reads: uses(&effects.reads).into_iter().map(|read| read.with_writers(latency)).collect(),
            writes: uses(&effects.writes),
            ctrl,
            least: latency.least_stall_if(inst.op, inst.is_guarded()),
            class: latency.class_of(inst.op, &inst.mods),
            meets: matches!(inst.op, Op::BAR | Op::BAR_INDEXED),
            depends,
            drains,
            closes: inst.op == Op::GMMA && inst.modifier(Mod::Gsb) == crate::tables::value::gsb::GSB0,
            commits: inst.op.has(Prop::CopyGroup),
            pairs: latency.pairs_of(inst.op, |role| !inst.arg(role).is_none()),
            reuse: SmallVec::new(),
        }
    }
}
