//! Classifies how flipping one bit changes the text.
//!
//! It compares the tokens of the word with those of the changed word. An effect without a unique
//! meaning is `Form`, never the nearest guess.

use super::text::{Change, Names, Token, diff, float, mnemonic};

/// The position of an operand: a token of the line, or the position where a hidden operand would
/// be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub at: usize,
    /// Register file (or `I`) of a hidden operand; empty for a printed one.
    pub hidden: String,
}

/// One interpretation of a changed number: the field's class and the power of two by which its code
/// changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// A register file, `I`, or a float kind of the schema (`F D H G`).
    pub class: String,
    pub power: u32,
    /// The number decreased.
    pub fell: bool,
}

/// The effect of flipping one bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Silent,
    /// Not an instruction, or one with a value that nvdisasm marks as reserved.
    Illegal,
    /// Only suffixes appear, disappear or change.
    Suffix,
    /// A number changes; the list is empty if it became a NaN.
    Number(Slot, Vec<Way>),
    /// A sign (`-`, `|`, `~`, `!`) appears or disappears.
    Mark(Slot, char),
    Reuse(Slot),
    /// Another instruction or form, or a change that has no class here.
    Form,
}

/// The effect of changing `base` to `other`.
pub fn effect(base: &[Token], other: Option<&[Token]>, names: &Names) -> Effect {
    let Some(other) = other.filter(|o| !reserved(o)) else { return Effect::Illegal };
    let Some(change) = diff(base, other) else { return Effect::Silent };
    let ((head, end), (other_head, other_end)) = (mnemonic(base), mnemonic(other));
    if base[..=head.min(base.len() - 1)] != other[..=other_head.min(other.len() - 1)] {
        return Effect::Form;
    }
    if change.removed.iter().chain(&change.added).all(|t| matches!(t, Token::Suffix(_))) {
        let reuse = change.removed.is_empty() && change.added == [Token::Suffix("reuse".into())];
        return if reuse { reuse_of(base, change.at) } else { Effect::Suffix };
    }
    match diff(&base[end..], &other[other_end..]) {
        Some(inner) => operand(base, Change { at: inner.at + end, ..inner }, names),
        None => Effect::Suffix,
    }
}

/// Whether a line has a value that nvdisasm has no name for.
pub fn reserved(tokens: &[Token]) -> bool {
    tokens.iter().any(|t| match t {
        Token::Suffix(s) | Token::Word(s) => s.contains("???") || s.contains("INVALID"),
        _ => false,
    })
}

fn reuse_of(base: &[Token], at: usize) -> Effect {
    match base[..at].iter().rposition(Token::is_atom) {
        Some(at) => Effect::Reuse(Slot { at, hidden: String::new() }),
        None => Effect::Form,
    }
}

fn operand(base: &[Token], change: Change, names: &Names) -> Effect {
    let shown = |from: usize| {
        let at = base[from..].iter().position(Token::is_atom).map(|i| from + i)?;
        Some(Slot { at, hidden: String::new() })
    };
    match (change.removed.as_slice(), change.added.as_slice()) {
        ([a], [b]) if a.is_atom() && b.is_atom() => {
            ways(a, b).map_or(Effect::Form, |ways| Effect::Number(Slot { at: change.at, hidden: String::new() }, ways))
        }
        ([], [Token::Punct(c @ ('-' | '~' | '!'))]) | ([Token::Punct(c @ ('-' | '~' | '!'))], []) => {
            shown(change.at).map_or(Effect::Form, |slot| Effect::Mark(slot, *c))
        }
        ([], added) => hidden(change.at, added, names).unwrap_or(Effect::Form),
        (removed, []) => vanished(change.at, removed, names).unwrap_or(Effect::Form),
        (a, b) if bars(a, b) || bars(b, a) => shown(change.at).map_or(Effect::Form, |slot| Effect::Mark(slot, '|')),
        _ => Effect::Form,
    }
}

/// Whether `b` is `a` enclosed in bars.
fn bars(a: &[Token], b: &[Token]) -> bool {
    b.len() == a.len() + 2 && b[0].is('|') && b[b.len() - 1].is('|') && b[1..b.len() - 1] == *a
}

/// A hidden operand appears: compares its number with the hidden value.
fn hidden(at: usize, added: &[Token], names: &Names) -> Option<Effect> {
    let atoms: Vec<&Token> = added.iter().filter(|t| t.is_atom()).collect();
    let [atom] = atoms[..] else { return None };
    if !added.iter().all(|t| t.is_atom() || t.is(',') || t.is('+') || t.is('!')) {
        return None;
    }
    let (class, default) = default_of(atom, names)?;
    let slot = Slot { at, hidden: class.clone() };
    match (ways(&default, atom), added.iter().any(|t| t.is('!'))) {
        (Some(ways), false) if !ways.is_empty() => Some(Effect::Number(slot, ways)),
        (_, true) if default == *atom => Some(Effect::Mark(slot, '!')),
        _ => None,
    }
}

