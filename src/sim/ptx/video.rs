//! Compiles video instructions (PTX ISA 9.0, 9.7.17) and `cvt.pack` (9.7.9.22).
//!
//! Sources arrive as 32-bit words; this module extracts the bytes, halves and lanes that the
//! operands select and inserts the result in its place. As the ISA prescribes, values are extended
//! to 33 bits and computed in 34 bits before they are clamped.

use super::int::one;
use super::program::{Alu, Sources};
use super::values::{clamp, is_signed, mask, number, sign_extend};
use crate::arrays::Each;
use crate::ptx::ast::{Instruction, Operand, OperandKind, Part};
use crate::tables::ptx::{AtomOp, Compare, Op, ScalarType, ShiftMode, VideoScale};

/// Width of an intermediate result in bits.
const INTERMEDIATE: u32 = 34;

/// The operation on two numbers.
type Step = Box<dyn Fn(i128, i128) -> i128 + Send + Sync>;

/// The function that a video instruction computes, or `None` for other instructions.
pub fn compile(i: &Instruction) -> Option<Alu> {
    let name = i.op.name();
    match i.op {
        Op::CvtPack => return pack(i),
        Op::Vmad => return multiply(i),
        _ => {}
    }
    let lanes = match name.strip_prefix('v')?.chars().last()? {
        '2' => 2,
        '4' => 4,
        _ => 1,
    };
    let step = step(i, name.trim_end_matches(['2', '4']))?;
    if lanes == 1 { single(i, step) } else { several(i, step, lanes) }
}

fn step(i: &Instruction, name: &str) -> Option<Step> {
    let wrap = i.mods.shift_mode == Some(ShiftMode::Wrap);
    let amount = move |b: i128| if wrap { b & 31 } else { b.min(32) } as u32;
    Some(match name {
        "vadd" => Box::new(|a, b| a + b),
        "vsub" => Box::new(|a, b| a - b),
        "vabsdiff" => Box::new(|a, b| (a - b).abs()),
        "vmin" => Box::new(|a, b| a.min(b)),
        "vmax" => Box::new(|a, b| a.max(b)),
        // Half of the sum; half-way cases round away from zero.
        "vavrg" => Box::new(|a, b| (a + b + i128::from(a + b >= 0)) >> 1),
        "vshl" => Box::new(move |a, b| i128::from(sign_extend((a << amount(b)) as u64, INTERMEDIATE) as i64)),
        "vshr" => Box::new(move |a, b| a >> amount(b)),
        "vset" => {
            let compare = i.mods.compare?;
            Box::new(move |a, b| {
                i128::from(match compare {
                    Compare::Eq => a == b,
                    Compare::Ne => a != b,
                    Compare::Lt => a < b,
                    Compare::Le => a <= b,
                    Compare::Gt => a > b,
                    _ => a >= b,
                })
            })
        }
        _ => return None,
    })
}

/// The types of the result and of the two sources. `vset` names no result type; its result is not
/// clamped.
fn types(i: &Instruction) -> Option<[ScalarType; 3]> {
    match *i.types.as_slice() {
        [d, a, b] => Some([d, a, b]),
        [a, b] => Some([a, a, b]),
        _ => None,
    }
}

fn part(operand: Option<&Operand>) -> Part {
    match operand.map(|o| &o.kind) {
        Some(OperandKind::Register(used)) => used.part,
        _ => Part::Whole,
    }
}

/// The number in a source or in its selected part.
fn source(part: Part, ty: ScalarType, word: u64) -> i128 {
    let (shift, bits) = place(part);
    let cut = word >> shift & mask(bits);
    i128::from(if is_signed(ty) { sign_extend(cut, bits) as i64 } else { cut as i64 })
}

/// First bit and width of a part.
fn place(part: Part) -> (u32, u32) {
    match part {
        Part::Byte(n) => (8 * u32::from(n), 8),
        Part::Half(n) => (16 * u32::from(n), 16),
        _ => (0, 32),
    }
}

