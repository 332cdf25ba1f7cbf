//! Combines bits whose flips change the same number into fields.
//!
//! The input is the effects of all bits, the tokens and the word; the result is operand fields with
//! their marks. A field's bits hold the value that the text shows; otherwise the field is rejected
//! with the reason.

use super::effect::{Effect, Slot, Way, default_of, float_code};
use super::text::{Names, Token, float};
use crate::model::form_syntax::Bits;
use std::collections::BTreeMap;

/// The field of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub slot: Slot,
    /// Kind as named by the schema: `R U P UP B SB SR I S N F D H G L`.
    pub kind: String,
    pub bits: Bits,
    /// A mark and its bit: `-`, `|`, `~`, `!`, and `^` for reuse.
    pub marks: Vec<(char, u8)>,
}

/// Bits that change an operand but form no field, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub bits: u128,
    pub why: String,
}

/// The fields among the effects, in printing order.
pub fn fields(effects: &[(u8, Effect)], base: &[Token], word: u128, names: &Names) -> (Vec<Field>, Vec<Refused>) {
    let mut slots: BTreeMap<Slot, Vec<(u8, Vec<Way>)>> = BTreeMap::new();
    for (bit, effect) in effects {
        if let Effect::Number(slot, ways) = effect {
            slots.entry(slot.clone()).or_default().push((*bit, ways.clone()));
        }
    }
    let (mut list, mut refused) = (Vec::new(), Vec::new());
    for (slot, seen) in slots {
        let mask = seen.iter().fold(0, |m, (bit, _)| m | 1 << bit);
        let Some(class) = common(&seen) else {
            refused.push(Refused { bits: mask, why: "the number changes in no one way".into() });
            continue;
        };
        for bits in pieces(&seen, &class) {
            // A signed number decreases when its top bit is set.
            let top = bits.pieces.last().map_or(0, |(lo, len)| lo + len - 1);
            let signed = word >> top & 1 == 0
                && seen.iter().any(|(b, ways)| *b == top && ways.iter().any(|w| w.fell && w.class == class));
            match kind(&slot, &class, &bits, signed, base, word, names) {
                Ok(kind) => list.push(Field { slot: slot.clone(), kind, bits, marks: Vec::new() }),
                Err(why) => refused.push(Refused { bits: bits.mask(), why }),
            }
        }
        let taken = list.iter().filter(|f| f.slot == slot).fold(0, |m, f| m | f.bits.mask());
        let told = refused.iter().fold(0, |m, r| m | r.bits);
        if mask & !taken & !told != 0 {
            refused.push(Refused { bits: mask & !taken & !told, why: "it fits no run of the field".into() });
        }
    }
    marks(effects, base, word, &mut list, &mut refused);
    (list, refused)
}

/// The class common to all observations; NaNs have none and are ignored.
fn common(seen: &[(u8, Vec<Way>)]) -> Option<String> {
    let known: Vec<&Vec<Way>> = seen.iter().map(|s| &s.1).filter(|w| !w.is_empty()).collect();
    let first = known.first()?;
    let fits = |class: &str| known.iter().all(|ways| ways.iter().any(|w| w.class == class));
    first.iter().map(|w| w.class.clone()).find(|c| fits(c))
}

/// Runs of adjacent bits with increasing powers. Runs of different powers are parts of one field;
/// runs of the same powers are separate fields.
fn pieces(seen: &[(u8, Vec<Way>)], class: &str) -> Vec<Bits> {
    let mut runs: Vec<(u32, u8, u8)> = Vec::new();
    for (bit, ways) in seen {
        let power = ways.iter().find(|w| w.class == class).map(|w| w.power);
        match runs.last_mut() {
            // A NaN is assumed to have the power of its position in the run.
            Some((from, lo, len)) if *lo + *len == *bit && power.is_none_or(|p| p == *from + u32::from(*len)) => {
                *len += 1
            }
            _ => runs.extend(power.map(|p| (p, *bit, 1))),
        }
    }
    runs.sort();
    let apart = runs.windows(2).all(|r| r[0].0 + u32::from(r[0].2) <= r[1].0);
    let meet = runs.windows(2).all(|r| r[0].0 + u32::from(r[0].2) == r[1].0);
    let shift = |from: u32| u8::try_from(from).unwrap_or(0);
    match runs.first() {
        Some(first) if apart && meet => {
            vec![Bits { pieces: runs.iter().map(|r| (r.1, r.2)).collect(), shift: shift(first.0) }]
        }
        _ => runs.iter().map(|r| Bits { pieces: vec![(r.1, r.2)], shift: shift(r.0) }).collect(),
    }
}

