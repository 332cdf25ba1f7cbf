//! Reads and writes one field of a word as its table entry describes.
//!
//! Writing what was read gives the same bits. A value that does not fit is an error with the
//! reason; it is never truncated.

use super::inst::{Arg, ArgKind};
use crate::tables::GenerationInfo;
use crate::tables::encoding::{ArgField, Bits, Kind};
use std::fmt;

/// Highest scoreboard of a warp (SB0 to SB5).
const LAST_SCOREBOARD: u64 = 5;

/// Why an operand does not fit a field. Text only when shown: passes ask often and read no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The operand is absent, and the field has no default.
    Nothing,
    /// The kind given, and that of the field.
    Kind(ArgKind, ArgKind),
    /// A uniform register that the generation does not have.
    NoUReg(u64),
    NoUPred(u64),
    NoScoreboard(u64),
    ZeroUReg,
    ZeroReg,
    LowWord,
    /// A value and the number of bits of an unsigned field.
    Unsigned(u64, u32),
    /// A value and the number of bits of a field in two's complement.
    Signed(u64, u32),
    /// A value, and the multiple that it would have to be of.
    Multiple(u64, u64),
    /// A modifier without a bit.
    Mark(&'static str),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Nothing => write!(f, "nothing"),
            Misfit::Kind(given, has) => write!(f, "{} where it has {}", name(*given), name(*has)),
            Misfit::NoUReg(number) => write!(f, "UR{number} does not exist there"),
            Misfit::NoUPred(number) => write!(f, "UP{number}, which does not exist"),
            Misfit::NoScoreboard(number) => write!(f, "SB{number}, which does not exist"),
            Misfit::ZeroUReg => write!(f, "URZ, which the form does not take"),
            Misfit::ZeroReg => write!(f, "RZ, which the form does not take"),
            Misfit::LowWord => write!(f, "an f64 whose low word is not zero"),
            Misfit::Unsigned(value, width) => write!(f, "{value:#x}, more than {width} bits"),
            Misfit::Signed(value, width) => write!(f, "{:#x}, more than {width} bits with the sign", *value as i64),
            Misfit::Multiple(value, of) => write!(f, "{value:#x}, not a multiple of {of}"),
            Misfit::Mark(sign) => write!(f, "{sign}, which it does not take"),
        }
    }
}

fn bit(word: u128, bit: u8) -> bool {
    bit != 255 && word >> bit & 1 != 0
}

/// Sign-extends a two's complement number of `bits` bits.
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    ((value << shift) as i64) >> shift
}

/// Reads a uniform register; `None` if bits beyond the generation's width are set.
fn read_ureg(raw: u64, info: &GenerationInfo) -> Option<u64> {
    let top = (1u64 << info.ur_bits) - 1;
    match raw {
        _ if raw > top => None,
        _ if raw == top => Some(255),
        _ => Some(raw),
    }
}

fn write_ureg(value: u64, info: &GenerationInfo) -> Result<u64, Misfit> {
    let top = (1u64 << info.ur_bits) - 1;
    match value {
        255 => Ok(top),
        _ if value < top => Ok(value),
        _ => Err(Misfit::NoUReg(value)),
    }
}

