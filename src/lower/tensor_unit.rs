//! Lowers what the unit of tensor memory does by itself: `tcgen05.mma`, `tcgen05.cp`,
//! `tcgen05.shift` and `tcgen05.commit`.
//!
//! Each acts once per issue, however many lanes run, so each lane issues its own; the operands are
//! uniform registers written right before. Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::tensor_memory::{PLACE, two_blocks};
use super::wgmma::named;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::Feature;
use crate::tables::ptx::{
    Collector, CollectorB, CollectorSecond, CopyShape, CopyWarps, Multicast, Op as PtxOp, Packed, ScalarType, Space,
    TensorBlocks, TensorKind,
};
use crate::tables::{Mod, Op, Role, value};

/// Uniform registers of the operands.
const FIRST: [u16; 2] = [10, 11];
const SECOND: [u16; 2] = [12, 13];
const KIND: [u16; 2] = [14, 15];
const KEPT: [u16; 8] = [16, 17, 18, 19, 20, 21, 22, 23];
const SCALES: [u16; 2] = [16, 17];
const BLOCKS: [u16; 1] = [9];

/// The operands behind the descriptors of a product, as words: what the last registers of the
/// instruction hold, whether old sums are added, and by which power of two they are divided.
struct Rest {
    /// Which lanes keep their sums, or which columns are zero.
    lanes: Option<Vec<Operand>>,
    scales: Option<[Operand; 2]>,
    enabled: Operand,
    scale: Option<u64>,
}

