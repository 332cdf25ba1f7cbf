//! The legality matrix: what becomes of each of 236 operations on each of 128 SM configurations.
//!
//! Source: `tables/legality/`. A cell as a double word, in the four classes of the published table: 0, native; below 0x10000, an inline
//! recipe, `(class << 8) | variant`; from 0x01000000, a handler, likewise; 0x08000000, illegal. In front of it stands the operation's id.

use super::instructions::{Named, Pattern, Seen, Wording, Words};
use super::ori::Op;
use super::ptx;
use super::targets::Target;

/// An operation of PTX with a class of types and modifiers: a row of the matrix.
#[derive(Debug)]
pub struct Operation {
    pub name: &'static str,
    pub family: &'static str,
    /// The instructions that it stands for, as PTX writes them.
    pub forms: &'static str,
    /// Lowest `.version` that has it.
    pub min_ptx: &'static str,
    /// Whether it can be compiled; what cannot yet is refused by name.
    pub built: bool,
    /// `published`, `derived` or `proposed`.
    pub status: &'static str,
    pub source: &'static str,
}

/// How an operation is made of others.
#[derive(Debug)]
pub struct RecipeInfo {
    pub class: u32,
    /// It has control flow of its own.
    pub handler: bool,
    /// The phase that applies it, or `lowering`.
    pub phase: &'static str,
    pub what: &'static str,
    /// Names of operations, in the order of the variants' numbers.
    pub variants: &'static [&'static str],
}

/// A rule of the matrix.
#[derive(Debug)]
pub struct Rule {
    /// Who it holds for, as `tables/features.ron` writes it.
    pub on: &'static str,
    pub verdict: &'static str,
    /// Opcodes of which a native operation is one instruction, by its form.
    pub native: &'static [Op],
    /// The incumbent's words, of which the first that fits an instruction holds; none where the operation is legal.
    pub refusal: &'static [Wording],
    pub status: &'static str,
    pub source: &'static str,
}

/// What a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Native,
    Inline { class: u32, variant: u32 },
    Handler { class: u32, variant: u32 },
    Illegal,
}

const HANDLER: u32 = 0x0100_0000;
const ILLEGAL: u32 = 0x0800_0000;

impl Verdict {
    fn of(word: u32) -> Verdict {
        let (class, variant) = (word >> 8 & 0xff, word & 0xff);
        match word {
            0 => Verdict::Native,
            ILLEGAL => Verdict::Illegal,
            _ if word & HANDLER != 0 => Verdict::Handler { class, variant },
            _ => Verdict::Inline { class, variant },
        }
    }

    /// `N`, `E` (expanded in line), `H` (by a handler), `X`.
    pub fn letter(self) -> char {
        match self {
            Verdict::Native => 'N',
            Verdict::Inline { .. } => 'E',
            Verdict::Handler { .. } => 'H',
            Verdict::Illegal => 'X',
        }
    }
}

impl Recipe {
    pub fn info(self) -> &'static RecipeInfo {
        &RECIPES[self as usize]
    }

    /// The recipe with a class number.
    pub fn of(class: u32) -> Option<Recipe> {
        Recipe::ALL.into_iter().find(|r| r.info().class == class)
    }
}

/// A cell: the operation by id, the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub operation: u16,
    pub column: u8,
}

impl Cell {
    /// The cell of an operation on a target, both by name.
    pub fn named(operation: &str, target: &Target) -> Option<Cell> {
        let operation = *OPERATION_BY_NAME.get(operation)?;
        Some(Cell { operation, column: u8::try_from(target.column).ok().filter(|c| *c < 128)? })
    }

    pub fn verdict(self) -> Verdict {
        Verdict::of(self.word())
    }

    /// The rule that holds; none where the column is no target.
    pub fn rule(self) -> Option<&'static Rule> {
        RULES.get(usize::from(CELL_RULES[usize::from(self.operation)][usize::from(self.column)]))
    }

    /// The incumbent's words where the operation is refused, all that there are for its instructions.
    pub fn refusal(self, target: &Target) -> Option<String> {
        let rule = self.rule().filter(|rule| !rule.refusal.is_empty())?;
        rule.verdict.strip_prefix("illegal ").map(|text| text.replace("{target}", target.name))
    }

    /// The second double word of the cell; the first is the operation's id.
    pub fn word(self) -> u32 {
        CELLS[usize::from(self.operation)][usize::from(self.column)]
    }
}

/// What an instruction of this name may be.
pub fn known(op: ptx::Op) -> &'static Named {
    &KNOWN[op as usize]
}

/// Likewise for one that has no forms yet.
pub fn planned(name: &str) -> Option<&'static Named> {
    PLANNED.get(name)
}

/// Likewise for the use of a special register, its name without `%` and, of a vector, without the element.
pub fn special(name: &str) -> Option<&'static Named> {
    SPECIALS.get(name)
}

/// Why an instruction is refused on a target: the words of the first of its operations that are illegal there.
pub fn refusal(named: &Named, seen: &Seen, target: &Target) -> Option<String> {
    let column = u8::try_from(target.column).ok().filter(|_| named.refuses_on(target))?;
    // Few of a name's operations are illegal on a target: those are asked for first.
    let mut rules = named.patterns.iter().filter_map(|pattern| {
        let rule = Cell { operation: pattern.operation, column }.rule()?;
        (!rule.refusal.is_empty() && pattern.takes(seen)).then_some(rule)
    });
    let rule = rules.next()?;
    Some(seen.worded(rule.refusal, target))
}

/// The matrix in the order of the published table: 236 × 128 pairs of double words, the operation's id and what is done with it.
pub fn double_words() -> impl Iterator<Item = [u32; 2]> {
    (0u16..).zip(&CELLS).flat_map(|(op, row)| row.iter().map(move |word| [op.into(), *word]))
}

include!(concat!(env!("OUT_DIR"), "/legality.rs"));
