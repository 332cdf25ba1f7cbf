//! Addresses: resolves address operands, takes addresses of variables, and converts between generic
//! and other address spaces.
//!
//! An access gets a base register and an offset for its opcode. On targets with clusters, an
//! address in shared memory includes the base of the block's window. An address of a parameter or a
//! constant is the byte offset in its constant bank.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::call::call_graph::function_of;
use crate::lower::call::params::Home;
use crate::lower::module::layout::is_shared;
use crate::ori::build::int::LUT_AND;
use crate::ori::mods::*;
use crate::ori::{Kind, Operand};
use crate::ptx::ast::{self, AddressBase, OperandKind, SymbolId, SymbolKind};
use crate::tables::elf::RelocRole;
use crate::tables::ptx::{Op as PtxOp, ScalarType, Space, TypeClass};
use crate::tables::{Feature, Op, Role};

/// The memory that an access reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Global,
    Generic,
    Shared,
    Local,
    /// Constant bank 3 (`.const`) or 0 (`.param` of an entry).
    Bank(u8),
}

/// The window of a state space; no state space means generic.
pub(crate) fn window_of(space: Option<Space>) -> Lowered<Window> {
    Ok(match space {
        None => Window::Generic,
        Some(Space::Global) => Window::Global,
        Some(Space::Const) => Window::Bank(3),
        Some(Space::Local) => Window::Local,
        Some(Space::Param | Space::ParamEntry | Space::ParamFunc) => Window::Bank(0),
        // For shared memory of the cluster, `place` makes the address generic.
        Some(Space::Shared | Space::SharedCta | Space::SharedCluster) => Window::Shared,
    })
}

/// Base register (RZ for none) and byte offset.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The memory that is accessed.
    pub window: Window,
    /// Base register; RZ if there is none.
    pub base: Operand,
    /// Byte offset from the base.
    pub offset: i64,
}

/// Bits of the signed byte offset in a memory instruction.
const OFFSET_BITS: u32 = 24;

/// Bit position of the rank of a block in its cluster within a shared address.
const CLUSTER_SHIFT: u32 = 24;

