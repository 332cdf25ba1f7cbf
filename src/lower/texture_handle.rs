//! The handle of a texture or surface, and where instructions find it.
//!
//! A handle that is a parameter of the kernel is named by its place in the constant bank, or loaded
//! once into uniform registers that nothing else uses; the unit takes the low word, and a zero
//! beside it. Any other handle may differ from lane to lane: it is in a register where the unit
//! takes it there, and else each lane acts alone. Source: ptxas 13.0.88 output.

use super::Reference;
use super::builder::{Builder, Lowered, Refusal};
use super::bulk::later_with;
use super::memory::address::Window;
use super::texture_query::{SAMPLER_BIT, SURFACE_BIT, TEXTURE_BIT};
use crate::arrays::Each;
use crate::ori::build::int::LUT_OR;
use crate::ori::mods::*;
use crate::ori::{File, Operand};
use crate::ptx::ast::{self, AddressBase, OperandKind, RegId, Statement, SymbolId};
use crate::sorted::SortedMap;
use crate::tables::elf::RelocRole;
use crate::tables::ptx::{Op as PtxOp, Role as PtxRole, ScalarType, Space};
use crate::tables::{Feature, Op, Role};

/// Uniform registers of handles that are parameters, as many pairs as there are in them, and of any
/// other handle.
const FIRST_KEPT: u16 = 24;
const KEPT: usize = 8;
const OTHER: [u16; 2] = [40, 41];
/// The bank of the parameters, and bytes of the units that an instruction counts in.
const BANK: i64 = 0;
const UNIT: i64 = 4;

/// Where a handle is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handle {
    /// At this offset in the bank of the parameters.
    Bank(i64),
    /// In uniform registers all along the kernel.
    Kept(Operand),
    /// In a register, perhaps another number in each lane: the low word.
    Register(Operand),
    /// A texture and a sampler, each at an offset there.
    Banks(i64, i64),
    /// A texture and a sampler, each in a register: the low words.
    Pair(Operand, Operand),
}

/// The first operand where the second one has ones, and elsewhere the third one.
const LUT_FIRST_INSIDE: u8 = 0xe2;

/// Handles that are parameters of a kernel.
#[derive(Default)]
pub struct Handles {
    /// Registers that are written once, by a load of a parameter: the operand of that load. `None`
    /// before something asks.
    loads: Option<SortedMap<RegId, ast::Operand>>,
    /// Uniform registers by the offsets of a texture and of a sampler in the bank.
    kept: Vec<((i64, Option<i64>), Operand)>,
    /// Whether the function calls others, which do not keep uniform registers.
    calls: bool,
    /// Words that the driver fills with what references name.
    slots: Vec<(i64, Vec<(RelocRole, String)>)>,
}

impl Handles {
    /// What references name, in the order of the words.
    pub fn take_references(&mut self) -> Vec<Reference> {
        let slots = std::mem::take(&mut self.slots).into_iter();
        let one = |(at, named): (i64, Vec<(RelocRole, String)>)| {
            named.into_iter().map(move |(role, name)| Reference { role, name, at: at as u32 })
        };
        slots.flat_map(one).collect()
    }
}

/// Bits of the index of a texture in its handle.
pub(super) const TEXTURE_INDEX: u32 = 0xf_ffff;
/// The bit that the handle has which is the address of a reference.
const BY_ADDRESS: u32 = 0x8000_0000;
/// Bits of the index of a sampler, and where they are beside a texture.
pub(super) const SAMPLER_INDEX: u32 = 0xfff;
pub(super) const SAMPLER_SHIFT: u32 = 20;

