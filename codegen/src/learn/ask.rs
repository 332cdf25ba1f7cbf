//! Queries the disassembler and returns tokens.
//!
//! A word that is illegal or has a reserved value has no tokens. The main query returns the effect
//! of every bit of a word. Each query is one batch.

use super::disasm::Disassembler;
use super::effect::{Effect, effect, reserved};
use super::text::{Names, Token, tokens};

/// Last bit that is flipped individually; the bits above it are the control field.
pub const LAST: u8 = 104;
/// The reuse bits.
pub const REUSE: [u8; 3] = [122, 123, 124];
/// A control field with which nvdisasm prints reuse: two cycles, bit 109, no barriers.
const SHOWS_REUSE: u128 = 0x7f2 << 105;

/// The disassembler and the names that its text uses.
pub struct Ask<'a> {
    pub disassembler: &'a mut dyn Disassembler,
    pub names: &'a Names,
}

/// A bit, the effect of flipping it, and the resulting text and tokens.
pub type Bit = (u8, Effect, Option<String>, Option<Vec<Token>>);

/// A word with the effect of each of its bits.
pub struct Seen {
    pub word: u128,
    pub text: String,
    pub tokens: Vec<Token>,
    pub bits: Vec<Bit>,
}

impl Seen {
    /// The effect of flipping a bit; `Form` for a bit that was not tried.
    pub fn effect(&self, bit: u8) -> &Effect {
        self.bits.iter().find(|b| b.0 == bit).map_or(&Effect::Form, |b| &b.1)
    }

    /// The bits whose effect satisfies a condition, as a mask.
    pub fn mask(&self, wanted: impl Fn(&Effect) -> bool) -> u128 {
        self.bits.iter().filter(|b| wanted(&b.1)).fold(0, |m, b| m | 1 << b.0)
    }
}

impl Ask<'_> {
    /// Tokens of each word; none for illegal words and reserved values.
    pub fn tokens(&mut self, words: &[u128]) -> Result<Vec<Option<Vec<Token>>>, String> {
        let texts = self.disassembler.texts(words)?;
        Ok(texts.into_iter().map(|t| Some(tokens(&t?, self.names)).filter(|t| !reserved(t))).collect())
    }

    /// Flips every bit of a word, after clearing its reuse bits. An illegal word is an error.
    pub fn flips(&mut self, word: u128) -> Result<Seen, String> {
        let word = word & !(0b111 << 122);
        let control = word & (u128::MAX >> 23) | SHOWS_REUSE;
        let mut words = vec![word, control];
        words.extend((0..=LAST).map(|b| word ^ 1 << b));
        words.extend(REUSE.map(|b| control | 1 << b));
        let texts = self.disassembler.texts(&words)?;
        let Some(Some(text)) = texts.first().cloned() else {
            return Err(format!("{word:#034x} is not an instruction"));
        };
        let base = tokens(&text, self.names);
        if base.is_empty() || reserved(&base) {
            return Err(format!("{word:#034x} has a value without a name: {text}"));
        }
        let mut bits = Vec::new();
        for (bit, text) in (0..=LAST).chain(REUSE).zip(&texts[2..]) {
            let other = text.as_ref().map(|t| tokens(t, self.names));
            let same = bit <= LAST || texts[1] == texts[0];
            let effect = if same { effect(&base, other.as_deref(), self.names) } else { Effect::Silent };
            bits.push((bit, effect, text.clone(), other));
        }
        Ok(Seen { word, text, tokens: base, bits })
    }
}
