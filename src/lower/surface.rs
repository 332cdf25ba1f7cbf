//! Lowers `suld`, `sust` and `sured` to SULD, SUST and SURED.
//!
//! The first operand has the coordinates in adjacent registers, and then the layer. In the forms by
//! bytes the first coordinate counts bytes. Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::bulk::operation;
use super::texture::elements;
use super::texture_handle::Handle;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast::{self, OperandKind};
use crate::tables::ptx::{AtomOp, CacheOp, Geometry, Op as PtxOp, ScalarType, SurfaceClamp};
use crate::tables::{Feature, Mod, Op, Role, value};

/// Where an access goes.
struct Place {
    handle: Handle,
    coordinates: Operand,
    mods: Vec<M>,
}

impl Builder<'_> {
    /// `suld.b`
    pub fn load_surface(&mut self, inst: &ast::Instruction) -> Lowered {
        if self.images_by_call() {
            return self.load_surface_by_call(inst);
        }
        let mut place = self.surface(inst, &inst.operands[1])?;
        let (parts, ty) = (elements(&inst.operands[0]), inst.types[0]);
        let bits = parts.len() as u32 * ty.bits();
        place.mods.push(size(bits)?);
        let (vector, regs) = self.temp_vector((bits / 32).max(1) as usize);
        let d = if regs.len() == 1 { regs[0] } else { vector };
        self.access_surface(Op::SULD, place, &[(Role::D, d)])?;
        self.scatter_parts(parts, ty, &regs)
    }

    /// `sust.b` and `sust.p`
    pub fn store_surface(&mut self, inst: &ast::Instruction) -> Lowered {
        if self.images_by_call() {
            return self.store_surface_by_call(inst);
        }
        let mut place = self.surface(inst, &inst.operands[0])?;
        let (parts, ty) = (elements(&inst.operands[1]), inst.types[0]);
        if inst.op == PtxOp::SustP {
            let mask = match parts.len() {
                1 => value::su_mask::R,
                2 => value::su_mask::RG,
                _ => value::su_mask::NONE,
            };
            place.mods.extend([(Mod::SuForm, value::su_form::P), (Mod::SuMask, mask)]);
        } else {
            place.mods.push(size(parts.len() as u32 * ty.bits())?);
        }
        let words = self.gather(parts, ty)?;
        let value = self.side_by_side(words);
        self.access_surface(Op::SUST, place, &[(Role::B, value)])
    }

    /// `sured.b` and `sured.p`
    pub fn reduce_surface(&mut self, inst: &ast::Instruction) -> Lowered {
        if self.images_by_call() {
            return self.reduce_surface_by_call(inst);
        }
        let mut place = self.surface(inst, &inst.operands[0])?;
        place.mods.push((Mod::TmaOp, operation(inst.mods.atom_op)?));
        let single = inst.op == PtxOp::SuredP;
        let ty = match inst.types[0] {
            ScalarType::U32 => value::su_type::NONE,
            ScalarType::S32 => value::su_type::S32,
            ScalarType::U64 => value::su_type::U64,
            ScalarType::S64 => value::su_type::S64,
            ScalarType::B32 if single && orders(inst) => value::su_type::SD32,
            ScalarType::B64 if single => value::su_type::SD64,
            _ => value::su_type::NONE,
        };
        place.mods.push((Mod::SuType, ty));
        let operand = &inst.operands[1];
        let value = match inst.types[0].bits() {
            64 => self.source_pair(operand, inst.types[0])?,
            _ => self.source_reg(operand, inst.types[0])?,
        };
        self.access_surface(Op::SURED, place, &[(Role::B, value)])
    }

    fn surface(&mut self, inst: &ast::Instruction, operand: &ast::Operand) -> Lowered<Place> {
        if !self.has(Feature::TextureOpcodes) {
            return Err(Refusal::NotBuilt);
        }
        let geometry = inst.mods.geometry.ok_or(Refusal::NotBuilt)?;
        let OperandKind::Address(address) = &operand.kind else { return Err(Refusal::NotBuilt) };
        let [list] = &address.rest[..] else { return Err(Refusal::NotBuilt) };
        let layers = usize::from(geometry.has_layers());
        let mut words = Vec::new();
        for part in elements(list).iter().take(layers + geometry.dimensions()) {
            words.push(self.source_word(part, ScalarType::S32)?);
        }
        words.rotate_left(layers);
        let handle = self.handle(inst, address)?;
        let coordinates = self.in_registers(words);
        let mods = self.surface_mods(inst, geometry)?;
        Ok(Place { handle, coordinates, mods })
    }

    fn surface_mods(&self, inst: &ast::Instruction, geometry: Geometry) -> Lowered<Vec<M>> {
        let dim = match geometry {
            Geometry::D1d => value::su_dim::_1D,
            Geometry::D2d => value::su_dim::_2D,
            Geometry::D3d => value::su_dim::_3D,
            Geometry::A1d => value::su_dim::_1D_ARRAY,
            Geometry::A2d => value::su_dim::_2D_ARRAY,
            _ => return Err(Refusal::NotBuilt),
        };
        let clamp = match inst.mods.surface_clamp.ok_or(Refusal::NotBuilt)? {
            SurfaceClamp::Trap => value::su_clamp::TRAP,
            SurfaceClamp::Clamp => value::su_clamp::NONE,
            SurfaceClamp::Zero => value::su_clamp::IGN,
        };
        let mut mods = vec![(Mod::SuDim, dim), (Mod::SuClamp, clamp)];
        let by_bytes = matches!(inst.op, PtxOp::SuldB | PtxOp::SustB | PtxOp::SuredB);
        mods.extend(by_bytes.then_some((Mod::SuBa, value::su_ba::BA)));
        let reduces = matches!(inst.op, PtxOp::SuredB | PtxOp::SuredP);
        let cache = inst.mods.cache_op;
        let far = reduces || matches!(cache, Some(CacheOp::Cg | CacheOp::Cv | CacheOp::Wt));
        mods.extend((cache == Some(CacheOp::Cs)).then_some((Mod::Evict, value::evict::EF)));
        if self.has(Feature::SurfaceScope) {
            let scope = if far { value::su_scope::SYS } else { value::su_scope::CTA };
            mods.extend([(Mod::SuOrder, value::su_order::STRONG), (Mod::SuScope, scope)]);
        } else {
            mods.push((Mod::Mem, if far { value::mem::STRONG_SYS } else { value::mem::STRONG_CTA }));
        }
        Ok(mods)
    }

    /// Emits an access, which stays in its order.
    fn access_surface(&mut self, op: Op, place: Place, args: &[(Role, Operand)]) -> Lowered {
        let Place { handle, coordinates, mods } = place;
        let word = self.register_of(&handle);
        let pair = word.map(|word| self.pair_of([word, Operand::zero()]));
        self.with_handle(&handle, |b, given| {
            let mut all = args.to_vec();
            all.push((Role::A, coordinates));
            all.extend(pair.map(|pair| (Role::C, pair)));
            all.extend(given.into_iter().map(|(role, value)| match role {
                Role::Ub => (role, b.words(value)[0]),
                _ => (role, value),
            }));
            let inst = b.put(op, &mods, &all);
            b.f[inst].ordered = true;
            Ok(())
        })
    }
}

/// Whether a reduction is a minimum or a maximum.
pub(super) fn orders(inst: &ast::Instruction) -> bool {
    matches!(inst.mods.atom_op, Some(AtomOp::Min | AtomOp::Max))
}

/// The modifier of so many bits.
fn size(bits: u32) -> Lowered<M> {
    Ok(match bits {
        8 => SIZE_U8,
        16 => SIZE_U16,
        32 => SIZE_32,
        64 => SIZE_64,
        128 => SIZE_128,
        _ => return Err(Refusal::NotBuilt),
    })
}
