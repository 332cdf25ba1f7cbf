//! Executes `tcgen05.*` of warps (PTX ISA 9.0, 9.7.16): the allocation of tensor memory, its loads
//! and stores.

use super::operands::{Names, Refusal, typed};
use super::program::{Sink, Src};
use super::warp::{Collective, How, InTensor, Party};
use crate::ptx::ast::{self, Instruction, OperandKind};
use crate::sim::fault::{Fault, Kind as FaultKind};
use crate::sim::ops::tensor_memory::{Extreme, Numbers, Piece, Shape, UNIT, Words};
use crate::tables::Target;
use crate::tables::ptx::{AtomOp, Op, Role, ScalarType, Space, TensorShape};

/// The operation of all lanes that an instruction is; `kind` is its number.
pub fn resolve(names: &Names, i: &Instruction, kind: u32) -> Result<Collective, Refusal> {
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
                dst.extend(names.elements(operand).iter().map(|e| names.dst(e, ty)).collect::<Result<Vec<_>, _>>()?);
            }
            _ => src.extend(names.elements(operand).iter().map(|e| names.src(e, ty)).collect::<Result<Vec<_>, _>>()?),
        }
    }
    let how: InTensor = match i.op {
        Op::Tcgen05Alloc => allocate(all_columns(names, i)?),
        Op::Tcgen05Dealloc => release(all_columns(names, i)?),
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

/// The columns of the target, where an instruction is about all of them.
fn all_columns(names: &Names, i: &Instruction) -> Result<Option<u32>, Refusal> {
    if !i.mods.exclusive {
        return Ok(None);
    }
    let target = Target::by_name(&names.module.target.name).ok_or("no such target")?;
    Ok(Some(target.tensor_columns()))
}

/// `tcgen05.alloc`: a block that has to wait for columns waits for ever, as no other one has any.
/// Each block of a pair allocates for itself, and both find the same.
fn allocate(all: Option<u32>) -> InTensor {
    Box::new(move |l, tensor, memory| {
        let lane = l.active.trailing_zeros() as usize;
        if tensor.closed {
            return Err(Fault::of(FaultKind::Trap, "tensor memory is allocated after its permit was given up"));
        }
        let units = all.unwrap_or(l.src[0][lane] as u32) / UNIT;
        let Some(first) = tensor.find(units, all.is_none()) else {
            return Err(Fault::of(FaultKind::Deadlock, "deadlock: no columns of tensor memory are left to allocate"));
        };
        tensor.firsts |= 1 << first;
        memory.write(lane, l.at[lane], 4, u64::from(first * UNIT))
    })
}

/// `tcgen05.dealloc`
fn release(all: Option<u32>) -> InTensor {
    Box::new(move |l, tensor, _| {
        let lane = l.active.trailing_zeros() as usize;
        let (column, count) = (l.src[0][lane] as u32 & 0xffff, all.unwrap_or(l.src[1][lane] as u32));
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
    let best = extreme(i)?;
    let (loads, halves) = (i.op != Op::Tcgen05St, i.mods.tensor_pack || i.mods.tensor_unpack);
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
        if let Some(best) = best {
            words.push(best.of_lanes(&words));
        }
        if loads {
            l.out.iter_mut().zip(&words).for_each(|(out, words)| *out = words.map(u64::from));
        }
        Ok(())
    }))
}

/// What `tcgen05.ld.red` looks for.
fn extreme(i: &Instruction) -> Result<Option<Extreme>, Refusal> {
    let least = match i.mods.atom_op {
        Some(AtomOp::Min) => true,
        Some(AtomOp::Max) => false,
        _ => return Ok(None),
    };
    let of = match i.types.first() {
        Some(ScalarType::U32) => Numbers::Unsigned,
        Some(ScalarType::S32) => Numbers::Signed,
        Some(ScalarType::F32) => Numbers::Real { nan: i.mods.nan },
        _ => return Err("this type".into()),
    };
    Ok(Some(Extreme { of, least, magnitude: i.mods.abs }))
}
