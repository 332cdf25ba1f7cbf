//! The parser's state: the token cursor, diagnostics, error recovery.
//!
//! The other modules of this folder are built from these steps. The cursor never passes the `End`
//! token. A failed step returns `Reported`, the proof that it wrote a diagnostic, so callers only
//! recover. The number of diagnostics is bounded.

use super::ast::Module;
use super::lexer::{Lexer, Tok, Token};
use super::scope::Body;
use crate::diag::{Diagnostic, Pos};
use crate::sorted::SortedSet;
use crate::tables::Target;
use std::collections::HashSet;
use std::sync::Arc;

/// Lookahead behind the next token that is always available.
const AHEAD: usize = 1;

/// Number of errors after which parsing stops.
pub const MAX_ERRORS: usize = 500;

/// Proof that a diagnostic has been written; what was being parsed is unusable.
#[derive(Debug)]
pub struct Reported;

/// Outcome of a parsing step.
pub type Parse<T> = Result<T, Reported>;

/// The parser over one text.
pub struct Parser<'a> {
    /// The text being parsed.
    pub source: &'a str,
    pub lexer: Lexer<'a>,
    /// Index of the next token in the lexer's batch.
    pub at: usize,
    /// Number of tokens before the lexer's batch.
    pub before: usize,
    pub diags: Vec<Diagnostic>,
    pub module: Module,
    /// Module-level names.
    pub names: super::hash::NameMap<&'a str, super::ast::SymbolId>,
    /// Parameterised names of the module.
    pub families: super::family::Families<'a>,
    /// The function being read.
    pub body: Body<'a>,
    /// Parameters of the function being read, which it may not write.
    pub inputs: Vec<super::ast::SymbolId>,
    /// Results of the function being read.
    pub outputs: Vec<super::ast::SymbolId>,
    /// The file has an `.address_size` directive.
    pub is_sized: bool,
    /// A file without that directive has an address of less than 32 bits, which has been reported.
    pub is_narrow: bool,
    /// The text ended early and that has been reported, so the end gets no further errors.
    pub cut_off: bool,
    /// Parsing stopped after too many errors, which has been reported.
    pub gave_up: bool,
    /// Whether instructions must match rows of the tables; otherwise only their syntax is read.
    pub check_rows: bool,
    /// The legality matrix rejected the current instruction, so its target gets no further errors.
    pub refused: bool,
    /// Sums (`r + 1`) among the operands of the current instruction.
    pub sums: Vec<super::sum::Sum>,
    /// The row of the `.target` directive.
    pub target_row: Option<&'static Target>,
    /// What a function without directives has.
    pub no_directives: Arc<super::ast::Directives>,
    /// Names of operations with their suffixes, as written: the operation, how many suffixes belong
    /// to its name, and the operands that are labels.
    pub operations: super::hash::NameMap<&'a str, (crate::tables::ptx::Op, usize, u32)>,
    /// What those names say of modifiers and types.
    pub sorted: super::hash::NameMap<&'a str, std::rc::Rc<super::matching::Sorted>>,
    /// Entries with bodies so far.
    pub entries: u64,
    /// File, line and column of each `.loc` so far.
    pub locations: HashSet<(u32, u32, u32)>,
    /// Labels that name inlined functions.
    pub inlined_names: SortedSet<String>,
}

impl<'a> Parser<'a> {
    /// The next token.
    pub fn peek(&self) -> Token {
        self.peek_ahead(0)
    }

    /// The token `ahead` places behind the next one: at most [`AHEAD`], unless more were requested
    /// by [`foresee`](Parser::foresee).
    pub fn peek_ahead(&self, ahead: usize) -> Token {
        let tokens = &self.lexer.out;
        tokens[(self.at + ahead).min(tokens.len() - 1)]
    }

