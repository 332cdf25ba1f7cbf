//! Parses operands: registers, constants, addresses, vectors, lists.
//!
//! Names are resolved at once. The only thing that depends on the instruction is whether a name can
//! be a label.

use super::ast::*;
use super::lexer::{Tok, Token, is_no_field};
use super::parser::{Parse, Parser};
use super::scope::Name;
use crate::diag::Pos;
use crate::tables::ptx::{OP_BY_NAME, SpecialRegister};

/// Largest number of elements of a vector or list.
const MAX_ELEMENTS: usize = 16384;

impl<'a> Parser<'a> {
    /// One operand; a pair `d|p` counts as one.
    pub fn operand(&mut self, takes_label: bool) -> Parse<Operand> {
        let first = self.single(takes_label)?;
        if self.is_sign("+") {
            return self.sum(first);
        }
        if !self.is_sign("|") {
            return Ok(first);
        }
        self.next();
        if first.kind == OperandKind::Sink && self.text(self.peek()) == "_" {
            return Err(self.unexpected());
        }
        let second = self.single(false)?;
        Ok(Operand { pos: first.pos, kind: OperandKind::Pair(Box::new((first, second))) })
    }

    fn single(&mut self, takes_label: bool) -> Parse<Operand> {
        let token = self.peek();
        let pos = token.pos;
        let kind = match (token.tok, self.text(token)) {
            (Tok::Sign, "{") => OperandKind::Vector(self.elements("{", "}")?),
            (Tok::Sign, "[") => OperandKind::Address(self.address()?),
            (Tok::Sign, sign @ ("!" | "-")) if self.peek_ahead(1).tok == Tok::Ident => self.prefixed(sign)?,
            (Tok::Ident, "_") => {
                self.next();
                OperandKind::Sink
            }
            (Tok::Ident, name)
                if takes_label && self.find_local(name).is_none() && self.find_global(name).is_none() =>
            {
                self.next();
                // A body always has an open scope, so the label exists.
                match self.body.use_label(name, pos) {
                    Some(label) => OperandKind::Label(label),
                    None => return Err(self.error(pos, format!("Unknown symbol '{name}'"))),
                }
            }
            (Tok::Ident, "WARP_SZ") => OperandKind::Constant(self.constant()?),
            (Tok::Ident, _) => self.named()?,
            _ if self.starts_constant() => OperandKind::Constant(self.constant()?),
            _ => return Err(self.unexpected()),
        };
        Ok(Operand { pos, kind })
    }

    /// `!p` or `-r`; before `WARP_SZ`, the sign belongs to a constant.
    fn prefixed(&mut self, sign: &str) -> Parse<OperandKind> {
        if self.text(self.peek_ahead(1)) == "WARP_SZ" {
            return Ok(OperandKind::Constant(self.constant()?));
        }
        let token = self.next();
        match self.named()? {
            OperandKind::Register(mut register) => {
                register.not = sign == "!";
                register.negate = sign == "-";
                Ok(OperandKind::Register(register))
            }
            _ => Err(self.error(token.pos, format!("Register expected after '{sign}'"))),
        }
    }

    /// A register with an optional part, a special register, or a symbol with an optional offset or
    /// index.
    fn named(&mut self) -> Parse<OperandKind> {
        let token = self.expect_ident()?;
        let name = self.text(token);
        if let Some(Name::Register(register)) = self.find_local(name) {
            let part = self.part(self.body.registers[register].vector)?;
            return Ok(OperandKind::Register(RegisterUse { register, not: false, negate: false, part }));
        }
        if name.starts_with('%')
            && let Some(special) = self.special(token)
        {
            return Ok(OperandKind::Special(special));
        }
        let symbol = self.symbol(token)?;
        if self.is_sign("[") {
            return self.index(symbol);
        }
        let offset = self.symbol_offset()?;
        Ok(OperandKind::Symbol { symbol, offset, indexed: false })
    }

    /// `%tid.x`, `%laneid`
    fn special(&mut self, token: Token) -> Option<SpecialRegister> {
        let name = &self.text(token)[1..];
        let next = self.peek();
        if next.tok == Tok::Dot {
            // Space may stand in front of the component.
            let whole = [name, self.text(next)].concat();
            if let Some(found) = SpecialRegister::by_name(&whole) {
                self.next();
                self.need(super::requirements::Subject::Special(found), token.pos);
                return Some(found);
            }
        }
        let found = SpecialRegister::by_name(name)?;
        self.need(super::requirements::Subject::Special(found), token.pos);
        Some(found)
    }

    /// Resolves a name that is not a register to a symbol.
    fn symbol(&mut self, token: Token) -> Parse<SymbolId> {
        let name = self.text(token);
        let found = match self.find_local(name) {
            Some(Name::Symbol(symbol)) => Some(symbol),
            _ => self.find_global(name),
        };
        let message = || {
            if OP_BY_NAME.get(name) == Some(&None) {
                format!("Special register '{name}' is not supported yet")
            } else {
                format!("Unknown symbol '{name}'")
            }
        };
        found.ok_or(()).map_err(|()| self.error(token.pos, message()))
    }

