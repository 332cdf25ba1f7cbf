//! Executes `tcgen05.*` (PTX ISA 9.0, 9.7.16): tensor memory, its allocation, and products in it.
//!
//! A product is computed when it is issued, so a commit arrives at its barrier at once and nothing
//! is ever waited for.

use super::group::place;
use super::memory::Address;
use super::operands::{Names, Refusal, typed};
use super::program::{Act, Sink, Src};
use super::state::{Scene, Thread};
use super::warp::{Collective, How, InTensor, Party};
use crate::ptx::ast::{self, Instruction, OperandKind};
use crate::sim::fault::{Fault, Kind as FaultKind};
use crate::sim::ops::tensor_memory::{First, Kind, Piece, Product, Shape, UNIT, Words, product};
use crate::tables::ptx::{CtaGroup, Op, Role, ScalarType, Space, TensorKind, TensorShape};

/// A product of one thread.
#[derive(Clone, Debug)]
pub struct Multiply {
    kind: Kind,
    to: Src,
    first: Src,
    /// Whether the first factor is in tensor memory.
    in_tensor: bool,
    second: Src,
    of: Src,
    kept: Vec<Src>,
    added: Src,
    scale: Src,
    /// Offsets of the addresses.
    offsets: [i64; 2],
}

/// The operation of all lanes that an instruction is; `kind` is its number.
pub fn resolve(names: &Names, i: &Instruction, kind: u32) -> Result<Collective, Refusal> {
    if i.mods.cta_group == Some(CtaGroup::CtaGroup2) {
        return Err("two blocks".into());
    }
    let (mut src, mut dst, mut address, mut offset, mut apart) = (Vec::new(), Vec::<Sink>::new(), None, 0, 0);
    for (arg, ty, operand) in typed(i) {
        match arg.role {
            Role::Mem if i.op == Op::Tcgen05Alloc => {
                address = Some(names.address(operand, i.mods.space.map(|_| Space::Shared))?);
            }
            Role::Tmem => {
                let at = names.address(operand, Some(Space::Shared))?;
                src.insert(0, at.base);
                offset = at.offset;
            }
            Role::Const => apart = constant(operand)?,
            Role::Fdst => {
                dst = names.elements(operand).iter().map(|e| names.dst(e, ty)).collect::<Result<_, _>>()?;
            }
            _ => src.extend(names.elements(operand).iter().map(|e| names.src(e, ty)).collect::<Result<Vec<_>, _>>()?),
        }
    }
    let how: InTensor = match i.op {
        Op::Tcgen05Alloc => allocate(),
        Op::Tcgen05Dealloc => release(),
        Op::Tcgen05RelinquishAllocPermit => Box::new(|_, tensor, _| {
            tensor.closed = true;
            Ok(())
        }),
        _ => moved(i, [offset, offset + apart])?,
    };
    Ok(Collective { kind, party: Party::Mask(Src::Imm(u32::MAX.into())), src, dst, address, how: How::InTensor(how) })
}

fn constant(operand: &ast::Operand) -> Result<i64, Refusal> {
    match &operand.kind {
        OperandKind::Constant(value) => Ok(super::values::constant(*value, None) as i32 as i64),
        _ => Err("a constant that is none".into()),
    }
}

/// `tcgen05.alloc`: a block that has to wait for columns waits for ever, as no other one has any.
fn allocate() -> InTensor {
    Box::new(|l, tensor, memory| {
        let lane = l.active.trailing_zeros() as usize;
        if tensor.closed {
            return Err(Fault::of(FaultKind::Trap, "tensor memory is allocated after its permit was given up"));
        }
        let units = (l.src[0][lane] as u32) / UNIT;
        let Some(first) = tensor.find(units) else {
            return Err(Fault::of(FaultKind::Deadlock, "deadlock: no columns of tensor memory are left to allocate"));
        };
        tensor.firsts |= 1 << first;
        memory.write(lane, l.at[lane], 4, u64::from(first * UNIT))
    })
}

/// `tcgen05.dealloc`
fn release() -> InTensor {
    Box::new(|l, tensor, _| {
        let lane = l.active.trailing_zeros() as usize;
        let (column, count) = (l.src[0][lane] as u32 & 0xffff, l.src[1][lane] as u32);
        let (first, units) = (column / UNIT, count / UNIT);
        let ones = (((1u64 << units) - 1) << first) as u32;
        if tensor.units & ones != ones || tensor.firsts >> first & 1 == 0 {
            return Err(Fault::of(FaultKind::Trap, format!("column {column} of tensor memory was not allocated so")));
        }
        tensor.units &= !ones;
        tensor.firsts &= !(1 << first);
        Ok(())
    })
}

