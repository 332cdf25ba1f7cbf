//! `tex.grad` of three dimensions and of cubes: a call of a function of the driver, on targets
//! whose units take gradients of planes alone.
//!
//! The function has whole handles, perhaps others in each lane, and gives all components back.
//! Source: ptxas 13.0.88 output.

use super::read::{AT, VALUES};
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::texture::{compares, elements, position};
use crate::lower::texture_query::{SAMPLER_BIT, TEXTURE_BIT};
use crate::ori::Operand;
use crate::ptx::ast::{self, AddressBase, OperandKind};
use crate::tables::Feature;
use crate::tables::elf::RelocRole;
use crate::tables::images::{Argument, Call, Function};
use crate::tables::ptx::{Geometry, Op as PtxOp, Role as PtxRole, ScalarType};

/// Dimensions from which on a gradient is one of a volume; cubes have as many.
const VOLUME: usize = 3;
const BY_X: [Argument; 3] = [Argument::Dx0, Argument::Dx1, Argument::Dx2];
const BY_Y: [Argument; 3] = [Argument::Dy0, Argument::Dy1, Argument::Dy2];
const OFFSETS: [Argument; 3] = [Argument::Offset0, Argument::Offset1, Argument::Offset2];

/// Whether an instruction reads with gradients of a volume or a cube.
pub(in crate::lower) fn is_of_volume(inst: &ast::Instruction) -> bool {
    inst.op == PtxOp::TexGrad && inst.mods.geometry.is_some_and(|geometry| geometry.dimensions() >= VOLUME)
}

impl Builder<'_> {
    /// Whether the driver does this read.
    pub(in crate::lower) fn is_gradient_call(&self, inst: &ast::Instruction) -> bool {
        self.has(Feature::VolumeGradientsByCall) && is_of_volume(inst)
    }

    /// Reads all components as words: those that a mask selects, and before them, if it is asked
    /// for, a word that is zero where a texel is absent.
    pub(in crate::lower) fn read_volume(
        &mut self,
        inst: &ast::Instruction,
        address: &ast::Address,
        (mask, asks_present): (u64, bool),
    ) -> Lowered<Vec<Operand>> {
        let geometry = inst.mods.geometry.ok_or(Refusal::NotBuilt)?;
        let list = address.rest.last().ok_or(Refusal::NotBuilt)?;
        let mut given = self.whole_handles(inst, address)?;
        given.extend(self.places(geometry, list)?);
        for (names, operand) in [(BY_X, &inst.operands[2]), (BY_Y, &inst.operands[3])] {
            given.extend(self.named(names, elements(operand), ScalarType::F32)?);
        }
        let offsets = position(inst, PtxRole::Texels);
        if let Some(at) = offsets {
            given.extend(self.named(OFFSETS, elements(&inst.operands[at]), ScalarType::S32)?);
        }
        if compares(inst) {
            let last = &inst.operands[inst.operands.len() - 1];
            given.push((Argument::Compare, self.source_word(last, ScalarType::F32)?));
        }
        let optional = [
            (Argument::Sampler, address.rest.len() > 1),
            (Argument::Offset0, offsets.is_some()),
            (Argument::Compare, compares(inst)),
            (Argument::Present, asks_present),
        ];
        // Halves are rounded from floats, as they are where there is an opcode.
        let element = match inst.types[0] {
            ScalarType::F16 | ScalarType::F16x2 => ScalarType::F32,
            ty => ty,
        };
        let function = Function::with(Call::VolumeGradients, geometry, element, &optional);
        let values = (0..4).filter(|i| mask >> i & 1 == 1).map(|i: usize| VALUES[i]);
        let wanted: Vec<Argument> = asks_present.then_some(Argument::Present).into_iter().chain(values).collect();
        self.call_image(function.ok_or(Refusal::NotBuilt)?, &given, &wanted)
    }

    /// The words of the handles of a texture and of a sampler, if one is named.
    fn whole_handles(&mut self, inst: &ast::Instruction, address: &ast::Address) -> Lowered<Vec<(Argument, Operand)>> {
        let sampler = self.sampler_operand(inst, address)?;
        let mut words = match address.base {
            AddressBase::Register(register) => {
                let whole = self.register(register)[0];
                self.words(whole).to_vec()
            }
            AddressBase::Symbol(symbol) => {
                let at = self.reference(inst, &[(RelocRole::Texture, symbol)])?;
                vec![self.word_at(at), self.imm(TEXTURE_BIT)]
            }
            AddressBase::Absolute => return Err(Refusal::NotBuilt),
        };
        match sampler.map(|sampler| &sampler.kind) {
            Some(OperandKind::Symbol { symbol, .. }) => {
                let at = self.reference(inst, &[(RelocRole::Sampler, *symbol)])?;
                words.extend([self.word_at(at), self.imm(SAMPLER_BIT)]);
            }
            Some(OperandKind::Register(used)) => {
                let whole = self.register(used.register)[0];
                words.extend(self.words(whole));
            }
            Some(_) => return Err(Refusal::NotBuilt),
            None => {}
        }
        let names = [Argument::Image, Argument::ImageHigh, Argument::Sampler, Argument::SamplerHigh];
        Ok(names.into_iter().zip(words).collect())
    }

    /// The layer and the coordinates as they are given.
    fn places(&mut self, geometry: Geometry, list: &ast::Operand) -> Lowered<Vec<(Argument, Operand)>> {
        let layers = usize::from(geometry.has_layers());
        let mut places = Vec::new();
        for (n, (name, part)) in AT.into_iter().zip(elements(list)).take(layers + geometry.dimensions()).enumerate() {
            let ty = if n < layers { ScalarType::U32 } else { ScalarType::F32 };
            places.push((name, self.source_word(part, ty)?));
        }
        Ok(places)
    }

    fn named(
        &mut self,
        names: [Argument; VOLUME],
        list: &[ast::Operand],
        ty: ScalarType,
    ) -> Lowered<Vec<(Argument, Operand)>> {
        names.into_iter().zip(list).map(|(name, part)| Ok((name, self.source_word(part, ty)?))).collect()
    }
}
