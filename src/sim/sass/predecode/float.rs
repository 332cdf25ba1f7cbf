//! Predecodes float, half-precision and conversion opcodes.

use super::super::super::ops::convert::IntType;
use super::super::super::ops::format::{BF16, F16, F32, F64, Format, Round};
use super::super::super::ops::half::Pick;
use super::super::super::ops::mufu::Function;
use super::super::super::ops::narrow::Tiny;
use super::super::super::ops::random::Random;
use super::super::super::ops::real::Mode;
use super::super::alu::{Alu, FloatCmp, FloatOp, Halves, float_format};
use super::super::code::{Exec, From, Src};
use super::arith::join;
use super::operands::{Builder, Kind};
use crate::arrays::Each;
use crate::sass::ArgKind;
use crate::tables::{Op, Role};

const ROUNDS: [(&str, Round); 6] = [
    ("RM", Round::Down),
    ("RP", Round::Up),
    ("RZ", Round::Zero),
    ("FLOOR", Round::Down),
    ("CEIL", Round::Up),
    ("TRUNC", Round::Zero),
];
const FUNCTIONS: [(&str, Function); 10] = [
    ("COS", Function::Cos),
    ("SIN", Function::Sin),
    ("EX2", Function::Ex2),
    ("LG2", Function::Lg2),
    ("RCP", Function::Rcp),
    ("RSQ", Function::Rsq),
    ("RCP64H", Function::Rcp64h),
    ("RSQ64H", Function::Rsq64h),
    ("SQRT", Function::Sqrt),
    ("TANH", Function::Tanh),
];

fn mode(b: &Builder) -> Mode {
    Mode { round: round(b), ftz: b.has("FTZ"), fmz: b.has("FMZ"), sat: b.has("SAT"), relu: b.has("RELU") }
}

fn round(b: &Builder) -> Round {
    b.lifted.words.pick(&ROUNDS).unwrap_or_default()
}

/// Reads the float comparison. LT and the like are false for NaN; LTU and the like are true.
fn float_cmp(b: &Builder) -> FloatCmp {
    let of = |less, equal, greater, unordered| FloatCmp { less, equal, greater, unordered };
    let list = [
        ("LT", of(true, false, false, false)),
        ("EQ", of(false, true, false, false)),
        ("LE", of(true, true, false, false)),
        ("GT", of(false, false, true, false)),
        ("NE", of(true, false, true, false)),
        ("GE", of(false, true, true, false)),
        ("NUM", of(true, true, true, false)),
        ("NAN", of(false, false, false, true)),
        ("LTU", of(true, false, false, true)),
        ("EQU", of(false, true, false, true)),
        ("LEU", of(true, true, false, true)),
        ("GTU", of(false, false, true, true)),
        ("NEU", of(true, false, true, true)),
        ("GEU", of(false, true, true, true)),
        ("T", of(true, true, true, true)),
    ];
    b.lifted.words.pick(&list).unwrap_or_default()
}

/// Predecodes an opcode; `None` if it belongs to another family.
///
/// # Errors
///
/// A modifier or operand that the simulator does not implement.
pub fn build(b: &mut Builder) -> Result<Option<Exec>, String> {
    let alu = match single(b)? {
        Some(alu) => alu,
        None => match double(b)? {
            Some(alu) => alu,
            None => match half(b)? {
                Some(alu) => alu,
                None => match pair_or_mixed(b)? {
                    Some(alu) => alu,
                    None => match conversion(b)? {
                        Some(alu) => alu,
                        None => return Ok(None),
                    },
                },
            },
        },
    };
    Ok(Some(Exec::Alu(alu)))
}

/// Modifiers of float operations that the simulator does not implement.
const REFUSED: [&str; 6] = ["D2", "D4", "D8", "M2", "M4", "M8"];

/// The kind of a minimum or maximum.
fn min_max(b: &Builder) -> FloatOp {
    if b.has("XORSIGN") { FloatOp::MinMaxXor(b.has("NAN")) } else { FloatOp::MinMax(b.has("NAN")) }
}

