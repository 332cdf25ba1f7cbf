//! Parses function bodies: scopes, declarations, labels, `.loc`.
//!
//! The result is a flat list of statements. Scopes are kept on an explicit stack of limited depth,
//! so deep nesting cannot overflow the call stack. An error in one statement does not hide errors
//! in the next.

use super::ast::*;
use super::lexer::{Tok, Token};
use super::parser::{Parse, Parser};
use cranelift_entity::SecondaryMap;

/// Deepest nesting of scopes in a function.
const MAX_SCOPES: usize = 1000;

impl<'a> Parser<'a> {
    /// Parses everything between the braces; the closing brace stays unread.
    pub fn function_body(&mut self) -> Vec<Statement> {
        let mut out = Vec::new();
        let outside = self.body.depth();
        self.next();
        self.body.open();
        while !self.given_up() {
            let token = self.peek();
            match (token.tok, self.text(token)) {
                (Tok::End, _) => {
                    self.unexpected();
                    break;
                }
                (Tok::Dot, ".entry" | ".func" | ".visible" | ".weak") => {
                    // The closing brace is missing: what follows is the next function.
                    self.unexpected();
                    break;
                }
                (Tok::Sign, "{") => self.open_scope(),
                (Tok::Sign, "}") if self.body.depth() == outside + 1 => break,
                (Tok::Sign, "}") => {
                    self.next();
                    self.body.close();
                }
                _ => {
                    let before = self.progress();
                    if self.statement(&mut out).is_err() {
                        self.recover();
                    }
                    if self.progress() == before {
                        self.next();
                    }
                }
            }
        }
        while self.body.depth() > 0 {
            self.body.close();
        }
        out
    }

    fn open_scope(&mut self) {
        let pos = self.next().pos;
        if self.body.depth() > MAX_SCOPES {
            self.error(pos, format!("Scopes are nested deeper than {MAX_SCOPES} levels"));
            self.cut_off();
            return;
        }
        self.body.open();
    }

    fn statement(&mut self, out: &mut Vec<Statement>) -> Parse<()> {
        let token = self.peek();
        match token.tok {
            Tok::Dot => self.body_directive(out),
            Tok::Dwarf => {
                self.next();
                Ok(())
            }
            Tok::Ident if self.text(self.peek_ahead(1)) == ":" => self.label(out),
            Tok::Ident => self.instruction(out),
            Tok::Sign if self.text(token) == "@" => self.instruction(out),
            _ => Err(self.unexpected()),
        }
    }

    fn body_directive(&mut self, out: &mut Vec<Statement>) -> Parse<()> {
        match self.text(self.peek()) {
            ".loc" => out.push(Statement::Location(Box::new(self.location()?))),
            // Places in a language between the source and PTX: line tables do not have them.
            ".loc_intermediate" => {
                let pos = self.peek().pos;
                self.need(super::requirements::Subject::Directive(".loc_intermediate"), pos);
                self.location()?;
            }
            ".pragma" => out.push(Statement::Pragma(self.pragma(true)?)),
            ".file" => self.file_directive()?,
            ".section" => self.section()?,
            _ => {
                let made = self.variables(Linkage::Internal, false)?;
                self.body.variables.extend(made);
            }
        }
        Ok(())
    }

    /// `name:` together with what it is bound to: a branch target, a list of targets, or a
    /// prototype.
    fn label(&mut self, out: &mut Vec<Statement>) -> Parse<()> {
        let name = self.next();
        self.next();
        let text = self.text(name);
        match self.text(self.peek()) {
            ".callprototype" => {
                let kind = SymbolKind::Prototype(Box::new(self.prototype()?));
                self.bind(name, kind);
            }
            ".calltargets" => {
                let kind = SymbolKind::CallTargets(Box::new(self.call_targets()?));
                self.bind(name, kind);
            }
            ".branchtargets" => {
                self.next();
                let targets = self.branch_targets()?;
                match self.body.define_label(text, name.pos) {
                    Some(label) => self.body.set_targets(label, targets),
                    None => _ = self.error(name.pos, format!("Duplicate definition of label '{text}'")),
                }
            }
            _ => match self.body.define_label(text, name.pos) {
                Some(label) => out.push(Statement::Label(label)),
                None => _ = self.error(name.pos, format!("Duplicate definition of label '{text}'")),
            },
        }
        Ok(())
    }

