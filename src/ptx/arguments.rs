//! Checks the operands of an instruction against the roles and types of a form.
//!
//! The check returns the position and text of the first mismatch. Widths follow PTX ISA 9.0,
//! section 9.4: a register has the size and kind of its operand, except that loads, stores and
//! conversions accept wider registers.

use super::ast::*;
use super::instruction::Written;
use super::matching::{Types, called};
use super::parser::Parser;
use crate::diag::Pos;
use crate::tables::ptx::{Arg, ArgType, Form, Group, Modifiers, Op, Role, ScalarType, Space, TypeClass, VECTORS};

/// Position and text of an operand error.
type Bad = (Pos, String);

/// What the form expects of the operand being checked.
struct Expect<'m> {
    op: Op,
    role: Role,
    /// `None` where the role alone determines what is accepted.
    ty: Option<ScalarType>,
    /// Whether the type comes from a type suffix of the instruction.
    by_suffix: bool,
    /// Vector width of the `.vN` modifier; 1 without one.
    width: usize,
    /// Number of registers of a fragment.
    count: usize,
    /// Whether a register that is an address must have at least 32 bits.
    whole: bool,
    mods: &'m Modifiers,
}

impl Expect<'_> {
    /// Whether a register wider than the type is accepted. 128-bit vectors never accept one.
    fn is_wide(&self) -> bool {
        match self.role {
            Role::Wdst | Role::Wsrc => true,
            Role::Vdst | Role::Vsrc => {
                let bits = self.ty.map_or(0, ScalarType::bits) * self.width as u32;
                VECTORS.last().is_none_or(|widest| bits < widest.bits)
            }
            _ => false,
        }
    }
}

