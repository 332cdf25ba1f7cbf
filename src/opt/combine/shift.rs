//! Shifts by constants: simplifies them, and fuses two of them into a funnel shift (a rotation or
//! the shift of a pair).
//!
//! Amounts beyond the width behave as in PTX; shifts that wrap their amount are not changed.

use crate::analysis::bit_flow::bytes;
use crate::analysis::def_use::{DefUse, Fits, is_free, rewrite};
use crate::arrays::Each;
use crate::ori::build::int::LUT_AND;
use crate::ori::operand::Kind;
use crate::ori::{Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};

/// Which word of a shifted pair is the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shift {
    /// `a << n`
    Left,
    /// High word of `c:a << n`.
    LeftHigh,
    /// Low word of `c:a >> n`.
    Right,
    /// As `Right`, with sign extension.
    RightSigned,
    /// `c >> n`.
    RightHigh,
    /// As `RightHigh`, with sign extension.
    RightHighSigned,
}

/// The kind and the constant amount of a shift that clamps its amount.
fn shift(function: &Function, def_use: &DefUse, inst: InstId) -> Option<(Shift, u32)> {
    let data = &function[inst];
    if data.op != Op::SHF || data.mods.get(Mod::Wrap) != 0 {
        return None;
    }
    let (left, high) = (data.mods.get(Mod::Dir) == value::dir::L, data.mods.get(Mod::Hi) != 0);
    let kind = match (left, high, data.mods.get(Mod::Itype)) {
        (true, false, value::itype::U32) => Shift::Left,
        (true, true, value::itype::U64) => Shift::LeftHigh,
        (false, false, value::itype::U64) => Shift::Right,
        (false, false, value::itype::S64) => Shift::RightSigned,
        (false, true, value::itype::U32) => Shift::RightHigh,
        (false, true, value::itype::S32) => Shift::RightHighSigned,
        _ => return None,
    };
    Some((kind, def_use.known(function, function.arg(inst, Role::B))?))
}

/// The word of an unguarded shift to the right that fills with zeros, and by how much.
pub fn right(function: &Function, def_use: &DefUse, inst: InstId) -> Option<(Operand, u32)> {
    match shift(function, def_use, inst)? {
        (Shift::RightHigh, count) if function[inst].guard.is_null() => Some((function.arg(inst, Role::C), count)),
        _ => None,
    }
}

/// Simplifies an unguarded shift; returns whether it changed.
pub fn simplify(function: &mut Function, def_use: &DefUse, inst: InstId) -> bool {
    let Some((kind, count)) = shift(function, def_use, inst) else { return false };
    let (a, c, zero) = (function.arg(inst, Role::A), function.arg(inst, Role::C), Operand::zero());
    if let Some(value) = value(kind, def_use.known(function, a), def_use.known(function, c), count) {
        let value = if value == 0 { zero } else { function.imm(value.into()) };
        return copy(function, inst, value);
    }
    match (kind, count) {
        (Shift::Left | Shift::Right | Shift::RightSigned, 0) => copy(function, inst, a),
        (_, 0) => copy(function, inst, c),
        (Shift::Left | Shift::RightHigh, 32..) | (Shift::LeftHigh | Shift::Right, 64..) => copy(function, inst, zero),
        (Shift::LeftHigh, 32) => copy(function, inst, a),
        (Shift::Right | Shift::RightSigned, 32) => copy(function, inst, c),
        (Shift::Left, 16) => match half_of(function, def_use, a) {
            Some(whole) => cut(function, inst, whole),
            None => false,
        },
        (Shift::LeftHigh, 33..) => put(function, inst, Shift::Left, [a, zero], count - 32),
        (Shift::Right, 33..) => put(function, inst, Shift::RightHigh, [zero, c], count - 32),
        (Shift::RightSigned, 33..) => put(function, inst, Shift::RightHighSigned, [zero, c], (count - 32).min(31)),
        _ => false,
    }
}

/// The upper half of a register, with zeros below.
fn cut(function: &mut Function, inst: InstId, whole: Operand) -> bool {
    let (d, zero) = (function.arg(inst, Role::D), Operand::zero());
    let [mask, table] = [0xffff_0000, u64::from(LUT_AND)].each(|value| function.imm(value));
    let args = [(Role::D, d), (Role::A, whole), (Role::B, mask), (Role::C, zero), (Role::Lut, table)];
    rewrite(function, inst, Op::LOP3, &args);
    true
}

/// The register whose upper half is the lower half of another one.
pub fn half_of(function: &Function, def_use: &DefUse, half: Operand) -> Option<Operand> {
    let maker = def_use.def_of(function, half.as_reg().filter(|_| half == half.plain())?)?;
    let role = match function[maker].op {
        Op::PRMT => match bytes(function, maker)?[..2] {
            [2, 3] => Role::A,
            [6, 7] => Role::C,
            _ => return None,
        },
        _ if shift(function, def_use, maker) == Some((Shift::RightHigh, 16)) => Role::C,
        _ => return None,
    };
    let whole = function.arg(maker, role);
    let free = whole == whole.plain() && whole.as_reg().is_some_and(|reg| is_free(function, reg));
    free.then_some(whole)
}

/// Widens the upper half of a register where it stands.
pub fn upper_half(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) {
    let half = function.arg(inst, Role::B);
    let low = value::swz_b::H0_H0;
    if function[inst].op != Op::HADD2_F32 || function[inst].mods.get(Mod::SwzB) != low {
        return;
    }
    let Some(whole) = half_of(function, def_use, half) else { return };
    function.set_arg(inst, Role::B, whole);
    function[inst].mods.set(Mod::SwzB, value::swz_b::H1_H1);
    if !fits(function, inst) {
        function.set_arg(inst, Role::B, half);
        function[inst].mods.set(Mod::SwzB, low);
    }
}

