//! Executes the warp-group products HGMMA, QGMMA, IGMMA and BGMMA.
//!
//! Each of the four warps computes its own sixteen rows at once; all its lanes execute together. An
//! access before WARPGROUP.DEPBAR is reported by the sanitizer. Elements of an operand in shared
//! memory lie where its descriptor says (PTX ISA 9.0, 9.7.15.5.1): of a swizzled one with its lines
//! along k, the leading offset is "not used, assumed to be 1" there, and the canonical layouts of
//! 9.7.16.3.3 give all chunks of a line the same stride, of 16 bytes.

use super::super::fault::{Fault, Kind};
use super::block::Block;
use super::code::{Code, Dst, From};
use super::mma::{Element, Fragment, Product, Sum, factor, write};
use super::warp::{LANES, Warp, lanes_of};

/// Rows of one warp, and columns of one step.
const ROWS: usize = 16;
const STEP: usize = 8;
/// Warps of a group.
const WARPS: usize = 4;
/// Bits of a chunk, the least that a layout moves.
const CHUNK: usize = 128;

/// A product of a warp group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub columns: u16,
    pub depth: u16,
    pub a: Element,
    pub b: Element,
    pub sum: Sum,
    /// Whether the products are subtracted.
    pub negative: bool,
    /// Whether a factor lies with its rows (or columns) side by side.
    pub turned: [bool; 2],
    pub in_registers: bool,
    pub sparse: bool,
}

/// Where a factor lies in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    start: u64,
    leading: u64,
    stride: u64,
    base: u64,
    /// Bytes after which a swizzled pattern goes on elsewhere; 0 where there is none.
    span: u64,
    bits: usize,
    turned: bool,
}

impl Matrix {
    /// By its descriptor.
    pub fn new(descriptor: u64, bits: usize, turned: bool) -> Matrix {
        let field = |at: u32| (descriptor >> at & 0x3fff) << 4;
        let span = [0, 128, 64, 32][(descriptor >> 62) as usize];
        let base = descriptor >> 49 & 7;
        Matrix { start: field(0), leading: field(16), stride: field(32), base, span, bits, turned }
    }

    /// The bit at which an element begins, of a line (a row of the first factor, a column of the
    /// second) and a place in it.
    pub fn at(&self, line: usize, place: usize) -> u64 {
        let (near, far) = if self.turned { (line, place) } else { (place, line) };
        let (chunk, inside) = ((near * self.bits / CHUNK) as u64, (near * self.bits % CHUNK) as u64);
        let (row, block) = ((far % 8) as u64, (far / 8) as u64);
        let offset = match (self.turned, self.span) {
            (false, 0) => row * 16 + block * self.stride + chunk * self.leading,
            (false, span) => row * span + block * self.stride + chunk * 16,
            (true, 0) => row * 16 + block * self.leading + chunk * self.stride,
            (true, span) => {
                let each = span / 16;
                chunk % each * 16 + chunk / each * self.leading + row * span + block * self.stride
            }
        };
        (self.swizzled(self.start + offset) << 3) + inside
    }

    /// The low bits of the number of a chunk change with the row of 128 bytes that it is in.
    fn swizzled(&self, at: u64) -> u64 {
        let mask = (self.span / 16).saturating_sub(1);
        at ^ ((at >> 7).wrapping_sub(self.base) & mask) << 4
    }
}

/// The bits of an element in shared memory.
pub fn element(shared: &[u8], at: u64, bits: usize) -> Result<u64, Fault> {
    let (first, width) = ((at >> 3) as usize, bits.div_ceil(8));
    let bytes = shared.get(first..first + width).ok_or_else(|| {
        let address = at >> 3;
        let text = format!("a factor of a product of a warp group lies beyond shared memory, at {address:#x}");
        Fault::of(Kind::OutOfBounds, text).about(address)
    })?;
    let word = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    Ok(word >> (at & 7) & (u64::MAX >> (64 - bits)))
}

