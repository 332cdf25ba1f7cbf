//! The registers that an instruction reads and writes.
//!
//! [`Effects::of`] lists every register that the instruction's result can depend on, or that it can
//! change: whole pairs, vectors, matrix fragments and 64-bit addresses, hidden operands
//! (descriptors, handles of bindless banks) and implied ones (the predicates of P2R and R2P). RZ,
//! URZ, PT and UPT are never listed. The guard is a read; a guarded write is listed like any other.
//! The effects of a called function are not included: a call is a control-flow edge.

use super::inst::{Arg, ArgKind, Inst, PT, RZ, URZ};
use super::widths::width;
use crate::tables::latency::{Latency, LatencyClass, RegFile};
use crate::tables::ori::{Direction, RoleInfo};
use crate::tables::{Mod, Op, Prop, Role, value};
use smallvec::SmallVec;

/// The part of an instruction that accesses registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    Guard,
    /// Position of the role among the opcode's.
    Role(u8),
    /// No operand: the registers are named by a mask.
    Implied,
}

/// A run of consecutive registers that an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub file: RegFile,
    /// Number of the first register.
    pub first: u8,
    /// Number of registers.
    pub count: u8,
    pub slot: Slot,
}

/// All accesses of an instruction.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    pub reads: SmallVec<[Access; 8]>,
    pub writes: SmallVec<[Access; 4]>,
}

/// Number of writable predicates in each file.
const PREDICATES: u64 = 7;

impl Effects {
    /// The accesses of an instruction.
    pub fn of(inst: &Inst) -> Effects {
        let mut out = Effects::default();
        if u32::from(inst.guard.pred) != PT {
            let file = if inst.guard.upred { RegFile::UP } else { RegFile::P };
            out.reads.push(Access { file, first: inst.guard.pred, count: 1, slot: Slot::Guard });
        }
        for (i, (role, arg)) in inst.op.info().roles.iter().zip(&inst.args).enumerate() {
            let Some(access) = access(inst, role, arg, Slot::Role(i as u8)) else { continue };
            match role.direction {
                Direction::Def => out.writes.push(access),
                _ => out.reads.push(access),
            }
        }
        out.implied(inst);
        out
    }

    /// Predicates named by a mask operand; all of them if the mask is not constant.
    fn implied(&mut self, inst: &Inst) {
        let mask = inst.arg(Role::B);
        let mask = if mask.kind == ArgKind::Imm { mask.val } else { u64::MAX };
        let file = if inst.op.info().roles.iter().any(|r| r.class == crate::tables::ori::Class::Uniform) {
            RegFile::UP
        } else {
            RegFile::P
        };
        for n in (0..PREDICATES).filter(|n| mask >> n & 1 != 0) {
            let access = Access { file, first: n as u8, count: 1, slot: Slot::Implied };
            if inst.op.has(Prop::ReadsPredicates) {
                self.reads.push(access);
            }
            if inst.op.has(Prop::WritesPredicates) {
                self.writes.push(access);
            }
        }
    }
}

impl Access {
    /// The registers, each with its index in the run.
    pub fn registers(self) -> impl Iterator<Item = (u8, u8)> {
        (0..self.count).map(move |i| (self.first.saturating_add(i), i))
    }

    /// Latency class of one word of the run.
    pub fn class(self, latency: &Latency, inst: &Inst, word: u8) -> LatencyClass {
        match self.slot {
            Slot::Guard => LatencyClass::Guard,
            Slot::Role(role) => latency.class(inst.op, &inst.mods, usize::from(role), word),
            Slot::Implied => latency.class_of(inst.op, &inst.mods),
        }
    }
}

