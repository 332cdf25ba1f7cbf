//! The parser's state: the token cursor, diagnostics, recovery.
//!
//! Input: tokens. Output: steps that the other files of this folder are made of. Invariants: the cursor never passes
//! the `End` token; each failed step has left a diagnostic behind (`Reported` is the proof), so that callers only
//! recover; the number of diagnostics is bounded.

use super::ast::Module;
use super::lexer::{Lexer, Tok, Token};
use super::scope::Body;
use crate::diag::{Diagnostic, Pos};
use crate::tables::Target;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Tokens behind the next one that may be looked at.
const AHEAD: usize = 1;

/// Errors after which reading goes on no further.
pub const MAX_ERRORS: usize = 500;

/// A diagnostic has been written; what was being read is unusable.
#[derive(Debug)]
pub struct Reported;

/// Outcome of a parsing step.
pub type Parse<T> = Result<T, Reported>;

/// The parser over one text.
pub struct Parser<'a> {
    pub source: &'a str,
    pub lexer: Lexer<'a>,
    /// Of the next token among those that the lexer holds.
    pub at: usize,
    /// Tokens before those that the lexer holds.
    pub before: usize,
    pub diags: Vec<Diagnostic>,
    pub module: Module,
    /// Module-level names.
    pub names: HashMap<&'a str, super::ast::SymbolId>,
    /// Parameterised names of the module.
    pub families: super::family::Families<'a>,
    /// The function being read.
    pub body: Body<'a>,
    /// Parameters of the function being read, which it may not write.
    pub inputs: Vec<super::ast::SymbolId>,
    /// The text ended early, and that is reported: nothing more is said of its end.
    pub cut_off: bool,
    /// So much is wrong that reading goes on no further, and that is said.
    pub gave_up: bool,
    /// Whether instructions must match rows of the tables; otherwise only their syntax is read.
    pub check_rows: bool,
    /// The legality matrix refuses the instruction that is being checked: no more is said of its target.
    pub refused: bool,
    /// The sums among the operands of the instruction that is being read.
    pub sums: Vec<super::sum::Sum>,
    /// The row of the `.target` directive.
    pub target_row: Option<&'static Target>,
    /// File, line and column of each `.loc` so far.
    pub locations: HashSet<(u32, u32, u32)>,
    /// Labels that name inlined functions.
    pub inlined_names: BTreeSet<String>,
}

impl<'a> Parser<'a> {
    pub fn peek(&self) -> Token {
        self.peek_ahead(0)
    }

    /// The token behind `ahead` others: at most [`AHEAD`], unless more are [foreseen](Parser::foresee).
    pub fn peek_ahead(&self, ahead: usize) -> Token {
        let tokens = &self.lexer.out;
        tokens[(self.at + ahead).min(tokens.len() - 1)]
    }

    pub fn next(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.lexer.out.len() - 1);
        if self.at + AHEAD >= self.lexer.out.len() {
            self.read_on();
        }
        token
    }

    /// Lets the lexer go on. The token before the next one stays, for it may be gone back to.
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

    /// Lets the lexer make so many tokens behind the next one that this many may be looked at.
    pub fn foresee(&mut self, ahead: usize) {
        while self.at + ahead >= self.lexer.out.len() && !self.lexer.ended() {
            self.read_on();
        }
    }

    /// How many tokens have been read.
    pub fn progress(&self) -> usize {
        self.before + self.at
    }

    pub fn text(&self, token: Token) -> &'a str {
        let source: &'a str = self.source;
        &source[token.start as usize..(token.start + token.len) as usize]
    }

    pub fn pos(&self) -> Pos {
        self.peek().pos
    }

    /// Whether the next token is this sign.
    pub fn is_sign(&self, sign: &str) -> bool {
        let token = self.peek();
        token.tok == Tok::Sign && self.text(token) == sign
    }

    /// Whether the next token is this directive.
    pub fn is_dot(&self, dot: &str) -> bool {
        let token = self.peek();
        token.tok == Tok::Dot && self.text(token) == dot
    }

    pub fn accept_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.next();
        }
        found
    }

    pub fn accept_dot(&mut self, dot: &str) -> bool {
        let found = self.is_dot(dot);
        if found {
            self.next();
        }
        found
    }

    pub fn expect_sign(&mut self, sign: &str) -> Parse<Token> {
        if self.is_sign(sign) { Ok(self.next()) } else { Err(self.unexpected()) }
    }

    /// A name.
    pub fn expect_ident(&mut self) -> Parse<Token> {
        if self.peek().tok == Tok::Ident { Ok(self.next()) } else { Err(self.unexpected()) }
    }

    /// A string, its quotes taken off.
    pub fn expect_string(&mut self) -> Parse<&'a str> {
        if self.peek().tok != Tok::Str {
            return Err(self.unexpected());
        }
        let token = self.next();
        Ok(self.text(token).trim_matches('"'))
    }

    pub fn error(&mut self, pos: Pos, message: impl Into<String>) -> Reported {
        self.diags.push(Diagnostic::error(pos, message));
        Reported
    }

    /// An error of syntax.
    pub fn syntax(&mut self, pos: Pos, message: impl Into<String>) -> Reported {
        self.diags.push(Diagnostic::syntax(pos, message));
        Reported
    }

    /// The complaint about a token that does not belong where it stands.
    pub fn unexpected(&mut self) -> Reported {
        let token = self.peek();
        if token.tok == Tok::End && self.cut_off {
            return Reported;
        }
        let shown: String = self.text(token).chars().take(64).collect();
        self.syntax(token.pos, format!("Parsing error near '{shown}': syntax error"))
    }

    /// Goes to the end of the text without a word about what is missing there.
    pub fn cut_off(&mut self) {
        self.cut_off = true;
        self.lexer.stop();
        self.at = self.lexer.out.len() - 1;
    }

    /// Whether so much is wrong that it is not worth going on; says so once.
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

    /// After an error in a statement: goes behind the next `;`, or before the `}` that closes the scope.
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
