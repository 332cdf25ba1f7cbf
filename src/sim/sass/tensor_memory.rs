//! Executes the instructions of tensor memory: LDTM, STTM, UTCHMMA and its kin, UTCCP, UTCSHIFT,
//! UTCBAR, UTCATOMSWS.
//!
//! A product is computed when it is issued, so UTCBAR arrives at once. Each acts once for all lanes
//! of a group.

use super::super::fault::Fault;
use super::super::ops::tensor_memory::{Extreme, Piece, Tensor, Words};
use super::super::ops::tensor_unit::{self, Copy, First, Place, Product, Side, copy, product, shift};
use super::block::Block;
use super::cluster::{self, RANK, SHARED};
use super::code::{Code, Dst, From};
use super::exec::Machine;
use super::group::{Matrix, element};
use super::mbarrier;
use super::warp::{LANES, Warp};

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Loads registers from the address in `ub` and the offset, and into another register
    /// an extreme of each lane's.
    Load(Piece, Option<(Extreme, u8)>),
    /// Stores registers, b, there.
    Store { piece: Piece },
    /// Allocates as many units as a says, in both blocks of a pair if there are two: the first of
    /// them, and whether there are so many. `aligned`: at a multiple of their number.
    Find { two: bool, aligned: bool },
    /// Keeps the units that a names.
    Keep,
    /// Arrives at the barrier at a, in the blocks that c names if there are several.
    Commit { several: bool },
    /// The sums at c, factors a and b, the descriptor behind `ub`.
    Product(Factors),
    /// To the address in a and the offset, from where the descriptor b says.
    Copy { how: Copy, two: bool },
    /// From the address in a and the offset on.
    Shift { two: bool },
}

/// The kind of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factors {
    pub kind: tensor_unit::Kind,
    pub in_tensor: bool,
    /// Whether two blocks have a half each.
    pub two: bool,
    /// The first uniform register that says which lanes keep their sums, or which columns are zero.
    pub kept: Option<u8>,
    /// The first of two with the addresses of scales.
    pub scales: Option<u8>,
    /// Whether the unit keeps the second factor.
    pub keeps: bool,
}

impl Factors {
    /// Registers that say which lanes keep their sums, or which columns are zero.
    pub fn kept_words(self) -> u8 {
        match (self.keeps, self.two) {
            (true, _) => 2,
            (false, true) => 8,
            (false, false) => 4,
        }
    }
}

