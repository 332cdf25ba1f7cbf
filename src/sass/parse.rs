//! Parses one line of SASS text into an instruction.
//!
//! The line has the syntax of nvdisasm; its address and label names are given. The result has the
//! default control field. Printing the result gives the line again except for blanks; a line that
//! no form prints is an error.

use super::decode::decode_form;
use super::encode;
use super::field;
use super::float;
use super::inst::{Arg, ArgKind, Guard, Inst};
use super::text;
use crate::tables::encoding::{
    ALIASES, ArgField, BEHIND, FORMS, FORMS_BY_WORD, Form, GuardForm, Kind, NEVER_PRINTED, SETS, special_by_name,
};
use crate::tables::{Generation, Target};
use std::fmt;

/// Why a line is not an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Addresses of labels by name.
pub type Addresses<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// Parses a line at a byte address. Operands that nvdisasm never prints follow the line in the form
/// of `text::hidden`.
pub fn parse(target: &Target, line: &str, address: u64, labels: Option<Addresses>) -> Result<Inst, ParseError> {
    let fail = |message: &str| ParseError { message: format!("`{}`: {message}", line.trim()) };
    let Some(generation) = target.generation else { return Err(fail("the target has no assembler")) };
    let (line_text, hidden) = line.trim().split_once(" &").unwrap_or((line.trim(), ""));
    let line_text = line_text.trim().trim_end_matches(';').trim_end();
    let (guard, rest) = guard(line_text).ok_or_else(|| fail("not a guard predicate"))?;
    let (mnemonic, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let word = mnemonic.split('.').next().unwrap_or("");
    let forms = FORMS_BY_WORD.get(word).copied().ok_or_else(|| fail("no such opcode"))?;
    let mut known = false;
    for form in forms.iter().map(|i| &FORMS[usize::from(*i)]).filter(|f| f.is_on(target)) {
        let Some(rest) = mnemonic.strip_prefix(form.text) else { continue };
        for rest in without_alias(form, generation, rest) {
            let mut inst = Inst::new(form.op);
            if !modifiers(form, 255, rest, &mut inst) {
                continue;
            }
            known = true;
            let reader = Reader { target, form, address, labels, hidden };
            inst.guard = Guard { upred: form.guard == GuardForm::Uniform && guard != Guard::default(), ..guard };
            if let Some(mut inst) = reader.operands(0, operands.trim(), true, inst)
                && reader.notes(&mut inst).is_some()
                && let Some(inst) = confirm(target, form, &inst, line_text, address, labels)
            {
                return Ok(inst);
            }
        }
    }
    Err(fail(if known { "no form takes these operands" } else { "no form has these modifiers" }))
}

/// The canonical form of an instruction, if it prints as the line.
fn confirm(target: &Target, form: &Form, inst: &Inst, line: &str, at: u64, labels: Option<Addresses>) -> Option<Inst> {
    let (picked, word) = encode::pick(target, inst).ok()?;
    let canonical = if picked.alias { *inst } else { decode_form(target, word).ok()?.1 };
    let named = |address: u64| label_of(line, address, labels);
    let printed = text::print(target, form, &canonical, at, Some(&named));
    (squeeze(&printed) == squeeze(line)).then_some(canonical)
}

/// The label in a line, if it has this address.
fn label_of(line: &str, address: u64, labels: Option<Addresses>) -> Option<String> {
    let name = line.split_once("`(")?.1.split_once(')')?.0;
    (labels?(name)? == address).then(|| name.to_string())
}

/// The line without blanks.
fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn guard(text: &str) -> Option<(Guard, &str)> {
    let Some(rest) = text.strip_prefix('@') else { return Some((Guard::default(), text)) };
    let (word, rest) = rest.split_once(char::is_whitespace)?;
    let (not, word) = word.strip_prefix('!').map_or((false, word), |w| (true, w));
    let (upred, word) = word.strip_prefix('U').map_or((false, word), |w| (true, w));
    let pred = number_of(word.strip_prefix('P')?, 7)? as u8;
    Some((Guard { pred, not, upred }, rest.trim_start()))
}

/// Parses `T` as `top`, or a number below it.
fn number_of(text: &str, top: u64) -> Option<u64> {
    if text == "T" || text == "Z" { Some(top) } else { text.parse().ok().filter(|n| *n < top) }
}

/// The rest of a mnemonic after the form's text: unchanged, and without each alias word.
fn without_alias<'a>(form: &Form, generation: Generation, rest: &'a str) -> Vec<&'a str> {
    let aliases = ALIASES.iter().filter(|a| a.op == form.op && a.on >> (generation as u8) & 1 != 0);
    let cut = aliases.filter(|a| !a.word.is_empty()).filter_map(|a| rest.strip_prefix('.')?.strip_prefix(a.word));
    std::iter::once(rest).chain(cut).filter(|r| r.is_empty() || r.starts_with('.')).collect()
}

