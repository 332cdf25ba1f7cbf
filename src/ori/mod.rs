//! Ori, a machine-level IR that all phases from lowering to encoding share.
//!
//! Its opcodes are SASS opcodes and pseudo-operations over virtual registers of 32 bits; a wide
//! operand is a register tuple. A function is a list of blocks of instruction ids; instructions,
//! operands, registers and tuples are in arenas of the function.

pub mod build;
pub mod cfg;
pub mod code;
pub mod commute;
pub mod function;
pub mod hash;
pub mod liveness;
pub mod mods;
pub mod operand;
pub mod ssa;
pub mod text;
pub mod verify;

pub use code::Code;
pub use function::{
    Block, Convention, File, Function, InstData, InstId, RegData, STACK_POINTER, Stage, Symbol, VReg, VecId,
};
pub use operand::{Kind, Operand};