/// The operand in a field, or the reason why its bits are invalid.
pub fn read(field: &ArgField, word: u128, info: &GenerationInfo) -> Result<Arg, String> {
    let raw = field.bits.read(word);
    let signed = || (sign_extend(raw, field.bits.width()) << field.bits.shift) as u64;
    let unsigned = raw << field.bits.shift;
    let ureg = |raw: u64| read_ureg(raw, info).ok_or_else(|| format!("UR{raw} does not exist there"));
    let (kind, val, bank) = match field.kind {
        Kind::Reg | Kind::Inside => (ArgKind::Reg, raw, 0),
        Kind::UReg => (ArgKind::UReg, ureg(raw)?, 0),
        Kind::NonzeroUReg if ureg(raw)? == 255 => return Err("URZ, which the form does not take".into()),
        Kind::NonzeroUReg => (ArgKind::UReg, raw, 0),
        Kind::Pred => (ArgKind::Pred, raw, 0),
        Kind::UPred => (ArgKind::UPred, raw, 0),
        Kind::InvertedUPred => (ArgKind::UPred, 7 - (raw & 7), 0),
        Kind::Bar => (ArgKind::Bar, raw, 0),
        Kind::Hex | Kind::Decimal | Kind::Float => (ArgKind::Imm, unsigned, 0),
        Kind::Halves | Kind::Brains | Kind::Half | Kind::Brain => (ArgKind::Imm, unsigned, 0),
        Kind::Signed | Kind::Displacement | Kind::Unbased => (ArgKind::Imm, signed(), 0),
        Kind::Double => (ArgKind::Imm, raw << 32, 0),
        Kind::Label | Kind::Distance => (ArgKind::Label, signed(), 0),
        Kind::Twice => (ArgKind::Reg, raw, 0),
        Kind::Nonzero if raw == 255 => return Err("RZ, which the form does not take".into()),
        Kind::Nonzero => (ArgKind::Reg, raw, 0),
        Kind::Scoreboard if raw > LAST_SCOREBOARD => return Err(format!("SB{raw} does not exist")),
        Kind::Scoreboard | Kind::Mask => (ArgKind::Imm, raw, 0),
        Kind::Special => (ArgKind::Special, raw, 0),
        Kind::Const => (ArgKind::Const, signed(), field.bank.read(word)),
        Kind::Bindless => (ArgKind::Bindless, unsigned, ureg(field.bank.read(word))?),
        Kind::Bank => (ArgKind::Const, 0, raw),
        Kind::Offset => (ArgKind::Const, signed(), 0),
        Kind::Literal | Kind::Word | Kind::Following => (ArgKind::None, 0, 0),
    };
    Ok(Arg {
        kind,
        val,
        bank: bank as u8,
        neg: bit(word, field.neg),
        abs: bit(word, field.abs),
        not: bit(word, field.complement) || bit(word, field.not),
        reuse: bit(word, field.reuse),
    })
}

/// The operand kind of a field.
pub fn kind_of(kind: Kind) -> ArgKind {
    match kind {
        Kind::Reg | Kind::Inside | Kind::Nonzero | Kind::Twice => ArgKind::Reg,
        Kind::UReg | Kind::NonzeroUReg => ArgKind::UReg,
        Kind::Pred => ArgKind::Pred,
        Kind::UPred | Kind::InvertedUPred => ArgKind::UPred,
        Kind::Bar => ArgKind::Bar,
        Kind::Hex | Kind::Decimal | Kind::Signed | Kind::Float | Kind::Double => ArgKind::Imm,
        Kind::Halves | Kind::Brains | Kind::Half | Kind::Brain => ArgKind::Imm,
        Kind::Displacement | Kind::Unbased | Kind::Scoreboard | Kind::Mask => ArgKind::Imm,
        Kind::Label | Kind::Distance => ArgKind::Label,
        Kind::Special => ArgKind::Special,
        Kind::Const | Kind::Bank | Kind::Offset => ArgKind::Const,
        Kind::Bindless => ArgKind::Bindless,
        Kind::Literal | Kind::Word | Kind::Following => ArgKind::None,
    }
}

/// The operand that a form assumes if the instruction has none. Memory operands, including
/// `c[0x0][0x0]`, are never assumed.
pub fn absent(field: &ArgField) -> Option<Arg> {
    let memory = matches!(kind_of(field.kind), ArgKind::Const | ArgKind::Bindless);
    field.absent.filter(|_| !memory).map(|(val, not)| Arg { kind: kind_of(field.kind), val, not, ..Arg::default() })
}

