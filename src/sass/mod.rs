//! SASS instructions: encode, decode, text in and out.
//!
//! One table row drives all four. `encode` picks the first row of the opcode whose operand forms and modifiers fit;
//! `decode` picks the one row whose fixed bits fit; `text` prints and parses by the same row.

pub mod inst;

pub use crate::tables::Mods;
pub use inst::{Arg, ArgKind, Ctrl, Guard, Inst};