impl Group {
    /// Registers of the sum.
    pub fn words(&self) -> u8 {
        (self.columns / if self.sum == Sum::F16 { 4 } else { 2 }) as u8
    }

    /// Places of the first factor that are there.
    fn kept(&self) -> usize {
        usize::from(self.depth) / if self.sparse { 2 } else { 1 }
    }

    fn product(&self, selector: u8) -> Product {
        Product {
            shape: [ROWS as u8, STEP as u8],
            k: self.depth,
            a: self.a,
            b: self.b,
            sum: self.sum,
            and: true,
            sparse: self.sparse.then_some(selector),
        }
    }

    /// Where the factors lie; the first one only where it is in shared memory.
    pub fn matrices(&self, w: &Warp, code: &Code) -> (Option<Matrix>, Matrix) {
        let From::UReg(base) = code.ub.from else {
            return (None, Matrix::new(0, self.b.bits(), self.turned[1]));
        };
        let word = |i: u8| u64::from(w.ureg(usize::from(base) + usize::from(i)));
        let pair = |i: u8| word(i) | word(i + 1) << 32;
        if self.in_registers {
            return (None, Matrix::new(pair(0), self.b.bits(), self.turned[1]));
        }
        (Some(Matrix::new(pair(0), self.a.bits(), self.turned[0])), Matrix::new(pair(2), self.b.bits(), self.turned[1]))
    }

    /// Lines and places of both factors as a warp reads them: of each element the bit at which it
    /// begins.
    fn elements<'g>(&'g self, w: &Warp, code: &Code) -> impl Iterator<Item = (bool, usize, usize, u64)> + 'g {
        let (first, second) = self.matrices(w, code);
        let rows = ROWS * (w.index as usize % WARPS);
        let first = first.into_iter().flat_map(move |m| {
            (0..ROWS).flat_map(move |row| (0..self.kept()).map(move |k| (false, row, k, m.at(rows + row, k))))
        });
        let second = (0..usize::from(self.columns))
            .flat_map(move |column| (0..usize::from(self.depth)).map(move |k| (true, column, k, second.at(column, k))));
        first.chain(second)
    }

    /// The chunks of shared memory that a warp reads, by address.
    pub fn chunks(&self, w: &Warp, code: &Code) -> crate::sorted::SortedSet<u64> {
        self.elements(w, code).map(|(.., at)| at >> 7 << 4).collect()
    }

    /// Lines of the factors with bits of which a mask of shared memory has one set.
    pub fn touched(&self, w: &Warp, code: &Code, mask: &[u8]) -> (u32, Vec<bool>) {
        let (mut rows, mut columns) = (0, vec![false; usize::from(self.columns)]);
        for (second, line, _, at) in self.elements(w, code) {
            let bits = if second { self.b.bits() } else { self.a.bits() };
            if element(mask, at, bits).is_ok_and(|bits| bits != 0) {
                if second {
                    columns[line] = true;
                } else {
                    rows |= 1 << line;
                }
            }
        }
        (rows, columns)
    }
}

