//! Lowers `tex` and `tld4` to TEX, TLD, TXD and TLD4.
//!
//! The first operand has the layer and the coordinates in adjacent registers, the second one what
//! else there is, in this order: the handle (where it is in a register), the level, the offsets,
//! the value to compare with. The last two components come in the second result. A one-dimensional
//! read by a float is one of a plane. Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::bulk::{later, later_with};
use super::image_call::is_of_volume;
use super::texture_handle::Handle;
use crate::arrays::Each;
use crate::ori::Operand;
use crate::ori::build::int::LUT_INSERT;
use crate::ori::mods::*;
use crate::ptx::ast::{self, OperandKind};
use crate::tables::ptx::{Component, Geometry, Op as PtxOp, Role as PtxRole, ScalarType};
use crate::tables::{Feature, Mod, Op, Role, value};

/// The largest number of a layer: the unit takes 16 bits of it.
const LAST_LAYER: u32 = 0xffff;
/// A level of detail below all, as bits of a float: kernels have no derivatives.
const LEAST_LEVEL: u32 = 0xc200_0000;
/// Bits of an offset, and those in which TLD4 has it.
const OFFSET_BITS: u32 = 4;
const GATHER_STEP: u32 = 8;
const GATHER_BITS: u32 = 6;
/// Where TXD has the offsets, in the register of the layer.
const GRADIENT_OFFSETS: u32 = 16;
const GRADIENT_FIELD: u32 = 0xfff_0000;
/// Most operands of the form that has half of them, rounded up, in the first one.
const MOST_SPREAD: usize = 4;

/// The negation of the first of three predicates.
const LUT_NOT_FIRST: u8 = 0x0f;

/// A read of a texture, before its handle is known.
pub(super) struct Read {
    op: Op,
    mods: Vec<M>,
    coordinates: Vec<Operand>,
    rest: Vec<Operand>,
    mask: u64,
    /// A predicate: some texel is not resident. Null if nothing asks.
    absent: Operand,
}

