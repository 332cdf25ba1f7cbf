//! Encoding forms: which bits of a 128-bit word hold what, per opcode and operand form.
//!
//! Pure data and look-ups; `sass` reads and writes words by it. Invariant, checked when the tables are generated: the
//! parts of a form claim each of the 128 bits once, and within a generation no word fits two forms.

use super::{Feature, Generation, Mod, Op, Target};

/// The bits of a field, lowest part first, as (lowest bit, count); the value is shifted left by `shift` when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    pub pieces: [(u8, u8); 3],
    pub shift: u8,
}

/// As the first part of [`ArgField::elide`]: the operand is not printed at all.
pub const NEVER_PRINTED: u64 = u64::MAX;

/// In [`ModField::arg`]: behind the bracket.
pub const BEHIND: u8 = 0x40;

/// No bits at all.
pub const NO_BITS: Bits = Bits { pieces: [(0, 0); 3], shift: 0 };

impl Bits {
    /// Number of bits.
    pub fn width(&self) -> u32 {
        self.pieces.iter().map(|p| u32::from(p.1)).sum()
    }

    /// The raw value in a word, unshifted.
    pub fn read(&self, word: u128) -> u64 {
        let (mut value, mut at) = (0u128, 0);
        for (lo, len) in self.pieces {
            value |= (word >> lo & ((1 << len) - 1)) << at;
            at += u32::from(len);
        }
        value as u64
    }

    /// A raw value at the field's place. The caller has checked that it fits.
    pub fn place(&self, value: u64) -> u128 {
        let (mut value, mut word) = (u128::from(value), 0u128);
        for (lo, len) in self.pieces {
            word |= (value & ((1 << len) - 1)) << lo;
            value >>= len;
        }
        word
    }
}

/// How the guard predicate of a form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardForm {
    Vector,
    Uniform,
    /// Bits 12 to 15 are not a guard.
    None,
}

/// What an operand field holds and how it prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// General register, 8 bits.
    Reg,
    /// Uniform register: 8 bits of room, of which the generation uses `ur_bits`.
    UReg,
    Pred,
    UPred,
    /// A uniform predicate whose number is stored inverted: 0 is UPT.
    InvertedUPred,
    /// A uniform register other than URZ.
    NonzeroUReg,
    /// The uniform register behind the one that the operand before it holds; only printed.
    Following,
    /// A modifier that stands as an operand, without a dot; nothing where its text is empty.
    Word,
    Bar,
    /// Unsigned, printed in hexadecimal.
    Hex,
    /// Two's complement, printed in hexadecimal with a sign; without one where it stands alone in brackets.
    Signed,
    /// As `Signed`, with its sign also where it stands alone.
    Displacement,
    /// As `Signed`, without a sign where no general register stands in the same brackets.
    Unbased,
    Decimal,
    /// Bits of an f32.
    Float,
    /// Bits of two halves, printed high one first.
    Halves,
    /// Bits of two bf16 numbers, printed high one first.
    Brains,
    /// Bits of a half.
    Half,
    /// Bits of a bf16 number.
    Brain,
    /// High word of an f64; the operand holds all 64 bits.
    Double,
    /// Signed distance from the end of the instruction.
    Label,
    Special,
    /// A general register whose modifiers print inside the bars of `| |`.
    Inside,
    /// A general register other than RZ.
    Nonzero,
    /// A general register that prints twice (`R2, R2`).
    Twice,
    /// Number of a scoreboard.
    Scoreboard,
    /// A set of scoreboards, one bit each.
    Mask,
    /// A label that prints as its distance.
    Distance,
    /// `c[bank][offset]`.
    Const,
    /// `cx[UR][offset]`.
    Bindless,
    /// The bank of a constant whose offset stands in another field.
    Bank,
    /// The byte offset of that constant.
    Offset,
    /// A word that is only printed.
    Literal,
}

/// A modifier field.
#[derive(Debug)]
pub struct ModField {
    pub kind: Mod,
    /// Index into [`SETS`].
    pub set: u16,
    /// [`NO_BITS`] where the opcode implies the value.
    pub bits: Bits,
    /// The one value that the form has, where it has only one.
    pub only: Option<u8>,
    /// Index of the operand behind which it prints; 255 = behind the mnemonic; with [`BEHIND`], behind the bracket that the operand
    /// is the last of.
    pub arg: u8,
}

