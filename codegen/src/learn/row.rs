//! Assembles a proposed row of `tables/encoding`, with remarks on everything that needs review.
//!
//! The columns come from a word with its effects, fields and modifiers, and from the tables. They
//! claim each of the bits 0 to 104 once, except for the bits in `open`, which the remarks explain.

use super::args::{Args, mask};
use super::ask::{LAST, Seen};
use super::effect::Effect;
use super::field::{Field, Refused};
use super::known::{self, Roles, Target};
use super::modifier::{Modifier, Modifiers};
use super::syntax::{at, constants, pieces};
use super::text::{Names, Token, mnemonic};
use crate::check::bits::ranges;
use crate::model::Model;
use crate::model::encoding::Form;
use crate::model::form_syntax::Bits;

/// The row as text, rows for sets that the tables lack, and remarks.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    pub row: String,
    pub sets: Vec<String>,
    /// Names of equal sets in the tables.
    pub known: Vec<String>,
    pub remarks: Vec<String>,
    /// Bits with an effect that has no name, with both texts.
    pub unnamed: Vec<String>,
    /// Bits that no column claims.
    pub open: u128,
}

/// Everything known about the word.
pub struct Learned<'a> {
    pub model: &'a Model,
    pub target: &'a Target,
    pub names: &'a Names,
    pub seen: &'a Seen,
    pub fields: Vec<Field>,
    pub refused: Vec<Refused>,
    pub modifiers: Modifiers,
    /// Bits in which the given words differ.
    pub differ: u128,
    /// Bits without effect here but with an effect in another of the given words, with the reason.
    pub elsewhere: Vec<(u128, String)>,
    pub version: String,
}

/// The columns under construction.
struct Columns {
    fix: u128,
    must: u128,
    mods: Vec<String>,
    suffixes: Vec<(usize, String)>,
    text: String,
}

/// Assembles the row.
pub fn propose(mut learned: Learned) -> Proposal {
    let mut out = Proposal::default();
    let (seen, model) = (learned.seen, learned.model);
    let forms = known::decoders(model, learned.target, seen.word);
    widen(&mut learned, &forms);
    let op = opcode(model, &forms, &seen.tokens);
    let guard = guard(seen);
    let mut columns = bits(&learned, guard, &mut out);
    modifiers(&learned, &forms, op, &mut columns, &mut out);
    let illegal = columns.fix & seen.mask(|e| *e == Effect::Illegal);
    if illegal != 0 {
        out.remarks.push(format!("bits {} are in `fix`: the other value of each is illegal", ranges(illegal)));
    }
    let mut roles = Roles::new(model, forms.clone(), op);
    let mut args = Args::new(&seen.tokens, &learned.fields, &mut roles, &columns.suffixes);
    let column = args.column();
    out.remarks.append(&mut args.remarks);
    if !roles.invented.is_empty() {
        out.remarks.push(format!("role names are invented: {}", roles.invented.join(" ")));
    }
    let name = op.map_or_else(|| head(&seen.tokens), |op| model.ori.ops[op].row.op.clone());
    if op.is_none() {
        out.remarks.push(format!("no opcode of tables/ori prints `{name}`: the op is a new name"));
    }
    let mut row = format!("(op: \"{name}\", on: \"{}\"", model.targets.generations[learned.target.generation].name);
    row += &format!(", code: {:#05x}", seen.word & 0xfff);
    for (key, value) in [
        ("text", columns.text),
        ("guard", guard.to_string()),
        ("fix", constants(columns.fix, seen.word)),
        ("mods", columns.mods.join(" ")),
        ("args", column),
        ("must", constants(columns.must, seen.word)),
    ] {
        if !value.is_empty() {
            row += &format!(", {key}: \"{value}\"");
        }
    }
    out.row = format!("{row}, src: \"learned by bit flips through {}\"),", learned.version);
    out
}

/// A uniform register's field is 8 bits wide in the schema unless a row says otherwise; the bits
/// above a narrower field must have no effect.
fn widen(learned: &mut Learned, forms: &[&Form]) {
    let narrow = learned.target.ur_bits as u8;
    let said = |bits: &Bits| forms.iter().any(|f| f.args.iter().any(|a| a.arg.bits.as_ref() == Some(bits)));
    for field in learned.fields.iter_mut().filter(|f| f.kind == "U") {
        if let [(lo, len)] = field.bits.pieces[..]
            && len == narrow
            && !said(&field.bits)
            && (lo + len..lo + 8).all(|b| *learned.seen.effect(b) == Effect::Silent)
        {
            field.bits.pieces = vec![(lo, 8)];
        }
    }
}

