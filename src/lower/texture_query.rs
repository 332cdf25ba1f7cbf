//! Lowers `txq`, `suq` and `istypep`.
//!
//! TXQ knows the sizes of a texture. For everything else the driver has a description of each
//! texture and surface in memory, by the index in its handle; how long one is, the driver tells
//! when it loads the kernel. Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::memory::address::{Place, Window};
use super::texture_handle::{SAMPLER_INDEX, SAMPLER_SHIFT, TEXTURE_INDEX};
use crate::ori::Operand;
use crate::ori::build::int::LUT_AND;
use crate::ori::mods::*;
use crate::ptx::ast::{self, AddressBase, OperandKind};
use crate::tables::elf::RelocRole;
use crate::tables::memory::Access;
use crate::tables::ptx::{Op as PtxOp, Query, ScalarType};
use crate::tables::{Feature, Mod, Op, Role, value};

/// Bytes from the address of the descriptions of textures to those of samplers and of surfaces, in
/// the bank.
const SAMPLERS: u32 = 0x8;
const SURFACES: u32 = 0x10;
/// Symbols of the bytes of a description.
const TEXTURE_BYTES: &str = ".nv.unified.texrefDescSize";
const SURFACE_BYTES: &str = ".nv.surfrefDescSize";
/// The same where samplers are apart from textures, and by how much the description of a texture is
/// shorter there than what it has of a sampler.
const OWN_TEXTURE_BYTES: &str = ".nv.independent.texrefDescSize";
const SAMPLER_BYTES: &str = ".nv.independent.samplerrefDescSize";
const OF_SAMPLER: u32 = 0x10;

impl Builder<'_> {
    /// `txq`, `txq.level` and `suq`
    pub fn query_image(&mut self, inst: &ast::Instruction) -> Lowered {
        if !self.has(Feature::TextureOpcodes) && !self.images_by_call() {
            return Err(Refusal::NotBuilt);
        }
        let OperandKind::Address(address) = &inst.operands[1].kind else { return Err(Refusal::NotBuilt) };
        let query = inst.mods.query.ok_or(Refusal::NotBuilt)?;
        match query {
            Query::Width | Query::Height | Query::Depth if self.images_by_call() => {
                self.query_by_call(inst, address, query)
            }
            Query::Width => self.query_size(inst, address, 1),
            Query::Height => self.query_size(inst, address, 2),
            Query::Depth => self.query_size(inst, address, 4),
            _ => self.query_description(inst, address, query),
        }
    }

    fn query_size(&mut self, inst: &ast::Instruction, address: &ast::Address, mask: i64) -> Lowered {
        let handle = self.handle(inst, address)?;
        let level = match inst.operands.get(2) {
            Some(level) => self.source_word(level, ScalarType::B32)?,
            None => Operand::zero(),
        };
        let own = self.register_of(&handle);
        let mut mods = vec![(Mod::Txq, value::txq::TEX_HEADER_DIMENSION)];
        mods.extend(own.is_some().then_some((Mod::BindlessB, value::bindless_b::B)));
        let (size, a) = (self.temp(), self.in_registers(own.into_iter().chain([level]).collect()));
        let mask = self.literal(mask);
        self.with_handle(&handle, |b, given| {
            let mut args = vec![(Role::D2, Operand::zero()), (Role::D, size), (Role::A, a)];
            args.extend(given);
            args.push((Role::Mask, mask));
            b.put(Op::TXQ, &mods, &args);
            Ok(())
        })?;
        let d = self.dest(&inst.operands[0])?;
        self.copy(d, size);
        Ok(())
    }

    /// Reads a word of the driver's description.
    fn query_description(&mut self, inst: &ast::Instruction, address: &ast::Address, query: Query) -> Lowered {
        let surface = inst.op == PtxOp::Suq;
        let apart = self.module.target.independent_textures && !surface;
        let (table, symbol, offset) = match in_sampler(query) {
            Some(offset) if apart => (SAMPLERS, SAMPLER_BYTES, Some(offset)),
            _ if apart => (0, OWN_TEXTURE_BYTES, in_texture(query).and_then(|offset| offset.checked_sub(OF_SAMPLER))),
            _ if surface => (SURFACES, SURFACE_BYTES, in_surface(query)),
            _ => (0, TEXTURE_BYTES, in_texture(query)),
        };
        let offset = offset.ok_or(Refusal::NotBuilt)?;
        let index = match symbol {
            SAMPLER_BYTES => self.sampler_index(inst, address)?,
            _ => self.texture_index(inst, address)?,
        };
        let (bytes, at, offset) = (self.linked(RelocRole::Shared, symbol, 0), self.temp(), self.imm(offset));
        self.imad(at, index, bytes, offset);
        let table = self.info.image_tables + table;
        let base = self.window_base(table);
        let place = self.temp_pair();
        let words = self.words(place);
        self.add_long(words, base, [at, Operand::zero()], false);
        let place = Place { window: Window::Global, base: place, offset: 0 };
        let order = self.order(Access::LdNc, inst, Window::Global)?;
        let d = self.dest(&inst.operands[0])?;
        self.load_word(d, SIZE_32, place, &order)?;
        self.after(&order);
        Ok(())
    }

    /// The index of a texture or surface.
    fn texture_index(&mut self, inst: &ast::Instruction, address: &ast::Address) -> Lowered<Operand> {
        let word = self.handle_word(inst, address)?;
        if self.has(Feature::TextureByUniform) {
            return Ok(word);
        }
        let (masked, mask) = (self.temp(), self.imm(TEXTURE_INDEX));
        self.lop3(masked, word, mask, Operand::zero(), LUT_AND);
        Ok(masked)
    }

    /// The index of a sampler: a reference has it above that of a texture, a handle alone.
    fn sampler_index(&mut self, inst: &ast::Instruction, address: &ast::Address) -> Lowered<Operand> {
        let AddressBase::Symbol(symbol) = address.base else {
            let word = self.handle_word(inst, address)?;
            if self.has(Feature::TextureByUniform) {
                return Ok(word);
            }
            let (masked, mask) = (self.temp(), self.imm(SAMPLER_INDEX));
            self.lop3(masked, word, mask, Operand::zero(), LUT_AND);
            return Ok(masked);
        };
        let at = self.reference(inst, &[(RelocRole::Sampler, symbol)])?;
        let word = self.word_at(at);
        if self.has(Feature::TextureByUniform) {
            return Ok(word);
        }
        let (index, amount) = (self.temp(), self.imm(SAMPLER_SHIFT));
        self.shf(&SHF_R_U32_HI, index, Operand::zero(), amount, word);
        Ok(index)
    }

    /// `istypep`: each kind has a bit in the high word of a handle.
    pub fn is_type(&mut self, inst: &ast::Instruction) -> Lowered {
        let bit = match inst.types[0] {
            ScalarType::Texref => TEXTURE_BIT,
            ScalarType::Samplerref => SAMPLER_BIT,
            ScalarType::Surfref => SURFACE_BIT,
            _ => return Err(Refusal::NotBuilt),
        };
        let a = self.source_pair(&inst.operands[1], ScalarType::B64)?;
        let (high, bit, masked) = (self.words(a)[1], self.imm(bit), self.temp());
        self.lop3(masked, high, bit, Operand::zero(), LUT_AND);
        let p = self.dest(&inst.operands[0])?;
        self.isetp(p, &[EQ, AND, U32], masked, bit);
        Ok(())
    }
}

