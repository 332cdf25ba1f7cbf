//! Predecodes integer, logic and move opcodes of the per-lane and the uniform datapath.

use super::super::super::ops::convert::IntType;
use super::super::super::ops::int::{Cmp, Lea, Permute, Shift};
use super::super::alu::{Alu, Join, Part};
use super::super::code::{Exec, Pred, Src};
use super::operands::{Builder, Kind};
use crate::arrays::Each;
use crate::tables::{Op, Role};

/// The words of integer comparisons.
pub const CMPS: [(&str, Cmp); 8] = [
    ("F", Cmp::False),
    ("LT", Cmp::Lt),
    ("EQ", Cmp::Eq),
    ("LE", Cmp::Le),
    ("GT", Cmp::Gt),
    ("NE", Cmp::Ne),
    ("GE", Cmp::Ge),
    ("T", Cmp::True),
];
const PERMUTES: [(&str, Permute); 6] = [
    ("F4E", Permute::F4e),
    ("B4E", Permute::B4e),
    ("RC8", Permute::Rc8),
    ("ECL", Permute::Ecl),
    ("ECR", Permute::Ecr),
    ("RC16", Permute::Rc16),
];
const JOINS: [(&str, Join); 2] = [("OR", Join::Or), ("XOR", Join::Xor)];

/// How a comparison is combined with the predicate source.
pub fn join(b: &Builder) -> Join {
    b.lifted.words.pick(&JOINS).unwrap_or_default()
}

/// The integer type that the words name; the default is signed 32 bits, for shifts unsigned 32
/// bits.
pub fn int_type(b: &Builder) -> IntType {
    let of = |bits, signed| IntType { bits, signed };
    if b.lifted.inst.op.name().ends_with("_64") {
        return of(64, !b.has("U32") && !b.has("U64"));
    }
    let shift = matches!(b.lifted.inst.op, Op::SHF | Op::USHF);
    let list = [("U64", of(64, false)), ("S64", of(64, true)), ("U32", of(32, false)), ("S32", of(32, true))];
    b.lifted.words.pick(&list).unwrap_or(of(32, !shift))
}

/// Predecodes an opcode; `None` if it belongs to another family.
///
/// # Errors
///
/// A modifier or operand that the simulator does not implement.
pub fn build(b: &mut Builder) -> Result<Option<Exec>, String> {
    let alu = match sum_or_product(b)? {
        Some(alu) => alu,
        None => match select_or_compare(b)? {
            Some(alu) => alu,
            None => match bits(b)? {
                Some(alu) => alu,
                None => return predicates(b),
            },
        },
    };
    Ok(Some(Exec::Alu(alu)))
}

