//! SASS instructions: encode, decode, print, parse, check.
//!
//! One table row drives all of the first four. `encode` takes the first row of the opcode whose
//! operand forms and modifiers fit, `decode` the one row whose fixed bits match, and `text` and
//! `parse` print and read by the same row.

mod decode;
pub mod effects;
mod encode;
mod field;
mod float;
pub mod flow;
pub mod hazards;
pub mod inst;
pub mod listing;
pub mod liveness;
mod parse;
pub mod reuse;
mod text;
pub mod widths;

pub use decode::{DecodeError, decode};
pub use effects::{Access, Effects, Slot};
pub use encode::{EncodeError, encode, is_encodable, pick};
pub use field::kind_of as field_kind;
pub use parse::{ParseError, parse};
pub use text::{hidden, text};

pub use crate::tables::Mods;
pub use inst::{Arg, ArgKind, Ctrl, Guard, Inst};
