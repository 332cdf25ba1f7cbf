//! Operations on matrices: products, and matrices between shared memory and registers.
//!
//! Input: a warp and the lanes that execute together. Output: registers, shared memory. Invariant: fragments are read before one is
//! written; a lane outside the group takes no part: what it would hold counts as 0.

use super::super::fault::{Fault, Kind};
use super::super::memory::{load, store};
use super::block::Block;
use super::code::{Code, Exec, From, Src};
use super::product::{Fragment, Product};
use super::warp::{LANES, Warp, lanes_of};

/// Bytes of a row of a matrix of 8 by 8.
const ROW: usize = 16;

/// Registers of the fragments of a product.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    pub a: u8,
    pub b: u8,
    pub d: u8,
}

/// Executes one of them.
pub fn execute(block: &mut Block, warp: usize, code: &Code, active: u32) -> Result<(), Fault> {
    match code.exec {
        Exec::Product(product, words) => multiply(&mut block.warps[warp], code, active, product, words),
        Exec::Quarters(product) => {
            let w = &mut block.warps[warp];
            let [a, b, c] = [&code.a, &code.b, &code.c].map(|src| fragment(w, src, active, 2));
            let d = product.eval(&a, &b, &c);
            set(w, code, active, &d);
        }
        Exec::LoadMatrix { count, transposed } => return load_matrices(block, warp, code, active, count, transposed),
        Exec::StoreMatrix { count, transposed } => return store_matrices(block, warp, code, active, count, transposed),
        _ => move_matrix(&mut block.warps[warp], code, active),
    }
    Ok(())
}

/// Words from a register on.
fn fragment(w: &Warp, src: &Src, active: u32, words: u8) -> Fragment {
    let word = |i: usize, lane: usize| match src.from {
        From::Reg(r) if active >> lane & 1 != 0 => w.reg(usize::from(r) + i, lane),
        _ => 0,
    };
    (0..usize::from(words)).map(|i| std::array::from_fn(|lane| word(i, lane))).collect()
}

fn set(w: &mut Warp, code: &Code, active: u32, fragment: &Fragment) {
    for (i, words) in fragment.iter().enumerate() {
        for lane in lanes_of(active) {
            w.set(code.d, i, lane, words[lane]);
        }
    }
}

fn multiply(w: &mut Warp, code: &Code, active: u32, product: Product, words: Words) {
    let a = fragment(w, &code.a, active, words.a);
    let b = fragment(w, &code.b, active, words.b);
    let c = fragment(w, &code.c, active, words.d);
    let e = fragment(w, &code.ub, active, 1);
    let d = product.eval(&a, &b, &c, &e[0]);
    set(w, code, active, &d);
}

/// The bytes of a row, whose address a lane holds.
fn row<'b>(block: &'b mut Block, warp: usize, code: &Code, active: u32, lane: usize) -> Result<&'b mut [u8], Fault> {
    let w = &block.warps[warp];
    if active >> lane & 1 == 0 {
        return Err(Fault::new("the lane that has a row's address takes no part").on_lane(lane));
    }
    let sum = w.get(&code.a, lane).wrapping_add(w.get(&code.ub, lane)).wrapping_add(code.off as u64);
    let at = sum & 0xff_ffff;
    if !at.is_multiple_of(ROW as u64) {
        return Err(Fault::of(Kind::Misaligned, format!("misaligned row of a matrix at {at:#x}"))
            .about(at)
            .on_lane(lane));
    }
    super::super::memory::flat(&mut block.shared, "shared", at, ROW as u64).map_err(|fault| fault.on_lane(lane))
}

/// Row and half word of half `e` of a lane's register.
fn half(lane: usize, e: usize, transposed: bool) -> (usize, usize) {
    let (line, place) = (lane / 4, 2 * (lane % 4) + e);
    if transposed { (place, line) } else { (line, place) }
}

fn load_matrices(
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    count: u8,
    transposed: bool,
) -> Result<(), Fault> {
    let mut result: Fragment = Vec::new();
    for matrix in 0..usize::from(count) {
        let mut rows = [[0u32; 8]; 8];
        for (i, halves) in rows.iter_mut().enumerate() {
            let bytes = row(block, warp, code, active, 8 * matrix + i)?;
            halves.iter_mut().zip(bytes.chunks_exact(2)).for_each(|(half, bytes)| *half = load(bytes) as u32);
        }
        let pick = |lane: usize, e: usize| {
            let (row, place) = half(lane, e, transposed);
            rows[row][place]
        };
        result.push(std::array::from_fn(|lane| pick(lane, 0) | pick(lane, 1) << 16));
    }
    set(&mut block.warps[warp], code, active, &result);
    Ok(())
}

fn store_matrices(
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    count: u8,
    transposed: bool,
) -> Result<(), Fault> {
    let words = fragment(&block.warps[warp], &code.b, active, count);
    for (matrix, words) in words.iter().enumerate() {
        let mut rows = [[0u64; 8]; 8];
        for (lane, word) in words.iter().enumerate().take(LANES) {
            for e in 0..2 {
                let (row, place) = half(lane, e, transposed);
                rows[row][place] = u64::from(word >> (16 * e) & 0xffff);
            }
        }
        for (i, halves) in rows.iter().enumerate() {
            let bytes = row(block, warp, code, active, 8 * matrix + i)?;
            bytes.chunks_exact_mut(2).zip(halves).for_each(|(bytes, half)| store(bytes, *half));
        }
    }
    Ok(())
}

/// MOVM: a matrix of 8 by 8 half words, transposed across the lanes.
fn move_matrix(w: &mut Warp, code: &Code, active: u32) {
    let from = &fragment(w, &code.a, active, 1)[0];
    let element = |row: usize, place: usize| from[4 * row + place / 2] >> (16 * (place % 2)) & 0xffff;
    let pick = |lane: usize, e: usize| {
        let (row, place) = half(lane, e, true);
        element(row, place)
    };
    let result = vec![std::array::from_fn(|lane| pick(lane, 0) | pick(lane, 1) << 16)];
    set(w, code, active, &result);
}
