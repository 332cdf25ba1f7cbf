//! What an instruction needs from time: the class of each register that it reads and writes, and its control field.
//!
//! Input: a decoded instruction, the latencies of its target. Output: [`Timing`]. Invariant: every register that the instruction reads or
//! writes stands there once for each operand that names it; words of one operand may have classes of their own.

use crate::sass::reuse::Operand;
use crate::sass::{Ctrl, Effects, Inst, Slot};
use crate::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use crate::tables::{Mod, Op, Prop, Role};
use smallvec::SmallVec;

/// One register that an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub file: RegFile,
    pub register: u8,
    pub class: LatencyClass,
    pub guard: bool,
    /// Of a read: most cycles that a later write may have to stay behind it, and whether one may have to wait for a scoreboard.
    pub longest: u8,
    pub scoreboard: bool,
}

impl Use {
    /// Of a read, what the tables can ask of a later write.
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

    /// Whether a later write can be too early for this read: the next instruction comes a cycle later in any case.
    pub fn is_awaited(&self) -> bool {
        self.scoreboard || self.longest > 1
    }
}

/// What an instruction asks of those before and after it.
#[derive(Clone, Debug)]
pub struct Timing {
    pub reads: Vec<Use>,
    pub writes: Vec<Use>,
    pub ctrl: Ctrl,
    /// Least stall.
    pub least: u8,
    /// Class of the instruction as a whole.
    pub class: LatencyClass,
    /// A block barrier: whoever is behind it has read what is before it.
    pub meets: bool,
    /// DEPBAR: the scoreboard that it waits for, and how many of its settings may still be under way.
    pub depends: Option<(u8, u64)>,
    /// LDGDEPBAR: the warp's asynchronous copies so far are a group, which its scoreboard announces.
    pub commits: bool,
    /// Operands that the reuse cache serves; none where no instruction of the code marks one.
    pub reuse: SmallVec<[Operand; 3]>,
}

impl Timing {
    /// Of a decoded instruction.
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
        let mut depends = None;
        if inst.op == Op::DEPBAR {
            depends = (inst.modifier(Mod::Le) != 0).then(|| (inst.arg(Role::Sb).val as u8, inst.arg(Role::N).val));
            ctrl.wait |= inst.arg(Role::Mask).val as u8 & 63;
        }
        Timing {
            reads: uses(&effects.reads).into_iter().map(|read| read.with_writers(latency)).collect(),
            writes: uses(&effects.writes),
            ctrl,
            least: latency.least_stall_if(inst.op, inst.is_guarded()),
            class: latency.class_of(inst.op, &inst.mods),
            meets: matches!(inst.op, Op::BAR | Op::BAR_INDEXED),
            depends,
            commits: inst.op.has(Prop::CopyGroup),
            reuse: SmallVec::new(),
        }
    }
}
