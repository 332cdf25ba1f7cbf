//! The arithmetic of SASS opcodes for one lane.
//!
//! Evaluation is pure: source modifiers have been applied already, and the same values give the
//! same results on every lane and every generation.

use super::super::ops::convert::{self, IntType};
use super::super::ops::format::{BF16, F16, F32, F64, Format, Round};
use super::super::ops::half::{self, Pick};
use super::super::ops::int::{self, Cmp, Lea, Permute, Shift};
use super::super::ops::mufu::{self, Function};
use super::super::ops::narrow::{self, Tiny};
use super::super::ops::random::{Random, random_round};
use super::super::ops::real::{self, Mode, Relation};
use crate::arrays::Each;

/// The source values of one lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct In {
    /// Source a.
    pub a: u64,
    /// Source b.
    pub b: u64,
    /// Source c.
    pub c: u64,
    /// First predicate source.
    pub pp: bool,
    /// Second predicate source.
    pub pq: bool,
    /// Third predicate source.
    pub pr: bool,
}

/// The results of one lane; the executor drops those that the instruction has no destination for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    /// The register result, one or two words.
    pub d: u64,
    /// First predicate result.
    pub pu: bool,
    /// Second predicate result.
    pub pv: bool,
}

/// How a comparison is combined with the predicate source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    #[default]
    And,
    Or,
    Xor,
}

impl Join {
    fn of(self, a: bool, b: bool) -> bool {
        match self {
            Join::And => a & b,
            Join::Or => a | b,
            Join::Xor => a ^ b,
        }
    }
}

/// A float comparison, as the set of relations for which it is true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloatCmp {
    /// True for less.
    pub less: bool,
    /// True for equal.
    pub equal: bool,
    /// True for greater.
    pub greater: bool,
    /// True if an operand is NaN.
    pub unordered: bool,
}

impl FloatCmp {
    fn holds(self, relation: Relation) -> bool {
        match relation {
            Relation::Less => self.less,
            Relation::Equal => self.equal,
            Relation::Greater => self.greater,
            Relation::Unordered => self.unordered,
        }
    }
}

/// The operand halves, format and modifiers of a packed half-precision operation.
#[derive(Clone, Copy, Debug)]
pub struct Halves {
    /// The halves that each source provides.
    pub pick: [Pick; 3],
    /// The format of the halves.
    pub format: Format,
    /// The modifiers of the operation.
    pub mode: Mode,
}

/// A float operation with up to three sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatOp {
    Add,
    Mul,
    Fma,
    /// As `Fma`, but zero if a factor is the NaN that marks an out-of-bounds element.
    FmaInBounds,
    /// Minimum if the predicate is true, else maximum; the flag selects NaN propagation.
    MinMax(bool),
    /// The same of the magnitudes, with the sign of the operands' product.
    MinMaxXor(bool),
}

