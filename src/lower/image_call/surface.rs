//! Accesses to surfaces by calls: `suld`, `sust` and `sured`.

use super::read::VALUES;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::bulk::later;
use crate::lower::surface::orders;
use crate::lower::texture::elements;
use crate::ori::Operand;
use crate::ptx::ast::{self, OperandKind};
use crate::tables::images::{Argument, Call, Function, Part};
use crate::tables::ptx::{AtomOp, Op as PtxOp, ScalarType, SurfaceClamp};

/// Coordinates by number: of a surface with layers the layer is the first.
const AT: [Argument; 3] = [Argument::X0, Argument::X1, Argument::X2];

impl Builder<'_> {
    /// `suld.b`
    pub(in crate::lower) fn load_surface_by_call(&mut self, inst: &ast::Instruction) -> Lowered {
        self.where_guarded(|b| {
            let (parts, ty) = (elements(&inst.operands[0]), inst.types[0]);
            let bits = parts.len() as u32 * ty.bits();
            let wanted = &VALUES[..(bits / 32).max(1) as usize];
            let regs = b.access_by_call(inst, &inst.operands[1], Call::Load, &[size(bits)?], &[], wanted)?;
            b.scatter_parts(parts, ty, &regs)
        })
    }

    /// `sust.b` and `sust.p`
    pub(in crate::lower) fn store_surface_by_call(&mut self, inst: &ast::Instruction) -> Lowered {
        self.where_guarded(|b| {
            let (parts, ty) = (elements(&inst.operands[1]), inst.types[0]);
            let way = if inst.op == PtxOp::SustP { Part::Packed } else { Part::ByBytes };
            let asked = [way, size(parts.len() as u32 * ty.bits())?];
            let words = b.gather(parts, ty)?;
            b.access_by_call(inst, &inst.operands[0], Call::Store, &asked, &words, &[]).map(|_| ())
        })
    }

    /// `sured.b` and `sured.p`
    pub(in crate::lower) fn reduce_surface_by_call(&mut self, inst: &ast::Instruction) -> Lowered {
        self.where_guarded(|b| {
            let single = inst.op == PtxOp::SuredP;
            let mut asked = vec![operation(inst.mods.atom_op)?];
            asked.push(match inst.types[0] {
                ScalarType::S32 => Part::S32,
                ScalarType::U64 => Part::U64,
                ScalarType::S64 => Part::S64,
                ScalarType::B32 if single && orders(inst) => Part::Element32,
                ScalarType::B64 if single => Part::Element64,
                ScalarType::U32 | ScalarType::B32 => Part::AnyU32,
                _ => return Err(Refusal::NotBuilt),
            });
            asked.extend((!single).then_some(Part::ByBytes));
            let words = match inst.types[0].bits() {
                64 => b.source_words(&inst.operands[1], inst.types[0])?.to_vec(),
                _ => vec![b.source_word(&inst.operands[1], inst.types[0])?],
            };
            b.access_by_call(inst, &inst.operands[0], Call::Reduce, &asked, &words, &[]).map(|_| ())
        })
    }

    fn access_by_call(
        &mut self,
        inst: &ast::Instruction,
        place: &ast::Operand,
        what: Call,
        asked: &[Part],
        values: &[Operand],
        wanted: &[Argument],
    ) -> Lowered<Vec<Operand>> {
        let geometry = inst.mods.geometry.ok_or(Refusal::NotBuilt)?;
        let function = Function::of(what, geometry).ok_or_else(|| later(inst, geometry.name()))?;
        let OperandKind::Address(address) = &place.kind else { return Err(Refusal::NotBuilt) };
        let [list] = &address.rest[..] else { return Err(Refusal::NotBuilt) };
        let mut given: Vec<(Argument, Operand)> = VALUES.into_iter().zip(values.iter().copied()).collect();
        let count = usize::from(geometry.has_layers()) + geometry.dimensions();
        for (name, part) in AT.into_iter().zip(elements(list)).take(count) {
            given.push((name, self.source_word(part, ScalarType::S32)?));
        }
        let outside = match inst.mods.surface_clamp.ok_or(Refusal::NotBuilt)? {
            SurfaceClamp::Trap => Part::Trap,
            SurfaceClamp::Clamp => Part::Clamp,
            SurfaceClamp::Zero => Part::Zero,
        };
        let parts: Vec<Part> = asked.iter().copied().chain([outside]).collect();
        let handle = self.handle(inst, address)?;
        self.ask((function, what.word().ok_or(Refusal::NotBuilt)?, &parts), &handle, given, wanted)
    }
}

fn operation(op: Option<AtomOp>) -> Lowered<Part> {
    Ok(match op {
        Some(AtomOp::Add) => Part::Add,
        Some(AtomOp::Min) => Part::Min,
        Some(AtomOp::Max) => Part::Max,
        Some(AtomOp::And) => Part::And,
        Some(AtomOp::Or) => Part::Or,
        _ => return Err(Refusal::NotBuilt),
    })
}

/// The size of an access.
fn size(bits: u32) -> Lowered<Part> {
    Ok(match bits {
        8 => Part::Bits8,
        16 => Part::Bits16,
        32 => Part::Bits32,
        64 => Part::Bits64,
        128 => Part::Bits128,
        _ => return Err(Refusal::NotBuilt),
    })
}
