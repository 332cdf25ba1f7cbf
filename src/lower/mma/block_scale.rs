//! Lowers `mma` with `.block_scale` to QMMA.SF or OMMA.SF, dense or sparse.
//!
//! A sparse product takes its metadata and the scale of A in two registers, the metadata first.
//! One uniform register says which bytes and lanes hold the scales: the byte of the A scale in bits
//! 0 and 1, its pair of lanes in bit 2, the byte of the B scale in bits 3 and 4, its lane in bits 5
//! and 6.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::wgmma::named;
use crate::ori::mods::*;
use crate::ori::{File, Operand};
use crate::ptx::ast::{self, OperandKind};
use crate::tables::ptx::{self, ScalarType};
use crate::tables::{Mod, Op, Role};

/// Operands of a dense product.
const DENSE: usize = 8;

/// Masks and places of the four parts: byte and lanes of the first scale, of the second.
const PARTS: [(u32, u32); 4] = [(3, 0), (1, 2), (3, 3), (3, 5)];

impl Builder<'_> {
    /// `mma` and `mma.sp::ordered_metadata` with `.block_scale`
    pub fn scaled_product(&mut self, inst: &ast::Instruction) -> Lowered {
        let [_, a, b, _, scale] = inst.types[..] else { return Err(Refusal::NotBuilt) };
        let sparse = inst.op == ptx::Op::MmaSpOrderedMetadata;
        let mut mods = Vec::new();
        let upper = |ty: ScalarType| ty.name().to_uppercase();
        let op = if inst.mods.mma_kind.is_some_and(|kind| kind.name() == "kind::mxf8f6f4") {
            for (kind, ty) in [(Mod::Qa, a), (Mod::Qb, b)] {
                mods.push(named(kind, &upper(ty)).ok_or(Refusal::NotBuilt)?);
            }
            if sparse { Op::QMMA_SF_SP_16864 } else { Op::QMMA_SF_16832 }
        } else {
            let name = if scale == ScalarType::Ue4m3 { "UE4M3" } else { "E8" };
            mods.push(named(Mod::ScaleType, name).ok_or(Refusal::NotBuilt)?);
            if inst.mods.scale_vec.is_some_and(|vec| vec.name() == "scale_vec::4X") {
                mods.push(named(Mod::Scale4x, "4X").ok_or(Refusal::NotBuilt)?);
            }
            if sparse { Op::OMMA_SP_168128 } else { Op::OMMA_16864 }
        };
        let mut parts = Vec::new();
        for operand in &inst.operands[1..4] {
            parts.push(self.fragment_words(operand, ScalarType::B32)?);
        }
        let (of_a, scales) = inst.operands[4..].split_at(inst.operands.len() - DENSE);
        let [scale_a, places_a, scale_b, places_b] = scales else { return Err(Refusal::NotBuilt) };
        let (first, second) = (self.one_word(scale_a)?, self.one_word(scale_b)?);
        // A uniform register is written where all lanes are together.
        self.all_lanes();
        let id = self.scale_places([places_a, places_b])?;
        let metadata = of_a.first().map(|metadata| self.one_word(metadata)).transpose()?;
        let first = metadata.map_or(first, |metadata| self.fragment_of(&[metadata, first], 2));
        let [a, b, c] = [0, 1, 2].each(|i| self.fragment_of(&parts[i], parts[i].len()));
        let (d, regs) = self.temp_vector(4);
        let mut args = vec![
            (Role::D, d),
            (Role::A, a),
            (Role::B, b),
            (Role::C, c),
            (Role::E, first),
            (Role::F, second),
            (Role::Ub, id),
        ];
        if let Some(selector) = of_a.get(1) {
            let selector = self.constant_operand(selector)?;
            args.push((Role::Id, self.literal(selector as i64)));
        }
        self.put(op, &mods, &args);
        self.scatter(&inst.operands[0], ScalarType::B32, &regs)
    }

    /// Which bytes of which lanes: known, or assembled where the program runs.
    fn scale_places(&mut self, pairs: [&ast::Operand; 2]) -> Lowered<Operand> {
        let mut words = Vec::new();
        for pair in pairs {
            let OperandKind::Vector(elements) = &pair.kind else { return Err(Refusal::NotBuilt) };
            for element in elements {
                words.push(self.source_word(element, ScalarType::U16)?);
            }
        }
        let known: Option<Vec<u64>> = words.iter().map(|word| self.constant(*word)).collect();
        if let Some(known) = known {
            let part = |(value, (mask, at)): (u64, (u32, u32))| (value as u32 & mask) << at;
            let id = known.into_iter().zip(PARTS).map(part).sum();
            return Ok(self.imm(id));
        }
        let mut id = Operand::zero();
        for (word, (mask, at)) in words.into_iter().zip(PARTS) {
            let (word, mask) = (self.in_reg(word), self.imm(mask));
            let (masked, shifted, amount, sum) = (self.temp(), self.temp(), self.imm(at), self.temp());
            self.and(masked, word, mask);
            self.shf(&SHF_L, shifted, masked, amount, Operand::zero());
            self.add(sum, id, shifted);
            id = sum;
        }
        let uniform = Operand::reg(self.f.new_reg(File::UR));
        self.put(Op::R2UR, &[], &[(Role::D, uniform), (Role::A, id)]);
        Ok(uniform)
    }
}
