//! The registers of the PTX text that a debugger reads, and which virtual registers hold them.
//!
//! A virtual register holds at most one 32-bit part (or a predicate) of one PTX register. SSA
//! construction gives the mark of a register to its values.

use super::function::VReg;
use cranelift_entity::SecondaryMap;

/// Most 32-bit parts of a PTX register: a vector of four, or of two with 64 bits each.
const MOST_PARTS: u32 = 8;

/// The marks of a function.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// The registers of the text, by the number that a part names.
    pub registers: Vec<WatchedRegister>,
    /// The part that each virtual register holds.
    pub parts: SecondaryMap<VReg, Option<Part>>,
}

/// A register of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedRegister {
    pub name: String,
    /// Its type, as `.nv_debug_info_reg_type` numbers them.
    pub kind: u8,
}

/// One part of a register of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part(u32);

impl Part {
    /// The part with this number, from the low one up, of a register of the list.
    pub fn new(register: usize, word: usize) -> Part {
        Part(register as u32 * MOST_PARTS + (word as u32).min(MOST_PARTS - 1))
    }

    /// The register's place in the list.
    pub fn register(self) -> usize {
        (self.0 / MOST_PARTS) as usize
    }

    /// Which part it is.
    pub fn word(self) -> u32 {
        self.0 % MOST_PARTS
    }
}
