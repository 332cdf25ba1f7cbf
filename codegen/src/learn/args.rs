//! Builds the column `args` of a proposed row from the tokens of the word, its fields and the
//! modifiers after operands.
//!
//! It also returns the bits that the column uses. A token that no field holds becomes a literal
//! word, with a remark.

use super::field::{Field, constant_of};
use super::known::{Roles, ranges};
use super::text::{Token, mnemonic, show};
use crate::model::form_syntax::constant_bits;

/// The state of building the column.
pub struct Args<'a, 'm> {
    pub tokens: &'a [Token],
    pub fields: &'a [Field],
    pub roles: &'a mut Roles<'m>,
    /// (index of the operand's token, `.set@bits`) in printing order.
    pub suffixes: &'a [(usize, String)],
    pub remarks: Vec<String>,
    text: String,
}

/// Bits of a field and of its marks, including reuse.
pub fn mask(field: &Field) -> u128 {
    field.marks.iter().fold(field.bits.mask(), |m, mark| m | 1 << mark.1)
}

impl<'a, 'm> Args<'a, 'm> {
    /// An empty column for a word with these tokens, fields, roles and suffixes.
    pub fn new(
        tokens: &'a [Token],
        fields: &'a [Field],
        roles: &'a mut Roles<'m>,
        suffixes: &'a [(usize, String)],
    ) -> Self {
        Args { tokens, fields, roles, suffixes, remarks: Vec::new(), text: String::new() }
    }

    /// The column's text.
    pub fn column(&mut self) -> String {
        let mut at = mnemonic(self.tokens).1;
        let (mut depth, mut group) = (0, false);
        while at < self.tokens.len() {
            self.hidden(at);
            match &self.tokens[at] {
                Token::Punct('[') => (depth, group) = self.open(depth, group),
                Token::Punct(']') => {
                    depth -= 1;
                    self.text.push(']');
                }
                Token::Punct(',') => (self.text.push(' '), group = false).1,
                Token::Punct('+') => self.text.push(' '),
                Token::Punct('-' | '~' | '!' | '|') | Token::Suffix(_) => {}
                Token::Word(word) if (word == "c" || word == "cx") && self.constant(at, word == "cx") => {
                    at += self.tokens[at..].iter().take_while(|t| !t.is(',')).count() - 1;
                }
                Token::Word(word) if self.tokens.get(at + 1).is_some_and(|t| t.is('[')) => self.text.push_str(word),
                _ => self.atom(at),
            }
            at += 1;
        }
        self.hidden(at);
        self.text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ]", "]").replace("[ ", "[")
    }

    fn open(&mut self, depth: i32, group: bool) -> (i32, bool) {
        if group && self.text.ends_with(' ') {
            self.text.truncate(self.text.trim_end().len());
        }
        self.text.push('[');
        (depth + 1, true)
    }

    /// Operands that are not printed but would precede a token.
    fn hidden(&mut self, at: usize) {
        let mut list: Vec<&Field> =
            self.fields.iter().filter(|f| f.slot.at == at && !f.slot.hidden.is_empty()).collect();
        list.sort_by_key(|f| (["R", "U"].iter().position(|k| *k == f.kind).unwrap_or(2), f.bits.pieces[0].0));
        for field in list {
            let absent = match field.kind.as_str() {
                "P" | "UP" => format!("?{}T", field.kind),
                "R" | "U" => format!("?{}Z", if field.kind == "U" { "UR" } else { "R" }),
                _ => "?0".into(),
            };
            let word = self.word(field, "");
            self.text.push_str(&format!(" {word}{absent} "));
        }
    }

    /// Combines `c[bank][offset]` or `cx[UR][offset]` at its usual bits into one word.
    fn constant(&mut self, at: usize, bindless: bool) -> bool {
        let field = |i: usize| self.fields.iter().find(|f| f.slot.at == i && f.slot.hidden.is_empty());
        let (Some(first), Some(second)) = (field(at + 2), field(at + 5)) else { return false };
        let kind = if bindless { "X" } else { "C" };
        let Some((offset, bank)) = constant_bits(kind) else { return false };
        if offset != second.bits
            || bank.mask() != first.bits.mask()
            || !self.tokens[at + 6..].starts_with(&[Token::Punct(']')])
        {
            return false;
        }
        let role = self.roles.name(kind, offset.mask() | bank.mask());
        let marks: String = first.marks.iter().chain(&second.marks).map(|m| format!("{}{}", m.0, m.1)).collect();
        self.text.push_str(&format!("{role}:{kind}{marks}"));
        true
    }

    fn atom(&mut self, at: usize) {
        let field = self.fields.iter().find(|f| f.slot.at == at && f.slot.hidden.is_empty());
        let Some(field) = field else {
            let literal = show(&self.tokens[at..=at]);
            self.remarks.push(format!("no bit changes `{literal}`: written as a literal word"));
            self.text.push_str(&format!("'{literal}"));
            return;
        };
        if field.kind == "H" && self.second_half(field) {
            self.text.truncate(self.text.trim_end().len());
            self.text.push(' ');
            return;
        }
        let mut field = field.clone();
        if let Some(other) = self.lower_half(&field) {
            field.bits.pieces = vec![(other, 32)];
        }
        let constant = constant_of(self.tokens, at);
        let kind = match constant {
            Some(c) if c + 2 == at && field.kind == "I" => "K",
            Some(_) if matches!(field.kind.as_str(), "I" | "S") => "O",
            _ => "",
        };
        let mut word = self.word(&field, kind);
        for (_, suffix) in self.suffixes.iter().filter(|s| s.0 == at) {
            word.push_str(suffix);
        }
        self.text.push_str(&word);
    }

    /// Lowest bit of the second of two halves, if this field is the first and lies above it.
    fn lower_half(&self, field: &Field) -> Option<u8> {
        let [(lo, 16)] = field.bits.pieces[..] else { return None };
        let low = self.fields.iter().find(|f| f.kind == "H" && f.slot.at == field.slot.at + 2)?;
        (field.kind == "H" && low.bits.pieces == [(lo.checked_sub(16)?, 16)]).then(|| lo - 16)
    }

    fn second_half(&self, field: &Field) -> bool {
        self.fields.iter().any(|f| f.slot.at + 2 == field.slot.at && self.lower_half(f).is_some())
    }

    /// Writes `role:KIND@bits` with marks.
    fn word(&mut self, field: &Field, kind: &str) -> String {
        let kind = if kind.is_empty() { field.kind.as_str() } else { kind };
        let role = self.roles.name(kind, field.bits.mask());
        let usual = match kind {
            "R" | "U" | "SR" => 8,
            "P" | "UP" | "SB" => 3,
            "B" => 4,
            "K" => 5,
            "O" => 16,
            _ => 32,
        };
        let at = match field.bits.pieces[..] {
            [(lo, len)] if len == usual && field.bits.shift == 0 => lo.to_string(),
            // A single bit number would mean the lowest bit of the kind's usual range.
            [(lo, 1)] => format!("{lo}..{lo}"),
            _ => ranges(&field.bits),
        };
        let marks: String = field.marks.iter().map(|m| format!("{}{}", m.0, m.1)).collect();
        format!("{role}:{kind}@{at}{marks}")
    }
}
