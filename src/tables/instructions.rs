//! Which operations of the legality matrix an instruction is of.
//!
//! Source: `tables/legality/instructions.ron`. Input: an instruction as it is written. Output: operations by id, and the words in which one is refused. A look-up:
//! the patterns of an instruction's name are few, and most names have none that is illegal on a target, which one bit says.

use super::ptx::ScalarType;
use super::targets::Target;

/// An instruction as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The operation's name, or a special register's with `%`.
    pub name: &'a str,
    /// Modifiers and types, without dots.
    pub words: &'a [&'a str],
    pub operands: usize,
    /// Whether an operand is a register.
    pub register: bool,
    /// Whether an operand is `a|b`.
    pub pair: bool,
}

/// What an instruction of one name may be.
#[derive(Debug)]
pub struct Named {
    /// The columns of targets on which one of the operations is illegal.
    pub illegal: u128,
    /// In the order of the operations.
    pub patterns: &'static [Pattern],
}

/// What an instruction must be to be of an operation.
#[derive(Debug)]
pub struct Pattern {
    pub operation: u16,
    pub words: &'static [Words],
    pub operands: Option<u8>,
    pub register: Option<bool>,
    pub pair: Option<bool>,
}

/// Words of which one must stand in the instruction, or none.
#[derive(Debug)]
pub struct Words {
    /// Only this type, counted from 0.
    pub nth: Option<u8>,
    pub absent: bool,
    pub words: &'static [&'static str],
}

/// A refusal and what it is for.
#[derive(Debug)]
pub struct Wording {
    /// One of each of these must stand in the instruction, as its name or behind it.
    pub words: &'static [&'static [&'static str]],
    pub text: &'static str,
}

/// What is said where no wording fits.
const GENERAL: &str = "Instruction '{op}' not supported on .target '{target}'";

impl Named {
    /// Whether one of the operations is illegal on a target.
    pub fn refuses_on(&self, target: &Target) -> bool {
        self.illegal.checked_shr(target.column).is_some_and(|bits| bits & 1 != 0)
    }

    /// The operations that an instruction of this name is of, by id.
    pub fn operations(&self, seen: &Seen) -> impl Iterator<Item = u16> {
        self.patterns.iter().filter(|pattern| pattern.takes(seen)).map(|pattern| pattern.operation)
    }
}

impl Pattern {
    /// Whether an instruction of one of its names is one that it is for.
    pub fn takes(&self, seen: &Seen) -> bool {
        self.words.iter().all(|words| words.fit(seen))
            && self.operands.is_none_or(|count| usize::from(count) == seen.operands)
            && self.register.is_none_or(|register| register == seen.register)
            && self.pair.is_none_or(|pair| pair == seen.pair)
    }
}

impl Words {
    fn fit(&self, seen: &Seen) -> bool {
        let found = match self.nth {
            None => seen.words.iter().any(|word| self.words.contains(word)),
            Some(nth) => seen.types().nth(nth.into()).is_some_and(|ty| self.words.contains(&ty)),
        };
        found != self.absent
    }
}

impl<'a> Seen<'a> {
    fn types(&self) -> impl Iterator<Item = &'a str> {
        self.words.iter().copied().filter(|word| ScalarType::by_name(word).is_some())
    }

    /// The first wording that fits the instruction, with its names in it.
    pub fn worded(&self, wordings: &[Wording], target: &Target) -> String {
        let found =
            |words: &[&str]| std::iter::once(self.name).chain(self.words.iter().copied()).find(|w| words.contains(w));
        let fits = |wording: &Wording| {
            Some((wording.text, wording.words.iter().map(|words| found(words)).collect::<Option<Vec<&str>>>()?))
        };
        let (text, found) = wordings.iter().find_map(fits).unwrap_or((GENERAL, Vec::new()));
        let types: String = self.types().flat_map(|ty| [".", ty]).collect();
        let mut text = text.replace("{target}", target.name).replace("{op}", self.name).replace("{types}", &types);
        text = text.replace("{type}", self.types().last().unwrap_or_default());
        for (i, word) in found.into_iter().enumerate() {
            text = text.replace(&format!("{{{}}}", i + 1), word);
        }
        text
    }
}
