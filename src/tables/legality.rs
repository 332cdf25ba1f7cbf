//! The legality matrix: how each of 236 operations is compiled on each of 128 SM configurations.
//!
//! Source: `tables/legality/`. A cell is a double word in one of the four classes of the published
//! table: 0, native; below 0x10000, an inline recipe, `(class << 8) | variant`; from 0x01000000, a
//! handler with the same encoding; 0x08000000, illegal. The operation's id precedes it.

use super::instructions::{Named, Pattern, Seen, Wording, Words};
use super::ori::Op;
use super::packed::{Numbers16, Numbers32};
use super::ptx;
use super::targets::Target;

/// A PTX operation with a class of types and modifiers: a row of the matrix.
#[derive(Debug)]
pub struct Operation {
    pub name: &'static str,
    pub family: &'static str,
    /// The PTX instructions that belong to it.
    pub forms: &'static str,
    /// Lowest `.version` that has it.
    pub min_ptx: &'static str,
    /// Whether it is implemented; if not, it is diagnosed as unsupported.
    pub built: bool,
    /// `published`, `derived` or `proposed`.
    pub status: &'static str,
    pub source: &'static str,
}

/// How an operation is built from others.
#[derive(Debug)]
pub struct RecipeInfo {
    /// Class number; the low byte of a cell is the variant.
    pub class: u32,
    /// Whether it needs control flow.
    pub handler: bool,
    /// The phase that applies it, or `lowering`.
    pub phase: &'static str,
    /// Description of the result.
    pub what: &'static str,
    /// Names of operations, by variant number.
    pub variants: &'static [&'static str],
}

/// A rule of the matrix.
#[derive(Debug)]
pub struct Rule {
    /// The targets it applies to, in the syntax of `tables/features.ron`.
    pub on: &'static str,
    /// The verdict as written in the table.
    pub verdict: &'static str,
    /// The opcodes of a native operation, which becomes one instruction.
    pub native: &'static [Op],
    /// The messages of ptxas; the first that fits the instruction applies. Empty if the operation
    /// is legal.
    pub refusal: &'static [Wording],
    pub status: &'static str,
    pub source: &'static str,
}

/// The decoded contents of a cell.
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

    /// `N` (native), `E` (inline expansion), `H` (handler), `X` (illegal).
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
    /// Facts of this recipe.
    pub fn info(self) -> &'static RecipeInfo {
        &RECIPES[self as usize]
    }

    /// The recipe of a class number.
    pub fn of(class: u32) -> Option<Recipe> {
        Recipe::ALL.into_iter().find(|r| r.info().class == class)
    }
}

/// A cell: the operation's id and the column.
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

    /// The decoded contents of the cell.
    pub fn verdict(self) -> Verdict {
        Verdict::of(self.word())
    }

    /// The rule that applies; `None` if the column is not a target.
    pub fn rule(self) -> Option<&'static Rule> {
        RULES.get(usize::from(CELL_RULES[usize::from(self.operation)].get(self.column.into())?))
    }

    /// The messages of ptxas if the operation is illegal: all that there are for its instructions.
    pub fn refusal(self, target: &Target) -> Option<String> {
        let rule = self.rule().filter(|rule| !rule.refusal.is_empty())?;
        rule.verdict.strip_prefix("illegal ").map(|text| text.replace("{target}", target.name))
    }

    /// The second double word of the cell; the first is the operation's id.
    pub fn word(self) -> u32 {
        CELLS[usize::from(self.operation)].get(self.column.into()).unwrap_or(ILLEGAL)
    }
}

/// The operations that instructions of this opcode may belong to.
pub fn known(op: ptx::Op) -> &'static Named {
    &KNOWN[op as usize]
}

/// The same for an instruction without forms.
pub fn planned(name: &str) -> Option<&'static Named> {
    PLANNED.get(name)
}

/// The same for a special register, by its name without `%` and vector element.
pub fn special(name: &str) -> Option<&'static Named> {
    SPECIALS.get(name)
}

/// The message for an instruction that is illegal on a target: that of the first of its operations
/// that is illegal there.
pub fn refusal(named: &Named, seen: &Seen, target: &Target) -> Option<String> {
    let column = u8::try_from(target.column).ok().filter(|_| named.refuses_on(target))?;
    // Few of a name's operations are illegal on a target, so these are tested first.
    let mut rules = named.patterns.iter().filter_map(|pattern| {
        let rule = Cell { operation: pattern.operation, column }.rule()?;
        (!rule.refusal.is_empty() && pattern.takes(seen)).then_some(rule)
    });
    let rule = rules.next()?;
    Some(seen.worded(rule.refusal, target))
}

/// The matrix in the order of the published table: 236 × 128 pairs of double words, each an
/// operation's id and the cell.
pub fn double_words() -> impl Iterator<Item = [u32; 2]> {
    (0u16..).zip(&CELLS).flat_map(|(op, row)| row.iter().map(move |word| [op.into(), word]))
}

include!(concat!(env!("OUT_DIR"), "/legality.rs"));
