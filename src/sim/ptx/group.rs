//! Executes `wgmma.mma_async` (PTX ISA 9.7.15): sixteen rows of the accumulator per warp.
//!
//! An operand in shared memory is read where its descriptor says, in bytes. The product is computed
//! at once; the ISA forbids changing its operands before `wgmma.wait_group`. A swizzled factor with
//! its lines along k has no use for the leading offset: the units of 16 bytes of a line follow each
//! other, beyond the pattern too (PTX ISA 9.0, 9.7.15.5.1.2.1.1: "not used, assumed to be 1", and
//! the canonical layouts of 9.7.16.3.3, whose units all have stride T).

use super::fragment::{self, Shape};
use super::matrix::{Element, Matrix, Product, entry, spread};
use super::operands::{Names, Refusal, typed};
use super::program::{Sink, Src};
use super::state::LANES;
use super::values::mask;
use super::warp::{Collective, How, Memory, Party, WithMemory};
use crate::ptx::ast::{Instruction, OperandKind};
use crate::sim::fault::Fault;
use crate::sim::ops::format::Round;
use crate::sorted::SortedMap;
use crate::tables::ptx::{Op, Role, Space};

/// Rows of a warp, and warps of a group.
const ROWS: usize = 16;
const WARPS: usize = 4;

/// What is done, besides the shape and the types.
struct Plan {
    product: Product,
    /// Registers of the first factor; none where it is in shared memory.
    registers: usize,
    negative: bool,
    turned: [bool; 2],
}

/// The operation that an instruction is; `kind` is its number.
pub fn resolve(names: &Names, i: &Instruction, kind: u32) -> Result<Collective, Refusal> {
    let (mut src, mut dst, mut constants, mut registers) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (arg, ty, operand) in typed(i) {
        let elements = names.elements(operand);
        match arg.role {
            Role::Fdst => {
                dst = elements.iter().map(|e| names.dst(e, ty)).collect::<Result<Vec<Sink>, _>>()?;
                src = elements.iter().map(|e| names.src(e, ty)).collect::<Result<Vec<Src>, _>>()?;
            }
            Role::Const => match &operand.kind {
                OperandKind::Constant(value) => constants.push(super::values::constant(*value, None) as i64),
                _ => return Err("a constant that is none".into()),
            },
            _ => {
                registers += if arg.role == Role::Fsrc { elements.len() } else { 0 };
                src.extend(elements.iter().map(|e| names.src(e, ty)).collect::<Result<Vec<Src>, _>>()?);
            }
        }
    }
    let sparse = i.op == Op::WgmmaMmaAsyncSp;
    let selector = if sparse { constants.remove(0) } else { 0 };
    let sign = |at: usize| constants.get(at).copied().unwrap_or(1) as i32 == -1;
    let turn = |at: usize| constants.get(at).copied().unwrap_or(0) == 1;
    let turned = if registers == 0 { [turn(2), turn(3)] } else { [false, turn(2)] };
    let (n, k) = i.mods.group_shape().ok_or("no shape")?;
    let element = |at: usize| -> Result<Element, Refusal> {
        let name = i.types.get(at).ok_or("these types")?.name();
        Element::by_name(name).ok_or_else(|| format!("elements of {name}"))
    };
    let product = Product {
        shape: Shape { m: ROWS, n: n as usize, k: k as usize },
        d: element(0)?,
        a: element(1)?,
        b: element(2)?,
        c: element(0)?,
        counts: [dst.len(), registers, 0, dst.len()],
        by_row: [true, false],
        round: Round::Nearest,
        saturate: i.mods.saturate_finite,
        sparse,
        and: true,
    };
    // The selector goes behind the metadata, which come behind the descriptors.
    if sparse {
        let at = src.len() - 1;
        src.insert(at, Src::Imm(selector as u64));
    }
    let plan = Plan { product, registers, negative: sign(0) != sign(1), turned };
    let how = How::WithMemory(compile(plan));
    Ok(Collective { kind, party: Party::Mask(Src::Imm(u32::MAX.into())), src, dst, address: None, how })
}