/// An operand field; 255 stands for "no such bit" in `neg` to `reuse`.
#[derive(Debug)]
pub struct ArgField {
    /// Position of the role among the opcode's roles; 255 for a literal.
    pub slot: u8,
    pub kind: Kind,
    pub bits: Bits,
    /// Bank of a `Const`, uniform register of a `Bindless`.
    pub bank: Bits,
    pub neg: u8,
    pub abs: u8,
    pub complement: u8,
    pub not: u8,
    pub reuse: u8,
    /// Not printed when it has this value (and `!`).
    pub elide: Option<(u64, bool)>,
    /// What is written when the instruction does not have the operand.
    pub absent: Option<(u64, bool)>,
    /// The role has a default: an operand with the value `absent` is not stored in a decoded instruction.
    pub optional: bool,
    /// Printed behind the operand, or the literal itself.
    pub literal: &'static str,
    /// Number of the bracket it stands in, from 1; 0 for none.
    pub group: u8,
    pub open: &'static str,
    /// Between it and the operand before it: a comma, a blank or nothing.
    pub join: &'static str,
}

/// One form of an opcode. Source: a row of `encoding/*.ron`.
#[derive(Debug)]
pub struct Form {
    pub op: Op,
    pub text: &'static str,
    /// One bit per generation.
    pub on: u8,
    pub feature: Option<Feature>,
    pub guard: GuardForm,
    /// Mask and value of the bits that make a word this form.
    pub fixed: (u128, u128),
    /// Mask and value of the bits that are written so and must be so.
    pub must: (u128, u128),
    /// Encoded but never decoded: its words belong to another form.
    pub alias: bool,
    pub mods: &'static [ModField],
    pub args: &'static [ArgField],
}

/// A condition of an alias; roles by position.
#[derive(Debug)]
pub enum Condition {
    Value(u8, u64, bool),
    PowerOfTwo(u8),
    Immediate(u8),
    /// Not a uniform register, nor a constant through one.
    Vector(u8),
    Modifier(Mod, u8),
}

/// A word printed behind the mnemonic under conditions. Source: `encoding/aliases.ron`.
#[derive(Debug)]
pub struct Alias {
    pub op: Op,
    pub on: u8,
    pub word: &'static str,
    pub when: &'static [Condition],
}

impl ArgField {
    /// Whether it is printed and has no operand of its own.
    pub fn is_only_printed(&self) -> bool {
        matches!(self.kind, Kind::Literal | Kind::Word | Kind::Following)
    }
}

impl Form {
    /// Whether a target has the form.
    pub fn is_on(&self, target: &Target) -> bool {
        is_on(target, self.on, self.feature)
    }
}

/// Whether a target is of one of the generations and has the feature.
fn is_on(target: &Target, generations: u8, feature: Option<Feature>) -> bool {
    let generation = target.generation.is_some_and(|g| generations >> (g as u8) & 1 != 0);
    generation && feature.is_none_or(|f| target.has(f))
}

/// Positions in [`FORMS`] of the forms of an opcode, in the order in which the encoder tries them.
pub fn forms_of(op: Op) -> std::ops::Range<usize> {
    let i = op.position();
    usize::from(FORMS_OF_OP[i])..usize::from(FORMS_OF_OP[i + 1])
}

/// Positions in [`FORMS`] of the forms that may fit a word, by its opcode bits.
pub fn candidates(generation: Generation, word: u128) -> &'static [u16] {
    let starts = &BUCKETS[generation as usize];
    let code = (word & 0xfff) as usize;
    &CANDIDATES[usize::from(starts[code])..usize::from(starts[code + 1])]
}

/// Number of a special register by its text, on a target.
pub fn special_by_name(target: &Target, text: &str) -> Option<u8> {
    let named = SPECIALS.iter().find(|s| s.3 == text && is_on(target, s.1, s.2)).map(|s| s.0);
    named.or_else(|| text.strip_prefix("SR").and_then(|n| n.parse().ok()))
}

/// Whether a special register is the same in all lanes of a warp.
pub fn special_is_uniform(number: u32) -> bool {
    UNIFORM_SPECIALS.iter().any(|n| u32::from(*n) == number)
}

/// Text of a special register on a target; `None` where it has no name.
pub fn special_text(target: &Target, number: u8) -> Option<&'static str> {
    SPECIALS.iter().find(|s| s.0 == number && is_on(target, s.1, s.2)).map(|s| s.3)
}

include!(concat!(env!("OUT_DIR"), "/encoding.rs"));