impl Builder<'_> {
    /// Resolves `[...]`; the returned offset fits its field.
    pub fn place(&mut self, operand: &ast::Operand, space: Option<Space>) -> Lowered<Place> {
        let OperandKind::Address(address) = &operand.kind else { return Err(Refusal::NotBuilt) };
        if !address.rest.is_empty() {
            return Err(Refusal::NotBuilt);
        }
        let window = self.own_window(address.base, window_of(space)?);
        let (base, offset) = match address.base {
            AddressBase::Absolute => (Operand::zero(), address.offset),
            AddressBase::Register(id) => (self.base_register(id), address.offset),
            AddressBase::Symbol(id) => {
                let (base, offset) = self.symbol_place(id, window)?;
                (base, offset.wrapping_add(address.offset))
            }
        };
        let base = match window {
            Window::Global | Window::Generic => self.wide_base(base),
            _ => self.words(base)[0],
        };
        let place = Place { window, base, offset };
        if space == Some(Space::SharedCluster) {
            return Ok(self.cluster_place(place));
        }
        Ok(self.fitted(place))
    }

    /// The register of an address; one that is narrower than 32 bits is extended by zeros.
    fn base_register(&mut self, id: ast::RegId) -> Operand {
        let base = self.register(id)[0];
        match self.source.registers[id].ty.bits() {
            8 => self.extend(base, ScalarType::B8),
            16 => self.extend(base, ScalarType::B16),
            _ => base,
        }
    }

    /// A shared address of a block of the cluster, whose upper bits are the rank of the block, as a
    /// generic address.
    fn cluster_place(&mut self, place: Place) -> Place {
        let (low, amount) = (self.temp(), self.imm(place.offset as u32));
        self.add(low, amount, place.base);
        let (high, special) = (self.temp(), self.special_number("SR_SWINHI"));
        self.put(Op::S2R, &[], &[(Role::D, high), (Role::S, special)]);
        Place { window: Window::Generic, base: self.pair_of([low, high]), offset: 0 }
    }

    /// `mapa`: replaces the rank in a shared address; `getctarank`: reads the rank.
    pub fn cluster_address(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let value = self.source(&inst.operands[1], ty)?;
        let words = self.words(value).each(|word| self.in_reg(word));
        if inst.op == PtxOp::Getctarank {
            let (d, shift) = (self.dest(&inst.operands[0])?, self.imm(CLUSTER_SHIFT));
            self.shf(&SHF_R_U32_HI, d, Operand::zero(), shift, words[0]);
            return Ok(());
        }
        let rank = self.source_reg(&inst.operands[2], ScalarType::U32)?;
        let (mapped, selector) = (self.temp(), self.imm(0x0654));
        let args = [(Role::D, mapped), (Role::A, rank), (Role::B, selector), (Role::C, words[0])];
        self.put(Op::PRMT, &[], &args);
        let d = self.dest(&inst.operands[0])?;
        if ty.bits() == 64 {
            self.copy_words(d, [mapped, words[1]]);
        } else {
            self.copy(d, mapped);
        }
        Ok(())
    }

    /// The window of an access to parameter space, which is local memory if the parameter is not in
    /// a constant bank.
    fn own_window(&self, base: AddressBase, window: Window) -> Window {
        let local = match base {
            AddressBase::Symbol(id) => self.homes.contains_key(&id),
            _ => !self.source.is_entry,
        };
        if window == Window::Bank(0) && local { Window::Local } else { window }
    }

    /// Extends a 32-bit base to 64 bits.
    fn wide_base(&mut self, base: Operand) -> Operand {
        match base.kind() {
            Kind::Reg(_) => self.pair_of([base, Operand::zero()]),
            _ => base,
        }
    }

    /// Adds an offset that does not fit its field to the base.
    pub fn fitted(&mut self, place: Place) -> Place {
        let fits = match place.window {
            // With an index the offset is signed; a vector is read word by word.
            Window::Bank(_) => (0..0x8000 - 12).contains(&place.offset),
            Window::Global | Window::Generic if place.base == Operand::zero() => false,
            // Without a base register the offset is unsigned.
            _ if place.base == Operand::zero() => (0..1 << (OFFSET_BITS - 1)).contains(&place.offset),
            _ => (-(1 << (OFFSET_BITS - 1))..1 << (OFFSET_BITS - 1)).contains(&place.offset),
        };
        if fits {
            return place;
        }
        let base = match place.window {
            Window::Global | Window::Generic => self.add_offset(place.base, place.offset),
            _ => {
                let sum = self.temp();
                let amount = self.imm(place.offset as u32);
                self.add(sum, amount, place.base);
                sum
            }
        };
        Place { base, offset: 0, ..place }
    }

    fn symbol_place(&mut self, id: SymbolId, window: Window) -> Lowered<(Operand, i64)> {
        let symbol = &self.module.symbols[id];
        let SymbolKind::Variable(variable) = &symbol.kind else { return Err(Refusal::NotBuilt) };
        if variable.ty.class() == TypeClass::Opaque {
            let text = format!("The address of the reference '{}' is not implemented", symbol.name);
            return Err(Refusal::At(symbol.pos, text));
        }
        if window == Window::Generic && variable.space != Space::Global {
            let pair = self.generic_address_of(id)?;
            return Ok((pair, 0));
        }
        if let Some(Home::Frame(at)) = self.homes.get(&id) {
            let at = *at as i64;
            return Ok((self.stack_pointer(), at));
        }
        if let Some(Home::Above(address)) = self.homes.get(&id) {
            return Ok((*address, 0));
        }
        if self.globals.object
            && let Some(linked) = self.linked_place(id)
        {
            return Ok(linked);
        }
        match variable.space {
            Space::Global => {
                let name = self.globals.link_name(self.module, id);
                // As in ptxas, a loader writes what has no slot into the code.
                let Some(slot) = self.globals.address_slot(id, &name) else {
                    return self.linked_place(id).ok_or(Refusal::NotBuilt);
                };
                let from = Operand::constant(4, slot);
                let pair = self.temp_pair();
                self.put(Op::LDC, &[SIZE_64], &[(Role::D, pair), (Role::C, from)]);
                Ok((pair, 0))
            }
            Space::Const => {
                let offset = self.globals.constant_offset(id).ok_or(Refusal::NotBuilt)?;
                Ok((Operand::zero(), offset as i64))
            }
            Space::Local => {
                let aligned = self.layout.aligned.as_ref().is_some_and(|aligned| aligned.variables.contains(&id));
                let base = if aligned { self.aligned_base() } else { self.stack_pointer() };
                Ok((base, self.frame_offset(id)?))
            }
            Space::Param | Space::ParamEntry => Ok((Operand::zero(), self.frame_offset(id)?)),
            space if is_shared(space) => Ok((self.shared_window(), self.frame_offset(id)?)),
            _ => Err(Refusal::NotBuilt),
        }
    }

    /// The address of the variables whose alignment is above that of the stack pointer.
    fn aligned_base(&mut self) -> Operand {
        let Some(aligned) = &self.layout.aligned else { return self.stack_pointer() };
        let (first, align) = (aligned.start + aligned.align - self.layout.stack_align, aligned.align as u32);
        if self.aligned_base.is_null() {
            self.aligned_base = self.temp();
            let (end, sp, first, mask) =
                (self.temp(), self.stack_pointer(), self.imm(first as u32), self.imm(align.wrapping_neg()));
            self.put_first(
                Op::IADD3,
                &[],
                &[(Role::D, end), (Role::A, sp), (Role::B, first), (Role::C, Operand::zero())],
            );
            let (d, none, lut) = (self.aligned_base, Operand::zero(), self.literal(LUT_AND.into()));
            let args = [(Role::D, d), (Role::A, end), (Role::B, mask), (Role::C, none), (Role::Lut, lut)];
            self.put_first(Op::LOP3, &[], &args);
        }
        self.aligned_base
    }

    fn frame_offset(&self, id: SymbolId) -> Lowered<i64> {
        self.layout.places.get(&id).map(|at| *at as i64).ok_or(Refusal::NotBuilt)
    }

    fn generic_address_of(&mut self, id: SymbolId) -> Lowered<Operand> {
        let SymbolKind::Variable(variable) = &self.module.symbols[id].kind else { return Err(Refusal::NotBuilt) };
        let space = variable.space;
        let address = self.symbol_address(id, 0, true)?;
        let d = self.temp_pair();
        self.space_to_generic(d, address, space)?;
        Ok(d)
    }

    /// The address of a variable in its own space, 64 or 32 bits wide.
    pub fn symbol_address(&mut self, id: SymbolId, offset: i64, wide: bool) -> Lowered<Operand> {
        if let Some(function) = function_of(self.module, id) {
            if self.globals.object {
                let name = self.module.functions[self.calls.resolved(function)].name.clone();
                let words = [RelocRole::FunctionLow, RelocRole::FunctionHigh].each(|r| self.linked(r, &name, offset));
                return Ok(self.pair_of(words));
            }
            let value = self.calls.pointer(function).filter(|_| offset == 0).ok_or(Refusal::NotBuilt)?;
            return Ok(self.f.imm(value));
        }
        let SymbolKind::Variable(variable) = &self.module.symbols[id].kind else { return Err(Refusal::NotBuilt) };
        let window = window_of(Some(variable.space))?;
        let (base, start) = self.symbol_place(id, window)?;
        let offset = start + offset;
        let full = match base.kind() {
            Kind::Vector(_) if offset == 0 => base,
            Kind::Vector(_) => self.add_offset(base, offset),
            Kind::Zero => self.f.imm(offset as u64),
            _ => {
                let sum = self.temp();
                let amount = self.imm(offset as u32);
                self.add(sum, base, amount);
                if wide { self.pair_of([sum, Operand::zero()]) } else { sum }
            }
        };
        match (wide, full.kind()) {
            (false, Kind::Vector(_)) => Ok(self.words(full)[0]),
            (_, Kind::Imm(_)) if offset == 0 => Ok(Operand::zero()),
            _ => Ok(full),
        }
    }

    /// What is added to offsets in shared memory: RZ, or the base of the block's part of the
    /// cluster window.
    pub fn shared_window(&mut self) -> Operand {
        if !self.has(Feature::SharedClusterWindow) {
            return Operand::zero();
        }
        if self.shared_window.is_null() {
            let rank = self.temp();
            self.shared_window = self.temp();
            let shift = self.imm(CLUSTER_SHIFT);
            let special = self.special_number("SR_CgaCtaId");
            self.put_first(Op::S2R, &[], &[(Role::D, rank), (Role::S, special)]);
            let base = self.shared_window;
            self.put_first(
                Op::SHF,
                &SHF_L,
                &[(Role::D, base), (Role::A, rank), (Role::B, shift), (Role::C, Operand::zero())],
            );
        }
        self.shared_window
    }

    /// `cvta` and `cvta.to`.
    pub fn cvta(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        if ty.bits() != 64 {
            return Err(Refusal::NotBuilt);
        }
        let space = inst.mods.space.ok_or(Refusal::NotBuilt)?;
        let d = self.dest(&inst.operands[0])?;
        let a = match &inst.operands[1].kind {
            OperandKind::Address(_) => return Err(Refusal::NotBuilt),
            _ => self.source(&inst.operands[1], ScalarType::U64)?,
        };
        if inst.mods.to { self.generic_to_space(d, a, space) } else { self.space_to_generic(d, a, space) }
    }

    /// Converts an address in a space to a generic one.
    pub fn space_to_generic(&mut self, d: Operand, a: Operand, space: Space) -> Lowered {
        let [d_lo, d_hi] = self.words(d);
        let a_words = self.words(a);
        match space {
            Space::Global => self.copy_value(d, a),
            Space::Local => {
                let window = self.code.window_base(self.info.local_window);
                self.add_long([d_lo, d_hi], window, a_words, false);
            }
            Space::Const => {
                let window = self.code.window_base(self.info.const_window);
                self.add_long([d_lo, d_hi], window, a_words, false);
            }
            Space::Param | Space::ParamEntry => {
                let window = self.code.window_base(self.info.param_window);
                let (start, inside) = (self.code.imm(self.info.param_window_at), self.temp_pair());
                let words = self.words(inside);
                self.add_long(words, a_words, [start, Operand::zero()], true);
                self.add_long([d_lo, d_hi], window, words, false);
            }
            Space::Shared | Space::SharedCta | Space::SharedCluster => match self.info.shared_window {
                Some(offset) => {
                    let window = self.code.window_base(offset);
                    self.add_long([d_lo, d_hi], window, a_words, false);
                }
                None => {
                    let high = self.temp();
                    let special = self.special_number("SR_SWINHI");
                    self.put(Op::S2R, &[], &[(Role::D, high), (Role::S, special)]);
                    self.copy_words(d, [a_words[0], high]);
                }
            },
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }

    /// Converts a generic address in a known space to an address of that space.
    pub fn generic_to_space(&mut self, d: Operand, a: Operand, space: Space) -> Lowered {
        let d_words = self.words(d);
        let a_pair = self.in_pair(a);
        let a_words = self.words(a_pair);
        match space {
            Space::Global => self.copy_value(d, a),
            Space::Local => {
                let window = self.code.window_base(self.info.local_window);
                self.add_long(d_words, a_words, window, true);
            }
            Space::Const => {
                let window = self.code.window_base(self.info.const_window);
                self.add_long(d_words, a_words, window, true);
            }
            Space::Param | Space::ParamEntry => {
                let window = self.code.window_base(self.info.param_window);
                let (start, inside) = (self.code.imm(self.info.param_window_at), self.temp_pair());
                let words = self.words(inside);
                self.add_long(words, a_words, window, true);
                self.add_long(d_words, words, [start, Operand::zero()], false);
            }
            Space::Shared | Space::SharedCta | Space::SharedCluster => match self.info.shared_window {
                Some(offset) => {
                    let window = self.code.window_base(offset);
                    self.add_long(d_words, a_words, window, true);
                }
                None => self.copy_words(d, [a_words[0], Operand::zero()]),
            },
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }
}