impl Builder<'_> {
    /// `tex`, `tex.base`, `tex.level`, `tex.grad`, `tld4`
    pub fn read_texture(&mut self, inst: &ast::Instruction) -> Lowered {
        let geometry = inst.mods.geometry.ok_or(Refusal::NotBuilt)?;
        self.refuse_reads(inst, geometry)?;
        if self.is_gradient_call(inst) {
            return self.where_guarded(|b| b.read_volume_at(inst));
        }
        if self.images_by_call() || self.reads_by_quads(inst) {
            return self.where_guarded(|b| b.read_texture_at(inst, geometry));
        }
        self.read_texture_at(inst, geometry)
    }

    /// A read by the driver, whose answer is whether all texels are resident.
    fn read_volume_at(&mut self, inst: &ast::Instruction) -> Lowered {
        let OperandKind::Address(address) = &inst.operands[1].kind else { return Err(Refusal::NotBuilt) };
        let (values, resident) = match &inst.operands[0].kind {
            OperandKind::Pair(pair) => (&pair.0, Some(self.dest(&pair.1)?)),
            _ => (&inst.operands[0], None),
        };
        let asks = if resident.is_some() { self.temp_pred() } else { Operand::NULL };
        self.give_results(inst, elements(values), asks, |b, mask, _| {
            let mut results = b.read_volume(inst, address, (mask, resident.is_some()))?;
            if let Some(resident) = resident {
                let word = results.remove(0);
                b.isetp(resident, &[NE, AND, U32], word, Operand::zero());
            }
            Ok(results)
        })
    }

    fn read_texture_at(&mut self, inst: &ast::Instruction, geometry: Geometry) -> Lowered {
        let OperandKind::Address(address) = &inst.operands[1].kind else { return Err(Refusal::NotBuilt) };
        let list = address.rest.last().ok_or(Refusal::NotBuilt)?;
        let handle = self.handle_with_sampler(inst, address)?;
        let (values, resident) = match &inst.operands[0].kind {
            OperandKind::Pair(pair) => (&pair.0, Some(self.dest(&pair.1)?)),
            _ => (&inst.operands[0], None),
        };
        let absent = if resident.is_some() { self.temp_pred() } else { Operand::NULL };
        self.give_results(inst, elements(values), absent, |b, mask, native| {
            if b.images_by_call() || b.reads_by_quads(inst) {
                return b.issue_call(inst, list, &handle, (mask, absent, native));
            }
            let mut read = Read { mask, absent, ..b.read(inst, geometry, list)? };
            read.mods.extend(native.then_some((Mod::TexHalf, value::tex_half::F16_RN)));
            b.issue_read(&handle, read, native)
        })?;
        if let Some(resident) = resident {
            self.plop3(resident, [absent, Operand::always(), Operand::always()], LUT_NOT_FIRST);
        }
        Ok(())
    }

    /// A read by a call or by squares of lanes, whose answer to the question for absent texels is a
    /// word.
    fn issue_call(
        &mut self,
        inst: &ast::Instruction,
        list: &ast::Operand,
        handle: &Handle,
        (mask, absent, halves): (u64, Operand, bool),
    ) -> Lowered<Vec<Operand>> {
        let asks = !absent.is_null();
        let mut results = match self.images_by_call() {
            true => self.read_by_call(inst, list, handle, (mask, asks))?,
            false => self.read_by_quads(inst, list, handle, (mask, asks, halves))?,
        };
        if asks {
            let word = results.remove(0);
            self.isetp(absent, &[NE, AND, U32], word, Operand::zero());
        }
        Ok(results)
    }

    /// Issues a read of the components of a mask, and gives its results to registers of PTX.
    fn give_results(
        &mut self,
        inst: &ast::Instruction,
        parts: &[ast::Operand],
        absent: Operand,
        issue: impl FnOnce(&mut Self, u64, bool) -> Lowered<Vec<Operand>>,
    ) -> Lowered {
        // Two halves lie in one part, and the unit may give them so.
        let (ty, pairs) = (inst.types[0], inst.types[0] == ScalarType::F16x2);
        let halves = pairs || ty == ScalarType::F16;
        let step = if pairs { 2 } else { 1 };
        let taken: Vec<(usize, &ast::Operand)> =
            parts.iter().enumerate().filter(|(_, part)| part.kind != OperandKind::Sink).collect();
        let mut mask = taken.iter().fold(0, |mask, (i, _)| mask | ((1 << step) - 1) << (step * i));
        if mask == 0 {
            if absent.is_null() {
                return Ok(());
            }
            mask = 1;
        }
        let native = halves && self.has(Feature::TextureHalves);
        let results = issue(self, mask, native)?;
        for (n, (_, part)) in taken.into_iter().enumerate() {
            let d = self.dest(part)?;
            match (halves, native) {
                (false, _) => self.copy(d, results[n]),
                (true, true) if pairs => self.copy(d, results[n]),
                (true, true) => self.extract(d, results[n / 2], 2 * (n % 2) as u32, ScalarType::B16),
                (true, false) if pairs => self.pack_halves(d, results[2 * n + 1], results[2 * n]),
                (true, false) => self.pack_halves(d, Operand::zero(), results[n]),
            }
        }
        Ok(())
    }

    /// Refuses by name what is not built.
    fn refuse_reads(&self, inst: &ast::Instruction, geometry: Geometry) -> Lowered {
        if !self.has(Feature::TextureOpcodes) && !self.images_by_call() {
            return Err(Refusal::NotBuilt);
        }
        if inst.op == PtxOp::TexGrad && inst.types[1] != ScalarType::F32 {
            return Err(later(inst, geometry.name()));
        }
        if inst.op == PtxOp::TexGrad && compares(inst) && !is_of_volume(inst) {
            return Err(later_with(inst, "a comparison"));
        }
        Ok(())
    }

    /// The opcode and the operands other than the handle.
    fn read(&mut self, inst: &ast::Instruction, geometry: Geometry, list: &ast::Operand) -> Lowered<Read> {
        let float = inst.types[1] == ScalarType::F32;
        let op = match (inst.op, float) {
            (PtxOp::Tld4, _) => Op::TLD4,
            (PtxOp::TexGrad, _) => Op::TXD,
            (_, true) => Op::TEX,
            _ => Op::TLD,
        };
        let mut coordinates = self.coordinates(geometry, elements(list), inst.types[1])?;
        let (mut mods, mut rest) = (Vec::new(), Vec::new());
        let shape = if geometry == Geometry::D1d && float { Geometry::D2d } else { geometry };
        coordinates.resize(shape.dimensions() + usize::from(shape.has_layers()), Operand::zero());
        if op == Op::TXD && shape.has_layers() {
            coordinates.rotate_left(1);
        }
        mods.push((Mod::Texdim, texdim(shape)));
        let given = |role: PtxRole| position(inst, role).map(|at| &inst.operands[at]);
        match op {
            Op::TLD4 => mods.push((Mod::Gather, gather(inst.mods.component))),
            Op::TXD => rest = self.gradients(inst, shape)?,
            Op::TLD if inst.op == PtxOp::TexLevel => {
                mods.extend([(Mod::TldLod, value::tld_lod::LL), (Mod::TldClamp, value::tld_clamp::CL)]);
                rest.push(self.source_word(&inst.operands[2], inst.types[1])?);
            }
            Op::TLD => mods.push((Mod::TldLod, value::tld_lod::LZ)),
            _ if inst.op == PtxOp::TexLevel => {
                let level = self.source_word(&inst.operands[2], inst.types[1])?;
                match self.constant(level) {
                    Some(0) => mods.push((Mod::TexLod, value::tex_lod::LZ)),
                    _ => {
                        mods.push((Mod::TexLod, value::tex_lod::LL));
                        rest.push(level);
                    }
                }
            }
            // A read without derivatives is one of the first level there.
            _ if self.has(Feature::TextureNdvAlone) => {}
            _ => {
                mods.push((Mod::TexLod, value::tex_lod::LL));
                rest.push(self.imm(LEAST_LEVEL));
            }
        }
        if let Some(offsets) = given(PtxRole::Texels) {
            mods.push((Mod::TexOffset, value::tex_offset::AOFFI));
            let word = self.offsets(op, elements(offsets))?;
            match op {
                Op::TXD => self.add_offsets(&mut coordinates, word, geometry),
                _ => rest.push(word),
            }
        }
        if geometry.is_multisample() {
            mods.push((Mod::Ms, value::ms::MS));
            rest.push(self.source_word(&elements(list)[0], ScalarType::U32)?);
        }
        if compares(inst) {
            mods.push((Mod::Dc, value::dc::DC));
            let last = &inst.operands[inst.operands.len() - 1];
            rest.push(self.source_word(last, ScalarType::F32)?);
        }
        Ok(Read { op, mods, coordinates, rest, mask: 0, absent: Operand::NULL })
    }

    /// The layer, clamped, and the coordinates; those of a cube are divided by the largest one.
    pub(super) fn coordinates(
        &mut self,
        geometry: Geometry,
        list: &[ast::Operand],
        ty: ScalarType,
    ) -> Lowered<Vec<Operand>> {
        let mut words = self.plain_coordinates(geometry, list, ty)?;
        if geometry.is_cube() {
            self.project(&mut words[usize::from(geometry.has_layers())..]);
        }
        Ok(words)
    }

    /// The layer, clamped, and the coordinates.
    pub(super) fn plain_coordinates(
        &mut self,
        geometry: Geometry,
        list: &[ast::Operand],
        ty: ScalarType,
    ) -> Lowered<Vec<Operand>> {
        let (layers, before) = (usize::from(geometry.has_layers()), usize::from(geometry.is_multisample()));
        let (list, mut words) = (&list[before..], Vec::new());
        for part in list.iter().take(layers) {
            let layer = self.source_word(part, ScalarType::U32)?;
            words.push(match self.constant(layer) {
                Some(number) => self.imm((number as u32).min(LAST_LAYER)),
                None => {
                    let (clamped, over, last) = (self.temp(), self.temp_pred(), self.imm(LAST_LAYER));
                    self.isetp(over, &[GT, AND, U32], layer, last);
                    self.select(clamped, layer, last, over.inverted());
                    clamped
                }
            });
        }
        for part in list.iter().skip(layers).take(geometry.dimensions()) {
            words.push(self.source_word(part, ty)?);
        }
        Ok(words)
    }

    /// Divides coordinates by the largest magnitude.
    fn project(&mut self, words: &mut [Operand]) {
        words.iter_mut().for_each(|word| *word = self.in_reg(*word));
        let mut largest = words[0].absolute();
        for word in &words[1..] {
            let more = self.temp();
            let args = [(Role::D, more), (Role::A, word.absolute()), (Role::B, largest), (Role::Pp, Operand::never())];
            self.put(Op::FMNMX, &[], &args);
            largest = more;
        }
        let inverse = self.temp();
        self.mufu(MUFU_RCP, inverse, largest);
        for word in words {
            let scaled = self.temp();
            self.fmul(&[], scaled, *word, inverse);
            *word = scaled;
        }
    }

    /// Derivatives by x and by y of each coordinate.
    fn gradients(&mut self, inst: &ast::Instruction, shape: Geometry) -> Lowered<Vec<Operand>> {
        let [by_x, by_y] = [2, 3].each(|at| elements(&inst.operands[at]));
        let mut words = Vec::new();
        for pair in by_x.iter().zip(by_y) {
            for part in [pair.0, pair.1] {
                words.push(self.source_word(part, ScalarType::F32)?);
            }
        }
        words.resize(2 * shape.dimensions(), Operand::zero());
        Ok(words)
    }

    /// Offsets in texels in one word.
    pub(super) fn offsets(&mut self, op: Op, list: &[ast::Operand]) -> Lowered<Operand> {
        let (step, bits) = if op == Op::TLD4 { (GATHER_STEP, GATHER_BITS) } else { (OFFSET_BITS, OFFSET_BITS) };
        let words = list.iter().take(3).map(|o| self.source_word(o, ScalarType::S32)).collect::<Lowered<Vec<_>>>()?;
        let constants = words.iter().map(|word| self.constant(*word)).collect::<Option<Vec<_>>>();
        let field = |i: usize| ((1u32 << bits) - 1) << (step * i as u32);
        if let Some(numbers) = constants {
            let one = |(i, n): (usize, &u64)| (*n as u32) << (step * i as u32) & field(i);
            return Ok(self.imm(numbers.iter().enumerate().map(one).fold(0, |sum, n| sum | n)));
        }
        let mut all = Operand::zero();
        for (i, word) in words.into_iter().enumerate() {
            let (moved, amount, joined, mask) =
                (self.temp(), self.imm(step * i as u32), self.temp(), self.imm(field(i)));
            let word = self.in_reg_unless_zero(word);
            self.shf(&SHF_L, moved, word, amount, Operand::zero());
            self.lop3(joined, all, mask, moved, LUT_INSERT);
            all = joined;
        }
        Ok(all)
    }

    /// TXD has the offsets in the upper half of the register of the layer, which comes last.
    fn add_offsets(&mut self, coordinates: &mut Vec<Operand>, word: Operand, geometry: Geometry) {
        let (moved, amount, joined) = (self.temp(), self.imm(GRADIENT_OFFSETS), self.temp());
        let word = self.in_reg(word);
        self.shf(&SHF_L, moved, word, amount, Operand::zero());
        let layer = if geometry.has_layers() { coordinates.pop() } else { None };
        let layer = self.in_reg_unless_zero(layer.unwrap_or(Operand::zero()));
        let mask = self.imm(GRADIENT_FIELD);
        self.lop3(joined, layer, mask, moved, LUT_INSERT);
        coordinates.push(joined);
    }

    /// Emits a read, whatever handle it has; returns the components that the mask selects, two in a
    /// word if they are halves.
    fn issue_read(&mut self, handle: &Handle, read: Read, halves: bool) -> Lowered<Vec<Operand>> {
        let count = read.mask.count_ones() as usize;
        let words = |components: usize| if halves { components.div_ceil(2) } else { components };
        let (first, second) = (words(count.min(2)), words(count.saturating_sub(2)));
        let [mut low, mut high] = [Operand::zero(); 2];
        let mut results = Vec::new();
        for (to, count) in [(&mut low, first), (&mut high, second)] {
            let (vector, regs) = self.temp_vector(count.max(1));
            if count > 0 {
                *to = if count == 1 { regs[0] } else { vector };
                results.extend(regs.into_iter().take(count));
            }
        }
        let Read { op, mut mods, coordinates, rest, mask, absent } = read;
        let in_register = self.register_of(handle);
        mods.extend(in_register.is_some().then_some((Mod::BindlessB, value::bindless_b::B)));
        let gradients = op == Op::TXD;
        let mut words = coordinates;
        let mut split = words.len();
        if gradients {
            words.splice(..0, in_register);
            split = words.len();
        } else {
            words.extend(in_register);
        }
        words.extend(rest);
        let spread = !self.has(Feature::TextureByUniform) && !gradients && words.len() <= MOST_SPREAD;
        mods.extend(spread.then_some((Mod::Scr, value::scr::SCR)));
        let rest = words.split_off(if spread { words.len().div_ceil(2) } else { split });
        let first = self.in_registers(words);
        let rest = if rest.is_empty() { Operand::zero() } else { self.in_registers(rest) };
        let mask = self.literal(mask as i64);
        self.with_handle(handle, |b, given| {
            let mut args = vec![(Role::D2, high), (Role::D, low), (Role::A, first), (Role::B, rest)];
            args.extend((!absent.is_null()).then_some((Role::Pu, absent)));
            args.extend(given);
            args.push((Role::Mask, mask));
            b.put(op, &mods, &args);
            Ok(())
        })?;
        Ok(results)
    }
}

