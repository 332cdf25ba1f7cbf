//! Parses initialisers of variables.
//!
//! The result is the list of initialised elements, and the extent of the variable where `[]` left
//! it open. Elements are in memory order and inside the variable. Nesting is limited by the number
//! of dimensions.

use super::ast::{Constant, InitValue, Initializer, SymbolKind, Variable};
use super::lexer::Tok;
use super::parser::{Parse, Parser, Reported};
use super::requirements::Subject;
use super::scope::Name;
use super::variable::MAX_SIZE;
use crate::diag::Pos;
use crate::tables::ptx::{ScalarType, Space, TypeClass};

impl<'a> Parser<'a> {
    /// Parses what follows `=`.
    pub fn initializer(&mut self, variable: &mut Variable) -> Parse<()> {
        if variable.ty.class() == TypeClass::Opaque {
            return self.fields(variable);
        }
        let mut extents: Vec<Option<u64>> = variable.dimensions.to_vec();
        if variable.vector > 1 {
            extents.push(Some(u64::from(variable.vector)));
        }
        let element = u64::from(variable.ty.bits().div_ceil(8));
        // Byte stride of each dimension, then the element size.
        let mut strides = vec![element; extents.len() + 1];
        for i in 1..=extents.len() {
            strides[i - 1] = extents[i..].iter().fold(element, |n, d| n.saturating_mul(d.unwrap_or(0)));
        }
        if variable.ty.class() == TypeClass::Float && variable.ty.bits() < 32 {
            let pos = self.pos();
            return Err(self.syntax(pos, format!("No initial value is allowed for .{} type", variable.ty.name())));
        }
        let mut end = 0;
        if extents.is_empty() {
            let value = self.init_value(variable)?;
            variable.init.push(Initializer { offset: 0, value });
        } else {
            end = self.init_list(variable, &extents, &strides, 0)?;
        }
        if let Some(first @ None) = variable.dimensions.first_mut() {
            let stride = strides[0].max(1);
            *first = Some(end.div_ceil(stride));
            variable.size = end.div_ceil(stride) * stride;
        }
        Ok(())
    }

