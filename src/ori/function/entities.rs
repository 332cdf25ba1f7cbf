//! What a function is made of: the names of its parts, and the data of each.

use crate::ori::operand::Operand;
use crate::tables::elf::RelocRole;
use crate::tables::{Mods, Op, value};
use cranelift_entity::entity_impl;

/// Number of the stack pointer in the general register file.
pub const STACK_POINTER: u16 = 1;

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u32);
entity_impl!(Block, "b");

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstId(u32);
entity_impl!(InstId, "i");

/// A virtual register: one 32-bit value (one bit for predicates).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VReg(u32);
entity_impl!(VReg, "v");

/// A register tuple: the registers of a wide operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VecId(u32);
entity_impl!(VecId, "vec");

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    R,
    UR,
    P,
    UP,
    B,
    UB,
}

/// How control enters and leaves a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// Launched: nothing to save; the stack pointer comes from a constant bank.
    #[default]
    Kernel,
    /// Called: preserves the registers of `tables/registers.ron` and the stack pointer.
    Device,
    /// Called by an expansion: uses only the registers that `tables/registers.ron` leaves to slow
    /// paths, and has no frame.
    SlowPath,
}

/// Attributes of a virtual register.
#[derive(Clone, Copy, Debug)]
pub struct RegData {
    /// Register file.
    pub file: File,
    /// Whether it differs, or may differ, between the lanes of a warp.
    pub varying: bool,
    /// Physical register, once allocated, or reserved in the whole function.
    pub phys: Option<u16>,
    /// Physical register that the allocator must assign, for its own live range only: an argument,
    /// a result, a return address.
    pub fixed: Option<u16>,
}

impl File {
    /// Name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            File::R => "R",
            File::UR => "UR",
            File::P => "P",
            File::UP => "UP",
            File::B => "B",
            File::UB => "UB",
        }
    }
}

/// Value of the size modifier for an access of this many 32-bit words; `None` for one word, which
/// has no modifier.
pub fn access_size(words: usize) -> Option<u8> {
    match words {
        2 => Some(value::size::_64),
        4 => Some(value::size::_128),
        _ => None,
    }
}

/// Progress of a function through the phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Progress number of the last phase that has one in `tables/phases.ron`.
    pub progress: u8,
    /// Whether ConvertUnsupportedOps has run.
    pub converted: bool,
    /// Whether operations are left for LateExpansionUnsupportedOps.
    pub unsupported: bool,
    /// Whether SetAfterLegalization has marked the function: no operation without an encoding is
    /// left.
    pub legalized: bool,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct InstData {
    /// Opcode.
    pub op: Op,
    /// Modifiers.
    pub mods: Mods,
    /// Predicate with its complement bit; null if unguarded.
    pub guard: Operand,
    pub(super) start: u32,
    pub(super) len: u16,
    /// Number of implicit uses and definitions, behind the roles (at the end of the `len`
    /// operands).
    pub(super) extra_uses: u16,
    pub(super) extra_defs: u16,
    /// Number of tied old values behind the operands.
    pub(super) olds: u16,
    /// For a float product or sum: whether the source permits contraction.
    pub contract: bool,
    /// For a memory access: whether it may not be reordered with any other access. For SYNCMASK:
    /// whether it orders the accesses around it.
    pub ordered: bool,
    /// How the cubin lists it.
    pub listed: Listed,
    /// Source line; 0 if unknown.
    pub line: u32,
    /// Control word, once scheduled.
    pub ctrl: ControlWord,
}

/// How the cubin lists an instruction, beside what its opcode says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listed {
    #[default]
    No,
    /// An operation on an mbarrier, of a kind of `tables/eiattr.ron`.
    Barrier(u8),
    /// A warp-wide operation that the program has; any other one the compiler added.
    Program,
    /// A load of several values that have so many words each.
    Values(u8),
}

/// The control word of an instruction, with the fields of `sass::Ctrl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlWord {
    /// Cycles until the next instruction of the warp may issue.
    pub stall: u8,
    /// Whether the scheduler should stay with this warp; the inverse of yield.
    pub stay: bool,
    /// Scoreboard that the result signals; 7 for none.
    pub write_bar: u8,
    /// Scoreboard that late source reads signal; 7 for none.
    pub read_bar: u8,
    /// Mask of the scoreboards to wait for before issue.
    pub wait: u8,
}

impl Default for ControlWord {
    fn default() -> Self {
        ControlWord { stall: 15, stay: false, write_bar: 7, read_bar: 7, wait: 0 }
    }
}

/// An address in code, known once code is laid out or functions are merged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// The start of the section with the code.
    Start,
    /// Address 0, the base of an absolute jump through a register.
    Zero,
    /// Low or high half of the section offset of the instruction after the next CALL of the block.
    Return { high: bool },
    /// Low or high half of the distance from the last LEPC before that CALL to the instruction
    /// after it.
    Distance { high: bool },
    /// A function of the driver, whose address the CALL has in registers: it tells what the callee
    /// preserves, and has no value.
    Driver,
    /// The entry of a function.
    Function(String),
    /// The entry of the slow path that the helper with this id describes.
    SlowPath(u16),
    /// Bytes of the function's finished frame, above which its caller's is.
    FrameSize,
    /// A linker-resolved value: the part of a symbol's value that the role names, plus `addend`
    /// bytes.
    Linked { role: RelocRole, name: String, addend: i64 },
}

/// Loops that `.pragma "nounroll"` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rolled {
    /// Whether these are all loops of the function.
    pub all: bool,
    /// Blocks that stand behind the pragma; each names the innermost loop around it.
    pub blocks: Vec<Block>,
}
