//! Lowers `multimem`: operations on memory of which several devices have a copy, at an address that
//! stands for all of them.
//!
//! Stores and reductions are those of global memory: the address alone makes them reach all copies.
//! A load joins the copies, by LDGMC. Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::memory::load_store::elements;
use super::wgmma::named;
use crate::ori::mods::*;
use crate::ori::{Kind, Listed, Operand};
use crate::ptx::ast;
use crate::tables::ptx::{Op as PtxOp, ScalarType, Scope, Semantics, Space};
use crate::tables::{Feature, Mod, Op, Role};
use std::sync::Arc;

impl Builder<'_> {
    /// `multimem.ld_reduce`
    pub fn load_reduced(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let parts = elements(&inst.operands[0]);
        let place = self.place(&inst.operands[1], Some(Space::Global))?;
        let op = inst.mods.atom_op.ok_or(Refusal::NotBuilt)?.modifier();
        let wide = if self.has(Feature::MultimemWideSums) { "HPADD" } else { "F32ADD" };
        let op = if inst.mods.accumulate.is_some() { named(Mod::Aop, wide).ok_or(Refusal::NotBuilt)? } else { op };
        let size = named(Mod::Size, &joined(ty, parts.len())).ok_or(Refusal::NotBuilt)?;
        let plain = as_bits(inst);
        let words = (plain.types[0].bits() as usize * parts.len()).div_ceil(32);
        let (vector, regs) = self.temp_vector(words);
        let whole = if words == 1 { regs[0] } else { vector };
        let off = self.literal(place.offset);
        let load = self.put(Op::LDGMC, &[E, op, size], &[(Role::D, whole), (Role::A, place.base), (Role::Off, off)]);
        self.f[load].ordered = true;
        if parts.len() > 1 && words > 1 {
            self.f[load].listed = Listed::Values(1);
        }
        match parts {
            [one] => {
                let d = self.dest(one)?;
                match d.kind() {
                    Kind::Vector(_) if words == 2 => self.copy_words(d, [regs[0], regs[1]]),
                    _ if d != Operand::zero() => self.widen_into(d, regs[0], plain.types[0]),
                    _ => {}
                }
            }
            _ => self.scatter_parts(parts, plain.types[0], &regs)?,
        }
        if inst.mods.semantics == Some(Semantics::Acquire) {
            self.put(Op::CCTL, &[CCTL_IVALL], &[]);
        }
        Ok(())
    }

    /// `multimem.st`
    pub fn store_everywhere(&mut self, inst: &ast::Instruction) -> Lowered {
        let mut plain = as_bits(inst);
        plain.op = PtxOp::St;
        self.store(&plain)
    }

    /// `multimem.red`
    pub fn reduce_everywhere(&mut self, inst: &ast::Instruction) -> Lowered {
        let mut plain = inst.clone();
        plain.op = PtxOp::Red;
        let mods = Arc::make_mut(&mut plain.mods);
        mods.space = Some(Space::Global);
        if mods.semantics.is_none() {
            (mods.semantics, mods.scope) = (Some(Semantics::Relaxed), Some(Scope::Sys));
        }
        self.atomic(&plain)
    }
}

/// The same with types of bits only, of the same widths, on global memory.
fn as_bits(inst: &ast::Instruction) -> ast::Instruction {
    let mut plain = inst.clone();
    Arc::make_mut(&mut plain.mods).space = Some(Space::Global);
    plain.types[0] = match inst.types[0].bits() {
        16 => ScalarType::B16,
        32 => ScalarType::B32,
        _ => ScalarType::B64,
    };
    plain
}

/// What LDGMC calls so many elements of a type.
fn joined(ty: ScalarType, count: usize) -> String {
    let name = ty.name();
    let (base, each) = match name.split_once('x') {
        Some((base, each)) => (base, each.parse().unwrap_or(1)),
        None => (name, 1),
    };
    match (name, each * count) {
        ("u32" | "b32", _) => "32".into(),
        ("u64" | "b64", _) => "64".into(),
        ("s32" | "s64", _) => name.to_uppercase(),
        (_, 1) => format!("{}.RN", base.to_uppercase()),
        (_, many) => format!("{}x{many}.RN", base.to_uppercase()),
    }
}