/// Bits of the kinds in the high word of a handle.
pub(super) const TEXTURE_BIT: u32 = 0x2000_0000;
pub(super) const SAMPLER_BIT: u32 = 0x4000_0000;
pub(super) const SURFACE_BIT: u32 = 0x8000_0000;

/// Where the description of a texture has the answer.
fn in_texture(query: Query) -> Option<u32> {
    Some(match query {
        Query::ForceUnnormalizedCoords | Query::MemoryLayout => 0x0,
        Query::AddrMode0 => 0xc,
        Query::AddrMode1 => 0x10,
        Query::AddrMode2 => 0x14,
        Query::FilterMode => 0x18,
        Query::NormalizedCoords => 0x1c,
        Query::ChannelDataType => 0x20,
        Query::ChannelOrder => 0x24,
        Query::ArraySize => 0x28,
        Query::NumMipmapLevels => 0x2c,
        Query::NumSamples => 0x30,
        _ => return None,
    })
}

/// Where the description of a sampler has the answer.
fn in_sampler(query: Query) -> Option<u32> {
    Some(match query {
        Query::AddrMode0 => 0x0,
        Query::AddrMode1 => 0x4,
        Query::AddrMode2 => 0x8,
        Query::FilterMode => 0xc,
        Query::ForceUnnormalizedCoords => 0x10,
        _ => return None,
    })
}

/// Where the description of a surface has the answer.
fn in_surface(query: Query) -> Option<u32> {
    Some(match query {
        Query::ChannelDataType => 0xc,
        Query::ChannelOrder => 0x10,
        Query::MemoryLayout => 0x14,
        Query::ArraySize => 0x1c,
        _ => return None,
    })
}