fn access(inst: &Inst, role: &RoleInfo, arg: &Arg, slot: Slot) -> Option<Access> {
    let (file, zero, count) = match arg.kind {
        ArgKind::Reg => (RegFile::R, RZ, width(inst, role)),
        // Four registers have both descriptors; with a factor in registers the last two have that
        // of the other.
        ArgKind::UReg if inst.op == Op::GMMA && arg.val != u64::from(URZ) && !inst.arg(Role::A).is_none() => {
            return Some(Access { file: RegFile::UR, first: (arg.val as u8).saturating_add(2), count: 2, slot });
        }
        ArgKind::UReg => (RegFile::UR, URZ, uniform_width(inst, role)),
        ArgKind::Pred => (RegFile::P, PT, 1),
        ArgKind::UPred => (RegFile::UP, PT, 1),
        ArgKind::Bar => (RegFile::B, u32::MAX, 1),
        // The handle of a bindless bank is a register pair.
        ArgKind::Bindless => {
            let first = arg.bank;
            return (u32::from(first) != URZ).then_some(Access { file: RegFile::UR, first, count: 2, slot });
        }
        ArgKind::None | ArgKind::Imm | ArgKind::Const | ArgKind::Label | ArgKind::Special => return None,
    };
    (arg.val != u64::from(zero)).then_some(Access { file, first: arg.val as u8, count, slot })
}

/// Width of a uniform register in an address: a pair if the address is 64 bits wide.
fn uniform_width(inst: &Inst, role: &RoleInfo) -> u8 {
    let long = role.role == Role::Ub && inst.modifier(Mod::E) == value::e::E;
    if long { 2 } else { width(inst, role) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass::parse;
    use crate::tables::Target;

    /// Reads and writes as text; `R4+2` is a pair.
    fn listed(target: &str, line: &str) -> (String, String) {
        let target = Target::by_name(target).unwrap();
        let inst = parse(target, line, 0, None).unwrap_or_else(|e| panic!("{line}: {}", e.message));
        let effects = Effects::of(&inst);
        let text = |list: &[Access]| {
            let mut words: Vec<String> = list.iter().map(|a| format!("{:?}{}+{}", a.file, a.first, a.count)).collect();
            crate::sorted::sort(&mut words);
            words.join(" ")
        };
        (text(&effects.reads), text(&effects.writes))
    }

    #[test]
    fn accesses_have_their_widths() {
        for (target, line, reads, writes) in [
            ("sm_90", "IADD3 R1, P0, R2, R3, RZ", "R2+1 R3+1", "P0+1 R1+1"),
            ("sm_90", "@!P1 LDG.E.128 R4, desc[UR6][R2.64]", "P1+1 R2+2 UR6+2", "R4+4"),
            ("sm_90", "STG.E.64 desc[UR4][R2.64+0x10], R8", "R2+2 R8+2 UR4+2", ""),
            ("sm_75", "LDG.E.SYS R0, [R2.U32+UR4]", "R2+1 UR4+2", "R0+1"),
            ("sm_90", "LDS.64 R0, [R2+UR4]", "R2+1 UR4+1", "R0+2"),
            ("sm_90", "IMAD.WIDE R4, R2, R3, R6", "R2+1 R3+1 R6+2", "R4+2"),
            ("sm_90", "DADD R4, R2, R6", "R2+2 R6+2", "R4+2"),
            ("sm_90", "HMMA.16816.F32 R4, R8, R12, R4", "R12+2 R4+4 R8+4", "R4+4"),
            ("sm_90", "HMMA.1688.F16 R4, R8, R12, R4", "R12+1 R4+2 R8+2", "R4+2"),
            ("sm_80", "TEX.SCR.LL R12, R14, R14, R12, 0x0, 0x60, CUBE", "R12+2 R14+2", "R12+2 R14+2"),
            ("sm_80", "TEX.SCR.LL R20, R22, R20, R29, 0x0, 0x5a, 2D", "R20+2 R29+1", "R20+2 R22+2"),
            ("sm_80", "TLD4.SCR.G RZ, R12, R8, R9, 0x0, 0x58, 2D, 0x6", "R8+1 R9+1", "R12+2"),
            ("sm_80", "TLD.SCR.LZ R8, R10, R27, 0x0, 0x58, 1D", "R27+1", "R10+2 R8+2"),
            ("sm_80", "IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4", "R12+2 R4+4 R8+4", "R4+4"),
            ("sm_90", "R2P PR, R4, 0x5", "R4+1", "P0+1 P2+1"),
            ("sm_90", "ISETP.GE.AND P0, PT, R0, UR4, PT", "R0+1 UR4+1", "P0+1"),
        ] {
            assert_eq!(listed(target, line), (reads.to_string(), writes.to_string()), "{line}");
        }
    }
}