/// The value of a shift of constants.
fn value(kind: Shift, a: Option<u32>, c: Option<u32>, count: u32) -> Option<u32> {
    let pair = || Some(u64::from(c?) << 32 | u64::from(a?));
    let few = count.min(63);
    Some(match kind {
        Shift::Left => a?.checked_shl(count).unwrap_or(0),
        Shift::LeftHigh => (pair()?.checked_shl(count).unwrap_or(0) >> 32) as u32,
        Shift::Right => pair()?.checked_shr(count).unwrap_or(0) as u32,
        Shift::RightSigned => (pair()? as i64 >> few) as u32,
        Shift::RightHigh => c?.checked_shr(count).unwrap_or(0),
        Shift::RightHighSigned => (c? as i32 >> count.min(31)) as u32,
    })
}

fn copy(function: &mut Function, inst: InstId, source: Operand) -> bool {
    let d = function.arg(inst, Role::D);
    let whole = source == source.plain() && matches!(source.kind(), Kind::Reg(_) | Kind::Imm(_) | Kind::Zero);
    if whole {
        rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, source)]);
    }
    whole
}

fn put(function: &mut Function, inst: InstId, kind: Shift, [a, c]: [Operand; 2], count: u32) -> bool {
    let (d, count) = (function.arg(inst, Role::D), function.imm(count.into()));
    rewrite(function, inst, Op::SHF, &[(Role::D, d), (Role::A, a), (Role::B, count), (Role::C, c)]);
    let mods = &mut function[inst].mods;
    let (dir, itype, high) = match kind {
        Shift::Left => (value::dir::L, value::itype::U32, false),
        Shift::RightHighSigned => (value::dir::R, value::itype::S32, true),
        _ => (value::dir::R, value::itype::U32, true),
    };
    mods.set(Mod::Dir, dir);
    mods.set(Mod::Itype, itype);
    if high {
        mods.set(Mod::Hi, value::hi::HI);
    }
    true
}

/// Fuses `x << n` and `y >> 32 - n`, combined by an operation that returns the bits that are set in
/// only one of them, to the high word of `x:y << n`.
pub fn funnel(function: &mut Function, def_use: &DefUse, inst: InstId, parts: [Operand; 2]) -> bool {
    let made = parts.each(|part| {
        let maker = def_use.def_of(function, part.as_reg().filter(|_| part == part.plain())?)?;
        shift(function, def_use, maker).map(|(kind, count)| (maker, kind, count))
    });
    let (left, right) = match made {
        [Some(left), Some(right)] if left.1 == Shift::Left => (left, right),
        [Some(right), Some(left)] => (left, right),
        _ => return false,
    };
    let (x, y) = (function.arg(left.0, Role::A), function.arg(right.0, Role::C));
    let ends = left.1 == Shift::Left && right.1 == Shift::RightHigh && (1..32).contains(&left.2);
    let free = [x, y].iter().all(|o| *o == o.plain() && o.as_reg().is_some_and(|r| is_free(function, r)));
    if !ends || !free || left.2 + right.2 != 32 {
        return false;
    }
    let (d, count) = (function.arg(inst, Role::D), function.imm(left.2.into()));
    rewrite(function, inst, Op::SHF, &[(Role::D, d), (Role::A, y), (Role::B, count), (Role::C, x)]);
    let mods = &mut function[inst].mods;
    mods.set(Mod::Dir, value::dir::L);
    mods.set(Mod::Wrap, value::wrap::W);
    mods.set(Mod::Itype, value::itype::U32);
    mods.set(Mod::Hi, value::hi::HI);
    true
}

/// The words of the number that a pair is, shifted to the left, and the number of places.
pub fn of_pair(function: &Function, def_use: &DefUse, low: InstId, high: InstId) -> Option<([Operand; 2], u32)> {
    let ((one, n), (two, m)) = (shift(function, def_use, low)?, shift(function, def_use, high)?);
    let (x, top) = (function.arg(low, Role::A), function.arg(high, Role::C));
    let fits = one == Shift::Left && two == Shift::LeftHigh && n == m && n < 32 && function.arg(high, Role::A) == x;
    let free = |word: Operand| word.as_reg().is_some_and(|reg| word == word.plain() && is_free(function, reg));
    (fits && free(x) && (free(top) || top == Operand::zero())).then_some(([x, top], n))
}

/// Factor, shift and signedness of a pair that is one extended word times a power of two.
pub fn scaled(function: &Function, def_use: &DefUse, low: InstId, high: InstId) -> Option<(Operand, u32, bool)> {
    let ([x, top], n) = of_pair(function, def_use, low, high).filter(|found| found.1 < 31)?;
    if top == Operand::zero() {
        return Some((x, n, false));
    }
    let sign = def_use.def_of(function, top.as_reg()?)?;
    (sign_of(function, def_use, sign) == Some(x)).then_some((x, n, true))
}

/// The word whose sign fills the result of a shift.
pub fn sign_of(function: &Function, def_use: &DefUse, inst: InstId) -> Option<Operand> {
    let fills = shift(function, def_use, inst) == Some((Shift::RightHighSigned, 31));
    fills.then(|| function.arg(inst, Role::C))
}
