//! Encoding forms: the bit layout of a 128-bit word, per opcode and operand form.
//!
//! Pure data and lookups; `sass` reads and writes words with it. The table generator checks that
//! the parts of a form claim each of the 128 bits once, and that within a generation no word
//! matches two forms.

use super::packed::Numbers16;
use super::{Feature, Generation, Mod, Op, Target};

/// The bits of a field as (lowest bit, count), lowest part first. The value is shifted left by
/// `shift` when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    pub pieces: [(u8, u8); 3],
    pub shift: u8,
}

/// In the first part of [`ArgField::elide`]: the operand is never printed.
pub const NEVER_PRINTED: u64 = u64::MAX;

/// In [`ModField::arg`]: printed after the closing bracket.
pub const BEHIND: u8 = 0x40;

/// No bits at all.
pub const NO_BITS: Bits = Bits { pieces: [(0, 0); 3], shift: 0 };

impl Bits {
    /// Number of bits.
    #[inline]
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

    /// A raw value moved to the field's position. The caller has checked that it fits.
    #[inline]
    pub fn place(&self, value: u64) -> u128 {
        let [(lo, len), (_, second), _] = self.pieces;
        if second == 0 {
            return u128::from(value & ((1u128 << len) - 1) as u64) << lo;
        }
        let (mut value, mut word) = (u128::from(value), 0u128);
        for (lo, len) in self.pieces {
            word |= (value & ((1 << len) - 1)) << lo;
            value >>= len;
        }
        word
    }
}

/// How the guard predicate of a form is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardForm {
    Vector,
    Uniform,
    /// Bits 12 to 15 are not a guard.
    None,
}

/// Contents of an operand field, and how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// General register, 8 bits.
    Reg,
    /// Uniform register: an 8-bit field, of which the generation uses `ur_bits`.
    UReg,
    Pred,
    UPred,
    /// A uniform predicate whose number is stored inverted: 0 is UPT.
    InvertedUPred,
    /// A uniform register other than URZ.
    NonzeroUReg,
    /// The uniform register after that of the previous operand; only printed.
    Following,
    /// A modifier printed as an operand, without a dot; nothing if its text is empty.
    Word,
    Bar,
    /// Unsigned, printed in hexadecimal.
    Hex,
    /// Two's complement, printed in hexadecimal with a sign; without a sign if it stands alone in
    /// brackets.
    Signed,
    /// Like `Signed`, but always with a sign.
    Displacement,
    /// Like `Signed`, but without a sign if the brackets contain no general register.
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
    /// The bank of a constant whose offset is in another field.
    Bank,
    /// The byte offset of a constant whose bank is in another field.
    Offset,
    /// A literal text; only printed.
    Literal,
}

/// A modifier field.
#[derive(Debug)]
pub struct ModField {
    pub kind: Mod,
    /// Index into [`SETS`].
    pub set: u16,
    /// [`NO_BITS`] if the opcode implies the value.
    pub bits: Bits,
    /// The only value that the form allows, if there is one.
    pub only: Option<u8>,
    /// Index of the operand after which it is printed; 255: after the mnemonic; with [`BEHIND`]:
    /// after the bracket that ends with the operand.
    pub arg: u8,
}

/// An operand field. In `neg` to `reuse`, 255 means that there is no such bit.
#[derive(Debug)]
pub struct ArgField {
    /// Position of the role among the opcode's roles; 255 for a literal.
    pub slot: u8,
    pub kind: Kind,
    pub bits: Bits,
    /// Bank of a `Const`, uniform register of a `Bindless`.
    pub bank: Bits,
    /// Bit of the minus sign.
    pub neg: u8,
    /// Bit of the absolute value.
    pub abs: u8,
    /// Bit of the bitwise complement.
    pub complement: u8,
    /// Bit of the logical negation.
    pub not: u8,
    /// Bit of the reuse flag.
    pub reuse: u8,
    /// The value (and `!`) with which the operand is not printed.
    pub elide: Option<(u64, bool)>,
    /// The value that is encoded if the instruction lacks the operand.
    pub absent: Option<(u64, bool)>,
    /// Whether the role has a default: an operand equal to `absent` is then not stored in a decoded
    /// instruction.
    pub optional: bool,
    /// Text printed after the operand, or the literal itself.
    pub literal: &'static str,
    /// Number of the enclosing bracket, from 1; 0 for none.
    pub group: u8,
    /// Opening text of the bracket.
    pub open: &'static str,
    /// Separator from the previous operand: a comma, a blank or nothing.
    pub join: &'static str,
}

