//! Executes what the unit of tensor memory does by itself (PTX ISA 9.0, 9.7.16): products, copies
//! and shifts.
//!
//! Each is done when it is issued, so a commit arrives at its barrier at once and nothing is ever
//! waited for.

use super::group::place;
use super::memory::Address;
use super::operands::{Names, Refusal};
use super::program::{Act, Src};
use super::state::{Scene, Thread};
use crate::ptx::ast::{self, Instruction, OperandKind};
use crate::sim::fault::{Fault, Kind as FaultKind};
use crate::sim::ops::tensor_unit::{Copy, CopyShape, First, Kind, Place, Product, copy, product, shift};
use crate::tables::ptx::{
    CopyShape as Lines, CopyWarps, CtaGroup, Op, Packed, ScalarType, Space, TensorBlocks, TensorKind,
};

/// What one thread has the unit do, for its block or for the pair that it belongs to.
#[derive(Clone, Debug)]
pub struct Unit {
    does: Does,
    two: bool,
}

#[derive(Clone, Debug)]
enum Does {
    Multiply(Multiply),
    /// To an address and its offset, from where a descriptor says.
    Copy {
        how: Copy,
        to: (Src, i64),
        from: Src,
    },
    Shift {
        at: (Src, i64),
    },
}

/// A product of one thread.
#[derive(Clone, Debug)]
struct Multiply {
    kind: Kind,
    to: (Src, i64),
    first: (Src, i64),
    /// Whether the first factor is in tensor memory.
    in_tensor: bool,
    second: Src,
    of: Src,
    kept: Vec<Src>,
    scales: Vec<(Src, i64)>,
    /// Whether the unit keeps the second factor, and where the numbers of a sparse one are.
    keeps: bool,
    chosen: Option<(Src, i64)>,
    added: Src,
    scale: Src,
}

/// The same with the values of its operands.
enum Work {
    Product(Product),
    Copy((u32, u64, Copy)),
    Shift(u32),
}

fn tensor_place(names: &Names, operand: &ast::Operand) -> Result<(Src, i64), Refusal> {
    let Address { base, offset, .. } = names.address(operand, Some(Space::Shared))?;
    Ok((base, offset))
}

fn unit(i: &Instruction, does: Does) -> Result<Act, Refusal> {
    let two = i.mods.cta_group == Some(CtaGroup::CtaGroup2);
    Ok(Act::TensorUnit(Box::new(Unit { does, two })))
}

/// `tcgen05.cp`
pub fn copies(names: &Names, i: &Instruction) -> Result<Act, Refusal> {
    let [to, from] = i.operands.as_slice() else { return Err("these operands".into()) };
    let shape = match (i.mods.copy_shape.ok_or("no shape")?, i.mods.copy_warps) {
        (Lines::D128x256b, _) => CopyShape::Wide,
        (Lines::D128x128b, _) => CopyShape::All,
        (Lines::D64x128b, Some(CopyWarps::Warpx20213)) => CopyShape::Half { apart: 32 },
        (Lines::D64x128b, _) => CopyShape::Half { apart: 64 },
        (Lines::D32x128b, _) => CopyShape::Quarter,
        (Lines::D4x256b, _) => return Err("copies of four lanes".into()),
    };
    let narrow = i.mods.packed.map(|packed| if packed == Packed::B6x16P32 { 6 } else { 4 });
    let (to, from) = (tensor_place(names, to)?, names.src(from, Some(ScalarType::B64))?);
    unit(i, Does::Copy { how: Copy { shape, narrow }, to, from })
}

/// `tcgen05.shift`
pub fn shifts(names: &Names, i: &Instruction) -> Result<Act, Refusal> {
    unit(i, Does::Shift { at: tensor_place(names, &i.operands[0])? })
}

fn kind(i: &Instruction) -> Result<Kind, Refusal> {
    let each = match i.mods.tensor_blocks {
        Some(TensorBlocks::ScaleVec4X | TensorBlocks::Block16) => 16,
        _ => 32,
    };
    Ok(match i.mods.tensor_kind.ok_or("no kind")? {
        TensorKind::KindF16 => Kind::Half,
        TensorKind::KindTf32 => Kind::Tf32,
        TensorKind::KindF8f6f4 => Kind::Byte,
        TensorKind::KindI8 => Kind::Integer,
        TensorKind::KindTi16 => return Err("products of integers of 16 bits".into()),
        TensorKind::KindMxf8f6f4 => Kind::ScaledByte,
        TensorKind::KindMxf4 | TensorKind::KindMxf4nvf4 => Kind::ScaledNibble { each },
    })
}