/// `tcgen05.ld` and `tcgen05.st`, by the offsets of the address and of the second half.
fn moved(i: &Instruction, offsets: [i64; 2]) -> Result<InTensor, Refusal> {
    let shapes: &'static [Shape] = match i.mods.tensor_shape.ok_or("no shape")? {
        TensorShape::D32x32b => &[Shape::Whole],
        TensorShape::D16x64b => &[Shape::Bits64],
        TensorShape::D16x128b => &[Shape::Bits128],
        TensorShape::D16x256b => &[Shape::Bits256],
        TensorShape::D16x32bx2 => &[Shape::Lower, Shape::Upper],
    };
    let (loads, halves) = (i.op == Op::Tcgen05Ld, i.mods.tensor_pack || i.mods.tensor_unpack);
    let registers = i.row.form().args.iter().map(|arg| usize::from(arg.count)).max().unwrap_or(0);
    Ok(Box::new(move |l, tensor, _| {
        let lane = l.active.trailing_zeros() as usize;
        let base = l.src[0][lane] as u32;
        let uneven = |lane: &usize| l.src[0][*lane] as u32 != base;
        if super::warp::lanes_of(l.active).any(|lane| uneven(&lane)) {
            return Err(Fault::new("lanes of a warp name different places of tensor memory"));
        }
        let narrow = |row: &[u64; 32]| row.map(|word| word as u32);
        let mut words: Words = if loads { vec![[0; 32]; registers] } else { l.src[1..].iter().map(narrow).collect() };
        for (shape, offset) in shapes.iter().zip(offsets) {
            let piece = Piece { shape: *shape, registers, halves };
            let at = (base.wrapping_add(offset as u32), l.warp);
            match loads {
                true => tensor.load(at, piece, &mut words),
                false => tensor.store(at, piece, &words),
            }
            .map_err(Fault::new)?;
        }
        if loads {
            l.out.iter_mut().zip(&words).for_each(|(out, words)| *out = words.map(u64::from));
        }
        Ok(())
    }))
}

/// `tcgen05.mma`
pub fn multiply(names: &Names, i: &Instruction) -> Result<Act, Refusal> {
    if i.mods.cta_group == Some(CtaGroup::CtaGroup2) {
        return Err("two blocks".into());
    }
    let kind = match i.mods.tensor_kind {
        Some(TensorKind::KindF16) => Kind::Half,
        Some(TensorKind::KindTf32) => Kind::Tf32,
        Some(TensorKind::KindF8f6f4) => Kind::Byte,
        Some(TensorKind::KindI8) => Kind::Integer,
        _ => return Err("this kind".into()),
    };
    if i.mods.ashift {
        return Err("rows that move".into());
    }
    let [to, first, second, of, rest @ ..] = i.operands.as_slice() else { return Err("too few operands".into()) };
    let place = |operand| names.address(operand, Some(Space::Shared));
    let (to, in_tensor) = (place(to)?, matches!(first.kind, OperandKind::Address(_)));
    let first = match in_tensor {
        true => place(first)?,
        false => Address { space: None, base: names.src(first, Some(ScalarType::B64))?, offset: 0 },
    };
    let lanes = i.row.form().args.iter().any(|arg| arg.count != 0);
    let (lanes, rest) = if lanes { (Some(&rest[0]), &rest[1..]) } else { (None, rest) };
    let kept = lanes.map_or(Vec::new(), |operand| names.elements(operand));
    Ok(Act::Multiply(Box::new(Multiply {
        kind,
        to: to.base,
        first: first.base,
        in_tensor,
        second: names.src(second, Some(ScalarType::B64))?,
        of: names.src(of, Some(ScalarType::B32))?,
        kept: kept.iter().map(|e| names.src(e, Some(ScalarType::B32))).collect::<Result<_, _>>()?,
        added: names.src(&rest[0], Some(ScalarType::Pred))?,
        scale: rest.get(1).map_or(Ok(Src::Imm(0)), |operand| names.src(operand, Some(ScalarType::U32)))?,
        offsets: [to.offset, first.offset],
    })))
}

impl Scene<'_> {
    /// Computes a product in tensor memory.
    ///
    /// # Errors
    ///
    /// What the model does not have, and factors or sums where there is no memory.
    pub fn multiply(&mut self, thread: &mut Thread, m: &Multiply) -> Result<(), Fault> {
        for src in [m.to, m.first, m.second, m.of, m.added].iter().chain(&m.kept) {
            self.decide(thread, "a product in tensor memory", src);
        }
        let first = self.value(thread, &m.first);
        let word = |scene: &Self, src: &Src| scene.value(thread, src) as u32;
        let mut kept = [0; 4];
        kept.iter_mut().zip(&m.kept).for_each(|(to, src)| *to = word(self, src));
        let p = Product {
            kind: m.kind,
            to: word(self, &m.to).wrapping_add(m.offsets[0] as u32),
            first: match m.in_tensor {
                true => First::Tensor((first as u32).wrapping_add(m.offsets[1] as u32)),
                false => First::Shared(first),
            },
            second: self.value(thread, &m.second),
            of: word(self, &m.of),
            kept,
            added: self.value(thread, &m.added) != 0,
            scale: word(self, &m.scale),
        };
        let shared = &*self.shared;
        let read = |(descriptor, bits, turned, line, at): (u64, usize, bool, usize, usize)| {
            check(descriptor)?;
            let (byte, bit) = place(descriptor, bits as u32, turned, line, at);
            let bytes = shared.get(byte as usize..byte as usize + bits.div_ceil(8)).ok_or_else(|| {
                Fault::of(FaultKind::OutOfBounds, format!("a factor beyond shared memory, at {byte:#x}")).about(byte)
            })?;
            let word = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
            Ok(word >> bit & (u64::MAX >> (64 - bits)))
        };
        product::<Fault>(self.tensor, &p, read)
    }
}

/// Refuses a descriptor with fields that the model does not have.
fn check(descriptor: u64) -> Result<(), Fault> {
    let (absolute, narrow) = (descriptor >> 52 & 1, descriptor >> 61 & 1);
    if absolute | narrow != 0 {
        return Err(Fault::new(format!("the descriptor {descriptor:#018x} of a factor is not modelled")));
    }
    Ok(())
}