impl Builder<'_> {
    /// The operand that names a sampler, if one does.
    pub(super) fn sampler_operand<'a>(
        &self,
        inst: &ast::Instruction,
        address: &'a ast::Address,
    ) -> Lowered<Option<&'a ast::Operand>> {
        let [sampler, _] = &address.rest[..] else { return Ok(None) };
        if !self.module.target.independent_textures {
            return Err(later_with(inst, "a sampler in unified mode"));
        }
        Ok(Some(sampler))
    }

    /// The handle of a texture, and of a sampler if one is named.
    pub(super) fn handle_with_sampler(&mut self, inst: &ast::Instruction, address: &ast::Address) -> Lowered<Handle> {
        let Some(sampler) = self.sampler_operand(inst, address)? else { return self.handle(inst, address) };
        let sampler = &sampler.kind;
        let by_uniform = self.has(Feature::TextureByUniform);
        let known = match (address.base, sampler) {
            (AddressBase::Symbol(texture), OperandKind::Symbol { symbol: sampler, .. }) => {
                let [texture, sampler] = [(RelocRole::Texture, texture), (RelocRole::Sampler, *sampler)];
                if !by_uniform {
                    let at = self.reference(inst, &[texture, sampler])?;
                    return Ok(Handle::Bank(at));
                }
                [Some(self.reference(inst, &[texture])?), Some(self.reference(inst, &[sampler])?)]
            }
            (AddressBase::Register(texture), OperandKind::Register(sampler)) => {
                [self.parameter_of(texture)?, self.parameter_of(sampler.register)?]
            }
            _ => return Err(later_with(inst, "a reference by name beside a handle")),
        };
        if let [Some(texture), Some(sampler)] = known
            && self.images_by_call()
        {
            return Ok(Handle::Banks(texture, sampler));
        }
        if let [Some(texture), Some(sampler)] = known
            && by_uniform
            && let Some(kept) = self.kept_handle(texture, Some(sampler))
        {
            return Ok(Handle::Kept(kept));
        }
        let (AddressBase::Register(texture), OperandKind::Register(sampler)) = (address.base, sampler) else {
            let [texture, sampler] = known.each(|at| self.word_at(at.unwrap_or_default()));
            return Ok(Handle::Pair(texture, sampler));
        };
        let [texture, sampler] = [texture, sampler.register].each(|register| {
            let whole = self.register(register)[0];
            self.words(whole)[0]
        });
        if by_uniform {
            return Ok(Handle::Pair(texture, sampler));
        }
        let (moved, amount, joined, mask) =
            (self.temp(), self.imm(SAMPLER_SHIFT), self.temp(), self.imm(TEXTURE_INDEX));
        self.shf(&SHF_L, moved, sampler, amount, Operand::zero());
        self.lop3(joined, texture, mask, moved, LUT_FIRST_INSIDE);
        Ok(Handle::Register(joined))
    }

    /// The word behind the parameters that the driver fills with what references name: one that it
    /// has already, or a new one. Source: ptxas 13.0.88 has them in the order of first use.
    pub(super) fn reference(&mut self, inst: &ast::Instruction, named: &[(RelocRole, SymbolId)]) -> Lowered<i64> {
        if !self.source.is_entry || self.globals.object {
            return Err(later_with(inst, "a reference by name"));
        }
        let is_global = |(_, id): &(RelocRole, SymbolId)| match &self.module.symbols[*id].kind {
            ast::SymbolKind::Variable(variable) => variable.space == Space::Global,
            _ => false,
        };
        if !named.iter().all(is_global) {
            return Err(later_with(inst, "a reference that is a parameter"));
        }
        let name = |id: SymbolId| self.module.symbols[id].name.clone();
        let named: Vec<(RelocRole, String)> = named.iter().map(|(role, id)| (*role, name(*id))).collect();
        if let Some((at, _)) = self.handles.slots.iter().find(|(_, other)| *other == named) {
            return Ok(*at);
        }
        let bytes = match self.has(Feature::TextureByUniform) {
            true => most_parameters(self.module).max(self.layout.param_bytes),
            false => self.layout.param_bytes,
        };
        let first = (self.layout.param_base + bytes).next_multiple_of(UNIT as u32);
        let at = i64::from(first) + UNIT * self.handles.slots.len() as i64;
        self.handles.slots.push((at, named));
        Ok(at)
    }

    pub(super) fn word_at(&mut self, at: i64) -> Operand {
        let word = self.temp();
        self.put(Op::LDC, &[], &[(Role::D, word), (Role::C, Operand::constant(BANK as u8, at as u16))]);
        word
    }

    /// What a symbol refers to, if it is a reference.
    pub fn role_of_reference(&self, id: SymbolId) -> Option<RelocRole> {
        let ast::SymbolKind::Variable(variable) = &self.module.symbols[id].kind else { return None };
        match variable.ty {
            ScalarType::Texref => Some(RelocRole::Texture),
            ScalarType::Samplerref => Some(RelocRole::Sampler),
            ScalarType::Surfref => Some(RelocRole::Surface),
            _ => None,
        }
    }

    /// `mov` of the address of a reference: a handle, the high word of which says of what.
    pub fn handle_of_reference(&mut self, inst: &ast::Instruction, id: SymbolId) -> Lowered {
        let role = self.role_of_reference(id).ok_or(Refusal::NotBuilt)?;
        let at = self.reference(inst, &[(role, id)])?;
        let mut word = self.word_at(at);
        let kind = match role {
            RelocRole::Sampler => SAMPLER_BIT,
            RelocRole::Surface => SURFACE_BIT,
            _ => TEXTURE_BIT,
        };
        if !self.has(Feature::TextureByUniform) {
            if role == RelocRole::Sampler {
                let (index, amount) = (self.temp(), self.imm(SAMPLER_SHIFT));
                self.shf(&SHF_R_U32_HI, index, Operand::zero(), amount, word);
                word = index;
            }
            let (marked, mark) = (self.temp(), self.imm(BY_ADDRESS));
            self.lop3(marked, word, mark, Operand::zero(), LUT_OR);
            word = marked;
        }
        let high = self.imm(kind);
        let (d, pair) = (self.dest(&inst.operands[0])?, self.pair_of([word, high]));
        self.copy_value(d, pair);
        Ok(())
    }

    /// The low word of the handle of an instruction, in a register.
    pub(super) fn handle_word(&mut self, inst: &ast::Instruction, address: &ast::Address) -> Lowered<Operand> {
        match address.base {
            AddressBase::Register(register) => {
                let whole = self.register(register)[0];
                Ok(self.words(whole)[0])
            }
            AddressBase::Symbol(symbol) => {
                let at = self.reference(inst, &[(role_of(inst), symbol)])?;
                Ok(self.word_at(at))
            }
            AddressBase::Absolute => Err(Refusal::NotBuilt),
        }
    }

    /// The handle of an instruction.
    pub(super) fn handle(&mut self, inst: &ast::Instruction, address: &ast::Address) -> Lowered<Handle> {
        let known = match address.base {
            AddressBase::Register(register) => self.parameter_of(register)?,
            AddressBase::Symbol(symbol) => Some(self.reference(inst, &[(role_of(inst), symbol)])?),
            AddressBase::Absolute => return Err(Refusal::NotBuilt),
        };
        if let Some(at) = known {
            if !self.has(Feature::TextureByUniform) || self.images_by_call() {
                return Ok(Handle::Bank(at));
            }
            if let Some(kept) = self.kept_handle(at, None) {
                return Ok(Handle::Kept(kept));
            }
        }
        Ok(Handle::Register(self.handle_word(inst, address)?))
    }

    /// Uniform registers that have a texture and a sampler, or a zero, all along the kernel; `None`
    /// if there are none to spare.
    fn kept_handle(&mut self, texture: i64, sampler: Option<i64>) -> Option<Operand> {
        self.look_at_body();
        if let Some((_, kept)) = self.handles.kept.iter().find(|(other, _)| *other == (texture, sampler)) {
            return Some(*kept);
        }
        if self.handles.calls || self.handles.kept.len() == KEPT {
            return None;
        }
        let first = FIRST_KEPT + 2 * self.handles.kept.len() as u16;
        let vector = self.f.new_vector(File::UR, 2);
        let regs = self.f.vector_regs(vector).to_vec();
        for (reg, phys) in regs.iter().zip(first..) {
            self.f[*reg].phys = Some(phys);
            self.f[*reg].varying = false;
        }
        let load = if self.has(Feature::UniformLoadByScoreboard) { Op::LDCU } else { Op::ULDC };
        for (reg, at) in regs.into_iter().zip([Some(texture), sampler]) {
            let d = (Role::D, Operand::reg(reg));
            match at {
                Some(at) => {
                    let from = Operand::constant(BANK as u8, at as u16);
                    self.put_first(load, &[SIZE_32], &[d, (Role::C, from)]);
                }
                None => {
                    let zero = self.literal(0);
                    self.put_first(Op::UMOV, &[], &[d, (Role::A, zero)]);
                }
            }
        }
        let kept = Operand::vector(vector);
        self.handles.kept.push(((texture, sampler), kept));
        Some(kept)
    }

    /// Learns once what loads parameters and whether anything is called.
    fn look_at_body(&mut self) {
        if self.handles.loads.is_none() {
            let body = self.source.body.as_deref().unwrap_or_default();
            self.handles.calls = instructions(body).any(|inst| inst.op == PtxOp::Call || self.is_gradient_call(inst));
            self.handles.loads = Some(loads(body));
        }
    }

    /// The offset in the bank of the parameter that a register is a copy of.
    fn parameter_of(&mut self, register: RegId) -> Lowered<Option<i64>> {
        if !self.source.is_entry {
            return Ok(None);
        }
        self.look_at_body();
        let Some(operand) = self.handles.loads.as_ref().and_then(|loads| loads.get(&register)).cloned() else {
            return Ok(None);
        };
        let OperandKind::Address(ast::Address { base: AddressBase::Symbol(_), .. }) = operand.kind else {
            return Ok(None);
        };
        if self.words_at(&operand).is_some() {
            return Ok(None);
        }
        let place = self.place(&operand, Some(Space::Param))?;
        let known = matches!(place.window, Window::Bank(0)) && place.base == Operand::zero();
        Ok(known.then_some(place.offset).filter(|at| at % UNIT == 0))
    }

    /// The register of a handle, where the instruction takes it there.
    pub(super) fn register_of(&self, handle: &Handle) -> Option<Operand> {
        match handle {
            Handle::Register(word) if !self.has(Feature::TextureByUniform) => Some(*word),
            _ => None,
        }
    }

    /// Emits an instruction that names a handle by the operands that it is given: none where it is
    /// in a register.
    pub(super) fn with_handle(
        &mut self,
        handle: &Handle,
        emit: impl FnOnce(&mut Self, Vec<(Role, Operand)>) -> Lowered,
    ) -> Lowered {
        match handle {
            Handle::Bank(at) => {
                let (bank, word) = (self.literal(BANK), self.literal(at / UNIT));
                emit(self, vec![(Role::K, bank), (Role::O, word)])
            }
            Handle::Kept(kept) => {
                let args = self.uniform_args(*kept);
                emit(self, args)
            }
            Handle::Register(_) if self.register_of(handle).is_some() => emit(self, Vec::new()),
            Handle::Register(word) => self.with_values([*word, Operand::zero()], emit),
            // Only where the driver does it.
            Handle::Banks(..) => Err(Refusal::NotBuilt),
            Handle::Pair(texture, sampler) => self.with_values([*texture, *sampler], emit),
        }
    }

    fn with_values(
        &mut self,
        words: [Operand; 2],
        emit: impl FnOnce(&mut Self, Vec<(Role, Operand)>) -> Lowered,
    ) -> Lowered {
        self.value_by_value(&OTHER, &words, |b, pair| {
            let args = b.uniform_args(pair);
            emit(b, args)
        })
    }

    /// Words side by side in registers: the unit takes no RZ for a word alone.
    pub(super) fn in_registers(&mut self, words: Vec<Operand>) -> Operand {
        if words != [Operand::zero()] {
            return self.side_by_side(words);
        }
        let word = self.temp();
        self.copy(word, Operand::zero());
        word
    }

    fn uniform_args(&mut self, pair: Operand) -> Vec<(Role, Operand)> {
        let none = self.literal(0);
        let mut args = vec![(Role::Ub, pair)];
        args.extend(self.has(Feature::TextureHandleOffset).then_some((Role::O, none)));
        args
    }
}