/// The bits of an operand in a field, or the reason why it does not fit.
pub fn write(field: &ArgField, arg: &Arg, info: &GenerationInfo) -> Result<u128, Misfit> {
    let has = kind_of(field.kind);
    // PT and UPT are one where nothing says which file is meant.
    let certain = arg.kind == ArgKind::Pred && arg.val == 7 && has == ArgKind::UPred;
    if arg.kind != has && !certain {
        return Err(Misfit::Kind(arg.kind, has));
    }
    let unsigned = || unsigned(arg.val, &field.bits);
    let signed = || signed(arg.val, &field.bits);
    let mut word = match field.kind {
        Kind::NonzeroUReg if arg.val == 255 => return Err(Misfit::ZeroUReg),
        Kind::UReg | Kind::NonzeroUReg => field.bits.place(write_ureg(arg.val, info)?),
        Kind::Signed | Kind::Displacement | Kind::Unbased | Kind::Label | Kind::Distance | Kind::Offset => {
            field.bits.place(signed()?)
        }
        Kind::Double if arg.val as u32 != 0 => return Err(Misfit::LowWord),
        Kind::Double => field.bits.place(arg.val >> 32),
        Kind::Const => field.bits.place(signed()?) | field.bank.place(fit(arg.bank.into(), &field.bank)?),
        Kind::Bindless => field.bits.place(unsigned()?) | field.bank.place(write_ureg(arg.bank.into(), info)?),
        Kind::Bank => field.bits.place(fit(arg.bank.into(), &field.bits)?),
        Kind::Literal | Kind::Word | Kind::Following => 0,
        Kind::InvertedUPred if arg.val > 7 => return Err(Misfit::NoUPred(arg.val)),
        Kind::InvertedUPred => field.bits.place(7 - arg.val),
        Kind::Nonzero if arg.val == 255 => return Err(Misfit::ZeroReg),
        Kind::Scoreboard if arg.val > LAST_SCOREBOARD => return Err(Misfit::NoScoreboard(arg.val)),
        _ => field.bits.place(unsigned()?),
    };
    // The attributes of a bank constant belong to the offset field.
    if field.kind != Kind::Bank {
        word |= marks(field, arg)?;
    }
    Ok(word)
}

/// The bits of an operand's modifiers.
fn marks(field: &ArgField, arg: &Arg) -> Result<u128, Misfit> {
    if !(arg.neg || arg.abs || arg.not || arg.reuse) {
        return Ok(0);
    }
    let complement = if field.not != 255 { field.not } else { field.complement };
    let marks = [("-", arg.neg, field.neg), ("| |", arg.abs, field.abs), ("~ or !", arg.not, complement)];
    let mut word = 0;
    for (sign, on, bit) in marks.into_iter().chain([(".reuse", arg.reuse, field.reuse)]) {
        match (on, bit) {
            (false, _) => {}
            (true, 255) => return Err(Misfit::Mark(sign)),
            (true, bit) => word |= 1 << bit,
        }
    }
    Ok(word)
}

fn fit(value: u64, bits: &Bits) -> Result<u64, Misfit> {
    let width = bits.width();
    if width < 64 && value >> width != 0 { Err(Misfit::Unsigned(value, width)) } else { Ok(value) }
}

/// An unsigned value; a full-width field also accepts a negative number.
fn unsigned(value: u64, bits: &Bits) -> Result<u64, Misfit> {
    let [(_, len), (_, second), _] = bits.pieces;
    if second == 0 && bits.shift == 0 && len < 64 && value >> len == 0 {
        return Ok(value);
    }
    if value & ((1 << bits.shift) - 1) != 0 {
        return Err(Misfit::Multiple(value, 1 << bits.shift));
    }
    let negative = i32::try_from(value as i64).is_ok_and(|v| v < 0);
    let value = if bits.width() == 32 && bits.shift == 0 && negative { u64::from(value as u32) } else { value };
    fit(value >> bits.shift, bits)
}

/// A signed value; a full-width field also accepts the unsigned bits.
fn signed(value: u64, bits: &Bits) -> Result<u64, Misfit> {
    if value & ((1 << bits.shift) - 1) != 0 {
        return Err(Misfit::Multiple(value, 1 << bits.shift));
    }
    let width = bits.width();
    if width == 32 && bits.shift == 0 && value >> 32 == 0 {
        return Ok(value);
    }
    let number = (value as i64) >> bits.shift;
    if sign_extend(number as u64, width) != number {
        return Err(Misfit::Signed(value, width));
    }
    Ok(number as u64 & if width < 64 { (1 << width) - 1 } else { u64::MAX })
}

/// The name of an operand kind for messages.
pub fn name(kind: ArgKind) -> &'static str {
    match kind {
        ArgKind::None => "nothing",
        ArgKind::Reg => "a register",
        ArgKind::UReg => "a uniform register",
        ArgKind::Pred => "a predicate",
        ArgKind::UPred => "a uniform predicate",
        ArgKind::Bar => "a barrier",
        ArgKind::Imm => "an immediate",
        ArgKind::Const => "a constant",
        ArgKind::Bindless => "a bindless constant",
        ArgKind::Label => "a label",
        ArgKind::Special => "a special register",
    }
}