impl Builder<'_> {
    /// `tcgen05.mma`, `.sp` and `.ws`
    pub fn tensor_product(&mut self, inst: &ast::Instruction) -> Lowered {
        let sparse = matches!(inst.op, PtxOp::Tcgen05MmaSp | PtxOp::Tcgen05MmaWsSp);
        let [to, first, second, rest @ ..] = inst.operands.as_slice() else { return Err(Refusal::NotBuilt) };
        // What says which elements of the first factor there are, or the table of the second one.
        let (chosen, rest) = rest.split_at(usize::from(sparse || inst.mods.table));
        let [kind, rest @ ..] = rest else { return Err(Refusal::NotBuilt) };
        let chosen = match chosen.first() {
            Some(place) => self.tensor_sum(place)?,
            None => Operand::zero(),
        };
        let mut mods = product_mods(inst, self.has(Feature::TensorMemoryBlocks))?;
        let to = self.tensor_sum(to)?;
        let first = match &first.kind {
            ast::OperandKind::Address(_) => {
                mods.push(named(Mod::UtcA, "TMEM").ok_or(Refusal::NotBuilt)?);
                vec![self.tensor_sum(first)?]
            }
            _ => self.source_words(first, ScalarType::B64)?.to_vec(),
        };
        let second = self.source_words(second, ScalarType::B64)?;
        let kind = self.source_word(kind, ScalarType::B32)?;
        let rest = self.product_rest(inst, rest)?;
        self.lane_by_lane(|b| {
            let mut args = vec![
                (Role::A, b.uniform(&FIRST[..first.len()], &first)),
                (Role::B, b.uniform(&SECOND, &second)),
                (Role::C, b.uniform(&PLACE, &[to])),
                (Role::E, b.uniform(&KIND, &[chosen, kind])),
            ];
            if let Some(lanes) = rest.lanes {
                args.push((Role::F, b.uniform(&KEPT[..lanes.len()], &lanes)));
            }
            if let Some(scales) = rest.scales {
                args.push((Role::F, b.uniform(&SCALES, &scales)));
            }
            let flag = match rest.enabled {
                enabled if enabled == Operand::always() || enabled == Operand::never() => enabled,
                enabled => {
                    let (flag, own) = (b.uniform_flag(), b.in_its_turn(enabled));
                    b.put(Op::VOTEU, &[VOTE_ANY], &[(Role::Pu, flag), (Role::Pp, own)]);
                    flag
                }
            };
            args.push((Role::Pp, flag));
            if let Some(scale) = rest.scale {
                args.push((Role::Mask, b.literal(scale as i64)));
            }
            b.put(Op::UTCMMA_1CTA, &mods, &args);
            Ok(())
        })
    }

    fn product_rest(&mut self, inst: &ast::Instruction, rest: &[ast::Operand]) -> Lowered<Rest> {
        let (lanes, rest) = match inst.row.form().args.iter().any(|arg| arg.count != 0) {
            true => (Some(self.fragment_words(&rest[0], ScalarType::B32)?), &rest[1..]),
            false => (None, rest),
        };
        let (scales, rest) = match inst.mods.scale {
            true => (Some([self.tensor_sum(&rest[0])?, self.tensor_sum(&rest[1])?]), &rest[2..]),
            false => (None, rest),
        };
        let enabled = match self.known(&rest[0]) {
            Some(0) => Operand::never(),
            Some(_) => Operand::always(),
            None => self.source(&rest[0], ScalarType::Pred)?,
        };
        let keeps = matches!(inst.op, PtxOp::Tcgen05MmaWs | PtxOp::Tcgen05MmaWsSp);
        if let Some(zeros) = rest.get(1).filter(|_| keeps) {
            let lanes = Some(self.source_words(zeros, ScalarType::B64)?.to_vec());
            return Ok(Rest { lanes, scales, enabled, scale: None });
        }
        let scale = rest.get(1).map(|operand| self.constant_operand(operand)).transpose()?;
        Ok(Rest { lanes, scales, enabled, scale })
    }

    /// `tcgen05.cp`
    pub fn copy_to_tensor_memory(&mut self, inst: &ast::Instruction) -> Lowered {
        let mods = copy_mods(inst)?;
        let (to, offset) = self.tensor_word(&inst.operands[0])?;
        let from = self.source_words(&inst.operands[1], ScalarType::B64)?;
        self.lane_by_lane(|b| {
            let args = [
                (Role::A, b.uniform(&PLACE, &[to])),
                (Role::Off, b.literal(offset)),
                (Role::B, b.uniform(&FIRST, &from)),
            ];
            b.put(Op::UTCCP_1CTA, &mods, &args);
            Ok(())
        })
    }

    /// `tcgen05.shift`
    pub fn shift_tensor_memory(&mut self, inst: &ast::Instruction) -> Lowered {
        let mut mods = vec![(Mod::Down, value::down::DOWN)];
        mods.extend(pair(inst));
        let (at, offset) = self.tensor_word(&inst.operands[0])?;
        self.lane_by_lane(|b| {
            let args = [(Role::A, b.uniform(&PLACE, &[at])), (Role::Off, b.literal(offset))];
            b.put(Op::UTCSHIFT_1CTA, &mods, &args);
            Ok(())
        })
    }

    /// `tcgen05.commit`
    pub fn commit_tensor_products(&mut self, inst: &ast::Instruction) -> Lowered {
        let space = inst.mods.space.map(|_| Space::Shared);
        let at = self.shared_place(&inst.operands[0], space)?;
        let barrier = if at.offset == 0 {
            at.base
        } else {
            let (sum, amount) = (self.temp(), self.imm(at.offset as u32));
            self.add(sum, at.base, amount);
            sum
        };
        let mut mods: Vec<M> = pair(inst).into_iter().collect();
        mods.extend(inst.mods.reads_of_products.then_some((Mod::UtcReads, value::utc_reads::MMA_READ_SHM_A)));
        let blocks = match inst.operands.get(1) {
            Some(blocks) => {
                mods.push((Mod::Multicast, value::multicast::MULTICAST));
                let wide = inst.mods.multicast == Some(Multicast::MulticastCluster32b);
                let ty = if wide { ScalarType::U32 } else { ScalarType::U16 };
                Some(self.source_word(blocks, ty)?)
            }
            None => None,
        };
        self.lane_by_lane(|b| {
            let mut args = vec![(Role::A, b.uniform(&PLACE, &[barrier])), (Role::B, Operand::zero())];
            if let Some(blocks) = blocks {
                args.push((Role::C, b.uniform(&BLOCKS, &[blocks])));
            }
            b.put(Op::UTCBAR_1CTA, &mods, &args);
            Ok(())
        })
    }
}

/// The modifier of what two blocks do together.
fn pair(inst: &ast::Instruction) -> Option<M> {
    two_blocks(inst).then_some((Mod::Cta2, value::cta2::_2CTA))
}

