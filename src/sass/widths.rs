//! How many registers an operand of an instruction has, by its role and the modifiers.
//!
//! What a modifier means here (words of a shape, dimensions of a texture) are rows of
//! `tables/ori/values.ron`; a kind that an instruction does not have counts as its default.

use super::inst::{ArgKind, Inst};
use crate::tables::ori::{RoleInfo, Width};
use crate::tables::{Mod, Op, Prop, Role, Says, value};

/// Bits of a register.
const WORD_BITS: u16 = 32;

/// Width of an operand in 32-bit words.
pub fn width(inst: &Inst, role: &RoleInfo) -> u8 {
    match role.width {
        Width::Words(2) => pair(inst, role.role),
        Width::Fragment => fragment(inst, role.role),
        width => width.words(&inst.mods),
    }
}

/// Registers of a pair: one where it supplies both elements of a packed pair of singles.
fn pair(inst: &Inst, role: Role) -> u8 {
    match role {
        Role::A => inst.says(Mod::PairA, Says::Words),
        Role::B => inst.says(Mod::PairB, Says::Words),
        Role::C => inst.says(Mod::PairC, Says::Words),
        _ => 2,
    }
}

/// Registers of an operand whose width is that of its register tuple.
fn fragment(inst: &Inst, role: Role) -> u8 {
    match inst.op {
        Op::TEX | Op::TLD | Op::TLD4 | Op::TXD | Op::TXQ => texture(inst, role),
        Op::SULD | Op::SUST | Op::SURED => surface(inst, role),
        Op::FHADD2 | Op::FHMUL2 | Op::FHFMA2 if role == Role::D => inst.says(Mod::FhTypes, Says::ResultWords),
        Op::FHADD2 | Op::FHMUL2 | Op::FHFMA2 => inst.says(Mod::FhTypes, Says::SourceWords),
        Op::UBLKCP | Op::UTMALDG | Op::UTMALST | Op::UTMREDG | Op::UTMAPF => bulk(inst, role),
        Op::LDSM | Op::STSM => inst.says(Mod::Mcount, Says::Count) * inst.says(Mod::Mlayout, Says::Words),
        Op::LDTM | Op::STTM => {
            inst.says(Mod::TmCount, Says::Count).saturating_mul(inst.says(Mod::TmShape, Says::Words))
        }
        Op::UTCMMA_1CTA => tensor_unit(inst, role),
        Op::GMMA if role == Role::A => 4,
        Op::GMMA => group_sum(inst),
        Op::HMMA_884 => 2,
        Op::QMMA_SF_16832 | Op::OMMA_16864 if role == Role::B => 2,
        Op::QMMA_SF_16832 | Op::OMMA_16864 | Op::QMMA_SF_SP_16864 | Op::OMMA_SP_168128 => 4,
        _ => product(inst, role),
    }
}

/// Registers of an operand of a copy in bulk.
fn bulk(inst: &Inst, role: Role) -> u8 {
    let mask = u8::from(inst.modifier(Mod::Multicast32) != 0);
    match (inst.op, role) {
        // A size and a mask of 32 blocks, or both in halves of one.
        (Op::UBLKCP, Role::C) => 1 + mask,
        // An address in global memory, or in shared memory.
        (Op::UBLKCP, _) => 1 + u8::from(inst.modifier(Mod::BulkWay) == value::bulk_way::S_G),
        // With images, offsets and a mask.
        (Op::UTMALDG, Role::C) => 1 + mask * inst.says(Mod::TmaMode, Says::Offsets),
        _ => tensor_words(inst),
    }
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
    addresses + if rows { 5 } else { inst.says(Mod::TmaDim, Says::Dimensions) }
}

/// Registers of an operand of a product in tensor memory: a descriptor, or an address there; which
/// lanes keep their sums.
fn tensor_unit(inst: &Inst, role: Role) -> u8 {
    if role == Role::A {
        if inst.modifier(Mod::UtcA) == 0 { 2 } else { 1 }
    } else if inst.modifier(Mod::UtcScaled) | inst.modifier(Mod::UtcWs) != 0 {
        2
    } else if inst.modifier(Mod::Cta2) == 0 {
        4
    } else {
        8
    }
}

