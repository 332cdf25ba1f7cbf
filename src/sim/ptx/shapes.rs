//! Translates matrix instructions (`mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`) to warp
//! operations.
//!
//! All lanes of the warp take part. A shape or type that is not implemented gives a [`Refusal`].

use super::convert::Small;
use super::fragment::Shape;
use super::matrix::{self, Element, Product};
use super::operands::{Names, Refusal, typed};
use super::program::{Sink, Src};
use super::scaled::{self, Scaling};
use super::tiles::{self, Bytes, Part, Tile};
use super::values::round;
use super::warp::{Collective, How, Party};
use crate::ptx::ast::{Instruction, Operand};
use crate::tables::ptx::{BitOp, Layout, Matrices, Op, Packed, Role, ScalarType};

/// The warp operation of a matrix instruction; `kind` is its kind number.
pub fn resolve(names: &Names, i: &Instruction, kind: u32) -> Result<Collective, Refusal> {
    let (mut src, mut dst, mut counts, mut address) = (Vec::new(), Vec::new(), Vec::new(), None);
    for (arg, ty, operand) in typed(i) {
        let elements: Vec<Operand> = names.elements(operand);
        match arg.role {
            Role::Mem => address = Some(names.address(operand, i.mods.space)?),
            Role::Fdst | Role::Dst => {
                counts.push(elements.len());
                dst.extend(elements.iter().map(|e| names.dst(e, ty)).collect::<Result<Vec<Sink>, _>>()?);
            }
            _ => {
                counts.push(elements.len());
                src.extend(elements.iter().map(|e| names.src(e, ty)).collect::<Result<Vec<Src>, _>>()?);
            }
        }
    }
    let how = how(i, &counts)?;
    Ok(Collective { kind, party: Party::Mask(Src::Imm(u32::MAX.into())), src, dst, address, how })
}

fn how(i: &Instruction, counts: &[usize]) -> Result<How, Refusal> {
    let whole = i.mods.matrix_shape.map(|shape| shape.name());
    let bits = match i.mods.packed {
        Some(Packed::B6x16P32) => 6,
        Some(Packed::B4x16P64) => 4,
        None => 8,
    };
    let matrices = match i.mods.matrices {
        Some(Matrices::X4) => 4,
        Some(Matrices::X2) => 2,
        _ => 1,
    };
    match i.op {
        Op::Mma | Op::MmaSpOrderedMetadata if i.mods.scale => {
            let (product, scaling) = scaled_product(i, counts)?;
            Ok(How::Together(scaled::compile(product, scaling)))
        }
        Op::Mma | Op::WmmaMma | Op::MmaSp | Op::MmaSpOrderedMetadata => {
            Ok(How::Together(matrix::compile(product(i, counts)?)))
        }
        Op::Ldmatrix | Op::Stmatrix => {
            let registers = counts.first().copied().unwrap_or(0);
            match (i.op, whole) {
                (Op::Ldmatrix, Some("m8n8")) => Ok(How::WithMemory(tiles::load_rows(matrices, i.mods.trans))),
                (Op::Stmatrix, Some("m8n8")) => Ok(How::WithMemory(tiles::store_rows(matrices, i.mods.trans))),
                (Op::Ldmatrix, Some("m8n16")) => Ok(How::WithMemory(tiles::load_bytes(Bytes::Wide, registers, bits))),
                (Op::Ldmatrix, Some("m16n16")) => {
                    Ok(How::WithMemory(tiles::load_bytes(Bytes::Square, registers, bits)))
                }
                (Op::Stmatrix, Some("m16n8")) => Ok(How::WithMemory(tiles::store_bytes(registers))),
                _ => Err(format!("the shape {}", whole.unwrap_or("of none"))),
            }
        }
        Op::Movmatrix => Ok(How::Together(tiles::transpose())),
        Op::WmmaLoadA => Ok(How::WithMemory(tiles::load_tile(tile(i, Part::First, counts)?))),
        Op::WmmaLoadB => Ok(How::WithMemory(tiles::load_tile(tile(i, Part::Second, counts)?))),
        Op::WmmaLoadC => Ok(How::WithMemory(tiles::load_tile(tile(i, Part::Result, counts)?))),
        Op::WmmaStoreD => Ok(How::WithMemory(tiles::store_tile(tile(i, Part::Result, counts)?))),
        _ => Err(format!("the shape {}", whole.unwrap_or("of none"))),
    }
}