/// Whether the last operand is a value to compare with.
pub(super) fn compares(inst: &ast::Instruction) -> bool {
    let args = inst.row.form().args;
    let floats = args.last().is_some_and(|arg| arg.role == PtxRole::Src);
    floats && (inst.op != PtxOp::TexLevel || args.len() > 3)
}

/// The number of the operand in a role.
pub(super) fn position(inst: &ast::Instruction, role: PtxRole) -> Option<usize> {
    inst.row.form().args.iter().position(|arg| arg.role == role)
}

/// The elements of a vector, or the operand itself.
pub(super) fn elements(operand: &ast::Operand) -> &[ast::Operand] {
    match &operand.kind {
        OperandKind::Vector(list) => list,
        _ => std::slice::from_ref(operand),
    }
}

fn gather(component: Option<Component>) -> u8 {
    match component {
        Some(Component::G) => value::gather::G,
        Some(Component::B) => value::gather::B,
        Some(Component::A) => value::gather::A,
        _ => value::gather::R,
    }
}

pub(super) fn texdim(shape: Geometry) -> u8 {
    match shape {
        Geometry::D1d => value::texdim::_1D,
        Geometry::D2d | Geometry::D2dms => value::texdim::_2D,
        Geometry::D3d => value::texdim::_3D,
        Geometry::A1d => value::texdim::ARRAY_1D,
        Geometry::A2d | Geometry::A2dms => value::texdim::ARRAY_2D,
        Geometry::Cube => value::texdim::CUBE,
        Geometry::Acube => value::texdim::ARRAY_CUBE,
    }
}
