//! Modifiers of an instruction as their printed words.
//!
//! The simulator identifies meanings by the words that nvdisasm prints, so it does not depend on
//! how the tables number or group modifiers.

use crate::sass::Inst;

/// The words of one instruction, each with the name of its modifier kind in lower case (empty if
/// unknown).
#[derive(Clone, Debug, Default)]
pub struct Words {
    items: Vec<(String, String)>,
}

impl Words {
    /// The words of a decoded instruction.
    pub fn of(inst: &Inst) -> Words {
        let mut words = Words::default();
        for (kind, value) in inst.mods.iter() {
            let name = kind.name();
            for word in kind.text(value).split('.') {
                words.push(name, word);
            }
        }
        words
    }

    /// Adds a word of a kind.
    pub fn push(&mut self, kind: &str, word: &str) {
        if !word.is_empty() && word != "-" {
            self.items.push((kind.to_string(), word.to_string()));
        }
    }

    /// Whether the word is present.
    pub fn has(&self, word: &str) -> bool {
        self.items.iter().any(|(_, text)| text == word)
    }

    /// The word of a kind.
    pub fn kind(&self, kind: &str) -> Option<&str> {
        self.items.iter().find(|(name, _)| name == kind).map(|(_, text)| text.as_str())
    }

    /// The value of the first word in the list that is present.
    pub fn pick<T: Copy>(&self, list: &[(&str, T)]) -> Option<T> {
        list.iter().find(|(word, _)| self.has(word)).map(|(_, value)| *value)
    }

    /// All words, as kind and text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.items.iter().map(|(kind, text)| (kind.as_str(), text.as_str()))
    }
}