    /// `{ value, … }` at a byte offset, with the extents and strides of this level and the inner
    /// ones. Returns the offset behind the last value.
    fn init_list(
        &mut self,
        variable: &mut Variable,
        extents: &[Option<u64>],
        strides: &[u64],
        base: u64,
    ) -> Parse<u64> {
        if !self.is_sign("{") {
            return Err(self.mismatch());
        }
        let open = self.next();
        let limit = extents[0].map(|n| base.saturating_add(n.saturating_mul(strides[0])));
        let mut at = base;
        while !self.is_sign("}") || at > base {
            let pos = self.pos();
            if self.is_sign("}") {
                return Err(self.unexpected());
            }
            if limit.is_some_and(|limit| at >= limit) {
                return Err(self.syntax(pos, "Greater number of elements in array initializer"));
            }
            if extents.len() > 1 {
                self.init_list(variable, &extents[1..], &strides[1..], at)?;
            } else {
                let value = self.init_value(variable)?;
                variable.init.push(Initializer { offset: at, value });
            }
            at = at.saturating_add(strides[0]);
            if at > MAX_SIZE {
                return Err(self.error(open.pos, "Array initializer is too large"));
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign("}")?;
        Ok(at)
    }

    fn mismatch(&mut self) -> Reported {
        let pos = self.pos();
        self.syntax(pos, "Initial value type mismatch")
    }

    /// A constant, or an address: `name`, `name+4`, `generic(name)+4`, `0xFF(name)`.
    fn init_value(&mut self, variable: &Variable) -> Parse<InitValue> {
        let pos = self.pos();
        if self.is_sign("{") {
            return Err(self.mismatch());
        }
        if self.peek().tok == Tok::Int && self.text(self.peek_ahead(1)) == "(" {
            let mask = self.init_mask()?;
            self.expect_sign("(")?;
            let address = self.init_address()?;
            self.expect_sign(")")?;
            return self.init_symbol(variable, address, Some(mask));
        }
        if self.peek().tok == Tok::Ident && self.text(self.peek()) != "WARP_SZ" {
            let address = self.init_address()?;
            return self.init_symbol(variable, address, None);
        }
        let value = self.constant()?;
        let is_int = matches!(value, Constant::Int { .. });
        let fits = match variable.ty.class() {
            TypeClass::Float => !is_int,
            TypeClass::Bits => true,
            _ => is_int,
        };
        if !fits {
            return Err(self.syntax(pos, "Initial value type mismatch"));
        }
        Ok(InitValue::Constant(value))
    }

    /// The mask before an address: 0xFF shifted to one byte.
    fn init_mask(&mut self) -> Parse<u64> {
        let token = self.next();
        self.need(Subject::Directive("mask operator in initializer"), token.pos);
        let Some(Constant::Int { bits, .. }) = super::constant::parse_int(self.text(token)) else {
            self.at -= 1;
            return Err(self.unexpected());
        };
        if !(0..8).any(|byte| bits == 0xff << (8 * byte)) {
            self.error(token.pos, format!("Invalid mask value '{bits:#x}' used in initializer"));
        }
        Ok(bits)
    }

    /// `name[+n]` or `generic(name)[+n]`.
    fn init_address(&mut self) -> Parse<InitAddress<'a>> {
        let mut token = self.expect_ident()?;
        let generic = self.text(token) == "generic" && self.is_sign("(");
        if generic {
            self.need(Subject::Directive("generic() operator"), token.pos);
            self.next();
            token = self.expect_ident()?;
            self.expect_sign(")")?;
        }
        self.need(Subject::Directive("addresses as initial values"), token.pos);
        let offset = if self.accept_sign("+") { Some(self.integer()?) } else { None };
        Ok(InitAddress { name: self.text(token), pos: token.pos, generic, offset })
    }

    /// Checks an address and makes it the value of an element. The checks run in the order of
    /// ptxas.
    fn init_symbol(
        &mut self,
        variable: &Variable,
        InitAddress { name, pos, generic, offset }: InitAddress<'a>,
        mask: Option<u64>,
    ) -> Parse<InitValue> {
        if !matches!(self.text(self.peek()), "," | "}" | ";") {
            return Err(self.unexpected());
        }
        let found = match self.find_local(name) {
            Some(Name::Symbol(symbol)) => Some(symbol),
            _ => self.find_global(name),
        };
        let is_float = variable.ty.class() == TypeClass::Float;
        let other = found.map(|symbol| &self.module.symbols[symbol].kind);
        let text = match (other, found) {
            (Some(SymbolKind::Variable(v)), Some(symbol)) => {
                if !matches!(v.space, Space::Global | Space::Const) {
                    "Variable used as initial value not in .global or .const state space".to_string()
                } else if !takes_address(variable.ty, mask) {
                    "Initial value type mismatch".to_string()
                } else {
                    return Ok(InitValue::Address { symbol, offset: offset.unwrap_or(0), generic, mask });
                }
            }
            _ if offset.is_some() || generic && is_float => "Initial value type mismatch".to_string(),
            _ if generic => "Invalid initial value expression".to_string(),
            (Some(SymbolKind::Function(_)), Some(symbol)) if takes_address(variable.ty, mask) => {
                return Ok(InitValue::Address { symbol, offset: 0, generic, mask });
            }
            (Some(SymbolKind::Function(_)), _) => "Initial value type mismatch".to_string(),
            _ => format!("Invalid initial value symbol '{name}'"),
        };
        Err(self.syntax(pos, text))
    }
}

/// An address as written in an initialiser.
struct InitAddress<'a> {
    name: &'a str,
    pos: Pos,
    generic: bool,
    offset: Option<i64>,
}

/// Whether an element of this type may hold an address, or one byte of an address. Source: ptxas
/// 13.0.88, all types.
fn takes_address(ty: ScalarType, mask: Option<u64>) -> bool {
    ty.class() == TypeClass::Unsigned && (ty.bits() >= 32 || ty.bits() == 8 && mask.is_some())
}