/// The guard column by bits 12 to 15: `none`, `u`, or empty for a vector predicate.
fn guard(seen: &Seen) -> &'static str {
    if (12..15).all(|b| matches!(seen.effect(b), Effect::Silent | Effect::Illegal)) {
        return "none";
    }
    let text = seen.bits.iter().find(|b| b.0 == 12).and_then(|b| b.2.as_deref()).unwrap_or("");
    if text.starts_with("@UP") || text.starts_with("@!UP") { "u" } else { "" }
}

fn head(tokens: &[Token]) -> String {
    match tokens.get(mnemonic(tokens).0) {
        Some(Token::Word(text)) => text.clone(),
        _ => String::new(),
    }
}

/// The opcode of a row that decodes the word, otherwise the one with the longest mnemonic that
/// starts the text.
fn opcode(model: &Model, forms: &[&Form], tokens: &[Token]) -> Option<usize> {
    if let Some(form) = forms.first() {
        return Some(form.op);
    }
    let printed = format!("{}.", printed(tokens));
    let texts = model.ori.ops.iter().enumerate().filter(|(_, o)| printed.starts_with(&format!("{}.", o.row.text)));
    texts.max_by_key(|(i, o)| (o.row.text.len(), usize::MAX - i)).map(|t| t.0)
}

fn printed(tokens: &[Token]) -> String {
    let (head, end) = mnemonic(tokens);
    super::text::show(&tokens[head..end])
}

/// Sorts the bits that are neither fields nor modifiers into `fix`, `must` and neither.
fn bits(learned: &Learned, guard: &str, out: &mut Proposal) -> Columns {
    let seen = learned.seen;
    let mut taken: u128 = if guard == "none" { 0xfff } else { 0xffff };
    taken |= learned.fields.iter().fold(0, |m, f| m | mask(f));
    taken |= learned.modifiers.list.iter().fold(0, |m, f| m | f.mask());
    let free = ((1u128 << (LAST + 1)) - 1) & !taken;
    let silent = seen.mask(|e| *e == Effect::Silent) & free;
    let mut columns =
        Columns { fix: free & !silent, must: silent, mods: Vec::new(), suffixes: Vec::new(), text: String::new() };
    let flipped = |bit: u8| seen.bits.iter().find(|b| b.0 == bit).and_then(|b| b.2.clone()).unwrap_or("illegal".into());
    for bit in 16..=LAST {
        let here = |m: u128| m >> bit & 1 != 0;
        if !here(columns.fix) || *seen.effect(bit) == Effect::Illegal && !here(learned.differ) {
            continue;
        }
        let refused = learned.refused.iter().find(|r| here(r.bits)).map(|r| r.why.as_str());
        let form = learned.modifiers.forms.iter().find(|f| here(f.0)).map(|f| f.1.as_str());
        let why = refused.or(form).unwrap_or("another form or opcode");
        out.unnamed.push(format!("bit {bit}: `{}` -> `{}`: {why}", seen.text, flipped(bit)));
    }
    for (bits, why) in learned.elsewhere.iter().filter(|e| e.0 & silent != 0) {
        out.unnamed.push(format!("bits {}: {why}", ranges(bits & silent)));
        columns.must &= !bits;
    }
    let differ = learned.differ & (columns.fix | columns.must);
    if differ != 0 {
        out.unnamed.push(format!("bits {}: the given words differ in them, and no field has them", ranges(differ)));
        columns.fix &= !differ;
        columns.must &= !differ;
    }
    out.open = free & !columns.fix & !columns.must;
    out.remarks.extend(learned.modifiers.remarks.iter().cloned());
    columns
}

/// The columns `mods` and `text`, suffixes after operands, and rows for new sets.
fn modifiers(learned: &Learned, forms: &[&Form], op: Option<usize>, columns: &mut Columns, out: &mut Proposal) {
    let tokens = &learned.seen.tokens;
    let (head_at, end) = mnemonic(tokens);
    for at in (0..tokens.len()).filter(|i| !matches!(tokens[*i], Token::Suffix(_))) {
        let list: Vec<&Modifier> = learned.modifiers.list.iter().filter(|m| m.behind == at).collect();
        let operand = at != head_at;
        let suffixes = tokens[at + 1..].iter().map_while(|t| match t {
            Token::Suffix(text) => Some(text.clone()),
            _ => None,
        });
        let mut rest: Vec<String> = suffixes.collect();
        for modifier in list.iter().rev() {
            let text = modifier.values.iter().find(|v| v.0 == modifier.code(learned.seen.word));
            let count = text.filter(|t| !t.1.is_empty()).map_or(0, |t| t.1.split('.').count());
            rest.drain(modifier.order.min(rest.len())..(modifier.order + count).min(rest.len()));
        }
        let mut words = constants_of(learned, forms, op, operand, rest, columns, out);
        words.extend(list.iter().map(|m| set(learned, forms, m, out)));
        match operand {
            false => columns.mods = words,
            true if at >= end => columns.suffixes.extend(words.into_iter().map(|w| (at, format!(".{w}")))),
            true => {}
        }
    }
}

