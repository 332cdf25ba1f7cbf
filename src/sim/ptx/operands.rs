//! Translates instruction operands to sources ([`Src`]) and destinations ([`Dst`]).
//!
//! The types come from the instruction's row. A source is masked to its type; a destination extends
//! the result from its type to the register's width. An operand that the interpreter does not
//! implement gives a [`Refusal`].

use super::layout::{LOCAL_WINDOW, Layout, Place, function_of, generic, variable};
use super::memory::Address;
use super::program::{Dst, Sink, Src};
use super::values::{constant, is_signed, mask};
use crate::ptx::ast::*;
use crate::tables::ptx::{Arg, ArgType, Group, ScalarType, Space, SpecialRegister, TypeClass};
use cranelift_entity::SecondaryMap;

/// Why the interpreter cannot execute an instruction.
pub type Refusal = String;

/// What is needed to resolve the operands of one function.
pub struct Names<'m> {
    /// The module that is executed.
    pub module: &'m Module,
    /// The addresses of its symbols.
    pub layout: &'m Layout,
    /// The function whose operands are resolved.
    pub function: &'m Function,
    /// The first cell of each register.
    pub cells: SecondaryMap<RegId, u32>,
}

/// Number of cells that a scalar of the type takes up.
pub fn cells_of(ty: ScalarType) -> u32 {
    ty.bits().div_ceil(64)
}

/// Pairs the operands of an instruction with their row entries and types.
pub fn typed(i: &Instruction) -> Vec<(&'static Arg, Option<ScalarType>, &Operand)> {
    let form = i.row.form();
    let hinted = form.rules.iter().any(|rule| rule.group == Group::CacheHint);
    let present = |arg: &&Arg| !arg.optional || !hinted || i.mods.cache_hint;
    let with_type = |(arg, operand): (&'static Arg, _)| {
        let ty = match arg.ty {
            ArgType::Untyped => None,
            ArgType::Suffix(n) => i.types.get(n).copied(),
            ArgType::Fixed(ty) => Some(ty),
            ArgType::Wide => i.types.first().and_then(|ty| twice(*ty)),
        };
        (arg, ty, operand)
    };
    form.args.iter().filter(present).zip(&i.operands).map(with_type).collect()
}

/// The type of the same class and twice the width.
fn twice(ty: ScalarType) -> Option<ScalarType> {
    ScalarType::ALL.into_iter().find(|other| other.class() == ty.class() && other.bits() == 2 * ty.bits())
}

