//! The registers that an instruction reads and writes.
//!
//! [`Effects::of`] lists every register that the instruction's result can depend on, or that it can
//! change: whole pairs, vectors, matrix fragments and 64-bit addresses, hidden operands
//! (descriptors, handles of bindless banks) and implied ones (the predicates of P2R and R2P). RZ,
//! URZ, PT and UPT are never listed. The guard is a read; a guarded write is listed like any other.
//! The effects of a called function are not included: a call is a control-flow edge.

use super::inst::{Arg, ArgKind, Inst, PT, RZ, URZ};
use crate::tables::latency::{Latency, LatencyClass, RegFile};
use crate::tables::ori::{Direction, RoleInfo, Width};
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

/// Width of an operand in 32-bit words.
pub fn width(inst: &Inst, role: &RoleInfo) -> u8 {
    match role.width {
        Width::Words(2) if is_single(inst, role.role) => 1,
        Width::Fragment => fragment(inst, role.role).unwrap_or(LONGEST),
        width => width.words(&inst.mods),
    }
}

/// Whether one f32 register supplies both elements of a packed pair.
fn is_single(inst: &Inst, role: Role) -> bool {
    let kind = match role {
        Role::A => Mod::PairA,
        Role::B => Mod::PairB,
        Role::C => Mod::PairC,
        _ => return false,
    };
    kind.text(inst.modifier(kind)) == "F32"
}

/// Words that a copy of a tensor takes: addresses in shared memory, and coordinates.
fn tensor_words(inst: &Inst) -> u8 {
    let addresses = match inst.op {
        Op::UTMALDG => 2,
        Op::UTMAPF => 0,
        _ => 1,
    };
    let mode = inst.modifier(Mod::TmaMode);
    let rows = [value::tma_mode::GATHER4, value::tma_mode::SCATTER4].contains(&mode);
    // A column and four rows, or one coordinate for each dimension.
    addresses + if rows { 5 } else { inst.modifier(Mod::TmaDim) + 1 }
}

/// Width assumed for a fragment of unknown shape, larger than any real one.
const LONGEST: u8 = 8;

