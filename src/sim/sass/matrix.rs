//! Executes matrix instructions: products, and the transposition across lanes (MOVM). Loads and
//! stores (LDSM, STSM) are in `ldmatrix`.
//!
//! All source fragments are read before a result is written. A lane outside the group does not
//! participate; its registers count as 0.

use super::super::fault::Fault;
use super::block::Block;
use super::code::{Code, Exec, From, Src};
use super::ldmatrix::{self, half};
use super::mma::{Fragment, Product};
use super::warp::{Warp, lanes_of};
use crate::arrays::Each;

/// Numbers of registers in the fragments of a product.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The A fragment.
    pub a: u8,
    /// The B fragment.
    pub b: u8,
    /// The C and D fragments.
    pub d: u8,
}

/// Executes a matrix instruction for the active lanes.
///
/// # Errors
///
/// A misaligned or out-of-bounds row, or a row whose lane does not participate.
pub fn execute(block: &mut Block, warp: usize, code: &Code, active: u32) -> Result<(), Fault> {
    match code.exec {
        Exec::Product(product, words) => multiply(&mut block.warps[warp], code, active, product, words),
        Exec::Quarters(product) => {
            let w = &mut block.warps[warp];
            let [a, b, c] = [&code.a, &code.b, &code.c].each(|src| fragment(w, src, active, 2));
            let d = product.eval(&a, &b, &c);
            set(w, code, active, &d);
        }
        Exec::LoadMatrix { count, grid } => {
            let result = ldmatrix::load(block, warp, code, active, count, grid)?;
            set(&mut block.warps[warp], code, active, &result);
        }
        Exec::StoreMatrix { count, grid } => {
            let words = fragment(&block.warps[warp], &code.b, active, count);
            ldmatrix::store(block, warp, code, active, &words, grid)?;
        }
        _ => move_matrix(&mut block.warps[warp], code, active),
    }
    Ok(())
}

/// Reads `words` registers of all lanes; inactive lanes read as 0.
pub(super) fn fragment(w: &Warp, src: &Src, active: u32, words: u8) -> Fragment {
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

/// MOVM: transposes an 8 × 8 matrix of half-words across the lanes.
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