fn sum_or_product(b: &mut Builder) -> Result<Option<Alu>, String> {
    let (x, signed) = (b.has("X"), !b.has("U32"));
    let mad = |b: &mut Builder, part: Part| {
        b.abc_wide([false, false, part != Part::Low], Kind::Int)?;
        b.code.words = if part == Part::Wide { 2 } else { 1 };
        // Negating a factor negates the product. This also holds for a 32-bit factor in two's
        // complement.
        let negate = b.code.a.negate != b.code.b.negate;
        (b.code.a.negate, b.code.b.negate) = (false, false);
        Ok::<Alu, String>(Alu::Mad { x, signed, negate, part })
    };
    Ok(Some(match b.lifted.inst.op {
        Op::VIADD if ["16x2", "S16x2", "U8x4", "S8x4", "ISAT"].iter().any(|word| b.has(word)) => added_lanes(b)?,
        Op::IADD3 | Op::UIADD3 | Op::VIADD => {
            b.abc(Kind::IntCarry)?;
            Alu::Add3 { x, plus: b.plus }
        }
        Op::IADD_64 | Op::UIADD3_64 => {
            b.abc_wide([true; 3], Kind::IntCarry)?;
            b.code.words = 2;
            Alu::Add64 { x, plus: b.plus }
        }
        Op::CLMAD => {
            b.abc_wide([true; 3], Kind::Int)?;
            b.code.words = 2;
            Alu::CarrylessMad { high: b.has("HI") }
        }
        Op::IADD | Op::UVIADD => {
            b.abc(Kind::IntCarry)?;
            Alu::Add3 { x, plus: b.plus }
        }
        Op::IMAD | Op::UIMAD if b.has("WIDE") => mad(b, Part::Wide)?,
        Op::IMAD | Op::UIMAD if b.has("HI") => mad(b, Part::High)?,
        Op::IMAD | Op::UIMAD => mad(b, Part::Low)?,
        Op::IMAD_WIDE | Op::UIMAD_WIDE => mad(b, Part::Wide)?,
        Op::IMAD_HI | Op::UIMAD_HI => mad(b, Part::High)?,
        Op::LEA | Op::ULEA => {
            b.abc(Kind::IntCarry)?;
            if b.arg(Role::A).neg {
                if x {
                    return Err("the simulator does not execute LEA.X of a negated operand".to_string());
                }
                // The negated number is shifted, not its complement; of a pair only the low word is
                // negated.
                b.code.a = b.src(Role::A, false, Kind::Int)?;
                b.plus -= 1;
            }
            let (hi, sx32) = (b.has("HI"), b.has("SX32"));
            let negated = b.arg(Role::A).neg && !hi;
            let how = Lea { shift: b.imm(Role::Sh) as u8, hi, sx32, x, negated };
            Alu::Lea { how, plus: b.plus }
        }
        _ => return Ok(None),
    }))
}

/// VIADD on packed integers or with clamping; a minus negates each number.
fn added_lanes(b: &mut Builder) -> Result<Alu, String> {
    b.abc(Kind::Int)?;
    if b.code.a.negate && !b.code.b.negate {
        std::mem::swap(&mut b.code.a, &mut b.code.b);
    }
    let minus = b.code.b.negate;
    b.code.b.negate = false;
    if b.code.a.negate {
        return Err("the simulator does not execute this VIADD".to_string());
    }
    let bits = match () {
        () if b.has("16x2") || b.has("S16x2") => 16,
        () if b.has("U8x4") || b.has("S8x4") => 8,
        () => 32,
    };
    let ty = IntType { bits, signed: ["S32", "S16x2", "S8x4"].into_iter().any(|word| b.has(word)) };
    Ok(if b.has("ISAT") { Alu::AddClamped { ty, minus } } else { Alu::AddLanes { bits, minus } })
}

fn wide_move(b: &mut Builder, alu: Alu) -> Result<Alu, String> {
    b.abc_wide([true; 3], Kind::Int)?;
    b.code.words = 2;
    Ok(alu)
}

