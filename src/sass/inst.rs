//! One SASS instruction in decoded form, as the encoder, the decoder and the simulator use it.
//!
//! `args` follow the order of the opcode's roles in the tables and are accessed by role; modifiers
//! are accessed by kind. An absent operand is `ArgKind::None` and means the role's default. A
//! modifier with its default value is not stored, so equal meanings are equal values.

use crate::tables::{Mod, Mods, Op, Role, Says, value};

/// Largest number of operand roles of an opcode.
pub const MAX_ARGS: usize = 12;
/// Number of RZ, the general register that reads as zero.
pub const RZ: u32 = 255;
/// Number of PT and UPT, the predicates that read as true.
pub const PT: u32 = 7;
/// URZ in decoded form, whatever the width of the field on the target.
pub const URZ: u32 = 255;

/// The kind of an operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ArgKind {
    #[default]
    None,
    /// General register `val` (255 = RZ).
    Reg,
    /// Uniform register `val` (255 = URZ on every generation).
    UReg,
    /// Predicate `val` (7 = PT).
    Pred,
    /// Uniform predicate `val` (7 = UPT).
    UPred,
    /// Convergence barrier `val`.
    Bar,
    /// Immediate: the raw bits, sign-extended to 64 if the field is signed.
    Imm,
    /// Constant: byte offset `val` (two's complement) in bank `bank`.
    Const,
    /// Constant in a bindless bank whose handle is uniform register `bank`: byte offset `val`.
    Bindless,
    /// Code address: signed byte distance from the end of this instruction.
    Label,
    /// Special register `val`.
    Special,
}

/// One operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Arg {
    pub kind: ArgKind,
    /// Arithmetic negation.
    pub neg: bool,
    /// Absolute value.
    pub abs: bool,
    /// Bitwise or logical complement (`~R0`, `!P0`).
    pub not: bool,
    /// Reuse-cache hint.
    pub reuse: bool,
    /// Constant bank, or the uniform register with a bindless bank's handle.
    pub bank: u8,
    /// Register number, immediate bits or offset, by kind.
    pub val: u64,
}

impl Arg {
    fn of(kind: ArgKind, val: u64) -> Arg {
        Arg { kind, val, ..Arg::default() }
    }
    /// General register `n`.
    pub fn reg(n: u32) -> Arg {
        Arg::of(ArgKind::Reg, n.into())
    }
    /// Uniform register `n`.
    pub fn ureg(n: u32) -> Arg {
        Arg::of(ArgKind::UReg, n.into())
    }
    /// Predicate `n`, complemented if `not`.
    pub fn pred(n: u32, not: bool) -> Arg {
        Arg { not, ..Arg::of(ArgKind::Pred, n.into()) }
    }
    /// Uniform predicate `n`, complemented if `not`.
    pub fn upred(n: u32, not: bool) -> Arg {
        Arg { not, ..Arg::of(ArgKind::UPred, n.into()) }
    }
    /// Immediate with these bits.
    pub fn imm(bits: u64) -> Arg {
        Arg::of(ArgKind::Imm, bits)
    }
    /// Constant at a byte offset of a bank, which is a signed 16-bit number in a word: the upper
    /// half of a bank is below zero there.
    pub fn constant(bank: u8, offset: i32) -> Arg {
        Arg { bank, ..Arg::of(ArgKind::Const, i64::from(offset as i16) as u64) }
    }
    /// Convergence barrier `n`.
    pub fn bar(n: u32) -> Arg {
        Arg::of(ArgKind::Bar, n.into())
    }
    /// Code address: byte distance from the end of the instruction.
    pub fn label(distance: i64) -> Arg {
        Arg::of(ArgKind::Label, distance as u64)
    }
    /// Special register `n`.
    pub fn special(n: u32) -> Arg {
        Arg::of(ArgKind::Special, n.into())
    }
    /// Whether the operand is absent.
    pub fn is_none(&self) -> bool {
        self.kind == ArgKind::None
    }
}

/// The guard predicate; `upred` if it is a uniform predicate (`@UP0`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// Predicate number; 7 is PT (always true).
    pub pred: u8,
    pub not: bool,
    pub upred: bool,
}

impl Default for Guard {
    fn default() -> Self {
        Guard { pred: PT as u8, not: false, upred: false }
    }
}

/// The control field (bits 105 to 127 without the reuse bits, which belong to the operands).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ctrl {
    /// Cycles until the next instruction of the warp may issue.
    pub stall: u8,
    /// Bit 109: true keeps issuing from this warp (no yield).
    pub stay: bool,
    /// Scoreboard set when the result is written; 7 = none.
    pub write_bar: u8,
    /// Scoreboard set when the sources have been read; 7 = none.
    pub read_bar: u8,
    /// Scoreboards waited for before issue, one bit each.
    pub wait: u8,
}

impl Default for Ctrl {
    fn default() -> Self {
        Ctrl { stall: 15, stay: false, write_bar: 7, read_bar: 7, wait: 0 }
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inst {
    pub op: Op,
    pub guard: Guard,
    pub mods: Mods,
    pub args: [Arg; MAX_ARGS],
    pub ctrl: Ctrl,
}

impl Inst {
    /// An instruction without operands and modifiers, guarded by PT, with the default control
    /// field.
    #[inline]
    pub fn new(op: Op) -> Inst {
        Inst {
            op,
            guard: Guard::default(),
            mods: Mods::default(),
            args: [Arg::default(); MAX_ARGS],
            ctrl: Ctrl::default(),
        }
    }

    /// Moves the guard of a branch into its operand, where it is a uniform predicate.
    #[inline]
    pub fn settle_condition(&mut self) {
        if let (Op::BRA, Guard { pred, not, upred: true }) = (self.op, self.guard) {
            *self = (*self).with(Role::Pp, Arg::upred(pred.into(), not));
            self.guard = Guard::default();
            self.mods.set(Mod::Bra, value::bra::U);
        }
    }

    /// Whether the instruction has a guard other than PT, so that it may be skipped.
    pub fn is_guarded(&self) -> bool {
        u32::from(self.guard.pred) != PT || self.guard.not
    }

    /// The operand in a role; `ArgKind::None` if it is absent or the opcode has no such role.
    #[inline]
    pub fn arg(&self, role: Role) -> Arg {
        self.op.role_index(role).map_or(Arg::default(), |i| self.args[i])
    }

    /// Sets the operand in a role; does nothing if the opcode has no such role.
    pub fn set(&mut self, role: Role, arg: Arg) {
        if let Some(i) = self.op.role_index(role) {
            self.args[i] = arg;
        }
    }

    /// The same with one more operand.
    pub fn with(mut self, role: Role, arg: Arg) -> Inst {
        self.set(role, arg);
        self
    }

    /// The same with one more modifier.
    pub fn modified(mut self, kind: Mod, value: u8) -> Inst {
        self.mods.set(kind, value);
        self
    }

    /// Value of a modifier kind.
    pub fn modifier(&self, kind: Mod) -> u8 {
        self.mods.get(kind)
    }

    /// What the value of a modifier kind means.
    pub fn says(&self, kind: Mod, question: Says) -> u8 {
        kind.says(question, self.modifier(kind))
    }
}