/// Parses the modifiers printed after an operand or the mnemonic: each at most once, in table
/// order, using up the text.
fn modifiers(form: &Form, arg: u8, text: &str, inst: &mut Inst) -> bool {
    let fields: Vec<_> = form.mods.iter().filter(|m| m.arg == arg).collect();
    match_modifiers(&fields, text, inst)
}

fn match_modifiers(fields: &[&crate::tables::encoding::ModField], text: &str, inst: &mut Inst) -> bool {
    let Some((field, others)) = fields.split_first() else { return text.is_empty() };
    let codes = SETS[usize::from(field.set)].iter().filter(|c| field.only.is_none_or(|only| c.1 == only));
    for &(_, value, word) in codes {
        let rest = match word {
            "" => Some(text),
            _ => text.strip_prefix('.').and_then(|t| t.strip_prefix(word)),
        };
        let Some(rest) = rest.filter(|r| r.is_empty() || r.starts_with('.')) else { continue };
        let saved = *inst;
        inst.mods.set(field.kind, value);
        if match_modifiers(others, rest, inst) {
            return true;
        }
        *inst = saved;
    }
    false
}

struct Reader<'a> {
    target: &'a Target,
    form: &'a Form,
    address: u64,
    labels: Option<Addresses<'a>>,
    /// `ROLE=UR4` for operands that are not printed, separated by ` &`.
    hidden: &'a str,
}