/// The operation of an arithmetic instruction on one lane.
#[derive(Clone, Copy, Debug)]
pub enum Alu {
    /// a.
    Mov,
    /// a if the predicate is true, else b.
    Select,
    /// As `Select` on f32, with subnormals flushed.
    SelectF32,
    /// a + b + c + `plus`, which completes the two's complement of negated sources; with `x` also
    /// the carries in the predicates.
    Add3 {
        x: bool,
        plus: u8,
    },
    /// As `Add3` in 64 bits.
    Add64 {
        x: bool,
        plus: u8,
    },
    /// a × b + c; with `x` also the carry in the predicate.
    Mad {
        x: bool,
        signed: bool,
        negate: bool,
        part: Part,
    },
    Lea {
        how: Lea,
        plus: u8,
    },
    Shift(Shift),
    Permute(Permute),
    Logic {
        lut: u8,
        all: bool,
    },
    LogicP {
        lut: u8,
        lut2: u8,
    },
    Compare {
        cmp: Cmp,
        ty: IntType,
        join: Join,
        ex: bool,
    },
    MinMaxInt(IntType),
    /// As `MinMaxInt`, but at least zero.
    MinMaxRelu(IntType),
    /// Minimum or maximum of packed integers.
    MinMaxLanes {
        ty: IntType,
        relu: bool,
        /// Whether there is a third operand.
        three: bool,
    },
    /// Sums or differences of packed integers of `bits` bits.
    AddLanes {
        bits: u32,
        minus: bool,
    },
    /// a + b or a - b in packed lanes, each clamped to its type.
    AddClamped {
        ty: IntType,
        minus: bool,
    },
    /// All ones in each element for which the comparison holds, else zero.
    SetLanes {
        cmp: Cmp,
        ty: IntType,
    },
    /// A half of the product of two polynomials of bits, plus c, without carries.
    CarrylessMad {
        high: bool,
    },
    /// Minimum or maximum of a + b and c, in packed lanes for a type of 16 bits.
    AddMinMax {
        ty: IntType,
        relu: bool,
    },
    /// Minimum or maximum of three integers.
    MinMax3(IntType),
    Mask {
        wrap: bool,
    },
    Extend {
        signed: bool,
        wrap: bool,
    },
    Abs,
    Popc,
    Brev,
    Leading {
        signed: bool,
        from_top: bool,
    },
    Dot {
        a_signed: bool,
        b_signed: bool,
        halves: Option<bool>,
    },
    AbsDiff {
        signed: bool,
    },
    /// The differences of four bytes: packed, or summed and added to c.
    AbsDiff4 {
        signed: bool,
        sum: bool,
    },
    /// Truth tables of the three sources' signs.
    LogicSign {
        lut: u8,
        lut2: u8,
    },
    Float(FloatOp, Format, Mode),
    /// The same on pairs of f32. The numbers are, for each source, the bits at which its first and
    /// second element start.
    Pair(FloatOp, Mode, [[u8; 2]; 3]),
    /// The same where `a` is a pair of the first format, and the result one of the second.
    PairOfTypes(FloatOp, Mode, [[u8; 2]; 3], [Format; 2]),
    /// f32 arithmetic where `a`, and in Fma also `b`, is a half that is widened.
    Mixed(FloatOp, Halves),
    /// Minimum or maximum of three f32; the flag selects NaN propagation.
    FloatMinMax3(Mode, bool),
    CompareFloat {
        cmp: FloatCmp,
        format: Format,
        ftz: bool,
        join: Join,
    },
    /// Chooses the minimum or maximum of two f64: the first result is true for the first operand,
    /// the second one if both are NaN.
    ChooseF64 {
        min: bool,
    },
    /// A comparison result as 1.0 (`ones` false) or all ones.
    SetFloat {
        cmp: FloatCmp,
        ftz: bool,
        join: Join,
        ones: bool,
    },
    CheckDivide,
    /// The flags: clamp to [0, 1]; read the high half of the source.
    Mufu(Function, Format, bool, bool),
    Half(FloatOp, Halves),
    /// Adds one half of each source in f32 (`HADD2.F32`).
    HalfToF32(Halves),
    CompareHalf {
        cmp: FloatCmp,
        how: Halves,
        join: Join,
        and: bool,
    },
    SetHalf {
        cmp: FloatCmp,
        how: Halves,
        join: Join,
        ones: bool,
    },
    IntToFloat {
        from: IntType,
        to: Format,
        round: Round,
        /// First bit of the source in its register.
        at: u8,
    },
    FloatToInt {
        from: Format,
        to: IntType,
        round: Round,
        ftz: bool,
        /// First bit of the source in its register.
        at: u8,
    },
    FloatToFloat {
        from: Format,
        to: Format,
        round: Round,
        ftz: bool,
        sat: bool,
        integral: bool,
        /// First bit of the source in its register.
        at: u8,
    },
    /// Packs two f32, converted to a 16-bit format.
    Pack {
        to: Format,
        mode: Mode,
        finite: bool,
    },
    /// Packs two f32, or two halves, as numbers of at most 8 bits; bits of the third
    /// source go above them.
    Pack8 {
        to: Tiny,
        /// The format of the halves of the source; `None` for two f32.
        halves: Option<Format>,
        how: Round,
        relu: bool,
        /// First bit of the third source that goes above the packed numbers.
        at: u8,
    },
    /// Packs two f32 with stochastic rounding by the bits of the third source; the rest of it goes
    /// above two narrow numbers.
    PackRandom {
        to: Random,
        finite: bool,
        relu: bool,
    },
    /// Packs two f32, or the halves of a bf16x2, as ue8m0 exponents; a half of the third source
    /// goes above them.
    PackScale {
        halves: bool,
        up: bool,
        finite: bool,
        at: u8,
    },
    /// Unpacks two ue8m0 exponents to bf16x2.
    UnpackScale {
        at: u8,
    },
    /// Converts an f32 to a 16-bit format; a half of b goes above it.
    PackOne {
        to: Format,
        mode: Mode,
        finite: bool,
        high: bool,
    },
    /// Packs two integers, or two rounded f32, clamped to a type. A half of c goes above 8-bit
    /// results, its low bits above narrower ones.
    PackInts {
        to: IntType,
        from_float: Option<(Round, bool)>,
        high: bool,
    },
    /// Unpacks two numbers of at most 8 bits to f16x2 or bf16x2.
    Unpack8 {
        from: Tiny,
        to: Format,
        finite: bool,
        relu: bool,
        /// First bit that is read.
        at: u8,
    },
    /// Rounds an f32 to tf32.
    Tf32 {
        mode: Mode,
        finite: bool,
    },
    /// Clamps an integer to another type.
    IntToInt {
        from: IntType,
        to: IntType,
        /// First bit of the source in its register.
        at: u8,
    },
}