/// The value of a field in a word, unsigned.
pub fn extract(bits: &Bits, word: u128) -> u128 {
    let (mut value, mut place) = (0, 0);
    for (lo, len) in &bits.pieces {
        value |= (word >> lo & ((1 << len) - 1)) << place;
        place += len;
    }
    value << bits.shift
}

fn kind(
    slot: &Slot,
    class: &str,
    bits: &Bits,
    signed: bool,
    base: &[Token],
    word: u128,
    names: &Names,
) -> Result<String, String> {
    let shown = if slot.hidden.is_empty() { base[slot.at].clone() } else { unseen(slot, names) };
    let held = extract(bits, word);
    let wrong = || Err(format!("the bits hold {held:#x}, which is not the value that the text means"));
    match &shown {
        Token::Reg(file, number) if *file == class => {
            let name = if file == "UR" { "U" } else { file };
            if bits.shift == 0 && held == u128::from(*number) { Ok(name.into()) } else { wrong() }
        }
        Token::Int(value, hex) if class == "I" => {
            let span = 1i128 << (bits.width() + u32::from(bits.shift)).min(120);
            let agrees = |v: i128| v.rem_euclid(span) == held as i128;
            match agrees(*value) {
                true if !hex => Ok("N".into()),
                true if *value < 0 || signed => Ok("S".into()),
                true => Ok("I".into()),
                // A branch distance counts from the next word.
                false if agrees(*value - 16) => Ok("L".into()),
                false => wrong(),
            }
        }
        Token::Int(..) | Token::Float(_) => {
            let number = match &shown {
                Token::Int(n, _) => Some(*n as f64),
                Token::Float(text) => float(text),
                _ => None,
            };
            match number.and_then(|n| float_code(class, n)) {
                Some(code) if bits.shift == 0 && u128::from(code) == held => Ok(class.into()),
                _ => wrong(),
            }
        }
        _ => wrong(),
    }
}

/// The value of a hidden operand.
fn unseen(slot: &Slot, names: &Names) -> Token {
    let sample = if slot.hidden == "I" { Token::Int(0, true) } else { Token::Reg(slot.hidden.clone(), 0) };
    default_of(&sample, names).map_or(sample, |d| d.1)
}

/// Assigns each sign bit to the field of its operand, which is at or after the sign.
fn marks(effects: &[(u8, Effect)], base: &[Token], word: u128, list: &mut [Field], refused: &mut Vec<Refused>) {
    for (bit, effect) in effects {
        let (slot, mark) = match effect {
            Effect::Mark(slot, mark) => (slot, *mark),
            Effect::Reuse(slot) => (slot, '^'),
            _ => continue,
        };
        let field = list.iter_mut().find(|f| operand(&f.slot, base) == operand(slot, base));
        let set = word >> bit & 1 != 0;
        let printed = slot.hidden.is_empty() && mark != '^' && has_mark(base, slot.at, mark);
        match field {
            _ if set != printed => refused.push(Refused { bits: 1 << bit, why: format!("`{mark}` is shown for a 0") }),
            Some(field) if field.marks.iter().all(|m| m.0 != mark) => field.marks.push((mark, *bit)),
            Some(_) => refused.push(Refused { bits: 1 << bit, why: format!("a second bit for `{mark}`") }),
            None => refused
                .push(Refused { bits: 1 << bit, why: format!("`{mark}` of an operand that no other bit changes") }),
        }
    }
}

/// Operands are identified by their first token: all fields of a constant count for the word `c`
/// before them.
fn operand(slot: &Slot, base: &[Token]) -> (usize, String) {
    (constant_of(base, slot.at).unwrap_or(slot.at), slot.hidden.clone())
}

/// Index of the `c` or `cx` whose brackets enclose a token.
pub fn constant_of(base: &[Token], at: usize) -> Option<usize> {
    let start = base[..at.min(base.len())].iter().rposition(|t| t.is(','));
    let from = start.map_or(0, |i| i + 1);
    (from..at).rev().find(|i| {
        matches!(&base[*i], Token::Word(w) if w == "c" || w == "cx") && base.get(i + 1).is_some_and(|t| t.is('['))
    })
}

fn has_mark(base: &[Token], at: usize, mark: char) -> bool {
    let start = constant_of(base, at).unwrap_or(at);
    base[..start].iter().rev().take_while(|t| matches!(t, Token::Punct('-' | '|' | '~' | '!'))).any(|t| t.is(mark))
}