    /// Consumes the next token.
    pub fn next(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.lexer.out.len() - 1);
        if self.at + AHEAD >= self.lexer.out.len() {
            self.read_on();
        }
        token
    }

    /// Fetches the next batch. The token before the next one is kept, because the parser may step
    /// back to it.
    pub fn read_on(&mut self) {
        if self.lexer.ended() {
            return;
        }
        let gone = self.at.saturating_sub(1);
        self.lexer.batch(gone);
        (self.at, self.before) = (self.at - gone, self.before + gone);
        self.diags.extend(self.lexer.fetch());
        self.cut_off |= self.lexer.cut_off;
    }

    /// Fetches batches until `ahead` tokens behind the next one are available.
    pub fn foresee(&mut self, ahead: usize) {
        while self.at + ahead >= self.lexer.out.len() && !self.lexer.ended() {
            self.read_on();
        }
    }

    /// Number of tokens consumed.
    pub fn progress(&self) -> usize {
        self.before + self.at
    }

    /// The source text of a token.
    pub fn text(&self, token: Token) -> &'a str {
        let source: &'a str = self.source;
        &source[token.start as usize..(token.start + token.len) as usize]
    }

    /// Position of the next token.
    pub fn pos(&self) -> Pos {
        self.peek().pos
    }

    /// Whether the next token is this sign.
    #[inline]
    pub fn is_sign(&self, sign: &str) -> bool {
        let token = self.peek();
        token.tok == Tok::Sign && self.text(token) == sign
    }

    /// Whether the next token is this directive.
    pub fn is_dot(&self, dot: &str) -> bool {
        let token = self.peek();
        token.tok == Tok::Dot && self.text(token) == dot
    }

    /// Consumes the next token if it is this sign.
    pub fn accept_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.next();
        }
        found
    }

    /// Consumes the next token if it is this directive.
    pub fn accept_dot(&mut self, dot: &str) -> bool {
        let found = self.is_dot(dot);
        if found {
            self.next();
        }
        found
    }

    /// Consumes this sign, or reports a syntax error.
    pub fn expect_sign(&mut self, sign: &str) -> Parse<Token> {
        if self.is_sign(sign) { Ok(self.next()) } else { Err(self.unexpected()) }
    }

    /// Consumes an identifier, or reports a syntax error.
    pub fn expect_ident(&mut self) -> Parse<Token> {
        if self.peek().tok == Tok::Ident { Ok(self.next()) } else { Err(self.unexpected()) }
    }

    /// Consumes a string; returns it without its quotes.
    pub fn expect_string(&mut self) -> Parse<&'a str> {
        if self.peek().tok != Tok::Str {
            return Err(self.unexpected());
        }
        let token = self.next();
        Ok(self.text(token).trim_matches('"'))
    }

    /// Reports an error.
    pub fn error(&mut self, pos: Pos, message: impl Into<String>) -> Reported {
        self.diags.push(Diagnostic::error(pos, message));
        Reported
    }

    /// Reports a syntax error.
    pub fn syntax(&mut self, pos: Pos, message: impl Into<String>) -> Reported {
        self.diags.push(Diagnostic::syntax(pos, message));
        Reported
    }

    /// Reports that the next token is unexpected.
    pub fn unexpected(&mut self) -> Reported {
        self.unexpected_at(self.peek())
    }

    /// Reports a syntax error at a token.
    pub fn unexpected_at(&mut self, token: Token) -> Reported {
        if token.tok == Tok::End && self.cut_off {
            return Reported;
        }
        let shown: String = self.text(token).chars().take(64).collect();
        self.syntax(token.pos, format!("Parsing error near '{shown}': syntax error"))
    }

    /// Skips to the end of the text and suppresses the errors about its end.
    pub fn cut_off(&mut self) {
        self.cut_off = true;
        self.lexer.stop();
        self.at = self.lexer.out.len() - 1;
    }

    /// Whether there are too many errors to go on; reports that once.
    pub fn given_up(&mut self) -> bool {
        if self.diags.len() < MAX_ERRORS {
            return false;
        }
        self.cut_off();
        if !self.gave_up {
            self.gave_up = true;
            self.diags.truncate(MAX_ERRORS);
            let pos = self.diags.last().and_then(|d| d.pos).unwrap_or_default();
            self.error(pos, "Too many errors; the rest of the file is not read");
        }
        true
    }

    /// After an error in a statement: skips to behind the next `;`, or to the `}` that closes the
    /// scope.
    pub fn recover(&mut self) {
        let mut depth = 0;
        loop {
            let token = self.peek();
            match (token.tok, self.text(token)) {
                (Tok::End, _) => return,
                (Tok::Sign, ";") => {
                    self.next();
                    return;
                }
                (Tok::Sign, "{") => depth += 1,
                (Tok::Sign, "}") if depth == 0 => return,
                (Tok::Sign, "}") => depth -= 1,
                _ => {}
            }
            self.next();
        }
    }
}