/// The part of a multiply-add that is the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Low,
    High,
    Wide,
}

fn word(d: u32) -> Out {
    Out { d: d.into(), ..Out::default() }
}

fn double(d: u64) -> Out {
    Out { d, ..Out::default() }
}

impl Alu {
    /// Computes the results from the sources.
    pub fn eval(&self, x: &In) -> Out {
        let (a, b, c) = (x.a as u32, x.b as u32, x.c as u32);
        match *self {
            Alu::AddLanes { bits, minus } => {
                let sum = |a: u32, b: u32| if minus { a.wrapping_sub(b) } else { a.wrapping_add(b) };
                word(lanes(bits, |at| sum(a >> at, b >> at)))
            }
            Alu::AddClamped { ty, minus } => word(lanes(ty.bits, |at| {
                let (a, b) = (ty.value(x.a >> at), ty.value(x.b >> at));
                let (least, most) =
                    if ty.signed { (-1 << (ty.bits - 1), (1 << (ty.bits - 1)) - 1) } else { (0, (1 << ty.bits) - 1) };
                (if minus { a - b } else { a + b }).clamp(least, most) as u32
            })),
            Alu::SetLanes { cmp, ty } => word(lanes(ty.bits, |at| {
                let holds = int::compare(cmp, ty.value(x.a >> at), ty.value(x.b >> at));
                if holds { u32::MAX } else { 0 }
            })),
            Alu::CarrylessMad { high } => double(int::carryless_mad(x.a, x.b, x.c, high)),
            Alu::MinMaxRelu(ty) => word((min_max(ty, x.a, x.b, x.pp).d as i32).max(0) as u32),
            Alu::MinMaxLanes { ty, relu, three } => min_max_lanes(ty, relu, three, x),
            Alu::Mov => double(x.a),
            Alu::Select => double(if x.pp { x.a } else { x.b }),
            Alu::SelectF32 => double(F32.flush(if x.pp { x.a } else { x.b })),
            Alu::Add3 { x: carry, plus } => {
                let ins = if carry { u32::from(x.pp) + u32::from(x.pq) } else { 0 };
                let (d, outs) = int::add3(a, b, c, ins + u32::from(plus));
                Out { d: d.into(), pu: outs >= 1, pv: outs >= 2 }
            }
            Alu::Add64 { x: carry, plus } => {
                let ins = if carry { u128::from(x.pp) + u128::from(x.pq) } else { 0 };
                let sum = u128::from(x.a) + u128::from(x.b) + u128::from(x.c) + ins + u128::from(plus);
                Out { d: sum as u64, pu: sum >> 64 != 0, pv: sum >> 65 != 0 }
            }
            Alu::Mad { x: carry, signed, negate, part } => multiply_add(x, carry, signed, negate, part),
            Alu::Lea { how, plus } => {
                let (d, carry) = int::lea(how, a, b, c, u32::from(how.x && x.pp) + u32::from(plus));
                Out { d: d.into(), pu: carry != 0, pv: false }
            }
            Alu::Shift(how) => word(int::funnel(how, a, b, c)),
            Alu::Permute(mode) => word(int::permute(mode, a, b, c)),
            Alu::Logic { lut, all } => {
                let d = int::logic3(lut, a, b, c);
                let nonzero = d != 0;
                Out { d: d.into(), pu: if all { nonzero & x.pp } else { nonzero | x.pp }, pv: false }
            }
            Alu::LogicP { lut, lut2 } => {
                let of = |lut| int::logic3_bool(lut, x.pp, x.pq, x.pr);
                Out { d: 0, pu: of(lut), pv: of(lut2) }
            }
            Alu::Compare { cmp, ty, join, ex } => {
                let (a, b) = (ty.value(x.a), ty.value(x.b));
                let holds = if ex { int::compare_high(cmp, a, b, x.pq) } else { int::compare(cmp, a, b) };
                both(join, holds, x.pp)
            }
            Alu::MinMaxInt(ty) => min_max(ty, x.a, x.b, x.pp),
            Alu::AddMinMax { ty, relu } => word(add_min_max(ty, relu, x)),
            Alu::MinMax3(ty) => min_max(ty, min_max(ty, x.a, x.b, x.pp).d, x.c, x.pp),
            Alu::Mask { wrap } => word(int::bit_mask(a, b, wrap)),
            Alu::Extend { signed, wrap } => word(int::extend(a, b, signed, wrap)),
            Alu::Abs => word((a as i32).unsigned_abs()),
            Alu::Popc => word(a.count_ones()),
            Alu::Brev => word(a.reverse_bits()),
            Alu::Leading { signed, from_top } => {
                let found = int::find_leading(a, signed, from_top);
                Out { d: found.unwrap_or(u32::MAX).into(), pu: found.is_some(), pv: false }
            }
            Alu::Dot { a_signed, b_signed, halves } => word(int::dot(a, b, c, a_signed, b_signed, halves)),
            Alu::AbsDiff { signed } => {
                let ty = IntType { bits: 32, signed };
                word(((ty.value(x.a) - ty.value(x.b)).unsigned_abs() as u32).wrapping_add(c))
            }
            Alu::AbsDiff4 { signed, sum } => {
                let ty = IntType { bits: 8, signed };
                let one = |at: u32| (ty.value(x.a >> at) - ty.value(x.b >> at)).unsigned_abs() as u32;
                word(match sum {
                    true => (0..4).fold(c, |sum, i| sum.wrapping_add(one(8 * i))),
                    false => lanes(8, one),
                })
            }
            Alu::LogicSign { lut, lut2 } => {
                let [a, b, c] = [a, b, c].each(|word| word >> 31 != 0);
                Out { d: 0, pu: int::logic3_bool(lut, a, b, c), pv: int::logic3_bool(lut2, a, b, c) }
            }
            _ => self.eval_float(x),
        }
    }