/// What the reference of an instruction names.
fn role_of(inst: &ast::Instruction) -> RelocRole {
    match inst.op {
        PtxOp::SuldB | PtxOp::SustB | PtxOp::SustP | PtxOp::SuredB | PtxOp::SuredP | PtxOp::Suq => RelocRole::Surface,
        _ => RelocRole::Texture,
    }
}

/// Most bytes of parameters of the entries of a module.
fn most_parameters(module: &ast::Module) -> u32 {
    let bytes = |function: &ast::Function| {
        function.params.iter().fold(0, |end: u64, parameter| {
            match parameter.symbol().map(|symbol| &module.symbols[symbol].kind) {
                Some(ast::SymbolKind::Variable(v)) => end.next_multiple_of(v.align.max(1)) + v.size,
                _ => end,
            }
        })
    };
    module.functions.values().filter(|f| f.is_entry).map(bytes).max().unwrap_or(0) as u32
}

fn instructions(body: &[Statement]) -> impl Iterator<Item = &ast::Instruction> {
    body.iter().filter_map(|statement| match statement {
        Statement::Instruction(inst) => Some(&**inst),
        _ => None,
    })
}

/// The registers that are written once, by a load of a parameter of 64 bits, and the place loaded.
fn loads(body: &[Statement]) -> SortedMap<RegId, ast::Operand> {
    let mut writes: SortedMap<RegId, u32> = SortedMap::new();
    let mut found = SortedMap::new();
    for inst in instructions(body) {
        let whole = inst.op == PtxOp::Call;
        let args = inst.row.form().args;
        for (i, operand) in inst.operands.iter().enumerate() {
            if whole || args.get(i).is_none_or(|arg| writes_to(arg.role)) {
                each_register(operand, &mut |register| *writes.entry(register).or_default() += 1);
            }
        }
        let param = matches!(inst.mods.space, Some(Space::Param | Space::ParamEntry));
        if let (PtxOp::Ld, true, Some(OperandKind::Register(to))) =
            (inst.op, param, inst.operands.first().map(|operand| &operand.kind))
            && inst.types[0].bits() == 64
        {
            found.insert(to.register, inst.operands[1].clone());
        }
    }
    found.retain(|register, _| writes.get(register) == Some(&1));
    found
}

