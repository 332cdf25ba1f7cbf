//! Predecodes reads of textures and accesses to surfaces.

use super::super::super::ops::texture::{Outside, Shape};
use super::super::code::{AtomicOp, AtomicType, From, Src};
use super::super::texture::{On, Query, Sample, Surface, Way};
use super::memory::ATOMICS;
use super::operands::{Builder, Kind};
use crate::tables::{Op, Role};

/// What is not executed.
const OTHER_READS: [&str; 6] = ["LB", "LC", "FDV", "DXY", "PTP", "RZ"];
/// Bytes of the units in which an instruction names a place in a bank.
const UNIT: u32 = 4;

/// A read of a texture.
pub fn sample(b: &mut Builder) -> Result<Sample, String> {
    if let Some(word) = OTHER_READS.into_iter().find(|word| b.has(word)) {
        return Err(format!("the simulator does not read textures with .{word}"));
    }
    let op = b.lifted.inst.op;
    let shape = shape(b, "texdim");
    let way = match op {
        Op::TLD => Way::Exact,
        // B is also the word for a handle in a register.
        Op::TLD4 => Way::Gather(match b.lifted.words.kind("gather") {
            Some("G") => 1,
            Some("B") => 2,
            Some("A") => 3,
            _ => 0,
        }),
        Op::TXD => Way::Gradients,
        _ => Way::Sample,
    };
    let (handle, level, offsets) = (b.lifted.words.kind("bindless_b").is_some(), b.has("LL"), b.has("AOFFI"));
    let (sample, compare) = (b.has("MS"), b.has("DC"));
    let halves = b.lifted.words.kind("tex_half").is_some();
    let mut coordinates = shape.dimensions + u8::from(shape.layered);
    let words = if way == Way::Gradients {
        coordinates += u8::from(handle) + u8::from(offsets && !shape.layered);
        [coordinates, 2 * shape.dimensions]
    } else {
        let more = [handle, level, offsets, sample, compare].into_iter().map(u8::from).sum::<u8>();
        let all = coordinates + more;
        if b.has("SCR") { [all.div_ceil(2), all / 2] } else { [coordinates, all - coordinates] }
    };
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    b.code.b = if words[1] == 0 { Src::default() } else { b.src(Role::B, false, Kind::Int)? };
    if !handle {
        b.code.ub = place(b, true)?;
    }
    let (mask, high, squares) = (mask(b), b.dst(Role::D2)?, b.has("NDV"));
    if squares && (op != Op::TEX || level || b.has("LZ")) {
        return Err(format!("the simulator does not execute {} with .NDV and a level", op.info().text));
    }
    Ok(Sample { way, shape, words, handle, level, offsets, sample, compare, halves, squares, mask, high })
}

/// A query of the sizes of a texture.
pub fn query(b: &mut Builder) -> Result<Query, String> {
    if b.lifted.words.kind("txq").is_some_and(|what| what != "TEX_HEADER_DIMENSION") {
        return Err("the simulator knows only the sizes of textures".to_string());
    }
    let handle = b.lifted.words.kind("bindless_b").is_some();
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    if !handle {
        b.code.ub = place(b, false)?;
    }
    Ok(Query { handle, mask: mask(b), high: b.dst(Role::D2)? })
}

/// The components or sizes that are given back.
fn mask(b: &Builder) -> u8 {
    let mask = b.arg(Role::Mask);
    if mask.is_none() { 15 } else { mask.val as u8 & 15 }
}

/// An access to a surface.
pub fn surface(b: &mut Builder) -> Result<Surface, String> {
    let op = b.lifted.inst.op;
    let shape = shape(b, "su_dim");
    let outside = b.lifted.words.pick(&[("IGN", Outside::Ignore), ("TRAP", Outside::Trap)]).unwrap_or(Outside::Clamp);
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    let handle = b.arg(Role::C);
    b.code.ub = if handle.is_none() { place(b, false)? } else { b.src(Role::C, false, Kind::Int)? };
    let bytes = b.lifted.words.pick(&[("U8", 1), ("U16", 2), ("64", 8), ("128", 16)]).unwrap_or(4);
    let by_bytes = b.has("BA");
    if op != Op::SULD {
        b.code.b = b.src(Role::B, false, Kind::Int)?;
    }
    let (act, bytes) = match op {
        Op::SULD => (On::Load, bytes),
        Op::SUST if b.has("P") => (On::Pack, b.lifted.words.pick(&[("RG", 8), ("R", 4)]).unwrap_or(16)),
        Op::SUST => (On::Store, bytes),
        _ if !by_bytes => {
            let wide = b.lifted.words.kind("su_type").is_some_and(|ty| ty.contains("64"));
            let op = b.lifted.words.pick(&ATOMICS).unwrap_or(AtomicOp::Add);
            (On::ReduceElement(op), if wide { 8 } else { 4 })
        }
        _ => {
            let types =
                [("S32", AtomicType::Signed(4)), ("U64", AtomicType::Unsigned(8)), ("S64", AtomicType::Signed(8))];
            let ty = b.lifted.words.pick(&types).unwrap_or(AtomicType::Unsigned(4));
            let op = b.lifted.words.pick(&ATOMICS).unwrap_or(AtomicOp::Add);
            (On::Reduce(op, ty), super::super::atomic::bytes(ty))
        }
    };
    Ok(Surface { shape, outside, bytes, act })
}

/// The handle: a uniform register, two with a sampler, or a place in a bank.
fn place(b: &mut Builder, pair: bool) -> Result<Src, String> {
    if !b.arg(Role::Ub).is_none() {
        return b.src(Role::Ub, pair, Kind::Int);
    }
    let (bank, at) = (b.imm(Role::K) as u8, b.imm(Role::O) as u32 * UNIT);
    let bytes = b.banks.slice(bank, at, UNIT).map_err(|fault| fault.what)?;
    Ok(Src { from: From::Value(super::super::super::memory::load(bytes)), ..Src::default() })
}

/// The first word of a kind is not among the modifiers.
fn shape(b: &Builder, kind: &str) -> Shape {
    let word = b.lifted.words.kind(kind).unwrap_or("1D");
    let cube = word.contains("CUBE");
    let dimensions = match word.bytes().find(u8::is_ascii_digit) {
        Some(digit) if !cube => digit - b'0',
        _ => 3,
    };
    Shape { dimensions, cube, layered: word.contains("ARRAY") }
}