fn select_or_compare(b: &mut Builder) -> Result<Option<Alu>, String> {
    let wide64 = b.has("64");
    let three = b.lifted.inst.op == Op::VIMNMX3;
    Ok(Some(match b.lifted.inst.op {
        Op::MOV_64 | Op::UMOV_64 => wide_move(b, Alu::Mov)?,
        Op::MOV | Op::UMOV if wide64 => wide_move(b, Alu::Mov)?,
        Op::SEL_64 | Op::USEL_64 => wide_move(b, Alu::Select)?,
        Op::SEL | Op::USEL if wide64 => wide_move(b, Alu::Select)?,
        // One that also says which lanes have another value.
        Op::R2UR if b.code.pu != Pred::TRUE => return Ok(None),
        Op::MOV if in_some_lanes(b) => return Ok(None),
        Op::MOV | Op::UMOV | Op::R2UR => {
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            Alu::Mov
        }
        Op::SEL | Op::USEL => {
            b.abc(Kind::Int)?;
            Alu::Select
        }
        Op::ISETP | Op::UISETP | Op::ISETP_64 | Op::UISETP_64 => {
            let ty = int_type(b);
            b.abc_wide([ty.bits == 64; 3], Kind::Int)?;
            let cmp = b.lifted.words.pick(&CMPS).unwrap_or_default();
            Alu::Compare { cmp, ty, join: join(b), ex: b.has("EX") }
        }
        Op::VIMNMX | Op::UVIMNMX | Op::VIMNMX3 if b.has("U16x2") || b.has("S16x2") => {
            b.abc(Kind::Int)?;
            Alu::MinMaxLanes { ty: IntType { bits: 16, signed: b.has("S16x2") }, relu: b.has("RELU"), three }
        }
        Op::VIMNMX | Op::UVIMNMX | Op::VIMNMX3 if b.has("U8x4") || b.has("S8x4") => {
            b.abc(Kind::Int)?;
            Alu::MinMaxLanes { ty: IntType { bits: 8, signed: b.has("S8x4") }, relu: b.has("RELU"), three }
        }
        Op::VIMNMX | Op::UVIMNMX if b.has("RELU") => {
            b.abc(Kind::Int)?;
            Alu::MinMaxRelu(int_type(b))
        }
        Op::IMNMX | Op::IMNMX_64 | Op::UIMNMX | Op::VIMNMX | Op::UVIMNMX => Alu::MinMaxInt(scalar_type(b)?),
        Op::VIADDMNMX => {
            b.abc(Kind::Int)?;
            let packed = b.has("U16x2") || b.has("S16x2");
            let lanes = IntType { bits: 16, signed: b.has("S16x2") };
            Alu::AddMinMax { ty: if packed { lanes } else { int_type(b) }, relu: b.has("RELU") }
        }
        Op::VISET => {
            b.abc(Kind::Int)?;
            let ty = match () {
                () if b.has("U8x4") || b.has("S8x4") => IntType { bits: 8, signed: b.has("S8x4") },
                () if b.has("U16x2") || b.has("S16x2") => IntType { bits: 16, signed: b.has("S16x2") },
                () => int_type(b),
            };
            Alu::SetLanes { cmp: b.lifted.words.pick(&CMPS).unwrap_or_default(), ty }
        }
        Op::VIMNMX3 if b.has("RELU") => {
            b.abc(Kind::Int)?;
            Alu::MinMaxLanes { ty: int_type(b), relu: true, three }
        }
        Op::VIMNMX3 => Alu::MinMax3(scalar_type(b)?),
        Op::IABS | Op::UIABS => {
            b.abc(Kind::Int)?;
            Alu::Abs
        }
        Op::VABSDIFF4 => {
            b.abc(Kind::Int)?;
            Alu::AbsDiff4 { signed: !b.has("U8"), sum: b.has("ACC") }
        }
        Op::VABSDIFF => {
            let ty = scalar_type(b)?;
            Alu::AbsDiff { signed: ty.signed }
        }
        _ => return Ok(None),
    }))
}

/// Reads the operands of a minimum or maximum and returns its type; packed types are not
/// implemented.
fn scalar_type(b: &mut Builder) -> Result<IntType, String> {
    if let Some(word) = ["U16x2", "S16x2", "U8x4", "S8x4", "RELU"].into_iter().find(|word| b.has(word)) {
        return Err(format!("the simulator does not execute {}.{word}", b.lifted.inst.op.info().text));
    }
    let ty = int_type(b);
    b.abc_wide([ty.bits == 64; 3], Kind::Int)?;
    b.code.words = (ty.bits / 32) as u8;
    // The predicate results of these opcodes say which operand was chosen.
    Ok(ty)
}