/// Keeps the signs of operands whose magnitudes are compared but whose signs matter (`XORSIGN`).
fn keep_signs(b: &mut Builder) {
    if b.has("XORSIGN") {
        (b.code.a.and, b.code.b.and) = (u64::MAX, u64::MAX);
    }
}

fn single(b: &mut Builder) -> Result<Option<Alu>, String> {
    let mode = mode(b);
    let ftz = mode.ftz;
    let alu = match b.lifted.inst.op {
        Op::FADD | Op::UFADD => Alu::Float(FloatOp::Add, F32, mode),
        Op::FMUL | Op::UFMUL => Alu::Float(FloatOp::Mul, F32, mode),
        Op::FFMA | Op::UFFMA => Alu::Float(FloatOp::Fma, F32, mode),
        Op::FMNMX | Op::FMNMX_2 => Alu::Float(min_max(b), F32, mode),
        Op::FMNMX3 => Alu::FloatMinMax3(mode, b.has("NAN")),
        Op::FSEL | Op::UFSEL if ftz => Alu::SelectF32,
        Op::FSEL | Op::UFSEL => Alu::Select,
        Op::FSETP | Op::UFSETP => Alu::CompareFloat { cmp: float_cmp(b), format: F32, ftz, join: join(b) },
        Op::FSET | Op::UFSET => Alu::SetFloat { cmp: float_cmp(b), ftz, join: join(b), ones: !b.has("BF") },
        Op::FCHK => Alu::CheckDivide,
        Op::MUFU => {
            let function = b.lifted.words.pick(&FUNCTIONS).unwrap_or(Function::Cos);
            let format = b.lifted.words.iter().find_map(|(_, word)| float_format(word)).unwrap_or(F32);
            Alu::Mufu(function, format, mode.sat, b.has("H1"))
        }
        _ => return Ok(None),
    };
    if let Some(word) = REFUSED.into_iter().find(|word| b.has(word)) {
        return Err(format!("the simulator does not execute {}.{word}", b.lifted.inst.op.info().text));
    }
    let halves = matches!(alu, Alu::Mufu(_, format, ..) if format != F32);
    b.abc(if halves { Kind::F16x2 } else { Kind::F32 })?;
    if let Alu::Mufu(Function::Rcp64h | Function::Rsq64h, ..) = alu {
        high_word(b);
    }
    keep_signs(b);
    Ok(Some(alu))
}

/// Where an instruction reads the high word of an f64, an immediate means the whole f64.
fn high_word(b: &mut Builder) {
    if b.arg(Role::A).kind == ArgKind::Imm {
        b.code.a.from = From::Value(b.imm(Role::A) >> 32);
    }
}

fn double(b: &mut Builder) -> Result<Option<Alu>, String> {
    let mode = mode(b);
    let alu = match b.lifted.inst.op {
        Op::DADD => Alu::Float(FloatOp::Add, F64, mode),
        Op::DMUL => Alu::Float(FloatOp::Mul, F64, mode),
        Op::DFMA => Alu::Float(FloatOp::Fma, F64, mode),
        Op::DSETP if b.has("MIN") || b.has("MAX") => Alu::ChooseF64 { min: b.has("MIN") },
        Op::DSETP => Alu::CompareFloat { cmp: float_cmp(b), format: F64, ftz: false, join: join(b) },
        _ => return Ok(None),
    };
    // Some forms in the tables have the second source of DADD as c.
    b.abc_wide([true; 3], Kind::F64)?;
    b.code.words = 2;
    Ok(Some(alu))
}

/// The halves that an operand provides, from the modifier kind that ends in the operand's letter.
fn pick(b: &Builder, letter: char) -> Pick {
    let mine = b.lifted.words.iter().filter(|(kind, _)| kind.ends_with(letter));
    let found = mine.filter_map(|(_, text)| match text {
        "H0_H0" => Some(Pick::Low),
        "H1_H1" => Some(Pick::High),
        "H1_H0" => Some(Pick::Both),
        "H0_H1" | "H0_NH1" => Some(Pick::Swapped),
        "F32" => Some(Pick::Single),
        _ => None,
    });
    found.last().unwrap_or_default()
}