/// Registers of a matrix fragment per lane: its elements spread over 32 lanes of 32-bit registers.
fn fragment(inst: &Inst, role: Role) -> Option<u8> {
    let count = |mods| match Mod::Mcount.text(mods) {
        "2" => 2,
        "4" => 4,
        _ => 1,
    };
    match inst.op {
        // The level, behind the handle where that is in a register.
        Op::TXQ if role == Role::A => return Some(1 + u8::from(inst.modifier(Mod::BindlessB) != 0)),
        Op::TEX | Op::TLD | Op::TLD4 | Op::TXD | Op::TXQ => return Some(texture(inst, role)),
        Op::SULD | Op::SUST | Op::SURED if role == Role::A => {
            return Some(coordinates(Mod::SuDim.text(inst.modifier(Mod::SuDim))));
        }
        Op::SUST => {
            return Some(match (inst.modifier(Mod::SuForm), inst.modifier(Mod::SuMask)) {
                (value::su_form::P, value::su_mask::R) => 1,
                (value::su_form::P, value::su_mask::RG) => 2,
                (value::su_form::P, _) => 4,
                _ => Width::Size.words(&inst.mods),
            });
        }
        Op::SURED => {
            let types = [value::su_type::U64, value::su_type::S64, value::su_type::SD64];
            return Some(1 + u8::from(types.contains(&inst.modifier(Mod::SuType))));
        }
        // Two halves are a word, two singles a pair.
        Op::FHADD2 | Op::FHMUL2 | Op::FHFMA2 => {
            let mut types = Mod::FhTypes.text(inst.modifier(Mod::FhTypes)).split('.');
            let of = if role == Role::D { types.next() } else { types.nth(1) };
            return Some(1 + u8::from(of == Some("F32x2")));
        }
        // A size and a mask of 32 blocks, or both in halves of one; with images, offsets and a
        // mask.
        Op::UBLKCP if role == Role::C => return Some(1 + u8::from(inst.modifier(Mod::Multicast32) != 0)),
        Op::UTMALDG if role == Role::C => {
            let mode = inst.modifier(Mod::TmaMode);
            let offsets = [value::tma_mode::IM2COL, value::tma_mode::W, value::tma_mode::W128].contains(&mode);
            return Some(1 + u8::from(offsets && inst.modifier(Mod::Multicast32) != 0));
        }
        // An address in global memory, or in shared memory.
        Op::UBLKCP => return Some(if inst.modifier(Mod::BulkWay) == value::bulk_way::S_G { 2 } else { 1 }),
        Op::UTMALDG | Op::UTMALST | Op::UTMREDG | Op::UTMAPF => return Some(tensor_words(inst)),
        Op::HMMA_884 => return Some(2),
        Op::QMMA_SF_16832 | Op::OMMA_16864 => return Some(if role == Role::B { 2 } else { 4 }),
        Op::QMMA_SF_SP_16864 | Op::OMMA_SP_168128 => return Some(4),
        Op::GMMA => return Some(if role == Role::A { 4 } else { group_sum(inst) }),
        Op::LDTM | Op::STTM => return Some(tensor_memory(inst)),
        // A descriptor, or an address in tensor memory; which lanes keep their sums.
        Op::UTCMMA_1CTA if role == Role::A => return Some(if inst.modifier(Mod::UtcA) == 0 { 2 } else { 1 }),
        Op::UTCMMA_1CTA if inst.modifier(Mod::UtcScaled) | inst.modifier(Mod::UtcWs) != 0 => return Some(2),
        Op::UTCMMA_1CTA => return Some(if inst.modifier(Mod::Cta2) == 0 { 4 } else { 8 }),
        Op::LDSM | Op::STSM => {
            let double = inst.modifier(Mod::Mlayout) == value::mlayout::MT1616;
            return Some(count(inst.modifier(Mod::Mcount)) * if double { 2 } else { 1 });
        }
        _ => {}
    }
    let (m, n, k) = shape(Mod::Mshape.text(inst.modifier(Mod::Mshape)))?;
    let sparse = matches!(inst.op, Op::HMMA_SP | Op::IMMA_SP | Op::QMMA_SP);
    let bits = match role {
        Role::A => m * element(inst, Mod::Sa) * if sparse { k / 2 } else { k },
        Role::B => n * k * element(inst, Mod::Sb),
        _ => m * n * sum(inst),
    };
    u8::try_from(bits / 1024).ok()
}

/// Registers that LDTM loads and STTM stores: as many pieces as its count says, each as wide as its
/// shape says.
fn tensor_memory(inst: &Inst) -> u8 {
    let count = Mod::TmCount.text(inst.modifier(Mod::TmCount)).trim_start_matches('x').parse().unwrap_or(1u8);
    count.saturating_mul(match Mod::TmShape.text(inst.modifier(Mod::TmShape)) {
        "16dp128bit" => 2,
        "16dp256bit" => 4,
        _ => 1,
    })
}

/// Registers of the sum of a product of a warp group: 64 rows of four warps.
fn group_sum(inst: &Inst) -> u8 {
    let shape = Mod::GmmaShape.text(inst.modifier(Mod::GmmaShape));
    let columns = shape.split('x').nth(1).and_then(|n| n.parse::<u16>().ok()).unwrap_or(0);
    let kind = Mod::GmmaKind.text(inst.modifier(Mod::GmmaKind));
    let half = matches!(kind, "" | "Q") && Mod::GmmaAcc.text(inst.modifier(Mod::GmmaAcc)) == "F16";
    (columns / if half { 4 } else { 2 }) as u8
}

