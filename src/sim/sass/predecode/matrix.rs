//! Predecodes matrix opcodes.
//!
//! The shape comes from the printed word, written as `16816` or `16x8x16`.

use super::super::super::ops::format::{F16, F64, Round};
use super::super::code::Exec;
use super::super::ldmatrix::Grid;
use super::super::matrix::Words;
use super::super::mma::{Element, FLOATS, Product, Sum};
use super::super::mma_884::Quarters;
use super::operands::{Builder, Kind};
use crate::arrays::Each;
use crate::tables::{Mod, Op, Role};

const FORMATS: [&str; 4] = ["16", "8", "U4x16P64TO8", "U6x16P32TO8"];
const LAYOUTS: [&str; 7] = ["M88", "MT88", "M816", "M832", "MT1616", "MT168", "M864"];
const INTEGERS: [&str; 4] = ["S8", "U8", "S4", "U4"];
const FP8: [&str; 5] = ["E4M3", "E5M2", "E3M2", "E2M3", "E2M1"];

/// Predecodes an opcode; `None` if it belongs to another family.
///
/// # Errors
///
/// A modifier, shape or operand that the simulator does not implement.
pub fn build(b: &mut Builder) -> Result<Option<Exec>, String> {
    Ok(Some(match b.lifted.inst.op {
        Op::HMMA | Op::HMMA_SP | Op::QMMA | Op::QMMA_SP | Op::IMMA | Op::IMMA_SP | Op::DMMA | Op::BMMA => product(b)?,
        Op::HMMA_884 => quarters(b)?,
        Op::GMMA => group(b)?,
        Op::QMMA_SF_16832 | Op::OMMA_16864 | Op::QMMA_SF_SP_16864 | Op::OMMA_SP_168128 => scaled(b)?,
        Op::LDSM => {
            shared(b)?;
            let (count, grid) = matrices(b)?;
            Exec::LoadMatrix { count, grid }
        }
        Op::STSM => {
            shared(b)?;
            b.code.b = b.src(Role::B, false, Kind::Int)?;
            let (count, grid) = matrices(b)?;
            Exec::StoreMatrix { count, grid }
        }
        Op::MOVM => {
            if word(b, Mod::Mlayout, &LAYOUTS, 0) != "MT88" {
                return refuse(b);
            }
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            Exec::MoveMatrix
        }
        _ => return Ok(None),
    }))
}

fn refuse<T>(b: &Builder) -> Result<T, String> {
    let words: Vec<&str> = b.lifted.words.iter().map(|(_, word)| word).collect();
    Err(format!("the simulator does not execute {}.{}", b.lifted.inst.op.info().text, words.join(".")))
}

fn shared(b: &mut Builder) -> Result<(), String> {
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    b.code.ub = b.src(Role::Ub, false, Kind::Int)?;
    b.code.off = b.imm(Role::Off) as i64;
    Ok(())
}

/// The number of registers of LDSM or STSM, and the layout of their elements in the rows.
fn matrices(b: &Builder) -> Result<(u8, Grid), String> {
    let bits = match word(b, Mod::Mform, &FORMATS, 0) {
        "16" => 16,
        "8" => 8,
        "U6x16P32TO8" => 6,
        _ => 4,
    };
    let (grid, registers) = match (bits, word(b, Mod::Mlayout, &LAYOUTS, 0)) {
        (16, "M88") => (Grid::Halves { transposed: false }, 1),
        (16, "MT88") => (Grid::Halves { transposed: true }, 1),
        (4 | 6, "M816") => (Grid::Wide { bits }, 1),
        (4 | 6 | 8, "MT1616") => (Grid::Square { bits }, 2),
        (8, "MT168") => (Grid::Columns, 1),
        _ => return refuse(b),
    };
    let count = match word(b, Mod::Mcount, &["2", "4"], 0) {
        "2" => 2,
        "4" => 4,
        _ => 1,
    };
    if count * registers > 4 {
        return refuse(b);
    }
    Ok((count * registers, grid))
}

/// Reads a shape, `16816` or `16x8x16`: rows, columns, k.
fn shape(word: &str) -> Option<([u8; 2], u16)> {
    let parts: Vec<u16> = word.split('x').filter_map(|n| n.parse().ok()).collect();
    if let [m, n, k] = parts[..] {
        return Some(([m as u8, n as u8], k));
    }
    let (m, rest) = match word.strip_prefix("16") {
        Some(rest) if !rest.is_empty() => (16, rest),
        _ => (8, word.strip_prefix('8')?),
    };
    Some(([m, 8], rest.strip_prefix('8')?.parse().ok()?))
}

