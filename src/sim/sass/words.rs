//! The modifiers of an instruction by their printed words.
//!
//! Input: a decoded instruction. Output: questions such as "does it say SAT". Invariant: meanings are keyed by what the
//! disassembler prints, so that neither the number nor the grouping of modifier kinds matters to the machine.

use crate::sass::Inst;

/// The words of one instruction, each with the name of its modifier kind in lower case (empty where unknown).
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

    /// Whether it says this word.
    pub fn has(&self, word: &str) -> bool {
        self.items.iter().any(|(_, text)| text == word)
    }

    /// The word of a kind.
    pub fn kind(&self, kind: &str) -> Option<&str> {
        self.items.iter().find(|(name, _)| name == kind).map(|(_, text)| text.as_str())
    }

    /// The first of these words that it says, in the order of the list.
    pub fn pick<T: Copy>(&self, list: &[(&str, T)]) -> Option<T> {
        list.iter().find(|(word, _)| self.has(word)).map(|(_, value)| *value)
    }

    /// All words.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.items.iter().map(|(kind, text)| (kind.as_str(), text.as_str()))
    }
}