fn shape(i: &Instruction) -> Result<Shape, Refusal> {
    let name = i.mods.matrix_shape.map_or("", |shape| shape.name());
    Shape::parse(name).ok_or_else(|| format!("the shape {name}"))
}

fn element(ty: ScalarType) -> Result<Element, Refusal> {
    Element::by_name(ty.name()).ok_or_else(|| format!("elements of {}", ty.name()))
}

/// The element types of D, A, B and C. With only two types, those of D and C, the factors are f16.
fn product(i: &Instruction, counts: &[usize]) -> Result<Product, Refusal> {
    let types = match *i.types.as_slice() {
        [d, a, b, c] => [d, a, b, c],
        [d, c] => [d, ScalarType::F16, ScalarType::F16, c],
        _ => return Err("these types".into()),
    };
    if i.mods.scale {
        return Err("scales of blocks".into());
    }
    let sparse = counts.len() == 6;
    let counts: [usize; 4] = counts.get(..4).and_then(|c| c.try_into().ok()).ok_or("these operands")?;
    let [d, a, b, c] = types;
    Ok(Product {
        shape: shape(i)?,
        d: element(d)?,
        a: element(a)?,
        b: element(b)?,
        c: element(c)?,
        counts,
        by_row: [i.mods.layout == Some(Layout::Row), i.mods.layout_b.is_some_and(|layout| layout.name() == "row")],
        round: round(i.mods.rounding),
        saturate: i.mods.saturate_finite,
        sparse,
        and: i.mods.bit_op == Some(BitOp::And),
    })
}

/// A product with block scale: elements of 4 bits but in kind `mxf8f6f4`.
fn scaled_product(i: &Instruction, counts: &[usize]) -> Result<(Product, Scaling), Refusal> {
    let [d, a, b, c, scale] = i.types[..] else { return Err("these types".into()) };
    let wide = i.mods.mma_kind.is_some_and(|kind| kind.name() == "kind::mxf8f6f4");
    let factor = |ty: ScalarType| match (wide, element(ty)?) {
        (false, Element::Small(small)) => Ok(Element::Nibble(small)),
        (_, element) => Ok::<Element, Refusal>(element),
    };
    let blocks = match (wide, i.mods.scale_vec.map(|vec| vec.name())) {
        (true, _) => 1,
        (false, Some("scale_vec::4X")) => 4,
        _ => 2,
    };
    let format = if scale == ScalarType::Ue4m3 { Small::by_name("e4m3") } else { None };
    let sparse = i.op == Op::MmaSpOrderedMetadata;
    let counts: [usize; 4] = counts.get(..4).and_then(|c| c.try_into().ok()).ok_or("these operands")?;
    let product = Product {
        shape: shape(i)?,
        d: element(d)?,
        a: factor(a)?,
        b: factor(b)?,
        c: element(c)?,
        counts,
        by_row: [true, false],
        round: round(i.mods.rounding),
        saturate: false,
        sparse,
        and: false,
    };
    Ok((product, Scaling { blocks, format }))
}

fn tile(i: &Instruction, part: Part, counts: &[usize]) -> Result<Tile, Refusal> {
    let ty = *i.types.first().ok_or("no type")?;
    let registers = *counts.first().ok_or("no fragment")?;
    let by_row = i.mods.layout == Some(Layout::Row);
    let bits = element(ty)?.bits();
    Ok(Tile { part, shape: shape(i)?, bits, registers, by_row, strided: counts.len() > 1 })
}
