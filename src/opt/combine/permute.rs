//! Composes moves of bytes: a PRMT whose sources are PRMTs, shifts by whole bytes or masks of whole
//! bytes reads what those read, and one that puts two converted halves together is left to their
//! conversion.
//!
//! Only a single reader takes its source's place, so each step saves an instruction.

use crate::analysis::def_use::{DefUse, Fits, is_free, is_pure, rewrite};
use crate::arrays::Each;
use crate::ori::build::int::LUT_AND;
use crate::ori::{Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};

/// What one byte of a word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Byte {
    Zero,
    /// A byte of a register, or its sign in all bits.
    Of(Operand, u32, bool),
}

/// The selector of a word as it is.
const WHOLE: u32 = 0x3210;
/// Bit of a selector's digit that stands for the sign of a byte.
const SIGN: u32 = 8;

/// Fuses a PRMT with the definitions of its sources; returns whether it did.
pub fn fuse(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    let Some(given) = permuted(function, inst) else { return false };
    let mut known: Vec<(Operand, [Byte; 4])> = Vec::new();
    for operand in [Role::A, Role::C].each(|role| function.arg(inst, role)) {
        let maker = operand.as_reg().and_then(|reg| def_use.single_use_def(function, reg));
        if let Some(bytes) = maker.and_then(|maker| moved(function, maker)).filter(|bytes| all_free(function, bytes)) {
            known.push((operand, bytes));
        }
    }
    let through = |byte: Byte| match byte {
        Byte::Of(operand, at, sign) => match known.iter().find(|known| known.0 == operand) {
            Some((_, bytes)) => match bytes[at as usize] {
                Byte::Of(source, at, inner) => Byte::Of(source, at, inner || sign),
                Byte::Zero => Byte::Zero,
            },
            None => byte,
        },
        Byte::Zero => byte,
    };
    let bytes = given.each(through);
    !known.is_empty() && bytes != given && put(function, inst, bytes, fits) || pack(function, def_use, inst, fits)
}

/// Converts two floats to the halves of a word where each was converted to one and then moved.
fn pack(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) -> bool {
    let Some([Byte::Of(low, 0, false), Byte::Of(same, 1, false), Byte::Of(high, 0, false), Byte::Of(also, 1, false)]) =
        permuted(function, inst)
    else {
        return false;
    };
    let maker = |half: Operand| def_use.single_use_def(function, half.as_reg()?);
    let Some((one, two)) = maker(low).zip(maker(high)).filter(|_| low == same && high == also) else { return false };
    let (first, second) = (function[one], function[two]);
    if !is_half(function, one) || !is_half(function, two) || first.mods != second.mods {
        return false;
    }
    let old = function[inst];
    let [d, low, high] = [function.arg(inst, Role::D), function.arg(one, Role::B), function.arg(two, Role::B)];
    rewrite(function, inst, Op::F2FP, &[(Role::D, d), (Role::A, high), (Role::B, low)]);
    function[inst].mods = first.mods;
    if fits(function, inst) {
        return true;
    }
    function[inst] = old;
    false
}

fn all_free(function: &Function, bytes: &[Byte]) -> bool {
    bytes.iter().all(|byte| match byte {
        Byte::Of(operand, ..) => {
            *operand == operand.plain() && operand.as_reg().is_some_and(|reg| is_free(function, reg))
        }
        Byte::Zero => true,
    })
}

/// Whether an instruction converts one float to the low half of a word.
fn is_half(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let free = function.arg(inst, Role::B).as_reg().is_some_and(|reg| is_free(function, reg));
    let floats = data.mods.iter().all(|(kind, of)| match kind {
        Mod::Pack | Mod::Src => false,
        Mod::F2fp => of == value::f2fp::BF16,
        _ => true,
    });
    data.op == Op::F2FP && floats && is_pure(function, inst) && free && function.arg(inst, Role::A) == Operand::zero()
}