impl Reader<'_> {
    /// Parses the operands from position `at` on. An optional operand is first tried as present.
    fn operands(&self, at: usize, text: &str, first: bool, inst: Inst) -> Option<Inst> {
        let Some(field) = self.form.args.get(at) else { return text.trim().is_empty().then_some(inst) };
        let count = match field.group {
            0 => 1,
            group => self.form.args[at..].iter().take_while(|a| a.group == group).count(),
        };
        let body = match field.join {
            _ if first => Some(text.trim_start()),
            ", " => text.trim_start().strip_prefix(',').map(str::trim_start),
            _ => Some(text.trim_start()),
        };
        let mut taken = inst;
        let rest = body.filter(|b| !b.is_empty()).and_then(|body| match field.group {
            0 => self.operand(at, body, false, &mut taken),
            _ => self.bracket(at..at + count, body, &mut taken),
        });
        let present = rest.and_then(|rest| self.operands(at + count, rest, false, taken));
        if present.is_some() || field.elide.is_none() && field.kind != Kind::Word || field.group != 0 {
            return present;
        }
        let mut inst = inst;
        if field.kind == Kind::Word {
            self.word(at, "", &mut inst)?;
            return self.operands(at + 1, text, first, inst);
        }
        if field.elide.is_some_and(|e| e.0 == NEVER_PRINTED) {
            // Its note supplies the operand; without a note the line is incomplete.
            self.said(field)?;
        }
        self.leave_out(field, &mut inst);
        self.operands(at + 1, text, first, inst)
    }

    /// The note about an operand.
    fn said(&self, field: &ArgField) -> Option<&str> {
        let role = self.form.op.info().roles[usize::from(field.slot)].role.name();
        self.note("", role)
    }

    /// Fills in operands and modifiers from the notes.
    fn notes(&self, inst: &mut Inst) -> Option<()> {
        for field in self.form.args.iter().filter(|f| !f.is_only_printed()) {
            let Some(said) = self.said(field) else { continue };
            let slot = &mut inst.args[usize::from(field.slot)];
            let (not, word) = said.strip_prefix('!').map_or((false, said), |word| (true, word));
            let mut arg = Arg { kind: field::kind_of(field.kind), not, ..*slot };
            match (integer(word), field.kind) {
                (Some(number), _) => arg.val = number as u64,
                (None, kind) => self.number(kind, word, &mut arg)?,
            }
            *slot = arg;
        }
        for field in self.form.mods {
            let Some(said) = self.note(".", field.kind.name()) else { continue };
            let text = if said == "-" { "" } else { said };
            let value = SETS[usize::from(field.set)].iter().find(|c| field.kind.text(c.1) == text)?.1;
            inst.mods.set(field.kind, value);
        }
        Some(())
    }

    /// The value of a note ` &PREFIXname=VALUE`.
    fn note(&self, prefix: &str, name: &str) -> Option<&str> {
        let values = self.hidden.split('&').map(str::trim);
        values.filter_map(|n| n.strip_prefix(prefix)?.strip_prefix(name)?.strip_prefix('=')).next()
    }

    fn leave_out(&self, field: &ArgField, inst: &mut Inst) {
        if let Some((val, not)) = field.elide {
            let slot = &mut inst.args[usize::from(field.slot)];
            let bank = if field.kind == Kind::Offset { slot.bank } else { 0 };
            *slot = Arg { kind: field::kind_of(field.kind), val, not, bank, ..Arg::default() };
        }
    }

    fn bracket<'t>(&self, parts: std::ops::Range<usize>, text: &'t str, inst: &mut Inst) -> Option<&'t str> {
        let mut rest = text.strip_prefix(self.form.args[parts.start].open)?;
        let mut any = false;
        let last = parts.end - 1;
        for at in parts {
            let field = &self.form.args[at];
            let body = if any { rest.strip_prefix('+') } else { Some(rest) };
            let mut taken = *inst;
            match body.and_then(|body| self.operand(at, body, true, &mut taken)) {
                Some(after) => {
                    if field.kind == Kind::Signed && !any || field.kind == Kind::Unbased {
                        let slot = &mut taken.args[usize::from(field.slot)];
                        slot.val = field::sign_extend(slot.val, field.bits.width()) as u64;
                    }
                    (*inst, rest, any) = (taken, after, true);
                }
                None if field.elide.is_some() => self.leave_out(field, inst),
                None => return None,
            }
        }
        let rest = rest.strip_prefix(']')?;
        let behind = last as u8 | BEHIND;
        if !self.form.mods.iter().any(|m| m.arg == behind) {
            return Some(rest);
        }
        let (suffixes, rest) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
        modifiers(self.form, behind, suffixes.trim_end(), inst).then_some(rest)
    }

    /// Sets a modifier that is printed as an operand to the value with this text.
    fn word(&self, at: usize, text: &str, inst: &mut Inst) -> Option<()> {
        let field = self.form.mods.iter().find(|m| usize::from(m.arg) == at)?;
        let codes = SETS[usize::from(field.set)].iter().filter(|c| field.only.is_none_or(|only| c.1 == only));
        let value = codes.filter(|c| c.2 == text).map(|c| c.1).next()?;
        inst.mods.set(field.kind, value);
        Some(())
    }

    /// Parses one operand; returns the rest of the text.
    fn operand<'t>(&self, at: usize, text: &'t str, bracketed: bool, inst: &mut Inst) -> Option<&'t str> {
        let field = &self.form.args[at];
        if field.kind == Kind::Literal {
            return text.strip_prefix(field.literal);
        }
        if matches!(field.kind, Kind::Word | Kind::Following) {
            let (word, rest) = text.split_at(text.find([',', ']']).unwrap_or(text.len()));
            match field.kind {
                Kind::Word => self.word(at, word.trim(), inst)?,
                // The previous operand determines the value; the comparison of the whole line
                // confirms it.
                _ => word.strip_prefix("UR").map(|_| ())?,
            }
            return Some(rest);
        }
        let blank = self.form.args.get(at + 1).filter(|next| next.join == " ").and_then(|_| text.find(' '));
        let end = end_of(field.kind, text, bracketed).min(blank.unwrap_or(usize::MAX));
        let (mut word, rest) = (text[..end].trim(), &text[end..]);
        let mut arg = Arg { kind: field::kind_of(field.kind), ..Arg::default() };
        let number = matches!(
            field.kind,
            Kind::Signed
                | Kind::Displacement
                | Kind::Unbased
                | Kind::Offset
                | Kind::Float
                | Kind::Double
                | Kind::Halves
                | Kind::Brains
                | Kind::Half
                | Kind::Brain
        );
        let mut strip = |sign: char, on: bool| match word.strip_prefix(sign).filter(|_| on) {
            Some(rest) => {
                word = rest;
                true
            }
            None => false,
        };
        arg.neg = strip('-', field.neg != 255 && !number);
        arg.not = strip('!', field.not != 255) || strip('~', field.complement != 255);
        let mut behind = "";
        if field.abs != 255 && word.starts_with('|') {
            let (inner, after) = word[1..].split_once('|')?;
            (arg.abs, word, behind) = (true, inner, after);
            if text::suffix_inside(field.kind) {
                (word, behind) = inner.split_at(dot_of(inner).unwrap_or(inner.len()));
            }
        } else if matches!(
            field.kind,
            Kind::Reg | Kind::Inside | Kind::Nonzero | Kind::UReg | Kind::Const | Kind::Bindless
        ) {
            (word, behind) = word.split_at(dot_of(word).unwrap_or(word.len()));
        } else if let Some(dot) = word.rfind(".H").filter(|_| field.kind == Kind::Float) {
            (word, behind) = (word[..dot].trim_end(), &word[dot..]);
        }
        if let Some(after) = behind.strip_prefix(".reuse") {
            (arg.reuse, behind) = (true, after);
        }
        behind = behind.strip_prefix(field.literal)?;
        if !modifiers(self.form, at as u8, behind, inst) {
            return None;
        }
        self.number(field.kind, word, &mut arg)?;
        let slot = &mut inst.args[usize::from(field.slot)];
        match field.kind {
            Kind::Bank => *slot = Arg { kind: ArgKind::Const, bank: arg.bank, ..*slot },
            Kind::Offset => *slot = Arg { bank: slot.bank, ..arg },
            _ => *slot = arg,
        }
        Some(rest)
    }

    fn number(&self, kind: Kind, word: &str, arg: &mut Arg) -> Option<()> {
        let ureg = |text: &str| text.strip_prefix("UR").and_then(|n| number_of(n, 255));
        arg.val = match kind {
            Kind::Reg | Kind::Inside | Kind::Nonzero => number_of(word.strip_prefix('R')?, 255)?,
            Kind::UReg | Kind::NonzeroUReg => ureg(word)?,
            Kind::Pred => number_of(word.strip_prefix('P')?, 7)?,
            Kind::UPred | Kind::InvertedUPred => number_of(word.strip_prefix("UP")?, 7)?,
            Kind::Bar => word.strip_prefix('B')?.parse().ok()?,
            Kind::Hex | Kind::Signed | Kind::Displacement | Kind::Unbased | Kind::Offset => integer(word)? as u64,
            Kind::Decimal => word.parse().ok()?,
            Kind::Float | Kind::Double | Kind::Halves | Kind::Brains | Kind::Half | Kind::Brain => {
                float::parse(kind, word)?
            }
            Kind::Twice => {
                let (first, second) = word.split_once(',')?;
                let number = |text: &str| number_of(text.trim().strip_prefix('R')?, 255);
                number(first).filter(|n| number(second) == Some(*n))?
            }
            Kind::Scoreboard => word.strip_prefix("SB")?.parse().ok()?,
            Kind::Mask => {
                let members = word.strip_prefix('{')?.strip_suffix('}')?;
                let mut mask = 0u64;
                for member in members.split(',').filter(|m| !m.is_empty()) {
                    mask |= 1 << member.trim().parse::<u8>().ok().filter(|n| *n < 64)?;
                }
                mask
            }
            Kind::Distance => integer(word)? as u64,
            Kind::Special => special_by_name(self.target, word)?.into(),
            Kind::Bank => {
                arg.bank = u8::try_from(integer(word)?).ok()?;
                0
            }
            Kind::Const => {
                let (bank, offset) = brackets(word.strip_prefix("c[")?)?;
                arg.bank = u8::try_from(integer(bank)?).ok()?;
                integer(offset)? as u64
            }
            Kind::Bindless => {
                let (handle, offset) = brackets(word.strip_prefix("cx[")?)?;
                arg.bank = ureg(handle)? as u8;
                integer(offset)? as u64
            }
            Kind::Label => {
                let to = match word.strip_prefix("`(").and_then(|w| w.strip_suffix(')')) {
                    Some(name) => self.labels?(name)?,
                    None => integer(word)? as u64,
                };
                to.wrapping_sub(self.address).wrapping_sub(16)
            }
            Kind::Literal | Kind::Word | Kind::Following => 0,
        };
        Some(())
    }
}