/// Executes one for a warp.
pub fn execute(block: &mut Block, warp: usize, code: &Code, active: u32, group: &Group) -> Result<(), Fault> {
    let Dst::Reg(d) = code.d else { return Ok(()) };
    if active != u32::MAX {
        return Err(Fault::new("a product of a warp group without all lanes of the warp"));
    }
    if d == 255 {
        return Ok(());
    }
    let w = &block.warps[warp];
    let words = |from: From, count: usize| -> Fragment {
        let From::Reg(first) = from else { return vec![[0; LANES]; count] };
        (0..count).map(|i| std::array::from_fn(|lane| w.reg(usize::from(first) + i, lane))).collect()
    };
    let count = usize::from(group.words());
    let enabled = w.pred(code.pp) & active != 0;
    let c = words(if enabled { code.c.from } else { From::Zero }, count);
    let mut a = words(code.a.from, 4);
    let e = words(code.b.from, 1);
    let steps = usize::from(group.columns) / STEP;
    let held = usize::from(group.depth) * group.b.bits() * STEP / 1024;
    let mut b: Vec<Fragment> = vec![vec![[0; LANES]; held.max(1)]; steps];
    for (second, line, place, at) in group.elements(w, code) {
        let of = if second { group.b } else { group.a };
        let bits = element(&block.shared, at, of.bits())?;
        if second {
            write(&mut b[line / STEP], factor(of, STEP, line % STEP, place), of.bits(), bits);
        } else {
            write(&mut a, factor(of, ROWS, line, place), of.bits(), bits);
        }
    }
    if group.negative {
        let sign = 1u64 << (group.a.bits() - 1);
        let all = (0..32 / group.a.bits()).fold(0, |mask, i| mask | sign << (i * group.a.bits())) as u32;
        a.iter_mut().flatten().for_each(|word| *word ^= all);
    }
    let product = group.product(code.off as u8);
    let each = count / steps;
    let results: Vec<Fragment> =
        b.iter().enumerate().map(|(i, b)| product.eval(&a, b, &c[each * i..each * (i + 1)].to_vec(), &e[0])).collect();
    let w = &mut block.warps[warp];
    for (i, words) in results.iter().flatten().enumerate() {
        lanes_of(active).for_each(|lane| w.set(code.d, i, lane, words[lane]));
    }
    Ok(())
}

/// Results of a product that depend on what has no value: whole rows and columns.
pub fn open(
    group: &Group,
    w: &Warp,
    code: &Code,
    shared: &[u8],
    lacks: impl Fn(usize, usize) -> u32,
) -> Vec<(usize, usize)> {
    let Dst::Reg(d) = code.d else { return Vec::new() };
    let (mut rows, columns) = group.touched(w, code, shared);
    if let From::Reg(first) = code.a.from {
        let words: Fragment = (0..4).map(|i| std::array::from_fn(|lane| lacks(usize::from(first) + i, lane))).collect();
        for row in 0..ROWS {
            let open = |k: usize| {
                let place = factor(group.a, ROWS, row, k);
                super::mma::read(&words, place, group.a.bits()) != 0
            };
            rows |= u32::from((0..group.kept()).any(open)) << row;
        }
    }
    let metadata =
        if let From::Reg(e) = code.b.from { (0..LANES).any(|lane| lacks(usize::from(e), lane) != 0) } else { false };
    let enabled = w.pred(code.pp) != 0;
    let mut out = Vec::new();
    for word in 0..usize::from(group.words()) {
        let (half, per) = if group.sum == Sum::F16 { (word % 2, 2) } else { (word / 2 % 2, 4) };
        for lane in 0..LANES {
            let column = word / per * STEP + 2 * (lane % 4);
            let own = enabled && matches!(code.c.from, From::Reg(c) if lacks(usize::from(c) + word, lane) != 0);
            let row = rows >> (lane / 4 + 8 * half) & 1 != 0;
            if own || row || metadata || columns[column] || columns[column + 1] {
                out.push((usize::from(d) + word, lane));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_the_manual() {
        let descriptor = |layout: u64| layout << 62 | (1024 >> 4) << 32 | (256 >> 4) << 16 | (4096 >> 4);
        let plain = Matrix::new(descriptor(0), 16, false);
        assert_eq!(
            (plain.at(1, 0), plain.at(8, 0), plain.at(0, 9)),
            ((4112) << 3, (4096 + 1024) << 3, (4352 << 3) + 16)
        );
        let wide = Matrix::new(descriptor(1), 16, false);
        assert_eq!((wide.at(1, 0), wide.at(1, 8), wide.at(9, 0)), ((4224 ^ 16) << 3, 4224 << 3, (5248 ^ 16) << 3));
        let turned = Matrix::new(descriptor(1), 16, true);
        assert_eq!((turned.at(64, 0), turned.at(1, 1)), ((4352) << 3 ^ 32 << 3, ((4224 ^ 16) << 3) + 16));
    }
}
