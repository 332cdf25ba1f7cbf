//! Reads of textures by calls: `tex`, `tld4`, and the sizes of `txq` and `suq`.

use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::bulk::{later, later_with};
use crate::lower::texture::{compares, elements, position};
use crate::lower::texture_handle::Handle;
use crate::ori::Operand;
use crate::ori::build::int::LUT_INSERT;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::Op;
use crate::tables::images::{Argument, COMPONENTS, Call, Function, GATHERED, Part, Word};
use crate::tables::ptx::{Component, Geometry, Op as PtxOp, Query, Role as PtxRole, ScalarType};

/// Arguments by number.
pub(super) const AT: [Argument; 4] = [Argument::X0, Argument::X1, Argument::X2, Argument::X3];
const BY_X: [Argument; 2] = [Argument::Dx0, Argument::Dx1];
const BY_Y: [Argument; 2] = [Argument::Dy0, Argument::Dy1];
pub(super) const VALUES: [Argument; 4] = [Argument::V0, Argument::V1, Argument::V2, Argument::V3];
/// Where a read with gradients has the offsets, above the layer.
const SHIFTED: u32 = 16;
const SHIFTED_FIELD: u32 = 0xfff_0000;

impl Builder<'_> {
    /// A read: gives the components that a mask selects, and before them, if it is asked for, a
    /// word that is not zero where a texel is absent.
    pub(in crate::lower) fn read_by_call(
        &mut self,
        inst: &ast::Instruction,
        list: &ast::Operand,
        handle: &Handle,
        (mask, asks_absent): (u64, bool),
    ) -> Lowered<Vec<Operand>> {
        let geometry = inst.mods.geometry.ok_or(Refusal::NotBuilt)?;
        let floats = inst.types[1] == ScalarType::F32;
        let what = match inst.op {
            PtxOp::Tld4 => Call::Gather,
            PtxOp::TexGrad => Call::ReadGradients,
            _ => Call::ReadLevel,
        };
        if compares(inst) {
            return Err(later_with(inst, "a comparison"));
        }
        let shape = if geometry == Geometry::D1d && floats { Geometry::D2d } else { geometry };
        let function = Function::of(what, shape).ok_or_else(|| later(inst, geometry.name()))?;
        let mut parts: Vec<Part> = Vec::new();
        parts.extend(floats.then_some(Part::Floats));
        parts.extend(asks_absent.then_some(Part::Resident));
        parts.extend((0..4).filter(|i| mask >> i & 1 == 1).map(|i| COMPONENTS[i]));
        parts.extend(matches!(handle, Handle::Banks(..) | Handle::Pair(..)).then_some(Part::OwnSampler));
        parts.extend((what == Call::Gather).then(|| GATHERED[component(inst.mods.component)]));
        let coordinates = self.coordinates(geometry, elements(list), inst.types[1])?;
        let mut given: Vec<(Argument, Operand)> = AT.into_iter().zip(coordinates).collect();
        if inst.op == PtxOp::TexLevel {
            given.push((Argument::Level, self.source_word(&inst.operands[2], inst.types[1])?));
            parts.extend((!floats).then_some(Part::IntegerLevel));
        }
        if what == Call::ReadGradients {
            for (names, at) in [(BY_X, 2), (BY_Y, 3)] {
                for (name, part) in names.into_iter().zip(elements(&inst.operands[at])).take(shape.dimensions()) {
                    given.push((name, self.source_word(part, ScalarType::F32)?));
                }
            }
        }
        if let Some(at) = position(inst, PtxRole::Texels) {
            parts.push(Part::Offsets);
            let op = if what == Call::Gather { Op::TLD4 } else { Op::TEX };
            let offsets = self.offsets(op, elements(&inst.operands[at]))?;
            match what {
                Call::ReadGradients => self.shift_offsets(&mut given, offsets, geometry),
                _ => given.push((Argument::Offsets, offsets)),
            }
        }
        let wanted = VALUES[..mask.count_ones() as usize].iter().copied();
        let wanted: Vec<Argument> = asks_absent.then_some(Argument::Absent).into_iter().chain(wanted).collect();
        self.ask((function, Word::Read, &parts), handle, given, &wanted)
    }

    /// Calls with a word and with the words of a handle.
    pub(super) fn ask(
        &mut self,
        (function, word, parts): (&Function, Word, &[Part]),
        handle: &Handle,
        given: Vec<(Argument, Operand)>,
        wanted: &[Argument],
    ) -> Lowered<Vec<Operand>> {
        let word = self.imm(word.bits(parts).ok_or(Refusal::NotBuilt)?);
        let results: Vec<Operand> = wanted.iter().map(|_| self.temp()).collect();
        self.with_handle_words(handle, |b, [image, sampler]| {
            let handles = [(Argument::Word, word), (Argument::Image, image), (Argument::Sampler, sampler)];
            let all: Vec<(Argument, Operand)> = handles.into_iter().chain(given).collect();
            let came = b.call_image(function, &all, wanted)?;
            results.iter().zip(came).for_each(|(to, from)| b.copy(*to, from));
            Ok(())
        })?;
        Ok(results)
    }

    /// A read with gradients has the offsets above the layer, and both in a word of their own too.
    fn shift_offsets(&mut self, given: &mut Vec<(Argument, Operand)>, offsets: Operand, geometry: Geometry) {
        let (moved, amount) = (self.temp(), self.imm(SHIFTED));
        let offsets = self.in_reg(offsets);
        self.shf(&SHF_L, moved, offsets, amount, Operand::zero());
        let mut shifted = moved;
        if geometry.has_layers()
            && let Some((_, layer)) = given.iter_mut().find(|(argument, _)| *argument == Argument::X0)
        {
            let (joined, mask) = (self.temp(), self.imm(SHIFTED_FIELD));
            let below = self.in_reg_unless_zero(*layer);
            self.lop3(joined, below, mask, moved, LUT_INSERT);
            (*layer, shifted) = (joined, joined);
        }
        given.push((Argument::Shifted, shifted));
    }

    /// `txq`, `txq.level` and `suq` of a size
    pub(in crate::lower) fn query_by_call(
        &mut self,
        inst: &ast::Instruction,
        address: &ast::Address,
        query: Query,
    ) -> Lowered {
        self.where_guarded(|b| {
            let part = match query {
                Query::Width => Part::Width,
                Query::Height => Part::Height,
                _ => Part::Depth,
            };
            let mut parts = vec![part];
            parts.extend(b.module.target.independent_textures.then_some(Part::OwnSampler));
            let handle = b.handle(inst, address)?;
            let level = match inst.operands.get(2) {
                Some(level) => b.source_word(level, ScalarType::B32)?,
                None => Operand::zero(),
            };
            let function = Function::of(Call::Query, Geometry::D2d).ok_or(Refusal::NotBuilt)?;
            let given = vec![(Argument::Level, level)];
            let size = b.ask((function, Word::Query, &parts), &handle, given, &[Argument::V0])?;
            let d = b.dest(&inst.operands[0])?;
            b.copy(d, size[0]);
            Ok(())
        })
    }
}

/// The number of a component.
fn component(component: Option<Component>) -> usize {
    match component {
        Some(Component::G) => 1,
        Some(Component::B) => 2,
        Some(Component::A) => 3,
        _ => 0,
    }
}