/// Registers of the coordinates of a texture or surface of this shape, including the layer of an
/// array.
fn coordinates(shape: &str) -> u8 {
    let plain = if shape.contains('1') {
        1
    } else if shape.contains('2') {
        2
    } else {
        3
    };
    plain + u8::from(shape.contains("ARRAY"))
}

/// Registers of an operand of a texture instruction. Results follow the mask, with at most two in
/// the first destination; coordinates follow the shape. The other source holds the level of detail,
/// the comparison value and the offsets, or two derivatives per dimension. In scattered form the
/// sources share all of these equally. Source: words of ptxas 13.0.88.
fn texture(inst: &Inst, role: Role) -> u8 {
    let mask = inst.arg(Role::Mask);
    let results = if mask.is_none() { 4 } else { (mask.val & 15).count_ones() as u8 };
    // Halves come two in a register.
    let halves = inst.modifier(Mod::TexHalf) != 0;
    let some = |results: u8| if halves { results.div_ceil(2) } else { results };
    let shape = Mod::Texdim.text(inst.modifier(Mod::Texdim));
    let given = |kind: Mod| u8::from(inst.modifier(kind) != 0);
    let more = || {
        let lod = Mod::TexLod.text(inst.modifier(Mod::TexLod));
        let level = u8::from(!matches!(lod, "" | "LZ") || Mod::TldLod.text(inst.modifier(Mod::TldLod)) == "LL");
        let offsets = inst.modifier(Mod::TexOffset).min(2);
        level + given(Mod::Dc) + given(Mod::Ms) + given(Mod::BindlessB) + offsets
    };
    let scattered = given(Mod::Scr) == 1 && inst.op != Op::TXD;
    match role {
        Role::D => some(results.min(2)),
        Role::D2 => some(results.saturating_sub(2)),
        Role::A if scattered => (coordinates(shape) + more()).div_ceil(2),
        // A gradient read has the offsets beside the layer, or behind the coordinates.
        Role::A if inst.op == Op::TXD => {
            let offsets = if shape.contains("ARRAY") { 0 } else { given(Mod::TexOffset) };
            coordinates(shape) + offsets + given(Mod::BindlessB)
        }
        Role::A => coordinates(shape),
        _ if inst.op == Op::TXD => 2 * coordinates(shape.trim_start_matches("ARRAY_")),
        _ if scattered => ((coordinates(shape) + more()) / 2).max(1),
        _ => more().max(1),
    }
}

/// Parses a shape such as `16816`, `88128` or `16x8x16` into rows, columns and depth.
fn shape(text: &str) -> Option<(u32, u32, u32)> {
    let parts: Vec<u32> = text.split('x').filter_map(|n| n.parse().ok()).collect();
    if let [m, n, k] = parts[..] {
        return Some((m, n, k));
    }
    let (m, rest) = match text.strip_prefix("16") {
        Some(rest) if !rest.is_empty() => (16, rest),
        _ => (8, text.strip_prefix('8')?),
    };
    Some((m, 8, rest.strip_prefix('8')?.parse().ok()?))
}

/// Bits of an element of the A or B operand; `sign` is the modifier with its integer type.
fn element(inst: &Inst, sign: Mod) -> u32 {
    match inst.op {
        Op::HMMA | Op::HMMA_SP if inst.modifier(Mod::Melem) == value::melem::TF32 => 32,
        Op::HMMA | Op::HMMA_SP => 16,
        Op::DMMA => 64,
        Op::BMMA => 1,
        Op::IMMA | Op::IMMA_SP if sign.text(inst.modifier(sign)).ends_with('4') => 4,
        _ => 8,
    }
}

/// Bits of an element of the accumulator.
fn sum(inst: &Inst) -> u32 {
    match inst.op {
        Op::DMMA => 64,
        Op::HMMA | Op::HMMA_SP | Op::QMMA | Op::QMMA_SP if inst.modifier(Mod::Macc) == value::macc::F16 => 16,
        _ => 32,
    }
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
            words.sort();
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