    /// `name[i]`: the address of an element.
    fn index(&mut self, symbol: SymbolId) -> Parse<OperandKind> {
        self.next();
        let pos = self.pos();
        let index = self.integer()?;
        self.expect_sign("]")?;
        let SymbolKind::Variable(variable) = &self.module.symbols[symbol].kind else {
            return Err(self.error(pos, "Only an array can be indexed"));
        };
        let element = i64::from(variable.ty.bits().div_ceil(8) * variable.vector);
        Ok(OperandKind::Symbol { symbol, offset: index.wrapping_mul(element), indexed: true })
    }

    /// `.x`, `.b0`, `.h1` directly after a register of this many elements.
    fn part(&mut self, vector: u32) -> Parse<Part> {
        let token = self.peek();
        if token.tok != Tok::Dot {
            return Ok(Part::Whole);
        }
        let text = self.text(token);
        if is_no_field(text) {
            return Err(self.unexpected());
        }
        let part = match text {
            ".x" | ".r" if vector > 1 => Part::Element(0),
            ".y" | ".g" if vector > 1 => Part::Element(1),
            ".z" | ".b" if vector > 1 => Part::Element(2),
            ".w" | ".a" if vector > 1 => Part::Element(3),
            ".b0" => Part::Byte(0),
            ".b1" => Part::Byte(1),
            ".b2" => Part::Byte(2),
            ".b3" => Part::Byte(3),
            ".h0" => Part::Half(0),
            ".h1" => Part::Half(1),
            text => match lanes(text) {
                Some(lanes) => Part::Lanes(lanes),
                None if vector > 1 => return Err(self.error(token.pos, format!("Unknown field '{text}'"))),
                None => return Err(self.error(token.pos, format!("Unknown video selector: '{text}'"))),
            },
        };
        self.next();
        Ok(part)
    }

    /// `{a, b}` or `(a, b)`
    pub fn elements(&mut self, open: &str, close: &str) -> Parse<Vec<Operand>> {
        let pos = self.expect_sign(open)?.pos;
        let mut elements = Vec::new();
        while !self.is_sign(close) || !elements.is_empty() {
            if matches!(self.text(self.peek()), "{" | "[") {
                return Err(self.unexpected());
            }
            elements.push(self.single(false)?);
            if elements.len() > MAX_ELEMENTS {
                return Err(self.error(pos, format!("More than {MAX_ELEMENTS} elements")));
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign(close)?;
        Ok(elements)
    }

    /// `[base+offset, rest…]`
    fn address(&mut self) -> Parse<Address> {
        self.expect_sign("[")?;
        let (base, offset) = self.base()?;
        let mut rest = Vec::new();
        while self.accept_sign(",") {
            rest.push(self.coordinate()?);
        }
        self.expect_sign("]")?;
        let unified = self.accept_dot(".unified");
        Ok(Address { base, offset, rest: rest.into(), unified })
    }

    /// The base of an address, and the offset.
    fn base(&mut self) -> Parse<(AddressBase, i64)> {
        if self.peek().tok != Tok::Ident || self.text(self.peek()) == "WARP_SZ" {
            return Ok((AddressBase::Absolute, self.integer()?));
        }
        let (pos, index) = (self.pos(), self.peek_ahead(1));
        if index.tok == Tok::Dot {
            self.next();
            return Err(self.unexpected());
        }
        match self.named()? {
            OperandKind::Symbol { indexed: true, .. } => Err(self.unexpected_at(index)),
            OperandKind::Register(RegisterUse { register, part: Part::Whole, .. }) => {
                let offset = self.symbol_offset()?;
                Ok((AddressBase::Register(register), offset))
            }
            OperandKind::Symbol { symbol, offset, .. } => {
                let more = self.symbol_offset()?;
                Ok((AddressBase::Symbol(symbol), offset.wrapping_add(more)))
            }
            _ => Err(self.bad_base(pos)),
        }
    }

    fn bad_base(&mut self, pos: Pos) -> super::parser::Reported {
        self.error(pos, "Address expression expected")
    }

    /// An operand after the base of a texture or tensor address: a sampler or coordinates.
    fn coordinate(&mut self) -> Parse<Operand> {
        self.single(false)
    }
}

/// `.h10`, `.b7654`: two of four halves, or two to four of eight bytes.
fn lanes(text: &str) -> Option<Lanes> {
    let (halves, digits) = match text.strip_prefix(".h") {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix(".b")?),
    };
    let most = if halves { 2 } else { 4 };
    let mut at = [0; 4];
    for (lane, digit) in at.iter_mut().zip(digits.bytes().rev()) {
        *lane = digit.checked_sub(b'0').filter(|n| *n < 2 * most)?;
    }
    let fits = (2..=usize::from(most)).contains(&digits.len());
    fits.then_some(Lanes { halves, count: digits.len() as u8, at })
}
