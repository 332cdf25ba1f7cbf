//! Initialisers of variables.
//!
//! Input: the cursor behind `=`. Output: the initialised elements of a variable, and its extent where `[]` left it open.
//! Invariants: elements are in memory order and inside the variable; nesting is limited by the number of dimensions.

use super::ast::{Constant, InitValue, Initializer, SymbolId, SymbolKind, Variable};
use super::lexer::Tok;
use super::parser::{Parse, Parser, Reported};
use super::scope::Name;
use super::variable::MAX_SIZE;
use crate::tables::ptx::{Space, TypeClass};

impl<'a> Parser<'a> {
    /// What follows `=`.
    pub fn initializer(&mut self, variable: &mut Variable) -> Parse<()> {
        if variable.ty.class() == TypeClass::Opaque {
            return self.skip_fields();
        }
        let mut extents: Vec<Option<u64>> = variable.dimensions.to_vec();
        if variable.vector > 1 {
            extents.push(Some(u64::from(variable.vector)));
        }
        let element = u64::from(variable.ty.bits().div_ceil(8));
        // Bytes that one index of each dimension steps over.
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

    /// `{ value, … }` from a byte offset; `extents` and `strides` are those of this level and the levels inside. The
    /// result is the offset behind the last value.
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

    /// `{ field = value, … }` of a sampler or texture: read over, since what uses them is refused.
    fn skip_fields(&mut self) -> Parse<()> {
        self.expect_sign("{")?;
        let mut depth = 1;
        while depth > 0 {
            match (self.peek().tok, self.text(self.peek())) {
                (Tok::End, _) | (Tok::Sign, ";") => return Err(self.unexpected()),
                (Tok::Sign, "{") => depth += 1,
                (Tok::Sign, "}") => depth -= 1,
                _ => {}
            }
            self.next();
        }
        Ok(())
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
        let masked = self.peek().tok == Tok::Int && self.text(self.peek_ahead(1)) == "(";
        if masked {
            let token = self.next();
            let mask = super::constant::parse_int(self.text(token));
            self.expect_sign("(")?;
            let (symbol, offset, generic) = self.init_address()?;
            self.expect_sign(")")?;
            let mask = mask.and_then(|m| if let Constant::Int { bits, .. } = m { Some(bits) } else { None });
            return Ok(InitValue::Address { symbol, offset, generic, mask });
        }
        if self.peek().tok == Tok::Ident && self.text(self.peek()) != "WARP_SZ" {
            if variable.ty.bits() < 32 {
                return Err(self.mismatch());
            }
            let (symbol, offset, generic) = self.init_address()?;
            return Ok(InitValue::Address { symbol, offset, generic, mask: None });
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

    /// `name[+n]` or `generic(name)[+n]`.
    fn init_address(&mut self) -> Parse<(SymbolId, i64, bool)> {
        let mut token = self.expect_ident()?;
        let generic = self.text(token) == "generic" && self.is_sign("(");
        if generic {
            self.next();
            token = self.expect_ident()?;
        }
        let mut offset = self.symbol_offset()?;
        if generic {
            self.expect_sign(")")?;
            offset = offset.wrapping_add(self.symbol_offset()?);
        }
        let name = self.text(token);
        let found = match self.body.find(name) {
            Some(Name::Symbol(symbol)) => Some(symbol),
            _ => self.names.get(name).copied(),
        };
        let Some(symbol) = found else {
            return Err(self.syntax(token.pos, format!("Invalid initial value symbol '{name}'")));
        };
        match &self.module.symbols[symbol].kind {
            SymbolKind::Variable(v) if !matches!(v.space, Space::Global | Space::Const) => {
                let text = "Variable used as initial value not in .global or .const state space";
                Err(self.syntax(token.pos, text))
            }
            SymbolKind::Function(_) if generic => Err(self.syntax(token.pos, "Invalid initial value expression")),
            _ => Ok((symbol, offset, generic)),
        }
    }
}