fn bits(b: &mut Builder) -> Result<Option<Alu>, String> {
    let (signed, wrap) = (!b.has("U32"), b.has("W"));
    let alu = match b.lifted.inst.op {
        Op::SHF | Op::USHF => {
            let ty = int_type(b);
            let how = Shift { right: b.has("R"), signed: ty.signed, wide: ty.bits == 64, wrap, high: b.has("HI") };
            Alu::Shift(how)
        }
        Op::PRMT | Op::UPRMT => Alu::Permute(b.lifted.words.pick(&PERMUTES).unwrap_or_default()),
        Op::LOP3 | Op::ULOP3 => Alu::Logic { lut: b.imm(Role::Lut) as u8, all: b.has("PAND") },
        Op::BMSK | Op::UBMSK => Alu::Mask { wrap },
        Op::SGXT | Op::USGXT => Alu::Extend { signed, wrap },
        Op::POPC | Op::UPOPC => Alu::Popc,
        Op::BREV | Op::UBREV => Alu::Brev,
        Op::FLO | Op::UFLO => Alu::Leading { signed, from_top: b.has("SH") },
        Op::IDP => {
            let halves = b.has("2A").then(|| b.has("HI"));
            let [a_signed, b_signed] = dot_signs(b);
            Alu::Dot { a_signed, b_signed, halves }
        }
        _ => return Ok(None),
    };
    b.abc(Kind::Int)?;
    Ok(Some(alu))
}

/// Whether the factors of a dot product are signed. In a decoded instruction words have kinds, and
/// an absent kind means signed; words of a printed text have no kinds and come in order, all of
/// them.
fn dot_signs(b: &Builder) -> [bool; 2] {
    let words = &b.lifted.words;
    if words.iter().all(|(kind, _)| !kind.is_empty()) {
        return ["sa", "sb"].each(|kind| words.kind(kind).is_none_or(|word| word.starts_with('S')));
    }
    let types = ["S8", "U8", "S16", "U16"];
    let mut signs =
        words.iter().map(|(_, text)| text).filter(|text| types.contains(text)).map(|text| text.starts_with('S'));
    [signs.next().unwrap_or(true), signs.next().unwrap_or(true)]
}

fn predicates(b: &mut Builder) -> Result<Option<Exec>, String> {
    let byte = [("B1", 1), ("B2", 2), ("B3", 3)];
    let byte = b.lifted.words.pick(&byte).unwrap_or(0);
    Ok(Some(match b.lifted.inst.op {
        Op::PLOP3 | Op::UPLOP3 => {
            b.code.pp = b.pred(Role::Pa)?;
            b.code.pq = b.pred(Role::Pb)?;
            b.code.pr = b.pred(Role::Pc)?;
            Exec::Alu(Alu::LogicP { lut: b.imm(Role::Lut) as u8, lut2: b.imm(Role::Lut2) as u8 })
        }
        Op::PLOP3_SIGN | Op::UPLOP3_SIGN => {
            b.abc(Kind::Int)?;
            Exec::Alu(Alu::LogicSign { lut: b.imm(Role::Lut) as u8, lut2: b.imm(Role::Lut2) as u8 })
        }
        Op::UR2UP => {
            operands_or_all(b)?;
            b.code.pu = Pred { uniform: true, ..Pred::TRUE };
            Exec::R2p { byte }
        }
        Op::P2R => {
            operands_or_all(b)?;
            Exec::P2r { byte }
        }
        Op::R2P => {
            operands_or_all(b)?;
            Exec::R2p { byte }
        }
        Op::UP2UR => {
            operands_or_all(b)?;
            Exec::Up2ur { byte }
        }
        _ => return Ok(None),
    }))
}

fn operands_or_all(b: &mut Builder) -> Result<(), String> {
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    b.code.b = b.src(Role::B, false, Kind::Int)?;
    let all: Src = b.code.b;
    debug_assert!(!all.wide);
    Ok(())
}

/// Whether a move writes only some lanes of each square.
pub fn in_some_lanes(b: &Builder) -> bool {
    !b.arg(Role::Lanes).is_none() && b.imm(Role::Lanes) != ALL_OF_SQUARE
}

/// The lanes of a square, a bit each.
const ALL_OF_SQUARE: u64 = 15;
