//! Video instructions (PTX ISA 9.0, 9.7.17): one number, two of 16 bits, four of 8 bits, and packing with saturation (9.7.9.22).
//!
//! Input: an instruction. Output: what it computes, or `None` where it is none of these. Invariant: lanes are extended by their
//! operand's type and computed without loss; `.sat` clamps to the lane of the result's type before anything is merged or added.

use super::compare::integers;
use super::int::one;
use super::program::Alu;
use super::values::{clamp, each, is_signed, mask, number, sign_extend};
use crate::ptx::ast::Instruction;
use crate::tables::ptx::{AtomOp, Op, ScalarType};

/// What is done to the numbers of a lane.
type Step = Box<dyn Fn(i128, i128) -> i128 + Send + Sync>;

/// What a video instruction computes.
pub fn compile(i: &Instruction) -> Option<Alu> {
    if i.op == Op::CvtPack {
        return pack(i);
    }
    let (step, lanes) = step(i)?;
    let &[a, b] = i.types.last_chunk::<2>()?;
    let result = if i.types.len() == 3 { i.types[0] } else { ScalarType::U32 };
    let lane = Lane { bits: 32 / lanes, a_signed: is_signed(a), b_signed: is_signed(b), signed: is_signed(result) };
    let saturate = i.mods.saturate;
    let value = move |s: &[u64], at: u32| {
        let x = step(lane.of(s[0], at, lane.a_signed), lane.of(s[1], at, lane.b_signed));
        if saturate { lane.clamp(x) } else { x }
    };
    let last = move |s: &[u64]| number(result, s[2]);
    match (lanes, i.mods.atom_op) {
        (1, None) => one(move |s| value(s, 0) as u64 & mask(32)),
        // The second operation is one of the result's type.
        (1, Some(AtomOp::Add)) => one(move |s| value(s, 0).wrapping_add(last(s)) as u64 & mask(32)),
        (1, Some(AtomOp::Min)) => one(move |s| number(result, value(s, 0) as u64).min(last(s)) as u64 & mask(32)),
        (1, Some(AtomOp::Max)) => one(move |s| number(result, value(s, 0) as u64).max(last(s)) as u64 & mask(32)),
        (_, Some(AtomOp::Add)) => {
            one(move |s| (0..lanes).fold(last(s), |sum, at| sum + value(s, at)) as u64 & mask(32))
        }
        (_, None) => one(move |s| each(lane.bits, lanes, |at| value(s, at as u32) as u64)),
        _ => None,
    }
}

/// The step of an instruction, and how many lanes it has.
fn step(i: &Instruction) -> Option<(Step, u32)> {
    let lanes = match i.op.name().as_bytes().last()? {
        b'2' => 2,
        b'4' => 4,
        _ => 1,
    };
    let step: Step = match i.op {
        Op::Vadd | Op::Vadd2 | Op::Vadd4 => Box::new(|a, b| a + b),
        Op::Vsub | Op::Vsub2 | Op::Vsub4 => Box::new(|a, b| a - b),
        Op::Vabsdiff | Op::Vabsdiff2 | Op::Vabsdiff4 => Box::new(|a, b| (a - b).abs()),
        Op::Vmin | Op::Vmin2 | Op::Vmin4 => Box::new(i128::min),
        Op::Vmax | Op::Vmax2 | Op::Vmax4 => Box::new(i128::max),
        Op::Vset | Op::Vset2 | Op::Vset4 => {
            let compare = i.mods.compare?;
            Box::new(move |a, b| integers(compare, a.cmp(&b)).into())
        }
        _ => return None,
    };
    Some((step, lanes))
}

/// A part of a word.
#[derive(Clone, Copy)]
struct Lane {
    bits: u32,
    a_signed: bool,
    b_signed: bool,
    /// Of the result.
    signed: bool,
}

impl Lane {
    fn of(self, word: u64, at: u32, signed: bool) -> i128 {
        let part = word >> (at * self.bits) & mask(self.bits);
        if signed { i128::from(sign_extend(part, self.bits) as i64) } else { part.into() }
    }

    fn clamp(self, x: i128) -> i128 {
        let half = 1i128 << (self.bits - 1);
        if self.signed { x.clamp(-half, half - 1) } else { x.clamp(0, 2 * half - 1) }
    }
}

/// `cvt.pack`: the second source in the lowest bits, the first above it, the bits of a third above both.
fn pack(i: &Instruction) -> Option<Alu> {
    let &[to, from, ..] = i.types.as_slice() else { return None };
    let bits = to.bits();
    one(move |s| {
        let [a, b] = [s[0], s[1]].map(|x| clamp(to, number(from, x)));
        (b | a << bits | if 2 * bits < 32 { s[2] << (2 * bits) } else { 0 }) & mask(32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes() {
        let lane = Lane { bits: 8, a_signed: true, b_signed: false, signed: true };
        assert_eq!(lane.of(0x8001, 1, true), -128);
        assert_eq!(lane.of(0x8001, 1, false), 128);
        assert_eq!((lane.clamp(200), lane.clamp(-200)), (127, -128));
        assert_eq!(Lane { signed: false, ..lane }.clamp(-1), 0);
    }
}