/// Suffixes that no modifier produces: part of the opcode's text, a fixed modifier of a row, or a
/// literal.
fn constants_of(
    learned: &Learned,
    forms: &[&Form],
    op: Option<usize>,
    operand: bool,
    mut rest: Vec<String>,
    columns: &mut Columns,
    out: &mut Proposal,
) -> Vec<String> {
    let head = head(&learned.seen.tokens);
    let own = op.map_or(head.clone(), |op| learned.model.ori.ops[op].row.text.clone());
    let row_text = forms.first().map_or(own.clone(), |f| f.text.clone());
    if !operand {
        let known = row_text.strip_prefix(&format!("{head}.")).map_or(0, |t| t.split('.').count());
        let fits = known <= rest.len() && [vec![head.clone()], rest[..known].to_vec()].concat().join(".") == row_text;
        rest.drain(..if fits { known } else { 0 });
        if row_text != own {
            columns.text = row_text.clone();
        }
    }
    let mut words = Vec::new();
    for suffix in rest {
        if let Some((word, bits)) = known::fixed_modifier(learned.model, forms, &suffix, operand, columns.fix) {
            columns.fix &= !bits;
            out.remarks
                .push(format!("`.{suffix}` is `{word}` in the row that decodes the word; no flip here shows it"));
            words.push(word);
        } else if operand {
            out.remarks
                .push(format!("no bit alone changes the suffix `.{suffix}` of an operand: written as a literal"));
            words.push(format!("'{suffix}"));
        } else {
            out.remarks.push(format!("no bit alone changes the suffix `.{suffix}`: written as part of `text`"));
            columns.text = format!("{}.{suffix}", if columns.text.is_empty() { &row_text } else { &columns.text });
        }
    }
    words
}

/// `set@bits` of a modifier: an equal set of the tables, or a new one with its row.
fn set(learned: &Learned, forms: &[&Form], modifier: &Modifier, out: &mut Proposal) -> String {
    let orders = orders(forms, modifier);
    for order in &orders {
        let equal = known::equal_sets(learned.model, forms, order);
        if let Some(first) = equal.first() {
            let names: Vec<&str> = equal.iter().map(|s| learned.model.ori.sets[*s].name.as_str()).collect();
            out.known.push(format!("bits {}: set `{}`", at(&order.bits), names.join("`, `")));
            return format!("{}@{}", learned.model.ori.sets[*first].name, at(&order.bits));
        }
    }
    let at = at(&modifier.bits);
    let name = format!("{}_{}", head(&learned.seen.tokens).to_lowercase(), modifier.bits[0]);
    let mut values = modifier.values.clone();
    values.sort_by_key(|v| (!v.1.is_empty(), v.0));
    let values: Vec<String> =
        values.iter().map(|(v, t)| format!("{v}={}", if t.is_empty() { "-" } else { t })).collect();
    let src = format!("all codes through {}", learned.version);
    out.sets.push(format!("(kind: \"{name}\", set: \"{name}\", values: \"{}\", src: \"{src}\"),", values.join(" ")));
    out.remarks.push(format!("`{name}` is an invented name of a kind and of a set"));
    out.remarks.extend(known::nearest(learned.model, forms, modifier).map(|n| format!("bits {at}: {n}")));
    format!("{name}@{at}")
}

/// The modifier as it is, and with its parts in the other orders that rows use or may use
/// (`80+76`); its codes change accordingly.
fn orders(forms: &[&Form], modifier: &Modifier) -> Vec<Modifier> {
    let parts = pieces(&modifier.bits);
    let flat = |parts: &[(u8, u8)]| parts.iter().flat_map(|(lo, len)| *lo..lo + len).collect::<Vec<u8>>();
    let mut orders = vec![modifier.bits.clone(), flat(&parts.iter().rev().copied().collect::<Vec<_>>())];
    let used = forms.iter().flat_map(|f| &f.mods).filter_map(|m| m.bits.as_ref());
    orders.extend(used.filter(|b| b.mask() == modifier.mask()).map(|b| flat(&b.pieces)));
    orders.dedup();
    let recoded = |bits: Vec<u8>| {
        let mut other = Modifier { bits, ..modifier.clone() };
        let codes: Vec<u64> = modifier.values.iter().map(|v| other.code(modifier.place(v.0))).collect();
        other.values.iter_mut().zip(codes).for_each(|(v, code)| v.0 = code);
        other
    };
    orders.into_iter().map(recoded).collect()
}