/// Clamps to the range of an integer type.
fn bound(value: i128, bits: u32, signed: bool) -> i128 {
    if signed { value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { value.clamp(0, (1 << bits) - 1) }
}

fn single(i: &Instruction, step: Step) -> Option<Alu> {
    let [d, a, b] = types(i)?;
    let [to, first, second] = [0, 1, 2].each(|n| part(i.operands.get(n)));
    let (saturate, then) = (i.mods.saturate, i.mods.atom_op);
    let (at, bits) = place(to);
    one(move |s: &Sources| {
        let mut value = step(source(first, a, s[0]), source(second, b, s[1]));
        if saturate {
            value = bound(value, bits, is_signed(d));
        }
        let word = value as u64 & mask(32);
        let pair = [number(d, word), number(d, s[2] & mask(32))];
        match then {
            Some(AtomOp::Add) => word.wrapping_add(s[2]) & mask(32),
            Some(AtomOp::Min) => pair[0].min(pair[1]) as u64 & mask(32),
            Some(_) => pair[0].max(pair[1]) as u64 & mask(32),
            None if bits == 32 => word,
            None => s[2] & mask(32) & !(mask(bits) << at) | (word & mask(bits)) << at,
        }
    })
}

/// `vmad`: computes the full product and sum, shifts, then clamps.
fn multiply(i: &Instruction) -> Option<Alu> {
    let [_, a, b] = types(i)?;
    let negated = |n: usize| matches!(i.operands.get(n).map(|o| &o.kind), Some(OperandKind::Register(r)) if r.negate);
    let turned = negated(1) ^ negated(2);
    let (less, more) = (negated(3), i.mods.plus_one);
    let signed = is_signed(a) || is_signed(b) || turned || less;
    let [first, second] = [1, 2].each(|n| part(i.operands.get(n)));
    let shift = match i.mods.video_scale {
        None => 0,
        Some(VideoScale::Shr7) => 7,
        Some(VideoScale::Shr15) => 15,
    };
    let saturate = i.mods.saturate;
    one(move |s: &Sources| {
        let product = source(first, a, s[0]) * source(second, b, s[1]);
        let ty = if signed { ScalarType::S32 } else { ScalarType::U32 };
        // c is negated by inverting its bits and adding one.
        let c = if less { number(ty, !s[2] & mask(32)) + 1 } else { number(ty, s[2] & mask(32)) };
        let sum = if turned { -product } else { product } + c + i128::from(more);
        let value = sum >> shift;
        if saturate { clamp(ty, value) } else { value as u64 & mask(32) }
    })
}

/// Operates on several lanes; lanes that the destination does not select come from the third
/// source.
fn several(i: &Instruction, step: Step, lanes: u32) -> Option<Alu> {
    let [d, a, b] = types(i)?;
    let bits = 32 / lanes;
    let named = |n: usize| match part(i.operands.get(n)) {
        Part::Lanes(l) => Some(l.at[..usize::from(l.count)].to_vec()),
        Part::Byte(n) | Part::Half(n) => Some(vec![n]),
        _ => None,
    };
    let written = named(0).unwrap_or_else(|| (0..lanes as u8).collect());
    let chosen = [1, 2]
        .each(|n| named(n).unwrap_or_else(|| (0..lanes as u8).map(|l| l + (n as u8 - 1) * lanes as u8).collect()));
    let (saturate, sum) = (i.mods.saturate, i.mods.atom_op.is_some());
    one(move |s: &Sources| {
        // The lanes of the first source, followed by those of the second.
        let both = s[0] & mask(32) | s[1] << 32;
        let number = |lane: u8, ty: ScalarType| {
            let cut = both >> (bits * u32::from(lane)) & mask(bits);
            i128::from(if is_signed(ty) { sign_extend(cut, bits) as i64 } else { cut as i64 })
        };
        let mut word = s[2] & mask(32);
        for lane in &written {
            let at = usize::from(*lane);
            let mut value = step(number(chosen[0][at], a), number(chosen[1][at], b));
            if saturate {
                value = bound(value, bits, is_signed(d));
            }
            if sum {
                word = word.wrapping_add(value as u64) & mask(32);
            } else {
                let shift = bits * u32::from(*lane);
                word = word & !(mask(bits) << shift) | (value as u64 & mask(bits)) << shift;
            }
        }
        word
    })
}

/// `cvt.pack`: the second source in the lowest bits, the first above it, then the bits of the
/// third.
fn pack(i: &Instruction) -> Option<Alu> {
    let &[to, from, ..] = i.types.as_slice() else { return None };
    let bits = to.bits();
    let signed = is_signed(to) || matches!(to, ScalarType::S2 | ScalarType::S4);
    one(move |s| {
        let [a, b] = [s[0], s[1]].each(|x| bound(number(from, x), bits, signed) as u64 & mask(bits));
        (b | a << bits | if 2 * bits < 32 { s[2] << (2 * bits) } else { 0 }) & mask(32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_bounds() {
        assert_eq!(source(Part::Byte(1), ScalarType::S32, 0x8001), -128);
        assert_eq!(source(Part::Byte(1), ScalarType::U32, 0x8001), 128);
        assert_eq!(source(Part::Half(1), ScalarType::S32, 0xffff_0000), -1);
        assert_eq!(source(Part::Whole, ScalarType::U32, 0xffff_ffff), 0xffff_ffff);
        assert_eq!((bound(200, 8, true), bound(-200, 8, true)), (127, -128));
        assert_eq!((bound(-1, 8, false), bound(300, 8, false)), (0, 255));
    }
}
