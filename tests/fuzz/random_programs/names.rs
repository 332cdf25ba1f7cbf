//! Register names in the text of PTX instructions.
//!
//! A word is a run of letters, digits and `_`; after a dot it is a modifier, a type or a part and
//! not a name. The programs name registers by a letter for the kind and a number.

use std::collections::BTreeSet;

/// Letters of the kinds of registers; predicates are the last.
pub const LETTERS: &str = "rdfehp";

/// Replaces names in a text; `f` returns the replacement, or `None` to keep the name.
pub fn replaced(text: &str, mut f: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(start) = rest.find(in_word) {
        out += &rest[..start];
        rest = &rest[start..];
        let (word, behind) = rest.split_at(rest.find(|c| !in_word(c)).unwrap_or(rest.len()));
        rest = behind;
        match f(word).filter(|_| !out.ends_with('.')) {
            Some(new) => out += &new,
            None => out += word,
        }
    }
    out + rest
}

/// Every name in a text once, in order.
pub fn names(text: &str) -> Vec<String> {
    let (mut list, mut seen) = (Vec::new(), BTreeSet::new());
    let mut rest = text;
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut before = ' ';
    while let Some(start) = rest.find(in_word) {
        before = rest[..start].chars().next_back().unwrap_or(before);
        let (word, behind) = rest[start..].split_at(rest[start..].find(|c| !in_word(c)).unwrap_or(rest.len() - start));
        rest = behind;
        if before != '.' && seen.insert(word) {
            list.push(word.to_string());
        }
    }
    list
}

/// Kind letter and number of a register.
pub fn register(word: &str) -> Option<(char, usize)> {
    let letter = word.chars().next().filter(|c| LETTERS.contains(*c))?;
    Some((letter, word[1..].parse().ok()?))
}

/// The registers that a text names.
pub fn registers(text: &str) -> Vec<String> {
    names(text).into_iter().filter(|name| register(name).is_some()).collect()
}