fn half(b: &mut Builder) -> Result<Option<Alu>, String> {
    let format = if b.has("BF16_V2") || b.has("BF16") { BF16 } else { F16 };
    let how = Halves { pick: ['a', 'b', 'c'].each(|letter| pick(b, letter)), format, mode: mode(b) };
    let join = join(b);
    let alu = match b.lifted.inst.op {
        Op::HADD2 if b.lifted.words.iter().any(|word| word == ("", "F32")) => Alu::HalfToF32(how),
        Op::HADD2 => Alu::Half(FloatOp::Add, how),
        Op::HADD2_F32 => Alu::HalfToF32(how),
        Op::HMUL2 => Alu::Half(FloatOp::Mul, how),
        Op::HFMA2 if b.has("OOB") => Alu::Half(FloatOp::FmaInBounds, how),
        Op::HFMA2 | Op::HFMA2_MMA => Alu::Half(FloatOp::Fma, how),
        Op::HMNMX2 | Op::VHMNMX => Alu::Half(min_max(b), how),
        Op::HSETP2 => Alu::CompareHalf { cmp: float_cmp(b), how, join, and: b.has("H_AND") },
        Op::HSET2 => Alu::SetHalf { cmp: float_cmp(b), how, join, ones: !b.has("BF") },
        _ => return Ok(None),
    };
    b.abc(Kind::F16x2)?;
    if b.has("H0_NH1") {
        b.code.b.xor ^= 1 << 31;
    }
    keep_signs(b);
    Ok(Some(alu))
}

/// The sources of an operation on pairs of f32, with the modifier kinds that select each pair: in
/// order, swapped, or one number for both.
const PAIRS: [(Role, &str); 3] = [(Role::A, "pair_a"), (Role::B, "pair_b"), (Role::C, "pair_c")];

/// The formats of the first source and of the result of an operation on pairs of several types.
fn types(b: &Builder) -> Option<[Format; 2]> {
    let several = matches!(b.lifted.inst.op, Op::FHADD2 | Op::FHMUL2 | Op::FHFMA2);
    // In listings the words have no kind.
    let words = b.lifted.words.iter().filter(|(kind, _)| several && matches!(*kind, "fh_types" | ""));
    let mut types = words.flat_map(|(_, text)| text.split('.')).filter_map(|name| match name {
        "F16x2" => Some(F16),
        "BF16x2" => Some(BF16),
        "F32x2" => Some(F32),
        _ => None,
    });
    let result = types.next()?;
    Some([types.next()?, result])
}

/// Predecodes operations on pairs of f32, and f32 operations on halves.
fn pair_or_mixed(b: &mut Builder) -> Result<Option<Alu>, String> {
    let mode = mode(b);
    let (op, pair) = match b.lifted.inst.op {
        Op::FADD2 => (FloatOp::Add, true),
        Op::FMUL2 => (FloatOp::Mul, true),
        Op::FFMA2 => (FloatOp::Fma, true),
        Op::FHADD2 => (FloatOp::Add, true),
        Op::FHMUL2 => (FloatOp::Mul, true),
        Op::FHFMA2 => (FloatOp::Fma, true),
        Op::FHADD => (FloatOp::Add, false),
        Op::FHFMA => (FloatOp::Fma, false),
        _ => return Ok(None),
    };
    if pair {
        if b.has("NP") {
            return Err(format!("the simulator does not execute {}.NP", b.lifted.inst.op.info().text));
        }
        let (mut at, mut src) = ([[0, 32]; 3], [Src::default(); 3]);
        for (i, (role, kind)) in PAIRS.into_iter().enumerate() {
            let single = b.lifted.words.kind(kind) == Some("F32") || b.arg(role).kind == ArgKind::Imm;
            let turned = b.lifted.words.iter().any(|word| word == (kind, "LO_HI"));
            at[i] = match (single, turned) {
                (true, _) => [0, 0],
                (_, true) => [32, 0],
                _ => [0, 32],
            };
            src[i] = b.src(role, !single, if single { Kind::F32 } else { Kind::F32x2 })?;
        }
        if let Some([from, to]) = types(b) {
            if from != F32 {
                (at[0], src[0]) = ([0, 16], b.src(Role::A, false, Kind::F16x2)?);
            }
            [b.code.a, b.code.b, b.code.c] = src;
            b.code.words = if to == F32 { 2 } else { 1 };
            return Ok(Some(Alu::PairOfTypes(op, mode, at, [from, to])));
        }
        [b.code.a, b.code.b, b.code.c] = src;
        b.code.words = 2;
        return Ok(Some(Alu::Pair(op, mode, at)));
    }
    let half = |kind: &str| if b.lifted.words.kind(kind) == Some("H1") { Pick::High } else { Pick::Low };
    let pick = [half("half_a"), half("half_b"), Pick::Low];
    let format = if b.has("BF16") { BF16 } else { F16 };
    let second = if op == FloatOp::Fma { Kind::F16x2 } else { Kind::F32 };
    b.code.a = b.src(Role::A, false, Kind::F16x2)?;
    b.code.b = b.src(Role::B, false, second)?;
    b.code.c = b.src(Role::C, false, Kind::F32)?;
    Ok(Some(Alu::Mixed(op, Halves { pick, format, mode })))
}