    fn eval_float(&self, x: &In) -> Out {
        let (a, b, c) = (x.a as u32, x.b as u32, x.c as u32);
        match *self {
            Alu::Float(op, format, mode) => double(float(op, format, mode, [x.a, x.b, x.c], x.pp)),
            Alu::Pair(op, mode, at) => {
                let v = [x.a, x.b, x.c];
                let one = |half: usize| {
                    float(op, F32, mode, std::array::from_fn(|i| v[i] >> at[i][half] & 0xffff_ffff), x.pp)
                };
                double(one(0) | one(1) << 32)
            }
            Alu::PairOfTypes(op, mode, at, [from, to]) => {
                let one = |half: usize| {
                    let mut v: [u64; 3] = std::array::from_fn(|i| [x.a, x.b, x.c][i] >> at[i][half] & 0xffff_ffff);
                    if from != F32 {
                        v[0] = from.convert(v[0] & 0xffff, F32, Round::Nearest);
                    }
                    let value = float(op, F32, mode, v, x.pp);
                    if to == F32 { value } else { F32.convert(value, to, mode.round) }
                };
                double(one(0) | one(1) << if to == F32 { 32 } else { 16 })
            }
            Alu::Mixed(op, how) => {
                let wide = |i: usize, bits: u64| {
                    let half = half::halves(how.pick[i], bits as u32, how.format)[0];
                    how.format.convert(half, F32, Round::Nearest)
                };
                let b = if op == FloatOp::Fma { wide(1, x.b) } else { x.b };
                double(float(op, F32, how.mode, [wide(0, x.a), b, x.c], x.pp))
            }
            Alu::FloatMinMax3(mode, nan) => {
                let first = real::min_max(F32, x.a, x.b, x.pp, nan, mode);
                double(real::min_max(F32, first, x.c, x.pp, nan, mode))
            }
            Alu::CompareFloat { cmp, format, ftz, join } => {
                both(join, cmp.holds(real::compare(format, x.a, x.b, ftz)), x.pp)
            }
            Alu::SetFloat { cmp, ftz, join, ones } => {
                let holds = join.of(cmp.holds(real::compare(F32, x.a, x.b, ftz)), x.pp);
                word(match (holds, ones) {
                    (false, _) => 0,
                    (true, false) => 1f32.to_bits(),
                    (true, true) => u32::MAX,
                })
            }
            Alu::ChooseF64 { min } => {
                let nan = [x.a, x.b].each(|bits| F64.is_nan(bits));
                let first = real::min_max(F64, x.a, x.b, min, false, Mode::default()) == x.a;
                Out { d: 0, pu: nan[1] || first && !nan[0], pv: nan[0] && nan[1] }
            }
            Alu::CheckDivide => Out { pu: divide_needs_care(x.a as u32, x.b as u32), ..Out::default() },
            Alu::Mufu(function, format, sat, high) => {
                let y = mufu::apply(function, format, if high { x.a >> 16 } else { x.a });
                double(Mode { sat, ..Mode::default() }.output(format, y))
            }
            Alu::IntToFloat { from, to, round, at } => double(convert::int_to_float(from, x.a >> at, to, round)),
            Alu::FloatToInt { from, to, round, ftz, at } => {
                double(convert::float_to_int(from, x.a >> at, to, round, ftz))
            }
            Alu::FloatToFloat { from, to, round, ftz, sat, integral, at } => {
                let a = x.a >> at;
                let flushed = if ftz { from.flush(a) } else { a };
                let y = match integral {
                    true => convert::round_float(from, flushed, to, round, false),
                    false => from.convert(flushed, to, round),
                };
                double(Mode { sat, ftz: ftz && to == F32, ..Mode::default() }.output(to, y))
            }
            Alu::Pack { to, mode, finite } => {
                let one = |bits: u64| {
                    let bits = if mode.ftz { F32.flush(bits) } else { bits };
                    narrow::narrow(bits, to, Mode { ftz: false, ..mode }, finite)
                };
                word(half::join(one(x.b), one(x.a)))
            }
            Alu::PackOne { to, mode, finite, high } => {
                let bits = if mode.ftz { F32.flush(x.a) } else { x.a };
                let low = narrow::narrow(bits, to, Mode { ftz: false, ..mode }, finite);
                word(half::join(low, u64::from(if high { b >> 16 } else { b })))
            }
            Alu::PackInts { to, from_float, high } => {
                let [low, above] = [x.b, x.a].each(|bits| match from_float {
                    Some((round, relu)) => {
                        let bits = if relu && bits >> 31 & 1 != 0 { 0 } else { bits };
                        convert::float_to_int(F32, bits, to, round, false) as u32
                    }
                    None => to.clamp(IntType { bits: 32, signed: true }.value(bits)) as u32,
                });
                let ones = u32::MAX >> (32 - to.bits);
                let third = if to.bits < 16 { (if high { c >> 16 } else { c }) << (2 * to.bits) } else { 0 };
                word(low & ones | (above & ones) << to.bits | third)
            }
            Alu::Pack8 { to, halves, how, relu, at } => {
                let [low, high] = if let Some(format) = halves {
                    half::halves(Pick::Both, a, format).each(|bits| narrow::to_tiny(to, format.unpack(bits), how, relu))
                } else {
                    [x.b, x.a].each(|bits| narrow::to_tiny(to, F32.unpack(bits), how, relu))
                };
                let (third, step) = (if halves.is_some() { b } else { c }, to.step());
                word(u32::from(low) | u32::from(high) << step | third >> at << (2 * step))
            }
            Alu::PackRandom { to, finite, relu } => {
                let one = |bits: u64, random: u32| random_round(to, F32.unpack(bits), random, finite, relu);
                let (high, low, step) = (c >> 16, if to.halves() { c } else { c >> 16 }, to.step());
                let pair = one(x.b, low & 0xffff) | one(x.a, high) << step;
                word(if to.halves() { pair } else { pair | c << (2 * step) })
            }
            Alu::Unpack8 { from, to, finite, relu, at } => {
                let numbers = [at.into(), u32::from(at) + from.step()];
                let [low, high] = numbers
                    .each(|by| narrow::from_tiny(from, (a >> by) as u8, relu))
                    .each(|half| if to == F16 { half } else { F16.convert(half, to, Round::Nearest) })
                    .each(|n| {
                        if finite && n & (to.sign_bit() - 1) == to.inf(false) {
                            to.max(n & to.sign_bit() != 0)
                        } else {
                            n
                        }
                    });
                word(half::join(low, high))
            }
            Alu::PackScale { halves, up, finite, at } => {
                let [low, high] = if halves {
                    half::halves(Pick::Both, a, BF16).each(|bits| narrow::to_scale(BF16.unpack(bits), up, finite))
                } else {
                    [x.b, x.a].each(|bits| narrow::to_scale(F32.unpack(bits), up, finite))
                };
                let third = if halves { b } else { c };
                word(u32::from(low) | u32::from(high) << 8 | third >> at << 16)
            }
            Alu::UnpackScale { at } => {
                let [low, high] = [a >> at, a >> at >> 8].each(|bits| narrow::from_scale(bits as u8));
                word(half::join(low, high))
            }
            Alu::Tf32 { mode, finite } => double(narrow::narrow_tf32(x.a, mode, finite)),
            Alu::IntToInt { from, to, at } => word(to.clamp(from.value(x.a >> at)) as u32),
            _ => self.eval_half(x),
        }
    }

