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

/// A row of `lowering/tensor_map.ron`: a field of a tensor map, or a part of one.
#[derive(Debug)]
pub struct MapField {
    pub field: &'static str,
    /// The dimension.
    pub index: u8,
    /// Dimensions of the maps of images that have it, where others have a box; 0 for all maps.
    pub rank: u8,
    /// Lowest bit in the map.
    pub at: u16,
    pub bits: u8,
    /// Lowest bit of the value that is here.
    pub shift: u8,
    /// What is subtracted from the value first.
    pub less: u8,
}

/// A row of `lowering/tensor_type.ron`: a type of the elements of a tensor map.
#[derive(Debug)]
pub struct MapType {
    /// Operand of `tensormap.replace`.
    pub number: u8,
    pub name: &'static str,
    /// The PTX type, if the elements have one.
    pub ty: Option<ScalarType>,
    /// Bits of an element.
    pub bits: u8,
    /// Number in the map.
    pub code: u8,
    /// Whether the field `rounding` is set with it.
    pub rounding: bool,
}

/// What a field of a tensor map is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapValue {
    Operand,
    Constant(u64),
}

/// The operand of `swizzle_mode` that is a field of its own.
const SWIZZLE_96: u64 = 4;

/// The rows that replacing a field of a tensor map sets, and to what; `number` is the constant
/// operand of a field that takes one. Empty if there is no such field.
pub fn map_writes(field: &str, index: u8, number: u64) -> Vec<(&'static MapField, MapValue)> {
    let one = |name: &str, value| {
        let rows = MAP_FIELDS.iter().filter(|row| row.field == name && row.index == index);
        rows.map(|row| (row, value)).collect::<Vec<_>>()
    };
    match field {
        "elemtype" => {
            let Some(ty) = MAP_TYPES.iter().find(|ty| u64::from(ty.number) == number) else { return Vec::new() };
            let mut all = one(field, MapValue::Constant(ty.code.into()));
            // No other type clears it.
            all.extend(if ty.rounding { one("rounding", MapValue::Constant(1)) } else { Vec::new() });
            all
        }
        "swizzle_mode" => {
            let apart = u64::from(number == SWIZZLE_96);
            let mut all = one(field, MapValue::Constant(if apart == 1 { 0 } else { number }));
            all.extend(one("swizzle_96", MapValue::Constant(apart)));
            all
        }
        "interleave_layout" | "fill_mode" | "swizzle_atomicity" => one(field, MapValue::Constant(number)),
        _ => one(field, MapValue::Operand),
    }
}

include!(concat!(env!("OUT_DIR"), "/lowering.rs"));