impl Names<'_> {
    fn register(&self, id: RegId) -> &Register {
        &self.function.registers[id]
    }

    /// The cell of a register, or of an element of a vector register.
    fn cell(&self, used: &RegisterUse) -> u32 {
        let element = if let Part::Element(n) = used.part { u32::from(n) } else { 0 };
        self.cells[used.register] + element * cells_of(self.register(used.register).ty)
    }

    /// The cell of a predicate register.
    pub fn predicate(&self, register: RegId) -> u32 {
        self.cells[register]
    }

    /// A source of at most 64 bits; without a type it has the width of its register.
    pub fn src(&self, operand: &Operand, ty: Option<ScalarType>) -> Result<Src, Refusal> {
        match &operand.kind {
            OperandKind::Register(used) => Ok(self.used(used, ty)),
            OperandKind::Constant(value) => Ok(Src::Imm(constant(*value, ty))),
            OperandKind::Special(special) => Ok(Src::Special(*special, ty.map_or(u64::MAX, |ty| mask(ty.bits())))),
            OperandKind::Symbol { symbol, offset, .. } => self.symbol(*symbol, *offset, ty),
            OperandKind::Vector(one) if one.len() == 1 => self.src(&one[0], ty),
            OperandKind::Sink => Ok(Src::Imm(0)),
            _ => Err("an operand of this kind".into()),
        }
    }

    fn used(&self, used: &RegisterUse, ty: Option<ScalarType>) -> Src {
        let cell = self.cell(used);
        if used.not {
            return Src::Not(cell);
        }
        let of = self.register(used.register).ty;
        let (shift, bits) = match used.part {
            Part::Byte(n) => (8 * n, 8),
            Part::Half(n) => (16 * n, 16),
            _ if used.negate => (0, 32),
            _ => return Src::Cell { cell, mask: mask(of.bits().min(ty.map_or(64, ScalarType::bits))) },
        };
        Src::Part { cell, shift, bits, signed: ty.is_some_and(is_signed), negate: used.negate }
    }

    /// The address of a variable or function plus an offset.
    fn symbol(&self, symbol: SymbolId, offset: i64, ty: Option<ScalarType>) -> Result<Src, Refusal> {
        if let Place::Frame(at) = self.layout.places[symbol] {
            return Ok(Src::Local(at as i64 + offset));
        }
        let address = self.layout.address(self.module, symbol, false);
        let cut = ty.map_or(u64::MAX, |ty| mask(ty.bits()));
        let name = &self.module.symbols[symbol].name;
        let address = address.ok_or_else(|| format!("the address of {name}, which is not defined"))?;
        Ok(Src::Imm(address.wrapping_add(offset as u64) & cut))
    }

    /// A destination; `None` for `_`.
    pub fn dst(&self, operand: &Operand, ty: Option<ScalarType>) -> Result<Sink, Refusal> {
        match &operand.kind {
            OperandKind::Register(used) => {
                let of = self.register(used.register).ty;
                let ty = ty.unwrap_or(of);
                let bits = ty.bits().min(of.bits()).min(64) as u8;
                let above = of.bits() > 64 && ty.bits() <= 64;
                Ok(Some(Dst { cell: self.cell(used), bits, signed: is_signed(ty), mask: mask(of.bits()), above }))
            }
            OperandKind::Vector(one) if one.len() == 1 => self.dst(&one[0], ty),
            OperandKind::Sink => Ok(None),
            _ => Err("a result of this kind".into()),
        }
    }

    /// The elements of a vector operand or vector register; a scalar gives itself.
    pub fn elements(&self, operand: &Operand) -> Vec<Operand> {
        match &operand.kind {
            OperandKind::Vector(elements) => elements.clone(),
            OperandKind::Register(used) if used.part == Part::Whole && self.register(used.register).vector > 1 => {
                let part = |n| OperandKind::Register(RegisterUse { part: Part::Element(n as u8), ..*used });
                (0..self.register(used.register).vector).map(|n| Operand { pos: operand.pos, kind: part(n) }).collect()
            }
            OperandKind::Special(special) if special.info().vector > 1 => {
                let named = |axis| SpecialRegister::by_name(&format!("{}.{axis}", special.name()));
                let kinds = ["x", "y", "z", "w"].into_iter().filter_map(named).map(OperandKind::Special);
                kinds.map(|kind| Operand { pos: operand.pos, kind }).collect()
            }
            _ => vec![operand.clone()],
        }
    }

    /// A scalar of any width as words of at most 64 bits, lowest first, each with its width in
    /// bits.
    pub fn wide_src(&self, operand: &Operand, ty: ScalarType) -> Result<Vec<(Src, u32)>, Refusal> {
        if ty.bits() <= 64 {
            return Ok(vec![(self.src(operand, Some(ty))?, ty.bits())]);
        }
        match &operand.kind {
            OperandKind::Register(used) => {
                let cell = self.cell(used);
                Ok((cell..cell + 2).map(|cell| (Src::Cell { cell, mask: u64::MAX }, 64)).collect())
            }
            OperandKind::Constant(value) => Ok(vec![(Src::Imm(constant(*value, None)), 64), (Src::Imm(0), 64)]),
            _ => Err("an operand of 128 bits of this kind".into()),
        }
    }

    /// Like [`Names::wide_src`], for a destination.
    pub fn wide_dst(&self, operand: &Operand, ty: ScalarType) -> Result<Vec<(Sink, u32)>, Refusal> {
        if ty.bits() <= 64 {
            return Ok(vec![(self.dst(operand, Some(ty))?, ty.bits())]);
        }
        match &operand.kind {
            OperandKind::Register(used) => {
                let cell = self.cell(used);
                let dst = |cell| Some(Dst { cell, bits: 64, signed: false, mask: u64::MAX, above: false });
                Ok((cell..cell + 2).map(|cell| (dst(cell), 64)).collect())
            }
            OperandKind::Sink => Ok(vec![(None, 64), (None, 64)]),
            _ => Err("a result of 128 bits of this kind".into()),
        }
    }

    /// The type of a piece of a packed value: its register's type if the width matches, else bits.
    pub fn piece(&self, operand: &Operand, bits: u32) -> ScalarType {
        let own = match &operand.kind {
            OperandKind::Register(used) => Some(self.register(used.register).ty),
            _ => None,
        };
        let plain = |ty: &ScalarType| ty.class() == TypeClass::Bits && ty.bits() == bits;
        own.filter(|ty| ty.bits() == bits).or(ScalarType::ALL.into_iter().find(plain)).unwrap_or(ScalarType::B32)
    }

    /// The address in a memory operand.
    pub fn address(&self, operand: &Operand, space: Option<Space>) -> Result<Address, Refusal> {
        let OperandKind::Address(address) = &operand.kind else { return Err("an address of this kind".into()) };
        let (base, offset) = match address.base {
            AddressBase::Absolute => (Src::Imm(0), address.offset),
            AddressBase::Register(register) => {
                let bits = self.register(register).ty.bits();
                (Src::Cell { cell: self.cells[register], mask: mask(bits) }, address.offset)
            }
            AddressBase::Symbol(symbol) => {
                let src = self.symbol(symbol, address.offset, None)?;
                let own = variable(self.module, symbol).map(|v| v.space);
                match (src, space) {
                    (Src::Imm(at), None) => (Src::Imm(own.map_or(at, |own| generic(own, at))), 0),
                    (Src::Local(_), None) => (src, LOCAL_WINDOW as i64),
                    _ => (src, 0),
                }
            }
        };
        Ok(Address { space, base, offset })
    }

    /// The function that a symbol names.
    pub fn callee(&self, symbol: SymbolId) -> Option<FunctionId> {
        function_of(self.module, symbol)
    }
}
