//! `tex.grad` of three dimensions and of cubes where there is neither an opcode nor a function of
//! the driver for it: the lanes of a square read for one of them after the other.
//!
//! The operands go to the registers of TEX_QUADS, which stays one operation until everything has
//! its place. Source: ptxas 13.0.88 output.

use super::builder::{Builder, Lowered, Refusal};
use super::bulk::later_with;
use super::image_call::is_of_volume;
use super::texture::{compares, elements, position, texdim};
use super::texture_handle::Handle;
use crate::ori::Operand;
use crate::ori::quads::*;
use crate::ptx::ast::{self, Statement};
use crate::tables::ptx::{Geometry, Op as PtxOp, Role as PtxRole, ScalarType};
use crate::tables::{Feature, Mod, Op, Role, value};

impl Builder<'_> {
    /// Whether the lanes of a square do this read together.
    pub(super) fn reads_by_quads(&self, inst: &ast::Instruction) -> bool {
        is_of_volume(inst) && self.has(Feature::TextureOpcodes) && !self.has(Feature::VolumeGradientsByCall)
    }

    /// Refuses by name where lanes elsewhere may have no room below their stack pointers, and where
    /// there are too few registers.
    fn refuse_quads(&self, inst: &ast::Instruction) -> Lowered {
        let has = |function: &ast::Function, op: PtxOp| {
            function.body.iter().flatten().any(|s| matches!(s, Statement::Instruction(inst) if inst.op == op))
        };
        if self.globals.object && (!self.source.is_entry || has(self.source, PtxOp::Call)) {
            return Err(later_with(inst, "calls in an object"));
        }
        // What one kernel does is nothing to the lanes of another one.
        let with_entries = !self.source.is_entry;
        let mut others = self.module.functions.values().filter(|other| with_entries || !other.is_entry);
        if has(self.source, PtxOp::Alloca) || others.any(|other| has(other, PtxOp::Alloca)) {
            return Err(later_with(inst, "'alloca' in the program"));
        }
        if self.source.directives.max_registers.is_some_and(|most| most < LEAST) {
            return Err(later_with(inst, "so few registers"));
        }
        Ok(())
    }

    /// Reads the components of a mask; returns their words, and before them one that is not zero
    /// where a texel is absent, if that is asked for.
    pub(super) fn read_by_quads(
        &mut self,
        inst: &ast::Instruction,
        list: &ast::Operand,
        handle: &Handle,
        (mask, asks, halves): (u64, bool, bool),
    ) -> Lowered<Vec<Operand>> {
        self.refuse_quads(inst)?;
        let geometry = inst.mods.geometry.ok_or(Refusal::NotBuilt)?;
        let mut mods = vec![(Mod::Texdim, texdim(geometry))];
        let mut given = self.quad_operands(inst, geometry, list, handle)?;
        if let Some(at) = position(inst, PtxRole::Texels) {
            mods.push((Mod::TexOffset, value::tex_offset::AOFFI));
            given.push((MORE, self.offsets(Op::TEX, elements(&inst.operands[at]))?));
        } else if compares(inst) {
            mods.push((Mod::Dc, value::dc::DC));
            given.push((MORE, self.source_word(&inst.operands[inst.operands.len() - 1], ScalarType::F32)?));
        }
        mods.extend(halves.then_some((Mod::TexHalf, value::tex_half::F16_RN)));
        self.stack_pointer();
        self.f.attributes_mut().below_stack = BYTES;
        let mut uses = Vec::new();
        for (number, word) in given {
            let d = self.fixed(number);
            self.copy(d, word);
            uses.push(d);
        }
        let components = mask.count_ones() as u16;
        let words = if halves { components.div_ceil(2) } else { components };
        let numbers = asks.then_some(ABSENT).into_iter().chain(RESULTS..RESULTS + words);
        let defs: Vec<Operand> = numbers.map(|number| self.fixed(number)).collect();
        let mask = self.literal(mask as i64);
        let read = self.put(Op::TEX_QUADS, &mods, &[(Role::Mask, mask)]);
        self.f.set_extras(read, &uses, &defs);
        let results = defs.into_iter().map(|from| {
            let to = self.temp();
            self.copy(to, from);
            to
        });
        Ok(results.collect())
    }

    /// The layer, the coordinates, their derivatives and the handle, with their registers.
    fn quad_operands(
        &mut self,
        inst: &ast::Instruction,
        geometry: Geometry,
        list: &ast::Operand,
        handle: &Handle,
    ) -> Lowered<Vec<(u16, Operand)>> {
        let coordinates = self.plain_coordinates(geometry, elements(list), ScalarType::F32)?;
        let mut given: Vec<(u16, Operand)> = (COORDINATES..).zip(coordinates).collect();
        for (first, operand) in [(BY_X, &inst.operands[2]), (BY_Y, &inst.operands[3])] {
            for (number, part) in (first..).zip(elements(operand)).take(geometry.dimensions()) {
                given.push((number, self.source_word(part, ScalarType::F32)?));
            }
        }
        let handle = match *handle {
            Handle::Bank(at) => self.word_at(at),
            Handle::Register(word) => word,
            _ => return Err(Refusal::NotBuilt),
        };
        given.push((HANDLE, handle));
        Ok(given)
    }
}