/// The value of a modifier. Printed words have no kind: it is the word number `place` among those
/// in `among`. Decoded words have one: it is the value or its default.
fn word<'b>(b: &'b Builder, kind: Mod, among: &[&str], place: usize) -> &'b str {
    let mut printed = b.lifted.words.iter().filter(|(kind, _)| kind.is_empty()).map(|(_, word)| word).peekable();
    if printed.peek().is_none() {
        return kind.text(b.lifted.inst.mods.get(kind));
    }
    printed.filter(|word| among.contains(word)).nth(place).unwrap_or("")
}

/// The shape of the product.
fn shape_of(b: &Builder) -> Option<([u8; 2], u16)> {
    let printed = b.lifted.words.iter().filter(|(kind, _)| kind.is_empty()).find_map(|(_, word)| shape(word));
    printed.or_else(|| shape(Mod::Mshape.text(b.lifted.inst.mods.get(Mod::Mshape))))
}

fn element(b: &Builder, kind: Mod, among: &[&str], place: usize) -> Option<Element> {
    let word = word(b, kind, among, place);
    let signed = word.starts_with('S');
    match word {
        "S8" | "U8" => Some(Element::Int { bits: 8, signed }),
        "S4" | "U4" => Some(Element::Int { bits: 4, signed }),
        _ => FLOATS.iter().find(|(name, _)| *name == word).map(|(_, element)| *element),
    }
}

fn product(b: &mut Builder) -> Result<Exec, String> {
    let op = b.lifted.inst.op;
    let Some((shape, k)) = shape_of(b) else { return refuse(b) };
    let half = element(b, Mod::Melem, &["BF16", "TF32"], 0).unwrap_or(Element::Float(F16));
    let (first, second) = match op {
        Op::HMMA | Op::HMMA_SP => (Some(half), Some(half)),
        Op::QMMA | Op::QMMA_SP => (element(b, Mod::Qa, &FP8, 0), element(b, Mod::Qb, &FP8, 1)),
        Op::DMMA => (Some(Element::Float(F64)), Some(Element::Float(F64))),
        Op::BMMA => (Some(Element::Bit), Some(Element::Bit)),
        _ => (element(b, Mod::Sa, &INTEGERS, 0), element(b, Mod::Sb, &INTEGERS, 1)),
    };
    let (Some(first), Some(second)) = (first, second) else { return refuse(b) };
    let round = b.lifted.words.pick(&[("RM", Round::Down), ("RP", Round::Up), ("RZ", Round::Zero)]);
    let sum = match (op, word(b, Mod::Macc, &["F16", "F32"], 0)) {
        (Op::IMMA | Op::IMMA_SP | Op::BMMA, _) => Sum::Int { clamp: b.has("SAT") },
        (Op::DMMA, _) => Sum::F64(round.unwrap_or(Round::Nearest)),
        (_, "F16") => Sum::F16,
        _ => Sum::F32,
    };
    if b.has("SATFINITE") || b.has("REGOFFSET") || (b.arg(Role::A).neg || b.arg(Role::B).neg) {
        return refuse(b);
    }
    let sparse = matches!(op, Op::HMMA_SP | Op::QMMA_SP | Op::IMMA_SP);
    b.abc(Kind::Int)?;
    if sparse {
        b.code.ub = b.src(Role::E, false, Kind::Int)?;
    }
    let product = Product {
        shape,
        k,
        a: first,
        b: second,
        sum,
        and: word(b, Mod::Bop, &["AND", "XOR"], 0) == "AND",
        sparse: sparse.then(|| b.imm(Role::Id) as u8),
    };
    Ok(Exec::Product(product, words(&product)))
}

/// A product with block scale.
fn scaled(b: &mut Builder) -> Result<Exec, String> {
    let text = |b: &Builder, kind: Mod| kind.text(b.lifted.inst.mods.get(kind));
    let of = |name: &str| FLOATS.iter().find(|(text, _)| *text == name).map(|(_, element)| *element);
    let op = b.lifted.inst.op;
    let wide = matches!(op, Op::QMMA_SF_16832 | Op::QMMA_SF_SP_16864);
    let sparse = matches!(op, Op::QMMA_SF_SP_16864 | Op::OMMA_SP_168128);
    let (first, second) = if wide {
        (of(text(b, Mod::Qa)), of(text(b, Mod::Qb)))
    } else {
        (Some(Element::Nibble), Some(Element::Nibble))
    };
    let (Some(first), Some(second)) = (first, second) else { return refuse(b) };
    b.abc(Kind::Int)?;
    b.code.ub = b.src(Role::Ub, false, Kind::Int)?;
    let blocks = match (wide, text(b, Mod::Scale4x)) {
        (true, _) => 1,
        (false, "4X") => 4,
        _ => 2,
    };
    let product = Product {
        shape: [16, 8],
        k: if wide { 32 } else { 64 } << u16::from(sparse),
        a: first,
        b: second,
        sum: Sum::F32,
        and: false,
        sparse: sparse.then(|| b.imm(Role::Id) as u8),
    };
    Ok(Exec::Scaled(super::super::mma_scaled::Scaled {
        product,
        blocks,
        fraction: text(b, Mod::ScaleType) == "UE4M3",
        first: b.arg(Role::E).val as u8,
        second: b.arg(Role::F).val as u8,
    }))
}

