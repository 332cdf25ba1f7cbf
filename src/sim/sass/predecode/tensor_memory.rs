//! Predecodes the instructions of tensor memory.

use super::super::super::ops::tensor_memory::{Extreme, Numbers, Piece, Shape};
use super::super::super::ops::tensor_unit::{Copy, CopyShape, Kind as Elements};
use super::super::code::{Dst, Exec};
use super::super::tensor_memory::{Act, Factors};
use super::operands::{Builder, Kind};
use crate::sass::ArgKind;
use crate::tables::{Mod, Op, Role};

/// The uniform register that is zero.
const URZ: u64 = 255;

/// Predecodes an opcode; `None` if it belongs to another family.
///
/// # Errors
///
/// A modifier or operand that the simulator does not implement.
pub fn build(b: &mut Builder) -> Result<Option<Exec>, String> {
    let op = b.lifted.inst.op;
    let two = b.has("2CTA");
    Ok(Some(match op {
        Op::LDTM | Op::STTM => moved(b)?,
        Op::TCATOMSWS if b.has("OR") => return Err("UTCATOMSWS.OR is not modelled".to_string()),
        Op::TCATOMSWS => {
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            b.code.d = b.dst(Role::D)?;
            b.code.pu = b.pred(Role::Pu)?;
            // Only the search says whether it found something.
            let keeps = b.arg(Role::Pu).kind == ArgKind::None;
            Exec::TensorMemory(if keeps { Act::Keep } else { Act::Find { two, aligned: b.has("ALIGN") } })
        }
        Op::UTCBAR_1CTA => {
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            b.code.c = b.src(Role::C, false, Kind::Int)?;
            Exec::TensorMemory(Act::Commit { several: b.has("MULTICAST") })
        }
        Op::UTCMMA_1CTA => product(b)?,
        Op::UTCCP_1CTA => copied(b)?,
        Op::UTCSHIFT_1CTA => {
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            b.code.off = i64::from(b.imm(Role::Off) as u32 as i32);
            Exec::TensorMemory(Act::Shift { two })
        }
        Op::VIRTCOUNT | Op::FENCE_T => Exec::Nop,
        _ => return Ok(None),
    }))
}

fn moved(b: &mut Builder) -> Result<Exec, String> {
    let shapes = [
        ("16dp64bit", (Shape::Bits64, 1)),
        ("16dp128bit", (Shape::Bits128, 2)),
        ("16dp256bit", (Shape::Bits256, 4)),
        ("16dp32bit_t0_t15", (Shape::Lower, 1)),
        ("16dp32bit_t16_t31", (Shape::Upper, 1)),
    ];
    let (shape, each) = b.lifted.words.pick(&shapes).unwrap_or((Shape::Whole, 1));
    let counts = [("x2", 2), ("x4", 4), ("x8", 8), ("x16", 16), ("x32", 32), ("x64", 64), ("x128", 128)];
    let registers = each * b.lifted.words.pick(&counts).unwrap_or(1);
    let piece = Piece { shape, registers, halves: b.has("PACK16BIT") || b.has("EXPAND16BIT") };
    b.code.ub = b.src(Role::Ub, false, Kind::Int)?;
    b.code.off = i64::from(b.imm(Role::Off) as u32 as i32);
    if b.lifted.inst.op == Op::LDTM {
        b.code.d = b.dst(Role::D)?;
        let best = match (extreme(b), b.dst(Role::D2)?) {
            (Some(best), Dst::Reg(to)) => Some((best, to)),
            _ => None,
        };
        return Ok(Exec::TensorMemory(Act::Load(piece, best)));
    }
    b.code.b = b.src(Role::B, false, Kind::Int)?;
    Ok(Exec::TensorMemory(Act::Store { piece }))
}

/// What LDTM.STAT looks for.
fn extreme(b: &Builder) -> Option<Extreme> {
    if !b.has("STAT") {
        return None;
    }
    let of = match (b.has("F32"), b.has("S32")) {
        (true, _) => Numbers::Real { nan: b.has("NAN") },
        (_, true) => Numbers::Signed,
        _ => Numbers::Unsigned,
    };
    let magnitude = b.has("MINABS") || b.has("MAXABS");
    Some(Extreme { of, least: b.has("MIN") || b.has("MINABS"), magnitude })
}

fn product(b: &mut Builder) -> Result<Exec, String> {
    let text = |b: &Builder, kind: Mod| kind.text(b.lifted.inst.mods.get(kind));
    if b.has("ASHIFT") {
        return Err("products whose rows move are not simulated".to_string());
    }
    if b.has("LUTB") {
        return Err("products whose second factor is looked up in a table are not simulated".to_string());
    }
    let in_tensor = text(b, Mod::UtcA) == "TMEM";
    let scaled = text(b, Mod::UtcScaled) == "SCALED";
    let few = b.has("4X") || b.has("BLOCK16");
    let kind = match (text(b, Mod::UtcType), scaled) {
        ("I", _) => Elements::Integer,
        ("Q", false) => Elements::Byte,
        ("Q", true) => Elements::ScaledByte,
        ("O", _) => Elements::ScaledNibble { each: if few { 16 } else { 32 } },
        // The descriptor says whether it is tf32.
        _ => Elements::Half,
    };
    b.code.a = b.src(Role::A, !in_tensor, Kind::Int)?;
    b.code.b = b.src(Role::B, true, Kind::Int)?;
    b.code.c = b.src(Role::C, false, Kind::Int)?;
    b.code.ub = b.src(Role::E, true, Kind::Int)?;
    b.code.pp = b.pred(Role::Pp)?;
    b.code.off = b.imm(Role::Mask) as i64;
    let last = b.arg(Role::F);
    let last = (last.kind == ArgKind::UReg && last.val != URZ).then_some(last.val as u8);
    let keeps = b.has("WS");
    let (kept, scales) = if scaled { (None, last) } else { (last, None) };
    Ok(Exec::TensorMemory(Act::Product(Factors { kind, in_tensor, two: b.has("2CTA"), kept, scales, keeps })))
}

fn copied(b: &mut Builder) -> Result<Exec, String> {
    if b.has("4dp256bit") {
        return Err("copies of four lanes are not modelled".to_string());
    }
    let shapes = [
        ("128dp128bit", CopyShape::All),
        ("2x64dp128bit_lw02_lw13", CopyShape::Half { apart: 32 }),
        ("2x64dp128bit_lw01_lw23", CopyShape::Half { apart: 64 }),
        ("4x32dp128bit", CopyShape::Quarter),
    ];
    let shape = b.lifted.words.pick(&shapes).unwrap_or(CopyShape::Wide);
    let narrow = b.lifted.words.pick(&[("U6x16P32", 6), ("U4x16P64", 4)]);
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    b.code.off = i64::from(b.imm(Role::Off) as u32 as i32);
    b.code.b = b.src(Role::B, true, Kind::Int)?;
    Ok(Exec::TensorMemory(Act::Copy { how: Copy { shape, narrow }, two: b.has("2CTA") }))
}