    fn eval_half(&self, x: &In) -> Out {
        let split = |how: Halves| {
            let v = [x.a, x.b, x.c].each(|bits| bits as u32);
            let [a, b, c] = std::array::from_fn(|i| half::halves(how.pick[i], v[i], how.format));
            [[a[0], b[0], c[0]], [a[1], b[1], c[1]]]
        };
        let compare = |how: Halves, cmp: FloatCmp| {
            split(how).each(|[a, b, _]| cmp.holds(real::compare(how.format, a, b, how.mode.ftz)))
        };
        match *self {
            Alu::Half(op, how) => {
                let [low, high] = split(how).each(|v| float(op, how.format, how.mode, v, x.pp));
                word(half::join(low, high))
            }
            Alu::HalfToF32(how) => {
                let [a, b, _] = split(how)[0].each(|bits| how.format.convert(bits, F32, Round::Nearest));
                double(real::add(F32, a, b, how.mode))
            }
            Alu::CompareHalf { cmp, how, join, and } => {
                let [low, high] = compare(how, cmp);
                let pick = |low, high| Out { d: 0, pu: join.of(low, x.pp), pv: join.of(high, x.pp) };
                if and { pick(low & high, !(low & high)) } else { pick(low, high) }
            }
            Alu::SetHalf { cmp, how, join, ones } => {
                let one = if ones { 0xffff } else { half_one(how.format) };
                let [low, high] = compare(how, cmp).each(|holds| if join.of(holds, x.pp) { one } else { 0 });
                word(half::join(low, high))
            }
            _ => Out::default(),
        }
    }
}