    /// Binds a prototype or a list of callees to its label.
    fn bind(&mut self, name: Token, kind: SymbolKind) {
        let text = self.text(name);
        let symbol = self.new_symbol(text, name.pos, kind);
        if !self.body.declare_symbol(text, symbol) {
            self.error(name.pos, format!("Duplicate definition of label '{text}'"));
        }
    }

    fn branch_targets(&mut self) -> Parse<Vec<LabelId>> {
        let mut targets = Vec::new();
        loop {
            let token = self.expect_ident()?;
            targets.extend(self.body.use_label(self.text(token), token.pos));
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign(";")?;
        Ok(targets)
    }

    fn call_targets(&mut self) -> Parse<Vec<SymbolId>> {
        self.next();
        let mut targets = Vec::new();
        loop {
            let token = self.expect_ident()?;
            let name = self.text(token);
            match self.find_global(name) {
                Some(symbol) => targets.push(symbol),
                None => _ = self.error(token.pos, format!("Unknown symbol '{name}'")),
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign(";")?;
        Ok(targets)
    }

    /// `.loc file line column[, function_name label[+n], inlined_at file line column]`
    pub fn location(&mut self) -> Parse<Location> {
        let pos = self.next().pos;
        let (file, line, column) = (self.plain()?, self.plain()?, self.plain()?);
        let mut location = Location { pos, file, line, column, inlined: None };
        if !self.accept_sign(",") {
            self.locations.insert((file, line, column));
            return Ok(location);
        }
        let word = self.expect_ident()?;
        if self.text(word) != "function_name" {
            self.at -= 1;
            return Err(self.unexpected());
        }
        let name = self.expect_ident()?;
        let function_name = self.text(name).to_string();
        let name_offset = self.symbol_offset()?;
        self.expect_sign(",")?;
        let word = self.expect_ident()?;
        if self.text(word) != "inlined_at" {
            self.at -= 1;
            return Err(self.unexpected());
        }
        let (file, line, column) = (self.plain()?, self.plain()?, self.plain()?);
        if !self.locations.contains(&(file, line, column)) {
            let call = format!("{file} {line} {column}");
            let text = format!(
                "Source location {call} used in inlined_at directive must be used in a preceding .loc directive"
            );
            return Err(self.error(pos, text));
        }
        self.locations.insert((location.file, location.line, location.column));
        self.inlined_names.insert(function_name.clone());
        location.inlined = Some(InlinedAt { function_name, name_offset, file, line, column });
        Ok(location)
    }

    /// One unsigned integer literal, as `.loc`, directives and alignments take.
    pub fn plain(&mut self) -> Parse<u32> {
        let token = self.peek();
        if token.tok != Tok::Int {
            return Err(self.unexpected());
        }
        self.next();
        match super::constant::parse_int(self.text(token)) {
            Some(Constant::Int { bits, .. }) if bits <= u64::from(u32::MAX) => Ok(bits as u32),
            _ => Err(self.error(token.pos, "Constant overflow")),
        }
    }
}

impl Statement {
    /// Renumbers all labels.
    pub(super) fn remap_labels(&mut self, map: &SecondaryMap<LabelId, LabelId>) {
        match self {
            Statement::Label(label) => *label = map[*label],
            Statement::Instruction(instruction) => {
                for operand in &mut instruction.operands {
                    if let OperandKind::Label(label) = &mut operand.kind {
                        *label = map[*label];
                    }
                }
            }
            Statement::Location(_) | Statement::Pragma(_) => {}
        }
    }
}