/// Registers of the sum of a product of a warp group. Sums of integers have no modifier for it.
fn group_sum(inst: &Inst) -> u8 {
    let integers = [value::gmma_kind::I, value::gmma_kind::B].contains(&inst.modifier(Mod::GmmaKind));
    let bits = if integers { WORD_BITS } else { inst.says(Mod::GmmaAcc, Says::Bits).into() };
    words(inst.says(Mod::GmmaShape, Says::ElementsC), bits)
}

/// Registers of the fragment that a lane has of an operand of a product of matrices.
fn product(inst: &Inst, role: Role) -> u8 {
    match role {
        Role::A => {
            let elements = inst.says(Mod::Mshape, Says::ElementsA);
            words(if inst.op.has(Prop::SparseFactor) { elements / 2 } else { elements }, element(inst, role))
        }
        Role::B => words(inst.says(Mod::Mshape, Says::ElementsB), element(inst, role)),
        _ if inst.op == Op::DMMA => words(inst.says(Mod::Mshape, Says::ElementsC), 64),
        // Sums of integers have no modifier for it, and the bits of its default.
        _ => words(inst.says(Mod::Mshape, Says::ElementsC), inst.says(Mod::Macc, Says::Bits).into()),
    }
}

/// Bits of an element of a factor.
fn element(inst: &Inst, role: Role) -> u16 {
    match inst.op {
        Op::HMMA | Op::HMMA_SP => inst.says(Mod::Melem, Says::Bits).into(),
        Op::DMMA => 64,
        Op::BMMA => 1,
        Op::IMMA | Op::IMMA_SP if role == Role::A => inst.says(Mod::Sa, Says::Bits).into(),
        Op::IMMA | Op::IMMA_SP => inst.says(Mod::Sb, Says::Bits).into(),
        _ => 8,
    }
}

/// Registers of this many elements.
fn words(elements: u8, bits: u16) -> u8 {
    (u16::from(elements) * bits / WORD_BITS) as u8
}

/// Registers of an operand of a surface instruction.
fn surface(inst: &Inst, role: Role) -> u8 {
    match inst.op {
        _ if role == Role::A => inst.says(Mod::SuDim, Says::Dimensions) + inst.says(Mod::SuDim, Says::Layers),
        Op::SURED => inst.says(Mod::SuType, Says::Words),
        _ if inst.modifier(Mod::SuForm) == value::su_form::P => inst.says(Mod::SuMask, Says::Words),
        _ => Width::Size.words(&inst.mods),
    }
}

/// Registers of an operand of a texture instruction. Results follow the mask, with at most two in
/// the first destination; coordinates follow the shape. The other source holds the level of detail,
/// the comparison value and the offsets, or two derivatives per dimension. In scattered form the
/// sources share all of these equally. Source: words of ptxas 13.0.88.
fn texture(inst: &Inst, role: Role) -> u8 {
    let mask = inst.arg(Role::Mask);
    let results = if mask.kind == ArgKind::None { 4 } else { (mask.val & 15).count_ones() as u8 };
    // Halves come two in a register.
    let halves = inst.modifier(Mod::TexHalf) != 0;
    let some = |results: u8| if halves { results.div_ceil(2) } else { results };
    let given = |kind: Mod| u8::from(inst.modifier(kind) != 0);
    let (dimensions, layers) = (inst.says(Mod::Texdim, Says::Dimensions), inst.says(Mod::Texdim, Says::Layers));
    let (coordinates, offsets) = (dimensions + layers, inst.says(Mod::TexOffset, Says::Words));
    let level = inst.says(Mod::TexLod, Says::Words) | inst.says(Mod::TldLod, Says::Words);
    let more = level + given(Mod::Dc) + given(Mod::Ms) + given(Mod::BindlessB) + offsets;
    let scattered = given(Mod::Scr) == 1 && inst.op != Op::TXD;
    match role {
        Role::D => some(results.min(2)),
        Role::D2 => some(results.saturating_sub(2)),
        // The level, behind the handle where that is in a register.
        Role::A if inst.op == Op::TXQ => 1 + given(Mod::BindlessB),
        Role::A if scattered => (coordinates + more).div_ceil(2),
        // A gradient read has the offsets beside the layer, or behind the coordinates.
        Role::A if inst.op == Op::TXD => coordinates + if layers == 0 { offsets } else { 0 } + given(Mod::BindlessB),
        Role::A => coordinates,
        _ if inst.op == Op::TXD => 2 * dimensions,
        _ if scattered => ((coordinates + more) / 2).max(1),
        _ => more.max(1),
    }
}
