//! How products of matrices are made of instructions, and how the fragments of wmma lie in their matrices.

use super::ori::{Mod, Op, value};
use super::ptx::{BitOp, MatrixShape, Op as PtxOp, ScalarType};
use super::targets::{Feature, Target};

/// How the fragments of PTX become those of the instruction. Source: the legend of `lowering/matrix.ron`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Direct,
    Bytes,
    Nibbles,
    Bits,
    Differ,
    DifferBits,
    Order,
    OrderNibbles,
    SparseBytes,
    OrderBytes,
}

impl Way {
    /// Each pair of metadata is brought in order first.
    pub fn orders(self) -> bool {
        matches!(self, Way::Order | Way::OrderNibbles | Way::OrderBytes)
    }

    /// A step is more than one instruction.
    pub fn splits(self) -> bool {
        !matches!(self, Way::Direct | Way::Order)
    }
}

/// A row of `lowering/matrix.ron` with one list of types.
#[derive(Debug)]
pub struct Product {
    pub op: PtxOp,
    pub shape: MatrixShape,
    pub types: &'static [ScalarType],
    pub bit: Option<BitOp>,
    needs: &'static [(Feature, bool)],
    pub way: Way,
    pub inst: Op,
    pub mods: &'static [(Mod, u8)],
    /// Elements of the fragments of d, a, b.
    pub frag: [u8; 3],
    /// First elements in the PTX fragments of d, a, b.
    pub steps: &'static [[u8; 3]],
    /// The second factor comes first.
    pub swap: bool,
}

/// A row of `lowering/tiles.ron`.
#[derive(Debug)]
pub struct Tile {
    /// `a`, `b` or `c`.
    pub part: char,
    pub shape: MatrixShape,
    types: u64,
    needs: &'static [(Feature, bool)],
    /// The elements of a register stand side by side in a matrix stored by rows (else by columns).
    pub rows: bool,
    /// Elements of one register; 0: one, and lanes count by two.
    pub per: u8,
    /// Across and along for each register.
    pub tiles: &'static [(u8, u8)],
}

/// A row of `lowering/narrow.ron`.
#[derive(Debug)]
pub struct Narrow {
    ty: ScalarType,
    /// What two of them are made into.
    pub wide: ScalarType,
    /// Modifiers of F2FP: the format as its result, and as its source.
    pub made: (Mod, u8),
    pub read: (Mod, u8),
}

/// How F2FP spells a float of 8 bits or fewer.
pub fn narrow(ty: ScalarType) -> Option<&'static Narrow> {
    NARROW.iter().find(|n| n.ty == ty)
}

fn holds(target: &Target, needs: &[(Feature, bool)]) -> bool {
    needs.iter().all(|(feature, has)| target.has(*feature) == *has)
}

/// The product of a form on a target.
pub fn product(
    target: &Target,
    op: PtxOp,
    shape: MatrixShape,
    types: &[ScalarType],
    bit: Option<BitOp>,
) -> Option<&'static Product> {
    let fits = |p: &&Product| (p.op, p.shape, p.bit) == (op, shape, bit) && p.types == types;
    PRODUCTS.iter().filter(fits).find(|p| holds(target, p.needs))
}

/// The fragment of a part of wmma on a target.
pub fn tile(target: &Target, part: char, shape: MatrixShape, ty: ScalarType) -> Option<&'static Tile> {
    let fits = |t: &&Tile| (t.part, t.shape) == (part, shape) && t.types & ty.bit() != 0;
    TILES.iter().filter(fits).find(|t| holds(target, t.needs))
}

include!(concat!(env!("OUT_DIR"), "/lowering.rs"));
