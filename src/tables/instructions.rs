//! Assigns instructions to the operations of the legality matrix.
//!
//! Source: `tables/legality/instructions.ron`. An instruction as written gives operation ids, and
//! the message if one of them is illegal. A bit mask per name answers the usual case, a target on
//! which none of its operations is illegal.

use super::ptx::ScalarType;
use super::targets::Target;

/// An instruction as written.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The operation's name, or a special register's with `%`.
    pub name: &'a str,
    /// Modifiers and types, without dots.
    pub words: &'a [&'a str],
    /// Number of operands.
    pub operands: usize,
    /// Whether some operand is a register.
    pub register: bool,
    /// Whether some operand is `a|b`.
    pub pair: bool,
}

/// The operations that instructions of one name belong to.
#[derive(Debug)]
pub struct Named {
    /// Columns of the targets on which one of the operations is illegal.
    pub illegal: u128,
    /// In the order of the operations.
    pub patterns: &'static [Pattern],
}

/// What an instruction must look like to belong to an operation.
#[derive(Debug)]
pub struct Pattern {
    /// Id of the operation.
    pub operation: u16,
    pub words: &'static [Words],
    /// Required number of operands.
    pub operands: Option<u8>,
    /// Whether some operand must be a register.
    pub register: Option<bool>,
    /// Whether some operand must be `a|b`.
    pub pair: Option<bool>,
}

/// Words of which the instruction must have one, or with `absent` none.
#[derive(Debug)]
pub struct Words {
    /// Only compare the type with this index, from 0.
    pub nth: Option<u8>,
    /// Whether the words must be absent.
    pub absent: bool,
    pub words: &'static [&'static str],
}

/// The message of a refusal and the instructions it is for.
#[derive(Debug)]
pub struct Wording {
    /// The instruction must contain one word of each list, as its name or as a suffix.
    pub words: &'static [&'static [&'static str]],
    pub text: &'static str,
}

/// The message if no wording fits.
const GENERAL: &str = "Instruction '{op}' not supported on .target '{target}'";

impl Named {
    /// Whether one of the operations is illegal on a target.
    pub fn refuses_on(&self, target: &Target) -> bool {
        self.illegal.checked_shr(target.column).is_some_and(|bits| bits & 1 != 0)
    }

    /// The ids of the operations that an instruction of this name belongs to.
    pub fn operations(&self, seen: &Seen) -> impl Iterator<Item = u16> {
        self.patterns.iter().filter(|pattern| pattern.takes(seen)).map(|pattern| pattern.operation)
    }
}

impl Pattern {
    /// Whether an instruction of the pattern's name matches it.
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

    /// The first wording that fits the instruction, with its placeholders filled in.
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