/// Makes an instruction the PRMT with these bytes.
fn put(function: &mut Function, inst: InstId, bytes: [Byte; 4], fits: Fits) -> bool {
    let mut sources: Vec<Operand> = Vec::new();
    for byte in bytes {
        let source = if let Byte::Of(operand, ..) = byte { operand } else { Operand::zero() };
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    if sources.len() > 2 {
        return false;
    }
    // RZ stands last, as ptxas writes it.
    crate::sorted::by_key(&mut sources, |source| *source == Operand::zero());
    sources.resize(2, Operand::zero());
    let selector = bytes.into_iter().enumerate().fold(0, |selector, (i, byte)| {
        let (source, at, sign) = match byte {
            Byte::Of(operand, at, sign) => (operand, at, sign),
            Byte::Zero => (Operand::zero(), 3, false),
        };
        let second = if source == sources[0] { 0 } else { 4 };
        selector | (second + at + if sign { SIGN } else { 0 }) << (4 * i)
    });
    let (d, old) = (function.arg(inst, Role::D), function[inst]);
    if selector == WHOLE {
        rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, sources[0])]);
        return true;
    }
    let selector = function.imm(selector.into());
    let args = [(Role::D, d), (Role::A, sources[0]), (Role::B, selector), (Role::C, sources[1])];
    rewrite(function, inst, Op::PRMT, &args);
    if fits(function, inst) {
        return true;
    }
    function[inst] = old;
    false
}

/// The bytes of a PRMT with a constant selector.
fn permuted(function: &Function, inst: InstId) -> Option<[Byte; 4]> {
    let data = &function[inst];
    if data.op != Op::PRMT || data.mods.get(Mod::Prmt) != value::prmt::NONE {
        return None;
    }
    let selector = function.word_value(function.arg(inst, Role::B))?;
    let [a, c] = [Role::A, Role::C].each(|role| function.arg(inst, role));
    let word =
        |operand: Operand| operand == operand.plain() && (operand.as_reg().is_some() || operand == Operand::zero());
    (word(a) && word(c)).then(|| {
        [0, 4, 8, 12].each(|shift| {
            let digit = selector >> shift;
            let source = if digit & 4 == 0 { a } else { c };
            if source == Operand::zero() { Byte::Zero } else { Byte::Of(source, digit & 3, digit & SIGN != 0) }
        })
    })
}

/// The bytes of an instruction that moves or clears whole bytes.
fn moved(function: &Function, inst: InstId) -> Option<[Byte; 4]> {
    match function[inst].op {
        Op::PRMT => permuted(function, inst),
        Op::SHF => shifted(function, inst),
        Op::LOP3 => masked(function, inst),
        _ => None,
    }
}

/// A shift of a word by whole bytes.
fn shifted(function: &Function, inst: InstId) -> Option<[Byte; 4]> {
    let data = &function[inst];
    let count =
        function.word_value(function.arg(inst, Role::B)).filter(|count| count % 8 == 0 && *count < u32::BITS)? / 8;
    let (left, high) = (data.mods.get(Mod::Dir) == value::dir::L, data.mods.get(Mod::Hi) != 0);
    let role = if left { Role::A } else { Role::C };
    let source = function.arg(inst, role);
    let fill = match (left, high, data.mods.get(Mod::Itype)) {
        (true, false, value::itype::U32) | (false, true, value::itype::U32) => Byte::Zero,
        (false, true, value::itype::S32) => Byte::Of(source, 3, true),
        _ => return None,
    };
    Some([0, 1, 2, 3].each(|at: u32| {
        let from = if left { at.checked_sub(count) } else { Some(at + count).filter(|from| *from < 4) };
        from.map_or(fill, |from| Byte::Of(source, from, false))
    }))
}

/// A word of which whole bytes are cleared.
fn masked(function: &Function, inst: InstId) -> Option<[Byte; 4]> {
    let table = function.imm_value(function.arg(inst, Role::Lut));
    let [a, b, c] = [Role::A, Role::B, Role::C].each(|role| function.arg(inst, role));
    let pp = function.arg(inst, Role::Pp);
    let plain =
        c == Operand::zero() && (pp.is_null() || pp == Operand::never()) && function.arg(inst, Role::Pu).is_null();
    if !plain || table != Some(LUT_AND.into()) {
        return None;
    }
    let mask = function.word_value(b)?;
    let bytes = [0u32, 1, 2, 3].each(|at| match mask >> (8 * at) & 0xff {
        0 => Some(Byte::Zero),
        0xff => Some(Byte::Of(a, at, false)),
        _ => None,
    });
    Some([bytes[0]?, bytes[1]?, bytes[2]?, bytes[3]?])
}