impl Parser<'_> {
    /// Checks all operands of an instruction against a form.
    pub(super) fn check_operands(&self, form: &Form, types: &Types, mods: &Modifiers, w: &Written) -> Result<(), Bad> {
        let counts = |what: &str| (w.pos, format!("{what} for instruction '{}'", called(form.op, mods)));
        if form.op == Op::Call {
            return Ok(());
        }
        let hinted = form.rules.iter().any(|rule| rule.group == Group::CacheHint);
        let present = |arg: &&Arg| !arg.optional || !hinted || mods.cache_hint;
        let expected: usize = form.args.iter().filter(present).count();
        let least = form.args.iter().filter(|arg| !arg.optional || hinted && mods.cache_hint).count();
        if !(least..=expected).contains(&w.operands.len()) {
            return Err(counts("Arguments mismatch"));
        }
        let width = mods.vector.map_or(1, |v| v.elements() as usize);
        for (i, (arg, operand)) in form.args.iter().filter(present).zip(&w.operands).enumerate() {
            let ty = match arg.ty {
                ArgType::Untyped => None,
                ArgType::Suffix(n) => types.get(n).copied(),
                ArgType::Fixed(ty) => Some(ty),
                ArgType::Wide => types.first().and_then(|ty| twice(*ty)),
            };
            let by_suffix = matches!(arg.ty, ArgType::Suffix(_));
            let count = arg.registers(mods);
            let whole = form.whole.is_some_and(|whole| usize::from(whole) == i);
            let expect = Expect { op: form.op, role: arg.role, ty, by_suffix, width, count, whole, mods };
            self.check_operand(&expect, operand, i)?;
        }
        self.check_unified(form, mods, w)?;
        let is_list = |operand: &Operand| match &operand.kind {
            OperandKind::Vector(_) => true,
            OperandKind::Register(r) => r.part == Part::Whole && self.body.registers[r.register].vector > 1,
            _ => false,
        };
        if form.args.iter().any(|arg| arg.role == Role::Pack) && w.operands.iter().all(is_list) {
            return Err((
                w.pos,
                "Illegal vector-vector operands for vector-scalar or scalar-vector mov instruction".into(),
            ));
        }
        Ok(())
    }

    /// `.unified` stands at an address in a register, of an instruction that reads generic or
    /// global memory into a register.
    fn check_unified(&self, form: &Form, mods: &Modifiers, w: &Written) -> Result<(), Bad> {
        let is_result = |arg: &Arg| matches!(arg.role, Role::Dst | Role::Odst | Role::Vdst | Role::Xdst | Role::Fdst);
        let has_result = form.args.iter().any(is_result);
        let reads = has_result && matches!(mods.space, None | Some(Space::Global));
        for operand in &w.operands {
            let OperandKind::Address(Address { base, unified: true, .. }) = operand.kind else { continue };
            if !reads || !matches!(base, AddressBase::Register(_)) {
                let name = called(form.op, mods);
                return Err((operand.pos, format!("Illegal use of attribute '.unified' for instruction '{name}'")));
            }
        }
        Ok(())
    }

    fn check_operand(&self, e: &Expect, operand: &Operand, index: usize) -> Result<(), Bad> {
        let ok = match e.role {
            Role::Dst | Role::Wdst => self.destination(e, operand)?,
            Role::Odst => operand.kind == OperandKind::Sink || self.destination(e, operand)?,
            Role::Sink if operand.kind == OperandKind::Sink => true,
            Role::Sink => {
                let what = format!("Sink '_' is expected as a destination operand for instruction '{}'", e.op.name());
                return Err((operand.pos, format!("{what} with '.shared::cluster'")));
            }
            Role::Xdst if e.mods.geometry.is_some() => match &operand.kind {
                OperandKind::Pair(pair) => self.vector(e, &pair.0)? && self.plain_predicate(&pair.1),
                _ => self.vector(e, operand)?,
            },
            Role::Vdst | Role::Xdst | Role::Vsrc | Role::Xsrc => self.vector(e, operand)?,
            Role::Fdst | Role::Fsrc => self.fragment(e, operand)?,
            Role::Unpack => self.pieces(e, operand) || self.destination(e, only_element(operand))?,
            Role::Pair => self.pair(e, operand)?,
            Role::Both => return self.both(e, operand),
            Role::Preds => self.predicates(operand),
            Role::Src | Role::Wsrc => self.source(e, operand)?,
            Role::Reg => matches!(operand.kind, OperandKind::Register(_)) && self.source(e, operand)?,
            Role::Any => self.anything(e, operand)?,
            Role::Pack => self.pieces(e, operand) || self.anything(e, only_element(operand))?,
            Role::Pred => self.predicate(operand),
            Role::Const => matches!(operand.kind, OperandKind::Constant(Constant::Int { .. })),
            Role::Mem if e.whole && self.is_narrow(operand) => {
                return Err((
                    operand.pos,
                    format!("Argument {index} of instruction '{}': must be register", e.op.name()),
                ));
            }
            Role::Mem => return self.memory(e, operand),
            Role::Tmem => self.tensor_memory(e, operand),
            Role::Tensor => return self.tensor(e, operand, index),
            Role::Offsets => return self.list(e, operand, (index + 1, ScalarType::U16), e.mods.tensor_offsets()),
            Role::Texture | Role::Surface => return self.texture(e, operand),
            Role::Image => return self.image(e, operand),
            Role::Gradient => return self.per_dimension(e, operand, ScalarType::F32, index),
            Role::Texels => return self.per_dimension(e, operand, ScalarType::S32, index),
            Role::Label => {
                let message = format!("Label expected for argument {index} of instruction '{}'", e.op.name());
                let is_label = matches!(operand.kind, OperandKind::Label(_));
                return if is_label { Ok(()) } else { Err((operand.pos, message)) };
            }
            Role::Part | Role::Npart | Role::Nsrc | Role::Into | Role::Lanes | Role::Mask => self.video(e, operand)?,
            Role::Call => true,
        };
        if ok { Ok(()) } else { Err(mismatch(e, operand)) }
    }

    /// Whether the operand is a whole register of a compatible type.
    fn fits(&self, e: &Expect, used: &RegisterUse) -> bool {
        let register = &self.body.registers[used.register];
        let elements = if matches!(used.part, Part::Element(_)) { 1 } else { register.vector };
        let part = match used.part {
            Part::Whole => true,
            Part::Element(n) => u32::from(n) < register.vector,
            Part::Byte(_) | Part::Half(_) | Part::Lanes(_) => false,
        };
        // ptxas accepts an f16x2 register wherever a type suffix calls for a 32-bit integer.
        let halves = |ty| e.by_suffix && register.ty == ScalarType::F16x2 && takes_halves(ty, e.is_wide());
        let fits = |ty| halves(ty) || compatible(register.ty, ty, e.is_wide());
        part && !used.not && elements == 1 && e.ty.is_none_or(fits)
    }

    fn destination(&self, e: &Expect, operand: &Operand) -> Result<bool, Bad> {
        let name = || called(e.op, e.mods);
        match &operand.kind {
            OperandKind::Register(used) if self.sums.iter().any(|sum| sum.register == used.register) => {
                Err((operand.pos, format!("Result register required for instruction '{}'", name())))
            }
            OperandKind::Register(used) if is_selected(used) => {
                Err((operand.pos, format!("Video selector is not allowed on destination for instruction '{}'", name())))
            }
            OperandKind::Register(used) => Ok(!used.negate && self.fits(e, used)),
            OperandKind::Special(_) => {
                Err((operand.pos, "Read-only special register cannot be destination argument".into()))
            }
            OperandKind::Sink => {
                Err((operand.pos, format!("Result discard mode is not allowed for instruction '{}'", name())))
            }
            OperandKind::Constant(_) => {
                Err((operand.pos, format!("Result register required for instruction '{}'", name())))
            }
            _ => Ok(false),
        }
    }

    fn source(&self, e: &Expect, operand: &Operand) -> Result<bool, Bad> {
        let name = || called(e.op, e.mods);
        match &operand.kind {
            OperandKind::Register(used) if used.negate => {
                Err((operand.pos, format!("Operand negation not allowed for instruction '{}'", name())))
            }
            OperandKind::Register(used) if is_selected(used) => Err((
                operand.pos,
                format!("Video selector is not allowed on source operand for instruction '{}'", name()),
            )),
            OperandKind::Register(used) => Ok(self.fits(e, used)),
            OperandKind::Constant(value) => Ok(e.ty.is_none_or(|ty| takes_constant(ty, *value))),
            // A conversion reads a special register like an ordinary one.
            OperandKind::Special(special) if e.role == Role::Wsrc => {
                Ok(e.ty.is_none_or(|ty| compatible(special.info().ty, ty, true)))
            }
            OperandKind::Special(_) => {
                Err((operand.pos, format!("Special register argument not allowed for instruction '{}'", name())))
            }
            _ => Ok(false),
        }
    }

    /// An operand of a video instruction: a register with a byte, half or lane selector that its
    /// role allows.
    fn video(&self, e: &Expect, operand: &Operand) -> Result<bool, Bad> {
        let writes = matches!(e.role, Role::Into | Role::Mask);
        let OperandKind::Register(used) = &operand.kind else {
            return if writes { self.destination(e, operand) } else { Ok(e.count == 0 && self.source(e, operand)?) };
        };
        if used.negate && !matches!(e.role, Role::Npart | Role::Nsrc) {
            let text = format!("Operand negation not allowed for instruction '{}'", e.op.name());
            return Err((operand.pos, text));
        }
        let lanes = if e.count == 2 { [true, false] } else { [false, true] };
        let fits = match (e.role, used.part) {
            (_, Part::Whole) => true,
            (Role::Part | Role::Npart | Role::Into, Part::Byte(_) | Part::Half(_)) => true,
            (Role::Mask, Part::Half(_)) => lanes[0],
            (Role::Mask, Part::Byte(_)) => lanes[1],
            // The lanes of a mask are written in descending order.
            (Role::Mask, Part::Lanes(l)) => {
                let at = &l.at[..usize::from(l.count)];
                l.halves == lanes[0] && at.is_sorted_by(|a, b| a < b) && at.iter().all(|n| usize::from(*n) < e.count)
            }
            (Role::Lanes, Part::Lanes(l)) => l.halves == lanes[0] && usize::from(l.count) == e.count,
            _ => false,
        };
        Ok(fits && self.fits(e, &RegisterUse { part: Part::Whole, negate: false, ..*used }))
    }

    /// A source of `mov` or `cvta`: also a special register or the address of a symbol.
    fn anything(&self, e: &Expect, operand: &Operand) -> Result<bool, Bad> {
        match &operand.kind {
            OperandKind::Special(special) => {
                let info = special.info();
                let fits = |ty: ScalarType| {
                    compatible(info.ty, ty, false)
                        || is_integer(ty) && (info.least..info.ty.bits()).contains(&ty.bits())
                };
                Ok(info.vector as usize == e.width && e.ty.is_none_or(fits))
            }
            // Shared and local addresses fit 32 bits: a 32-bit address is the lower half of the
            // 64-bit one.
            OperandKind::Symbol { .. } => Ok(e.ty.is_none_or(|ty| is_integer(ty) && ty.bits() >= 32)),
            OperandKind::Register(_) | OperandKind::Vector(_) if e.width > 1 => self.vector(e, operand),
            _ => self.source(e, operand),
        }
    }

    /// A vector register as wide as `.vN` whose element type is compatible.
    fn vector_register(&self, e: &Expect, used: &RegisterUse) -> bool {
        let register = &self.body.registers[used.register];
        let whole = used.part == Part::Whole && !used.not && !used.negate;
        whole && register.vector as usize == e.width && e.ty.is_none_or(|ty| compatible(register.ty, ty, e.is_wide()))
    }

    /// The data operand of a load or store: as many elements as `.vN` has.
    fn vector(&self, e: &Expect, operand: &Operand) -> Result<bool, Bad> {
        let is_destination = matches!(e.role, Role::Vdst | Role::Xdst);
        let scalar = |o: &Operand| if is_destination { self.destination(e, o) } else { self.source(e, o) };
        if e.width == 1 {
            return match &operand.kind {
                OperandKind::Vector(one) if one.len() == 1 => scalar(&one[0]),
                _ => scalar(operand),
            };
        }
        match &operand.kind {
            OperandKind::Register(used) => Ok(self.vector_register(e, used)),
            OperandKind::Vector(elements) => {
                if elements.len() != e.width {
                    let message = format!("Argument vector size mismatch for instruction '{}'", e.op.name());
                    return Err((operand.pos, message));
                }
                for element in elements {
                    let sink = is_destination && element.kind == OperandKind::Sink;
                    if !sink && !scalar(element)? {
                        return Err(mismatch(e, element));
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A fragment: a vector of as many registers as the form has. The braces may be omitted around
    /// a single register.
    fn fragment(&self, e: &Expect, operand: &Operand) -> Result<bool, Bad> {
        let scalar = |o: &Operand| if e.role == Role::Fdst { self.destination(e, o) } else { self.source(e, o) };
        match &operand.kind {
            OperandKind::Vector(elements) if elements.len() == e.count => {
                for element in elements {
                    if !scalar(element)? {
                        return Err(mismatch(e, element));
                    }
                }
                Ok(true)
            }
            OperandKind::Register(_) if e.count == 1 => scalar(operand),
            OperandKind::Register(used) => {
                let register = &self.body.registers[used.register];
                let whole = used.part == Part::Whole && !used.not && !used.negate;
                let fits = e.ty.is_none_or(|ty| compatible(register.ty, ty, false));
                Ok(whole && register.vector as usize == e.count && fits)
            }
            _ => Ok(false),
        }
    }

    /// A vector that packs or unpacks the type: its elements together are as wide as the type.
    fn pieces(&self, e: &Expect, operand: &Operand) -> bool {
        let Some(ty) = e.ty else { return false };
        if let OperandKind::Register(used) = &operand.kind {
            let register = &self.body.registers[used.register];
            let whole = used.part == Part::Whole && !used.not && !used.negate && register.vector > 1;
            return whole && register.vector * register.ty.bits() == ty.bits();
        }
        let OperandKind::Vector(elements) = &operand.kind else { return false };
        let piece = ty.bits() as usize / elements.len().max(1);
        matches!(elements.len(), 2 | 4 | 8)
            && elements.iter().all(|element| match &element.kind {
                OperandKind::Register(used) => {
                    let register = &self.body.registers[used.register];
                    let plain = !used.not && !used.negate && register.ty.class() != TypeClass::Predicate;
                    let whole = if used.part == Part::Whole { register.vector == 1 } else { true };
                    plain && whole && register.ty.bits() as usize == piece
                }
                OperandKind::Constant(_) => e.role == Role::Pack,
                OperandKind::Sink => true,
                _ => false,
            })
    }

    /// `d` or `d|p`
    fn pair(&self, e: &Expect, operand: &Operand) -> Result<bool, Bad> {
        let OperandKind::Pair(pair) = &operand.kind else { return self.destination(e, operand) };
        // A shuffle has a result, a match may have the predicate alone.
        let discards = pair.0.kind == OperandKind::Sink && e.mods.shfl_mode.is_none();
        let first = discards || self.destination(e, &pair.0)?;
        Ok(first && (pair.1.kind == OperandKind::Sink || self.plain_predicate(&pair.1)))
    }

    /// `d|p`, both required.
    fn both(&self, e: &Expect, operand: &Operand) -> Result<(), Bad> {
        match &operand.kind {
            OperandKind::Pair(pair) if self.plain_predicate(&pair.1) && self.pair(e, operand)? => Ok(()),
            _ => {
                let text = format!("Predicate output expected for instruction '{}'", called(e.op, e.mods));
                Err((operand.pos, text))
            }
        }
    }

    /// `p` or `p|q`
    fn predicates(&self, operand: &Operand) -> bool {
        let one = |o: &Operand| o.kind == OperandKind::Sink || self.plain_predicate(o);
        match &operand.kind {
            OperandKind::Pair(pair) => {
                one(&pair.0) && self.plain_predicate(&pair.1) || self.plain_predicate(&pair.0) && one(&pair.1)
            }
            _ => one(operand),
        }
    }

    /// A predicate register without negation.
    fn plain_predicate(&self, operand: &Operand) -> bool {
        matches!(&operand.kind, OperandKind::Register(used) if !used.not) && self.predicate(operand)
    }

    /// A predicate register, negated or not, or a constant.
    fn predicate(&self, operand: &Operand) -> bool {
        match &operand.kind {
            OperandKind::Register(used) => {
                let register = &self.body.registers[used.register];
                register.ty.class() == TypeClass::Predicate && used.part == Part::Whole && !used.negate
            }
            OperandKind::Special(special) => special.info().ty.class() == TypeClass::Predicate,
            OperandKind::Constant(Constant::Int { .. }) => true,
            _ => false,
        }
    }

    /// `[map, {c0, c1}]`: the address of a tensor map, which has no state space of its own, and
    /// coordinates.
    /// An address in tensor memory. ptxas takes no constant and no symbol, and for some operations
    /// not even a register of another type of 32 bits.
    fn tensor_memory(&self, e: &Expect, operand: &Operand) -> bool {
        let OperandKind::Address(Address { base: AddressBase::Register(id), rest, .. }) = &operand.kind else {
            return false;
        };
        let register = &self.body.registers[*id];
        let fits = is_integer(register.ty) && register.ty.bits() == 32 && register.vector == 1;
        rest.is_empty() && fits && e.ty.is_none_or(|ty| register.ty == ty)
    }

    fn tensor(&self, e: &Expect, operand: &Operand, index: usize) -> Result<(), Bad> {
        let OperandKind::Address(address) = &operand.kind else { return Err(mismatch(e, operand)) };
        let [coordinates] = &address.rest[..] else { return Err(mismatch(e, operand)) };
        let map = Address { rest: Rest::default(), ..address.clone() };
        let map = Operand { kind: OperandKind::Address(map), pos: operand.pos };
        if let AddressBase::Symbol(symbol) = address.base
            && let SymbolKind::Variable(variable) = &self.module.symbols[symbol].kind
            && variable.space != Space::Global
        {
            let message = "State space mismatch between instruction and address in instruction";
            return Err((operand.pos, format!("{message} '{}'", e.op.name())));
        }
        self.memory(e, &map)?;
        self.list(e, coordinates, (index + 1, ScalarType::S32), e.mods.coordinates())
    }

    /// `[handle, {c0, c1}]` or `[handle, sampler, {c0, c1}]`: handles are registers of 64 bits or
    /// references.
    fn texture(&self, e: &Expect, operand: &Operand) -> Result<(), Bad> {
        let name = e.op.name();
        let OperandKind::Address(address) = &operand.kind else { return Err(mismatch(e, operand)) };
        let (wide, opaque) = (|id| self.is_handle(id), |symbol| self.is_opaque(symbol));
        let good = match address.base {
            AddressBase::Register(id) => wide(id) && address.offset == 0,
            AddressBase::Symbol(symbol) if !opaque(symbol) => {
                let kind = if e.role == Role::Surface { "surfref" } else { "texref" };
                let number = if e.op.name().starts_with("sust") || e.op.name().starts_with("sured") { 0 } else { 1 };
                let text = format!("Argument {number} of instruction '{name}': .{kind} or .u64 register expected");
                return Err((operand.pos, text));
            }
            AddressBase::Symbol(_) => address.offset == 0,
            AddressBase::Absolute => false,
        };
        let coordinates = match &address.rest[..] {
            [_] if e.role == Role::Texture && self.module.target.independent_textures => {
                let text = format!("Argument 2 of instruction '{name}': .samplerref or .u64 register expected");
                return Err((operand.pos, text));
            }
            [coordinates] => coordinates,
            [sampler, coordinates] if e.role == Role::Texture => match &sampler.kind {
                OperandKind::Register(used) if wide(used.register) => coordinates,
                OperandKind::Symbol { symbol, .. } if opaque(*symbol) => coordinates,
                _ => return Err(mismatch(e, operand)),
            },
            _ => return Err(mismatch(e, operand)),
        };
        let Some(geometry) = e.mods.geometry.filter(|_| good) else { return Err(mismatch(e, operand)) };
        let list = match &coordinates.kind {
            OperandKind::Vector(list) => list.as_slice(),
            _ => std::slice::from_ref(coordinates),
        };
        if list.len() != (geometry.indices() + geometry.dimensions()).next_power_of_two() {
            let text = format!("Operand vector size doesn't match geometry for instruction '{name}'");
            return Err((operand.pos, text));
        }
        let one = |ty| Expect { role: Role::Src, ty: Some(ty), by_suffix: false, width: 1, count: 0, ..*e };
        for (i, element) in list.iter().enumerate() {
            let index = i < geometry.indices();
            let ty = if index { ScalarType::U32 } else { e.ty.unwrap_or(ScalarType::S32) };
            if !matches!(self.source(&one(ty), element), Ok(true)) {
                let text = format!("Array index in the '{name}' instruction has unexpected type. Expecting type .u32");
                return Err(if index { (operand.pos, text) } else { mismatch(e, element) });
            }
        }
        Ok(())
    }

    /// `[handle]`: a register of 64 bits or a reference.
    fn image(&self, e: &Expect, operand: &Operand) -> Result<(), Bad> {
        let name = e.op.name();
        let expected = |kind: &str| {
            (operand.pos, format!("Argument 1 of instruction '{name}': .{kind} or .u64 register expected"))
        };
        let kind = if e.op == Op::Suq { "surfref" } else { "texref" };
        let address = match &operand.kind {
            OperandKind::Address(address) if address.rest.is_empty() => address,
            OperandKind::Address(_) => return Err(mismatch(e, operand)),
            _ => return Err((operand.pos, format!("Address expected for argument 1 of instruction '{name}'"))),
        };
        match address.base {
            AddressBase::Register(_) if address.offset != 0 => Err(expected(kind)),
            AddressBase::Register(id) if self.is_handle(id) => Ok(()),
            AddressBase::Symbol(symbol) if self.is_opaque(symbol) && address.offset == 0 => Ok(()),
            AddressBase::Symbol(_) => Err(expected(kind)),
            _ => Err(mismatch(e, operand)),
        }
    }

    /// Whether a register may have a handle.
    fn is_handle(&self, id: RegId) -> bool {
        let register = &self.body.registers[id];
        register.vector == 1 && is_integer(register.ty) && register.ty.bits() == 64
    }

    /// Whether a symbol is a reference.
    fn is_opaque(&self, symbol: SymbolId) -> bool {
        match &self.module.symbols[symbol].kind {
            SymbolKind::Variable(variable) => variable.ty.class() == TypeClass::Opaque,
            _ => false,
        }
    }

    /// A vector with one element for each dimension of a texture.
    fn per_dimension(&self, e: &Expect, operand: &Operand, ty: ScalarType, index: usize) -> Result<(), Bad> {
        let count = e.mods.geometry.map_or(0, |geometry| geometry.dimensions().next_power_of_two());
        self.list(e, operand, (index, ty), count)
    }

    /// A vector of so many sources of a type, which is the argument of this number to ptxas.
    fn list(&self, e: &Expect, operand: &Operand, (number, ty): (usize, ScalarType), count: usize) -> Result<(), Bad> {
        let OperandKind::Vector(elements) = &operand.kind else {
            return Err((operand.pos, format!("Vector expected for argument {number}")));
        };
        if elements.len() != count {
            let name = e.op.name();
            let text = format!("Argument {number} of instruction '{name}': Argument vector size mismatch");
            return Err((operand.pos, text));
        }
        let one = Expect { role: Role::Src, ty: Some(ty), by_suffix: false, width: 1, count: 0, ..*e };
        let wrong = |element: &&Operand| !matches!(self.source(&one, element), Ok(true));
        elements.iter().find(wrong).map_or(Ok(()), |element| Err(mismatch(e, element)))
    }

    /// Whether the register of an address has less than 32 bits.
    fn is_narrow(&self, operand: &Operand) -> bool {
        let OperandKind::Address(Address { base: AddressBase::Register(id), .. }) = &operand.kind else { return false };
        self.body.registers[*id].ty.bits() < 32
    }

    /// An address in the state space of the instruction.
    fn memory(&self, e: &Expect, operand: &Operand) -> Result<(), Bad> {
        let name = e.op.name();
        let base = match &operand.kind {
            OperandKind::Address(address) if address.rest.is_empty() => address.base,
            OperandKind::Symbol { symbol, indexed: true, .. } => AddressBase::Symbol(*symbol),
            _ => return Err(mismatch(e, operand)),
        };
        match base {
            AddressBase::Absolute if e.mods.space == Some(Space::Local) => Ok(()),
            AddressBase::Absolute => {
                Err((operand.pos, "Immediate addresses allowed only for .local state space".into()))
            }
            AddressBase::Register(id) => {
                let register = &self.body.registers[id];
                if !is_integer(register.ty) {
                    let (name, ty) = (&register.name, register.ty.name());
                    let text = format!(
                        "Illegal to use symbol '{name}' of type .{ty} as address operand. Use integer or bit only."
                    );
                    return Err((operand.pos, text));
                }
                let good = register.vector == 1 && register.ty.bits() <= 64;
                if good { Ok(()) } else { Err(mismatch(e, operand)) }
            }
            AddressBase::Symbol(symbol) => {
                let symbol_of = &self.module.symbols[symbol];
                let illegal = || Err((operand.pos, format!("Illegal operand type to instruction '{name}'")));
                let SymbolKind::Variable(variable) = &symbol_of.kind else { return illegal() };
                // A reference has no bytes.
                if variable.ty.class() == TypeClass::Opaque {
                    return illegal();
                }
                if e.mods.space.is_some_and(|space| family(space) != family(variable.space)) {
                    let message = "State space mismatch between instruction and address in instruction";
                    return Err((operand.pos, format!("{message} '{name}'")));
                }
                // A variable of the body with a parameter's name counts as that parameter.
                let is_input = || self.inputs.iter().any(|input| self.module.symbols[*input].name == symbol_of.name);
                if e.op == Op::St && variable.space == Space::Param && is_input() {
                    let message = format!("Illegal to write to function input parameter '{}'", symbol_of.name);
                    return Err((operand.pos, message));
                }
                Ok(())
            }
        }
    }
}

/// Whether a byte, half or lanes of a register are named.
fn is_selected(used: &RegisterUse) -> bool {
    matches!(used.part, Part::Byte(_) | Part::Half(_) | Part::Lanes(_))
}

/// The element of a vector of one, which `mov` takes as a scalar.
fn only_element(operand: &Operand) -> &Operand {
    match &operand.kind {
        OperandKind::Vector(elements) if elements.len() == 1 => &elements[0],
        _ => operand,
    }
}

fn mismatch(e: &Expect, operand: &Operand) -> Bad {
    (operand.pos, format!("Arguments mismatch for instruction '{}'", called(e.op, e.mods)))
}

/// The state space without its qualifier: `.shared::cluster` becomes `.shared`.
fn family(space: Space) -> Space {
    match space {
        Space::SharedCta | Space::SharedCluster => Space::Shared,
        Space::ParamEntry | Space::ParamFunc => Space::Param,
        other => other,
    }
}

/// The type of the same kind and twice the width.
fn twice(ty: ScalarType) -> Option<ScalarType> {
    ScalarType::ALL.into_iter().find(|other| other.class() == ty.class() && other.bits() == 2 * ty.bits())
}

fn is_integer(ty: ScalarType) -> bool {
    matches!(ty.class(), TypeClass::Unsigned | TypeClass::Signed | TypeClass::Bits)
}

/// Whether an operand of this type accepts a `.f16x2` register, although the types differ.
fn takes_halves(operand: ScalarType, wide: bool) -> bool {
    use TypeClass::*;
    let size = operand.bits() == 32 || wide && operand.bits() < 32;
    size && matches!(operand.class(), Unsigned | Signed | UnsignedVector | SignedVector)
}

/// Whether a register of one type can be an operand of another. With `wide`, the register may have
/// more bits than the operand.
fn compatible(register: ScalarType, operand: ScalarType, wide: bool) -> bool {
    use TypeClass::*;
    let (have, want) = (register.class(), operand.class());
    if have == Predicate || want == Predicate || have == Opaque {
        return have == want && have == Predicate;
    }
    let same = register.bits() == operand.bits();
    let size = same || wide && register.bits() > operand.bits();
    match want {
        Bits => size,
        Unsigned | Signed => size && is_integer(register),
        // A float register is taken in its own type only; untyped bits in any.
        Float | FloatVector => register == operand || have == Bits && size,
        UnsignedVector | SignedVector | Narrow => size && have == Bits,
        Predicate | Opaque => false,
    }
}

/// Whether a constant can be an operand of a type. Untyped bits take a float of their width; packed
/// and half-precision types take no constants.
fn takes_constant(ty: ScalarType, value: Constant) -> bool {
    use TypeClass::*;
    match (ty.class(), value) {
        (Bits | Unsigned | Signed | Predicate, Constant::Int { .. }) => true,
        (Bits, Constant::F32(_)) => ty.bits() == 32,
        (Bits, Constant::F64(_)) => ty.bits() == 64,
        (Float, Constant::F32(_) | Constant::F64(_)) => ty == ScalarType::F32 || ty == ScalarType::F64,
        _ => false,
    }
}
