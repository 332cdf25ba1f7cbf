//! Ori, the one intermediate representation from lowering to encoding.
//!
//! SASS opcodes and pseudo-operations over virtual registers of 32 bits. Wide operands are register vectors. A function
//! is a list of blocks of instruction ids; instructions, operands, registers and vectors live in arenas of the function.

pub mod cfg;
pub mod code;
pub mod exchange;
pub mod floats;
pub mod function;
pub mod hash;
pub mod liveness;
pub mod mods;
pub mod operand;
mod places;
pub mod ssa;
pub mod text;
pub mod varying;
pub mod verify;
pub mod words;

pub use code::Code;
pub use function::{
    Block, Convention, File, Function, InstData, InstId, RegData, STACK_POINTER, Stage, Symbol, VReg, VecId,
};
pub use operand::{Kind, Operand};