/// Executes one of them.
///
/// # Errors
///
/// What is not modelled, and accesses where there is no memory.
pub fn execute(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    act: Act,
) -> Result<(), Fault> {
    let w = &mut block.warps[warp];
    let lane = active.trailing_zeros() as usize % LANES;
    let place = (w.get(&code.ub, lane) as u32).wrapping_add(code.off as u32);
    let wrong = |what: String| Fault::new(what).on_lane(lane);
    match act {
        Act::Load(..) | Act::Store { .. } if active != u32::MAX && w.alive & !active != 0 => {
            let what = if matches!(act, Act::Load(..)) { "load from" } else { "store to" };
            return Err(Fault::new(format!("a {what} tensor memory without all lanes of the warp")));
        }
        Act::Load(piece, best) => {
            let Dst::Reg(first) = code.d else { return Ok(()) };
            let mut words = registers(w, first, piece.registers);
            block.tensor.load((place, warp), piece, &mut words).map_err(wrong)?;
            if let Some((best, to)) = best {
                let found = best.of_lanes(&words);
                let own = (0..LANES).filter(|lane| piece.shape.reaches(*lane));
                own.for_each(|lane| block.warps[warp].set_reg(usize::from(to), lane, found[lane]));
            }
            for (i, row) in words.iter().enumerate() {
                (0..LANES).for_each(|lane| block.warps[warp].set_reg(usize::from(first) + i, lane, row[lane]));
            }
        }
        Act::Store { piece } => {
            let words = match code.b.from {
                From::Reg(first) => registers(w, first, piece.registers),
                _ => vec![[0; LANES]; piece.registers],
            };
            block.tensor.store((place, warp), piece, &words).map_err(wrong)?;
        }
        Act::Find { two, aligned } => {
            let count = w.get(&code.a, lane) as u32;
            let found = find(&mut cluster::sides(m, block, two)?, count, aligned);
            let w = &mut block.warps[warp];
            w.set(code.d, 0, lane, found.unwrap_or(0));
            w.set_pred(code.pu, 1 << lane, u32::from(found.is_some()) << lane);
            m.waits.moved |= found.is_some();
        }
        Act::Keep => {
            block.tensor.units &= w.get(&code.a, lane) as u32;
            m.waits.moved = true;
        }
        Act::Commit { several } => {
            let at = w.get(&code.a, lane) & SHARED;
            let blocks = if several { w.get(&code.c, lane) as u32 & 0xffff } else { 1 << block.rank };
            for rank in (0..16).filter(|rank| blocks >> rank & 1 != 0) {
                mbarrier::arrive(m, block, at | rank << RANK)?;
            }
        }
        Act::Product(factors) => {
            // Such a product has columns that are zero instead of lanes that keep their sums.
            let zeros = factors.kept.filter(|_| factors.keeps).map(usize::from);
            if zeros.is_some_and(|first| w.ureg(first) | w.ureg(first + 1) != 0) {
                return Err(wrong("columns that are zero in a product are not modelled".to_string()));
            }
            let p = operands(w, code, lane, factors);
            let mut sides = cluster::sides(m, block, factors.two)?;
            product::<Fault>(&mut sides, &p, cell).map_err(|fault| fault.on_lane(lane))?;
        }
        Act::Copy { how, two } => {
            let to = (w.get(&code.a, lane) as u32).wrapping_add(code.off as u32);
            let from = w.get(&code.b, lane);
            for side in &mut cluster::sides(m, block, two)? {
                copy::<Fault>(side, (to, from, how), cell).map_err(|fault| fault.on_lane(lane))?;
            }
        }
        Act::Shift { two } => {
            let at = (w.get(&code.a, lane) as u32).wrapping_add(code.off as u32);
            for (tensor, _) in &mut cluster::sides(m, block, two)? {
                shift(tensor, at).map_err(wrong)?;
            }
        }
    }
    Ok(())
}

/// Allocates units that are free in all blocks.
fn find(sides: &mut [Side], count: u32, aligned: bool) -> Option<u32> {
    let taken = sides.iter().fold(0, |units, (tensor, _)| units | tensor.units);
    let mut all = Tensor::default();
    all.units = taken;
    let found = all.find(count, aligned)?;
    sides.iter_mut().for_each(|(tensor, _)| tensor.units |= all.units & !taken);
    Some(found)
}

/// An element of a factor in shared memory.
fn cell(shared: &[u8], (descriptor, bits, turned, line, at): Place) -> Result<u64, Fault> {
    if descriptor >> 52 & 1 != 0 || descriptor >> 61 & 1 != 0 {
        return Err(Fault::new(format!("the descriptor {descriptor:#018x} is not modelled")));
    }
    element(shared, Matrix::new(descriptor, bits, turned).at(line, at), bits)
}

fn registers(w: &Warp, first: u8, count: usize) -> Words {
    (0..count).map(|i| std::array::from_fn(|lane| w.reg(usize::from(first) + i, lane))).collect()
}

fn operands(w: &Warp, code: &Code, lane: usize, factors: Factors) -> Product {
    let Factors { kind, in_tensor, kept, scales, keeps, .. } = factors;
    let first = w.get(&code.a, lane);
    let (chosen, of) = (w.get(&code.ub, lane) as u32, (w.get(&code.ub, lane) >> 32) as u32);
    let words = usize::from(factors.kept_words());
    let word = |first: u8, i: usize| if i < words { w.ureg(usize::from(first) + i) } else { 0 };
    let mask = kept.filter(|_| !keeps).map_or([0; 8], |first| std::array::from_fn(|i| word(first, i)));
    let scales = scales.map_or([0; 2], |first| std::array::from_fn(|i| w.ureg(usize::from(first) + i)));
    Product {
        kind,
        to: w.get(&code.c, lane) as u32,
        first: if in_tensor { First::Tensor(first as u32) } else { First::Shared(first) },
        second: w.get(&code.b, lane),
        of,
        kept: mask,
        added: w.pred(code.pp) >> lane & 1 != 0,
        scale: code.off as u32,
        scales,
        keeps,
        chosen: (of & tensor_unit::SPARSE != 0).then_some(chosen),
    }
}
