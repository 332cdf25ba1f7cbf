//! Lexer: turns PTX text into tokens, batch by batch.
//!
//! Each token has a byte range and a position; bytes that form no token get a diagnostic. The last
//! batch ends in `End`, token ranges are ordered and disjoint, the time is linear in the text, and
//! the memory does not grow with it. A directive or modifier (`.global`, `.L2::128B`) is one token
//! with its dot.

use super::parser::MAX_ERRORS;
use crate::diag::{Diagnostic, Pos};

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
    /// `foo`, `%r1`, `$L_1`; a single `_` too.
    Ident,
    /// `.global`, `.x`, `.32x32b`
    Dot,
    Int,
    /// `0f…`, `0d…` and decimal floats.
    Float,
    Str,
    /// `@@DWARF …` up to the end of its line.
    Dwarf,
    /// An operator or punctuation of one or two characters, given by the byte range.
    Sign,
    End,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub tok: Tok,
    /// Byte offset in the text.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
    pub pos: Pos,
}

/// Directives that are no modifiers; ptxas takes them as words of their own wherever they stand.
const DIRECTIVES: [&str; 37] = [
    ".reg",
    ".entry",
    ".func",
    ".visible",
    ".extern",
    ".common",
    ".align",
    ".target",
    ".address_size",
    ".file",
    ".loc",
    ".section",
    ".pragma",
    ".ptr",
    ".attribute",
    ".managed",
    ".unified",
    ".maxntid",
    ".reqntid",
    ".maxnreg",
    ".minnctapersm",
    ".maxnctapersm",
    ".noreturn",
    ".branchtargets",
    ".calltargets",
    ".callprototype",
    ".explicitcluster",
    ".maxclusterrank",
    ".reqnctapercluster",
    ".blocksareclusters",
    ".abi_preserve",
    ".abi_preserve_control",
    ".surfref",
    ".texref",
    ".samplerref",
    ".param",
    ".const",
];

/// Words that ptxas knows besides, which may be modifiers: they are no fields of a register.
const NO_FIELDS: [&str; 8] = [".global", ".shared", ".local", ".tex", ".weak", ".alias", ".v2", ".v4"];

/// Whether a word can be a modifier only by mistake.
pub fn is_directive(dot: &str) -> bool {
    DIRECTIVES.contains(&dot)
}

/// Whether a word behind a register is not even the wrong name of a field.
pub fn is_no_field(dot: &str) -> bool {
    is_directive(dot) || NO_FIELDS.contains(&dot)
}

/// Length up to which a message quotes an invalid token, in bytes.
const SHOWN: usize = 64;

/// Number of tokens per batch.
const BATCH: usize = 1024;

/// Splits a text, which must be shorter than 4 GiB, into tokens.
pub struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
    /// The tokens of this batch, preceded by those kept from the one before.
    pub out: Vec<Token>,
    /// Diagnostics not fetched yet.
    pub diags: Vec<Diagnostic>,
    /// Number of diagnostics in all.
    reported: usize,
    /// The text ends inside a comment.
    pub cut_off: bool,
}

/// The bytes that may occur inside an identifier.
static WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let own = byte as u8;
        word[byte] = own.is_ascii_alphanumeric() || own == b'_' || own == b'$';
        byte += 1;
    }
    word
};