fn int_named(word: &str) -> Option<IntType> {
    let (sign, bits) = word.split_at_checked(1)?;
    let signed = match sign {
        "S" => true,
        "U" => false,
        _ => return None,
    };
    bits.parse().ok().filter(|bits| [2, 4, 8, 16, 32, 64].contains(bits)).map(|bits| IntType { bits, signed })
}

fn conversion(b: &mut Builder) -> Result<Option<Alu>, String> {
    let words: Vec<(String, String)> =
        b.lifted.words.iter().map(|(kind, text)| (kind.to_string(), text.to_string())).collect();
    let integers: Vec<IntType> = words.iter().filter_map(|(_, text)| int_named(text)).collect();
    let float_of = |kind: &str| {
        let mut found = words.iter().filter(|(name, _)| name == kind).filter_map(|(_, text)| float_format(text));
        found.next()
    };
    let any_float = words.iter().find_map(|(_, text)| float_format(text));
    let s32 = IntType { bits: 32, signed: true };
    let (round, ftz, sat) = (round(b), b.has("FTZ"), b.has("SAT"));
    let at = b.lifted.words.pick(&[("B1", 8), ("B2", 16), ("B3", 24), ("H1", 16)]).unwrap_or(0);
    let from_float = |alu: Alu, format: Format| (alu, format);
    let (alu, source) = match b.lifted.inst.op {
        Op::I2F | Op::I2F_X | Op::I2FP | Op::UI2F | Op::UI2FP => {
            let from = integers.first().copied().unwrap_or(s32);
            let to = any_float.unwrap_or(F32);
            b.code.words = (to.bits() / 32).max(1) as u8;
            b.code.a = b.src(Role::A, from.bits == 64, Kind::Int)?;
            return Ok(Some(Alu::IntToFloat { from, to, round, at }));
        }
        Op::F2I | Op::F2I_X | Op::UF2I => {
            let to = integers.first().copied().unwrap_or(s32);
            let from = float_of("src").or(any_float).unwrap_or(F32);
            b.code.words = (to.bits / 32).max(1) as u8;
            from_float(Alu::FloatToInt { from, to, round, ftz, at }, from)
        }
        Op::F2F | Op::F2F_X | Op::FRND | Op::FRND_X | Op::UFRND | Op::UF2F => {
            let integral = matches!(b.lifted.inst.op, Op::FRND | Op::FRND_X | Op::UFRND)
                || ["FLOOR", "CEIL", "TRUNC", "ROUND"].iter().any(|word| b.has(word));
            let rounding = matches!(b.lifted.inst.op, Op::FRND | Op::FRND_X | Op::UFRND);
            let from = float_of("src").or(if rounding { any_float } else { None }).unwrap_or(F32);
            let to = float_of("dst").or(if rounding { any_float } else { None }).unwrap_or(F32);
            b.code.words = (to.bits() / 32).max(1) as u8;
            from_float(Alu::FloatToFloat { from, to, round, ftz, sat, integral, at }, from)
        }
        Op::F2FP | Op::F2FP_RS | Op::UF2FP => {
            b.abc(Kind::F32)?;
            return Ok(Some(pack(b)?));
        }
        Op::I2IP | Op::F2IP => {
            let to = float_to_int_type(&words, "dst").unwrap_or(s32);
            let float = b.lifted.inst.op == Op::F2IP;
            b.abc(if float { Kind::F32 } else { Kind::Int })?;
            if b.has("SATRELU") || !float && !sat {
                return Err(format!("the simulator does not execute this {}", b.lifted.inst.op.info().text));
            }
            let from_float = float.then(|| (round, b.has("RELU")));
            return Ok(Some(Alu::PackInts { to, from_float, high: b.has("H1") }));
        }
        Op::I2I => {
            let to = float_to_int_type(&words, "dst").or(integers.first().copied()).unwrap_or(s32);
            let from = float_to_int_type(&words, "src").unwrap_or(s32);
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            return Ok(Some(Alu::IntToInt { from, to, at }));
        }
        _ => return Ok(None),
    };
    let kind = if source == F64 {
        Kind::F64
    } else if source == F32 {
        Kind::F32
    } else {
        Kind::F16x2
    };
    b.code.a = b.src(Role::A, source == F64, kind)?;
    Ok(Some(alu))
}