/// Applies `f` to the position of each packed number of `bits` bits and packs the results.
fn lanes(bits: u32, f: impl Fn(u32) -> u32) -> u32 {
    let ones = u32::MAX >> (32 - bits);
    (0..32).step_by(bits as usize).fold(0, |word, at| word | (f(at) & ones) << at)
}

fn half_one(format: Format) -> u64 {
    if format == F16 { 0x3c00 } else { 0x3f80 }
}

fn both(join: Join, holds: bool, pp: bool) -> Out {
    Out { d: 0, pu: join.of(holds, pp), pv: join.of(!holds, pp) }
}

/// The minimum or maximum of packed integers; the predicates say whether the lowest one and the one
/// above it are those of the first operand.
fn min_max_lanes(ty: IntType, relu: bool, three: bool, x: &In) -> Out {
    let best = |at: u32| {
        let two = min_max(ty, x.a >> at, x.b >> at, x.pp).d;
        let best = if three { min_max(ty, two, x.c >> at, x.pp).d } else { two };
        if relu && ty.value(best) < 0 { 0 } else { best as u32 }
    };
    let first = |at: u32| ty.value(best(at).into()) == ty.value(x.a >> at);
    Out { d: lanes(ty.bits, best).into(), pu: first(0), pv: ty.bits < 32 && first(ty.bits) }
}

