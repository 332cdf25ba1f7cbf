//! Translates the operands of an instruction, by role, to [`Src`], [`Dst`] and [`Pred`].
//!
//! A constant-bank operand becomes its value. An absent operand means what the tables say.

use super::super::code::{Code, Dst, Exec, From, Pred, Src};
use super::super::setup::Banks;
use super::Lifted;
use crate::sass::{Arg, ArgKind};
use crate::tables::Role;
use crate::tables::ori::Absent;

/// The offsets of a bank: those in its upper half are below zero in a word.
pub const BANK_MASK: u32 = 0xffff;

/// How the modifiers of an operand act on its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    /// Integers that are negated as a complement plus a carry-in; the carries are counted in
    /// [`Builder::plus`].
    IntCarry,
    F32,
    F64,
    F16x2,
    F32x2,
}

/// Builds one instruction.
pub struct Builder<'a> {
    /// The constant banks of the launch.
    pub banks: &'a Banks,
    /// The decoded instruction.
    pub lifted: &'a Lifted,
    /// Byte offset of the next instruction.
    pub next: u64,
    /// The instruction under construction.
    pub code: Code,
    /// Number of sources that are negated by complement, each of which needs one more.
    pub plus: u8,
}

impl<'a> Builder<'a> {
    /// Starts an instruction with its guard and results.
    ///
    /// # Errors
    ///
    /// A result or predicate operand of an unexpected kind.
    pub fn new(banks: &'a Banks, offset: u64, lifted: &'a Lifted) -> Result<Builder<'a>, String> {
        let mut code = Code::new(Exec::Nop);
        let guard = lifted.inst.guard;
        code.guard = Pred { uniform: guard.upred, index: guard.pred, not: guard.not };
        let mut b = Builder { banks, lifted, next: offset + 16, code, plus: 0 };
        b.code.d = b.dst(Role::D)?;
        b.code.pu = b.pred(Role::Pu)?;
        b.code.pv = b.pred(Role::Pv)?;
        b.code.pp = b.pred(Role::Pp)?;
        // If the opcode has no role for a second carry, the carry is 0.
        b.code.pq = if lifted.inst.op.role_index(Role::Pq).is_some() { b.pred(Role::Pq)? } else { Pred::FALSE };
        Ok(b)
    }

    /// The operand in a role.
    pub fn arg(&self, role: Role) -> Arg {
        self.lifted.inst.arg(role)
    }

    /// Whether a word is among the modifiers.
    pub fn has(&self, word: &str) -> bool {
        self.lifted.words.has(word)
    }

    /// A register result.
    pub fn dst(&self, role: Role) -> Result<Dst, String> {
        let arg = self.arg(role);
        match arg.kind {
            ArgKind::None => Ok(Dst::Nowhere),
            ArgKind::Reg => Ok(Dst::Reg(arg.val as u8)),
            ArgKind::UReg => Ok(Dst::UReg(arg.val as u8)),
            // A convergence barrier is not a register destination; its opcode handles it.
            ArgKind::Bar => Ok(Dst::Nowhere),
            kind => Err(format!("a result in a {kind:?}")),
        }
    }

    /// A predicate; the tables say what an absent one means.
    pub fn pred(&self, role: Role) -> Result<Pred, String> {
        let arg = self.arg(role);
        let info = self.lifted.inst.op.info().roles.iter().find(|r| r.role == role);
        match arg.kind {
            ArgKind::None if info.is_some_and(|i| i.absent == Absent::False) => Ok(Pred::FALSE),
            ArgKind::None => Ok(Pred::TRUE),
            ArgKind::Pred => Ok(Pred { uniform: false, index: arg.val as u8, not: arg.not }),
            ArgKind::UPred => Ok(Pred { uniform: true, index: arg.val as u8, not: arg.not }),
            kind => Err(format!("a predicate in a {kind:?}")),
        }
    }

    /// A source of one word, or of two if `wide`.
    ///
    /// # Errors
    ///
    /// An operand of an unexpected kind, or a constant without a value.
    pub fn src(&mut self, role: Role, wide: bool, kind: Kind) -> Result<Src, String> {
        let arg = self.arg(role);
        let mut src = Src { wide, ..Src::default() };
        modify(&mut src, &arg, kind);
        if kind == Kind::IntCarry && arg.neg {
            self.plus += 1;
        }
        let high = wide && kind == Kind::F64;
        src.from = match arg.kind {
            ArgKind::None => From::Value(src.fix(0)),
            ArgKind::Reg if arg.val == 255 => From::Value(src.fix(0)),
            ArgKind::UReg if arg.val == 255 => From::Value(src.fix(0)),
            ArgKind::Reg => From::Reg(arg.val as u8),
            ArgKind::UReg => From::UReg(arg.val as u8),
            ArgKind::Imm if high && arg.val >> 32 == 0 => From::Value(src.fix(arg.val << 32)),
            ArgKind::Imm => From::Value(src.fix(arg.val)),
            ArgKind::Const => {
                let width = if wide { 8 } else { 4 };
                let bytes =
                    self.banks.slice(arg.bank, arg.val as u32 & BANK_MASK, width).map_err(|fault| fault.what)?;
                From::Value(src.fix(super::super::super::memory::load(bytes)))
            }
            kind => return Err(format!("a source in a {kind:?}")),
        };
        Ok(src)
    }

    /// Reads sources a, b and c of one word each.
    pub fn abc(&mut self, kind: Kind) -> Result<(), String> {
        self.abc_wide([false; 3], kind)
    }

    /// Reads sources a, b and c; `wide` says which have two words.
    pub fn abc_wide(&mut self, wide: [bool; 3], kind: Kind) -> Result<(), String> {
        self.code.a = self.src(Role::A, wide[0], kind)?;
        self.code.b = self.src(Role::B, wide[1], kind)?;
        self.code.c = self.src(Role::C, wide[2], kind)?;
        Ok(())
    }

    /// The value of an immediate operand; 0 if it is absent.
    pub fn imm(&self, role: Role) -> u64 {
        self.arg(role).val
    }

    /// The instruction index of a label operand.
    pub fn target(&self) -> Result<u32, String> {
        let to = self.next.wrapping_add(self.arg(Role::Target).val);
        u32::try_from(to / 16).map_err(|_| format!("a branch to {to:#x}"))
    }
}

fn modify(src: &mut Src, arg: &Arg, kind: Kind) {
    let sign: u64 = match kind {
        Kind::Int | Kind::IntCarry => 0,
        Kind::F32 => 1 << 31,
        Kind::F64 => 1 << 63,
        Kind::F16x2 => 0x8000_8000,
        Kind::F32x2 => 0x8000_0000_8000_0000,
    };
    if arg.abs {
        src.and &= !sign;
    }
    if arg.neg {
        src.xor ^= sign;
        src.negate = kind == Kind::Int;
    }
    if arg.not || arg.neg && kind == Kind::IntCarry {
        src.xor ^= u64::MAX;
    }
}
