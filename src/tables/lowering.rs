//! How matrix multiplications are lowered to instructions, and how the fragments of `wmma` map to
//! matrices.

use super::ori::{Mod, Op, value};
use super::ptx::{BitOp, MatrixShape, Op as PtxOp, ScalarType};
use super::targets::{Feature, Target};

/// How the fragments of a PTX instruction are rearranged for the SASS instruction. Source: the
/// legend of `lowering/matrix.ron`.
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
    /// Whether each pair of sparsity metadata is sorted first.
    pub fn orders(self) -> bool {
        matches!(self, Way::Order | Way::OrderNibbles | Way::OrderBytes)
    }

    /// Whether a step takes more than one instruction.
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
    /// Operation on 1-bit elements.
    pub bit: Option<BitOp>,
    needs: &'static [(Feature, bool)],
    pub way: Way,
    /// Opcode of the instructions.
    pub inst: Op,
    /// Their modifiers.
    pub mods: &'static [(Mod, u8)],
    /// Registers of the instruction's fragments of d, a, b.
    pub frag: [u8; 3],
    /// First registers of each step in the PTX fragments of d, a, b.
    pub steps: &'static [[u8; 3]],
    /// The B operand comes first: computes the transposed product.
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
    /// Whether the elements of a register are adjacent in a row-major matrix (otherwise in a
    /// column-major one).
    pub rows: bool,
    /// Elements of one register; 0: one element, and lane indices advance by two.
    pub per: u8,
    /// For each register, the offset across the layout and the offset along it.
    pub tiles: &'static [(u8, u8)],
}

/// A row of `lowering/narrow.ron`.
#[derive(Debug)]
pub struct Narrow {
    ty: ScalarType,
    /// The type that a pair is converted to.
    pub wide: ScalarType,
    /// F2FP modifiers that select the format: as the result (`made`), and as the source (`read`).
    pub made: (Mod, u8),
    pub read: (Mod, u8),
}

/// The F2FP modifiers of a float type of 8 bits or fewer.
pub fn narrow(ty: ScalarType) -> Option<&'static Narrow> {
    NARROW.iter().find(|n| n.ty == ty)
}

fn holds(target: &Target, needs: &[(Feature, bool)]) -> bool {
    needs.iter().all(|(feature, has)| target.has(*feature) == *has)
}

/// The matrix multiplication of a form on a target.
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

/// The fragment layout of an operand of `wmma` on a target.
pub fn tile(target: &Target, part: char, shape: MatrixShape, ty: ScalarType) -> Option<&'static Tile> {
    let fits = |t: &&Tile| (t.part, t.shape) == (part, shape) && t.types & ty.bit() != 0;
    TILES.iter().filter(fits).find(|t| holds(target, t.needs))
}

include!(concat!(env!("OUT_DIR"), "/lowering.rs"));