/// The sums of VIADDMNMX wrap before they are compared.
fn add_min_max(ty: IntType, relu: bool, x: &In) -> u32 {
    lanes(ty.bits, |at| {
        let sum = (x.a >> at).wrapping_add(x.b >> at);
        let best = min_max(ty, sum, x.c >> at, x.pp).d;
        if relu && ty.value(best) < 0 { 0 } else { best as u32 }
    })
}

fn min_max(ty: IntType, a: u64, b: u64, min: bool) -> Out {
    let a_first = (ty.value(a) <= ty.value(b)) == min;
    Out { d: if a_first { a } else { b }, pu: a_first, pv: !a_first }
}

fn multiply_add(x: &In, carry: bool, signed: bool, negate: bool, part: Part) -> Out {
    let c = if part == Part::Low { u64::from(x.c as u32) } else { x.c };
    let (d, out) = int::mad64(x.a as u32, x.b as u32, c, carry && x.pp, signed, negate);
    match part {
        Part::Low => word(d as u32),
        Part::High => Out { d: d >> 32, pu: out, pv: false },
        Part::Wide => Out { d, pu: out, pv: false },
    }
}

fn float(op: FloatOp, f: Format, mode: Mode, [a, b, c]: [u64; 3], pp: bool) -> u64 {
    match op {
        FloatOp::Add => real::add(f, a, b, mode),
        FloatOp::Mul => real::mul(f, a, b, mode),
        FloatOp::Fma => real::fma(f, a, b, c, mode),
        FloatOp::FmaInBounds if [a, b].contains(&(f.nan() | f.sign_bit())) => 0,
        FloatOp::FmaInBounds => real::fma(f, a, b, c, mode),
        FloatOp::MinMax(nan) => real::min_max(f, a, b, pp, nan, mode),
        FloatOp::MinMaxXor(nan) => real::min_max_magnitudes(f, a, b, pp, nan, mode),
    }
}

/// Whether the Newton iteration for a / b in f32 could leave the range of normal numbers. It errs
/// towards yes, because the slow path is right for all numbers.
fn divide_needs_care(a: u32, b: u32) -> bool {
    let exponent = |bits: u32| (bits >> 23 & 0xff) as i32;
    let (ea, eb) = (exponent(a), exponent(b));
    eb <= 2 || eb >= 252 || ea == 255 || ea <= 32 || !(-120..=120).contains(&(ea - eb))
}

/// The floating-point format that a modifier word names.
pub fn float_format(word: &str) -> Option<Format> {
    match word {
        "F16" => Some(F16),
        "F32" => Some(F32),
        "F64" => Some(F64),
        "BF16" | "BF16_V2" => Some(super::super::ops::format::BF16),
        "TF32" => Some(super::super::ops::format::TF32),
        _ => None,
    }
}