/// What a product makes of its second factor in a buffer: whether it takes it from there and leaves
/// it there, and the number of the buffer.
fn buffer_mods(collector: CollectorB) -> Lowered<Vec<M>> {
    let name = collector.name();
    let (at, what) =
        name.strip_prefix("collector::b").and_then(|name| name.split_once("::")).ok_or(Refusal::NotBuilt)?;
    if what == "discard" {
        return Ok(Vec::new());
    }
    let mut mods = Vec::new();
    mods.extend((what != "fill").then_some((Mod::BReuse, value::b_reuse::B_REUSE)));
    mods.extend((what != "lastuse").then_some((Mod::BKeep, value::b_keep::B_KEEP)));
    let buffer = if at == "0" { String::new() } else { format!("BUFFER{at}") };
    mods.push(named(Mod::BBuffer, &buffer).ok_or(Refusal::NotBuilt)?);
    Ok(mods)
}

/// Whether a factor is taken from the buffer of the unit, and whether it is left there.
fn used(name: &str) -> (bool, bool) {
    let what = name.rsplit("::").next().unwrap_or_default();
    (matches!(what, "use" | "lastuse"), matches!(what, "fill" | "use"))
}

/// Modifiers of a product, but for where its first factor is; `blocks` says how the target spells
/// that a scale is of 16 elements.
fn product_mods(inst: &ast::Instruction, blocks: bool) -> Lowered<Vec<M>> {
    let m = &inst.mods;
    let ty = match m.tensor_kind.ok_or(Refusal::NotBuilt)? {
        TensorKind::KindF16 | TensorKind::KindTf32 | TensorKind::KindTi16 => "",
        TensorKind::KindF8f6f4 | TensorKind::KindMxf8f6f4 => "Q",
        TensorKind::KindI8 => "I",
        TensorKind::KindMxf4 | TensorKind::KindMxf4nvf4 => "O",
    };
    let mut mods = vec![named(Mod::UtcType, ty).ok_or(Refusal::NotBuilt)?];
    mods.extend(pair(inst));
    if matches!(inst.op, PtxOp::Tcgen05MmaWs | PtxOp::Tcgen05MmaWsSp) {
        mods.push((Mod::UtcWs, value::utc_ws::WS));
    }
    mods.extend(m.ashift.then_some((Mod::Ashift, value::ashift::ASHIFT)));
    if let Some(collector) = m.collector_b {
        mods.extend(buffer_mods(collector)?);
    }
    let (reuse, keep) = used(m.collector.map_or("", Collector::name));
    mods.extend(reuse.then_some((Mod::AReuse, value::a_reuse::A_REUSE)));
    mods.extend(keep.then_some((Mod::AKeep, value::a_keep::A_KEEP)));
    let (reuse, keep) = used(m.collector_second.map_or("", CollectorSecond::name));
    mods.extend(reuse.then_some((Mod::BReuse, value::b_reuse::B_REUSE)));
    mods.extend(keep.then_some((Mod::BKeep, value::b_keep::B_KEEP)));
    mods.extend(m.table.then_some((Mod::UtcLut, value::utc_lut::LUTB)));
    mods.extend(m.scale.then_some((Mod::UtcScaled, value::utc_scaled::SCALED)));
    if matches!(m.tensor_blocks, Some(TensorBlocks::ScaleVec4X | TensorBlocks::Block16)) {
        let (kind, text) = if blocks { (Mod::ScaleBlocks, "BLOCK16") } else { (Mod::Scale4x, "4X") };
        mods.push(named(kind, text).ok_or(Refusal::NotBuilt)?);
    }
    Ok(mods)
}

/// Modifiers of UTCCP.
fn copy_mods(inst: &ast::Instruction) -> Lowered<Vec<M>> {
    let m = &inst.mods;
    let shape = match (m.copy_shape.ok_or(Refusal::NotBuilt)?, m.copy_warps) {
        (CopyShape::D128x256b, _) => "",
        (CopyShape::D4x256b, _) => "4dp256bit",
        (CopyShape::D128x128b, _) => "128dp128bit",
        (CopyShape::D64x128b, Some(CopyWarps::Warpx20213)) => "2x64dp128bit_lw02_lw13",
        (CopyShape::D64x128b, _) => "2x64dp128bit_lw01_lw23",
        (CopyShape::D32x128b, _) => "4x32dp128bit",
    };
    let format = match m.packed {
        Some(Packed::B6x16P32) => "U6x16P32",
        Some(Packed::B4x16P64) => "U4x16P64",
        _ => "",
    };
    let named = |kind, text| named(kind, text).ok_or(Refusal::NotBuilt);
    let mut mods = vec![named(Mod::CpShape, shape)?, named(Mod::CpFormat, format)?];
    mods.extend(pair(inst));
    Ok(mods)
}
