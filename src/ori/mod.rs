//! Ori, a machine-level IR that all phases from lowering to encoding share.
//!
//! Its opcodes are SASS opcodes and pseudo-operations over virtual registers of 32 bits; a wide
//! operand is a register tuple. A function is a list of blocks of instruction ids; instructions,
//! operands, registers and tuples are in arenas of the function.

pub mod arena;
pub mod attributes;
pub mod bank_constants;
pub mod build;
pub mod cfg;
pub mod code;
pub mod commute;
pub mod destruct;
pub mod function;
pub mod hash;
pub mod insts;
pub mod list_table;
mod live_blocks;
pub mod liveness;
pub mod long;
pub mod mods;
pub mod operand;
pub mod quads;
pub mod register_changes;
pub mod shader_constants;
pub mod ssa;
pub mod text;
pub mod verify;
pub mod watched;

pub use bank_constants::BankConstants;
pub use code::Code;
pub use function::{
    Block, Convention, File, Function, InstData, InstId, Listed, RegData, Rolled, STACK_POINTER, Stage, Symbol, VReg,
    VecId,
};
pub use operand::{Kind, Operand};
pub use shader_constants::ShaderConstants;

use cranelift_entity::{EntityRef, SecondaryMap};

/// A map with entries for the keys below `len` from the start, so that it does not grow key by key.
pub fn table<K: EntityRef, V: Clone + Default>(len: usize) -> SecondaryMap<K, V> {
    table_of(len, V::default())
}

/// As [`table`], with this value in every entry.
pub fn table_of<K: EntityRef, V: Clone>(len: usize, value: V) -> SecondaryMap<K, V> {
    let mut map = SecondaryMap::with_default(value);
    map.resize(len);
    map
}