/// The byte at which an element begins, and the bit in it; `line` is a row of the first factor or a
/// column of the second.
pub fn place(descriptor: u64, bits: u32, turned: bool, line: usize, place: usize) -> (u64, u64) {
    let part = |at: u32| (descriptor >> at & mask(14)) * 16;
    let (start, leading, stride) = (part(0), part(16), part(32));
    let width = match descriptor >> 62 {
        0 => 16,
        layout => 256 >> layout,
    };
    let (near, far) = if turned { (line, place) } else { (place, line) };
    let bit = near as u64 * u64::from(bits);
    let (byte, far) = (bit / 8, far as u64);
    let (by_far, by_near) = match (turned, width) {
        (true, 16) => (leading, stride),
        (false, 32..) => (stride, width),
        _ => (stride, leading),
    };
    let at = start + byte % width + byte / width * by_near + far % 8 * width + far / 8 * by_far;
    // A pattern that does not begin at a multiple of its size says where it does.
    let row = (at >> 7).wrapping_sub(descriptor >> 49 & 7);
    (at ^ (row & (width / 16 - 1)) << 4, bit % 8)
}

/// Shared memory, eight bytes at a time.
struct Reader<'m> {
    memory: &'m mut dyn Memory,
    words: SortedMap<u64, u64>,
}

impl Reader<'_> {
    fn get(&mut self, (at, bit): (u64, u64), bits: u32) -> Result<u64, Fault> {
        let first = at & !7;
        let word = match self.words.get(&first) {
            Some(word) => *word,
            None => {
                let word = self.memory.read(0, (Space::Shared, first), 8)?;
                self.words.insert(first, word);
                word
            }
        };
        Ok(word >> (8 * (at - first) + bit) & mask(bits))
    }
}

fn compile(plan: Plan) -> WithMemory {
    Box::new(move |l, memory| {
        let p = &plan.product;
        let Shape { n, k, .. } = p.shape;
        let kept = if p.sparse { k / 2 } else { k };
        let (c, rest) = l.src.split_at(p.counts[3]);
        let (a, rest) = rest.split_at(plan.registers.max(1));
        let (meta, scale) = rest[1..].split_at(rest.len() - 2);
        let mut shared = Reader { memory, words: SortedMap::new() };
        let (mut ma, mut mb) = (Matrix::new(ROWS, k), Matrix::new(k, n));
        let sign = if plan.negative { 1u64 << (p.a.bits() - 1) } else { 0 };
        let rows = ROWS * (l.warp % WARPS);
        if plan.registers == 0 {
            for row in 0..ROWS {
                for at in 0..kept {
                    let bits = shared.get(place(a[0][0], p.a.bits(), plan.turned[0], rows + row, at), p.a.bits())?;
                    let to = if p.sparse { spread(p, meta, row, at) } else { at };
                    ma.set((row, to), bits ^ sign);
                }
            }
        } else {
            for e in 0..ROWS * kept / LANES {
                for (lane, held) in a[e / p.a.each()].iter().enumerate().take(LANES) {
                    let (row, at) = fragment::first(ROWS, kept, p.a.each(), lane, e);
                    let to = if p.sparse { spread(p, meta, row, at) } else { at };
                    let word = held >> (e % p.a.each() * p.a.bits() as usize);
                    ma.set((row, to), (word & mask(p.a.bits())) ^ sign);
                }
            }
        }
        for column in 0..n {
            for at in 0..k {
                let bits = shared.get(place(rest[0][0], p.b.bits(), plan.turned[1], column, at), p.b.bits())?;
                mb.set((at, column), bits);
            }
        }
        let added = scale[0][0] != 0;
        let each = p.d.each();
        let results = |lane: usize, e: usize| {
            let (row, column) = fragment::result(ROWS, lane, e);
            let word = c[e / each][lane] >> (e % each * p.d.bits() as usize) & mask(p.d.bits());
            entry(p, &ma, &mb, if added { word } else { 0 }, row, column)
        };
        let out: Vec<[u64; LANES]> = (0..p.counts[0])
            .map(|register| {
                std::array::from_fn(|lane| {
                    (0..each)
                        .fold(0, |word, i| word | results(lane, register * each + i) << (i * p.d.bits() as usize % 64))
                })
            })
            .collect();
        l.out = out;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_128_bytes() {
        let descriptor = 1 << 62 | 64 << 32 | 256;
        assert_eq!(place(descriptor, 16, false, 1, 0), ((4096 + 128) ^ 16, 0));
        assert_eq!(place(descriptor, 16, false, 1, 9), (((4096 + 128) ^ 16) ^ 16 | 2, 0));
        assert_eq!(place(descriptor, 1, false, 8, 9), (4096 + 1024 + 1, 1));
    }

    #[test]
    fn a_line_longer_than_its_pattern_goes_on() {
        let descriptor = 3 << 62 | 16 << 32 | 32 << 16 | 256;
        assert_eq!(place(descriptor, 16, false, 0, 16), (4096 + 32, 0));
        assert_eq!(place(descriptor, 16, false, 3, 24), ((4096 + 96 + 48) ^ 16, 0));
    }
}