/// `tcgen05.mma`, `.sp` and `.ws`
pub fn multiply(names: &Names, i: &Instruction) -> Result<Act, Refusal> {
    if i.mods.ashift {
        return Err("rows that move".into());
    }
    if i.mods.table {
        return Err("factors that are looked up in a table".into());
    }
    let sparse = matches!(i.op, Op::Tcgen05MmaSp | Op::Tcgen05MmaWsSp);
    let keeps = matches!(i.op, Op::Tcgen05MmaWs | Op::Tcgen05MmaWsSp);
    let [to, first, second, rest @ ..] = i.operands.as_slice() else { return Err("too few operands".into()) };
    let (chosen, rest) = rest.split_at(usize::from(sparse));
    let [of, rest @ ..] = rest else { return Err("too few operands".into()) };
    if keeps && rest.len() > 1 {
        return Err("columns that are zero".into());
    }
    let in_tensor = matches!(first.kind, OperandKind::Address(_));
    let first = match in_tensor {
        true => tensor_place(names, first)?,
        false => (names.src(first, Some(ScalarType::B64))?, 0),
    };
    let lanes = i.row.form().args.iter().any(|arg| arg.count != 0);
    let (lanes, rest) = if lanes { (Some(&rest[0]), &rest[1..]) } else { (None, rest) };
    let kept = lanes.map_or(Vec::new(), |operand| names.elements(operand));
    let (scales, rest) = rest.split_at(if i.mods.scale { 2 } else { 0 });
    unit(
        i,
        Does::Multiply(Multiply {
            kind: kind(i)?,
            to: tensor_place(names, to)?,
            first,
            in_tensor,
            second: names.src(second, Some(ScalarType::B64))?,
            of: names.src(of, Some(ScalarType::B32))?,
            kept: kept.iter().map(|e| names.src(e, Some(ScalarType::B32))).collect::<Result<_, _>>()?,
            scales: scales.iter().map(|operand| tensor_place(names, operand)).collect::<Result<_, _>>()?,
            keeps,
            chosen: chosen.first().map(|operand| tensor_place(names, operand)).transpose()?,
            added: names.src(&rest[0], Some(ScalarType::Pred))?,
            scale: rest.get(1).map_or(Ok(Src::Imm(0)), |operand| names.src(operand, Some(ScalarType::U32)))?,
        }),
    )
}

impl Scene<'_> {
    /// Has the unit of tensor memory do it.
    ///
    /// # Errors
    ///
    /// What the model does not have, and factors or sums where there is no memory.
    pub fn tensor_unit(&mut self, thread: &mut Thread, unit: &Unit) -> Result<(), Fault> {
        let work = match &unit.does {
            Does::Multiply(m) => Work::Product(self.factors(thread, m)),
            Does::Copy { how, to, from } => Work::Copy((self.tensor_at(thread, to), self.decided(thread, from), *how)),
            Does::Shift { at } => Work::Shift(self.tensor_at(thread, at)),
        };
        let mut sides = self.sides(unit.two)?;
        match work {
            Work::Product(p) => product::<Fault>(&mut sides, &p, element),
            Work::Copy(what) => sides.iter_mut().try_for_each(|side| copy::<Fault>(side, what, element)),
            Work::Shift(at) => sides.iter_mut().try_for_each(|(tensor, _)| shift(tensor, at)).map_err(Fault::new),
        }
    }

    /// The value of an operand, which decides what is done.
    fn decided(&mut self, thread: &mut Thread, src: &Src) -> u64 {
        self.decide(thread, "what is done in tensor memory", src);
        self.value(thread, src)
    }

    fn tensor_at(&mut self, thread: &mut Thread, (base, offset): &(Src, i64)) -> u32 {
        (self.decided(thread, base) as u32).wrapping_add(*offset as u32)
    }

    fn factors(&mut self, thread: &mut Thread, m: &Multiply) -> Product {
        let mut kept = [0; 8];
        for (to, src) in kept.iter_mut().zip(&m.kept) {
            *to = self.decided(thread, src) as u32;
        }
        let mut scales = [0; 2];
        for (to, at) in scales.iter_mut().zip(&m.scales) {
            *to = self.tensor_at(thread, at);
        }
        Product {
            kind: m.kind,
            to: self.tensor_at(thread, &m.to),
            first: match m.in_tensor {
                true => First::Tensor(self.tensor_at(thread, &m.first)),
                false => First::Shared(self.decided(thread, &m.first.0)),
            },
            second: self.decided(thread, &m.second),
            of: self.decided(thread, &m.of) as u32,
            kept,
            added: self.decided(thread, &m.added) != 0,
            scale: self.decided(thread, &m.scale) as u32,
            scales,
            keeps: m.keeps,
            chosen: m.chosen.as_ref().map(|at| self.tensor_at(thread, at)),
        }
    }
}

/// An element of a factor in shared memory.
fn element(shared: &[u8], (descriptor, bits, turned, line, at): Place) -> Result<u64, Fault> {
    check(descriptor)?;
    let (byte, bit) = place(descriptor, bits as u32, turned, line, at);
    let bytes = shared.get(byte as usize..byte as usize + bits.div_ceil(8)).ok_or_else(|| {
        Fault::of(FaultKind::OutOfBounds, format!("a factor beyond shared memory, at {byte:#x}")).about(byte)
    })?;
    let word = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    Ok(word >> bit & (u64::MAX >> (64 - bits)))
}

/// Refuses a descriptor with fields that the model does not have.
fn check(descriptor: u64) -> Result<(), Fault> {
    let (absolute, narrow) = (descriptor >> 52 & 1, descriptor >> 61 & 1);
    if absolute | narrow != 0 {
        return Err(Fault::new(format!("the descriptor {descriptor:#018x} of a factor is not modelled")));
    }
    Ok(())
}