/// Position of the modifiers after a register or a constant.
fn dot_of(word: &str) -> Option<usize> {
    word.rfind(']').map_or_else(|| word.find('.'), |i| word[i..].find('.').map(|j| i + j))
}

/// Parses `A][B]`, with optional blanks between the brackets.
fn brackets(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once(']')?;
    Some((first, rest.trim_start().strip_prefix('[')?.strip_suffix(']')?))
}

/// End of an operand: a comma outside brackets (the second one for a pair of halves); inside
/// brackets also the closing bracket, or a `+` that is not part of a number.
fn end_of(kind: Kind, text: &str, bracketed: bool) -> usize {
    let (mut depth, mut commas) = (0, if matches!(kind, Kind::Halves | Kind::Brains | Kind::Twice) { 1 } else { 0 });
    for (i, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' if depth == 0 => return i,
            ']' | '}' => depth -= 1,
            '+' if bracketed && depth == 0 && i > 0 => return i,
            ',' if depth == 0 && commas == 0 => return i,
            ',' if depth == 0 => commas -= 1,
            _ => {}
        }
    }
    text.len()
}

/// A number such as `0x10`, `-0x10`, or decimal.
fn integer(text: &str) -> Option<i64> {
    let (negative, body) = text.strip_prefix('-').map_or((false, text), |t| (true, t));
    let value = match body.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => body.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}
