//! Parses initialisers of references: `{ field = value, … }`.
//!
//! Of a single reference the fields are kept in their order. Those of arrays are only checked:
//! ptxas 13.0.88 writes nothing of them either. Nesting is limited by the number of dimensions.

use super::ast::{Constant, Field, Variable};
use super::lexer::Tok;
use super::parser::{Parse, Parser};
use crate::tables::ptx::{FIELD_VALUES, FIELDS};

impl Parser<'_> {
    /// Parses what follows `=` of a reference.
    pub fn fields(&mut self, variable: &mut Variable) -> Parse<()> {
        if !self.is_sign("{") {
            let pos = self.pos();
            return Err(self.syntax(pos, "Initial value type mismatch"));
        }
        let fields = self.field_list(variable, variable.dimensions.len())?;
        if variable.dimensions.is_empty() {
            variable.fields = fields;
        }
        Ok(())
    }

    /// `{ field = value, … }`, or lists of them where dimensions are left.
    fn field_list(&mut self, variable: &Variable, dimensions: usize) -> Parse<Vec<Field>> {
        self.expect_sign("{")?;
        let mut fields = Vec::new();
        if self.accept_sign("}") {
            return Ok(fields);
        }
        loop {
            if dimensions > 0 && self.is_sign("{") {
                self.field_list(variable, dimensions - 1)?;
            } else {
                fields.push(self.field(variable)?);
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign("}")?;
        Ok(fields)
    }

    /// `field = value`
    fn field(&mut self, variable: &Variable) -> Parse<Field> {
        let (token, pos) = (self.peek(), self.pos());
        let is_alone = matches!(self.text(self.peek_ahead(1)), "," | "}");
        if is_alone && matches!(token.tok, Tok::Ident | Tok::Int | Tok::Float) {
            return Err(self.error(pos, "Opaque structure initializer requires named fields"));
        }
        let token = self.expect_ident()?;
        let name = self.text(token);
        self.expect_sign("=")?;
        let value = self.field_value()?;
        match FIELDS.iter().find(|info| info.name == name && info.of.contains(&variable.ty)) {
            Some(info) => Ok(Field { info, value }),
            None => Err(self.syntax(pos, format!("Unrecognized field name '{name}' in opaque struct initializer"))),
        }
    }

    /// A number, or a name for one. A float counts as 0, as ptxas counts it.
    fn field_value(&mut self) -> Parse<u32> {
        let token = self.peek();
        if token.tok != Tok::Ident || self.text(token) == "WARP_SZ" {
            return Ok(match self.constant()? {
                Constant::Int { bits, .. } => bits as u32,
                _ => 0,
            });
        }
        self.next();
        let name = self.text(token);
        if let Some(known) = FIELD_VALUES.iter().find(|known| known.name == name) {
            return Ok(known.value);
        }
        self.error(token.pos, format!("Unrecognized initial value symbol '{name}'"));
        Ok(0)
    }
}