/// A product of a warp group.
fn group(b: &mut Builder) -> Result<Exec, String> {
    let text = |b: &Builder, kind: Mod| kind.text(b.lifted.inst.mods.get(kind));
    let shape: Vec<u16> = text(b, Mod::GmmaShape).split('x').filter_map(|n| n.parse().ok()).collect();
    let [_, columns, depth] = shape[..] else { return refuse(b) };
    let of = |name: &str| FLOATS.iter().find(|(text, _)| *text == name).map(|(_, element)| *element);
    let whole = |signed| Some(Element::Int { bits: 8, signed });
    let (first, second, whole_sum) = match text(b, Mod::GmmaKind) {
        "Q" => (of(text(b, Mod::Gqa)), of(text(b, Mod::Gqb)), false),
        "I" => (whole(text(b, Mod::Gsa) == "S8"), whole(text(b, Mod::GsbType) == "S8"), true),
        "B" => (Some(Element::Bit), Some(Element::Bit), true),
        _ => {
            let one = of(text(b, Mod::GmmaType)).or(Some(Element::Float(F16)));
            (one, one, false)
        }
    };
    let (Some(first), Some(second)) = (first, second) else { return refuse(b) };
    let sum = match text(b, Mod::GmmaAcc) {
        _ if whole_sum => Sum::Int { clamp: text(b, Mod::GmmaSat) == "SAT" },
        "F16" => Sum::F16,
        _ => Sum::F32,
    };
    let is = |b: &Builder, kind: Mod| b.lifted.inst.modifier(kind) != 0;
    let in_registers = b.arg(Role::A).kind == crate::sass::ArgKind::Reg;
    let negative_a = is(b, Mod::GnegA) != b.arg(Role::A).neg;
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    b.code.a.negate = false;
    b.code.b = b.src(Role::E, false, Kind::Int)?;
    b.code.c = b.src(Role::C, false, Kind::Int)?;
    b.code.ub = b.src(Role::Ub, false, Kind::Int)?;
    if let (true, super::super::code::From::UReg(base)) = (in_registers, b.code.ub.from) {
        b.code.ub.from = super::super::code::From::UReg(base + 2);
    }
    b.code.off = b.imm(Role::Id) as i64;
    Ok(Exec::Group(super::super::group::Group {
        columns,
        depth,
        a: first,
        b: second,
        sum,
        negative: negative_a != is(b, Mod::GnegB),
        turned: [is(b, Mod::TnspA), is(b, Mod::TnspB)],
        in_registers,
        sparse: is(b, Mod::GmmaSp),
    }))
}

/// Predecodes a step of `HMMA.884`.
fn quarters(b: &mut Builder) -> Result<Exec, String> {
    if b.has("SATFINITE") || b.arg(Role::A).neg || b.arg(Role::B).neg {
        return refuse(b);
    }
    // A decoded instruction has one modifier for both types, a printed one has a word for each.
    let is_wide = |place| {
        let word = word(b, Mod::Macc, &["F32", "F16"], place);
        word.split('.').nth(place).unwrap_or(word) == "F32"
    };
    let (wide, wide_addend) = (is_wide(0), is_wide(1));
    let steps = ["STEP0", "STEP1", "STEP2", "STEP3"];
    let step = word(b, Mod::Mstep, &steps, 0);
    let Some(step) = steps.iter().position(|s| *s == step) else { return refuse(b) };
    let by_row =
        [(Mod::MlayA, 0), (Mod::MlayB, 1)].each(|(kind, place)| word(b, kind, &["ROW", "COL"], place) == "ROW");
    b.abc(Kind::Int)?;
    Ok(Exec::Quarters(Quarters { step: step as u8, by_row, wide, wide_addend }))
}

/// The numbers of registers in the fragments of a product.
fn words(p: &Product) -> Words {
    let bits = |element: Element| match element {
        Element::Float(f) => f.bits(),
        Element::Tf32 => 32,
        Element::Tiny(_) => 8,
        Element::Nibble => 4,
        Element::Int { bits, .. } => bits.into(),
        Element::Bit => 1,
    };
    let [m, n] = p.shape.each(u32::from);
    let k = u32::from(p.k);
    let sum = match p.sum {
        Sum::F16 => 16,
        Sum::F64(_) => 64,
        _ => 32,
    };
    let stored = if p.sparse.is_some() { k / 2 } else { k };
    let count = |bits: u32| (bits / 1024) as u8;
    Words { a: count(m * stored * bits(p.a)), b: count(n * k * bits(p.b)), d: count(m * n * sum) }
}