/// Whether an operand of this role is written.
fn writes_to(role: PtxRole) -> bool {
    !matches!(
        role,
        PtxRole::Src
            | PtxRole::Wsrc
            | PtxRole::Vsrc
            | PtxRole::Xsrc
            | PtxRole::Fsrc
            | PtxRole::Reg
            | PtxRole::Any
            | PtxRole::Pack
            | PtxRole::Pred
            | PtxRole::Const
            | PtxRole::Mem
            | PtxRole::Label
            | PtxRole::Part
            | PtxRole::Npart
            | PtxRole::Nsrc
            | PtxRole::Lanes
            | PtxRole::Tensor
            | PtxRole::Offsets
            | PtxRole::Texture
            | PtxRole::Surface
            | PtxRole::Gradient
            | PtxRole::Texels
            | PtxRole::Image
    )
}

fn each_register(operand: &ast::Operand, f: &mut impl FnMut(RegId)) {
    match &operand.kind {
        OperandKind::Register(used) => f(used.register),
        OperandKind::Vector(list) | OperandKind::List(list) => {
            list.iter().for_each(|operand| each_register(operand, f))
        }
        OperandKind::Pair(pair) => {
            each_register(&pair.0, f);
            each_register(&pair.1, f);
        }
        _ => {}
    }
}