/// Whether a byte may occur inside an identifier.
pub fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of a text.
    pub fn new(source: &'a str) -> Lexer<'a> {
        let bytes = source.as_bytes();
        let (out, diags) = (Vec::with_capacity(BATCH + 1), Vec::new());
        Lexer { bytes, at: 0, line: 1, line_start: 0, out, diags, reported: 0, cut_off: false }
    }

    /// Drops the tokens before `keep` and appends the next batch. The last token is `End` at the
    /// end of the text, or when there are too many errors to go on.
    pub fn batch(&mut self, keep: usize) {
        if self.ended() {
            return;
        }
        self.out.drain(..keep);
        let enough = self.out.len() + BATCH;
        while self.out.len() < enough && !self.ended() {
            self.step();
        }
    }

    /// Whether the last token has been produced.
    pub fn ended(&self) -> bool {
        self.out.last().is_some_and(|t| t.tok == Tok::End)
    }

    /// Skips the rest of the text.
    pub fn stop(&mut self) {
        self.at = self.bytes.len();
        if !self.ended() {
            self.push(Tok::End, 0);
        }
    }

    /// Advances over a token, or over the blanks and comments between tokens.
    fn step(&mut self) {
        if self.reported + self.diags.len() > MAX_ERRORS {
            return self.stop();
        }
        let Some(&byte) = self.bytes.get(self.at) else { return self.push(Tok::End, 0) };
        match byte {
            b'\n' => self.newline(),
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'/' if self.peek(1) == b'/' => self.skip_line(),
            b'/' if self.peek(1) == b'*' => self.block_comment(),
            b'"' => self.string(),
            b'.' => self.dot(),
            b'0'..=b'9' => self.number(),
            b'@' if self.bytes[self.at..].starts_with(b"@@") => self.dwarf(),
            b'%' if !self.starts_name() => self.push(Tok::Sign, 1),
            b'%' | b'_' | b'$' | b'a'..=b'z' | b'A'..=b'Z' => {
                let len = 1 + self.count(self.at + 1, is_word);
                self.push(Tok::Ident, len);
            }
            _ => self.sign(byte),
        }
    }

    /// Takes the diagnostics produced since the last call.
    pub fn fetch(&mut self) -> Vec<Diagnostic> {
        self.reported += self.diags.len();
        std::mem::take(&mut self.diags)
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn pos(&self) -> Pos {
        Pos { line: self.line, col: (self.at - self.line_start) as u32 + 1 }
    }

    fn push(&mut self, tok: Tok, len: usize) {
        self.out.push(Token { tok, start: self.at as u32, len: len as u32, pos: self.pos() });
        self.at += len;
    }

    fn newline(&mut self) {
        self.at += 1;
        self.line = self.line.saturating_add(1);
        self.line_start = self.at;
    }

    fn count(&self, from: usize, test: fn(u8) -> bool) -> usize {
        self.bytes[from.min(self.bytes.len())..].iter().take_while(|b| test(**b)).count()
    }

    /// Whether `%` starts a name. It is a remainder operator after an operand, or before a byte
    /// that cannot start a name.
    fn starts_name(&self) -> bool {
        let after_operand = self.out.last().is_some_and(|t| {
            t.tok == Tok::Int || t.tok == Tok::Sign && self.bytes.get(t.start as usize) == Some(&b')')
        });
        is_word(self.peek(1)) && !after_operand
    }

    fn skip_line(&mut self) {
        let len = self.count(self.at, |b| b != b'\n');
        self.non_ascii(self.at, len);
        self.at += len;
    }

    fn block_comment(&mut self) {
        let start = self.pos();
        self.at += 2;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'*' if self.peek(1) == b'/' => {
                    self.at += 2;
                    return;
                }
                b'\n' => self.newline(),
                byte => {
                    if !byte.is_ascii() && self.diags.len() <= MAX_ERRORS {
                        self.non_ascii(self.at, 1);
                    }
                    self.at += 1;
                }
            }
        }
        self.cut_off = true;
        self.diags.push(Diagnostic::syntax(start, "Parsing error near '': unexpected EOF while scanning"));
    }

    fn string(&mut self) {
        let body = self.count(self.at + 1, |b| b != b'"' && b != b'\n');
        self.non_ascii(self.at + 1, body);
        let closed = self.peek(1 + body) == b'"';
        if !closed {
            self.diags.push(Diagnostic::syntax(self.pos(), "Parsing error near '\"': unterminated string"));
        }
        self.push(Tok::Str, 1 + body + usize::from(closed));
    }

    /// A modifier or directive. After a blank or a sign, a dot before a digit starts a number
    /// instead (`.5`).
    fn dot(&mut self) {
        let glued = self.at > 0 && is_word(self.bytes[self.at - 1]);
        if self.peek(1).is_ascii_digit() && !glued {
            return self.number();
        }
        let mut len = 1 + self.count(self.at + 1, is_word);
        while self.peek(len) == b':' && self.peek(len + 1) == b':' && is_word(self.peek(len + 2)) {
            len += 2 + self.count(self.at + len + 2, is_word);
        }
        if len == 1 {
            self.bad(1);
            return;
        }
        self.push(Tok::Dot, len);
    }

    fn dwarf(&mut self) {
        let len = self.count(self.at, |b| b != b'\n');
        self.non_ascii(self.at, len);
        self.push(Tok::Dwarf, len);
    }

    fn sign(&mut self, byte: u8) {
        let pair = matches!(
            (byte, self.peek(1)),
            (b'<', b'<') | (b'>', b'>') | (b'<', b'=') | (b'>', b'=') | (b'=', b'=') | (b'!', b'=') | (b'&', b'&')
        ) || byte == b'|' && self.peek(1) == b'|';
        if pair {
            return self.push(Tok::Sign, 2);
        }
        if byte.is_ascii() && b"(){}[]<>,;:@!|=+-*/%&^~?".contains(&byte) {
            return self.push(Tok::Sign, 1);
        }
        let len = if byte.is_ascii() { 1 } else { self.count(self.at, |b| !b.is_ascii()) };
        self.bad(len);
    }

    /// Reports bytes that form no token and steps over them.
    fn bad(&mut self, len: usize) {
        let byte = self.peek(0);
        if byte.is_ascii() {
            let shown = char::from(byte).escape_default();
            self.diags.push(Diagnostic::syntax(self.pos(), format!("Parsing error near '{shown}': syntax error")));
        } else {
            self.non_ascii(self.at, len);
        }
        self.at += len;
    }

    /// Reports the first non-ASCII byte of a range, once per line.
    fn non_ascii(&mut self, from: usize, len: usize) {
        let Some(i) = self.bytes[from..from + len].iter().position(|b| !b.is_ascii()) else { return };
        let pos = Pos { line: self.line, col: (from + i - self.line_start) as u32 + 1 };
        let message = format!("Unexpected non-ASCII character encountered on line {}", pos.line);
        if self.diags.last().is_none_or(|d| d.message != message) {
            self.diags.push(Diagnostic::error(pos, message));
        }
    }

    fn number(&mut self) {
        let (tok, len) = self.measure_number();
        // Digits or letters directly after a number belong to the same, invalid token: 08, 0f12,
        // 3x.
        let rest = self.count(self.at + len, is_word);
        if rest > 0 {
            let shown = rest.min(SHOWN);
            let text = String::from_utf8_lossy(&self.bytes[self.at + len..self.at + len + shown]).into_owned();
            let pos = Pos { col: self.pos().col + len as u32, ..self.pos() };
            self.diags.push(Diagnostic::syntax(pos, format!("Parsing error near '{text}': syntax error")));
        }
        self.push(tok, len);
        self.at += rest;
    }

    /// Kind and length of the number at the cursor, its `U` included.
    fn measure_number(&self) -> (Tok, usize) {
        let lead = (self.peek(0), self.peek(1) | 0x20);
        let digits = |from: usize, test: fn(u8) -> bool| self.count(self.at + from, test);
        let unsigned = |len: usize| len + usize::from(self.peek(len) == b'U');
        match lead {
            (b'0', b'x') if digits(2, hex) > 0 => return (Tok::Int, unsigned(2 + digits(2, hex))),
            (b'0', b'f') if digits(2, hex) == 8 => return (Tok::Float, 10),
            (b'0', b'd') if digits(2, hex) == 16 => return (Tok::Float, 18),
            (b'0', b'b') if digits(2, bit) > 0 => return (Tok::Int, unsigned(2 + digits(2, bit))),
            _ => {}
        }
        let whole = digits(0, dec);
        let mut len = whole;
        if self.peek(len) == b'.' {
            len += 1 + digits(len + 1, dec);
        }
        if self.peek(len) | 0x20 == b'e' {
            let sign = usize::from(matches!(self.peek(len + 1), b'+' | b'-'));
            let exponent = digits(len + 1 + sign, dec);
            len += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        if len > whole {
            return (Tok::Float, len);
        }
        if self.peek(0) == b'0' { (Tok::Int, unsigned(digits(0, oct))) } else { (Tok::Int, unsigned(whole)) }
    }
}

fn hex(b: u8) -> bool {
    b.is_ascii_hexdigit()
}
fn dec(b: u8) -> bool {
    b.is_ascii_digit()
}
fn oct(b: u8) -> bool {
    matches!(b, b'0'..=b'7')
}
fn bit(b: u8) -> bool {
    matches!(b, b'0' | b'1')
}