/// One form of an opcode. Source: a row of `encoding/*.ron`.
#[derive(Debug)]
pub struct Form {
    pub op: Op,
    /// Mnemonic with its fixed suffixes.
    pub text: &'static str,
    /// Generations that have it, one bit each.
    pub on: u8,
    /// Feature that the target must have.
    pub feature: Option<Feature>,
    pub guard: GuardForm,
    /// Mask and value of the bits that identify the form.
    pub fixed: (u128, u128),
    /// Mask and value of reserved bits: written so, and required when decoding.
    pub must: (u128, u128),
    /// Bits of which the GPU refuses a word if all are set; 0 for none.
    pub apart: u128,
    /// Encoded but never decoded: the decoder prefers another form for these words.
    pub alias: bool,
    pub mods: &'static [ModField],
    pub args: &'static [ArgField],
}

impl Form {
    /// Whether the GPU refuses a word of this form.
    pub fn is_refused(&self, word: u128) -> bool {
        self.apart != 0 && word & self.apart == self.apart
    }
}

/// A condition of an alias; roles by index.
#[derive(Debug)]
pub enum Condition {
    Value(u8, u64, bool),
    PowerOfTwo(u8),
    Immediate(u8),
    /// Neither a uniform register nor a constant addressed by one.
    Vector(u8),
    Modifier(Mod, u8),
}

/// A word printed after the mnemonic under conditions. Source: `encoding/aliases.ron`.
#[derive(Debug)]
pub struct Alias {
    pub op: Op,
    /// Generations that have it, one bit each.
    pub on: u8,
    pub word: &'static str,
    pub when: &'static [Condition],
}

impl ArgField {
    /// Whether it is only printed, without an operand of its own.
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

/// Whether a target is of one of these generations and has the feature.
fn is_on(target: &Target, generations: u8, feature: Option<Feature>) -> bool {
    let generation = target.generation.is_some_and(|g| generations >> (g as u8) & 1 != 0);
    generation && feature.is_none_or(|f| target.has(f))
}

/// Indices in [`FORMS`] of the forms of an opcode, in the order in which the encoder tries them.
pub fn forms_of(op: Op) -> std::ops::Range<usize> {
    let i = op.position();
    usize::from(FORMS_OF_OP[i])..usize::from(FORMS_OF_OP[i + 1])
}

/// Indices in [`FORMS`] of the forms that may match a word, by its opcode bits.
pub fn candidates(generation: Generation, word: u128) -> &'static [u16] {
    let starts = &BUCKETS[generation as usize];
    let code = (word & 0xfff) as usize;
    match (starts.get(code), starts.get(code + 1)) {
        (Some(start), Some(end)) => &CANDIDATES[start.into()..end.into()],
        _ => &[],
    }
}

/// Number of a special register by its text, on a target.
pub fn special_by_name(target: &Target, text: &str) -> Option<u8> {
    let named = SPECIALS.iter().find(|s| s.3 == text && is_on(target, s.1, s.2)).map(|s| s.0);
    named.or_else(|| text.strip_prefix("SR").and_then(|n| n.parse().ok()))
}

/// Whether a special register has the same value in all lanes of a warp.
pub fn special_is_uniform(number: u32) -> bool {
    UNIFORM_SPECIALS.iter().any(|n| u32::from(*n) == number)
}

/// Whether a thread always reads the same value from a special register.
pub fn special_keeps(number: u32) -> bool {
    KEPT_SPECIALS.iter().any(|n| u32::from(*n) == number)
}

/// Bits of a special register that may differ between the lanes of a warp whose threads are in one
/// row of their block; `None` where that tells nothing.
pub fn special_row_bits(number: u32) -> Option<u32> {
    ROW_BITS.iter().find(|row| u32::from(row.0) == number).map(|row| row.1)
}

/// Whether a special register counts while a thread runs; one without a name on the target may.
pub fn special_counts(target: &Target, number: u8) -> bool {
    SPECIALS.iter().find(|s| s.0 == number && is_on(target, s.1, s.2)).is_none_or(|s| s.4)
}

/// Text of a special register on a target; `None` if it has no name.
pub fn special_text(target: &Target, number: u8) -> Option<&'static str> {
    SPECIALS.iter().find(|s| s.0 == number && is_on(target, s.1, s.2)).map(|s| s.3)
}

include!(concat!(env!("OUT_DIR"), "/encoding.rs"));