/// Predecodes F2FP: two f32 to 16 bits, conversions to and from at most 8 bits, and to tf32.
fn pack(b: &Builder) -> Result<Alu, String> {
    let (mode, finite, relu) = (mode(b), b.has("SATFINITE"), b.has("RELU"));
    let formats =
        [("E4M3", Tiny::E4m3), ("E5M2", Tiny::E5m2), ("E3M2", Tiny::E3m2), ("E2M3", Tiny::E2m3), ("E2M1", Tiny::E2m1)];
    let tiny = b.lifted.words.pick(&formats);
    if b.has("RS") {
        let to = tiny.map_or(if b.has("BF16") { Random::Half(BF16) } else { Random::Half(F16) }, Random::Tiny);
        return Ok(Alu::PackRandom { to, finite, relu });
    }
    let high = b.has("H1");
    let at = b.lifted.words.pick(&[("H1", 16), ("B1", 8), ("B2", 16), ("B3", 24)]).unwrap_or(0);
    if b.has("E8") {
        let up = b.has("RP");
        return Ok(match b.has("UNPACK_B") {
            true => Alu::UnpackScale { at },
            false => Alu::PackScale { halves: b.has("UNPACK_B_MERGE_C"), up, finite, at },
        });
    }
    Ok(match tiny {
        Some(to) if b.has("PACK_AB_MERGE_C") => Alu::Pack8 { to, halves: None, how: mode.round, relu, at },
        Some(to) if b.has("UNPACK_B_MERGE_C") => {
            let halves = Some(if b.has("BF16") { BF16 } else { F16 });
            Alu::Pack8 { to, halves, how: mode.round, relu, at }
        }
        Some(from) if b.has("UNPACK_B") && b.has("BF16") => {
            // The scale: two exponents, of which the simulator knows that of one.
            let scale = b.arg(Role::B);
            if scale.kind != ArgKind::Imm
                || scale.val & 0xffff != 0x7f7f
                || b.lifted.words.kind("scale_half") == Some("H1")
            {
                return Err("the simulator does not execute F2FP with a scale".to_string());
            }
            Alu::Unpack8 { from, to: BF16, finite, relu, at }
        }
        Some(from) if b.has("UNPACK_B") => Alu::Unpack8 { from, to: F16, finite: false, relu, at },
        Some(_) => return Err("the simulator does not execute this F2FP".to_string()),
        None if b.has("TF32") => Alu::Tf32 { mode, finite },
        None if b.has("MERGE_C") => Alu::PackOne { to: if b.has("BF16") { BF16 } else { F16 }, mode, finite, high },
        None => Alu::Pack { to: if b.has("BF16") { BF16 } else { F16 }, mode, finite },
    })
}

fn float_to_int_type(words: &[(String, String)], kind: &str) -> Option<IntType> {
    words.iter().find(|(name, _)| name == kind).and_then(|(_, text)| int_named(text))
}
