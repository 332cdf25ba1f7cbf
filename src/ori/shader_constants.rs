//! The words of a constant bank that the host patches before a launch, for one kernel.
//!
//! They stand in front of the compiler's own constants of the same bank. Between the two positions
//! of the pass that fills them the map only grows, and may have words that nothing reads any more;
//! the second position packs it and closes it.

use super::bank_constants::BankConstants;
use crate::tables::patches::{PatchedWord, Program};

/// The map of the words that a host patches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShaderConstants {
    /// Byte offset of the first word in the bank.
    pub start: u32,
    /// Bytes that the host leaves for them; once closed, those that are used.
    pub capacity: u32,
    /// Bytes of the kernel's parameters.
    pub param_bytes: u32,
    /// Whether the map is closed: nothing is extracted any more.
    pub finalised: bool,
    /// The words, by ascending offset, which counts from `start`.
    pub words: Vec<PatchedWord>,
    /// What the first position had no room for.
    pub pending: Vec<Program>,
}

impl ShaderConstants {
    /// The bank, which also has the branch tables and the compiler's own constants.
    pub const BANK: u8 = BankConstants::BANK;

    /// The offset behind the last word, from `start`.
    pub fn end(&self) -> u32 {
        self.words.last().map_or(0, |word| word.offset + 4)
    }

    /// The words with their offsets in the bank.
    pub fn placed(&self) -> Vec<PatchedWord> {
        let one = |word: &PatchedWord| PatchedWord { offset: self.start + word.offset, program: word.program.clone() };
        self.words.iter().map(one).collect()
    }

    /// Reads the text form, which [`std::fmt::Display`] writes:
    /// `START:CAPACITY:PARAMETERS[:final],OFFSET=PROGRAM,…,?=PROGRAM,…`.
    pub fn parse(text: &str) -> Option<ShaderConstants> {
        let mut parts = text.split(',');
        let mut head = parts.next()?.split(':');
        let mut number = || head.next()?.parse().ok();
        let (start, capacity, param_bytes) = (number()?, number()?, number()?);
        let finalised = match head.next() {
            None => false,
            Some("final") => true,
            Some(_) => return None,
        };
        let mut all = ShaderConstants { start, capacity, param_bytes, finalised, ..ShaderConstants::default() };
        for part in parts {
            let (offset, program) = part.split_once('=')?;
            let program = Program::parse(program)?;
            match offset {
                "?" => all.pending.push(program),
                offset => all.words.push(PatchedWord { offset: offset.parse().ok()?, program }),
            }
        }
        Some(all)
    }
}

impl std::fmt::Display for ShaderConstants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.start, self.capacity, self.param_bytes)?;
        if self.finalised {
            write!(f, ":final")?;
        }
        self.words.iter().try_for_each(|word| write!(f, ",{}={}", word.offset, word.program))?;
        self.pending.iter().try_for_each(|program| write!(f, ",?={program}"))
    }
}