/// A printed operand becomes hidden.
fn vanished(at: usize, removed: &[Token], names: &Names) -> Option<Effect> {
    let inner = removed.iter().position(Token::is_atom)?;
    let plain = removed.iter().all(|t| t.is_atom() || t.is(',') || t.is('+'));
    if !plain || removed.iter().filter(|t| t.is_atom()).count() != 1 {
        return None;
    }
    let (_, default) = default_of(&removed[inner], names)?;
    let ways = ways(&removed[inner], &default).filter(|w| !w.is_empty())?;
    Some(Effect::Number(Slot { at: at + inner, hidden: String::new() }, ways))
}

/// Class and value that hide an operand.
pub fn default_of(atom: &Token, names: &Names) -> Option<(String, Token)> {
    match atom {
        Token::Reg(file, _) => {
            let number = match file.as_str() {
                "R" => 255,
                "UR" => names.urz,
                "P" | "UP" => 7,
                _ => return None,
            };
            Some((file.clone(), Token::Reg(file.clone(), number)))
        }
        Token::Int(_, hex) => Some(("I".into(), Token::Int(0, *hex))),
        _ => None,
    }
}

/// Interpretations of one atom becoming another: `None` if their codes differ in more than one bit,
/// empty for a NaN.
fn ways(a: &Token, b: &Token) -> Option<Vec<Way>> {
    let way = |class: &str, power: u32, fell: bool| Way { class: class.into(), power, fell };
    match (a, b) {
        (Token::Reg(x, m), Token::Reg(y, n)) if x == y => {
            (m ^ n).is_power_of_two().then(|| vec![way(x, (m ^ n).trailing_zeros(), false)])
        }
        (Token::Int(m, hex), Token::Int(n, _)) if *hex => {
            let size = (n - m).unsigned_abs();
            size.is_power_of_two().then(|| vec![way("I", size.trailing_zeros(), n < m)])
        }
        (Token::Float(_) | Token::Int(..), Token::Float(_) | Token::Int(..)) => {
            let mut list = Vec::new();
            if let (Token::Int(m, _), Token::Int(n, _)) = (a, b) {
                let size = (n - m).unsigned_abs();
                if size.is_power_of_two() {
                    list.push(way("I", size.trailing_zeros(), n < m));
                }
            }
            let (Some(x), Some(y)) = (number(a), number(b)) else { return Some(Vec::new()) };
            for kind in ["F", "D", "H", "G"] {
                let codes = float_code(kind, x).zip(float_code(kind, y)).map(|(p, q)| p ^ q);
                if let Some(bit) = codes.filter(|c| c.is_power_of_two()) {
                    list.push(way(kind, bit.trailing_zeros(), false));
                }
            }
            (!list.is_empty()).then_some(list)
        }
        _ => None,
    }
}

fn number(token: &Token) -> Option<f64> {
    match token {
        Token::Int(n, _) => Some(*n as f64),
        Token::Float(text) => float(text),
        _ => None,
    }
}

/// The bits of a number in a float kind of the schema, if it is exact there (nvdisasm prints enough
/// digits for that).
pub fn float_code(kind: &str, value: f64) -> Option<u32> {
    let single = value as f32;
    match kind {
        "F" => Some(single.to_bits()),
        "D" => Some((value.to_bits() >> 32) as u32),
        "G" => Some(single.to_bits() >> 16).filter(|_| single.to_bits() & 0xffff == 0),
        "H" => half(value),
        _ => None,
    }
}

fn half(value: f64) -> Option<u32> {
    let sign = u32::from(value.is_sign_negative()) << 15;
    let size = value.abs();
    if size.is_infinite() {
        return Some(sign | 0x7c00);
    }
    // Subnormals count in units of 2^-24; a normal number of exponent e counts in units of
    // 2^(e-25).
    (0..31u32).find_map(|e| {
        let unit = 2f64.powi(e.max(1) as i32 - 25);
        let count = size / unit;
        let whole = count.fract() == 0.0;
        let fits = if e == 0 { count < 1024.0 } else { (1024.0..2048.0).contains(&count) };
        (whole && fits).then_some(sign | e << 10 | count as u32 & 0x3ff)
    })
}
